//! A program that asks again and again whether its child has ended, without sleeping: it waits for that child.
//!
//! `waitpid` with WNOHANG in a loop, with or without a `select` that does not wait: the program is on a CPU all the
//! time, but it would be finished no earlier if it polled faster. So this time becomes a wait for the child. A loop that
//! sleeps between its questions is left alone: how long it sleeps is its own cost (`wait-sleep`).

use super::{Block, Call, Run, Span, Timeline, Within, WokenBy};
use crate::timeline::kernel_stacks::WaitsFor;
use deadweight_report::wording::{things, time};
use deadweight_trace::ids::{CallId, TaskId};
use deadweight_trace::symbols::Symbols;
use deadweight_trace::syscall::{self, Arch};
use deadweight_trace::units::Ns;
use std::collections::BTreeSet;

/// `WNOHANG`: return at once if no child has ended.
const NOHANG: u64 = 1;
/// Fewer questions are no loop.
const QUESTIONS: u64 = 20;
/// A shorter wait is left as it is.
const SHORTEST: Ns = Ns(1_000_000);
/// The program's own time between two calls of such a loop is no longer than this on average.
const LOOK: Ns = Ns(100_000);
/// The loop ends within this time after the child.
const GRACE: Ns = Ns(1_000_000);
/// A loop that spends more than this part of its time asleep is left alone.
const ASLEEP: f64 = 0.1;

/// Calls of such a loop, if they return nothing.
const POLLS: &[&str] = &[
    "wait4",
    "waitid",
    "select",
    "pselect6",
    "poll",
    "ppoll",
    "epoll_wait",
    "epoll_pwait",
    "nanosleep",
    "clock_nanosleep",
    "sched_yield",
    "kill",
    "getppid",
    "clock_gettime",
    "gettimeofday",
];

/// Turns loops that ask for a child's end into waits for that child; says so.
pub(super) fn into_waits(timeline: &mut Timeline, arch: Arch, symbols: &Symbols) {
    let numbers: BTreeSet<u16> =
        POLLS.iter().filter_map(|name| syscall::number(arch, name)).collect();
    let Some(wait4) = syscall::number(arch, "wait4") else { return };
    for task in askers(timeline, wait4) {
        let mut calls: Vec<CallId> = (0..timeline.calls.len())
            .map(CallId::at)
            .filter(|id| timeline.calls[id.index()].task == task)
            .collect();
        calls.sort_by_key(|id| timeline.calls[id.index()].start);
        let is_poll =
            |call: &Call| numbers.contains(&call.nr) && call.ret().is_some_and(|ret| ret <= 0);
        for child in children(timeline, task) {
            if let Some(wait) = of_child(timeline, &calls, (task, child), wait4, &is_poll) {
                let name =
                    timeline.task(task).names.last().map_or("", |(_, name)| symbols.name(*name));
                timeline.warnings.push(format!(
                    "{name} waited {} for a child and asked for its end {}, without sleeping: it used a CPU all that \
                     time. waitpid without WNOHANG waits without one",
                    time(wait.end - wait.start),
                    things(wait.questions, "time"),
                ));
                replace(timeline, &wait);
            }
        }
    }
}

/// A loop that waits for a child.
struct Wait {
    task: TaskId,
    child: TaskId,
    start: Ns,
    end: Ns,
    /// Its last question.
    call: CallId,
    questions: u64,
}

/// Whether a call asked for a child's end, and there was none.
fn asks(timeline: &Timeline, call: &Call, wait4: u16) -> bool {
    call.nr == wait4 && call.ret() == Some(0) && timeline.args(call)[1] & NOHANG != 0
}

/// The tasks that asked often.
fn askers(timeline: &Timeline, wait4: u16) -> Vec<TaskId> {
    let mut counts: Vec<u64> = vec![0; timeline.tasks.len()];
    for call in timeline.calls.iter().filter(|call| asks(timeline, call, wait4)) {
        counts[call.task.index()] += call.times();
    }
    let many = counts.iter().enumerate().filter(|(_, count)| **count >= QUESTIONS);
    many.map(|(index, _)| TaskId::at(index)).collect()
}

/// The children of a task's process that ended, in the order of their ends.
fn children(timeline: &Timeline, task: TaskId) -> Vec<TaskId> {
    let process = timeline.task(task).process;
    let born = |child: &&TaskId| {
        let child = timeline.task(**child);
        let parent = child.parent.map(|parent| timeline.task(parent).process);
        child.own
            && child.died
            && child.tid == child.process
            && parent == Some(process)
            && child.process != process
    };
    let all: Vec<TaskId> = (0..timeline.tasks.len()).map(TaskId::at).collect();
    let mut found: Vec<TaskId> = all.iter().filter(born).copied().collect();
    found.sort_by_key(|child| timeline.task(*child).end);
    found
}

