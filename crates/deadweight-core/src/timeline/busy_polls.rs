//! A program that asks again and again whether its child has ended, without sleeping: it waits for that child.
//!
//! `waitpid` with WNOHANG in a loop, with or without a `select` that does not wait: the program is on a CPU all the
//! time, but it would be finished no earlier if it polled faster. So this time becomes a wait for the child. A loop that
//! sleeps between its questions is left alone: how long it sleeps is its own cost (`wait-sleep`).

use super::{Block, Call, Run, Span, Timeline, Within, WokenBy};
use crate::timeline::kernel_stacks::WaitsFor;
use deadweight_report::wording::{things, time};
use deadweight_trace::ids::{CallId, TaskId, Tid};
use deadweight_trace::symbols::Symbols;
use deadweight_trace::syscall::{self, Arch};
use deadweight_trace::units::Ns;
use std::collections::{BTreeMap, BTreeSet};

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
/// So many calls before and after a child's end are looked at: its loop asks in each round.
const NEAR: usize = 64;
/// A loop may read what its child wrote: so many other calls, and one in so many.
const OTHERS: u64 = 8;
const OTHERS_IN: u64 = 20;
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
    let numbers = ["wait4", "read"].map(|name| syscall::number(arch, name));
    let [Some(wait4), Some(read)] = numbers else { return };
    let askers = askers(timeline, wait4);
    if askers.is_empty() {
        return;
    }
    let numbers: BTreeSet<u16> =
        POLLS.iter().filter_map(|name| syscall::number(arch, name)).collect();
    let mut children = children(timeline);
    for (task, mut calls) in askers {
        calls.sort_by_key(|id| timeline.calls[id.index()].start);
        let children = children.remove(&timeline.task(task).process).unwrap_or_default();
        let loops = Loops { timeline, task, calls: &calls, wait4, read, polls: &numbers };
        let waits: Vec<Wait> =
            children.iter().filter_map(|child| loops.waiting_for(*child)).collect();
        if waits.is_empty() {
            continue;
        }
        let name = timeline.task(task).names.last().map_or("", |(_, name)| symbols.name(*name));
        let (children, ends) = match waits.len() {
            1 => ("a child".to_owned(), "its end"),
            n => (format!("{n} children"), "their ends"),
        };
        timeline.warnings.push(format!(
            "{name} waited {} for {children} and asked for {ends} {}, without sleeping: it used a CPU all that time. \
             waitpid without WNOHANG waits without one",
            time(together(waits.iter().map(|wait| (wait.start, wait.end)).collect())),
            things(waits.iter().map(|wait| wait.questions).sum(), "time"),
        ));
        waits.iter().for_each(|wait| replace(timeline, wait));
    }
}

/// How long these intervals are together: a loop may wait for several children at once.
fn together(mut intervals: Vec<(Ns, Ns)>) -> Ns {
    intervals.sort_unstable();
    let (mut all, mut reached) = (Ns::ZERO, Ns::ZERO);
    for (start, end) in intervals {
        all += end - start.max(reached).min(end);
        reached = reached.max(end);
    }
    all
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

/// The tasks that asked often, with their calls.
fn askers(timeline: &Timeline, wait4: u16) -> BTreeMap<TaskId, Vec<CallId>> {
    let mut counts: BTreeMap<TaskId, u64> = BTreeMap::new();
    for call in timeline.calls.iter().filter(|call| asks(timeline, call, wait4)) {
        *counts.entry(call.task).or_default() += call.times();
    }
    counts.retain(|_, count| *count >= QUESTIONS);
    let mut askers: BTreeMap<TaskId, Vec<CallId>> =
        counts.into_keys().map(|task| (task, Vec::new())).collect();
    if !askers.is_empty() {
        for (id, call) in (0..).map(CallId::at).zip(&timeline.calls) {
            askers.entry(call.task).and_modify(|calls| calls.push(id));
        }
    }
    askers
}

/// By process: its children that ended, in the order of their ends.
fn children(timeline: &Timeline) -> BTreeMap<Tid, Vec<TaskId>> {
    let mut found: BTreeMap<Tid, Vec<TaskId>> = BTreeMap::new();
    for (id, child) in (0..).map(TaskId::at).zip(&timeline.tasks) {
        let parent = child.parent.map(|parent| timeline.task(parent).process);
        let ended = child.own && child.died && child.tid == child.process;
        if let Some(parent) = parent.filter(|parent| ended && *parent != child.process) {
            found.entry(parent).or_default().push(id);
        }
    }
    found.values_mut().for_each(|of| of.sort_by_key(|child| timeline.task(*child).end));
    found
}

/// The calls of a task that asks for the ends of children, in order.
struct Loops<'t> {
    timeline: &'t Timeline,
    task: TaskId,
    calls: &'t [CallId],
    wait4: u16,
    read: u16,
    /// Numbers of the calls of such loops.
    polls: &'t BTreeSet<u16>,
}

