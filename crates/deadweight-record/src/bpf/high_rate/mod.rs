//! Counting of high-rate system calls: a record of each would cost more than the call, so the
//! kernel counts them.
//!
//! A task is counted from when the ring buffers show its high call rate. If the kernel refuses
//! that, all calls are recorded. Calls are counted together if their number, the arguments that
//! matter for it and the result are alike: their order and single times are lost. In each 29 of
//! them one is timed at entry and return; from this the others' time is estimated. Does not emit
//! events; see `follow`.

mod count_record;

use crate::bpf::layout::{call_filter, task_entry};
use crate::bpf::{Programs, RecordRing};
use crate::clock;
use crate::perf::decode::{self, Body};
use crate::perf::schema::{Role, Schema};
use crate::procfs::own_tid;
use crate::timing::{SHORT, Unrecorded, best, short_calls, whole, with_entry_cost};
pub(crate) use count_record::{CallCount, CountRecord};
use deadweight_trace::hash::ByFast;
use deadweight_trace::syscall::{self, Arch};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A ring buffer is scanned after this many new bytes, and at most this many of them.
pub(crate) const SCAN_AFTER: usize = 64 << 10;
pub(crate) const SCAN_BYTES: usize = 64 << 10;
/// The same if some calls in a millisecond have stacks, each as long as 50 calls.
const SCAN_BYTES_WITH_STACKS: usize = 2 * SCAN_BYTES;
/// A high rate: at least this many calls of a task among those, ...
const MIN_CALLS: u32 = 200;
/// ... in this interval at most, in ns, without the cost of recording, ...
pub(crate) const MAX_INTERVAL: u64 = 10_000;
/// ... fewer waits and wake-ups than one in this many calls, ...
const MIN_CALLS_PER_WAIT: u32 = 64;
/// ... and fewer calls that cannot be counted than one in this many: at each, the counts so far are output.
const MIN_CALLS_PER_OTHER: u32 = 8;
/// A task whose counting began is not looked at for so long, in ns: at first, and at most. Each time it doubles, because
/// the programs stop counting what does not pay.
const PAUSES: [u64; 2] = [1_000_000, 1_000_000_000];
/// After so many scans in a row without such a task, the next ones come later: each interrupts the program.
const PATIENT_AFTER: u32 = 16;
/// Until there was little to scan for so long, in ns.
const QUIET: u64 = 100_000_000;
/// Calls that transfer more bytes may take long: they are recorded alone.
const MAX_TRANSFER: u64 = 8191;

/// Calls without effects on later events: no descriptors, no mappings, no tasks. By name, with
/// further arguments that do not distinguish calls, as an offset in a file.
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

/// Finds tasks with a high call rate, and has their calls counted.
#[derive(Debug)]
pub(crate) struct HighRate {
    /// Scanned bytes, by ring buffer.
    scanned: Vec<u64>,
    /// None if counting is not allowed.
    programs: Option<Arc<Programs>>,
    countable: Vec<u16>,
    /// What a counted call costs, and the additional time of a recorded one in ns.
    counted: Cost,
    recording_cost: u64,
    counting: Option<Counting>,
    /// Scans in a row that found no such task, and when the latest scan of enough bytes was, in ns.
    in_vain: u32,
    scanned_at: u64,
    /// Until when tasks are not looked at, and the pause that led there, in ns.
    paused: HashMap<u32, (u64, u64), ByFast>,
}

/// Cost of a counted call, in ns.
#[derive(Copy, Clone, Debug, Default)]
pub(crate) struct Cost {
    /// Outside the call.
    pub(crate) user: u64,
    /// Between its entry and its return.
    pub(crate) kernel: u64,
}

/// Counting has begun.
#[derive(Debug)]
struct Counting {
    programs: Arc<Programs>,
}

/// Calls of a task among the newest records, and when the first and the last was.
#[derive(Copy, Clone, Debug, Default)]
pub(crate) struct CallRate {
    pub(crate) calls: u32,
    first: u64,
    last: u64,
}

/// What the newest records have of a task.
#[derive(Copy, Clone, Debug, Default)]
struct TaskActivity {
    rate: CallRate,
    waits: u32,
    /// Calls that cannot be counted.
    others: u32,
}

/// The calls without effects on later events, and which of their arguments distinguish calls.
pub(crate) fn countable_args() -> HashMap<u16, [bool; 6]> {
    let known = COUNTABLE.iter().filter_map(|(name, unmasked)| {
        let nr = syscall::number(Arch::HOST, name)?;
        let kept = syscall::kept(name).iter().filter(|at| !unmasked.contains(at));
        let mut distinct = [false; 6];
        kept.for_each(|at| distinct[*at] = true);
        Some((nr, distinct))
    });
    known.collect()
}

