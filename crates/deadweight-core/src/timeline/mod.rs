//! Every task's life as spans that tile it: what it did, what it waited for, which task ended the wait.
//!
//! - In: a trace, read in one pass over the events in order. Tids become [`TaskId`]s here, because the kernel
//!   reuses tids.
//! - Out: a [`Timeline`].
//! - Must not know: whose wall time is divided; see `path`.
//!
//! Ten million events must fit into a GiB with everything concluded from them, so spans and calls are small, and
//! equal arguments of calls are kept once.

mod arguments;
pub(crate) mod births;
mod build;
mod busy_polls;
mod children;
mod counted;
pub mod descriptors;
mod handover;
mod holes;
mod inferred_wakers;
mod inside;
pub mod kernel_stacks;
pub(crate) mod latest;
pub(crate) mod near;
pub(crate) mod purposes;
mod repeated_timeouts;
pub(crate) mod sleepers;
mod span;
mod state;
mod switches;
#[cfg(test)]
mod tests;
mod tids;
pub(crate) mod transfer;
mod wakes;

use deadweight_trace::ids::{CallId, Cpu, LocationId, NameId, StackId, TaskId, Tid};
use deadweight_trace::units::{LiveAddr, Ns};
use descriptors::Objects;
use kernel_stacks::{Interrupt, WaitsFor};
use near::last_started;
use sleepers::GoSleep;
use std::collections::BTreeMap;

pub use span::{Run, Span, Within};

/// All tasks, calls and waits of a trace.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    /// Every life of every task that matters: the root, its descendants, and tasks of other programs
    /// (outsiders) that woke one of them or held a CPU.
    pub tasks: Vec<Task>,
    /// Every system call made by an own task.
    pub calls: Vec<Call>,
    /// Every page fault of an own task.
    pub faults: Vec<Fault>,
    /// General registers at samples of user code, by task in order of time.
    pub registers: Vec<Registers>,
    /// Pages that were sampled from `/proc` without stopping the process.
    pub pages: Vec<Page>,
    /// Every time an own task blocked.
    pub blocks: Vec<Block>,
    /// Of blocks, by index, whose thread waited until a goroutine's sleep was over: that sleep.
    pub(crate) sleeps: BTreeMap<usize, GoSleep>,
    /// Which task held each CPU, in order, one list per CPU.
    pub held: Vec<Vec<Held>>,
    /// What descriptors referred to.
    pub objects: Objects,
    /// Distinct arguments of calls, see [`Timeline::args`].
    pub(crate) arguments: Vec<[u64; 4]>,
    /// The numbers of the calls that start tasks.
    pub(crate) starters: Vec<u16>,
    /// By the number of a call: the position of its path among the kept arguments, if it has one.
    pub(crate) paths: Vec<Option<u8>>,
    /// The root's task.
    pub root: TaskId,
    /// Records that it was built of.
    pub records: u64,
    /// Records that were lost.
    pub lost: u64,
    /// Contradictions met in the events, counted, as sentences.
    pub warnings: Vec<String>,
    /// The same of what the timeline filled in itself: small gaps of every recording.
    pub remarks: Vec<String>,
}

/// One life of one task.
#[derive(Clone, Debug, Default)]
pub struct Task {
    /// Its kernel id during this life (the leader's after an exec by another thread).
    pub tid: Tid,
    /// Kernel id of its process.
    pub process: Tid,
    /// Its parent (of a thread that a language's watchdog started: the task that had the work then); none
    /// for the root and outsiders.
    pub parent: Option<TaskId>,
    /// Whether it is the root or descends from it.
    pub own: bool,
    /// Its names (`comm`) with the time from which each holds, in order.
    pub names: Vec<(Ns, NameId)>,
    /// Programs it executed: when, and the path.
    pub execs: Vec<(Ns, NameId)>,
    /// When `main` was reached after each exec, where a probe saw it.
    pub mains: Vec<Ns>,
    /// First instant known of it.
    pub birth: Ns,
    /// End of its last span: its death, or the end of the trace.
    pub end: Ns,
    /// Whether it died within the trace.
    pub died: bool,
    /// Whether it ended itself (rather than being killed by `exit_group`, exec or a signal).
    pub self_exit: bool,
    /// When it starts to die, if that was seen.
    pub exit: Option<Ns>,
    /// When another task of the trace killed it, and which.
    pub killed: Option<(Ns, TaskId)>,
    /// Whether it belongs to the recorder: its time is tracing overhead.
    pub recorder: bool,
    /// Its life, without gaps; each span lasts until the next one's start. Empty for outsiders.
    pub spans: Vec<Span>,
    /// Clock samples, in order.
    pub samples: Vec<Sample>,
    /// Time on a CPU in loops that are waits now, see `busy_polls`.
    pub(crate) polled: Ns,
}

