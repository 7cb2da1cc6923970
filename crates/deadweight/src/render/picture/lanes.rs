//! Which tasks get a lane, their cells, and the path through them.

use super::cells::{self, Texts, cut};
use super::{Lane, Step};
use deadweight_core::OneRun;
use deadweight_trace::ids::TaskId;
use std::collections::BTreeMap;

/// The most lanes.
const LANES: usize = 40;
/// A task whose life is a smaller part of the wall time could not be seen.
const SHORT: u64 = 500;
/// Cells of all lanes together, without those of short states between long ones.
const CELLS: usize = 6000;
/// The most of one lane, likewise.
const OF_LANE: usize = 750;
/// Steps of the path, likewise.
const STEPS: u64 = 600;

/// The tasks that get a lane.
pub(super) struct Chosen {
    /// In order of birth.
    tasks: Vec<TaskId>,
    lane_of: BTreeMap<TaskId, usize>,
    /// How many do not.
    pub(super) left_out: usize,
}

impl Chosen {
    /// The root, then of those whose life can be seen: those that are longest on the path, then those that use most CPU time.
    pub(super) fn of(run: &OneRun<'_, '_>) -> Self {
        let subject = &run.path().subject;
        let timeline = run.timeline();
        let mut on_path: BTreeMap<TaskId, u64> = BTreeMap::new();
        for piece in &run.path().pieces {
            *on_path.entry(piece.task).or_default() += (piece.end - piece.start).0;
        }
        let lives = |id: &TaskId| {
            let task = timeline.task(*id);
            subject.owns(*id) && task.birth < subject.end && task.end > subject.start
        };
        let mut tasks: Vec<TaskId> =
            (0..timeline.tasks.len()).map(TaskId::at).filter(lives).collect();
        tasks.sort_by_cached_key(|id| {
            let weight = on_path.get(id).copied().unwrap_or(0);
            let cpu = timeline.task(*id).on_cpu_between(subject.start, subject.end).0;
            std::cmp::Reverse((*id == subject.root, weight, cpu))
        });
        let all = tasks.len();
        let seen = |id: &TaskId| {
            let task = timeline.task(*id);
            let life = task.end.min(subject.end) - task.birth.max(subject.start);
            *id == subject.root || life.0.saturating_mul(SHORT) >= subject.wall().0
        };
        tasks.retain(seen);
        tasks.truncate(LANES);
        let left_out = all - tasks.len();
        let mut processes = BTreeMap::new();
        for id in &tasks {
            let task = timeline.task(*id);
            let birth = processes.entry(task.process).or_insert(task.birth);
            *birth = task.birth.min(*birth);
        }
        tasks.sort_by_key(|id| {
            let task = timeline.task(*id);
            (processes.get(&task.process).copied(), task.process, task.birth, *id)
        });
        let lane_of = tasks.iter().enumerate().map(|(at, id)| (*id, at)).collect();
        Self { tasks, lane_of, left_out }
    }

    /// The lane of a task.
    pub(super) fn lane(&self, task: TaskId) -> Option<usize> {
        self.lane_of.get(&task).copied()
    }

    /// The length from which on states get cells of their own.
    pub(super) fn cell_ns(&self, wall: u64) -> u64 {
        let each = (CELLS / self.tasks.len().max(1)).clamp(1, OF_LANE);
        wall.div_ceil(each as u64).max(1)
    }

    /// The lanes.
    pub(super) fn lanes(&self, run: &OneRun<'_, '_>, cell_ns: u64, texts: &mut Texts) -> Vec<Lane> {
        let lane = |id: &TaskId| {
            let task = run.timeline().task(*id);
            Lane {
                name: cut(&run.process_name(*id)),
                pid: task.process.0,
                tid: task.tid.0,
                cells: cells::cells(run, *id, cell_ns, texts),
            }
        };
        self.tasks.iter().map(lane).collect()
    }
}

/// Pieces of the path that become one step.
#[derive(Default)]
struct Pieces {
    start: u64,
    end: u64,
    lanes: BTreeMap<Option<usize>, u64>,
}

impl Pieces {
    /// Adds them to the steps, in the lane that has most of them.
    fn close(&mut self, steps: &mut Vec<Step>) {
        let Self { start, end, lanes } = std::mem::take(self);
        let Some((lane, _)) = lanes.into_iter().max_by_key(|(_, ns)| *ns) else { return };
        match steps.last_mut() {
            Some(last) if last.2 == lane && last.1 == start => last.1 = end,
            _ => steps.push(Step(start, end, lane)),
        }
    }
}

/// The path; short pieces together are one step.
pub(super) fn path(run: &OneRun<'_, '_>, chosen: &Chosen) -> Vec<Step> {
    let subject = &run.path().subject;
    let least = subject.wall().0.div_ceil(STEPS).max(1);
    let (mut steps, mut open) = (Vec::new(), Pieces::default());
    for piece in &run.path().pieces {
        let (start, end) = ((piece.start - subject.start).0, (piece.end - subject.start).0);
        if end - start >= least {
            open.close(&mut steps);
        }
        if open.lanes.is_empty() {
            open.start = start;
        }
        open.end = end;
        *open.lanes.entry(chosen.lane(piece.task)).or_default() += end - start;
        if open.end - open.start >= least {
            open.close(&mut steps);
        }
    }
    open.close(&mut steps);
    steps
}
