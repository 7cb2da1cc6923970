//! Sleeps that go on after the child that they are for has ended: a loop that asks for a child's end (`waitpid` with
//! WNOHANG) between sleeps. Both ends of what is lost are in the recording. Not for children that nobody asks for.

use super::CLASS;
use crate::facts::Facts;
use crate::facts::call_site::{CallSite, Weights, sites};
use crate::facts::processes::ProcessId;
use crate::inspect::{Draft, Inspection, Sum};
use crate::timeline::{Run, Task};
use deadweight_report::report::How;
use deadweight_report::wording::{count, time};
use deadweight_trace::ids::StackId;
use deadweight_trace::syscall;
use deadweight_trace::units::Ns;
use std::collections::BTreeSet;

/// `WNOHANG` among the options of `wait4`, which are its second kept argument.
const NO_HANG: u64 = 1;
/// Fewer are chance.
const MANY: u64 = 5;
/// Less of the wall time does not matter.
const LARGE: f64 = 0.04;

/// The sleeps that went on.
struct Late {
    /// How many.
    count: u64,
    /// How long, from the child's end.
    ns: Ns,
    /// How long these children were ready to run without a CPU before: on a quiet machine they end earlier.
    kept: Ns,
    /// How long all sleeps are.
    all: Ns,
    places: Weights,
}

/// The finding about a process that sleeps on after its children have ended; `sleeps`: all of its sleeps on the path, whose time is
/// `sum`.
pub(super) fn draft(
    found: &Inspection<'_, '_>,
    process: ProcessId,
    sleeps: &BTreeSet<(Ns, Ns, StackId)>,
    sum: &Sum,
) -> Option<Draft> {
    let facts = found.facts;
    let late = late(facts, process, sleeps)?;
    let on_path = |ns: Ns| sum.ns.part(ns.share_of(late.all));
    let saving = on_path(late.ns + late.kept.part(0.5));
    if late.count < MANY || saving.share_of(found.wall.net()) < LARGE {
        return None;
    }
    let name = facts.name(process);
    Some(Draft {
        class: CLASS.id,
        moves: true,
        process,
        title: "sleeps on after a child has ended".into(),
        text: format!(
            "{name} asks for the end of its children between sleeps: {} had ended while it slept, and it slept on for {}, \
             {} each on average.",
            count(late.count),
            time(late.ns),
            time(Ns(late.ns.0 / late.count)),
        ),
        amount: on_path(late.ns),
        saving,
        // Other children may run on.
        range: (on_path(late.ns).min(sum.alone), on_path(late.ns + late.kept)),
        how: if late.kept > Ns::ZERO { How::Estimate } else { How::Exact },
        sites: sites(facts.symbols(), &late.places, late.count),
        evidence: vec![
            "each from the child's end to the end of the sleep, which wait4 with WNOHANG followed"
                .into(),
        ],
        remedy: remedy(&facts.processes.get(process).language),
    })
}

/// The sleeps of a process that a child ended in, and that `wait4` with WNOHANG followed which found it.
fn late(
    facts: &Facts<'_>,
    process: ProcessId,
    sleeps: &BTreeSet<(Ns, Ns, StackId)>,
) -> Option<Late> {
    let children = facts.processes.get(process).children.iter();
    let mut ends: Vec<(Ns, ProcessId)> =
        children.map(|child| (facts.processes.get(*child).end, *child)).collect();
    ends.sort_unstable();
    let wait4 = syscall::number(facts.trace.meta.arch, "wait4").filter(|_| !ends.is_empty())?;
    let calls = facts.timeline.calls.iter().filter(|call| call.nr == wait4);
    let own = calls.filter(|call| facts.processes.of(call.task) == process);
    let takes = own.filter(|call| {
        facts.timeline.args(call)[1] & NO_HANG != 0 && call.ret().is_some_and(|child| child > 0)
    });
    let mut takes: Vec<Ns> = takes.map(|call| call.start).collect();
    takes.sort_unstable();
    let all: Ns = sleeps.iter().map(|(start, end, _)| *end - *start).sum();
    let mut found = Late { count: 0, ns: Ns::ZERO, kept: Ns::ZERO, all, places: Weights::new() };
    let next = sleeps.iter().skip(1).map(|(start, ..)| Some(*start)).chain([None]);
    for ((start, end, site), next) in sleeps.iter().zip(next) {
        let ended = ends.get(ends.partition_point(|(at, _)| at < start));
        let ended = ended.filter(|(at, _)| at < end);
        let taken = takes.get(takes.partition_point(|at| at < end));
        let at_once = taken.is_some_and(|at| next.is_none_or(|next| *at < next));
        if let (Some((ended, child)), true) = (ended, at_once) {
            found.count += 1;
            found.kept += ready(facts, *child);
            found.ns += *end - *ended;
            let place = found.places.entry(CallSite::Stack(*site)).or_default();
            (place.count, place.amount) = (place.count + 1, place.amount + (*end - *ended).0);
        }
    }
    Some(found)
}

