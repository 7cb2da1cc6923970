//! How long programs that are started in a loop take, and what is around them: their starts and exits, the copies of
//! their parent, and what the parent does for them.

use super::Inspection;
use super::closed_before_exec::Closing;
use super::started::{Started, Turn, with_wrapped};
use crate::account::{AccountId, Detail, EXIT, Entry, OBSERVER};
use crate::facts::Facts;
use crate::facts::processes::{Process, ProcessId};
use crate::path::cpu_holder::{CpuHolder, kept_from_cpu};
use crate::timeline::births::STARTERS;
use crate::timeline::kernel_stacks::WaitsFor;
use crate::timeline::{Run, Within};
use crate::visit_count;
use deadweight_trace::ids::{CallId, TaskId};
use deadweight_trace::units::Ns;
use std::collections::BTreeSet;

/// Programs that spend a smaller part of their time starting and ending, with those that they start, do work: there may
/// be a compiler for each file.
pub(crate) const STARTING: f64 = 0.2;
/// From this part on, programs do next to nothing beside starting and ending.
const MOSTLY: f64 = 0.5;
/// If more children than this live at the same time, what their parent does meanwhile is not for one of them.
const TOGETHER: f64 = 2.5;

/// Of what programs do beside starting and ending, this part likely goes too. Of eight pairs of programs, nearly all of
/// it went in six (a shell's own `${x##*/}`, a function of Python or Go); hardly any in two, whose other form did the
/// same work in a library function, or for five items at a time. With this part no likely saving was off by more than 18
/// points.
const GOES: f64 = 2.0 / 3.0;

/// What a parent does between two children, where it is at most one in so many parts of the time of a child, puts the
/// last one away and prepares the next: after a fork it faults on each page that it writes.
const SHORT: u64 = 10;

/// Time on the path.
#[derive(Default)]
pub(crate) struct StartingTime {
    /// Of the programs: from birth to main, in their exits; and the calls and waits by which others start and reap them.
    pub(crate) around: Ns,
    /// Of the programs, with those below them.
    pub(crate) inside: Ns,
    /// All: with the copies of the parent, and with what the parent does from a program's birth until it is reaped.
    pub(crate) all: Ns,
    /// Whether starting and ending are much of the programs' time.
    pub(crate) starts_mostly: bool,
    /// Whether the programs do next to nothing beside starting and ending: a function, or a line of the script, may do
    /// the same in no time.
    pub(crate) mostly: bool,
    /// Whether it was not seen when the own code of most programs began: how much of their work is linking is not known.
    pub(crate) unseen: bool,
}

/// Calls that start or reap a child.
pub(crate) fn is_call_for_children(name: &str) -> bool {
    matches!(
        name,
        "clone"
            | "clone3"
            | "fork"
            | "vfork"
            | "wait4"
            | "waitid"
            | "pipe"
            | "pipe2"
            | "execve"
            | "pidfd_open"
    )
}

/// Whether its time is the subject's, and not the recorder's or another program's.
pub(crate) fn is_own(e: &Entry) -> bool {
    e.account != OBSERVER && !e.is_disturbance()
}

/// Time in the calls by which a process starts and reaps others, and in waits for them.
fn is_starting(facts: &Facts<'_>, e: &Entry) -> bool {
    match e.detail {
        Detail::Calls(group) => is_call_for_children(facts.call_groups.get(group).name),
        _ => e.account == AccountId::of_class("wait-child"),
    }
}

/// Time of a program that is not its own work.
fn is_around(facts: &Facts<'_>, e: &Entry) -> bool {
    [AccountId::of_class("start-up"), EXIT].contains(&e.account) || is_starting(facts, e)
}

fn sum<'e>(entries: impl Iterator<Item = &'e Entry>) -> Ns {
    entries.filter(|e| is_own(e)).map(|e| e.ns).sum()
}

/// The time of these programs, and of those that they wrap, that is not their own work.
pub(crate) fn around(found: &Inspection<'_, '_>, programs: &[ProcessId]) -> Ns {
    let wrapped = with_wrapped(found.facts, programs);
    let entries = wrapped.iter().flat_map(|id| found.wall.in_process(*id));
    sum(entries.filter(|e| is_around(found.facts, e)))
}

