//! Parallel overhead.
//!
//! # What it is
//! Several threads share out pieces of work that are too small: to start a parallel loop, to hand a piece
//! to another thread and to meet at its end costs more than the piece. The threads are busy, or sleep and wake each
//! other, and one thread alone would be done earlier. Or two processes hand each other one small piece after the other through
//! pipes or sockets: each costs both of them calls, a switch and a wake-up.
//!
//! # How deadweight knows
//! The CPU time of all threads outside of the code that shares out work (libgomp, libomp, TBB, rayon, barriers, channels,
//! queues with a condition variable or a semaphore; Go's scheduler) and its system calls is what there is to do. If the run
//! takes longer than all of this one after the other, the difference is overhead. The row is the CPU time on the critical path
//! in that code, by samples; sleeping for a meeting is in *waiting: lock*, and waking others in *system calls*. While other
//! programs hold CPUs, only the time in channels, in queues and in Go's scheduler counts: whatever has no CPU, others of a
//! team wait for. Processes that take turns are known by who reads what the other one wrote; their time is in *system calls*,
//! *waiting: CPU* and *waiting: input*. Whether the next piece could have been sent before the answer came, nothing shows.
//!
//! # What it is mistaken for
//! Waits of a team for its slowest member: then one of them works all the time, and one thread alone would
//! take longer. Waits for a CPU that other programs have, also of a thread that the others of its team wait for. Waits
//! for input, a disk or a child.
//!
//! # What to do
//! Share out larger pieces: the outer loop instead of the inner one, one parallel region around several
//! loops, a least size below which the loop is not divided. Send batches instead of single values: so many that the
//! work on them takes much longer than sending. `OMP_NUM_THREADS=1` (or `OMP_THREAD_LIMIT=1`,
//! `RAYON_NUM_THREADS=1`) shows at once what one thread takes.
//!
//! # Seen in
//! Recognition of text that starts a parallel loop for each line of a page; stages of a pipeline that send each number
//! through a channel or a queue. A parent and a worker that exchange one line per round trip.
//! In `tests/programs`: `line_per_turn.c`, `short_rows.c`, `number_per_message.rs`, `value_per_channel.go`, `number_per_queue.cpp`.

mod dialogue;
mod parts;

use super::{Claim, Class, Inspection};
use crate::facts::Facts;
use crate::facts::call_site::{CallSite, Weights, is_own};
use crate::facts::processes::ProcessId;
use crate::facts::user_time::UserSample;
use crate::inspect::Draft;
use crate::inspect::shares::sampled_sites;
use deadweight_report::report::How;
use deadweight_report::wording::{things, time};
use deadweight_trace::ids::Cpu;
use deadweight_trace::units::Ns;
use parts::{Parts, Team};

pub(super) const CLASS: Class = Class {
    id: "parallel-overhead",
    source: include_str!("parallel_overhead.rs"),
    claim: Claim::Samples(claim),
    inspect,
};

/// Below this share of the wall time larger pieces save little.
const LARGE: f64 = 0.1;
/// One thread alone saves at least this part of the difference: the time of the pieces was measured while others ran.
const LEAST: f64 = 0.9;

fn claim(sample: &UserSample<'_>) -> bool {
    sample.is_in_team_code()
}

fn inspect(found: &Inspection<'_, '_>) -> Vec<Draft> {
    if found.facts.path.subject.service.is_some() {
        return Vec::new();
    }
    let mut drafts = found.drafts_of_all(draft);
    drafts.extend(dialogue::drafts(found));
    drafts
}

