//! Pauses while a client waits: a task took a request from a socket, slept, and then answered there.
//!
//! Only of the task that took the request and answers it, and only sleeps: who waits for a lock, a child or another answer
//! may be waiting for anybody. Calls that were counted together tell nothing of their order; then no request is known.

use super::Service;
use crate::path::Subject;
use crate::timeline::descriptors::ObjectKind;
use crate::timeline::kernel_stacks::WaitsFor;
use crate::timeline::transfer::Transfer;
use crate::timeline::{Block, Call, Timeline};
use deadweight_trace::Trace;
use deadweight_trace::ids::TaskId;
use deadweight_trace::syscall;
use deadweight_trace::units::Ns;
use std::collections::{BTreeMap, BTreeSet};

/// The pauses, by task and start.
pub(super) fn pauses(
    trace: &Trace,
    timeline: &Timeline,
    subject: &Subject,
    service: &Service,
) -> BTreeSet<(TaskId, Ns)> {
    let sleeps = |block: &&Block| block.waits_for == WaitsFor::Sleep && subject.owns(block.task);
    let sleeps: Vec<&Block> = timeline.blocks.iter().filter(sleeps).collect();
    let tasks: BTreeSet<TaskId> = sleeps.iter().map(|block| block.task).collect();
    let mut calls: Vec<&Call> =
        timeline.calls.iter().filter(|call| tasks.contains(&call.task)).collect();
    calls.sort_unstable_by_key(|call| call.start);
    let mut open: BTreeMap<(TaskId, u32), Ns> = BTreeMap::new();
    let mut requests: BTreeMap<TaskId, Vec<(Ns, Ns)>> = BTreeMap::new();
    for call in calls {
        let Some((object, takes)) = takes(trace, timeline, service, call) else { continue };
        let key = (call.task, object);
        match (takes, call.counted == 0) {
            (true, true) => drop(open.entry(key).or_insert(call.start)),
            (_, is_one) => {
                let taken = open.remove(&key).filter(|_| is_one);
                requests.entry(call.task).or_default().extend(taken.map(|at| (at, call.start)));
            }
        }
    }
    let requests: BTreeMap<TaskId, Vec<(Ns, Ns)>> =
        requests.into_iter().map(|(task, of_task)| (task, joined(of_task))).collect();
    let waits = |block: &Block| {
        let of_task = requests.get(&block.task).map_or(&[][..], Vec::as_slice);
        let before = of_task.partition_point(|(taken, _)| *taken < block.start);
        before > 0 && block.start < of_task[before - 1].1
    };
    sleeps.iter().filter(|block| waits(block)).map(|block| (block.task, block.start)).collect()
}

/// Intervals in order, those that overlap as one.
fn joined(mut intervals: Vec<(Ns, Ns)>) -> Vec<(Ns, Ns)> {
    intervals.sort_unstable();
    let mut joined: Vec<(Ns, Ns)> = Vec::new();
    for (start, end) in intervals {
        match joined.last_mut().filter(|last| start <= last.1) {
            Some(last) => last.1 = last.1.max(end),
            None => joined.push((start, end)),
        }
    }
    joined
}

/// The socket that a call works on, and whether it takes a request there; none if it has nothing to do with clients.
fn takes(
    trace: &Trace,
    timeline: &Timeline,
    service: &Service,
    call: &Call,
) -> Option<(u32, bool)> {
    let object = call.object().filter(|object| !service.asks(*object))?;
    let kind = timeline.objects.get(object)?.kind;
    let transfer = syscall::name(trace.meta.arch, call.nr).and_then(Transfer::of)?;
    let moved = call.ret().is_some_and(|ret| ret > 0);
    let is_socket = matches!(kind, ObjectKind::Socket | ObjectKind::Datagrams);
    match transfer {
        Transfer::Takes if is_socket && moved => Some((object, true)),
        Transfer::Gives if is_socket && moved => Some((object, false)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::cost::tests::rows;

    /// A joined program that takes a request, makes this call, and sleeps before the next.
    fn server(answers: &str) -> String {
        let end = |at: u64| {
            format!("{at} on woken-by interrupt : hrtimer_wakeup < asm_sysvec_apic_timer_interrupt")
        };
        format!(
            "attached
             task 1 server
             0 on
             10 syscall accept4 3
             20 back 5
             30 syscall recvfrom 5 64 0
             40 back 64
             {answers}
             100 off blocked clock_nanosleep 1
             {}
             610 syscall sendto 5 8 0
             620 back 8
             700 off blocked clock_nanosleep 1
             {}
             1000 sample work",
            end(600),
            end(900)
        )
    }

    /// The rows *idle* and *sleeping* in ns.
    fn waits(text: &str) -> Vec<String> {
        let rows = rows(text, 9);
        let of = |row: &&str| row.starts_with("idle ") || row.starts_with("wait-sleep ");
        let words = |row: &str| row.split(' ').take(2).collect::<Vec<_>>().join(" ");
        rows.lines().filter(of).map(words).collect()
    }

    #[test]
    fn a_pause_before_the_answer_is_no_idle_time() {
        assert_eq!(waits(&server("")), ["wait-sleep 500", "idle 200"]);
    }

    #[test]
    fn a_pause_after_the_answer_is_idle_time() {
        let answered = "50 syscall sendto 5 8 0\n60 back 8";
        assert_eq!(waits(&server(answered)), ["idle 700"]);
        let other = server("").replace("sendto 5 8 0", "sendto 6 8 0");
        assert_eq!(waits(&other), ["idle 700"], "another task answers");
    }

    #[test]
    fn the_answer_to_one_client_does_not_end_the_wait_of_another() {
        let two = "50 syscall recvfrom 6 64 0\n60 back 64\n70 syscall sendto 6 8 0\n80 back 8";
        assert_eq!(waits(&server(two)), ["wait-sleep 500", "idle 200"]);
    }
}
