//! Teams that live on and meet again and again (barriers, OpenMP with the main thread, goroutines): after several
//! threads worked in the same function at once, one of them still does, while the others wait for it and a CPU is free.

use super::{Divided, LARGE, by_samples};
use crate::cost::Inspection;
use crate::facts::Facts;
use crate::facts::call_site::frames::{Frame, own_frames};
use crate::facts::call_site::{CallSite, image_path};
use crate::facts::locks::waits_for_lock;
use crate::facts::processes::ProcessId;
use crate::timeline::Run;
use crate::timeline::kernel_stacks::WaitsFor;
use deadweight_report::report::Site;
use deadweight_trace::ids::{Cpu, NameId, StackId, TaskId};
use deadweight_trace::symbols::Symbols;
use deadweight_trace::units::Ns;
use std::collections::{BTreeMap, BTreeSet};

/// The work that a team divides has its function so near to where its threads begin.
const OUTERMOST: usize = 3;
/// They are in it at once for this part of its samples, at least.
const AT_ONCE: f64 = 0.02;
/// A team's thread has so many samples in the function, at least.
const SAMPLES: usize = 3;
/// Below this share of a phase, its end is the way to the barrier and the wake-up of the others.
const TAIL: f64 = 0.15;
/// With more changes of state the threads do not work long enough for the samples to say where.
const CHANGES: usize = 1 << 20;
/// Beside waits for locks of this share of the saving, the others may wait for a lock that the last one has.
const LOCKS: f64 = 0.2;

/// What a thread does, as seen from one function.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum State {
    /// It works, or could, in the function.
    There,
    /// It works elsewhere, or waits for something that no other thread gives.
    Elsewhere,
    /// It waits for another thread, or has ended.
    Idle,
}

/// A change of a thread's state.
type Change = (Ns, TaskId, State);

/// A team as found by its phases.
pub(super) struct Phases {
    pub(super) divided: Divided,
    /// The function that divides the work.
    pub(super) function: NameId,
    /// How often the last one was waited for.
    pub(super) times: u64,
}

/// The team of a process that loses most.
pub(super) fn worst(found: &Inspection<'_, '_>, process: ProcessId) -> Option<Phases> {
    let facts = found.facts;
    let tasks = &facts.processes.get(process).tasks;
    let spans: usize = tasks.iter().map(|id| facts.timeline.task(*id).spans.len()).sum();
    if spans > CHANGES {
        return None;
    }
    let mut names = Names { symbols: facts.symbols(), of: BTreeMap::new() };
    let functions = functions(found, tasks, &mut names);
    let phases = functions.into_iter().filter_map(|(function, members)| {
        let changes = changes(found, tasks, &members, function, &mut names);
        team(found, process, changes, members, function)
    });
    phases.max_by_key(|phases| phases.divided.saved)
}

/// The functions of the program in each stack, innermost first; none while its thread waits busily for its team.
struct Names<'s> {
    symbols: &'s Symbols,
    of: BTreeMap<StackId, Option<Vec<NameId>>>,
}

impl Names<'_> {
    fn of(&mut self, stack: StackId) -> Option<&[NameId]> {
        let Self { symbols, of } = self;
        let names = |frames: Vec<Frame<'_>>| frames.iter().map(|(_, f)| f.function).collect();
        let known = of
            .entry(stack)
            .or_insert_with(|| (!spins(symbols, stack)).then(|| names(own_frames(symbols, stack))));
        known.as_deref()
    }

    /// What a thread does with this stack, as seen from `function`.
    fn state(&mut self, stack: StackId, function: NameId) -> State {
        match self.of(stack) {
            None => State::Idle,
            Some(names) if names.contains(&function) => State::There,
            Some(_) => State::Elsewhere,
        }
    }
}

/// Whether this stack is in the code of a library for teams, which is in a loop before it sleeps.
fn spins(symbols: &Symbols, stack: StackId) -> bool {
    let innermost = CallSite::Stack(stack).frames(symbols).next();
    innermost.is_some_and(|(location, _)| {
        let file = image_path(symbols, location).rsplit('/').next().unwrap_or_default();
        ["libgomp.so", "libomp.so", "libiomp5.so"].iter().any(|name| file.starts_with(name))
    })
}

/// What the samples show of one function.
#[derive(Default)]
struct Inside {
    /// When which thread was in it.
    samples: Vec<(Ns, TaskId)>,
    /// The outermost functions of the program in threads that were started for it.
    starts: BTreeSet<NameId>,
    /// It is not far from where such a thread begins.
    near: bool,
}