fn draft(found: &Inspection<'_, '_>, process: ProcessId) -> Option<Draft> {
    let facts = found.facts;
    let threads = facts.processes.get(process).tasks.len() as u64;
    let net = found.wall.net();
    if threads < 2 {
        return None;
    }
    let team = Team::of(facts, found.cpu, process);
    let wall = Parts::of(facts, found.wall, process, &team);
    if wall.team.share_of(net) < LARGE {
        return None;
    }
    let cpu = Parts::of(facts, found.cpu, process, &team);
    let took = wall.all() - taken_by_others(found, process).min(wall.all());
    let certain = wall.handing + wall.work + wall.waits;
    let at_least = if certain > took { "at least " } else { "" };
    let took = took.max(certain);
    let saving = took - (cpu.work + wall.waits).min(took);
    if saving.share_of(net) < LARGE {
        return None;
    }
    let cpus = u64::from(facts.trace.meta.cpus).clamp(1, threads);
    let most = wall.all() - (Ns(cpu.work.0 / cpus) + wall.waits).min(wall.all());
    let name = facts.name(process);
    let language = facts.processes.get(process).language.as_str();
    let hands = team.is_mostly_handing(&wall.places);
    Some(Draft {
        class: CLASS.id,
        moves: false,
        process,
        title: title(language, hands).into(),
        text: format!(
            "All work of {} of {name} takes {} of CPU time: one thread alone would need that at most. Divided among \
             them, it took {at_least}{}; the rest is handing out the pieces and meeting after each.",
            things(threads, "thread"),
            time(cpu.work),
            time(took - wall.waits.min(took)),
        ),
        amount: wall.team,
        saving,
        range: (saving.part(LEAST), most),
        how: How::Estimate,
        sites: sampled_sites(facts.symbols(), &places(facts, &wall.places)),
        evidence: vec![format!(
            "{} of CPU time in the code that shares out work, and its calls",
            time(cpu.team)
        )],
        remedy: remedy(language, hands).into(),
    })
}

/// How long other programs had CPUs that its threads could use, beyond what is a disturbance of the critical path: while
/// one of a team has no CPU, the others wait for it, and the CPUs that are left hold those that spin.
fn taken_by_others(found: &Inspection<'_, '_>, process: ProcessId) -> Ns {
    let (timeline, subject) = (found.facts.timeline, &found.facts.path.subject);
    let cpus = (0..timeline.held.len()).filter_map(|cpu| u16::try_from(cpu).ok());
    let held = cpus.flat_map(|cpu| timeline.holders(Cpu(cpu), subject.start, subject.end));
    let others = held.filter(|(_, _, who)| {
        who.is_some_and(|who| !subject.owns(who) && !timeline.task(who).recorder)
    });
    let taken: Ns = others.map(|(from, to, _)| to - from).sum();
    let threads = found.facts.processes.get(process).tasks.len();
    let spare = timeline.held.len().saturating_sub(threads) as u64;
    let spare = Ns((subject.end - subject.start).0.saturating_mul(spare));
    let on_path = found.wall.in_process(process).filter(|entry| entry.is_disturbance());
    let allowed = spare + on_path.map(|entry| entry.ns).sum::<Ns>();
    taken - allowed.min(taken)
}

/// Where the program's own code asks for it; all places if none is known.
fn places(facts: &Facts<'_>, all: &Weights) -> Weights {
    let own = |site: &CallSite| {
        let symbols = facts.symbols();
        site.frames(symbols).any(|(l, f)| is_own(symbols, l, f))
    };
    let asked: Weights = all.iter().filter(|(site, _)| own(site)).map(|(s, w)| (*s, *w)).collect();
    if asked.is_empty() { all.clone() } else { asked }
}

fn title(language: &str, hands: bool) -> &'static str {
    match language {
        "Go" => "goroutines have pieces of work that are too small",
        _ if hands => "threads hand each other pieces of work that are too small",
        _ => "threads share out pieces of work that are too small",
    }
}