/// A system call, or several alike that were counted together. Its arguments: [`Timeline::args`].
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// When it was entered.
    pub start: Ns,
    /// When it returned, or the end of what is known.
    pub end: Ns,
    /// What it returned, or [`Call::NEVER`].
    pub(crate) ret: i64,
    /// The caller.
    pub task: TaskId,
    /// The user stack it was made from, where it was taken; else 0.
    pub site: StackId,
    /// Index into `Timeline::arguments`.
    pub(crate) args: u32,
    /// Index into [`Objects::all`], or [`Call::NOTHING`].
    pub(crate) object: u32,
    /// How many calls it stands for that were counted together; 0 for a call that has its own begin and end.
    pub(crate) counted: u32,
    /// Whether the task's own time between calls that were counted together comes after each call, not
    /// before it.
    pub(crate) own_time_behind: bool,
    /// Number on the trace's architecture.
    pub nr: u16,
}

impl Call {
    /// The result of a call that did not return. No call returns this number.
    pub(crate) const NEVER: i64 = i64::MIN;
    /// The object of a call that works on none.
    pub(crate) const NOTHING: u32 = u32::MAX;

    /// What it returned: negative errno on failure; none if it did not return.
    #[must_use]
    pub fn ret(&self) -> Option<i64> {
        (self.ret != Self::NEVER).then_some(self.ret)
    }

    /// How many calls it stands for.
    #[must_use]
    pub fn times(&self) -> u64 {
        self.counted.max(1).into()
    }

    /// What its descriptor referred to: an index into [`Objects::all`].
    #[must_use]
    pub fn object(&self) -> Option<u32> {
        (self.object != Self::NOTHING).then_some(self.object)
    }
}

/// A page fault.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The address touched.
    pub addr: LiveAddr,
    /// The instruction that touched it.
    pub by: LocationId,
    /// Whether storage was read for it.
    pub major: bool,
    /// Whether the kernel touched it on the task's behalf.
    pub kernel: bool,
    /// The user stack, where it was taken; else 0.
    pub site: StackId,
    /// The system call that it happened in.
    pub call: Option<CallId>,
}

/// A wait of an own task, from its switch-out to its wake-up.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// The waiting task.
    pub task: TaskId,
    /// From when.
    pub start: Ns,
    /// Until when: the wake-up, or the end of what is known.
    pub end: Ns,
    /// What for, by the kernel stack and the system call.
    pub waits_for: WaitsFor,
    /// The waker.
    pub woken_by: WokenBy,
    /// If a task ended it: the system call that task was in.
    pub waker_call: Option<CallId>,
    /// The system call waited in.
    pub call: Option<CallId>,
    /// The user stack, where it was taken; else 0.
    pub site: StackId,
    /// Whether the waker was inferred, not seen (or is the task that had the work which a watchdog handed
    /// over).
    pub inferred: bool,
    /// Whether a signal ended it: its sender did not do what was waited for.
    pub by_signal: bool,
    /// Whether the clock ended it though it was for events, see [`WaitsFor::Tick`].
    pub tick: bool,
}

impl Block {
    /// What it was for, as far as the rest of the run shows it.
    pub(crate) fn purpose(&self) -> WaitsFor {
        if self.tick { WaitsFor::Tick } else { self.waits_for }
    }
}

/// What ended a wait.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum WokenBy {
    /// A task, own or outside.
    Task(TaskId),
    /// No task: a device or the clock.
    Interrupt(Interrupt),
    /// It never ended within the trace.
    Nobody,
    /// It ended, but the wake-up was not seen.
    Unseen,
}

/// A tick of the sampling clock.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// When.
    pub at: Ns,
    /// Whether in the kernel.
    pub kernel: bool,
    /// User stack.
    pub stack: StackId,
    /// Kernel stack, if in the kernel.
    pub kernel_stack: StackId,
}

/// The general registers at a sample.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registers {
    /// Whose.
    pub task: TaskId,
    /// Which of the task's samples.
    pub sample: u32,
    /// Their values, by their number in machine code; 0 where not recorded.
    pub general: [u64; 32],
}

/// What a page of memory held at some instant.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// When.
    pub at: Ns,
    /// A task of the process whose memory it is.
    pub task: TaskId,
    /// Its first address.
    pub addr: LiveAddr,
    /// Whether all its bytes were zero.
    pub zero: bool,
}

/// A task held a CPU from `start` until the next entry of that CPU's list.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// From when.
    pub start: Ns,
    /// By which task; none while the CPU was idle.
    pub task: Option<TaskId>,
}

impl Timeline {
    /// The arguments kept of a call, see [`deadweight_trace::syscall::kept`]; others are 0.
    #[must_use]
    pub fn args(&self, call: &Call) -> [u64; 4] {
        self.arguments.get(call.args as usize).copied().unwrap_or_default()
    }

    /// How many samples of user code have each of so many stacks.
    pub(crate) fn user_samples_by_stack(&self, stacks: usize) -> Vec<u32> {
        let mut counts = vec![0_u32; stacks];
        let samples = self.tasks.iter().flat_map(|task| &task.samples);
        for sample in samples.filter(|sample| !sample.kernel) {
            if let Some(count) = counts.get_mut(sample.stack.index()) {
                *count = count.saturating_add(1);
            }
        }
        counts
    }

