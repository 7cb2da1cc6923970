//! Records of decimated system calls (1 in N), into raw events. For the number of calls see `merge::decimated`.

use super::Follow;
use super::merge::UnrecordedCalls;
use super::user_stack::user_state;
use crate::perf::decode::{Body, Record, Sample};
use crate::perf::schema::Role;
use deadweight_trace::hash::ByFast;
use deadweight_trace::raw::{Calls, RawKind};
use std::collections::HashMap;

/// A call that takes longer, in ns, is not made at a high rate.
const LONGEST: u64 = 10_000;
/// When this many calls were measured, their number and total time are halved, so that newer calls weigh more.
const REMEMBERED: u64 = 4096;

/// The state of decimation.
#[derive(Debug, Default)]
pub(super) struct Decimation {
    /// What recording adds to the time between entry and return, in ns.
    recording: u64,
    /// Tids of tasks that have events of their own for some call, so that the events of all tasks exclude them
    /// there; and since when.
    passed: HashMap<u32, u64, ByFast>,
    /// By task and call number: its calls.
    of: HashMap<(u32, u16), Of, ByFast>,
    /// By call number: calls that were recorded one by one, and the time in them.
    inside: Vec<(u64, u64)>,
}

#[derive(Copy, Clone, Debug, Default)]
struct Of {
    args: Option<[u64; 6]>,
    ret: i64,
    /// Calls that were reported alone, with a stack, and are included in the count.
    alone: u32,
}

impl Decimation {
    pub(super) fn new(recording: u64) -> Self {
        Self { recording, ..Self::default() }
    }

    /// Forgets the calls of tasks.
    pub(super) fn forget(&mut self, of: impl Fn(u32) -> bool) {
        self.of.retain(|(task, _), _| !of(*task));
    }

    /// The calls that are decimated.
    pub(super) fn calls(&self) -> impl Iterator<Item = u16> {
        self.of.keys().map(|(_, nr)| *nr)
    }

    /// A call was recorded from its entry to its return.
    pub(super) fn measured(&mut self, nr: u16, took: u64) {
        if took > LONGEST {
            return;
        }
        let nr = usize::from(nr);
        if nr >= self.inside.len() {
            self.inside.resize(nr + 1, (0, 0));
        }
        let (count, all) = &mut self.inside[nr];
        if *count >= REMEMBERED {
            (*count, *all) = (*count / 2, *all / 2);
        }
        (*count, *all) = (*count + 1, *all + took);
    }

    /// The duration of a call of which neither entry nor return was recorded, in ns.
    fn each(&self, nr: u16) -> u64 {
        let (count, all) = self.inside.get(usize::from(nr)).copied().unwrap_or((0, 0));
        (all / count.max(1)).saturating_sub(self.recording)
    }
}

impl Follow<'_> {
    /// A call of this task, and of any later task with its tid, is recorded only by events of its own.
    pub(crate) fn excludes(&mut self, task: u32, since: u64) {
        self.decimation.passed.entry(task).or_insert(since);
    }

    /// A new task has this tid.
    pub(super) fn tid_reused(&mut self, task: u32, at: u64) {
        if self.decimation.passed.get(&task).is_some_and(|since| at > *since) {
            self.decimation.forget(|of| of == task);
            self.stats.reused_tids += 1;
        }
    }

    /// 1 in N entries: the other calls have its arguments.
    pub(super) fn enter_nth(&mut self, record: &Record<'_>, sample: &Sample<'_>) {
        let Some((nr, args)) = self.call_of(sample) else { return };
        self.decimation.of.entry((record.task, nr)).or_default().args = Some(args);
    }

    /// 1 in N returns: it stands for the calls since the last one.
    pub(super) fn leave_nth(&mut self, record: &Record<'_>, sample: &Sample<'_>) {
        let Some((nr, _)) = self.call_of(sample) else { return };
        let ret = sample.raw_u64(self.offsets.leave_ret).unwrap_or(0).cast_signed();
        let Some(UnrecordedCalls { until, count, .. }) = self.unrecorded.take() else { return };
        let of = self.decimation.of.entry((record.task, nr)).or_default();
        of.ret = ret;
        let count = count.saturating_sub(std::mem::take(&mut of.alone));
        let called = self.tasks.get(&record.task).and_then(|task| task.called);
        let before = called.filter(|(of, _)| *of == nr).map(|(_, args)| args);
        let Some(args) = of.args.or(before) else {
            self.stats.missed += u64::from(count);
            return;
        };
        if count > 0 {
            self.stats.decimated += u64::from(count);
            // Events that were passed on meanwhile were later than the calls' beginning.
            let over = until.saturating_sub(self.last.max(record.at));
            let inside = (self.decimation.each(nr) * u64::from(count)).min(over);
            let calls = Calls { nr, args, ret, count, inside, over };
            self.emit(record, record.task, RawKind::Calls(calls));
        }
    }

    /// The stack at a call without other records; true if it was one.
    pub(super) fn site_of_decimated(&mut self, record: &Record<'_>, sample: &Sample<'_>) -> bool {
        let at_call = self
            .tasks
            .get(&record.task)
            .is_some_and(|t| t.expected_user_stack == Some(Role::CallSite));
        if sample.role != Role::CallSite || self.decimation.of.is_empty() || at_call {
            return false;
        }
        let Some((nr, args)) = self.call_of(sample) else { return false };
        let Some(of) = self.decimation.of.get_mut(&(record.task, nr)) else { return false };
        of.alone += 1;
        let ret = of.ret;
        sample.split_chain(&mut self.kernel_chain, &mut self.user_chain);
        let chain = std::mem::take(&mut self.user_chain);
        self.emit(record, record.task, RawKind::Syscall { nr, args });
        if let Some(user) = user_state(sample, &chain) {
            self.emit(record, record.task, RawKind::Site(user));
        }
        // As long as a recorded one: a call without length would have no weight among call sites.
        let at = self.last + self.decimation.each(nr) + self.decimation.recording;
        let back = Record { at, body: Body::Other, ..*record };
        self.emit(&back, record.task, RawKind::Back { ret });
        self.user_chain = chain;
        true
    }

    fn call_of(&self, sample: &Sample<'_>) -> Option<(u16, [u64; 6])> {
        let nr = u16::try_from(sample.raw_u32(self.offsets.enter_nr)?).ok()?;
        let arg = |i| sample.raw_u64(self.offsets.enter_args + 8 * i).unwrap_or(0);
        Some((nr, std::array::from_fn(arg)))
    }
}
