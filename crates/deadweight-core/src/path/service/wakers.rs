//! Who ended the waits at sockets: clients, or servers that the program asked.
//!
//! A wait for any of many sockets has no socket of its own: the one that the task works on next is what ended it.

use super::sides::Sides;
use crate::path::Subject;
use crate::timeline::kernel_stacks::WaitsFor;
use crate::timeline::{Block, Call, Timeline, WokenBy};
use deadweight_trace::Trace;
use deadweight_trace::ids::{TaskId, Tid};
use deadweight_trace::syscall;
use std::collections::BTreeMap;

/// The tasks of other programs that ended waits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Wakers {
    /// By the sockets where the program asks: the task that last ended a wait for an answer.
    of_answers: BTreeMap<u32, TaskId>,
    /// By process: how many waits it ended with an answer, and with a question or a connection.
    ended: BTreeMap<Tid, (u64, u64)>,
}

impl Wakers {
    pub(super) fn of(trace: &Trace, timeline: &Timeline, subject: &Subject, sides: &Sides) -> Self {
        let accepts = ["accept", "accept4"].map(|name| syscall::number(trace.meta.arch, name));
        let is_of = |object| {
            [&sides.own, &sides.peer, &sides.unknown].iter().any(|side| side.contains(&object))
        };
        let works = |call: &&Call| {
            subject.owns(call.task)
                && (call.object().is_some_and(is_of) || accepts.contains(&Some(call.nr)))
        };
        let mut calls: Vec<&Call> = timeline.calls.iter().filter(works).collect();
        calls.sort_unstable_by_key(|call| (call.task, call.start));
        let waits = |block: &&Block| {
            matches!(block.waits_for, WaitsFor::SocketData | WaitsFor::Poll)
                && subject.owns(block.task)
        };
        let mut blocks: Vec<&Block> = timeline.blocks.iter().filter(waits).collect();
        blocks.sort_unstable_by_key(|block| (block.task, block.start));
        let mut wakers = Self::default();
        for (index, block) in blocks.iter().enumerate() {
            let WokenBy::Task(by) = block.woken_by else { continue };
            let next = calls.partition_point(|c| (c.task, c.start) < (block.task, block.end));
            let before_next = |call: &&&Call| {
                let after = blocks.get(index + 1).filter(|after| after.task == block.task);
                call.task == block.task && after.is_none_or(|after| call.start <= after.start)
            };
            // A call that waits for one socket works on that.
            let own = block.call.map(|call| &timeline.calls[call.index()]);
            let own = own.filter(|_| block.waits_for == WaitsFor::SocketData);
            let next = calls.get(next).filter(before_next).copied();
            if let Some(call) = own.filter(works).or(next) {
                wakers.note(call, by, timeline.task(by).process, sides);
            }
        }
        wakers
    }

    fn note(&mut self, call: &Call, by: TaskId, process: Tid, sides: &Sides) {
        if call.object().is_some_and(|object| sides.unknown.contains(&object)) {
            return;
        }
        let (answers, asks) = self.ended.entry(process).or_default();
        match call.object().filter(|object| sides.own.contains(object)) {
            Some(object) => {
                *answers += 1;
                self.of_answers.insert(object, by);
            }
            None => *asks += 1,
        }
    }

    /// Whether a process mostly asks; none if no wait shows that.
    pub(super) fn is_client(&self, process: Tid) -> Option<bool> {
        self.ended.get(&process).map(|(answers, asks)| asks > answers)
    }

    /// The task that answered at a socket; if no wait there shows it, that of the only process that answers anywhere.
    pub(super) fn of_answer(&self, socket: u32) -> Option<TaskId> {
        let only = || {
            let mut servers = self.ended.values().filter(|(answers, asks)| answers > asks);
            servers.next().filter(|_| servers.next().is_none())?;
            self.of_answers.values().next().copied()
        };
        self.of_answers.get(&socket).copied().or_else(only)
    }
}
