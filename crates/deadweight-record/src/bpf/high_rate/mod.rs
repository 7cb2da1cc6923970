//! Calls that come so densely that a record of each would cost more than the calls: the kernel counts them.
//!
//! From when the rings show such a task, and then for that task alone. Where the kernel refuses it, all calls
//! go on being recorded one by one. What is counted together is alike in number, arguments that are kept, and
//! result: only its order and each call's own time are lost, and of most only the beginning is timed. Not for what is made of that: see `follow`.

mod count_record;

use crate::bpf::layout::{call_filter, task_entry};
use crate::bpf::{Programs, SchedPrograms};
use crate::clock;
use crate::perf::decode::{self, Body};
use crate::perf::ring::Ring;
use crate::perf::schema::{Role, Schema};
use crate::timing::{EMPTY, best, empty_calls, whole, with_entry_cost};
pub(crate) use count_record::{CallCount, CountRecord};
use deadweight_trace::syscall::{self, Arch};
use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Bytes of new records in a ring from which on it is looked at, and how many of them are.
pub(crate) const SCAN_AFTER: usize = 64 << 10;
pub(crate) const SCAN_BYTES: usize = 64 << 10;
/// The same where some calls in a millisecond come with their stacks, each as long as 50 calls.
const SCAN_BYTES_WITH_STACKS: usize = 2 * SCAN_BYTES;
/// So many calls of a task among those are dense ...
pub(crate) const MIN_CALLS: u32 = 200;
/// ... if they come so many ns one after the other at most, without what recording them takes, ...
pub(crate) const MAX_INTERVAL: u64 = 10_000;
/// ... and it waits, or wakes another, less often than once in so many.
const MIN_CALLS_PER_WAIT: u32 = 64;
/// More than so many bytes asked for may take long enough to be told alone.
const MAX_TRANSFER: u64 = 8191;

/// Calls that do nothing to what is told later: no descriptors, no mappings, no tasks. By name, with the
/// arguments of which any value is like another beside those that are not kept: a place in a file.
const COUNTABLE: [(&str, &[usize]); 53] = [
    ("access", &[]),
    ("clock_getres", &[]),
    ("clock_gettime", &[]),
    ("faccessat", &[]),
    ("faccessat2", &[]),
    ("fstat", &[]),
    ("fstatfs", &[]),
    ("getcpu", &[]),
    ("getcwd", &[]),
    ("getegid", &[]),
    ("geteuid", &[]),
    ("getgid", &[]),
    ("getitimer", &[]),
    ("getpeername", &[]),
    ("getpgid", &[]),
    ("getpgrp", &[]),
    ("getpid", &[]),
    ("getppid", &[]),
    ("getpriority", &[]),
    ("getrandom", &[]),
    ("getresgid", &[]),
    ("getresuid", &[]),
    ("getrlimit", &[]),
    ("getrusage", &[]),
    ("getsid", &[]),
    ("getsockname", &[]),
    ("getsockopt", &[]),
    ("gettid", &[]),
    ("gettimeofday", &[]),
    ("getuid", &[]),
    ("lseek", &[]),
    ("lstat", &[]),
    ("newfstatat", &[]),
    ("pread64", &[3]),
    ("pwrite64", &[3]),
    ("read", &[]),
    ("readlink", &[]),
    ("readlinkat", &[]),
    ("readv", &[]),
    ("recvfrom", &[]),
    ("recvmsg", &[]),
    ("rt_sigprocmask", &[]),
    ("sched_getaffinity", &[]),
    ("sendmsg", &[]),
    ("sendto", &[]),
    ("stat", &[]),
    ("statfs", &[]),
    ("statx", &[]),
    ("time", &[]),
    ("times", &[]),
    ("uname", &[]),
    ("write", &[]),
    ("writev", &[]),
];

/// Who makes dense calls, and what counts them.
#[derive(Debug)]
pub(crate) struct HighRate {
    /// What was looked at, by ring.
    scanned: Vec<u64>,
    /// None if nothing may be counted.
    programs: Option<Arc<Programs>>,
    countable: Vec<u16>,
    /// One empty call that nobody observes, in ns, and how much longer one takes that is recorded.
    bare_call: f64,
    recording_cost: u64,
    counting: Option<Counting>,
}

/// What a call costs that is counted, in ns.
#[derive(Copy, Clone, Debug, Default)]
pub(crate) struct Cost {
    /// Around it.
    pub(crate) user: u64,
    /// Between its entry and its return.
    pub(crate) kernel: u64,
}