fn remedy(language: &str, hands: bool) -> &'static str {
    match language {
        "Go" => {
            "Give each goroutine many items: one per CPU, with a part of the slice, or batches over the channel. For items \
             of so little work a plain loop is faster."
        }
        "Rust" if hands => {
            "Send batches: a Vec of so many items that the work on them takes much longer than sending it. For items of so \
             little work a plain loop is faster. A channel that holds only a few items makes its threads sleep and wake each \
             other."
        }
        _ if hands => {
            "Put batches into the queue: so many items that the work on them takes much longer than a turn of the queue; \
             and take all that are there at once. For items of so little work a plain loop is faster. A queue that holds only \
             a few items makes its threads sleep and wake each other."
        }
        "Rust" => {
            "Divide the outer loop, or set a least size: with_min_len, par_chunks. RAYON_NUM_THREADS=1 shows what one \
             thread takes."
        }
        _ => {
            "Divide the outer loop instead of the inner one, or only loops that are long enough (OpenMP: if(n > ...)). \
             OMP_THREAD_LIMIT=1 shows what one thread takes."
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{found, repeat, rows};
    use std::fmt::Write;

    const SPINS: &str =
        "spin @libgomp.so.1 <- GOMP_parallel @libgomp.so.1 <- relax (s.c:7) <- main (s.c:20)";
    const WORKS: &str = "relax._omp_fn.0 (s.c:9) <- relax (s.c:7) <- main (s.c:20)";

    /// Two threads on two CPUs for 20 ms; of each 5 ms they have so many with one stack, the others with another.
    fn team(one: (u64, &str, &str), two: (u64, &str, &str)) -> String {
        let samples = |(first, stack, others): (u64, &str, &str)| {
            let mut text = String::new();
            for ms in 0..20 {
                let stack = if ms % 5 < first { stack } else { others };
                writeln!(text, "{} sample {stack}", 1_000_000 * (ms + 1)).unwrap();
            }
            text
        };
        format!(
            "cpus 2\nimage app path /bin/app language C\nimage libgomp.so.1 path /lib/libgomp.so.1\nsample-period 1000000\n\
             task 1 app\n0 cpu0 on\n0 exec /bin/app\n0 main\n100 fork 2 thread\n{}21_000_000 exit\n21_000_000 off dead\n\
             task 2 app\n10000 cpu1 on\n{}20_990_000 exit\n20_990_000 off dead",
            samples(one),
            samples(two)
        )
    }

    #[test]
    fn a_team_that_takes_longer_than_all_its_work_is_found() {
        let said = found(&team((1, WORKS, SPINS), (1, WORKS, SPINS)));
        // One thread alone needs 9 of 21 ms.
        assert!(said.starts_with("parallel-overhead 5") && said.contains("@ relax:7: "), "{said}");
        let barrier = "pthread_barrier_wait @libc.so.6 <- sweep (s.c:30) <- main (s.c:20)";
        let said = found(&team((1, WORKS, barrier), (1, WORKS, barrier)));
        assert!(said.contains("parallel-overhead") && said.contains("@ sweep:30: "), "{said}");
        let rayon = "core::sync::atomic::AtomicUsize::load (/rustc/1/library/core/src/sync/atomic.rs:9) in \
                     rayon_core::registry::WorkerThread::wait_until_cold (/r/rayon-core-1.12/src/registry.rs:9) <- main (s.c:20)";
        assert!(found(&team((1, WORKS, rayon), (1, WORKS, rayon))).contains("parallel-overhead"));
    }

    #[test]
    fn a_team_of_which_one_always_works_is_refused() {
        for (one, two) in [
            ((1, WORKS, SPINS), (5, WORKS, WORKS)),
            ((3, WORKS, SPINS), (3, SPINS, WORKS)),
            ((5, WORKS, WORKS), (0, WORKS, SPINS)),
        ] {
            let said = found(&team(one, two));
            assert!(!said.contains("parallel-overhead"), "{one:?} {two:?}: {said}");
        }
    }

    #[test]
    fn a_goroutine_per_item_is_found_and_work_in_goroutines_is_refused() {
        let go = |(other, two): (&str, u64)| {
            let text = team(
                (1, "main.shade (s.go:9) <- main.render.func1 (s.go:20)", other),
                (two, WORKS, other),
            );
            text.replace("language C", "language Go")
        };
        let starts = "runtime.runqput (/go/src/runtime/proc.go:1) <- runtime.newproc (/go/src/runtime/proc.go:9) <- \
                      main.render (s.go:15) <- main.main (s.go:30)";
        let said = found(&go((starts, 1)));
        assert!(
            said.starts_with("parallel-overhead 5") && said.contains("@ main.render:15"),
            "{said}"
        );
        assert!(
            !found(&go((starts, 5))).contains("parallel-overhead"),
            "the other one works all the time"
        );
        let allocates = "runtime.mallocgc (/go/src/runtime/malloc.go:9) <- main.render (s.go:15) <- main.main (s.go:30)";
        assert!(!found(&go((allocates, 1))).contains("parallel-overhead"));
    }

    const SENDS: &str = "core::sync::atomic::AtomicUsize::compare_exchange (/rustc/1/library/core/src/sync/atomic.rs:9) in \
                         \"start_send<u64>\" (/rustc/1/library/std/src/sync/mpmc/array.rs:146) in send (/rustc/1/library/std/src/sync/mpsc.rs:674) \
                         <- pass (p.rs:15) <- main (p.rs:20)";

    #[test]
    fn a_number_per_message_is_found_and_work_on_each_message_is_refused() {
        let rust = |one, two| team(one, two).replace("language C", "language Rust");
        let said = found(&rust((1, WORKS, SENDS), (1, WORKS, SENDS)));
        assert!(said.starts_with("parallel-overhead 5") && said.contains("@ pass:15: "), "{said}");
        assert_eq!(
            rows(&rust((1, WORKS, SENDS), (1, WORKS, SENDS)), 1),
            "parallel-overhead 16000000\n"
        );
        let said = found(&rust((1, WORKS, SENDS), (5, WORKS, WORKS)));
        assert!(!said.contains("parallel-overhead"), "the other one works all the time: {said}");
        let sorts =
            SENDS.replace("start_send<u64>", "sort").replace("sync/mpmc/array.rs", "slice/mod.rs");
        let sorts = sorts.replace(
            "send (/rustc/1/library/std/src/sync/mpsc.rs:674)",
            "sort (/rustc/1/library/alloc/src/slice.rs:9)",
        );
        assert!(
            !found(&rust((1, WORKS, &sorts), (1, WORKS, &sorts))).contains("parallel-overhead")
        );
        // A thread that looks each 10 ms whether something has come.
        let receives = SENDS.replace(" in send (", " in recv_timeout (");
        let waits = |at: u64| {
            format!(
                "{at} off blocked futex 4096 137 0 : futex_do_wait from syscall @libc.so.6 <- {receives}
                 {} on woken-by interrupt : hrtimer_wakeup < asm_sysvec_apic_timer_interrupt
                 {} sample {receives}\n",
                at + 10_000_000,
                at + 10_050_000
            )
        };
        let ticks = format!(
            "image app path /bin/app language Rust\nsample-period 100000\ntask 1 app\n0 on\n0 exec /bin/app\n0 main\n\
             100 fork 2 thread\n{}203_100_000 exit\n203_100_000 off dead\ntask 2 app\n\
             200 off blocked futex 8192 137 0 : futex_do_wait\n202_000_000 on woken-by 1\n202_100_000 exit\n202_100_000 off dead",
            repeat(20, 1_000_000, 10_100_000, waits)
        );
        assert!(!found(&ticks).contains("parallel-overhead"), "{}", found(&ticks));
        let asks = SENDS.replace(" in send (", " in try_recv (");
        assert!(!found(&rust((1, WORKS, &asks), (1, WORKS, &asks))).contains("parallel-overhead"));
    }

    #[test]
    fn a_queue_for_single_numbers_is_found_with_its_lock_and_a_lock_alone_is_not() {
        let place = "push (q.cpp:20) <- main (q.cpp:41)";
        let [notifies, locks] = ["pthread_cond_signal", "pthread_mutex_lock"]
            .map(|function| format!("{function} @libc.so.6 <- {place}"));
        let queue = |(first, stack): (u64, &str)| {
            let text = team((1, WORKS, stack), (first, WORKS, stack))
                .replace("language C", "language C++");
            text.replacen(&format!("sample {stack}"), &format!("sample {notifies}"), 2).replace(
                "image libgomp.so.1",
                "image libc.so.6 path /lib/libc.so.6\nimage libgomp.so.1",
            )
        };
        let said = found(&queue((1, &locks)));
        assert!(said.starts_with("parallel-overhead 5") && said.contains("@ push:20: "), "{said}");
        assert!(
            !found(&queue((5, &locks))).contains("parallel-overhead"),
            "one works all the time"
        );
        let other = locks.replace("push", "count");
        assert!(
            !found(&queue((1, &other))).contains("parallel-overhead"),
            "a lock around something else"
        );
    }

    #[test]
    fn channels_are_found_while_others_hold_a_cpu_and_a_team_that_spins_is_not() {
        let taken = |stack: &str, language: &str| {
            let text = team((1, WORKS, stack), (1, WORKS, stack)).replace("language C", language);
            let other = "task 9 cc1\n0 cpu1 on\n20_900_000 off blocked\n";
            let second = text.find("task 2 app").unwrap();
            format!(
                "{}{other}task 2 app\n{}",
                &text[..second],
                "20_950_000 cpu1 on\n20_990_000 exit\n20_990_000 off dead"
            )
        };
        let said = found(&taken(SENDS, "language Rust"));
        assert!(said.starts_with("parallel-overhead"), "{said}");
        let said = found(&taken(SPINS, "language C"));
        assert!(!said.contains("parallel-overhead"), "{said}");
    }

    #[test]
    fn spinning_in_the_program_s_own_code_is_no_team() {
        let own = "spin (s.c:50) <- relax (s.c:7) <- main (s.c:20)";
        assert!(!found(&team((1, WORKS, own), (1, WORKS, own))).contains("parallel-overhead"));
    }
}
