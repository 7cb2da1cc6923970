//! Teams that live on and meet again and again (barriers, OpenMP with the main thread, goroutines): after several
//! threads worked in the same function at once, one of them still does, while the others wait for it and a CPU is free.

use super::free_cpu::free;
use super::inside::Inside;
use super::{Divided, LARGE, by_samples, is_seen};
use crate::cost::Inspection;
use crate::facts::Facts;
use crate::facts::call_site::CallSite;
use crate::facts::call_site::frames::{Frame, own_frames};
use crate::facts::call_site::team_code::is_in_team_code;
use crate::facts::locks::waits_for_lock;
use crate::facts::processes::ProcessId;
use crate::path::cpu_holder::{CpuHolder, kept_from_cpu};
use crate::timeline::Run;
use crate::timeline::kernel_stacks::WaitsFor;
use deadweight_report::report::Site;
use deadweight_trace::ids::{NameId, StackId, TaskId};
use deadweight_trace::symbols::Symbols;
use deadweight_trace::units::Ns;
use std::collections::{BTreeMap, BTreeSet};

/// The work that a team divides has its function so near to where its threads begin.
const OUTERMOST: usize = 3;
/// Below this share of a phase, its end is the way to the barrier and the wake-up of the others.
const TAIL: f64 = 0.15;
/// Threads that spin are seen by samples only, which do not tell shorter tails from the way to a barrier.
const SEEN: Ns = Ns(3_000_000);
/// Nor do they tell a smaller share of the time from a thread that was late by chance.
const SEEN_SHARE: f64 = 0.16;
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
    /// It waits for its team in a loop.
    Spins,
}

