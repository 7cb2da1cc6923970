//! Imbalance.
//!
//! # What it is
//! Several threads divide one piece of work, and the division is uneven: the last one still works
//! while the others have ended and their CPUs idle. The whole takes as long as the slowest.
//!
//! # How deadweight knows
//! Threads with the same start function and parent, born together, that work nearly all of their
//! lives, while the parent waits. Their times on a CPU differ. The saving is what an even division of
//! the same work would take less: at most this, because some pieces cannot be divided. Of a team that
//! lives on (a barrier in each step, OpenMP with the main thread, goroutines) the same is seen by its
//! phases: after several threads worked in one function at once, one still does, on the critical path,
//! and the others wait for it in that function or for all to end.
//!
//! # What it is mistaken for
//! Threads with different work: other start functions, or pauses. Workers of a pool that wait for
//! tasks: a consumer that waits for its producer, both of which use one function. A wait for a lock. A
//! wait for a CPU that another program has: of the slowest, or of another, whose pieces it then took.
//!
//! # What to do
//! Deal small pieces from a shared queue (dynamic scheduling), largest first; or divide by the work
//! of the pieces, not by their number. One long piece: divide that.
//!
//! # Seen in
//! Reads sorted by length, halved by number: the long ones took seven times as long.
//! In `tests/programs`: `uneven_halves.c`, `uneven_phases.c`.

mod free_cpu;
mod inside;
mod phases;
#[cfg(test)]
mod taken_cpus;

use super::{Claim, Class, Inspection};
use crate::account::Attribution;
use crate::facts::Facts;
use crate::facts::call_site::frames::{Frame, own_frames, site_at};
use crate::facts::call_site::{is_interpreted, sites};
use crate::facts::processes::ProcessId;
use crate::inspect::{Draft, births, processes_in};
use crate::path::teams::{Start, starts};
use crate::timeline::{Run, Task};
use deadweight_report::report::{How, Site};
use deadweight_report::wording::{percent, things, time};
use deadweight_trace::ids::TaskId;
use deadweight_trace::units::Ns;
use phases::Phases;
use std::cmp::Reverse;
use std::collections::BTreeMap;

pub(super) const CLASS: Class = Class {
    id: "imbalance",
    source: include_str!("imbalance.rs"),
    // While the slowest works, its work is on the path, with rows of its own.
    claim: Claim::Slices(|_, _| false),
    inspect,
};

/// Below this share of the wall time an even division saves little.
const LARGE: f64 = 0.08;
/// Threads are born together within this part of the longest life ...
const TOGETHER: f64 = 0.1;
/// ... and wait for something else than a CPU for this part of their own lives, at most.
const PAUSES: f64 = 0.3;
/// A parent with more of that time on a CPU is a member itself.
const WAITS: f64 = 0.2;
/// The longest works so many times as long as the mean, at least.
const UNEVEN: f64 = 1.2;
/// A thread's function may pass its work on to another one, as closures do.
const PASSED_ON: usize = 2;
/// Work of pieces has this part of its samples in functions below.
const PIECES: f64 = 0.2;
/// So many lines that threads began with are shown.
const STARTS: usize = 2;
/// If other programs held the CPUs for a larger part of the wall time, it may be chance which member was slow: one that
/// runs alone meanwhile does not share cache lines and locks. Only what is larger than that part is a finding then ...
const DISTURBED: f64 = 0.1;
/// ... and from here on nothing is.
const HIDDEN: f64 = 0.2;
/// Larger teams are divided by the kernel's scheduler too.
const MEMBERS: std::ops::RangeInclusive<usize> = 2..=256;

/// Threads that divide a piece of work.
struct Divided {
    members: Vec<TaskId>,
    /// The longest time on a CPU, and the mean of all.
    longest: Ns,
    mean: Ns,
    /// What an even division saves.
    saved: Ns,
}

/// The part of the wall time for which other programs held the CPUs.
fn disturbed(wall: &Attribution) -> f64 {
    wall.disturbed().share_of(wall.net() + wall.disturbed())
}