impl Inside {
    /// The threads that are in it at the same times, if they all start alike: a sample of one is between two of another.
    /// A goroutine that moves from thread to thread is in one of them at a time.
    fn team(mut self) -> Option<BTreeSet<TaskId>> {
        let mut each: BTreeMap<TaskId, usize> = BTreeMap::new();
        self.samples.iter().for_each(|(_, id)| *each.entry(*id).or_default() += 1);
        each.retain(|_, samples| *samples >= SAMPLES);
        self.samples.sort_unstable();
        let between = |all: &&[(Ns, TaskId)]| all[0].1 == all[2].1 && all[0].1 != all[1].1;
        let at_once = self.samples.windows(3).filter(between).count();
        let team = self.near
            && self.starts.len() == 1
            && super::MEMBERS.contains(&each.len())
            && at_once >= SAMPLES
            && at_once as f64 >= self.samples.len() as f64 * AT_ONCE;
        team.then(|| each.into_keys().collect())
    }
}

/// The functions that several threads work in at once, and those threads. In a thread that was started for it, such a
/// function is one of the outermost; the main thread may have got there by a long way.
fn functions(
    found: &Inspection<'_, '_>,
    tasks: &[TaskId],
    names: &mut Names<'_>,
) -> BTreeMap<NameId, BTreeSet<TaskId>> {
    let symbols = found.facts.symbols();
    let passes_on = |name: &NameId| symbols.name(*name).contains(".gowrap");
    let mut functions: BTreeMap<NameId, Inside> = BTreeMap::new();
    for (place, id) in tasks.iter().enumerate() {
        for sample in &found.facts.timeline.task(*id).samples {
            let Some(of) = names.of(sample.stack) else { continue };
            let of: Vec<NameId> =
                of.iter().rev().filter(|name| !passes_on(name)).copied().collect();
            for (depth, name) in of.iter().enumerate() {
                let inside = functions.entry(*name).or_default();
                inside.samples.push((sample.at, *id));
                if place > 0 {
                    inside.near |= depth < OUTERMOST;
                    inside.starts.insert(of[0]);
                }
            }
        }
    }
    functions.into_iter().filter_map(|(name, inside)| Some((name, inside.team()?))).collect()
}

/// All changes of state of these threads, in order of time.
fn changes(
    found: &Inspection<'_, '_>,
    tasks: &[TaskId],
    members: &BTreeSet<TaskId>,
    function: NameId,
    names: &mut Names<'_>,
) -> Vec<Change> {
    let mut all = Vec::new();
    for id in tasks {
        let task = found.facts.timeline.task(*id);
        let member = members.contains(id);
        let mut states = Vec::new();
        let mut samples = task.samples.iter().peekable();
        let mut latest = None;
        let unknown = if member { State::There } else { State::Elsewhere };
        for (index, span) in task.spans.iter().enumerate() {
            let end = task.span_end(index);
            if let Run::Blocked(block) = span.run {
                states.push((span.start, waits(found.facts, block, function, names)));
                continue;
            }
            let mut from = span.start;
            while let Some(sample) = samples.next_if(|sample| sample.at < end) {
                let now = names.state(sample.stack, function);
                states.push((from, *latest.get_or_insert(now)));
                (from, latest) = (sample.at.max(from), Some(now));
            }
            states.push((from, latest.unwrap_or(unknown)));
        }
        states.push((task.end, if member { State::Idle } else { State::Elsewhere }));
        states.dedup_by_key(|(_, state)| *state);
        all.extend(states.into_iter().map(|(at, state)| (at, *id, state)));
    }
    all.sort_unstable();
    all
}

/// What a thread does that waits. A consumer, or a worker of a pool, waits for more work outside the function; members
/// of a team meet in it, or where their library lets them meet, or at the end of the others.
fn waits(facts: &Facts<'_>, block: u32, function: NameId, names: &mut Names<'_>) -> State {
    let block = &facts.timeline.blocks[block as usize];
    let symbols = facts.symbols();
    let known = block.waits_for == WaitsFor::Futex && block.site != StackId(0);
    if !known || waits_for_lock(symbols, block.site) {
        return State::Elsewhere;
    }
    let meets = names.of(block.site).is_none_or(|of| of.is_empty() || of.contains(&function));
    if meets || meets_the_end(symbols, block.site) { State::Idle } else { State::Elsewhere }
}

