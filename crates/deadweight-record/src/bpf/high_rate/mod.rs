//! Calls that come so densely that a record of each would cost more than the calls: the kernel counts them.
//!
//! From when the rings show such a task, and then for that task alone. Where the kernel refuses it, all calls
//! go on being recorded one by one. What is counted together is alike in number, arguments that are kept, and
//! result: only its order and each call's own time are lost, and of most only the beginning is timed. Not for what is made of that: see `follow`.

mod told;

use crate::bpf::layout::{entry, kind};
use crate::bpf::{AtSwitches, Programs};
use crate::clock;
use crate::perf::decode::{self, Body};
use crate::perf::ring::Ring;
use crate::perf::schema::{Role, Schema};
use crate::timing::{EMPTY, best, empty_calls, whole, with_the_border};
use deadweight_trace::syscall::{self, Arch};
use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
pub(crate) use told::{Alike, Told};

/// Bytes of new records in a ring from which on it is looked at, and how many of them are.
pub(crate) const GROWN: usize = 64 << 10;
pub(crate) const LOOKED_AT: usize = 64 << 10;
/// The same where some calls in a millisecond come with their stacks, each as long as 50 calls.
const LOOKED_AT_WITH_STACKS: usize = 2 * LOOKED_AT;
/// So many calls of a task among those are dense ...
pub(crate) const CALLS: u32 = 200;
/// ... if they come so many ns one after the other at most, without what recording them takes, ...
pub(crate) const EACH: u64 = 10_000;
/// ... and it waits, or wakes another, less often than once in so many.
const RARELY: u32 = 64;
/// More than so many bytes asked for may take long enough to be told alone.
const SMALL: u64 = 8191;

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
pub(crate) struct Dense {
    /// What was looked at, by ring.
    looked: Vec<u64>,
    /// None if nothing may be counted.
    programs: Option<Arc<Programs>>,
    countable: Vec<u16>,
    /// One empty call that nobody observes, in ns, and how much longer one takes that is recorded.
    bare_call: f64,
    recording: u64,
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
    _at_switches: AtSwitches,
}

/// What was seen of a task among the newest records.
#[derive(Copy, Clone, Debug, Default)]
struct Seen {
    calls: u32,
    waits: u32,
    first: u64,
    last: u64,
}

/// The calls that do nothing to what is told later, and which of their arguments tell them apart.
pub(crate) fn kept_of_countable() -> HashMap<u16, [bool; 6]> {
    let known = COUNTABLE.iter().filter_map(|(name, alike)| {
        let nr = syscall::number(Arch::HOST, name)?;
        let kept = syscall::kept(name).iter().filter(|at| !alike.contains(at));
        let mut told = [false; 6];
        kept.for_each(|at| told[*at] = true);
        Some((nr, told))
    });
    known.collect()
}

impl Dense {
    /// Nothing counted yet, and nothing ever without programs.
    pub(crate) fn new(
        rings: usize,
        programs: Option<Arc<Programs>>,
        (bare_call, recording): (f64, u64),
    ) -> Self {
        let numbers = COUNTABLE.iter().map(|(name, _)| syscall::number(Arch::HOST, name));
        Self {
            looked: vec![0; rings],
            programs,
            countable: numbers.flatten().collect(),
            bare_call,
            recording,
            counting: None,
        }
    }

    /// Looks at the newest records, and has dense calls counted from now on. Returns what that costs, when it
    /// has just begun.
    pub(crate) fn look(&mut self, rings: &[Ring], schema: &Schema) -> Option<Cost> {
        let programs = self.programs.as_ref()?;
        let mut seen: HashMap<u32, Seen> = HashMap::new();
        for (ring, looked) in rings.iter().zip(&mut self.looked) {
            if let Some(bytes) = ring.newest(looked, GROWN, LOOKED_AT_WITH_STACKS) {
                count(&bytes, schema, &self.countable, &mut seen);
            }
        }
        let each = EACH + self.recording;
        let dense = seen.into_iter().filter(|(_, seen)| seen.is_dense(each));
        let dense: Vec<u32> = dense.map(|(task, _)| task).collect();
        let new = self.counting.is_none() && !dense.is_empty();
        if new {
            // Where it is not allowed each call goes on having its records.
            self.counting = Counting::start(programs.clone()).ok();
        }
        let Some(counting) = &self.counting else {
            self.programs = self.programs.take().filter(|_| !new);
            return None;
        };
        dense.into_iter().for_each(|task| counting.begin(task));
        new.then(|| counting.cost(self.bare_call))
    }
}

impl Seen {
    fn is_dense(&self, each: u64) -> bool {
        let quick = self.last.saturating_sub(self.first) <= each * u64::from(self.calls);
        quick && self.calls >= CALLS && self.waits * RARELY <= self.calls
    }
}

