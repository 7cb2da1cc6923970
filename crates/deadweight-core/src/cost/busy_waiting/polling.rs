//! A thread that polls and finds an event each time, but does nothing with it: the next call returns at once with the
//! same one. A peer has closed and the descriptor is still registered, or nobody reads what has come.

use super::{CLASS, Inspection, LARGE};
use crate::account::Detail;
use crate::facts::Facts;
use crate::facts::call_groups::{CallGroup, WRITES};
use crate::facts::call_site::{CallSite, Weights, sites};
use crate::facts::processes::ProcessId;
use crate::inspect::{Draft, Sum};
use deadweight_report::report::How;
use deadweight_report::wording::things;
use deadweight_trace::ids::{CallId, StackId, TaskId};
use deadweight_trace::units::Ns;
use std::collections::BTreeMap;

const POLLS: &[&str] =
    &["epoll_wait", "epoll_pwait", "epoll_pwait2", "poll", "ppoll", "select", "pselect6"];
/// From this many polls on that found an event it may be a loop that does nothing else.
const STORM: u64 = 2_000;
/// So many of them for each other call of the thread, and for each write of another thread: an eventfd that wakes a
/// poll need not be read.
const ALONE: u64 = 20;
/// One in this many of them may sleep.
const SLEEPS: u64 = 20;
/// What is certain of the time of these calls: a loop that takes its events still polls.
const LEAST: f64 = 0.9;

/// The calls of one thread.
#[derive(Default)]
struct OfTask {
    /// Polls that found an event.
    polls: u64,
    places: Weights,
    others: u64,
    writes: u64,
}

/// The finding of a process with such a thread.
pub(super) fn draft(found: &Inspection<'_, '_>, process: ProcessId) -> Option<Draft> {
    let facts = found.facts;
    let is_poll = |group: &CallGroup| POLLS.contains(&group.name);
    let groups = || facts.call_groups.of_process(process).map(|(_, group)| group);
    let [calls, slept] = [|g: &CallGroup| g.calls, |g: &CallGroup| g.blocked]
        .map(|of| groups().filter(|group| is_poll(group)).map(of).sum::<u64>());
    if calls < STORM || slept * SLEEPS > calls {
        return None;
    }
    let tasks = by_task(facts, process);
    let writes: u64 = tasks.values().map(|task| task.writes).sum();
    let spins = tasks.into_values().find(|task| {
        task.polls >= STORM && task.polls >= ALONE * (task.others + writes - task.writes)
    })?;
    let entries = found.wall.in_process(process).filter(
        |entry| matches!(entry.detail, Detail::Calls(id) if is_poll(facts.call_groups.get(id))),
    );
    let ns = Sum::of(entries).ns;
    if ns.share_of(found.wall.net()) < LARGE {
        return None;
    }
    let name = groups().filter(|group| is_poll(group)).max_by_key(|group| group.calls)?.name;
    // What a program waits for in such a loop may come no sooner.
    let serves = facts.path.subject.service.is_some();
    Some(Draft {
        class: CLASS.id,
        moves: false,
        process,
        title: format!("{name} returns at once, again and again"),
        text: format!(
            "{} called {name} {}: it found an event each time, and nothing was read, accepted or closed \
             before the next call.",
            facts.name(process),
            things(spins.polls, "time"),
        ),
        amount: ns,
        saving: ns,
        range: (if serves { ns.part(LEAST) } else { Ns::ZERO }, ns),
        how: if serves { How::Estimate } else { How::Candidate },
        sites: sites(facts.symbols(), &spins.places, spins.polls),
        evidence: vec![format!(
            "that thread made {} besides; recording slows such a loop: without it, it polls more often in the \
             same time",
            things(spins.others, "other call")
        )],
        remedy: "Take the event: close the descriptor at EPOLLHUP, EPOLLRDHUP or EPOLLERR (or EPOLL_CTL_DEL), read until \
                 EAGAIN, and ask for EPOLLOUT only while there is something to write. EPOLLET reports each \
                 event once."
            .into(),
    })
}

fn by_task(facts: &Facts<'_>, process: ProcessId) -> BTreeMap<TaskId, OfTask> {
    let mut tasks: BTreeMap<TaskId, OfTask> = BTreeMap::new();
    let calls = facts.timeline.calls.iter().enumerate();
    for (id, call) in calls.filter(|(_, call)| facts.processes.of(call.task) == process) {
        let group = facts.call_groups.id(CallId::at(id));
        let Some(group) = group.map(|id| facts.call_groups.get(id)).filter(|g| !g.starting) else {
            continue;
        };
        let of = tasks.entry(call.task).or_default();
        if !POLLS.contains(&group.name) {
            of.others += call.times();
            of.writes += if WRITES.contains(&group.name) { call.times() } else { 0 };
        } else if call.ret().is_some_and(|ret| ret > 0) {
            of.polls += call.times();
            if call.site != StackId(0) {
                of.places.entry(CallSite::Stack(call.site)).or_default().amount += call.times();
            }
        }
    }
    tasks
}

#[cfg(test)]
mod tests {
    use crate::cost::tests::{found, repeat};

    /// A loop around `epoll_wait`, which finds this many events each time; `then` follows it.
    fn polls(events: i64, then: &str) -> String {
        let turns = repeat(4_000, 1_000, 1_000, |at| {
            let then = then.replace("AT", &(at + 500).to_string());
            format!(
                "{at} syscall epoll_wait 3 1 32 from serve (s.c:54) <- main\n{} back {events}\n{then}",
                at + 400
            )
        });
        format!(
            "task 1 app\n0 on\n0 exec /bin/app\n0 main\n{turns}4_100_000 exit\n4_100_000 off dead"
        )
    }

    #[test]
    fn an_event_that_nobody_takes_is_found() {
        let said = found(&polls(1, ""));
        assert!(
            said.starts_with(
                "busy-waiting 39 % (0..48) @ serve:54: app called epoll_wait 4 000 times"
            ),
            "{said}"
        );
    }

    #[test]
    fn events_that_are_read_and_polls_in_vain_are_refused() {
        let read = "AT syscall read 5 64\nAT back 64\n";
        assert!(!found(&polls(1, read)).contains("busy-waiting"), "{}", found(&polls(1, read)));
        assert!(!found(&polls(0, "")).contains("busy-waiting"), "{}", found(&polls(0, "")));
    }
}