/// The time of these programs with all that descends from them.
pub(crate) fn with_below(found: &Inspection<'_, '_>, programs: &[ProcessId]) -> Ns {
    let below = found.facts.processes.below(programs);
    sum(below.iter().flat_map(|id| found.wall.in_process(*id)))
}

/// What the programs of this list do themselves that only start another one of it (`sh -c`): where that is no longer
/// started, it may go, too.
pub(crate) fn of_wrappers(found: &Inspection<'_, '_>, programs: &[ProcessId]) -> Ns {
    let facts = found.facts;
    let below = with_wrapped(facts, programs);
    let wraps = |id: &&ProcessId| {
        let wrapped = |child: &ProcessId| below.binary_search(child).is_ok();
        facts.processes.get(**id).children.iter().any(wrapped)
    };
    let entries = below.iter().filter(wraps).flat_map(|id| found.wall.in_process(*id));
    sum(entries.filter(|e| !is_around(facts, e)))
}

impl StartingTime {
    /// That of these of the programs that `parent` started. What was started for several of them is divided equally.
    pub(crate) fn of(
        found: &Inspection<'_, '_>,
        parent: ProcessId,
        (started, meanwhile): (&Started, &[Ns]),
        programs: &[ProcessId],
    ) -> Self {
        let (facts, wall) = (found.facts, found.wall);
        let wanted: BTreeSet<ProcessId> = programs.iter().copied().collect();
        let part = |turn: &Turn| {
            let of_turn = turn.programs.iter().filter(|id| wanted.contains(id)).count();
            of_turn as f64 / turn.programs.len().max(1) as f64
        };
        let below: BTreeSet<ProcessId> = facts.processes.below(programs).into_iter().collect();
        let by_them = |e: &&Entry| is_held(facts, e, &below);
        let entries = |ids: &[ProcessId]| -> Vec<&Entry> {
            ids.iter().flat_map(|id| wall.in_process(*id)).filter(|e| is_own(e)).collect()
        };
        let all_below = entries(&below.iter().copied().collect::<Vec<_>>());
        let closing = Closing::of(found, programs);
        let closing = closing.ns + closing.around;
        let mut time = Self { around: around(found, programs) - closing, ..Self::default() };
        time.inside = sum(all_below.iter().copied()) - closing;
        time.unseen = begins_unseen(facts, programs);
        time.all = time.inside;
        let held = sum(all_below.iter().copied().filter(by_them));
        time.starts_mostly = time.around.share_of(time.inside) >= STARTING;
        // Who waits for a CPU that they have waits for their starts, too, whether they are on the path or not.
        let starts = starting_share(found, programs);
        let mut beside = time.around;
        for turn in started.turns.iter().filter(|turn| part(turn) > 0.0) {
            let copies = entries(&turn.copies);
            let of = |ns: Ns| ns.part(part(turn));
            let ends = of(sum(copies.iter().copied().filter(|e| is_around(facts, e))));
            let held = of(sum(copies.iter().copied().filter(by_them)));
            let faults = copies.iter().copied().filter(|e| e.detail == Detail::Faults);
            time.around += ends + held.part(starts);
            time.all += of(sum(copies.iter().copied()));
            beside += ends + of(sum(faults));
        }
        let of_programs = time.all - held;
        let parts: f64 = started.turns.iter().map(part).sum();
        let of_parent = entries(&[parent]);
        let calls = sum(of_parent.iter().copied().filter(|e| is_starting(facts, e)));
        let calls = calls.part(parts / started.turns.len().max(1) as f64);
        let waits = sum(of_parent.iter().copied().filter(by_them));
        time.around += calls + waits.part(starts);
        time.mostly = (beside + waits.part(starts)).share_of(of_programs + waits) >= MOSTLY;
        let by_turn = meanwhile.iter().zip(&started.turns);
        let meanwhile: Ns = by_turn.map(|(ns, turn)| ns.part(part(turn))).sum();
        time.all += meanwhile.max(calls + waits) + held_beside(found, parent, &below);
        time
    }

