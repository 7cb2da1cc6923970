//! Which reads and writes could have been merged with the one before into one call: they work on the same
//! object, and nobody waits between them.
//!
//! A write that answers a read of the same socket cannot be collected with the next answer: the peer waits for it. A
//! read that got less than it asked for took all there was. Neither the sizes nor the number of calls show that; the order of the
//! calls on one object does. Where calls were counted together, their order is not known: then as many as
//! possible are assumed to be apart, by a wait or a call in the other direction, so that they could not be one. The
//! cost classes judge what merging would save.

mod turns;

use crate::facts::processes::{ProcessId, Processes};
use crate::timeline::descriptors::ObjectKind;
use crate::timeline::kernel_stacks::WaitsFor;
use crate::timeline::transfer::Transfer;
use crate::timeline::{Call, Timeline};
use deadweight_trace::ids::TaskId;
use deadweight_trace::syscall::Arch;
use deadweight_trace::units::Ns;
use std::collections::BTreeMap;
pub(crate) use turns::Turns;

/// So many waits are looked at one by one before the rest is searched.
const NEAR: usize = 8;

/// The object that calls of one process work on: known, or only by its descriptor's number.
type Place = (ProcessId, Result<u32, u64>);

/// The latest call of one direction on an object.
#[derive(Copy, Clone, Debug)]
struct Latest {
    task: TaskId,
    end: Ns,
    /// How often its task had asked which objects were ready.
    asked: u64,
    /// Whether it took all there was.
    drained: bool,
    /// Calls of the other direction since.
    others: u64,
    /// Calls since that divide.
    divided: u64,
}

/// Where calls with an offset (`pread64`, `pwrite64`) go in their file, or seeks, compared with where the file is.
#[derive(Copy, Clone, Debug, Default)]
struct Offsets {
    /// Where the latest call ended.
    next: Option<u64>,
    /// How many calls began there, and how many elsewhere.
    continued: u64,
    elsewhere: u64,
}

impl Offsets {
    /// Whether a call begins where the one before ended. Of calls that were counted together no offset is known: they
    /// do what most of the others did.
    fn continues(&mut self, moved: &Moved<'_>) -> bool {
        let Some(offset) = moved.offset else { return true };
        if moved.call.times() > 1 {
            return self.continued >= self.elsewhere;
        }
        let got = moved.call.ret().and_then(|ret| u64::try_from(ret).ok()).unwrap_or(0);
        let continues = self.next.is_none_or(|next| next == offset);
        self.continued += u64::from(continues && self.next.is_some());
        self.elsewhere += u64::from(!continues);
        self.next = Some(offset.saturating_add(got));
        continues
    }
}

/// The latest calls on an object: what took, and what gave.
type Ends = [Option<Latest>; 2];

/// Where a file is, and whether seeks lead anywhere else.
#[derive(Copy, Clone, Debug, Default)]
struct Position(Offsets);

impl Position {
    /// Whether these seeks lead to where the file already is.
    fn stays(&mut self, moved: &Moved<'_>) -> bool {
        let Self(at) = self;
        let to = moved.offset.filter(|_| moved.call.times() == 1);
        let Some(to) = to else {
            let known = std::mem::take(&mut at.next);
            return moved.offset.is_some() && known.is_some() && at.continued > at.elsewhere;
        };
        let stays = at.next == Some(to);
        at.continued += u64::from(stays);
        at.elsewhere += u64::from(!stays && at.next.is_some());
        at.next = Some(to);
        stays
    }

    /// Bytes were read or written there.
    fn advance(&mut self, moved: &Moved<'_>) {
        let got = moved.call.ret().and_then(|ret| u64::try_from(ret).ok()).unwrap_or(0);
        let all = got.saturating_mul(moved.call.times());
        self.0.next = self.0.next.map(|at| at.saturating_add(all));
    }
}

/// What a task did besides reading and writing.
#[derive(Clone, Debug, Default)]
struct Pauses {
    /// When its waits for others ended, in order.
    waits: Vec<Ns>,
    /// How many of them had ended at the time that was asked for last.
    ended: usize,
    /// How often it learned which objects were ready, and when last.
    asked: u64,
    last_asked: Ns,
}

impl Pauses {
    /// How many waits had ended at this time. Calls are walked in order: most often it is soon after the time before.
    fn ended_until(&mut self, at: Ns) -> usize {
        let ended = |end: &Ns| *end <= at;
        if self.ended > 0 && !ended(&self.waits[self.ended - 1]) {
            self.ended = self.waits[..self.ended].partition_point(ended);
        }
        let next = self.waits[self.ended..].iter().take(NEAR).take_while(|end| ended(end)).count();
        self.ended += next;
        if next == NEAR {
            self.ended += self.waits[self.ended..].partition_point(ended);
        }
        self.ended
    }
}

/// One call, as far as it matters here.
pub(crate) struct Moved<'c> {
    pub(crate) call: &'c Call,
    pub(crate) process: ProcessId,
    pub(crate) transfer: Transfer,
    pub(crate) kind: Option<ObjectKind>,
    /// The number of its descriptor.
    pub(crate) descriptor: u64,
    /// Bytes asked for, if known.
    pub(crate) size: Option<u64>,
    /// Its offset in the file, if it has one; of a seek, where it leads.
    pub(crate) offset: Option<u64>,
}

/// The state of all objects while the calls are walked in order.
pub(crate) struct Mergeable {
    index: BTreeMap<Place, usize>,
    ends: Vec<Ends>,
    offsets: Vec<[Offsets; 2]>,
    positions: Vec<Position>,
    /// The object of the call before: loops stay with one.
    latest: Option<(Place, usize)>,
    tasks: Vec<Pauses>,
    turns: Turns,
}

