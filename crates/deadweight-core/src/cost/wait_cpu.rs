//! Waiting for a CPU.
//!
//! # What it is
//! The program could run, but something else has the CPU: one of its own background threads, or
//! more threads that spin and yield than there are CPUs.
//!
//! # How deadweight knows
//! The time between a wake-up or preemption and the next switch-in is exact. The task that held the
//! CPU in that time is known exactly too.
//!
//! # What it is mistaken for
//! Similar workers, no more than the machine can carry, each with its share of the work (they start
//! in the same function, or run mostly the same functions): they wait for each other, but nothing
//! is lost. A thread whose work the program needs: it is fed by the others or hands its results to
//! them, and ends by itself, or others wait for its end. Time that other programs took disturbs the
//! measurement (hazard *noisy*) and is no cost of this program. A wait for a CPU is not a saving in
//! itself. The saving is a range: from 0, if the holder's work is needed now, to the whole wait.
//!
//! # What to do
//! Do less in the background, do it later, or at a lower priority. Run no more busy threads than
//! there are CPUs. Block instead of spinning with `sched_yield`.
//!
//! # Seen in
//! Eight threads on two cores that meet at a barrier and call `sched_yield` until all have arrived.
//! In `tests/programs`: `phases.c` with more threads than CPUs.

mod background;
mod needed;

use super::{AccountId, Claim, Class, Inspection, OBSERVER};
use crate::account::{Detail, Entry, Slice, What};
use crate::facts::Facts;
use crate::facts::call_site::{Weights, is_runtime, sites};
use crate::facts::processes::ProcessId;
use crate::inspect::{Draft, Sum, processes_in};
use crate::path::cpu_holder::{CpuHolder, LATE};
use crate::timeline::{Run, Within};
use background::{Main, background};
use deadweight_report::report::How;
use deadweight_report::wording::{percent, things, time};
use deadweight_trace::units::Ns;

pub(super) const CLASS: Class = Class {
    id: "wait-cpu",
    source: include_str!("wait_cpu.rs"),
    claim: Claim::Slices(claim),
    inspect,
};

/// From this many yields on it is a spinning loop.
const STORM: u64 = 500;
/// A thread with less than one in so many yields is no spinning one.
const FEW: usize = 20;
/// Longer user code between two yields is not just a check of a flag.
const CHECK: Ns = Ns(5_000);
/// One in this many gaps between yields is surely spinning, and gaps up to this many times as long.
const SHORTEST: (usize, u64) = (10, 3);

fn claim(facts: &Facts<'_>, slice: &Slice) -> bool {
    match slice.what {
        What::Ready(CpuHolder::Own(_) | CpuHolder::Outside(_)) => true,
        What::Ready(CpuHolder::Nobody) => is_held_back(slice),
        What::Call(group, _) => {
            let group = facts.call_groups.get(group);
            group.name == "sched_yield" && group.calls >= STORM
        }
        _ => false,
    }
}

/// Whether a task was ready for long while its CPU was idle: an idle CPU takes a task within microseconds.
pub(super) fn is_held_back(slice: &Slice) -> bool {
    slice.what == What::Ready(CpuHolder::Nobody) && slice.end - slice.start >= LATE
}

fn inspect(found: &Inspection<'_, '_>) -> Vec<Draft> {
    let account = AccountId::of_class(CLASS.id);
    let main = Main::of(found.facts);
    processes_in(found.wall.in_account(account))
        .into_iter()
        .filter_map(|process| {
            spinning(found, account, process)
                .or_else(|| background(found, account, process, main.as_ref()?))
        })
        .collect()
}