impl HighRate {
    /// Counts nothing yet, and never without programs.
    pub(crate) fn new(
        rings: usize,
        programs: Option<Arc<Programs>>,
        (counted, recording_cost): (Cost, u64),
    ) -> Self {
        let numbers = COUNTABLE.iter().map(|(name, _)| syscall::number(Arch::HOST, name));
        Self {
            scanned: vec![0; rings],
            programs,
            countable: numbers.flatten().collect(),
            counted,
            recording_cost,
            counting: None,
            in_vain: 0,
            scanned_at: 0,
            paused: HashMap::default(),
        }
    }

    /// Scans the newest records, and starts counting the calls of tasks with a high rate. Returns
    /// the cost of counting when it has just begun.
    pub(crate) fn scan(&mut self, rings: &[RecordRing], schema: &Schema) -> Option<Cost> {
        let programs = self.programs.clone()?;
        let mut tasks = HashMap::default();
        let mut enough = false;
        for (ring, scanned) in rings.iter().zip(&mut self.scanned) {
            if let Some(bytes) = ring.newest(scanned, SCAN_AFTER, SCAN_BYTES_WITH_STACKS) {
                count_calls(&bytes, schema, &self.countable, &mut tasks);
                enough = true;
            }
        }
        let max_interval = MAX_INTERVAL + self.recording_cost;
        let high_rate = tasks.into_iter().filter(|(_, task)| task.is_high_rate(max_interval));
        let mut high_rate_tasks: Vec<u32> = high_rate.map(|(task, _)| task).collect();
        let now = clock::now();
        self.be_patient(rings, enough.then_some(high_rate_tasks.is_empty()), now);
        high_rate_tasks.retain(|task| pause(self.paused.entry(*task).or_default(), now));
        let new = self.counting.is_none() && !high_rate_tasks.is_empty();
        if new {
            self.counting = Some(Counting::start(programs.clone()));
        }
        let counting = self.counting.as_ref()?;
        high_rate_tasks.into_iter().for_each(|task| counting.begin(task));
        new.then_some(self.counted)
    }

    /// Lets more records come before the next scan if several found nothing. `in_vain`: whether this one did; none if there
    /// was little to scan.
    fn be_patient(&mut self, rings: &[RecordRing], in_vain: Option<bool>, now: u64) {
        let before = self.in_vain >= PATIENT_AFTER;
        self.in_vain = match in_vain {
            Some(true) => self.in_vain.saturating_add(1),
            None if now.saturating_sub(self.scanned_at) < QUIET => self.in_vain,
            Some(false) | None => 0,
        };
        if in_vain.is_some() {
            self.scanned_at = now;
        }
        let patient = self.in_vain >= PATIENT_AFTER;
        if patient != before {
            rings.iter().for_each(|ring| ring.set_patient(patient));
        }
    }
}

/// Measures what a counted call costs, on the calling thread: before the program runs, which may share the core.
pub(crate) fn cost(programs: &Arc<Programs>, unrecorded: Unrecorded) -> Cost {
    Counting::start(programs.clone()).cost(unrecorded)
}

/// Whether the pause of a task is over. Then the next one begins.
fn pause((until, length): &mut (u64, u64), now: u64) -> bool {
    if now < *until {
        return false;
    }
    *length = (2 * *length).clamp(PAUSES[0], PAUSES[1]);
    *until = now + *length;
    true
}

impl CallRate {
    pub(crate) fn add(&mut self, at: u64) {
        self.first = if self.calls == 0 { at } else { self.first };
        (self.calls, self.last) = (self.calls + 1, at);
    }

    /// Whether there are enough calls, with at most this interval in ns on average.
    pub(crate) fn is_high(&self, max_interval: u64) -> bool {
        let quick = self.last.saturating_sub(self.first) <= max_interval * u64::from(self.calls);
        quick && self.calls >= MIN_CALLS
    }
}

impl TaskActivity {
    fn is_high_rate(&self, max_interval: u64) -> bool {
        self.rate.is_high(max_interval)
            && self.waits * MIN_CALLS_PER_WAIT <= self.rate.calls
            && self.others * MIN_CALLS_PER_OTHER <= self.rate.calls
    }
}

/// Counts calls and waits in records.
fn count_calls(
    bytes: &[u8],
    schema: &Schema,
    countable: &[u16],
    tasks: &mut HashMap<u32, TaskActivity, ByFast>,
) {
    for record in decode::records(bytes, schema) {
        let Body::Sample(sample) = record.body else { continue };
        match sample.role {
            Role::Enter => {
                let nr = sample.raw_u32(schema.offsets.enter_nr);
                let nr = nr.and_then(|nr| u16::try_from(nr).ok());
                let task = tasks.entry(record.task).or_default();
                if nr.is_some_and(|nr| countable.contains(&nr)) {
                    task.rate.add(record.at);
                } else {
                    task.others += 1;
                }
            }
            Role::Waking => tasks.entry(record.task).or_default().waits += 1,
            Role::Switch => {
                let state = sample.raw_u64(schema.offsets.prev_state);
                let waits = state.is_some_and(|state| state & 0xff != 0);
                tasks.entry(record.task).or_default().waits += u32::from(waits);
            }
            _ => {}
        }
    }
}

