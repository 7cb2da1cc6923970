//! The probe hits of a counting run, added up by the stacks that they came from.
//!
//! A stack was taken of some hits only. Hits of one size from one caller at one stack depth are attributed
//! to the stacks taken of such hits, in proportion; nearly always there is one. The other modules of
//! `counts` interpret the numbers.

use super::{ProbeKind, STOPPED};
use crate::path::Subject;
use crate::timeline::Timeline;
use deadweight_report::report::CountBasis;
use deadweight_report::stats::apportion::apportion;
use deadweight_trace::ids::{LocationId, NameId, StackId, TaskId, Tid};
use deadweight_trace::symbols::Symbols;
use deadweight_trace::units::Ns;
use deadweight_trace::{Kind, Trace};
use std::collections::BTreeMap;

/// Beyond this many places, the hits of all others are added up as one.
const PLACES: usize = 1 << 16;
/// Beyond this many sizes at one place, all others are added up as one.
const SIZES: usize = 64;
/// How far the program had come when counting stopped is estimated from samples; with fewer than this until
/// then, it is unknown.
const ENOUGH: u64 = 40;

/// Between probes a program's own code takes up to so many times as long.
const COLD: f64 = 5.0;

/// Hits and bytes.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Sum {
    pub(super) count: u64,
    pub(super) bytes: u64,
    /// The fewest bytes at once, and the most.
    pub(super) range: Option<(u64, u64)>,
}

impl std::ops::AddAssign for Sum {
    fn add_assign(&mut self, more: Self) {
        self.count += more.count;
        self.bytes = self.bytes.saturating_add(more.bytes);
        self.range = match (self.range, more.range) {
            (Some(a), Some(b)) => Some((a.0.min(b.0), a.1.max(b.1))),
            (one, other) => one.or(other),
        };
    }
}

/// Hits of one kind of probe.
#[derive(Debug, Default)]
pub(super) struct Hits {
    places: BTreeMap<u64, Place>,
}

/// From one caller at one stack depth.
#[derive(Debug, Default)]
struct Place {
    sum: Sum,
    stacks: Stacks,
    /// By the number of bytes: a helper's callers often differ in that.
    sizes: BTreeMap<u64, (u64, Stacks)>,
}

/// How often each stack was taken.
type Stacks = BTreeMap<StackId, u64>;

impl Place {
    fn of_size(&mut self, bytes: u64) -> &mut (u64, Stacks) {
        let known = self.sizes.len() < SIZES || self.sizes.contains_key(&bytes);
        self.sizes.entry(if known { bytes } else { u64::MAX }).or_default()
    }

    fn hit(&mut self, bytes: u64) {
        self.sum += Sum { count: 1, bytes, range: Some((bytes, bytes)) };
        self.of_size(bytes).0 += 1;
    }

    fn taken(&mut self, bytes: u64, stack: StackId) {
        *self.stacks.entry(stack).or_default() += 1;
        *self.of_size(bytes).1.entry(stack).or_default() += 1;
    }

    /// Its hits by stack; nothing if none was taken.
    fn by_stack(&self, mut found: impl FnMut(StackId, Sum)) {
        for (size, (hits, stacks)) in &self.sizes {
            let stacks = if stacks.is_empty() { &self.stacks } else { stacks };
            let weights: Vec<u64> = stacks.values().copied().collect();
            for (stack, count) in stacks.keys().zip(apportion(*hits, &weights)) {
                let of_one_size = || (count.saturating_mul(*size), Some((*size, *size)));
                let of_several =
                    || (self.sum.bytes / self.sum.count.max(1) * count, self.sum.range);
                let (bytes, range) = if *size == u64::MAX { of_several() } else { of_one_size() };
                found(*stack, Sum { count, bytes, range });
            }
        }
    }
}

impl Hits {
    /// Scales counts of the part `come` of a run to all of it.
    fn scale(&mut self, come: f64) {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive")]
        let whole = |n: u64| (n as f64 / come).round() as u64;
        for place in self.places.values_mut() {
            (place.sum.count, place.sum.bytes) = (whole(place.sum.count), whole(place.sum.bytes));
            place.sizes.values_mut().for_each(|(hits, _)| *hits = whole(*hits));
        }
    }