/// Spinning tasks of a process: how many, and their user time spent checking.
fn spinners(facts: &Facts<'_>, process: ProcessId) -> (usize, Ns) {
    let yields = |within| match within {
        Within::Syscall(call) => facts
            .call_groups
            .id(call)
            .is_some_and(|f| facts.call_groups.get(f).name == "sched_yield"),
        _ => false,
    };
    let cost = Ns(facts.overhead.syscall_user);
    let mut of_tasks = Vec::new();
    let mut gaps: Vec<Ns> = Vec::new();
    for id in &facts.processes.get(process).tasks {
        let task = &facts.timeline.tasks[id.index()];
        let before = gaps.len();
        for (i, three) in task.spans.windows(3).enumerate() {
            let on_cpu =
                matches!(three[1].run(), Run::OnCpu(_)) && three[1].within() == Within::User;
            if on_cpu && yields(three[0].within()) && yields(three[2].within()) {
                gaps.push(task.span_end(i + 1) - three[1].start - cost);
            }
        }
        of_tasks.push(gaps.len() - before);
    }
    let tasks = of_tasks.iter().filter(|yields| **yields * FEW >= gaps.len().max(1)).count();
    (tasks, checks(gaps))
}

/// The part of the time between yields that was only checking: work between two barriers is longer.
fn checks(mut gaps: Vec<Ns>) -> Ns {
    gaps.sort_unstable();
    let (part, times) = SHORTEST;
    let longest = gaps.get(gaps.len() / part).map_or(Ns::ZERO, |short| Ns(short.0 * times));
    let longest = longest.max(Ns(50)).min(CHECK);
    gaps.into_iter().take_while(|gap| *gap <= longest).sum()
}

fn spinning(found: &Inspection<'_, '_>, account: AccountId, process: ProcessId) -> Option<Draft> {
    let facts = found.facts;
    let cpus = usize::from(facts.trace.meta.cpus.max(1));
    let yields = facts.call_groups.of_process(process).find(|(_, f)| f.name == "sched_yield")?.1;
    let (tasks, checking) = spinners(facts, process);
    // In a Go program only the runtime yields: the collector's workers, at their ends.
    let runtimes = facts.processes.get(process).language == "Go";
    if yields.calls < STORM || tasks <= cpus || runtimes {
        return None;
    }
    let own = |e: &&Entry| !e.is_disturbance();
    let sum = Sum::of(found.wall.of_process(account, process).filter(own));
    let of_process = || found.cpu.in_process(process);
    let all: Ns = of_process().filter(|e| e.account != OBSERVER).map(|e| e.ns).sum();
    let spun: Ns =
        of_process().filter(|e| e.account == account).map(|e| e.ns).sum::<Ns>() + checking;
    let work = (all - spun).min(longest_work(facts, process, yields.calls).unwrap_or(Ns(u64::MAX)));
    let ideal = Ns(work.0 / u64::try_from(cpus).unwrap_or(1));
    // Tracing makes yields longer, and hardly the work: a clean run shows the part that remains.
    let net = found.wall.net();
    let left = ideal.share_of(facts.clean_wall.map_or(net, |clean| clean.min(net)));
    let saving = net.part(1.0 - left.min(1.0)).min(sum.ns + checking);
    let mut places = Weights::new();
    for entry in found.wall.of_process(account, process) {
        if matches!(entry.detail, Detail::Calls(_)) {
            crate::facts::call_site::add(&mut places, entry.places());
        }
    }
    if places.keys().all(|site| is_runtime(facts.symbols(), *site)) && !places.is_empty() {
        return None;
    }
    Some(Draft {
        class: CLASS.id,
        moves: false,
        process,
        title: format!("{tasks} threads spin on {}", things(u64::try_from(cpus).ok()?, "CPU")),
        text: format!(
            "{tasks} threads of {} called sched_yield {} while the threads that they waited for \
             had no CPU.",
            facts.name(process),
            things(yields.calls, "time"),
        ),
        amount: sum.ns,
        saving,
        range: (Ns::ZERO, saving),
        how: How::Estimate,
        sites: sites(facts.symbols(), &places, yields.calls),
        evidence: vec![
            format!("{} of the CPU time goes to yielding and checking", percent(spun, all)),
            format!("the work itself takes {}, or {} on {cpus} CPUs", time(work), time(ideal)),
        ],
        remedy: format!(
            "Use no more threads than CPUs ({cpus} here), or let waiting threads block: use a \
             barrier or condition variable instead of a loop that yields."
        ),
    })
}

