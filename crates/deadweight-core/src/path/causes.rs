//! Causes: what an interval of a task was, independent of how the wall time is divided.
//!
//! The path and the simple projection are counted in the same causes, so that they can be compared. Causes
//! are coarser than the ledger's accounts, which know files, call sites and costs.

use crate::path::cpu_holder::{CpuHolder, CpuHolders};
use crate::path::{Path, Subject};
use crate::timeline::kernel_stacks::{Interrupt, WaitsFor};
use crate::timeline::{Run, Span, Timeline, Within, WokenBy};
use deadweight_trace::ids::{NameId, TaskId};
use deadweight_trace::units::Ns;
use std::collections::BTreeMap;

/// What an interval was.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// A task of this name was on a CPU.
    Work(NameId, Doing),
    /// A task could have run.
    NoCpu(Held),
    /// A task of this name waited.
    Wait(NameId, WaitsFor, Ended),
    /// Records were lost.
    Unrecorded,
    /// No task's spans explain it.
    Unexplained,
}

/// What a task on a CPU was in the middle of.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Doing {
    /// Its own code.
    User,
    /// The system call of this number.
    Syscall(u16),
    /// A page fault.
    Fault,
    /// The timer interrupt.
    Interrupt,
    /// Starting, see [`Within::Starting`].
    Starting,
    /// Dying.
    Exiting,
}

/// The holder of the CPU that was waited for.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Held {
    /// A task of the subject.
    Own,
    /// An outsider of this name.
    Outside(NameId),
    /// The recorder.
    Recorder,
    /// No task.
    Nobody,
}

/// What ended a wait.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ended {
    /// A task of the subject.
    Own,
    /// An outsider of this name.
    Outside(NameId),
    /// A device or the clock.
    Interrupt(Interrupt),
    /// Nothing within the recording.
    Nobody,
    /// It was not seen.
    Unseen,
}

/// Time by cause.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    /// The latest causes: a loop alternates between a few.
    recent: Vec<Option<(Cause, Ns)>>,
    all: BTreeMap<Cause, Ns>,
}

/// Slots for the latest causes; a power of two.
const RECENT: usize = 64;

impl Totals {
    /// Counts `time` for `cause`.
    pub fn add(&mut self, cause: Cause, time: Ns) {
        if time == Ns::ZERO {
            return;
        }
        if self.recent.is_empty() {
            self.recent.resize(RECENT, None);
        }
        match &mut self.recent[slot(&cause)] {
            Some((known, total)) if *known == cause => *total += time,
            slot => {
                if let Some((former, total)) = slot.replace((cause, time)) {
                    *self.all.entry(former).or_default() += total;
                }
            }
        }
    }

    /// The causes with their times, in order of the causes.
    #[must_use]
    pub fn into_map(self) -> BTreeMap<Cause, Ns> {
        let mut all = self.all;
        for (cause, time) in self.recent.into_iter().flatten() {
            *all.entry(cause).or_default() += time;
        }
        all
    }
}

fn slot(cause: &Cause) -> usize {
    let number = match cause {
        Cause::Work(name, Doing::Syscall(nr)) => name.index() * 7 + usize::from(*nr) + 8,
        Cause::Work(name, doing) => {
            name.index() * 7
                + match doing {
                    Doing::User | Doing::Syscall(_) => 0,
                    Doing::Fault => 1,
                    Doing::Interrupt => 2,
                    Doing::Starting => 3,
                    Doing::Exiting => 4,
                }
        }
        Cause::NoCpu(_) => 5,
        Cause::Wait(name, ..) => name.index() * 7 + 6,
        Cause::Unrecorded | Cause::Unexplained => 7,
    };
    number & (RECENT - 1)
}

/// Counts the part of a task's span that lies between `from` and `to`.
pub(crate) fn count(
    totals: &mut Totals,
    holders: &mut CpuHolders<'_>,
    (task, index): (TaskId, usize),
    (from, to): (Ns, Ns),
) {
    let (timeline, subject) = (holders.timeline, holders.subject);
    let span = timeline.task(task).spans[index];
    if span.run() != Run::Runnable {
        totals.add(cause(timeline, subject, task, &span), to - from);
        return;
    }
    for (time, holder) in holders.of((task, index), from, to) {
        let held = match holder {
            CpuHolder::Own(_) => Held::Own,
            CpuHolder::Outside(who) => Held::Outside(timeline.task(*who).name_at(from)),
            CpuHolder::Recorder => Held::Recorder,
            CpuHolder::Nobody => Held::Nobody,
        };
        totals.add(Cause::NoCpu(held), *time);
    }
}

/// The cause of a span that is not a wait for a CPU.
pub(crate) fn cause(timeline: &Timeline, subject: &Subject, task: TaskId, span: &Span) -> Cause {
    let name = timeline.task(task).name_at(span.start);
    match span.run() {
        Run::OnCpu(_) => Cause::Work(
            name,
            match span.within() {
                Within::User => Doing::User,
                Within::Syscall(call) => Doing::Syscall(timeline.calls[call.index()].nr),
                Within::Fault(_) => Doing::Fault,
                Within::Interrupt => Doing::Interrupt,
                Within::Starting => Doing::Starting,
                Within::Exiting => Doing::Exiting,
            },
        ),
        Run::Runnable => Cause::NoCpu(Held::Nobody),
        Run::Unrecorded => Cause::Unrecorded,
        Run::Blocked(block) => {
            let block = &timeline.blocks[block as usize];
            let ended = match block.woken_by {
                WokenBy::Task(by) if subject.owns(by) => Ended::Own,
                WokenBy::Task(by) => Ended::Outside(timeline.task(by).name_at(block.end)),
                WokenBy::Interrupt(kind) => Ended::Interrupt(kind),
                WokenBy::Nobody => Ended::Nobody,
                WokenBy::Unseen => Ended::Unseen,
            };
            Cause::Wait(name, block.waits_for, ended)
        }
    }
}

impl Path {
    /// The wall time by cause, as the path divides it. Adds up to the wall time.
    #[must_use]
    pub fn causes(&self, timeline: &Timeline) -> BTreeMap<Cause, Ns> {
        let mut totals = Totals::default();
        let mut holders = CpuHolders::new(timeline, &self.subject);
        let mut latest = vec![0; timeline.tasks.len()];
        for piece in &self.pieces {
            if piece.unexplained {
                totals.add(Cause::Unexplained, piece.end - piece.start);
                continue;
            }
            let latest = &mut latest[piece.task.index()];
            for (from, to, index, _) in piece.spans_after(timeline, *latest) {
                *latest = index;
                count(&mut totals, &mut holders, (piece.task, index), (from, to));
            }
        }
        totals.into_map()
    }
}

/// How far two divisions of one wall time differ: the share that must move to turn one into the other, 0 to
/// 1.
#[must_use]
pub fn difference(a: &BTreeMap<Cause, Ns>, b: &BTreeMap<Cause, Ns>) -> f64 {
    let more: Ns =
        a.iter().map(|(cause, time)| *time - b.get(cause).copied().unwrap_or_default()).sum();
    let wall: Ns = a.values().copied().sum();
    more.share_of(wall)
}
