//! An ordinary user's dense calls: one in so many is recorded, and stands for the others.
//!
//! Where the rings show that a task makes the same small call again and again, with the same arguments and
//! the same result, without waiting, that task gets events of its own at that call, which make a record of
//! one in 61; the ones that all tasks share pass over it. Now and then each call is recorded for a moment, to see
//! whether all is as before, and how long they take. The kernel takes it once which tasks are passed over, so all
//! threads that are there then have events of their own. How many there were stays exact: the kernel counts to
//! 61 whether we look or not. Not for the counting: that is `merge::nth`.

use super::Session;
use super::decimated_call::TaskCallEvents;
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
pub(crate) struct Decimation {
    looked: Vec<u64>,
    /// Whether it can be had.
    allowed: bool,
    kept: HashMap<u16, [bool; 6]>,
    calls_decimated: Vec<DecimatedCall>,
    looks: u32,
    /// What a call costs that is not recorded; measured when it is wanted first.
    cost: Option<Cost>,
}

/// A task's call.
#[derive(Debug)]
struct DecimatedCall {
    task: u32,
    nr: u16,
    like: CallKey,
    each: TaskCallEvents,
    /// One in so many; the task's end shows there.
    nth: TaskCallEvents,
    /// Looks since each was recorded; none while each is.
    looks: Option<u32>,
}

/// Events that are new, and whose they are.
pub(crate) struct DecimationStart {
    pub(crate) task: u32,
    pub(crate) nr: u16,
    /// Before this none was recorded so.
    pub(crate) at: u64,
    /// What a call costs that is not recorded.
    pub(crate) cost: Cost,
}

/// What tells calls apart.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
struct CallKey {
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
    like: CallKey,
}

/// What was seen of all.
#[derive(Default)]
struct RecentCalls {
    calls: HashMap<(u32, u16), Seen>,
    /// Those that waited.
    waited: Vec<u32>,
}

impl Decimation {
    pub(crate) fn new(session: &Session) -> Self {
        Self {
            looked: vec![0; session.cpus.len()],
            allowed: session.user_access.is_some() && in_initial_pid_namespace(),
            kept: high_rate::countable_args(),
            calls_decimated: Vec::new(),
            looks: 0,
            cost: None,
        }
    }

