//! Brings the records of all CPUs into order of time.
//!
//! - In: the bytes of the ring buffers, and the instant up to which every ring was read.
//! - Out: records in order of time.
//! - Must not know: which tasks belong to the program; see `follow`.
//!
//! The kernel takes a record's timestamp before it reserves space in the ring; an interrupt in
//! between may write first. So records older than the instant up to which every ring was read are
//! sorted, not merged.

mod decimated;
#[cfg(test)]
mod tests;

use super::{Exec, Follow};
use crate::perf::decode::{self, Body};
use crate::perf::schema::{Role, Schema};
use crate::session::NTH;
use crate::session::decimate::DecimationStart;
use deadweight_trace::hash::ByFast;
pub(crate) use decimated::UnrecordedCalls;
use decimated::{DecimatedCalls, DecimatedRecord};
use std::collections::{HashMap, VecDeque};

/// How long the record that announces an exec is held back for the one that names the file.
const LONGEST_HOLD: u64 = 2_000_000_000;

/// Capacity for waiting records that is kept in any case.
const MIN_CAPACITY: usize = 1 << 16;

/// Most records of a ring that are out of order are fewer places than this away from where they belong.
const NEAR: usize = 16;

/// Records that wait to be passed on.
pub(crate) struct Merge {
    schema: Schema,
    /// Whether each exec has a record that names the file.
    names_execs: bool,
    chunks: VecDeque<Chunk>,
    /// Number of the chunk at the front.
    first: u64,
    /// Every waiting record.
    waiting: Vec<Place>,
    /// Execs whose file is known, in no particular order.
    execs: Vec<Named>,
    /// Earlier records are ignored: they are from before the recording.
    pub(crate) zero: u64,
    unreadable: u64,
    nth: DecimatedCalls,
    /// By chunk and offset: records of single calls that stand for N of them, and when each call was made.
    others: HashMap<(u64, usize), DecimatedRecord, ByFast>,
}

struct Chunk {
    bytes: Vec<u8>,
    /// Its records that are still waiting.
    left: usize,
}

#[derive(Copy, Clone)]
struct Place {
    at: u64,
    chunk: u64,
    offset: usize,
}

struct Named {
    at: u64,
    task: u32,
    former: u32,
    path: Vec<u8>,
}

impl Merge {
    pub(crate) fn new(schema: Schema) -> Self {
        Self {
            names_execs: schema.has(Role::Exec),
            schema,
            chunks: VecDeque::new(),
            first: 0,
            waiting: Vec::new(),
            execs: Vec::new(),
            zero: 0,
            unreadable: 0,
            nth: DecimatedCalls::default(),
            others: HashMap::default(),
        }
    }

    /// There are new events in the chunks from now on.
    pub(crate) fn learn(&mut self, schema: Schema) {
        self.schema = schema;
    }

    /// 1 in N of a task's call is recorded in the chunks from now on.
    pub(crate) fn begin(&mut self, begun: &DecimationStart) {
        self.nth.begin(begun.task, begun.nr, begun.at);
    }

    /// Moves records that stand for many calls to the time at which those began.
    fn place_unrecorded(&mut self, horizon: u64) {
        if self.nth.is_empty() {
            return;
        }
        let due = self.waiting.partition_point(|place| place.at < horizon);
        for place in &mut self.waiting[..due] {
            let Place { at, chunk, offset } = *place;
            let bytes = usize::try_from(chunk - self.first).ok().and_then(|i| self.chunks.get(i));
            let Some(bytes) = bytes.and_then(|chunk| chunk.bytes.get(offset..)) else { continue };
            let role = decode::peek(bytes, &self.schema).and_then(|(_, role)| role);
            let Some(role @ (Role::Enter | Role::Leave | Role::LeaveNth)) = role else { continue };
            let Some(record) = decode::record(bytes, &self.schema) else { continue };
            let Body::Sample(sample) = record.body else { continue };
            let nr = sample.raw_u32(self.schema.offsets.enter_nr);
            let Some(nr) = nr.and_then(|nr| u16::try_from(nr).ok()) else { continue };
            let becomes = self.nth.take(role, (record.task, nr, record.cpu), at, NTH);
            if let DecimatedRecord::StandsFor(unrecorded) = becomes {
                place.at = unrecorded.since;
            }
            if becomes != DecimatedRecord::Itself {
                self.others.insert((chunk, offset), becomes);
            }
        }
        self.waiting[..due].sort_by_key(|place| place.at);
    }