    /// The task behind `id`.
    ///
    /// # Panics
    /// If `id` is not of this timeline.
    #[must_use]
    pub fn task(&self, id: TaskId) -> &Task {
        &self.tasks[id.index()]
    }

    /// Which tasks held `cpu` between `from` and `to`: each with its share, in order of time. None stands
    /// for an idle CPU. Empty for a CPU without any record.
    pub fn holders(
        &self,
        cpu: Cpu,
        from: Ns,
        to: Ns,
    ) -> impl Iterator<Item = (Ns, Ns, Option<TaskId>)> {
        self.holders_after(&mut 0, cpu, from, to)
    }

    /// The same; fast if the first of them is soon after entry `near`, which becomes that one.
    pub(crate) fn holders_after<'t>(
        &'t self,
        near: &mut usize,
        cpu: Cpu,
        from: Ns,
        to: Ns,
    ) -> impl Iterator<Item = (Ns, Ns, Option<TaskId>)> + use<'t> {
        let held = self.held.get(usize::from(cpu.0)).map_or(&[][..], Vec::as_slice);
        *near = last_started(held.len(), *near, |index| held[index].start <= from);
        (*near..held.len())
            .map_while(move |i| {
                let start = held[i].start.max(from);
                let end = held.get(i + 1).map_or(to, |next| next.start.min(to));
                (held[i].start < to).then_some((start, end, held[i].task))
            })
            .filter(|(start, end, _)| start < end)
    }
}

impl Task {
    /// The index of the span that covers `at`, with `start <= at < end`.
    #[must_use]
    pub fn span_at(&self, at: Ns) -> Option<usize> {
        if at >= self.end {
            return None;
        }
        self.spans.partition_point(|s| s.start <= at).checked_sub(1)
    }

    /// The index of the last span that starts by `at`, 0 if none does. Fast if that is soon after span `near`.
    pub(crate) fn span_after(&self, near: usize, at: Ns) -> usize {
        last_started(self.spans.len(), near, |index| self.spans[index].start <= at)
    }

    /// How many spans start before `at`. Fast if that is soon before span `near`.
    pub(crate) fn spans_before(&self, near: usize, at: Ns) -> usize {
        let later = |index: usize| self.spans.get(index).is_none_or(|span| span.start >= at);
        let mut high = if later(near) { near.min(self.spans.len()) } else { self.spans.len() };
        let mut step = 1;
        while high >= step && later(high - step) {
            high -= step;
            step *= 2;
        }
        let low = high.saturating_sub(step);
        low + self.spans[low..high].partition_point(|span| span.start < at)
    }

    /// When span `index` ends.
    #[must_use]
    pub fn span_end(&self, index: usize) -> Ns {
        self.spans.get(index + 1).map_or(self.end, |s| s.start)
    }

    /// How long it lived.
    pub(crate) fn life(&self) -> Ns {
        self.end - self.birth
    }

    /// Its time on a CPU.
    #[must_use]
    pub fn on_cpu(&self) -> Ns {
        self.polled + self.on_cpu_between(Ns::ZERO, Ns::MAX)
    }

    /// Its time on a CPU between `from` and `to`.
    #[must_use]
    pub fn on_cpu_between(&self, from: Ns, to: Ns) -> Ns {
        let first = self.spans.partition_point(|s| s.start <= from).saturating_sub(1);
        (first..self.spans.len())
            .take_while(|i| self.spans[*i].start < to)
            .filter(|i| matches!(self.spans[*i].run(), Run::OnCpu(_)))
            .map(|i| self.span_end(i).min(to) - self.spans[i].start.max(from))
            .sum()
    }

    /// When it is on a CPU, from `at` on: `at` itself, or the start of its next time on one.
    #[must_use]
    pub fn on_cpu_from(&self, at: Ns) -> Ns {
        let first = self.spans.partition_point(|s| s.start <= at).saturating_sub(1);
        let next = self.spans[first..].iter().find(|span| matches!(span.run(), Run::OnCpu(_)));
        next.map_or(at, |span| span.start.max(at))
    }

    /// Its time on a CPU, and how often it was given one: in one walk.
    #[must_use]
    pub fn on_cpu_and_switches(&self) -> (Ns, u64) {
        let (mut time, mut switches, mut before) = (self.polled, 0, false);
        for (index, span) in self.spans.iter().enumerate() {
            let on = matches!(span.run(), Run::OnCpu(_));
            if on {
                time += self.span_end(index) - span.start;
                switches += u64::from(!before);
            }
            before = on;
        }
        (time, switches)
    }

    /// The task's name at `at`; `NameId(0)` if it never had one.
    #[must_use]
    pub fn name_at(&self, at: Ns) -> NameId {
        let after = self.names.partition_point(|(from, _)| *from <= at);
        self.names.get(after.saturating_sub(1)).map_or(NameId(0), |(_, n)| *n)
    }
}
