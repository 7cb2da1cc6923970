//! An ordinary user's dense calls: one in so many is recorded, and stands for the others.
//!
//! Where the rings show that a task makes the same small call again and again, with the same arguments and
//! the same result, without waiting, that task gets events of its own at that call, which make a record of
//! one in 61; the ones that all tasks share pass over it. Now and then each call is recorded for a moment, to see
//! whether all is as before, and how long they take. The kernel takes it once which tasks are passed over, so all
//! threads that are there then have events of their own. How many there were stays exact: the kernel counts to
//! 61 whether we look or not. Not for the counting: that is `merge::nth`.

use super::Session;
use super::decimated_call::AtCall;
use crate::bpf::high_rate::{self, Cost, MAX_INTERVAL, MIN_CALLS, SCAN_AFTER, SCAN_BYTES};
use crate::bpf::in_initial_pid_namespace;
use crate::perf::decode::{self, Body, Record};
use crate::perf::ring::Ring;
use crate::perf::schema::{Role, Schema};
use crate::timing::{EMPTY, best, empty_calls, whole};
use std::collections::{HashMap, HashSet};
use std::io;

/// After so many looks each call is recorded for a moment.
const LOOKS: u32 = 50;
/// Calls of tasks that are treated so in one recording, and tasks that are of one call.
const MOST: usize = 64;
const MOST_TASKS: usize = 16;
/// After so many looks it is looked who is gone, and whether another has that number.
const REBORN: u32 = 4;

/// Whose calls are recorded so, and what was looked at.
#[derive(Debug)]
pub(crate) struct Thin {
    looked: Vec<u64>,
    /// Whether it can be had.
    allowed: bool,
    kept: HashMap<u16, [bool; 6]>,
    thinned: Vec<Thinned>,
    looks: u32,
    /// What a call costs that is not recorded; measured when it is wanted first.
    cost: Option<Cost>,
}

/// A task's call.
#[derive(Debug)]
struct Thinned {
    task: u32,
    nr: u16,
    like: Like,
    each: AtCall,
    /// One in so many; the task's end shows there.
    nth: AtCall,
    /// Looks since each was recorded; none while each is.
    looks: Option<u32>,
}

/// Events that are new, and whose they are.
pub(crate) struct Begun {
    pub(crate) task: u32,
    pub(crate) nr: u16,
    /// Before this none was recorded so.
    pub(crate) at: u64,
    /// What a call costs that is not recorded.
    pub(crate) cost: Cost,
}

/// What tells calls apart.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
struct Like {
    args: [u64; 6],
    ret: i64,
}

/// What was seen of a task's call among the newest records.
#[derive(Copy, Clone, Debug, Default)]
struct Seen {
    calls: u32,
    unlike: bool,
    first: u64,
    last: u64,
    entered: Option<[u64; 6]>,
    like: Like,
}

/// What was seen of all.
#[derive(Default)]
struct Look {
    calls: HashMap<(u32, u16), Seen>,
    /// Those that waited.
    waited: Vec<u32>,
}

impl Thin {
    pub(crate) fn new(session: &Session) -> Self {
        Self {
            looked: vec![0; session.cpus.len()],
            allowed: session.means.is_some() && in_initial_pid_namespace(),
            kept: high_rate::countable_args(),
            thinned: Vec::new(),
            looks: 0,
            cost: None,
        }
    }