    fn place(&mut self, key: u64) -> &mut Place {
        let known = self.places.len() < PLACES || self.places.contains_key(&key);
        self.places.entry(if known { key } else { u64::MAX }).or_default()
    }

    /// All of them.
    pub(super) fn all(&self) -> Sum {
        let mut all = Sum::default();
        self.places.values().for_each(|place| all += place.sum);
        all
    }

    /// By stack. Hits at places without a stack are left out.
    pub(super) fn by_stack(&self) -> BTreeMap<StackId, Sum> {
        let mut found: BTreeMap<StackId, Sum> = BTreeMap::new();
        for place in self.places.values() {
            place.by_stack(|stack, sum| *found.entry(stack).or_default() += sum);
        }
        found
    }

    /// Hits whose stacks `hold`. Places without a stack have few hits: they are divided like the first hits
    /// of all places.
    pub(super) fn of(&self, holds: &dyn Fn(StackId) -> bool) -> Sum {
        let mut part = Sum::default();
        let held = self.by_stack().into_iter().filter(|(stack, _)| holds(*stack));
        held.for_each(|(_, sum)| part += sum);
        part
    }
}

/// The probe hits of a counting run.
#[derive(Debug)]
pub(super) struct Tally<'a> {
    trace: &'a Trace,
    timeline: &'a Timeline,
    subject: &'a Subject,
    pub(super) calls: Hits,
    pub(super) allocations: Hits,
    pub(super) throws: Hits,
    /// When counting stopped, from the start of the run, if that was before the end.
    pub(super) stopped: Option<Ns>,
    /// The subject's progress by then, if there are enough samples.
    pub(super) come: Option<f64>,
}

impl<'a> Tally<'a> {
    /// Adds up the hits of the subject's tasks.
    /// `whole`: the time in the program's own code of a run without probes.
    pub(super) fn of(
        trace: &'a Trace,
        timeline: &'a Timeline,
        subject: &'a Subject,
        whole: Ns,
    ) -> Self {
        let mut tally = Self {
            trace,
            timeline,
            subject,
            calls: Hits::default(),
            allocations: Hits::default(),
            throws: Hits::default(),
            stopped: None,
            come: None,
        };
        let id = |name: &str| trace.symbols.names.iter().position(|n| n == name).map(NameId::at);
        let kinds = [ProbeKind::Call, ProbeKind::Allocation, ProbeKind::Throw]
            .map(|mark| (id(mark.hit_name()), id(mark.stack_name())));
        let stopped = id(STOPPED);
        let own = Own::of(timeline, subject);
        for event in trace.events() {
            let Kind::Probe { probe, args: [bytes, place], stack } = event.kind else { continue };
            if Some(probe) == stopped {
                tally.stopped = Some(event.at - trace.meta.start);
            }
            let all = [&mut tally.calls, &mut tally.allocations, &mut tally.throws];
            for ((hit, stacks), hits) in kinds.iter().zip(all) {
                let fits = *hit == Some(probe) || *stacks == Some(probe);
                if !fits || !own.has(event.task, event.at) {
                    continue;
                }
                let place = hits.place(place);
                if *hit == Some(probe) {
                    place.hit(bytes);
                } else {
                    place.taken(bytes, stack);
                }
            }
        }
        tally.come = tally.stopped.and_then(|at| tally.come_by(trace.meta.start + at, whole));
        if let Some(come) = tally.come {
            tally.calls.scale(come);
            tally.allocations.scale(come);
            tally.throws.scale(come);
        }
        tally
    }

