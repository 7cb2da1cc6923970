//! Teams: similar tasks side by side. The path goes through one of them; the mix of all is representative.
//!
//! Members have the same parent, the same start (the function of a thread, the program of a process;
//! without either, the name), and lives that overlap. Workers that differ are no team: if only
//! the last one gets faster, that saves at most the time by which it ended after the one before it.

use crate::path::Subject;
use crate::path::causes::{Cause, Totals, cause};
use crate::timeline::{Run, Timeline};
use deadweight_trace::ids::{NameId, StackId, TaskId};
use deadweight_trace::symbols::Symbols;
use deadweight_trace::units::Ns;
use std::collections::BTreeMap;

/// How much of the longest life all lives must have in common.
const OVERLAP: f64 = 0.8;

/// Similar tasks side by side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Team {
    /// The members, by birth; at least two.
    pub members: Vec<TaskId>,
    /// What they have in common.
    pub start: Start,
    /// CPU time of all members by cause.
    pub mix: BTreeMap<Cause, Ns>,
    /// The member that ended last.
    pub straggler: TaskId,
    /// How much later than the one before.
    pub lead: Ns,
}

/// What a task began with.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Start {
    /// A thread's function.
    Function(NameId),
    /// The program that it executes.
    Program(NameId),
    /// Only its name is known.
    Name(NameId),
}

/// Finds the subject's teams, in order of their parents' births.
#[must_use]
pub fn teams(timeline: &Timeline, symbols: &Symbols, subject: &Subject) -> Vec<Team> {
    let starts = starts(timeline, symbols);
    let mut like: BTreeMap<(TaskId, Start), Vec<TaskId>> = BTreeMap::new();
    for (index, task) in timeline.tasks.iter().enumerate().filter(|(i, _)| subject.own[*i]) {
        if let Some(parent) = task.parent {
            like.entry((parent, starts[index])).or_default().push(TaskId::at(index));
        }
    }
    let mut found = Vec::new();
    for ((_, start), mut members) in like {
        members.sort_by_key(|t| (timeline.task(*t).birth, *t));
        let mut group: Vec<TaskId> = Vec::new();
        let mut common = (Ns::MAX, Ns::ZERO);
        for member in members {
            let life = timeline.task(member);
            let joined = (common.0.min(life.end), common.1.max(life.end - life.birth));
            // In order of birth: the time that all lives share begins at the latest member's birth.
            if (joined.0 - life.birth).share_of(joined.1) >= OVERLAP {
                common = joined;
            } else {
                found.extend(team(timeline, subject, start, std::mem::take(&mut group)));
                common = (life.end, life.end - life.birth);
            }
            group.push(member);
        }
        found.extend(team(timeline, subject, start, group));
    }
    found
}

fn team(
    timeline: &Timeline,
    subject: &Subject,
    start: Start,
    members: Vec<TaskId>,
) -> Option<Team> {
    if members.len() < 2 {
        return None;
    }
    let mut by_end = members.clone();
    by_end.sort_by_key(|t| (timeline.task(*t).end, *t));
    let (straggler, before) = (by_end[by_end.len() - 1], by_end[by_end.len() - 2]);
    let lead = timeline.task(straggler).end - timeline.task(before).end;
    let mut totals = Totals::default();
    for member in &members {
        let task = timeline.task(*member);
        for (index, span) in task.spans.iter().enumerate() {
            let (from, to) = (span.start.max(subject.start), task.span_end(index).min(subject.end));
            if matches!(span.run(), Run::OnCpu(_)) && from < to {
                totals.add(cause(timeline, subject, *member, span), to - from);
            }
        }
    }
    Some(Team { members, start, mix: totals.into_map(), straggler, lead })
}

/// What each task of the timeline began with.
pub(crate) fn starts(timeline: &Timeline, symbols: &Symbols) -> Vec<Start> {
    let mut sites = vec![StackId(0); timeline.tasks.len()];
    for call in timeline.calls.iter().filter(|c| c.site != StackId(0)) {
        let site = &mut sites[call.task.index()];
        if *site == StackId(0) {
            *site = call.site;
        }
    }
    let of = |(index, task): (usize, &crate::timeline::Task)| {
        let samples = task.samples.iter().map(|s| s.stack);
        let function = samples.chain([sites[index]]).find_map(|s| start_function(symbols, s));
        let program = task.execs.first().map(|(_, path)| Start::Program(*path));
        let name = || Start::Name(task.names.last().map_or(NameId(0), |(_, name)| *name));
        program.or(function.map(Start::Function)).unwrap_or_else(name)
    };
    timeline.tasks.iter().enumerate().map(of).collect()
}

/// The function that a thread with this stack was started with: the first above the library functions that
/// start threads. None if the stack does not reach down to those.
fn start_function(symbols: &Symbols, stack: StackId) -> Option<NameId> {
    const BOTTOM: [&str; 7] = [
        "clone",
        "clone3",
        "__clone",
        "__clone3",
        "start_thread",
        "thread_start",
        "runtime.goexit",
    ];
    const LIBRARY: [&str; 8] =
        ["std::", "core::", "alloc::", "<", "__", "void std::", "execute_native", "runtime."];
    let frames: Vec<_> = symbols.frames(stack).map(|(_, frame)| frame.function).collect();
    let mut outward_in = frames.iter().rev().map(|f| (*f, symbols.name(*f)));
    let bottom = |name: &str| BOTTOM.iter().any(|b| name == *b || name.starts_with("runtime.go"));
    if !outward_in.next().is_some_and(|(_, name)| bottom(name)) {
        return None;
    }
    outward_in
        .find(|(_, name)| {
            !name.is_empty() && !bottom(name) && !LIBRARY.iter().any(|l| name.starts_with(l))
        })
        .map(|(function, _)| function)
}

#[cfg(test)]
mod tests;