/// Calls are counted from now on.
#[derive(Debug)]
struct Counting {
    programs: Arc<Programs>,
    _sched: SchedPrograms,
}

/// What was seen of a task among the newest records.
#[derive(Copy, Clone, Debug, Default)]
struct CallRate {
    calls: u32,
    waits: u32,
    first: u64,
    last: u64,
}

/// The calls that do nothing to what is told later, and which of their arguments tell them apart.
pub(crate) fn countable_args() -> HashMap<u16, [bool; 6]> {
    let known = COUNTABLE.iter().filter_map(|(name, call_count)| {
        let nr = syscall::number(Arch::HOST, name)?;
        let kept = syscall::kept(name).iter().filter(|at| !call_count.contains(at));
        let mut distinct = [false; 6];
        kept.for_each(|at| distinct[*at] = true);
        Some((nr, distinct))
    });
    known.collect()
}

impl HighRate {
    /// Nothing counted yet, and nothing ever without programs.
    pub(crate) fn new(
        rings: usize,
        programs: Option<Arc<Programs>>,
        (bare_call, recording_cost): (f64, u64),
    ) -> Self {
        let numbers = COUNTABLE.iter().map(|(name, _)| syscall::number(Arch::HOST, name));
        Self {
            scanned: vec![0; rings],
            programs,
            countable: numbers.flatten().collect(),
            bare_call,
            recording_cost,
            counting: None,
        }
    }

    /// Looks at the newest records, and has dense calls counted from now on. Returns what that costs, when it
    /// has just begun.
    pub(crate) fn scan(&mut self, rings: &[Ring], schema: &Schema) -> Option<Cost> {
        let programs = self.programs.as_ref()?;
        let mut tasks_seen: HashMap<u32, CallRate> = HashMap::new();
        for (ring, scanned) in rings.iter().zip(&mut self.scanned) {
            if let Some(bytes) = ring.newest(scanned, SCAN_AFTER, SCAN_BYTES_WITH_STACKS) {
                count_calls(&bytes, schema, &self.countable, &mut tasks_seen);
            }
        }
        let each = MAX_INTERVAL + self.recording_cost;
        let high_rate = tasks_seen.into_iter().filter(|(_, calls)| calls.is_high_rate(each));
        let high_rate_tasks: Vec<u32> = high_rate.map(|(task, _)| task).collect();
        let new = self.counting.is_none() && !high_rate_tasks.is_empty();
        if new {
            // Where it is not allowed each call goes on having its records.
            self.counting = Counting::start(programs.clone()).ok();
        }
        let Some(counting) = &self.counting else {
            self.programs = self.programs.take().filter(|_| !new);
            return None;
        };
        high_rate_tasks.into_iter().for_each(|task| counting.begin(task));
        new.then(|| counting.cost(self.bare_call))
    }
}

impl CallRate {
    fn is_high_rate(&self, each: u64) -> bool {
        let at_rate = self.last.saturating_sub(self.first) <= each * u64::from(self.calls);
        at_rate && self.calls >= MIN_CALLS && self.waits * MIN_CALLS_PER_WAIT <= self.calls
    }
}

/// Counts calls and waits in records.
fn count_calls(
    bytes: &[u8],
    schema: &Schema,
    countable: &[u16],
    tasks_seen: &mut HashMap<u32, CallRate>,
) {
    for record in decode::records(bytes, schema) {
        let Body::Sample(sample) = record.body else { continue };
        match sample.role {
            Role::Enter => {
                let nr = sample.raw_u32(schema.offsets.enter_nr);
                let nr = nr.and_then(|nr| u16::try_from(nr).ok());
                if nr.is_some_and(|nr| countable.contains(&nr)) {
                    let task = tasks_seen.entry(record.task).or_default();
                    task.first = if task.calls == 0 { record.at } else { task.first };
                    (task.calls, task.last) = (task.calls + 1, record.at);
                }
            }
            Role::Waking => tasks_seen.entry(record.task).or_default().waits += 1,
            Role::Switch => {
                let state = sample.raw_u64(schema.offsets.prev_state);
                let waits = state.is_some_and(|state| state & 0xff != 0);
                tasks_seen.entry(record.task).or_default().waits += u32::from(waits);
            }
            _ => {}
        }
    }
}