/// How long the tasks of a process were ready to run without a CPU.
fn ready(facts: &Facts<'_>, process: ProcessId) -> Ns {
    let tasks = facts.processes.get(process).tasks.iter().map(|task| facts.timeline.task(*task));
    let of_task = |task: &Task| -> Ns {
        let spans = task.spans.iter().enumerate().filter(|(_, s)| s.run() == Run::Runnable);
        spans.map(|(at, span)| task.span_end(at) - span.start).sum()
    };
    tasks.map(of_task).sum()
}

fn remedy(language: &str) -> String {
    let other = match language {
        "Python" => {
            "Popen.wait() without a time-out (with one, Python looks each 50 ms or less); a threading.Timer that kills the \
             child keeps the limit"
        }
        _ => {
            "waitpid without WNOHANG, in a thread of its own if need be; or poll on a pidfd (pidfd_open), or \
             sigtimedwait for SIGCHLD, which have time-outs"
        }
    };
    format!("Wait for the end itself: {other}.")
}

#[cfg(test)]
mod tests {
    use crate::cost::tests::{found, repeat};

    const MS: u64 = 1_000_000;

    /// A program that starts ten children and looks for the end of each after a sleep of 40 ms; `ends`: when the child
    /// ends, in ms after the sleep's begin; `options` of the wait4 behind it.
    fn runner(ends: u64, options: u64) -> String {
        let each = |at: u64| {
            let child = 100 + at / (50 * MS);
            format!(
                "{at} fork {child}\n{} off blocked clock_nanosleep 1 from run (r.c:7) <- main (r.c:12)\n\
                 {} on woken-by interrupt : hrtimer_wakeup < asm_sysvec_apic_timer_interrupt\n{} back 0\n\
                 {} syscall wait4 {child} {options}\n{} back {child}\n",
                at + MS,
                at + 41 * MS,
                at + 41 * MS + 10,
                at + 42 * MS,
                at + 42 * MS + 10
            )
        };
        let child = |at: u64| {
            let from = at + 10_000;
            let end = at + MS + ends * MS;
            format!(
                "task {} work\n{from} on\n{} exec /bin/work\n{} main\n{} off blocked clock_nanosleep 1\n\
                 {} on woken-by interrupt : hrtimer_wakeup < asm_sysvec_apic_timer_interrupt\n{end} exit\n{end} off dead\n",
                100 + at / (50 * MS),
                from + 10_000,
                from + 20_000,
                from + 30_000,
                end - 10_000
            )
        };
        let end = 510 * MS;
        format!(
            "cpus 4\ntask 1 runner\n0 on\n0 main\n{}{end} exit\n{end} off dead\n{}",
            repeat(10, 0, 50 * MS, each),
            repeat(10, 0, 50 * MS, child)
        )
    }

    /// The children do little but sleep: the parent that sleeps, too, does nothing for them meanwhile.
    #[test]
    fn sleeps_after_the_end_of_children_are_found() {
        let said = found(&runner(10, 1));
        let [first] = said.lines().collect::<Vec<_>>()[..] else { panic!("{said}") };
        assert!(
            first.starts_with("wait-sleep 59 % (59..59) @ run:7: runner asks for the end"),
            "{said}"
        );
        assert!(
            first.contains("10 had ended while it slept, and it slept on for 300 ms, 30.0 ms each"),
            "{said}"
        );
    }

    #[test]
    fn children_that_end_later_and_are_waited_for_are_refused() {
        for (ends, options) in [(45, 1), (10, 0)] {
            let said = found(&runner(ends, options));
            assert!(!said.contains("asks for the end"), "{said}");
        }
    }
}
