//! Decimation of an ordinary user's high-rate calls: one in 61 is recorded, and stands for the
//! others.
//!
//! If the ring buffers show that a task repeats a short call, with the same arguments and result
//! and without waiting, the task gets events of its own at that call, which record one in 61. The
//! events that all tasks share then leave out this call of this task. Now and then each call is recorded for a moment, to check that
//! it is still the same, and how long it takes. The list of tasks that the shared events leave out
//! can be set only once, and no thread be added later: so all present threads get events of their
//! own. The number of
//! calls stays exact, because the kernel counts to 61. Does not derive the number; see
//! `merge::decimated`.

use super::Session;
use super::decimated_call::TaskCallEvents;
use crate::bpf::high_rate::{self, CallRate, Cost, MAX_INTERVAL, SCAN_AFTER, SCAN_BYTES};
use crate::bpf::in_initial_pid_namespace;
use crate::perf::decode::{self, Body, Record};
use crate::perf::ring::Ring;
use crate::perf::schema::{Role, Schema};
use crate::procfs::own_tid;
use crate::timing::{EMPTY, best, empty_calls, whole};
use deadweight_trace::hash::ByFast;
use std::collections::{HashMap, HashSet};
use std::io;

/// After this many scans each call is recorded for a moment.
const RECHECK_AFTER: u32 = 50;
/// Most decimated calls of tasks in one recording, and most tasks of one call.
const MAX_CALLS: usize = 64;
const MAX_TASKS: usize = 16;
/// After this many scans, tasks that have ended are looked up, and whether their ids are reused.
const REUSE_CHECK: u32 = 4;

/// The decimated calls, and the state of the scan.
#[derive(Debug)]
pub(crate) struct Decimation {
    scanned: Vec<u64>,
    /// Whether decimation is available.
    allowed: bool,
    countable: HashMap<u16, [bool; 6]>,
    calls: Vec<DecimatedCall>,
    scans: u32,
    /// Cost of a call that is not recorded. Measured when first needed.
    cost: Option<Cost>,
}

/// One call number of one task.
#[derive(Debug)]
struct DecimatedCall {
    task: u32,
    nr: u16,
    key: CallKey,
    each: TaskCallEvents,
    /// One in 61. These events also show the task's end.
    nth: TaskCallEvents,
    /// Scans since each call was last recorded. None while each is.
    scans: Option<u32>,
}

/// New events, and their task.
pub(crate) struct DecimationStart {
    pub(crate) task: u32,
    pub(crate) nr: u16,
    /// Before this time no call was decimated.
    pub(crate) at: u64,
    /// Cost of a call that is not recorded.
    pub(crate) cost: Cost,
}

/// What distinguishes calls.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
struct CallKey {
    args: [u64; 6],
    ret: i64,
}

/// One call number of one task among the newest records.
#[derive(Copy, Clone, Debug, Default)]
struct CallStats {
    rate: CallRate,
    varies: bool,
    entered: Option<[u64; 6]>,
    key: CallKey,
}

/// Calls among the newest records.
#[derive(Default)]
struct RecentCalls {
    calls: HashMap<(u32, u16), CallStats, ByFast>,
    /// Tasks that waited.
    waited: Vec<u32>,
}

impl Decimation {
    pub(crate) fn new(session: &Session) -> Self {
        Self {
            scanned: vec![0; session.cpus.len()],
            allowed: session.user_access.is_some() && in_initial_pid_namespace(),
            countable: high_rate::countable_args(),
            calls: Vec::new(),
            scans: 0,
            cost: None,
        }
    }