    pub(super) fn symbols(&self) -> &'a Symbols {
        &self.trace.symbols
    }

    /// The samples of own tasks in their own code.
    pub(super) fn samples(&self) -> impl Iterator<Item = StackId> {
        let own = self.timeline.tasks.iter().zip(&self.subject.own).filter(|(_, own)| **own);
        let samples = own.flat_map(|(task, _)| &task.samples).filter(|sample| !sample.kernel);
        samples.map(|sample| sample.stack)
    }

    /// The ratio of what was counted to the whole run.
    pub(super) fn basis(&self) -> CountBasis {
        match (self.stopped, self.come) {
            (None, _) => CountBasis::Exact,
            (Some(_), Some(_)) => CountBasis::Estimate,
            (Some(_), None) => CountBasis::AtLeast,
        }
    }

    /// The part of the subject's own work that was done at `at`: by samples of its own code. None if too few were taken before.
    ///
    /// Probes leave the caches cold, so what is done between them takes longer. What is left at `at` does not: where all of it
    /// is known from a run without probes, that decides.
    fn come_by(&self, at: Ns, whole: Ns) -> Option<f64> {
        let own = self.timeline.tasks.iter().zip(&self.subject.own).filter(|(_, own)| **own);
        let samples = own.flat_map(|(task, _)| &task.samples).filter(|sample| !sample.kernel);
        let mut places: BTreeMap<Option<LocationId>, Progress> = BTreeMap::new();
        for sample in samples {
            let place = self.symbols().stack(sample.stack).first().copied();
            let progress = places.entry(place).or_default();
            let before = sample.at <= at;
            *progress = progress.and(Progress { before: before.into(), after: (!before).into() });
        }
        let mut places: Vec<Progress> = places.into_values().collect();
        drop_probes(&mut places);
        let Progress { before, after } = sum(&places);
        let left = Ns(after.saturating_mul(self.trace.meta.sample_period)).share_of(whole);
        (before >= ENOUGH).then(|| {
            let by_samples = before as f64 / (before + after) as f64;
            (1.0 - left).clamp(by_samples / COLD, by_samples)
        })
    }
}

/// The samples at one instruction, until counting stopped and after it.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
struct Progress {
    before: u64,
    after: u64,
}

impl Progress {
    fn and(self, more: Self) -> Self {
        Self { before: self.before + more.before, after: self.after + more.after }
    }
}

fn sum(places: &[Progress]) -> Progress {
    places.iter().fold(Progress::default(), |all, place| all.and(*place))
}

/// Leaves out the instructions behind probes. A sample that is due while the kernel handles a probe comes when it returns to
/// the program: there are far more of them there before counting stopped than after, compared with all other places.
fn drop_probes(places: &mut Vec<Progress>) {
    /// So many times as many, and so many at all.
    const FAR_MORE: u64 = 3;
    const MANY: u64 = 20;
    let ratio = |place: &Progress| 1000 * place.before / (place.after + 1);
    loop {
        let many = places.iter().enumerate().filter(|(_, place)| place.before >= MANY);
        let Some((at, place)) = many.max_by_key(|(_, place)| ratio(place)) else { return };
        let (all, Progress { before, after }) = (sum(places), *place);
        let others = Progress { before: all.before - before, after: all.after - after };
        // before / after > FAR_MORE * others.before / others.after, without a division by 0.
        let stands_out = before * (others.after + 1) > FAR_MORE * others.before * (after + 1);
        if others.before + others.after < ENOUGH || !stands_out {
            return;
        }
        places.swap_remove(at);
    }
}

/// The tasks of the subject, by tid.
struct Own<'t> {
    timeline: &'t Timeline,
    by_tid: BTreeMap<Tid, Vec<TaskId>>,
}

impl<'t> Own<'t> {
    fn of(timeline: &'t Timeline, subject: &Subject) -> Self {
        let mut by_tid: BTreeMap<Tid, Vec<TaskId>> = BTreeMap::new();
        let own = timeline.tasks.iter().enumerate().filter(|(index, _)| subject.own[*index]);
        for (index, task) in own {
            by_tid.entry(task.tid).or_default().push(TaskId::at(index));
        }
        Self { timeline, by_tid }
    }

    fn has(&self, tid: Tid, at: Ns) -> bool {
        self.by_tid.get(&tid).is_some_and(|lives| {
            let task = |id: &TaskId| self.timeline.task(*id);
            lives.iter().any(|id| task(id).birth <= at && at <= task(id).end)
        })
    }
}