/// Whether this stack waits for all of a team.
fn meets_the_end(symbols: &Symbols, stack: StackId) -> bool {
    const MEETS: [&str; 5] = ["join", "barrier", "latch", "waitgroup", "scope"];
    CallSite::Stack(stack).frames(symbols).any(|(_, frame)| {
        let name = symbols.name(frame.function).to_lowercase();
        MEETS.iter().any(|word| name.contains(word))
    })
}

/// A walk over the changes of state.
struct Walk<'f> {
    found: &'f Inspection<'f, 'f>,
    states: BTreeMap<TaskId, State>,
    /// Since when the phase lasts, and since when one thread works alone.
    begun: Option<Ns>,
    alone: Ns,
    /// The threads that worked in it.
    workers: BTreeSet<TaskId>,
    saved: Ns,
    times: u64,
}

impl Walk<'_> {
    fn reach(&mut self, from: Ns, to: Ns) {
        let mut there = self.states.iter().filter(|(_, state)| **state == State::There);
        let (first, more) = (there.next().map(|(id, _)| *id), there.count());
        match first {
            None => self.close(from),
            Some(_) if more > 0 => {
                if self.alone > Ns::ZERO {
                    self.close(from);
                }
                let there = self.states.iter().filter(|(_, state)| **state == State::There);
                self.workers.extend(there.map(|(id, _)| *id));
                self.begun.get_or_insert(from);
            }
            Some(id) if self.begun.is_some() && self.is_waited_for(id) => {
                self.alone += free(self.found, &self.states, id, from, to);
            }
            Some(_) => {}
        }
    }

    /// Whether a thread that worked with it waits or has ended, and no thread works elsewhere.
    fn is_waited_for(&self, last: TaskId) -> bool {
        let idle = |id: &TaskId| *id != last && self.states.get(id) == Some(&State::Idle);
        self.workers.iter().any(idle)
    }

    fn close(&mut self, at: Ns) {
        let length = self.begun.take().map_or(Ns::ZERO, |begun| at - begun);
        let cpus =
            usize::from(self.found.facts.trace.meta.cpus).clamp(1, self.workers.len().max(1));
        if self.alone.share_of(length) >= TAIL {
            self.saved += self.alone - Ns(self.alone.0 / cpus as u64);
            self.times += 1;
        }
        self.alone = Ns::ZERO;
        self.workers.clear();
    }
}

/// For how much of this time `last` is on the critical path on a CPU, and another CPU has no task of the command but
/// threads that only wait for it.
fn free(
    found: &Inspection<'_, '_>,
    states: &BTreeMap<TaskId, State>,
    last: TaskId,
    from: Ns,
    to: Ns,
) -> Ns {
    let timeline = found.facts.timeline;
    let pieces = &found.facts.path.pieces;
    let first = pieces.partition_point(|piece| piece.end <= from);
    let near = pieces[first..].iter().take_while(|piece| piece.start < to);
    let on_path =
        near.filter(|piece| piece.task == last || states.get(&piece.task) == Some(&State::Idle));
    on_path
        .map(|piece| {
            let (from, to) = (piece.start.max(from), piece.end.min(to));
            let used = |cpu: usize| -> Ns {
                let cpu = Cpu(u16::try_from(cpu).unwrap_or(u16::MAX));
                let held = timeline.holders(cpu, from, to);
                let busy = held.filter(|(_, _, who)| {
                    who.is_some_and(|who| {
                        timeline.task(who).own && states.get(&who) != Some(&State::Idle)
                    })
                });
                busy.map(|(start, end, _)| end - start).sum()
            };
            let mut used: Vec<Ns> = (0..timeline.held.len()).map(used).collect();
            used.sort_unstable();
            let working: Ns = timeline.task(last).on_cpu_between(from, to);
            used.first().map_or(Ns::ZERO, |least| ((to - from) - *least).min(working))
        })
        .sum()
}