impl Mergeable {
    pub(crate) fn new(timeline: &Timeline, processes: &Processes, arch: Arch) -> Self {
        let mut tasks = vec![Pauses::default(); timeline.tasks.len()];
        for block in timeline.blocks.iter().filter(|block| for_others(block.waits_for)) {
            tasks[block.task.index()].waits.push(block.end);
        }
        tasks.iter_mut().for_each(|task| task.waits.sort_unstable());
        let (index, ends) = (BTreeMap::new(), Vec::new());
        let (offsets, positions) = (Vec::new(), Vec::new());
        let turns = Turns::gather(timeline, processes, arch);
        Self { index, ends, offsets, positions, latest: None, tasks, turns }
    }

    /// Where in `ends` the calls on this object are.
    fn at(&mut self, place: Place) -> usize {
        if let Some((_, at)) = self.latest.filter(|(latest, _)| *latest == place) {
            return at;
        }
        let at = *self.index.entry(place).or_insert_with(|| {
            self.ends.push(Ends::default());
            self.offsets.push(<[Offsets; 2]>::default());
            self.positions.push(Position::default());
            self.ends.len() - 1
        });
        self.latest = Some((place, at));
        at
    }

    /// How many of these equal calls could have been merged with the call before them; of seeks, how many lead to where the
    /// file already is.
    pub(crate) fn count(&mut self, moved: &Moved<'_>) -> u64 {
        let Moved { call, transfer, .. } = *moved;
        let (times, ret) = (call.times(), call.ret().unwrap_or(-1));
        if transfer == Transfer::Asks {
            let task = &mut self.tasks[call.task.index()];
            task.asked += if ret > 0 { times } else { 0 };
            task.last_asked = if ret > 0 { call.end } else { task.last_asked };
            return 0;
        }
        let object = call.object().ok_or(moved.descriptor);
        let at = self.at((moved.process, object));
        let ends = &mut self.ends[at];
        if transfer == Transfer::Divides {
            if self.positions[at].stays(moved) {
                return times;
            }
            ends.iter_mut().flatten().for_each(|latest| latest.divided += times);
            return 0;
        }
        if moved.offset.is_none() {
            self.positions[at].advance(moved);
        }
        let [own, other] = if transfer == Transfer::Takes { [0, 1] } else { [1, 0] };
        let task = &mut self.tasks[call.task.index()];
        let before = ends[own];
        let drained = transfer == Transfer::Takes
            && moved.size.is_some_and(|size| u64::try_from(ret).is_ok_and(|got| got < size));
        if ret < 0 {
            // Nothing was there, or no space was left: only the former separates calls.
            if let Some(before) = ends[own].as_mut().filter(|_| transfer == Transfer::Takes) {
                before.drained = true;
            }
            return 0;
        }
        let separate = match before {
            _ if !self.offsets[at][own].continues(moved) => times,
            None => 1,
            Some(before) => separate(moved, task, &before, drained),
        };
        let (end, asked) = (call.end, task.asked);
        ends[own] = Some(Latest { task: call.task, end, asked, drained, others: 0, divided: 0 });
        if let Some(other) = ends[other].as_mut().filter(|_| ret > 0) {
            other.others += times;
        }
        if ret > 0
            && let Ok(object) = object
        {
            self.divide_turns(moved.process, object, times);
        }
        times - separate.min(times)
    }

    /// Who took turns, when all calls are counted.
    pub(crate) fn into_turns(self) -> Turns {
        self.turns
    }

    /// Calls on this object divide those on the objects of the same turns.
    fn divide_turns(&mut self, process: ProcessId, object: u32, times: u64) {
        for other in self.turns.with(process, object) {
            let ends = self.index.get(&(process, Ok(*other))).and_then(|at| self.ends.get_mut(*at));
            ends.into_iter().flatten().flatten().for_each(|latest| latest.others += times);
        }
    }
}

/// How many of these calls cannot be merged with the one before.
fn separate(moved: &Moved<'_>, task: &mut Pauses, before: &Latest, drained: bool) -> u64 {
    let Moved { call, transfer, .. } = *moved;
    let times = call.times();
    let emptied = match (drained, before.drained) {
        (true, _) if times > 1 => times,
        (_, true) => 1,
        _ => 0,
    };
    // Nobody waits for the bytes of a file.
    if matches!(moved.kind, Some(ObjectKind::File | ObjectKind::Device)) {
        return emptied.max(before.divided);
    }
    let waits = match task.ended_until(before.end) {
        earlier if before.end <= call.end => task.ended_until(call.end) - earlier,
        _ => 0,
    };
    let rounds = match transfer {
        Transfer::Takes | Transfer::Asks | Transfer::Divides => 0,
        Transfer::Gives if before.task == call.task => task.asked - before.asked,
        Transfer::Gives => u64::from(task.last_asked > before.end),
    };
    emptied.max(before.others).max(rounds).max(u64::try_from(waits).unwrap_or(u64::MAX))
}

/// Whether the end of such a wait is another's doing, or the clock's: what was written before it is used meanwhile.
fn for_others(wait: WaitsFor) -> bool {
    matches!(
        wait,
        WaitsFor::PipeData
            | WaitsFor::SocketData
            | WaitsFor::Terminal
            | WaitsFor::Poll
            | WaitsFor::Sleep
            | WaitsFor::Child
            | WaitsFor::Signal
    )
}