    /// The most likely saving where the programs are no longer started, and least and most.
    pub(crate) fn saving(&self, wrappers: Ns) -> (Ns, (Ns, Ns)) {
        let most = if self.mostly || self.unseen { self.all } else { self.around + wrappers };
        // Another way to do the same needs some code, too.
        let beside = (most - self.around.min(most)).part(GOES);
        let likely = if self.mostly { self.around + beside } else { self.around };
        (likely.max(self.around), (self.around, most.max(self.around)))
    }
}

/// Whether it is not known of most of these programs when their own code began. Only root has probes at main; for others it
/// is the first sample or call in the program's own file, and a short program has none.
fn begins_unseen(facts: &Facts<'_>, programs: &[ProcessId]) -> bool {
    let unseen = |id: &&ProcessId| {
        let process = facts.processes.get(**id);
        process.execs.last().is_some_and(|exec| process.began() <= *exec)
    };
    let rung = &facts.trace.meta;
    !rung.records_wakers() && programs.iter().filter(unseen).count() * 2 > programs.len()
}

/// What part of the CPU time of these programs, with those below them, is not their own work.
fn starting_share(found: &Inspection<'_, '_>, programs: &[ProcessId]) -> f64 {
    let entries = |ids: Vec<ProcessId>| ids.into_iter().flat_map(|id| found.cpu.in_process(id));
    let around = entries(with_wrapped(found.facts, programs));
    let around = sum(around.filter(|e| is_around(found.facts, e)));
    around.share_of(sum(entries(found.facts.processes.below(programs))))
}

/// Waits for a CPU that these have, of processes that `parent` did not start, such as the reader of the pipe that `xargs`
/// writes to.
fn held_beside(found: &Inspection<'_, '_>, parent: ProcessId, by: &BTreeSet<ProcessId>) -> Ns {
    let counted = found.facts.processes.below(&[parent]);
    let waits = found.wall.in_account(AccountId::of_class("wait-cpu"));
    let beside = waits.filter(|e| counted.binary_search(&e.process).is_err());
    sum(beside.filter(|e| is_held(found.facts, e, by)))
}

/// Whether it is a wait for a CPU that one of these processes had.
fn is_held(facts: &Facts<'_>, e: &Entry, by: &BTreeSet<ProcessId>) -> bool {
    match e.detail {
        Detail::Held(CpuHolder::Own(task)) => by.contains(&facts.processes.of(task)),
        _ => false,
    }
}

/// By turn: the parent's time on the path from the first call for that child until it is reaped. Not what it sleeps: a
/// parent that looks for the child's end between sleeps waits for its work.
pub(crate) fn meanwhile(
    found: &Inspection<'_, '_>,
    parent: ProcessId,
    started: &Started,
) -> Vec<Ns> {
    let facts = found.facts;
    let lives = lives(facts, parent, &started.turns);
    let net = |start: Ns, end: Ns, task| {
        let subject = &facts.path.subject;
        let away = |who: CpuHolder| who.is_foreign();
        let held = kept_from_cpu(facts.timeline, subject, task, (start, end), away);
        end - start - held - slept(facts, task, (start, end))
    };
    let mut all = Ns::ZERO;
    let mut raw = vec![Ns::ZERO; started.turns.len()];
    visit_count::visit(facts.path.pieces.len());
    let pieces = facts.path.pieces.iter().filter(|p| facts.processes.of(p.task) == parent);
    for piece in pieces {
        all += net(piece.start, piece.end, piece.task);
        let first = lives.partition_point(|(_, to)| *to <= piece.start);
        for (at, (from, to)) in lives.iter().enumerate().skip(first) {
            if *from >= piece.end {
                break;
            }
            raw[at] += net(piece.start.max(*from), piece.end.min(*to), piece.task);
        }
    }
    let sleeps = |e: &&Entry| matches!(e.detail, Detail::Waits(WaitsFor::Sleep, _));
    let own = sum(found.wall.in_process(parent).filter(|e| !sleeps(e)));
    raw.iter().map(|ns| own.part(ns.share_of(all))).collect()
}