/// If nearly all calls are yields, the kernel does none of the work: it takes no longer than a
/// clean run's user time. A traced run may show more if yields are not recorded one by one.
fn longest_work(facts: &Facts<'_>, process: ProcessId, yields: u64) -> Option<Ns> {
    /// From this part of a process's calls on.
    const NEARLY_ALL: f64 = 0.95;
    let calls: u64 = facts.call_groups.of_process(process).map(|(_, f)| f.calls).sum();
    let none_else = yields as f64 >= NEARLY_ALL * calls as f64;
    facts.clean_user.filter(|user| none_else && *user > Ns::ZERO)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{found, repeat, rows};
    use crate::facts::clean_run::CleanRun;
    use crate::weigh::{Weighing, weigh};
    use deadweight_trace::Trace;
    use deadweight_trace::units::Ns;
    use expect_test::expect;

    /// Two threads on one CPU in turn; `one` and `two` are their start functions.
    fn sharing(one: &str, two: &str) -> String {
        let first = repeat(50, 1000, 2000, |t| {
            format!(
                "{t} cpu0 on\n{} sample {one} <- start_thread\n{} off preempted\n",
                t + 10,
                t + 1000
            )
        });
        let second = repeat(50, 2000, 2000, |t| {
            format!(
                "{t} cpu0 on\n{} sample {two} <- start_thread\n{} off preempted\n",
                t + 10,
                t + 1000
            )
        });
        format!(
            "cpus 1
             task 1 app\n0 cpu0 on\n100 fork 2 thread\n500 off preempted\n{first}
             101000 on\n101900 syscall exit_group\n101900 exit\n102000 off dead
             task 2 app\n{second}"
        )
    }

    #[test]
    fn background_work_of_its_own_is_found() {
        expect![[r#"
            wait-cpu 48 % (0..56) @ compact: app was ready to run for 49.0 µs while 1 background task of its own held the CPU to run compact. No task waited for that work.
        "#]].assert_eq(&found(&sharing("serve", "compact")));
    }

    #[test]
    fn a_child_that_exited_before_its_parent_waited_is_no_background_work() {
        let held = |waits: &str| {
            found(&format!(
                "cpus 1
                 task 1 sh\n0 cpu0 on\n1000 fork 2\n2000 off preempted
                 50010 cpu0 on\n{waits}\n60000 syscall exit_group\n60100 exit\n60200 off dead
                 task 2 true\n2000 cpu0 on\n9000 sample compact <- main\n40000 sample compact <- main
                 49000 syscall exit_group\n49900 exit\n50000 off dead"
            ))
        };
        assert!(held("").contains("background task"), "{}", held(""));
        for waits in ["51000 syscall wait4\n51500 back 2", "51000 syscall waitid\n51500 back"] {
            assert_eq!(held(waits), "");
        }
    }

    /// 300 µs of work, then two threads on one CPU that yield to each other 300 times each.
    fn spinning() -> String {
        let turns = |from| {
            repeat(300, from, 2000, |t| {
                let [back, again, off] = [t + 100, t + 200, t + 1000];
                format!(
                    "{t} cpu0 on\n{back} back\n{again} syscall sched_yield\n{off} off preempted\n"
                )
            })
        };
        let (first, second) = (turns(301_000), turns(302_000));
        format!(
            "cpus 1
             task 1 app\n0 cpu0 on\n100 fork 2 thread\n299900 syscall sched_yield
             300000 off preempted\n{first}
             902000 on\n902100 syscall exit_group\n902200 exit\n902300 off dead
             task 2 app\n300000 cpu0 on\n300500 syscall sched_yield\n301000 off preempted\n{second}"
        )
    }

    #[test]
    fn spinning_is_found_and_saves_a_clean_run_without_the_work() {
        let saving = |clean: &[CleanRun]| {
            let trace = Trace::from_text(&spinning()).unwrap();
            let weighing = Weighing { traces: &[trace], clean, ..Weighing::default() };
            weigh(&weighing).unwrap().findings.first().map(|f| (f.saving_share * 100.0).round())
        };
        assert_eq!(saving(&[]), Some(67.0), "300 of 900 µs are work");
        let clean = CleanRun { wall: Ns(400_000), ..CleanRun::default() };
        assert_eq!(saving(&[clean]), Some(25.0), "tracing made the yields longer: 300 of 400");
        let clean = CleanRun { user: Ns(200_000), ..clean };
        assert_eq!(saving(&[clean]), Some(50.0), "no more than 200 were work");
    }

    #[test]
    fn a_child_whose_end_its_parent_waits_for_is_refused() {
        let end = "101000 on\n101900 syscall exit_group\n101900 exit\n102000 off dead";
        let forked = sharing("serve", "compact").replace("fork 2 thread", "fork 2");
        assert!(found(&forked).contains("background"), "nobody waits for the child's end");
        let waited_for = forked.replace(
            end,
            "101000 on\n101100 off blocked wait4\n101900 on woken-by 2 : do_notify_parent < do_exit
             102900 syscall exit_group\n102900 exit\n103000 off dead",
        ) + "101100 on\n101800 exit\n101950 off dead\n";
        assert_eq!(found(&waited_for), "");
    }

    #[test]
    fn a_thread_that_ended_long_before_the_program_is_refused() {
        let early = |exit: &str| {
            let other = repeat(20, 2000, 2000, |t| {
                format!(
                    "{t} cpu0 on\n{} sample compact <- start_thread\n{} off preempted\n",
                    t + 10,
                    t + 1000
                )
            });
            let main = repeat(20, 1000, 2000, |t| {
                format!(
                    "{t} cpu0 on\n{} sample serve <- main\n{} off preempted\n",
                    t + 10,
                    t + 1000
                )
            });
            found(&format!(
                "cpus 1\ntask 1 app\n0 cpu0 on\n100 fork 2 thread\n500 off preempted\n{main}
                 42000 on\n99000 syscall exit_group\n99900 exit\n100000 off dead
                 task 2 app\n{other}{exit}"
            ))
        };
        assert!(early("").contains("background"), "{}", early(""));
        let exit = "41000 cpu0 on\n41200 syscall exit\n41500 exit\n41600 off dead\n";
        assert_eq!(early(exit), "");
    }

    #[test]
    fn a_thread_that_is_fed_and_ends_by_itself_is_refused() {
        // The other thread waits for orders: the main one wakes it each time.
        let fed = |exit: &str| {
            let text = sharing("serve", "compact");
            let (main, other) = text.split_once("task 2 app\n").unwrap();
            let orders = repeat(20, 101_100, 10, |t| {
                format!(
                    "{t} syscall futex 4096 128 0 0\n{0} off blocked : futex_do_wait from cond_wait <- start_thread
                     {1} cpu0 on woken-by 1\n{1} back 0\n",
                    t + 1,
                    t + 5
                )
            });
            found(&format!("{main}task 2 app\n{other}101050 cpu1 on\n{orders}{exit}"))
        };
        assert!(fed("").contains("background"), "{}", fed(""));
        assert_eq!(fed("101400 syscall exit\n101450 exit\n101500 off dead\n"), "");
    }

    #[test]
    fn similar_workers_are_refused() {
        assert_eq!(found(&sharing("worker", "worker")), "");
        // The main thread takes its part of what it hands out.
        assert_eq!(found(&sharing("merge <- main", "merge <- worker")), "");
    }

    #[test]
    fn a_task_that_runs_late_after_its_wake_up_waits_for_a_cpu_at_the_user_rung() {
        let text = |runs: u64| {
            format!(
                "rung user\ncpus 1\ntask 1 app\n0 cpu0 on\n10 syscall pipe2 0 0\n20 back\n30 fork 2\n\
                 40 syscall read 3 1\n50 off blocked\n{runs} cpu0 on\n{0} back 1\n{1} exit\n{1} off dead\n\
                 task 2 app\n60 cpu1 on\n1000000 syscall write 4 1\n1000100 back 1\n1000200 exit\n1000300 off dead",
                runs + 10,
                runs + 1000
            )
        };
        let late = rows(&text(9_000_000), 5);
        assert!(late.contains("wait-cpu") && !late.contains("wait-input"), "{late}");
        let soon = rows(&text(1_300_000), 5);
        assert!(!soon.contains("wait-cpu"), "{soon}");
    }
}