    /// Looks at the newest records, and decides of which calls each is recorded from now on.
    pub(crate) fn look(&mut self, rings: &[Ring], session: &mut Session) -> Vec<Begun> {
        if !self.allowed {
            return Vec::new();
        }
        let grown = if self.thinned.iter().any(|t| t.looks.is_some()) { 1 } else { SCAN_AFTER };
        let mut look = Look::default();
        for (ring, looked) in rings.iter().zip(&mut self.looked) {
            if let Some(bytes) = ring.newest(looked, grown, SCAN_BYTES) {
                look.at(&bytes, &session.schema, &self.kept);
            }
        }
        for thinned in &mut self.thinned {
            thinned.decide(&look);
        }
        let dense = look
            .calls
            .iter()
            .filter(|((task, _), seen)| seen.is_dense() && !look.waited.contains(task));
        let new: Vec<_> = dense
            .filter(|((_, nr), _)| self.thinned.iter().all(|known| known.nr != *nr))
            .map(|((task, nr), seen)| (*task, *nr, seen.like))
            .collect();
        let mut begun = self.reborn(session);
        for (task, nr, like) in new {
            if self.thinned.iter().any(|known| known.nr == nr) {
                continue;
            }
            let cost = *self.cost.get_or_insert_with(|| measured(session).unwrap_or_default());
            let room = MOST.saturating_sub(self.thinned.len()).min(MOST_TASKS);
            let tasks = beside(task, nr, &look, room);
            match begin(session, &tasks, (nr, like), cost) {
                Ok((thinned, new)) => {
                    self.thinned.extend(thinned);
                    begun.extend(new);
                }
                // It is gone: another task may make such calls yet.
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                // Where it is not allowed each call goes on having its records.
                Err(_) => self.allowed = false,
            }
        }
        begun
    }

    /// Whoever has the number of a task that is gone is passed over too: it gets events of its own.
    fn reborn(&mut self, session: &mut Session) -> Vec<Begun> {
        self.looks += 1;
        let cost = self.cost.unwrap_or_default();
        if !self.looks.is_multiple_of(REBORN) {
            return Vec::new();
        }
        let gone = self.thinned.iter_mut().filter(|thinned| thinned.nth.is_over());
        gone.filter_map(|thinned| {
            let Thinned { task, nr, like, .. } = *thinned;
            let new = Thinned::open(session, task, (nr, like)).ok()?;
            let at = crate::clock::now();
            new.nth.start().and_then(|()| new.each.start()).ok()?;
            *thinned = new;
            Some(Begun { task, nr, at, cost })
        })
        .collect()
    }
}

/// The tasks that this call of theirs is recorded so of: `task`, those that make it, and all threads beside them.
fn beside(task: u32, nr: u16, look: &Look, most: usize) -> Vec<u32> {
    let mut calling: Vec<_> = look.calls.iter().filter(|((_, of), _)| *of == nr).collect();
    calling.sort_unstable_by_key(|((task, _), seen)| (std::cmp::Reverse(seen.calls), *task));
    let mut tasks = vec![task];
    tasks.extend(calling.into_iter().map(|((task, _), _)| *task));
    // The directory of a thread is there, though it is not listed.
    let threads = std::fs::read_dir(format!("/proc/{task}/task")).into_iter().flatten().flatten();
    let threads = threads.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    tasks.extend(threads);
    let mut known = HashSet::new();
    tasks.retain(|task| known.insert(*task));
    tasks.truncate(most);
    tasks
}

/// From now on this call of these tasks has events of their own. The first is known to be dense: each of its calls is
/// recorded no more. Of the others each is, until they are.
fn begin(
    session: &mut Session,
    tasks: &[u32],
    call: (u16, Like),
    cost: Cost,
) -> io::Result<(Vec<Thinned>, Vec<Begun>)> {
    let pair = session.pair(call.0).ok_or(io::ErrorKind::NotFound)?;
    let mut all = Vec::new();
    for task in tasks {
        match Thinned::open(session, *task, call) {
            Ok(thinned) => all.push(thinned),
            // It is gone, or another's.
            Err(_) if !all.is_empty() => {}
            Err(error) => return Err(error),
        }
    }
    let at = crate::clock::now();
    let mut passed = Vec::new();
    for thinned in &all {
        thinned.nth.start()?;
        passed.push(thinned.task);
    }
    session.pass_over(pair, &passed)?;
    for thinned in all.iter_mut().skip(1) {
        // One that is gone has no more calls.
        _ = thinned.each.start();
    }
    if let Some(first) = all.first_mut() {
        first.looks = Some(0);
    }
    let begun = passed.iter().map(|task| Begun { task: *task, nr: call.0, at, cost }).collect();
    Ok((all, begun))
}

