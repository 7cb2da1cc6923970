//! Choice of the process whose wall time is divided: the command, or a named process inside it.

use super::{Service, Subject};
use crate::timeline::Timeline;
use deadweight_trace::Trace;
use deadweight_trace::ids::{TaskId, Tid};
use deadweight_trace::units::Ns;

/// A process that fits a wanted name.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Its process id.
    pub process: Tid,
    /// Its task that got the name.
    pub task: TaskId,
    /// From when it has the name (its exec).
    pub start: Ns,
    /// Its last death, or the end of the recording.
    pub end: Ns,
    /// CPU time of it and its descendants.
    pub cpu: Ns,
    /// Whether its wall time is the one that is divided.
    pub taken: bool,
}

/// No process fits the wanted name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no process called {wanted} ran; there were: {present}")]
pub struct NoProcess {
    /// What was asked for.
    pub wanted: String,
    /// Names of the programs that ran, separated by commas.
    pub present: String,
}

impl Subject {
    /// The command with its descendants, or the process called `of` with its descendants. `of` is a `comm`
    /// or a program's file name; `NAME:2` is the second of that name, by start. Of several the one with
    /// most CPU time is taken; all are in [`Subject::candidates`].
    ///
    /// # Errors
    /// If no process fits `of`.
    pub fn choose(trace: &Trace, timeline: &Timeline, of: Option<&str>) -> Result<Self, NoProcess> {
        let mut subject = match of {
            None => Self::command(trace, timeline),
            Some(wanted) => Self::named(trace, timeline, wanted)?,
        };
        subject.service = Service::of(trace, timeline, &subject);
        Ok(subject)
    }

    fn command(trace: &Trace, timeline: &Timeline) -> Self {
        let root = timeline.task(timeline.root);
        let start = trace.meta.start.max(root.birth);
        // A recording that was cut off has no end of the command.
        let known = if trace.meta.end > start { trace.meta.end } else { root.end.max(start) };
        // The time until the recorder noticed the end is not the command's.
        let threads = timeline.tasks.iter().filter(|t| t.own && t.process == root.process);
        let gone = threads.clone().all(|t| t.died);
        let last = threads.map(|t| t.end).fold(start, Ns::max);
        let end = if gone { known.min(last) } else { known };
        Self {
            process: root.process,
            root: timeline.root,
            start,
            end,
            own: timeline.tasks.iter().map(|t| t.own).collect(),
            service: None,
            candidates: Vec::new(),
        }
    }

    fn named(trace: &Trace, timeline: &Timeline, wanted: &str) -> Result<Self, NoProcess> {
        let mut choice = None;
        let mut fits = named(trace, timeline, wanted);
        if fits.is_empty()
            && let Some((name, number)) = wanted.rsplit_once(':')
        {
            choice = number.parse::<usize>().ok().and_then(|n| n.checked_sub(1));
            if choice.is_some() {
                fits = named(trace, timeline, name);
            }
        }
        let mut subjects: Vec<_> =
            fits.iter().map(|(task, start)| Self::process_of(timeline, *task, *start)).collect();
        let mut candidates: Vec<_> = subjects.iter().map(|s| s.candidate(timeline)).collect();
        let most = || {
            let by_cpu = candidates.iter().enumerate();
            by_cpu.max_by_key(|(i, c)| (c.cpu, std::cmp::Reverse(*i))).map(|(i, _)| i)
        };
        match choice.or_else(most).filter(|i| *i < subjects.len()) {
            Some(taken) => {
                candidates[taken].taken = true;
                let mut subject = subjects.swap_remove(taken);
                subject.candidates = candidates;
                Ok(subject)
            }
            None => Err(NoProcess {
                wanted: wanted.to_owned(),
                present: present(trace, timeline).join(", "),
            }),
        }
    }

    /// The process of `task` from `start` to its last death, with its descendants since then.
    fn process_of(timeline: &Timeline, task: TaskId, start: Ns) -> Self {
        let process = timeline.task(task).process;
        let mut own = vec![false; timeline.tasks.len()];
        own[task.index()] = true;
        let mut by_birth: Vec<_> = (0..timeline.tasks.len())
            .filter(|i| timeline.tasks[*i].own && timeline.tasks[*i].birth >= start)
            .collect();
        by_birth.sort_by_key(|i| (timeline.tasks[*i].birth, *i));
        for index in by_birth {
            let parent = timeline.tasks[index].parent;
            own[index] |= parent.is_some_and(|p| own[p.index()]);
        }
        let ends = timeline.tasks.iter().zip(&own);
        let end = ends
            .filter(|(t, own)| **own && t.process == process)
            .map(|(t, _)| t.end)
            .fold(start, Ns::max);
        Self { process, root: task, start, end, own, service: None, candidates: Vec::new() }
    }

    fn candidate(&self, timeline: &Timeline) -> Candidate {
        let cpu = (0..timeline.tasks.len())
            .filter(|i| self.own[*i])
            .map(|i| timeline.tasks[i].on_cpu_between(self.start, self.end))
            .sum();
        let (process, task) = (self.process, self.root);
        Candidate { process, task, start: self.start, end: self.end, cpu, taken: false }
    }
}

/// The processes that became `wanted`, and when, in order of time. A name that was inherited at
/// birth does not count: a subshell is not another shell.
fn named(trace: &Trace, timeline: &Timeline, wanted: &str) -> Vec<(TaskId, Ns)> {
    let mut fits = Vec::new();
    for (index, task) in timeline.tasks.iter().enumerate() {
        if !task.own || task.tid != task.process {
            continue;
        }
        let program = task.execs.iter().find(|(_, path)| {
            let path = trace.symbols.name(*path);
            path == wanted || path.rsplit('/').next() == Some(wanted)
        });
        let inherited = usize::from(task.parent.is_some());
        let names = task.names.iter().skip(inherited);
        let called = names.clone().find(|(_, name)| trace.symbols.name(*name) == wanted);
        if let Some((at, _)) = program.or(called) {
            fits.push((TaskId::at(index), *at));
        }
    }
    fits.sort_by_key(|(task, at)| (*at, *task));
    fits
}

/// Names of the programs that ran, each once, in order of their first start.
fn present(trace: &Trace, timeline: &Timeline) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for task in timeline.tasks.iter().filter(|t| t.own && t.tid == t.process) {
        // Its name before it became a program is that of its parent.
        let first = task.execs.first().map_or(Ns::ZERO, |(at, _)| *at);
        let programs = task.execs.iter().map(|(_, path)| {
            let path = trace.symbols.name(*path);
            path.rsplit('/').next().unwrap_or(path)
        });
        let later = task.names.iter().filter(|(at, _)| *at >= first);
        for name in programs.chain(later.map(|(_, name)| trace.symbols.name(*name))) {
            if !name.is_empty() && !names.iter().any(|n| n == name) {
                names.push(name.to_owned());
            }
        }
    }
    names
}