    /// Scans the newest records, and decides which calls are decimated from now on.
    pub(crate) fn scan(&mut self, rings: &[Ring], session: &mut Session) -> Vec<DecimationStart> {
        if !self.allowed {
            return Vec::new();
        }
        let scan_after = if self.calls.iter().any(|t| t.scans.is_some()) { 1 } else { SCAN_AFTER };
        let mut recent = RecentCalls::default();
        for (ring, scanned) in rings.iter().zip(&mut self.scanned) {
            if let Some(bytes) = ring.newest(scanned, scan_after, SCAN_BYTES) {
                recent.scan(&bytes, &session.schema, &self.countable);
            }
        }
        for call in &mut self.calls {
            call.decide(&recent);
        }
        let high_rate = recent
            .calls
            .iter()
            .filter(|((task, _), stats)| stats.is_high_rate() && !recent.waited.contains(task));
        let new: Vec<_> = high_rate
            .filter(|((_, nr), _)| self.calls.iter().all(|known| known.nr != *nr))
            .map(|((task, nr), stats)| (*task, *nr, stats.key))
            .collect();
        let mut started = self.reopen_for_reused_tids(session);
        for (task, nr, key) in new {
            if self.calls.iter().any(|known| known.nr == nr) {
                continue;
            }
            let cost = *self.cost.get_or_insert_with(|| measure_cost(session).unwrap_or_default());
            let most = MAX_CALLS.saturating_sub(self.calls.len()).min(MAX_TASKS);
            let tasks = tasks_to_decimate(task, nr, &recent, most);
            match start(session, &tasks, (nr, key), cost) {
                Ok((opened, new)) => {
                    self.calls.extend(opened);
                    started.extend(new);
                }
                // It has ended. Another task may make such calls later.
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                // If it is not allowed, all calls are recorded.
                Err(_) => self.allowed = false,
            }
        }
        started
    }

    /// A task with a reused id is excluded, too: it gets events of its own.
    fn reopen_for_reused_tids(&mut self, session: &mut Session) -> Vec<DecimationStart> {
        self.scans += 1;
        let cost = self.cost.unwrap_or_default();
        if !self.scans.is_multiple_of(REUSE_CHECK) {
            return Vec::new();
        }
        let gone = self.calls.iter_mut().filter(|call| call.nth.is_over());
        gone.filter_map(|call| {
            let DecimatedCall { task, nr, key, .. } = *call;
            let new = DecimatedCall::open(session, task, (nr, key)).ok()?;
            let at = crate::clock::now();
            new.nth.start().and_then(|()| new.each.start()).ok()?;
            *call = new;
            Some(DecimationStart { task, nr, at, cost })
        })
        .collect()
    }
}

/// The tasks to decimate this call of: `task`, others that make it, and all other threads.
fn tasks_to_decimate(task: u32, nr: u16, recent: &RecentCalls, most: usize) -> Vec<u32> {
    let mut callers: Vec<_> =
        recent.calls.iter().filter(|((_, number), _)| *number == nr).collect();
    callers.sort_unstable_by_key(|((task, _), stats)| (std::cmp::Reverse(stats.rate.calls), *task));
    let mut tasks = vec![task];
    tasks.extend(callers.into_iter().map(|((task, _), _)| *task));
    // A thread's directory exists, though it is not listed.
    let threads = std::fs::read_dir(format!("/proc/{task}/task")).into_iter().flatten().flatten();
    let threads = threads.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    tasks.extend(threads);
    let mut known = HashSet::new();
    tasks.retain(|task| known.insert(*task));
    tasks.truncate(most);
    tasks
}

/// Opens events for this call of these tasks. The first task has a high rate: its calls are
/// decimated at once. Those of the others are when their rate is high.
fn start(
    session: &mut Session,
    tasks: &[u32],
    call: (u16, CallKey),
    cost: Cost,
) -> io::Result<(Vec<DecimatedCall>, Vec<DecimationStart>)> {
    let pair = session.pair(call.0).ok_or(io::ErrorKind::NotFound)?;
    let mut all = Vec::new();
    for task in tasks {
        match DecimatedCall::open(session, *task, call) {
            Ok(opened) => all.push(opened),
            // It has ended, or belongs to another user.
            Err(_) if !all.is_empty() => {}
            Err(error) => return Err(error),
        }
    }
    let at = crate::clock::now();
    let mut excluded = Vec::new();
    for opened in &all {
        opened.nth.start()?;
        excluded.push(opened.task);
    }
    session.exclude_tasks(pair, &excluded)?;
    for opened in all.iter_mut().skip(1) {
        // A task that has ended makes no calls.
        _ = opened.each.start();
    }
    if let Some(first) = all.first_mut() {
        first.scans = Some(0);
    }
    let started =
        excluded.iter().map(|task| DecimationStart { task: *task, nr: call.0, at, cost }).collect();
    Ok((all, started))
}