impl State {
    fn waits(self) -> bool {
        matches!(self, Self::Idle | Self::Spins)
    }
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
        let known = of.entry(stack).or_insert_with(|| {
            (!is_in_team_code(symbols, CallSite::Stack(stack)))
                .then(|| names(own_frames(symbols, stack)))
        });
        known.as_deref()
    }

    /// What a thread does with this stack, as seen from `function`.
    fn state(&mut self, stack: StackId, function: NameId) -> State {
        match self.of(stack) {
            None => State::Spins,
            Some(names) if names.contains(&function) => State::There,
            Some(_) => State::Elsewhere,
        }
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
    let of_task = |id: &TaskId| {
        let samples = found.facts.timeline.task(*id).samples.iter();
        let id = *id;
        samples.map(move |sample| (sample.at, id, sample.stack))
    };
    let mut samples: Vec<(Ns, TaskId, StackId)> = tasks.iter().flat_map(of_task).collect();
    samples.sort_unstable();
    let mut functions: BTreeMap<NameId, Inside> = BTreeMap::new();
    for (_, id, stack) in samples {
        let Some(of) = names.of(stack) else { continue };
        let mut outermost = None;
        for (depth, name) in of.iter().rev().filter(|name| !passes_on(name)).enumerate() {
            let start = *outermost.get_or_insert(*name);
            let inside = functions.entry(*name).or_default();
            inside.add(id);
            if Some(&id) != tasks.first() {
                inside.near |= depth < OUTERMOST;
                inside.starts.insert(start);
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
            if let Run::Blocked(block) = span.run() {
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
    /// The threads that work in the function, and since when.
    there: BTreeMap<TaskId, Ns>,
    /// Each thread's time on a CPU in it.
    worked: BTreeMap<TaskId, Ns>,
    /// Since when the phase lasts.
    begun: Option<Ns>,
    /// How long one thread worked alone in this phase.
    alone: Ns,
    /// That thread.
    last: Option<TaskId>,
    /// Whether a thread that waited for it slept, and in any phase before.
    sleeps: bool,
    slept: bool,
    /// The threads that worked in this phase.
    workers: BTreeSet<TaskId>,
    saved: Ns,
    times: u64,
}

impl<'f> Walk<'f> {
    fn new(found: &'f Inspection<'f, 'f>) -> Self {
        let (states, there, worked) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let (begun, alone, workers) = (None, Ns::ZERO, BTreeSet::new());
        let (last, sleeps, slept, saved, times) = (None, false, false, Ns::ZERO, 0);
        Self {
            found,
            states,
            there,
            worked,
            begun,
            alone,
            last,
            sleeps,
            slept,
            workers,
            saved,
            times,
        }
    }

    fn change(&mut self, (at, task, state): Change) {
        self.states.insert(task, state);
        if state != State::There {
            let Some(since) = self.there.remove(&task) else { return };
            let worked = self.found.facts.timeline.task(task).on_cpu_between(since, at);
            *self.worked.entry(task).or_default() += worked;
        } else {
            self.there.entry(task).or_insert(at);
            if self.begun.is_some() {
                self.workers.insert(task);
            }
        }
    }

    /// The states have been the same since `from`.
    fn reach(&mut self, from: Ns, to: Ns) {
        let Some((last, _)) = self.there.first_key_value() else { return self.close(from) };
        let last = *last;
        if self.there.len() > 1 {
            if self.alone > Ns::ZERO {
                self.close(from);
            }
            if self.begun.is_none() {
                self.begun = Some(from);
                self.workers.extend(self.there.keys());
            }
        } else if self.begun.is_some() && self.is_waited_for(last) {
            self.alone += free(self.found, &|id| self.waits(id), last, from, to);
            self.last = Some(last);
            self.sleeps |= self.workers.iter().any(|id| self.states.get(id) == Some(&State::Idle));
        }
    }

    /// Whether a thread that worked with it waits for it or has ended.
    fn is_waited_for(&self, last: TaskId) -> bool {
        self.workers.iter().any(|id| *id != last && self.waits(id))
    }

    fn waits(&self, id: &TaskId) -> bool {
        self.states.get(id).is_some_and(|state| state.waits())
    }

    fn close(&mut self, at: Ns) {
        let (timeline, subject) = (self.found.facts.timeline, &self.found.facts.path.subject);
        let begun = self.begun.take().unwrap_or(at);
        let length = at - begun;
        if let Some(last) = self.last.take() {
            // What other programs took from it, and not from the others, it has to do later, alone.
            let kept =
                |id| kept_from_cpu(timeline, subject, id, (begun, at), CpuHolder::is_foreign);
            let others = self.workers.iter().filter(|id| **id != last);
            let (sum, count) =
                others.fold((Ns::ZERO, 0), |(sum, count), id| (sum + kept(*id), count + 1));
            let more = kept(last).0.saturating_sub(sum.0 / count.max(1));
            self.alone -= Ns(more).min(self.alone);
        }
        let cpus =
            usize::from(self.found.facts.trace.meta.cpus).clamp(1, self.workers.len().max(1));
        let sleeps = std::mem::take(&mut self.sleeps);
        self.slept |= sleeps;
        let seen = sleeps || self.alone >= SEEN;
        if seen && self.alone.share_of(length) >= TAIL {
            self.saved += self.alone - Ns(self.alone.0 / cpus as u64);
            self.times += 1;
        }
        self.alone = Ns::ZERO;
        self.workers.clear();
    }
}

fn team(
    found: &Inspection<'_, '_>,
    process: ProcessId,
    changes: Vec<Change>,
    members: BTreeSet<TaskId>,
    function: NameId,
) -> Option<Phases> {
    let facts = found.facts;
    let mut walk = Walk::new(found);
    let mut reached = None;
    for change in changes {
        if let Some(from) = reached.replace(change.0).filter(|from| *from < change.0) {
            walk.reach(from, change.0);
        }
        walk.change(change);
    }
    walk.close(reached?);
    let waits = facts.locks.waits.iter().filter(|wait| wait.process == process);
    let locks: Ns = waits.map(|wait| wait.end - wait.start).sum();
    let least = if walk.slept { LARGE } else { SEEN_SHARE };
    if !is_seen(found, walk.saved, least) || locks.share_of(walk.saved) > LOCKS {
        return None;
    }
    let longest = walk.worked.values().max().copied()?;
    let mean = Ns(walk.worked.values().copied().sum::<Ns>().0 / walk.worked.len() as u64);
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

    /// Two threads for 40 ms, with a sample each 1 ms: of each ten, the first one spins at the last `spins`.
    fn spinning(spins: u64) -> String {
        let samples = |spins: u64| -> String {
            let stack = |ms: u64| match ms % 10 < 10 - spins {
                true => "sweep._omp_fn.0 (t.c:10) <- sweep (t.c:8)",
                false => "spin @libgomp.so.1 <- sweep (t.c:8)",
            };
            (0..40).map(|ms| format!("{} sample {}\n", (ms + 1) * 1_000_000, stack(ms))).collect()
        };
        format!(
            "cpus 2\nimage app path /bin/app language C\nimage libgomp.so.1 path /lib/libgomp.so.1\nsample-period 1000000\n\
             task 1 app\n0 cpu0 on\n0 exec /bin/app\n0 main\n10000 fork 2 thread\n{}41000000 exit\n41000000 off dead\n\
             task 2 app\n40000 cpu1 on\n{}40990000 exit\n40990000 off dead",
            samples(spins),
            samples(0)
        )
    }

    #[test]
    fn a_long_tail_of_spinning_is_found_and_a_sample_of_it_is_refused() {
        let said = found(&spinning(5));
        assert!(said.contains("imbalance") && said.contains("4 times"), "{said}");
        assert!(!found(&spinning(2)).contains("imbalance"), "{}", found(&spinning(2)));
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