/// Whether an even division saves enough to be seen in spite of what other programs took.
fn is_seen(found: &Inspection<'_, '_>, saved: Ns, least: f64) -> bool {
    let disturbed = Some(disturbed(found.wall)).filter(|share| *share > DISTURBED);
    saved.share_of(found.wall.net()) >= least.max(disturbed.unwrap_or(0.0))
}

/// Why this run does not show which thread has more to do, if it does not.
pub(crate) fn chance(wall: &Attribution) -> Option<String> {
    // The hazard has the number, of the wall time.
    (disturbed(wall) > DISTURBED).then(|| "other programs held the CPUs too often".into())
}

fn inspect(found: &Inspection<'_, '_>) -> Vec<Draft> {
    let facts = found.facts;
    if facts.path.subject.service.is_some() || disturbed(found.wall) > HIDDEN {
        return Vec::new();
    }
    let several = |process: &ProcessId| {
        let process = facts.processes.get(*process);
        process.tasks.len() > 1 && !is_interpreted(&process.language)
    };
    let processes: Vec<_> =
        processes_in(found.wall.entries.iter()).into_iter().filter(several).collect();
    if processes.is_empty() {
        return Vec::new();
    }
    let starts = starts(facts.timeline, facts.symbols());
    processes.into_iter().filter_map(|process| draft(found, process, &starts)).collect()
}

/// The teams of a process, each with its parent.
fn teams(
    found: &Inspection<'_, '_>,
    process: ProcessId,
    starts: &[Start],
) -> Vec<(TaskId, Vec<TaskId>)> {
    let mut like: BTreeMap<(TaskId, Start), Vec<TaskId>> = BTreeMap::new();
    for (id, thread) in births::threads(found.facts, process) {
        if let (Some(parent), Start::Function(_)) = (thread.parent, starts[id.index()]) {
            like.entry((parent, starts[id.index()])).or_default().push(id);
        }
    }
    let task = |id: &TaskId| found.facts.timeline.task(*id);
    let mut teams = Vec::new();
    for ((parent, _), mut members) in like {
        members.sort_by_key(|id| task(id).birth);
        while let Some(first) = members.first().map(|id| task(id).birth) {
            let longest = members.iter().map(|id| task(id).end - task(id).birth).max();
            let until = first + longest.unwrap_or_default().part(TOGETHER);
            let rest = members.split_off(members.partition_point(|id| task(id).birth <= until));
            teams.push((parent, std::mem::replace(&mut members, rest)));
        }
    }
    teams
}

/// How long a thread was in such a state.
fn time_in(task: &Task, state: impl Fn(Run) -> bool) -> Ns {
    let spans = task.spans.iter().enumerate();
    let those = spans.filter(|(_, span)| state(span.run()));
    those.map(|(index, span)| task.span_end(index) - span.start).sum()
}

/// How long a thread waited for something else than a CPU.
fn pauses(task: &Task) -> Ns {
    time_in(task, |run| matches!(run, Run::Blocked(_)))
}

/// How long a thread worked, or would have with a CPU of its own.
fn busy(task: &Task) -> Ns {
    task.on_cpu() + time_in(task, |run| matches!(run, Run::Runnable))
}

/// The longest of these times, and their mean.
fn longest_and_mean(times: impl Iterator<Item = Ns> + Clone) -> Option<(Ns, Ns)> {
    let (count, sum) = (times.clone().count() as u64, times.clone().sum::<Ns>());
    Some((times.max()?, Ns(sum.0 / count.max(1))))
}