impl Loops<'_> {
    fn call(&self, at: usize) -> &Call {
        &self.timeline.calls[self.calls[at].index()]
    }

    /// Whether a call asked for this child, and it had not ended.
    fn asks_for(&self, call: &Call, child: u64) -> bool {
        asks(self.timeline, call, self.wait4)
            && [child, u64::from(u32::MAX), u64::MAX].contains(&self.timeline.args(call)[0])
    }

    /// The loop that waited for this child: questions until its end, and none after it. Only calls near its end
    /// are looked at, and then those of the loop: a shell has thousands of children.
    fn waiting_for(&self, child: TaskId) -> Option<Wait> {
        let (tid, birth, end) = {
            let child = self.timeline.task(child);
            (u64::from(child.tid.0), child.birth, child.end)
        };
        let before = self.calls.partition_point(|id| self.timeline.calls[id.index()].start < end);
        let near = |at: &usize| self.asks_for(self.call(*at), tid);
        let last = (0..before).rev().take(NEAR).find(near)?;
        let after = (last + 1..self.calls.len()).take(NEAR).map(|at| self.call(at));
        let answered = after.clone().find_map(|call| {
            let ret = call.ret().and_then(|ret| u64::try_from(ret).ok());
            ret.filter(|ret| call.nr == self.wait4 && *ret > 0).map(|ret| (ret, call.end))
        });
        let of_another = answered.is_some_and(|(by, _)| by != tid);
        let late = |call: &Call| self.asks_for(call, tid) && call.start > end + GRACE;
        let goes_on = answered.is_none() && after.clone().any(late);
        if of_another || goes_on {
            return None;
        }
        let first = self.first_of(last, birth);
        let asked = (first..=last).map(|at| self.call(at)).filter(|call| self.asks_for(call, tid));
        let questions = asked.map(Call::times).sum();
        let end =
            answered.map_or(end, |(_, at)| end.min(at)).min(self.timeline.task(self.task).end);
        let start = self.call(first).start.max(birth);
        let wait = Wait { task: self.task, child, start, end, call: self.calls[last], questions };
        let long = questions >= QUESTIONS && wait.end - wait.start >= SHORTEST;
        (long && asleep(self.timeline, &wait) <= ASLEEP).then_some(wait)
    }

    /// Whether this call brought nothing. A child that ends leaves the end of its output, which is found in each round.
    fn is_poll(&self, at: usize) -> bool {
        let call = self.call(at);
        let ends = |call: &Call| call.nr == self.read && call.ret() == Some(0);
        let polls = self.polls.contains(&call.nr);
        let brought = call.ret().is_none_or(|ret| ret > 0);
        ends(call) || polls && (!brought || self.calls.len() > at + 1 && ends(self.call(at + 1)))
    }

    /// The first call of the loop that has the call `last`.
    fn first_of(&self, last: usize, birth: Ns) -> usize {
        let task = self.timeline.task(self.task);
        let (mut first, mut polls, mut others) = (last, 0, 0);
        for earlier in (0..last).rev() {
            let (one, next) = (self.call(earlier), self.call(earlier + 1));
            let is_poll = self.is_poll(earlier);
            *(if is_poll { &mut polls } else { &mut others }) += one.times();
            // Without the time in which others had its CPU.
            let own = task.on_cpu_between(one.end, next.start);
            let most = LOOK.0.saturating_mul(one.times().max(next.times()));
            if others > OTHERS + polls / OTHERS_IN || one.start < birth || own.0 > most {
                break;
            }
            // It does not begin with another call.
            if is_poll {
                first = earlier;
            }
        }
        first
    }
}