/// Counts calls and waits in records.
fn count(bytes: &[u8], schema: &Schema, countable: &[u16], seen: &mut HashMap<u32, Seen>) {
    for record in decode::records(bytes, schema) {
        let Body::Sample(sample) = record.body else { continue };
        match sample.role {
            Role::Enter => {
                let nr = sample.raw_u32(schema.offsets.enter_nr);
                let nr = nr.and_then(|nr| u16::try_from(nr).ok());
                if nr.is_some_and(|nr| countable.contains(&nr)) {
                    let seen = seen.entry(record.task).or_default();
                    seen.first = if seen.calls == 0 { record.at } else { seen.first };
                    (seen.calls, seen.last) = (seen.calls + 1, record.at);
                }
            }
            Role::Waking => seen.entry(record.task).or_default().waits += 1,
            Role::Switch => {
                let state = sample.raw_u64(schema.offsets.prev_state);
                let waits = state.is_some_and(|state| state & 0xff != 0);
                seen.entry(record.task).or_default().waits += u32::from(waits);
            }
            _ => {}
        }
    }
}

impl Counting {
    fn start(programs: Arc<Programs>) -> io::Result<Self> {
        COUNTABLE.iter().for_each(|(name, alike)| allow(&programs, name, alike));
        let at_switches = programs.start_at_switches()?;
        Ok(Self { programs, _at_switches: at_switches })
    }

    /// What counting costs, tried on the calling thread.
    fn cost(&self, bare_call: f64) -> Cost {
        // Where every try was disturbed, so that a call was told by itself, all are made anew.
        let tried = (0..3).find_map(|_| self.tried());
        let Some((call, inside)) = tried.filter(|_| bare_call > 0.0) else {
            return Cost::default();
        };
        let all = (call - bare_call).max(0.0);
        let inside = all.min(inside as f64);
        let [user, kernel] = with_the_border(bare_call, all - inside, inside).map(whole);
        Cost { user, kernel }
    }

    /// How long a counted call takes, and the kernel inside of it, in ns, in the best of a few tries.
    fn tried(&self) -> Option<(f64, u64)> {
        // SAFETY: asks for a number.
        let me = unsafe { libc::gettid() }.cast_unsigned();
        let entry = me as usize % entry::TASKS * entry::SIZE;
        let mut inside = None;
        let call = best(EMPTY, || {
            // None of them is let through.
            self.begin_at(me, clock::read(libc::CLOCK_MONOTONIC).0);
            empty_calls();
            self.end(me);
            let word = |offset| self.programs.tasks.read(entry + entry::FIRST_KIND + offset);
            let each = word(entry::KIND_INSIDE).checked_div(word(entry::KIND_TIMED));
            let all = word(entry::KIND_COUNT) == EMPTY;
            inside = inside.into_iter().chain(each.filter(|_| all)).min();
        });
        Some((call, inside?))
    }

    /// Counts the calls of this task no more, if it was counted.
    fn end(&self, task: u32) {
        if let Some(owner) = self.programs.tasks.shared(task as usize % entry::TASKS * entry::SIZE)
        {
            _ = owner.compare_exchange(task, 0, Ordering::AcqRel, Ordering::Relaxed);
        }
    }

    /// Counts the calls of this task, unless its place is taken; the first is recorded.
    fn begin(&self, task: u32) {
        self.begin_at(task, 0);
    }

    /// The same if one was recorded at this time of the programs' clock.
    fn begin_at(&self, task: u32, recorded: u64) {
        let first = task as usize % entry::TASKS * entry::SIZE;
        let Some(owner) = self.programs.tasks.shared(first + entry::TASK) else { return };
        if owner.load(Ordering::Acquire) != 0 {
            return;
        }
        for offset in (entry::NOW..entry::SIZE).step_by(8) {
            self.programs.tasks.write(first + offset, 0);
        }
        self.programs.tasks.write(first + entry::RUN, entry::CREDIT);
        self.programs.tasks.write(first + entry::RECORDED, recorded);
        owner.store(task, Ordering::Release);
    }
}

impl Drop for Counting {
    /// The programs may stay where they are: they find nobody to count any more.
    fn drop(&mut self) {
        for at in (0..entry::TASKS).map(|task| task * entry::SIZE + entry::TASK) {
            if let Some(owner) = self.programs.tasks.shared(at) {
                owner.store(0, Ordering::Release);
            }
        }
    }
}

/// Calls of this name may be counted; `alike` are arguments that tell none apart.
fn allow(programs: &Programs, name: &str, alike: &[usize]) {
    let kinds = &programs.kinds;
    let Some(nr) = syscall::number(Arch::HOST, name).map(usize::from) else { return };
    if nr >= kind::CALLS {
        return;
    }
    let first = nr * kind::SIZE;
    let kept = syscall::kept(name);
    for i in kept.iter().filter(|i| !alike.contains(i)) {
        kinds.write(first + kind::MASK + 8 * i, u64::MAX);
    }
    if let Some(size) = syscall::size(name).and_then(|at| kept.get(at)) {
        kinds.write(first + kind::LIMIT + 8 * size, !SMALL);
    }
    kinds.write(first + kind::COUNTABLE, u64::from(kept.iter().all(|i| *i < 4)));
}

#[cfg(test)]
mod tests;