impl Thinned {
    /// The events at one task's call, disabled.
    fn open(session: &mut Session, task: u32, (nr, like): (u16, Like)) -> io::Result<Self> {
        let pair = session.pair(nr).ok_or(io::ErrorKind::NotFound)?;
        let each = session.open_at_call(pair, task.cast_signed(), false)?;
        let nth = session.open_at_call(pair, task.cast_signed(), true)?;
        Ok(Self { task, nr, like, each, nth, looks: None })
    }

    fn decide(&mut self, look: &Look) {
        let seen = look.calls.get(&(self.task, self.nr)).copied().unwrap_or_default();
        let waited = look.waited.contains(&self.task);
        match &mut self.looks {
            Some(looks) => {
                *looks += 1;
                let unlike = seen.unlike || seen.calls > 0 && seen.like != self.like;
                if waited || unlike || *looks > LOOKS {
                    // One that is gone has no more calls.
                    _ = self.each.start();
                    self.looks = None;
                }
            }
            None if seen.is_dense() && !waited => {
                _ = self.each.stop();
                (self.looks, self.like) = (Some(0), seen.like);
            }
            None => {}
        }
    }
}

impl Seen {
    fn is_dense(&self) -> bool {
        let quick = self.last.saturating_sub(self.first) <= MAX_INTERVAL * u64::from(self.calls);
        quick && !self.unlike && self.calls >= MIN_CALLS
    }

    fn returned(&mut self, at: u64, args: [u64; 6], ret: i64) {
        let like = Like { args, ret };
        if self.calls == 0 {
            (self.first, self.like) = (at, like);
        }
        self.unlike |= self.like != like;
        (self.calls, self.last) = (self.calls + 1, at);
    }
}

impl Look {
    fn at(&mut self, bytes: &[u8], schema: &Schema, kept: &HashMap<u16, [bool; 6]>) {
        for record in decode::records(bytes, schema) {
            self.see(&record, schema, kept);
        }
    }

    fn see(&mut self, record: &Record<'_>, schema: &Schema, kept: &HashMap<u16, [bool; 6]>) {
        let sample = match &record.body {
            Body::Switched { out: true, runnable: false } => {
                self.waited.push(record.task);
                return;
            }
            Body::Sample(sample) => sample,
            _ => return,
        };
        if !matches!(sample.role, Role::Enter | Role::Leave | Role::EnterNth | Role::LeaveNth) {
            return;
        }
        let offsets = schema.offsets;
        let nr = sample.raw_u32(offsets.enter_nr).and_then(|nr| u16::try_from(nr).ok());
        let Some((nr, kept)) = nr.and_then(|nr| Some((nr, kept.get(&nr)?))) else { return };
        let seen = self.calls.entry((record.task, nr)).or_default();
        if matches!(sample.role, Role::Enter | Role::EnterNth) {
            let arg = |i| sample.raw_u64(offsets.enter_args + 8 * i).unwrap_or(0);
            seen.entered = Some(std::array::from_fn(|i| if kept[i] { arg(i) } else { 0 }));
        } else if let Some(args) = match sample.role {
            Role::Leave => seen.entered.take(),
            _ => seen.entered,
        } {
            let ret = sample.raw_u64(offsets.leave_ret).unwrap_or(0).cast_signed();
            seen.returned(record.at, args, ret);
        }
    }
}

/// What a call costs that is not recorded, tried on the calling thread.
fn measured(session: &mut Session) -> Option<Cost> {
    let bare = session.bare_call;
    let pair = u16::try_from(libc::SYS_lseek).ok().and_then(|nr| session.pair(nr))?;
    // SAFETY: asks for a number.
    let me = unsafe { libc::gettid() };
    let each = session.open_at_call(pair, me, false).ok()?;
    let nth = session.open_at_call(pair, me, true).ok()?;
    each.pass_over(me.cast_unsigned()).ok()?;
    each.start().and_then(|()| nth.start()).ok()?;
    let call = best(EMPTY, empty_calls);
    (bare > 0.0).then(|| Cost { user: whole((call - bare).max(0.0)), kernel: 0 })
}