    /// Adds the records that were copied out of one ring.
    pub(crate) fn add(&mut self, bytes: Vec<u8>) {
        let chunk = self.first + self.chunks.len() as u64;
        let first = self.waiting.len();
        let mut left = 0;
        let mut offset = 0;
        while let Some(rest) = bytes.get(offset..)
            && let Some(length) = decode::length(rest)
        {
            match decode::peek(rest, &self.schema) {
                Some((at, role)) if at >= self.zero => {
                    if role == Some(Role::Exec) {
                        self.execs.extend(named(rest, &self.schema));
                    }
                    self.wait(Place { at, chunk, offset }, first);
                    left += 1;
                }
                Some(_) => {}
                None => self.unreadable += 1,
            }
            offset += length;
        }
        self.chunks.push_back(Chunk { bytes, left });
    }

    /// Adds a record to those that wait, of which its chunk's begin at `first`: before the few that have later times.
    fn wait(&mut self, place: Place, first: usize) {
        let nearest = self.waiting[first..].iter().rev().take(NEAR);
        let later = nearest.take_while(|other| other.at > place.at).count();
        // One that is further away finds its place when all are sorted.
        let later = if later < NEAR { later } else { 0 };
        self.waiting.insert(self.waiting.len() - later, place);
    }

    /// Passes on, in order, everything older than `horizon`: nothing older can still come. Used chunks go to `spent`,
    /// to be filled again.
    pub(crate) fn hand_on(
        &mut self,
        horizon: u64,
        follow: &mut Follow<'_>,
        mut spent: impl FnMut(Vec<u8>),
    ) {
        // Stable: equal times keep the order in which they were recorded.
        self.waiting.sort_by_key(|place| place.at);
        self.place_unrecorded(horizon);
        let mut taken = 0;
        for place in &self.waiting {
            if place.at >= horizon {
                break;
            }
            let Some(chunk) = usize::try_from(place.chunk - self.first)
                .ok()
                .and_then(|index| self.chunks.get_mut(index))
            else {
                break;
            };
            match chunk.bytes.get(place.offset..).and_then(|b| decode::record(b, &self.schema)) {
                Some(mut record) => {
                    let key = (place.chunk, place.offset);
                    let other =
                        if self.others.is_empty() { None } else { self.others.remove(&key) };
                    match other {
                        Some(DecimatedRecord::StandsFor(unrecorded)) => {
                            (record.at, follow.unrecorded) = (place.at, Some(unrecorded));
                        }
                        Some(DecimatedRecord::Nothing) => {
                            chunk.left -= 1;
                            taken += 1;
                            continue;
                        }
                        Some(DecimatedRecord::Itself) | None => {}
                    }
                    let mut exec = None;
                    if let Body::Comm { task, exec: true, .. } = record.body {
                        let named = self.execs.iter().enumerate();
                        let later = named.filter(|(_, e)| e.task == task && e.at >= place.at);
                        exec = later.min_by_key(|(_, e)| e.at).map(|(index, _)| index);
                        let may_wait = horizon != u64::MAX && horizon - place.at < LONGEST_HOLD;
                        // Files of other programs are not named.
                        let is_named = self.names_execs && follow.follows(task);
                        if exec.is_none() && may_wait && is_named {
                            break;
                        }
                    }
                    let named = exec.map(|index| self.execs.swap_remove(index));
                    let exec = named.as_ref().map(|n| Exec { former: n.former, path: &n.path });
                    follow.take(&record, exec.as_ref());
                }
                None => self.unreadable += 1,
            }
            chunk.left -= 1;
            taken += 1;
        }
        self.waiting.drain(..taken);
        // After a busy time, frees the capacity.
        self.waiting.shrink_to(4 * self.waiting.len() + MIN_CAPACITY);
        // An exec without an announcement before this will not get one.
        let next = self.waiting.first().map_or(horizon, |place| place.at.min(horizon));
        self.execs.retain(|exec| exec.at >= next);
        while self.chunks.front().is_some_and(|c| c.left == 0) {
            if let Some(chunk) = self.chunks.pop_front() {
                spent(chunk.bytes);
            }
            self.first += 1;
        }
        follow.stats.unreadable += std::mem::take(&mut self.unreadable);
    }
}

/// Reads a `sched_process_exec` record.
fn named(bytes: &[u8], schema: &Schema) -> Option<Named> {
    let record = decode::record(bytes, schema)?;
    let Body::Sample(sample) = record.body else { return None };
    Some(Named {
        at: record.at,
        task: record.task,
        former: sample.raw_u32(schema.offsets.old_pid)?,
        path: sample.raw_string(schema.offsets.filename)?.to_vec(),
    })
}