/// The loop that waited for this child: its calls before the child's end, and no question after it.
fn of_child(
    timeline: &Timeline,
    calls: &[CallId],
    (task, child): (TaskId, TaskId),
    wait4: u16,
    is_poll: &dyn Fn(&Call) -> bool,
) -> Option<Wait> {
    let (tid, birth, end) = {
        let child = timeline.task(child);
        (u64::from(child.tid.0), child.birth, child.end)
    };
    let call = |id: &CallId| &timeline.calls[id.index()];
    let of_it = |id: &CallId| {
        asks(timeline, call(id), wait4)
            && [tid, u64::from(u32::MAX), u64::MAX].contains(&timeline.args(call(id))[0])
    };
    let before = calls.partition_point(|id| call(id).start < end);
    let last = calls[..before].iter().rposition(of_it)?;
    let reaped = calls[last..]
        .iter()
        .find(|id| call(id).nr == wait4 && call(id).ret().is_some_and(|ret| ret > 0));
    let of_another = reaped
        .is_some_and(|id| call(id).ret().and_then(|ret| u64::try_from(ret).ok()) != Some(tid));
    let goes_on = calls[last + 1..].iter().any(|id| of_it(id) && call(id).start > end + GRACE);
    if of_another || goes_on && reaped.is_none() {
        return None;
    }
    // Without the time in which others had its CPU.
    let own = |from: Ns, to: Ns| timeline.task(task).on_cpu_between(from, to);
    let mut first = last;
    while let Some(earlier) = first.checked_sub(1) {
        let (one, next) = (call(&calls[earlier]), call(&calls[first]));
        let most = LOOK.0.saturating_mul(one.times().max(next.times()));
        if !is_poll(one) || one.start < birth || own(one.end, next.start).0 > most {
            break;
        }
        first = earlier;
    }
    let asked = calls[first..=last].iter().filter(|id| of_it(id)).map(|id| call(id).times()).sum();
    let end = reaped.map_or(end, |id| end.min(call(id).end)).min(timeline.task(task).end);
    let wait = Wait {
        task,
        child,
        start: call(&calls[first]).start.max(birth),
        end,
        call: calls[last],
        questions: asked,
    };
    let asleep = asleep(timeline, &wait);
    (asked >= QUESTIONS && wait.end - wait.start >= SHORTEST && asleep <= ASLEEP).then_some(wait)
}

/// Which part of the loop its task was asleep.
fn asleep(timeline: &Timeline, wait: &Wait) -> f64 {
    let task = timeline.task(wait.task);
    let blocked =
        task.spans.iter().enumerate().filter(|(_, span)| matches!(span.run, Run::Blocked(_)));
    let inside =
        blocked.map(|(i, span)| task.span_end(i).min(wait.end) - span.start.max(wait.start));
    inside.sum::<Ns>().share_of(wait.end - wait.start)
}

/// Puts one wait in the place of the task's spans.
fn replace(timeline: &mut Timeline, wait: &Wait) {
    let index = u32::try_from(timeline.blocks.len()).unwrap_or(u32::MAX);
    timeline.blocks.push(Block {
        task: wait.task,
        start: wait.start,
        end: wait.end,
        waits_for: WaitsFor::Child,
        woken_by: WokenBy::Task(wait.child),
        waker_call: None,
        call: Some(wait.call),
        site: timeline.calls[wait.call.index()].site,
        inferred: true,
        by_signal: false,
        tick: false,
    });
    let task = &mut timeline.tasks[wait.task.index()];
    let from = task.spans.partition_point(|span| span.start < wait.start);
    let to = task.spans.partition_point(|span| span.start <= wait.end);
    let after = to.checked_sub(1).map(|last| Span { start: wait.end, ..task.spans[last] });
    let polled: Ns = task.on_cpu_between(wait.start, wait.end);
    let waits =
        Span { start: wait.start, run: Run::Blocked(index), within: Within::Syscall(wait.call) };
    let rest = after.filter(|_| wait.end < task.end);
    task.spans.splice(from..to, std::iter::once(waits).chain(rest));
    task.polled += polled;
}

#[cfg(test)]
mod tests {
    use crate::path::{Path, Subject};
    use crate::timeline::Timeline;
    use deadweight_trace::Trace;
    use std::fmt::Write;

    /// Task 1 asks `count` times, once in `every` ns, with `between` each time; its child ends at 5 ms.
    fn path(every: u64, between: &str, reaped: u32) -> (Vec<String>, Vec<String>) {
        let mut text = String::from("cpus 2\ntask 1 drive\n0 cpu0 on\n10 fork 2\n");
        let mut at = 1000;
        while at < 5_000_000 {
            let sleep = between
                .replace("AT", &(at + 300).to_string())
                .replace("END", &(at + every - 100).to_string());
            writeln!(text, "{at} syscall wait4 2 1\n{} back 0\n{sleep}", at + 200).unwrap();
            at += every;
        }
        let after = at.max(5_000_300);
        writeln!(
            text,
            "{after} syscall wait4 2 1\n{} back {reaped}\n5900000 exit\n5900010 off dead\n\
             task 2 cc\n20 cpu1 on\n4999000 exit\n5000000 off dead",
            after + 200
        )
        .unwrap();
        let trace = Trace::from_text(&text).unwrap();
        let timeline = Timeline::build(&trace);
        let subject = Subject::choose(&trace, &timeline, None).unwrap();
        let pieces = Path::walk(&timeline, &subject).pieces;
        let said = pieces
            .iter()
            .map(|p| format!("{} {}", timeline.task(p.task).tid.0, (p.end - p.start).0));
        (said.collect(), timeline.warnings)
    }

    #[test]
    fn the_child_fills_the_time_of_a_loop_that_asks_for_its_end() {
        let (pieces, warnings) = path(10_000, "", 2);
        assert_eq!(pieces, ["1 1000", "2 4999000", "1 900010"]);
        assert!(
            warnings[0]
                .starts_with("drive waited 5.00 ms for a child and asked for its end 500 times"),
            "{warnings:?}"
        );
    }

    #[test]
    fn a_loop_that_sleeps_between_or_works_is_its_own() {
        let sleep = "AT off blocked clock_nanosleep 1 : hrtimer_nanosleep\nEND cpu0 on woken-by interrupt : hrtimer_wakeup";
        assert_eq!(path(10_000, sleep, 2).0, ["1 5900010"]);
        assert_eq!(path(200_000, "", 2).0, ["1 5900010"]);
    }
}
