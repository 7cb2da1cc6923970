//! The programs that a process starts, and the copies of it that stand between: a shell makes one for `$(...)`, and
//! one for each part of a pipeline.

use crate::facts::Facts;
use crate::facts::processes::ProcessId;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// From this many programs on it is a loop.
pub(crate) const LOOP: usize = 10;
/// A copy of a process, and copies of that: a shell makes one for `$(...)`, and one for each part of a
/// pipeline in it.
const COPIES: u32 = 3;
/// A copy that starts nothing belongs to the child beside it; one that lives beside more of them has work of its own.
const BESIDE: usize = 3;

/// A child of a process, and what it was started for.
#[derive(Debug)]
pub(crate) struct Turn {
    /// The child.
    pub(crate) child: ProcessId,
    /// It, or the programs that copies of its parent started in its place.
    pub(crate) programs: Vec<ProcessId>,
    /// These copies, and those beside them that start nothing: `echo` in `$(echo "$x" | tr a b)`.
    pub(crate) copies: Vec<ProcessId>,
}

/// What a process started, in order of birth.
#[derive(Debug, Default)]
pub(crate) struct Started {
    /// Each child that was started for a program.
    pub(crate) turns: Vec<Turn>,
}

impl Started {
    /// The programs that a process started, itself or through copies of itself. A copy that starts many has a
    /// loop of its own: they count there.
    pub(crate) fn of(facts: &Facts<'_>, parent: ProcessId) -> Self {
        let of_parent = &facts.processes.get(parent).children;
        let turns = of_parent.iter().filter_map(|child| turn(facts, *child, COPIES));
        let mut found = Self { turns: turns.collect() };
        for child in of_parent.iter().filter(|child| starts_nothing(facts, **child)) {
            found.add_beside(facts, *child);
        }
        found
    }

    /// Adds a copy that starts nothing to the child beside it: both are parts of a pipeline.
    fn add_beside(&mut self, facts: &Facts<'_>, copy: ProcessId) {
        let life = |id| (facts.processes.get(id).birth, facts.processes.get(id).end);
        let (birth, end) = life(copy);
        let before = self.turns.partition_point(|turn| life(turn.child).0 < end);
        let near = before.saturating_sub(BESIDE + 1)..before;
        let beside: Vec<usize> = near.filter(|at| life(self.turns[*at].child).1 > birth).collect();
        if let [first, ..] = beside[..]
            && beside.len() <= BESIDE
        {
            self.turns[first].copies.push(copy);
        }
    }

    /// All programs.
    pub(crate) fn programs(&self) -> impl Iterator<Item = ProcessId> {
        self.turns.iter().flat_map(|turn| turn.programs.iter().copied())
    }

    /// The programs that were started often, by their path, the most frequent first. Different programs, a few
    /// times each, are steps and no loop.
    pub(crate) fn loops(&self, facts: &Facts<'_>) -> Vec<Vec<ProcessId>> {
        let mut found: BTreeMap<&str, Vec<ProcessId>> = BTreeMap::new();
        for id in self.programs() {
            found.entry(&facts.processes.get(id).path).or_default().push(id);
        }
        let mut found: Vec<_> = found.into_values().filter(|ids| ids.len() >= LOOP).collect();
        found.sort_by_key(|ids| Reverse(ids.len()));
        found
    }
}

fn starts_nothing(facts: &Facts<'_>, id: ProcessId) -> bool {
    let process = facts.processes.get(id);
    process.own && !process.executed() && process.children.is_empty()
}

/// What this child was started for; none if it is a copy of its parent that starts nothing, or many.
fn turn(facts: &Facts<'_>, child: ProcessId, depth: u32) -> Option<Turn> {
    let process = facts.processes.get(child);
    if !process.own {
        return None;
    }
    if process.executed() {
        return Some(Turn { child, programs: vec![child], copies: Vec::new() });
    }
    let depth = depth.checked_sub(1)?;
    let mut found = Turn { child, programs: Vec::new(), copies: vec![child] };
    for id in &process.children {
        if let Some(below) = turn(facts, *id, depth) {
            found.programs.extend(below.programs);
            found.copies.extend(below.copies);
        } else if starts_nothing(facts, *id) {
            found.copies.push(*id);
        }
    }
    (1..LOOP).contains(&found.programs.len()).then_some(found)
}

/// These programs and what they stand for: the one program that `sh -c`, `env` or `nice` was started for.
/// What a program starts otherwise is that program's affair. In order, each once.
pub(crate) fn with_wrapped(facts: &Facts<'_>, programs: &[ProcessId]) -> Vec<ProcessId> {
    let mut found = programs.to_vec();
    let mut next = 0;
    while let Some(id) = found.get(next).copied() {
        next += 1;
        if facts.processes.get(id).is_launcher() {
            let started = Started::of(facts, id);
            let mut wrapped = started.programs();
            if let (Some(wrapped), None) = (wrapped.next(), wrapped.next()) {
                found.push(wrapped);
            }
        }
    }
    found.sort_unstable();
    found.dedup();
    found
}