impl DecimatedCall {
    /// The events at one task's call, disabled.
    fn open(session: &mut Session, task: u32, (nr, key): (u16, CallKey)) -> io::Result<Self> {
        let pair = session.pair(nr).ok_or(io::ErrorKind::NotFound)?;
        let each = session.open_at_call(pair, task.cast_signed(), false)?;
        let nth = session.open_at_call(pair, task.cast_signed(), true)?;
        Ok(Self { task, nr, key, each, nth, scans: None })
    }

    fn decide(&mut self, recent: &RecentCalls) {
        let stats = recent.calls.get(&(self.task, self.nr)).copied().unwrap_or_default();
        let waited = recent.waited.contains(&self.task);
        match &mut self.scans {
            Some(scans) => {
                *scans += 1;
                let varies = stats.varies || stats.rate.calls > 0 && stats.key != self.key;
                if waited || varies || *scans > RECHECK_AFTER {
                    // A task that has ended makes no calls.
                    _ = self.each.start();
                    self.scans = None;
                }
            }
            None if stats.is_high_rate() && !waited => {
                _ = self.each.stop();
                (self.scans, self.key) = (Some(0), stats.key);
            }
            None => {}
        }
    }
}

impl CallStats {
    fn is_high_rate(&self) -> bool {
        self.rate.is_high(MAX_INTERVAL) && !self.varies
    }

    fn returned(&mut self, at: u64, args: [u64; 6], ret: i64) {
        let key = CallKey { args, ret };
        if self.rate.calls == 0 {
            self.key = key;
        }
        self.varies |= self.key != key;
        self.rate.add(at);
    }
}

impl RecentCalls {
    fn scan(&mut self, bytes: &[u8], schema: &Schema, countable: &HashMap<u16, [bool; 6]>) {
        for record in decode::records(bytes, schema) {
            self.add(&record, schema, countable);
        }
    }

    fn add(&mut self, record: &Record<'_>, schema: &Schema, countable: &HashMap<u16, [bool; 6]>) {
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
        let Some((nr, distinct)) = nr.and_then(|nr| Some((nr, countable.get(&nr)?))) else {
            return;
        };
        let stats = self.calls.entry((record.task, nr)).or_default();
        if matches!(sample.role, Role::Enter | Role::EnterNth) {
            let arg = |i| sample.raw_u64(offsets.enter_args + 8 * i).unwrap_or(0);
            stats.entered = Some(std::array::from_fn(|i| if distinct[i] { arg(i) } else { 0 }));
        } else if let Some(args) = match sample.role {
            Role::Leave => stats.entered.take(),
            _ => stats.entered,
        } {
            let ret = sample.raw_u64(offsets.leave_ret).unwrap_or(0).cast_signed();
            stats.returned(record.at, args, ret);
        }
    }
}

/// Measures the cost of a call that is not recorded, on the calling thread.
fn measure_cost(session: &mut Session) -> Option<Cost> {
    let bare = session.unrecorded.empty;
    let pair = u16::try_from(libc::SYS_lseek).ok().and_then(|nr| session.pair(nr))?;
    let me = own_tid();
    let each = session.open_at_call(pair, me.cast_signed(), false).ok()?;
    let nth = session.open_at_call(pair, me.cast_signed(), true).ok()?;
    each.exclude_tasks(me).ok()?;
    each.start().and_then(|()| nth.start()).ok()?;
    let call = best(EMPTY, empty_calls);
    (bare > 0.0).then(|| Cost { user: whole((call - bare).max(0.0)), kernel: 0 })
}