/// Which part of the loop its task was asleep.
fn asleep(timeline: &Timeline, wait: &Wait) -> f64 {
    let task = timeline.task(wait.task);
    let blocked =
        task.spans.iter().enumerate().filter(|(_, span)| matches!(span.run(), Run::Blocked(_)));
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
    let after = to.checked_sub(1).map(|last| task.spans[last]);
    let after = after.map(|last| Span::new(wait.end, last.run(), last.within()));
    let polled: Ns = task.on_cpu_between(wait.start, wait.end);
    let waits = Span::new(wait.start, Run::Blocked(index), Within::Syscall(wait.call));
    let rest = after.filter(|_| wait.end < task.end);
    task.spans.splice(from..to, std::iter::once(waits).chain(rest));
    task.polled += polled;
}

#[cfg(test)]
mod tests {
    use super::{Ns, together};
    use crate::path::{Path, Subject};
    use crate::timeline::Timeline;
    use deadweight_trace::Trace;
    use std::fmt::Write;

    /// Task 1 asks `count` times, once in `every` ns, with `between` each time; its child ends at 5 ms.
    fn path(every: u64, between: &str, reaped: u32) -> (Vec<String>, Vec<String>) {
        path_with(every, |_| between, reaped)
    }

    /// The same with what is done at this time.
    fn path_with<'b>(
        every: u64,
        between: impl Fn(u64) -> &'b str,
        reaped: u32,
    ) -> (Vec<String>, Vec<String>) {
        let mut text = String::from("cpus 2\ntask 1 drive\n0 cpu0 on\n10 fork 2\n");
        let mut at = 1000;
        while at < 5_000_000 {
            let sleep = between(at)
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
    fn waits_for_several_children_at_once_count_once() {
        let waits = vec![(Ns(10), Ns(50)), (Ns(60), Ns(70)), (Ns(20), Ns(65)), (Ns(62), Ns(64))];
        assert_eq!(together(waits), Ns(60));
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
    fn a_loop_that_reads_what_its_child_wrote_is_one_wait() {
        let read = |at: u64| at == 1000 + 10_000 * 498;
        let reads = "AT syscall read 3 4096\nEND back 24\n";
        assert_eq!(
            path_with(10_000, |at| if read(at) { reads } else { "" }, 2).0,
            ["1 1000", "2 4999000", "1 900010"]
        );
        assert_eq!(path_with(10_000, |_| reads, 2).0, ["1 5900010"]);
        // The end of its output, in the last rounds.
        let ends = "AT syscall pselect6 4 0\nEND back 1\nEND syscall read 3 4096\nEND back 0\n";
        assert_eq!(
            path_with(10_000, |at| if at > 4_800_000 { ends } else { "" }, 2).0,
            ["1 1000", "2 4999000", "1 900010"]
        );
    }

    #[test]
    fn two_children_one_after_the_other_are_two_waits_and_one_note() {
        let ask = |from: u64, to: u64, child: u32| {
            let asks =
                crate::cost::tests::repeat(to / 10_000 - from / 10_000, from, 10_000, |at| {
                    format!("{at} syscall wait4 4294967295 1\n{} back 0\n", at + 200)
                });
            format!("{asks}{} syscall wait4 4294967295 1\n{} back {child}\n", to + 500, to + 700)
        };
        let text = format!(
            "cpus 2\ntask 1 drive\n0 cpu0 on\n10 fork 2\n{}4100000 fork 3\n{}9000000 exit\n9000010 off dead\n\
             task 2 cc\n20 cpu1 on\n3999000 exit\n4000000 off dead\n\
             task 3 cc\n4100020 cpu1 on\n7999000 exit\n8000000 off dead",
            ask(10_000, 4_000_000, 2),
            ask(4_110_000, 8_000_000, 3),
        );
        let timeline = Timeline::build(&Trace::from_text(&text).unwrap());
        assert_eq!(timeline.blocks.len(), 2);
        assert_eq!(timeline.warnings.len(), 1);
        assert!(
            timeline.warnings[0].contains("for 2 children and asked for their ends 788 times"),
            "{:?}",
            timeline.warnings
        );
    }

    #[test]
    fn a_loop_that_sleeps_between_or_works_is_its_own() {
        let sleep = "AT off blocked clock_nanosleep 1 : hrtimer_nanosleep\nEND cpu0 on woken-by interrupt : hrtimer_wakeup";
        assert_eq!(path(10_000, sleep, 2).0, ["1 5900010"]);
        assert_eq!(path(200_000, "", 2).0, ["1 5900010"]);
    }
}