    /// Looks at the newest records, and decides of which calls each is recorded from now on.
    pub(crate) fn look(&mut self, rings: &[Ring], session: &mut Session) -> Vec<DecimationStart> {
        if !self.allowed {
            return Vec::new();
        }
        let grown =
            if self.calls_decimated.iter().any(|t| t.looks.is_some()) { 1 } else { SCAN_AFTER };
        let mut look = RecentCalls::default();
        for (ring, looked) in rings.iter().zip(&mut self.looked) {
            if let Some(bytes) = ring.newest(looked, grown, SCAN_BYTES) {
                look.at(&bytes, &session.schema, &self.kept);
            }
        }
        for calls_decimated in &mut self.calls_decimated {
            calls_decimated.decide(&look);
        }
        let dense = look
            .calls
            .iter()
            .filter(|((task, _), seen)| seen.is_high_rate() && !look.waited.contains(task));
        let new: Vec<_> = dense
            .filter(|((_, nr), _)| self.calls_decimated.iter().all(|known| known.nr != *nr))
            .map(|((task, nr), seen)| (*task, *nr, seen.like))
            .collect();
        let mut begun = self.reopen_for_reused_tids(session);
        for (task, nr, like) in new {
            if self.calls_decimated.iter().any(|known| known.nr == nr) {
                continue;
            }
            let cost = *self.cost.get_or_insert_with(|| measured(session).unwrap_or_default());
            let room = MOST.saturating_sub(self.calls_decimated.len()).min(MOST_TASKS);
            let tasks = beside(task, nr, &look, room);
            match begin(session, &tasks, (nr, like), cost) {
                Ok((calls_decimated, new)) => {
                    self.calls_decimated.extend(calls_decimated);
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
    fn reopen_for_reused_tids(&mut self, session: &mut Session) -> Vec<DecimationStart> {
        self.looks += 1;
        let cost = self.cost.unwrap_or_default();
        if !self.looks.is_multiple_of(REBORN) {
            return Vec::new();
        }
        let gone =
            self.calls_decimated.iter_mut().filter(|calls_decimated| calls_decimated.nth.is_over());
        gone.filter_map(|calls_decimated| {
            let DecimatedCall { task, nr, like, .. } = *calls_decimated;
            let new = DecimatedCall::open(session, task, (nr, like)).ok()?;
            let at = crate::clock::now();
            new.nth.start().and_then(|()| new.each.start()).ok()?;
            *calls_decimated = new;
            Some(DecimationStart { task, nr, at, cost })
        })
        .collect()
    }
}

/// The tasks that this call of theirs is recorded so of: `task`, those that make it, and all threads beside them.
fn beside(task: u32, nr: u16, look: &RecentCalls, most: usize) -> Vec<u32> {
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
    call: (u16, CallKey),
    cost: Cost,
) -> io::Result<(Vec<DecimatedCall>, Vec<DecimationStart>)> {
    let pair = session.pair(call.0).ok_or(io::ErrorKind::NotFound)?;
    let mut all = Vec::new();
    for task in tasks {
        match DecimatedCall::open(session, *task, call) {
            Ok(calls_decimated) => all.push(calls_decimated),
            // It is gone, or another's.
            Err(_) if !all.is_empty() => {}
            Err(error) => return Err(error),
        }
    }
    let at = crate::clock::now();
    let mut passed = Vec::new();
    for calls_decimated in &all {
        calls_decimated.nth.start()?;
        passed.push(calls_decimated.task);
    }
    session.exclude_tasks(pair, &passed)?;
    for calls_decimated in all.iter_mut().skip(1) {
        // One that is gone has no more calls.
        _ = calls_decimated.each.start();
    }
    if let Some(first) = all.first_mut() {
        first.looks = Some(0);
    }
    let begun =
        passed.iter().map(|task| DecimationStart { task: *task, nr: call.0, at, cost }).collect();
    Ok((all, begun))
}

impl DecimatedCall {
    /// The events at one task's call, disabled.
    fn open(session: &mut Session, task: u32, (nr, like): (u16, CallKey)) -> io::Result<Self> {
        let pair = session.pair(nr).ok_or(io::ErrorKind::NotFound)?;
        let each = session.open_at_call(pair, task.cast_signed(), false)?;
        let nth = session.open_at_call(pair, task.cast_signed(), true)?;
        Ok(Self { task, nr, like, each, nth, looks: None })
    }

    fn decide(&mut self, look: &RecentCalls) {
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
            None if seen.is_high_rate() && !waited => {
                _ = self.each.stop();
                (self.looks, self.like) = (Some(0), seen.like);
            }
            None => {}
        }
    }
}

impl Seen {
    fn is_high_rate(&self) -> bool {
        let quick = self.last.saturating_sub(self.first) <= MAX_INTERVAL * u64::from(self.calls);
        quick && !self.unlike && self.calls >= MIN_CALLS
    }

    fn returned(&mut self, at: u64, args: [u64; 6], ret: i64) {
        let like = CallKey { args, ret };
        if self.calls == 0 {
            (self.first, self.like) = (at, like);
        }
        self.unlike |= self.like != like;
        (self.calls, self.last) = (self.calls + 1, at);
    }
}

impl RecentCalls {
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
    each.exclude_tasks(me.cast_unsigned()).ok()?;
    each.start().and_then(|()| nth.start()).ok()?;
    let call = best(EMPTY, empty_calls);
    (bare > 0.0).then(|| Cost { user: whole((call - bare).max(0.0)), kernel: 0 })
}