/// What an even division of the work of these threads saves; none if they are no such team.
fn divided(found: &Inspection<'_, '_>, parent: TaskId, members: Vec<TaskId>) -> Option<Divided> {
    let timeline = found.facts.timeline;
    let tasks: Vec<&Task> = members.iter().map(|id| timeline.task(*id)).collect();
    let from = tasks.iter().map(|task| task.birth).min()?;
    let to = tasks.iter().map(|task| task.end).max()?;
    let works = |task: &&Task| pauses(task).share_of(task.end - task.birth) <= PAUSES;
    let parent = timeline.task(parent);
    let waits = parent.on_cpu_between(from, to).share_of(to - from) <= WAITS;
    if !MEMBERS.contains(&tasks.len()) || !waits || !tasks.iter().all(works) {
        return None;
    }
    let (longest, mean) = longest_and_mean(tasks.iter().map(|task| task.on_cpu()))?;
    let cpus = usize::from(found.facts.trace.meta.cpus).clamp(1, tasks.len());
    let even = Ns(mean.0 * tasks.len() as u64 / cpus as u64);
    let mut saved = longest - even;
    if cpus == tasks.len() {
        // Where one had no CPU, another may have done its part.
        let (longest, mean) = longest_and_mean(tasks.iter().map(|task| busy(task)))?;
        saved = saved.min(longest - mean);
    }
    let uneven = saved > Ns::ZERO && longest.0 as f64 >= mean.0 as f64 * UNEVEN;
    uneven.then_some(Divided { members, longest, mean, saved })
}

fn draft(found: &Inspection<'_, '_>, process: ProcessId, starts: &[Start]) -> Option<Draft> {
    let facts = found.facts;
    let net = found.wall.net();
    let teams = teams(found, process, starts).into_iter();
    let teams: Vec<Divided> =
        teams.filter_map(|(parent, all)| divided(found, parent, all)).collect();
    let saved: Ns = teams.iter().map(|team| team.saved).sum();
    if !is_seen(found, saved, LARGE) {
        return in_phases(found, process);
    }
    let worst = teams.iter().max_by_key(|team| team.saved)?;
    let members: Vec<TaskId> = teams.iter().flat_map(|team| team.members.clone()).collect();
    let evidence = vec![match teams.len() {
        1 => "they have the same start function, began together and worked all the time".into(),
        many => format!("{many} such teams, one after the other"),
    }];
    let pieces = is_of_pieces(facts, &members);
    let text = format!(
        "{} of {} divide one piece of work: the slowest worked for {}, the mean is {}. With \
         even parts the run would take {} less than its {}.",
        things(worst.members.len() as u64, "thread"),
        facts.name(process),
        time(worst.longest),
        time(worst.mean),
        percent(saved, net),
        time(net),
    );
    Some(uneven(facts, process, text, (saved, pieces), places(found, &members), evidence))
}

/// The finding. Whether the work is of pieces is known only in part: else nothing may be saved.
fn uneven(
    facts: &Facts<'_>,
    process: ProcessId,
    text: String,
    (saved, pieces): (Ns, bool),
    sites: Vec<Site>,
    mut evidence: Vec<String>,
) -> Draft {
    if !pieces {
        evidence.push(
            "if each part is one chain of steps, it cannot be divided: that saves nothing".into(),
        );
    }
    Draft {
        class: CLASS.id,
        moves: false,
        process,
        title: "threads divide their work unevenly".into(),
        text,
        amount: saved,
        saving: saved,
        range: (if pieces { saved.part(0.5) } else { Ns::ZERO }, saved + saved.part(0.1)),
        how: How::Estimate,
        sites,
        evidence,
        remedy: remedy(&facts.processes.get(process).language).into(),
    }
}

/// A team that lives on, and waits for its slowest member in each phase.
fn in_phases(found: &Inspection<'_, '_>, process: ProcessId) -> Option<Draft> {
    let facts = found.facts;
    let net = found.wall.net();
    let Phases { divided, function, times } = phases::worst(found, process)?;
    let text = format!(
        "{} of {} work in {}. {}, one of them worked on alone, while the others waited for it and a CPU was free. \
         With even parts the run would take {} less than its {}.",
        things(divided.members.len() as u64, "thread"),
        facts.name(process),
        facts.symbols().name(function),
        if times == 1 { "Once".into() } else { format!("{times} times") },
        percent(divided.saved, net),
        time(net),
    );
    let evidence = vec![format!(
        "the slowest worked for {} in it, the mean is {}",
        time(divided.longest),
        time(divided.mean)
    )];
    // Parts that are divided again and again can be divided otherwise.
    let pieces = times > 1 || is_of_pieces(facts, &divided.members);
    let sites = phases::places(facts, &divided.members, function);
    Some(uneven(facts, process, text, (divided.saved, pieces), sites, evidence))
}