impl Counting {
    fn start(programs: Arc<Programs>) -> io::Result<Self> {
        COUNTABLE.iter().for_each(|(name, call_count)| allow(&programs, name, call_count));
        let sched = programs.start_sched_programs()?;
        Ok(Self { programs, _sched: sched })
    }

    /// What counting costs, tried on the calling thread.
    fn cost(&self, bare_call: f64) -> Cost {
        // Where every try was disturbed, so that a call was told by itself, all are made anew.
        let try_once = (0..3).find_map(|_| self.try_once());
        let Some((call, in_kernel)) = try_once.filter(|_| bare_call > 0.0) else {
            return Cost::default();
        };
        let all = (call - bare_call).max(0.0);
        let in_kernel = all.min(in_kernel as f64);
        let [user, kernel] = with_entry_cost(bare_call, all - in_kernel, in_kernel).map(whole);
        Cost { user, kernel }
    }

    /// How long a counted call takes, and the kernel inside of it, in ns, in the best of a few tries.
    fn try_once(&self) -> Option<(f64, u64)> {
        // SAFETY: asks for a number.
        let me = unsafe { libc::gettid() }.cast_unsigned();
        let entry = me as usize % task_entry::TASKS * task_entry::SIZE;
        let mut in_kernel = None;
        let call = best(EMPTY, || {
            // None of them is let through.
            self.begin_at(me, clock::read(libc::CLOCK_MONOTONIC).0);
            empty_calls();
            self.end(me);
            let word = |offset| self.programs.tasks.read(entry + task_entry::FIRST_KIND + offset);
            let each = word(task_entry::KIND_INSIDE).checked_div(word(task_entry::KIND_TIMED));
            let all = word(task_entry::KIND_COUNT) == EMPTY;
            in_kernel = in_kernel.into_iter().chain(each.filter(|_| all)).min();
        });
        Some((call, in_kernel?))
    }

    /// Counts the calls of this task no more, if it was counted.
    fn end(&self, task: u32) {
        if let Some(owner) =
            self.programs.tasks.shared(task as usize % task_entry::TASKS * task_entry::SIZE)
        {
            _ = owner.compare_exchange(task, 0, Ordering::AcqRel, Ordering::Relaxed);
        }
    }

    /// Counts the calls of this task, unless its place is taken; the first is recorded.
    fn begin(&self, task: u32) {
        self.begin_at(task, 0);
    }

    /// The same if one was recorded at this time of the programs' clock.
    fn begin_at(&self, task: u32, call_records: u64) {
        let offset = task as usize % task_entry::TASKS * task_entry::SIZE;
        let Some(owner) = self.programs.tasks.shared(offset + task_entry::TASK) else { return };
        if owner.load(Ordering::Acquire) != 0 {
            return;
        }
        for offset in (task_entry::NOW..task_entry::SIZE).step_by(8) {
            self.programs.tasks.write(offset + offset, 0);
        }
        self.programs.tasks.write(offset + task_entry::CALLS_PER_WAIT, task_entry::CREDIT);
        self.programs.tasks.write(offset + task_entry::RECORDED, call_records);
        owner.store(task, Ordering::Release);
    }
}

impl Drop for Counting {
    /// The programs may stay where they are: they find nobody to count any more.
    fn drop(&mut self) {
        for at in (0..task_entry::TASKS).map(|task| task * task_entry::SIZE + task_entry::TASK) {
            if let Some(owner) = self.programs.tasks.shared(at) {
                owner.store(0, Ordering::Release);
            }
        }
    }
}

/// Calls of this name may be counted; `call_count` are arguments that tell none apart.
fn allow(programs: &Programs, name: &str, call_count: &[usize]) {
    let call_filters = &programs.call_filters;
    let Some(nr) = syscall::number(Arch::HOST, name).map(usize::from) else { return };
    if nr >= call_filter::CALLS {
        return;
    }
    let offset = nr * call_filter::SIZE;
    let kept = syscall::kept(name);
    for i in kept.iter().filter(|i| !call_count.contains(i)) {
        call_filters.write(offset + call_filter::MASK + 8 * i, u64::MAX);
    }
    if let Some(size) = syscall::size(name).and_then(|at| kept.get(at)) {
        call_filters.write(offset + call_filter::LIMIT + 8 * size, !MAX_TRANSFER);
    }
    call_filters.write(offset + call_filter::COUNTABLE, u64::from(kept.iter().all(|i| *i < 4)));
}

#[cfg(test)]
mod tests;