/// How long a task slept in an interval.
fn slept(facts: &Facts<'_>, task: TaskId, (start, end): (Ns, Ns)) -> Ns {
    let spans = &facts.timeline.task(task).spans;
    let first = spans.partition_point(|span| span.start <= start).saturating_sub(1);
    let within = spans[first..].iter().take_while(|span| span.start < end);
    let sleeps = within.filter_map(|span| match span.run() {
        Run::Blocked(block) => facts.timeline.blocks.get(block as usize),
        _ => None,
    });
    let sleeps = sleeps.filter(|block| block.waits_for == WaitsFor::Sleep);
    sleeps.map(|block| block.end.min(end) - block.start.max(start).min(block.end.min(end))).sum()
}

/// By turn: from the first call for that child until it is reaped. Disjoint, in order; empty if many live at once.
fn lives(facts: &Facts<'_>, parent: ProcessId, turns: &[Turn]) -> Vec<(Ns, Ns)> {
    let calls = Calls::of(facts, parent);
    let mut found: Vec<(Ns, Ns)> = Vec::with_capacity(turns.len());
    let (mut sum, mut reached) = (Ns::ZERO, Ns::ZERO);
    for turn in turns {
        let child = facts.processes.get(turn.child);
        sum += child.end - child.birth;
        let (from, to) = (calls.begin(child.birth, reached), calls.reaped(child));
        let between = if found.is_empty() { Ns::MAX } else { from - reached };
        let from = if between.0 <= (to - from).0 / SHORT { reached } else { from };
        found.push((from, to.max(from)));
        reached = reached.max(to);
    }
    let union: Ns = found.iter().map(|(from, to)| *to - *from).sum();
    let together = sum.share_of(union) > TOGETHER;
    if together { vec![(Ns::ZERO, Ns::ZERO); turns.len()] } else { found }
}

/// The calls by which a process starts and reaps its children, each kind in order of time.
#[derive(Default)]
struct Calls {
    starts: Vec<(Ns, Ns)>,
    pipes: Vec<Ns>,
    /// What they returned, and their time.
    reaps: Vec<(i64, Ns, Ns)>,
}

impl Calls {
    fn of(facts: &Facts<'_>, process: ProcessId) -> Self {
        let mut ids: Vec<CallId> = Vec::new();
        for task in &facts.processes.get(process).tasks {
            let spans = &facts.timeline.task(*task).spans;
            visit_count::visit(spans.len());
            ids.extend(spans.iter().filter_map(|span| match (span.run(), span.within()) {
                (Run::OnCpu(_), Within::Syscall(call)) => Some(call),
                _ => None,
            }));
        }
        ids.sort_unstable();
        ids.dedup();
        let mut found = Self::default();
        for id in ids {
            let Some(group) = facts.call_groups.id(id) else { continue };
            let call = &facts.timeline.calls[id.index()];
            match (facts.call_groups.get(group).name, call.ret()) {
                (name, _) if STARTERS.contains(&name) => found.starts.push((call.start, call.end)),
                ("pipe" | "pipe2", _) => found.pipes.push(call.start),
                ("wait4", Some(pid @ 1..)) => found.reaps.push((pid, call.start, call.end)),
                _ => {}
            }
        }
        found.starts.sort_unstable();
        found.pipes.sort_unstable();
        found.reaps.sort_unstable();
        found
    }

    /// When the parent's work for a child begins: with the pipe to it, or the call that starts it.
    fn begin(&self, birth: Ns, reached: Ns) -> Ns {
        let at = self.starts.partition_point(|(start, _)| *start <= birth);
        let call = at.checked_sub(1).map(|at| self.starts[at]).filter(|(_, end)| *end >= birth);
        let call = call.map_or(birth, |(start, _)| start).max(reached);
        let pipe = self.pipes.partition_point(|start| *start < reached);
        self.pipes.get(pipe).map_or(call, |pipe| call.min(*pipe))
    }

    /// When the parent has reaped it, if it does so soon; else its end.
    fn reaped(&self, child: &Process) -> Ns {
        let pid = i64::from(child.pid.0);
        let soon = Ns((child.end - child.birth).0 / 2);
        let at = self.reaps.partition_point(|(of, _, end)| (*of, *end) < (pid, child.birth));
        let reap =
            self.reaps.get(at).filter(|(of, start, _)| *of == pid && *start <= child.end + soon);
        reap.map_or(child.end, |(.., end)| (*end).max(child.end))
    }
}