/// Whether the samples of these threads show that their work has pieces: calls below the function that each began with
/// and the one which that passes it to.
fn is_of_pieces(facts: &Facts<'_>, members: &[TaskId]) -> bool {
    let samples = members.iter().flat_map(|id| &facts.timeline.task(*id).samples);
    let depths: Vec<usize> =
        samples.map(|sample| own_frames(facts.symbols(), sample.stack).len()).collect();
    let deep = depths.iter().filter(|depth| **depth > PASSED_ON).count();
    deep as f64 >= depths.len() as f64 * PIECES
}

/// Where these threads were started; if those stacks were not taken, the lines of the program's function that each
/// began with, by their samples.
fn places(found: &Inspection<'_, '_>, members: &[TaskId]) -> Vec<Site> {
    let (facts, symbols) = (found.facts, found.facts.symbols());
    let started = sites(symbols, &births::sites_of(facts, members), 0);
    if !started.is_empty() {
        return started;
    }
    by_samples(facts, members, |frames| frames.len().checked_sub(1))
}

/// The lines of the program's own frame that `which` chooses in the stack of each sample.
fn by_samples(
    facts: &Facts<'_>,
    members: &[TaskId],
    which: impl Fn(&[Frame<'_>]) -> Option<usize>,
) -> Vec<Site> {
    let symbols = facts.symbols();
    let mut at: BTreeMap<(String, u32), (u64, Site)> = BTreeMap::new();
    for sample in members.iter().flat_map(|id| &facts.timeline.task(*id).samples) {
        let frames = own_frames(symbols, sample.stack);
        let site = which(&frames).and_then(|depth| site_at(symbols, &frames, depth));
        if let Some(site) = site {
            at.entry((site.file.clone(), site.line)).or_insert((0, site)).0 += 1;
        }
    }
    let all: u64 = at.values().map(|(samples, _)| samples).sum();
    let mut begun: Vec<_> = at.into_values().collect();
    begun.sort_by_key(|(samples, _)| Reverse(*samples));
    let share = |(samples, site)| Site { share: samples as f64 / all.max(1) as f64, ..site };
    begun.into_iter().take(STARTS).map(share).collect()
}

fn remedy(language: &str) -> &'static str {
    match language {
        "Rust" => {
            "Deal small pieces: rayon's par_iter, or an AtomicUsize as the index of the next piece. Start \
             with the largest pieces."
        }
        "C" | "C++" => {
            "Deal small pieces: an atomic index of the next piece, OpenMP's schedule(dynamic). Start with \
             the largest pieces."
        }
        _ => {
            "Deal small pieces from a shared queue, the largest first, instead of one part per thread."
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{found, weighed};
    use deadweight_report::report::CheckOutcome;

    /// Two threads that work for so long, each with this function and so much rest before its end.
    fn halves(one: u64, two: u64, functions: [&str; 2], rest: u64) -> String {
        let end = one.max(two) + 500_000;
        let thread = |tid: u64, cpu: u64, worked: u64, function: &str| {
            let pause = match rest {
                0 => String::new(),
                rest => format!(
                    "{} off blocked futex 1 0 9 0 : futex_wait_queue\n{} on woken-by 1\n",
                    100_000,
                    100_000 + rest
                ),
            };
            format!(
                "task {tid} app\n40000 cpu{cpu} on\n\
                 {} sample near (r.c:60) <- {function} (r.c:80) <- start_thread @libc.so.6 <- clone3 @libc.so.6\n\
                 {pause}{} exit\n{} off dead\n",
                90_000,
                40_000 + rest + worked,
                45_000 + rest + worked
            )
        };
        format!(
            "cpus 2\nimage app path /bin/app language C\nimage libc.so.6 path /lib/libc.so.6\n\
             task 1 app\n0 cpu0 on\n0 exec /bin/app\n0 main\n\
             10000 syscall clone3 from all (r.c:90) <- main (r.c:99)\n11000 fork 2 thread\n12000 back 2\n\
             13000 syscall clone3 from all (r.c:90) <- main (r.c:99)\n14000 fork 3 thread\n15000 back 3\n\
             20000 off blocked futex 1 0 9 0 : futex_wait_queue\n{end} on woken-by {}\n{} exit\n{} off dead\n{}{}",
            if one > two { 2 } else { 3 },
            end + 10_000,
            end + 20_000,
            thread(2, 0, one, functions[0]),
            thread(3, 1, two, functions[1]),
        )
    }

    #[test]
    fn the_slower_half_is_found_where_it_is_started() {
        let said = found(&halves(1_000_000, 9_000_000, ["half", "half"], 0));
        assert!(
            said.starts_with("imbalance 42 %") && said.contains("@ all:90: 2 threads"),
            "{said}"
        );
    }

    #[test]
    fn on_a_disturbed_machine_it_is_refused_and_not_ruled_out() {
        let disturbed = |one: u64, ns: u64| {
            let back = 9_510_000 + ns;
            halves(one, 9_000_000, ["half", "half"], 0).replace(
                "9510000 exit\n9520000 off dead",
                &format!(
                    "9510000 off preempted\n{back} cpu0 on\n{} exit\n{} off dead",
                    back + 10_000,
                    back + 20_000
                ),
            ) + &format!("task 9 sha256sum outside\n9510000 cpu0 on\n{back} off preempted")
        };
        for (one, ns, seen) in [
            (1_000_000, 1_000_000, true),
            (1_000_000, 2_300_000, true),
            (5_500_000, 2_300_000, false),
        ] {
            let said = found(&disturbed(one, ns));
            assert_eq!(said.contains("imbalance"), seen, "{one} {ns}: {said}");
        }
        assert!(found(&disturbed(5_500_000, 100_000)).contains("imbalance"), "a near miss");
        let report = weighed(&disturbed(1_000_000, 6_000_000));
        assert!(report.findings.iter().all(|finding| finding.class != "imbalance"));
        let check = report.checks.iter().find(|check| check.class == "imbalance").unwrap();
        assert_eq!(check.outcome, CheckOutcome::NotCheckable);
        assert_eq!(check.why, "other programs held the CPUs too often");
    }

    #[test]
    fn one_that_had_no_cpu_while_the_other_took_its_pieces_is_refused() {
        // Of its 9 ms, the second thread had a CPU for 4 and waited for one for so long, or ended before.
        let waited = |ns: u64| {
            let text = halves(9_000_000, 4_000_000 + ns, ["half", "half"], 0);
            let from = "task 3 app\n40000 cpu1 on\n90000 sample";
            assert!(text.contains(from), "{text}");
            let pause = format!("100000 off preempted\n{} cpu1 on\n", 100_000 + ns);
            let (before, after) = text.split_once(from).unwrap();
            let (sample, rest) = after.split_once('\n').unwrap();
            format!(
                "{before}{from}{sample}\n{pause}{rest}task 9 make outside\n100000 cpu1 on\n{} off preempted",
                100_000 + ns
            )
        };
        assert!(!found(&waited(5_000_000)).contains("imbalance"), "{}", found(&waited(5_000_000)));
        assert!(
            found(&waited(1_000_000)).starts_with("imbalance"),
            "{}",
            found(&waited(1_000_000))
        );
    }

    #[test]
    fn even_halves_other_work_and_pauses_are_refused() {
        for (text, why) in [
            (halves(8_500_000, 9_000_000, ["half", "half"], 0), "even"),
            (halves(1_000_000, 9_000_000, ["read", "work"], 0), "other work"),
            (halves(1_000_000, 9_000_000, ["half", "half"], 9_000_000), "a pause"),
        ] {
            assert!(!found(&text).contains("imbalance"), "{why}: {}", found(&text));
        }
    }
}