impl Counting {
    fn start(programs: Arc<Programs>) -> Self {
        COUNTABLE.iter().for_each(|(name, unmasked)| allow(&programs, name, unmasked));
        Self { programs }
    }

    /// Measures the cost of counting on the calling thread.
    fn cost(&self, unrecorded: Unrecorded) -> Cost {
        // If a try was disturbed, so that a call was recorded alone, it is repeated.
        let measured = (0..3).find_map(|_| self.try_once());
        let Some((call, in_kernel)) = measured.filter(|_| unrecorded.short > 0.0) else {
            return Cost::default();
        };
        let all = (call - unrecorded.short).max(0.0);
        let own_work = unrecorded.short - unrecorded.empty;
        let in_kernel = (in_kernel as f64 - own_work).clamp(0.0, all);
        let [user, kernel] =
            with_entry_cost(unrecorded.empty, all - in_kernel, in_kernel).map(whole);
        Cost { user, kernel }
    }

    /// Time of a counted call, and the part in the kernel, in ns: the best of a few tries.
    fn try_once(&self) -> Option<(f64, u64)> {
        let me = own_tid();
        let entry = offset_of(me);
        let mut in_kernel = None;
        let call = best(SHORT, || {
            // No call is recorded alone.
            self.begin_at(me, clock::read(libc::CLOCK_MONOTONIC).0);
            short_calls();
            self.end(me);
            let word = |offset| self.programs.tasks.read(entry + task_entry::FIRST_KIND + offset);
            let each = word(task_entry::KIND_INSIDE).checked_div(word(task_entry::KIND_TIMED));
            let all = word(task_entry::KIND_COUNT) == SHORT;
            in_kernel = in_kernel.into_iter().chain(each.filter(|_| all)).min();
        });
        Some((call, in_kernel?))
    }

    /// Stops counting the calls of this task.
    fn end(&self, task: u32) {
        if let Some(owner) = self.programs.tasks.shared(offset_of(task) + task_entry::TASK) {
            _ = owner.compare_exchange(task, 0, Ordering::AcqRel, Ordering::Relaxed);
        }
    }

    /// Starts counting the calls of this task, unless its map entry is in use. The first call is
    /// recorded.
    fn begin(&self, task: u32) {
        self.begin_at(task, 0);
    }

    /// The same, with the time of the latest recorded call on the programs' clock.
    fn begin_at(&self, task: u32, recorded: u64) {
        let first = offset_of(task);
        let Some(owner) = self.programs.tasks.shared(first + task_entry::TASK) else { return };
        if owner.load(Ordering::Acquire) != 0 {
            return;
        }
        for offset in (task_entry::NOW..task_entry::SIZE).step_by(8) {
            self.programs.tasks.write(first + offset, 0);
        }
        self.programs.tasks.write(first + task_entry::CALLS_PER_WAIT, task_entry::CREDIT);
        self.programs.tasks.write(first + task_entry::CALLS_PER_OUTPUT, task_entry::OUTPUT_CREDIT);
        self.programs.tasks.write(first + task_entry::RECORDED, recorded);
        owner.store(task, Ordering::Release);
    }
}

/// Where the entry of this task is in the task map.
fn offset_of(task: u32) -> usize {
    task as usize % task_entry::TASKS * task_entry::SIZE
}

impl Drop for Counting {
    /// The programs may stay attached: no task is counted any more.
    fn drop(&mut self) {
        for at in (0..task_entry::TASKS).map(|task| task * task_entry::SIZE + task_entry::TASK) {
            if let Some(owner) = self.programs.tasks.shared(at) {
                owner.store(0, Ordering::Release);
            }
        }
    }
}

/// Allows counting calls of this name. `unmasked` arguments do not distinguish calls.
fn allow(programs: &Programs, name: &str, unmasked: &[usize]) {
    let call_filters = &programs.call_filters;
    let Some(nr) = syscall::number(Arch::HOST, name).map(usize::from) else { return };
    if nr >= call_filter::CALLS {
        return;
    }
    let offset = nr * call_filter::SIZE;
    let kept = syscall::kept(name);
    for i in kept.iter().filter(|i| !unmasked.contains(i)) {
        call_filters.write(offset + call_filter::MASK + 8 * i, u64::MAX);
    }
    if let Some(size) = syscall::size(name).and_then(|at| kept.get(at)) {
        call_filters.write(offset + call_filter::LIMIT + 8 * size, !MAX_TRANSFER);
    }
    call_filters.write(offset + call_filter::COUNTABLE, u64::from(kept.iter().all(|i| *i < 4)));
}

#[cfg(test)]
mod tests;