fn team(
    found: &Inspection<'_, '_>,
    process: ProcessId,
    changes: Vec<Change>,
    members: BTreeSet<TaskId>,
    function: NameId,
) -> Option<Phases> {
    let facts = found.facts;
    let (states, workers) = (BTreeMap::new(), BTreeSet::new());
    let (begun, alone, saved) = (None, Ns::ZERO, Ns::ZERO);
    let mut walk = Walk { found, states, begun, alone, workers, saved, times: 0 };
    let mut worked: BTreeMap<TaskId, Ns> = BTreeMap::new();
    let mut reached = None;
    for (at, task, state) in changes {
        if let Some(from) = reached.replace(at).filter(|from| *from < at) {
            walk.reach(from, at);
            let there = walk.states.iter().filter(|(_, state)| **state == State::There);
            there.for_each(|(id, _)| *worked.entry(*id).or_default() += at - from);
        }
        walk.states.insert(task, state);
    }
    walk.close(reached?);
    let waits = facts.locks.waits.iter().filter(|wait| wait.process == process);
    let locks: Ns = waits.map(|wait| wait.end - wait.start).sum();
    if walk.saved.share_of(found.wall.net()) < LARGE || locks.share_of(walk.saved) > LOCKS {
        return None;
    }
    let longest = worked.values().max().copied()?;
    let mean = Ns(worked.values().map(|ns| ns.0).sum::<u64>() / worked.len() as u64);
    let divided =
        Divided { members: members.into_iter().collect(), longest, mean, saved: walk.saved };
    Some(Phases { divided, function, times: walk.times })
}

/// The lines of the function at which its members work, and those that call it.
pub(super) fn places(facts: &Facts<'_>, members: &[TaskId], function: NameId) -> Vec<Site> {
    let of =
        |frames: &[Frame<'_>]| frames.iter().rposition(|(_, frame)| frame.function == function);
    by_samples(facts, members, of)
}

#[cfg(test)]
mod tests {
    use crate::cost::tests::found;
    use std::fmt::Write;

    /// The main thread and another meet four times after 1 ms and `more` ms of work. Each works in `functions`; the main
    /// thread waits at `site`.
    fn meeting(more: u64, functions: [&str; 2], site: &str) -> String {
        let (mut one, mut two) = (String::new(), String::new());
        let end = 50_000 + 4 * more * 1_000_000;
        for phase in 0..4 {
            let from = 50_000 + phase * more * 1_000_000;
            let to = from + more * 1_000_000;
            if more > 1 {
                let waits = from + 1_000_000;
                write!(
                    one,
                    "{} sample {} <- main (t.c:90)\n{} sample {} <- main (t.c:90)\n\
                     {} syscall futex from {site}\n{waits} off blocked : futex_wait_queue\n\
                     {to} on woken-by 2\n{to} back 0\n",
                    from + 100_000,
                    functions[0],
                    from + 900_000,
                    functions[0],
                    waits - 1000
                )
                .unwrap();
            } else {
                writeln!(one, "{} sample {} <- main (t.c:90)", from + 500_000, functions[0])
                    .unwrap();
            }
            for at in (from + 100_000..to).step_by(400_000) {
                writeln!(two, "{at} sample {} <- start_thread @libc.so.6", functions[1]).unwrap();
            }
        }
        format!(
            "cpus 2\nimage app path /bin/app language C\nimage libc.so.6 path /lib/libc.so.6\n\
             task 1 app\n0 cpu0 on\n0 exec /bin/app\n0 main\n10000 fork 2 thread\n{one}{end} exit\n{end} off dead\n\
             task 2 app\n40000 cpu1 on\n{two}{end} exit\n{end} off dead"
        )
    }

    const BARRIER: &str = "pthread_barrier_wait @libc.so.6 <- sweep (t.c:20) <- main (t.c:90)";

    #[test]
    fn a_team_with_the_main_thread_is_found_by_its_phases() {
        let said = found(&meeting(4, ["sweep (t.c:10)"; 2], BARRIER));
        assert!(
            said.starts_with("imbalance 3") && said.contains("@ sweep:10: 2 threads"),
            "{said}"
        );
        assert!(said.contains("worked on alone"), "{said}");
    }

    #[test]
    fn even_phases_other_work_and_consumers_are_refused() {
        let consumer = "pthread_cond_wait @libc.so.6 <- take (t.c:30) <- main (t.c:90)";
        let lock = "pthread_mutex_lock @libc.so.6 <- sweep (t.c:20) <- main (t.c:90)";
        for (text, why) in [
            (meeting(1, ["sweep (t.c:10)"; 2], BARRIER), "even"),
            (meeting(4, ["sweep (t.c:10)", "write (t.c:50)"], BARRIER), "other work"),
            (meeting(4, ["sweep (t.c:10)"; 2], consumer), "it waits for more work"),
            (meeting(4, ["sweep (t.c:10)"; 2], lock), "it waits for a lock"),
        ] {
            assert!(!found(&text).contains("imbalance"), "{why}: {}", found(&text));
        }
    }
}
