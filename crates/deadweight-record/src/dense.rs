//! Calls that come so densely that a record of each would cost more than the calls: the kernel counts them.
//!
//! Loaded when the rings show such a task, and then for that task alone. Where the kernel refuses it, all calls
//! go on being recorded one by one. What is counted together is alike in number, arguments that are kept, and
//! result: only its order and each call's own time are lost, and of most only the beginning is timed. Not for what is made of that: see `follow`.

mod assembler;
mod kernel;
mod layout;
mod programs;
mod running;
mod told;

use crate::calibrate::{EMPTY, best, empty_calls, whole, with_the_border};
use crate::launch::clock;
use crate::perf::decode::{self, Body};
use crate::perf::ring::Ring;
use crate::perf::schema::{Offsets, Role, Schema};
use deadweight_core::trace::syscall::{self, Arch};
use kernel::{Attached, Loaded, SharedTable, Table};
use layout::{entry, kind};
pub(crate) use programs::TIMED;
use programs::Tables;
use std::collections::HashMap;
use std::io;
use std::os::fd::RawFd;
use std::sync::atomic::Ordering;
pub(crate) use told::{Alike, Told};

/// Bytes of new records in a ring from which on it is looked at, and how many of them are.
pub(crate) const GROWN: usize = 64 << 10;
pub(crate) const LOOKED_AT: usize = 64 << 10;
/// So many calls of a task among those are dense ...
pub(crate) const CALLS: u32 = 200;
/// ... if they come so many ns one after the other at most ...
pub(crate) const EACH: u64 = 10_000;
/// ... and it waits, or wakes another, less often than once in so many.
const RARELY: u32 = 64;
/// More than so many bytes asked for may take long enough to be told alone.
const SMALL: u64 = 8191;
/// The process ids in records are those of the machine in this namespace alone.
const MACHINE: &str = "pid:[4026531836]";

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

/// Who makes dense calls, and the programs that count them.
#[derive(Debug)]
pub(crate) struct Dense {
    /// What was looked at, by ring.
    looked: Vec<u64>,
    /// Perf events at entries and returns, to run programs at; none if nothing may be counted.
    at: Option<[RawFd; 2]>,
    /// By CPU, the events whose records tell what was counted, and the user half of some calls.
    telling: Vec<(u32, [RawFd; 2])>,
    countable: Vec<u16>,
    /// One empty call that nobody observes, in ns.
    bare_call: f64,
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

/// The programs at work.
#[derive(Debug)]
struct Counting {
    tasks: SharedTable,
    _kinds: SharedTable,
    _running: Table,
    _events: [Table; 2],
    _attached: [Attached; 2],
}

/// What was seen of a task among the newest records.
#[derive(Copy, Clone, Debug, Default)]
struct Seen {
    calls: u32,
    waits: u32,
    first: u64,
    last: u64,
}

/// Whether programs of ours may run in the kernel here: loads one of them, and lets it go again.
///
/// # Errors
/// What the kernel refused with, or that process ids have another meaning here than in its records.
pub(crate) fn is_allowed() -> io::Result<()> {
    if !in_namespace_of_machine() {
        return Err(io::Error::other("process ids here are not those of the machine"));
    }
    let tasks = SharedTable::new(entry::SIZE, 1)?;
    let kinds = SharedTable::new(kind::SIZE, 1)?;
    let (running, told) = (Table::of_words()?, Table::of_events(1)?);
    let tables = Tables {
        tasks: tasks.fd(),
        kinds: kinds.fd(),
        running: running.fd(),
        told: told.fd(),
        sited: told.fd(),
    };
    let code = programs::waking(tables).ok_or(io::ErrorKind::InvalidData)?;
    Loaded::at_raw_tracepoint(&code).map(drop)
}

pub(crate) fn in_namespace_of_machine() -> bool {
    std::fs::read_link("/proc/self/ns/pid").is_ok_and(|ns| ns.as_os_str() == MACHINE)
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
    /// Nothing counted yet: `at` are events at the tracepoints of all calls, `telling` what tells on each CPU.
    pub(crate) fn new(
        rings: usize,
        at: Option<[RawFd; 2]>,
        telling: Vec<(u32, [RawFd; 2])>,
        bare_call: f64,
    ) -> Self {
        let numbers = COUNTABLE.iter().map(|(name, _)| syscall::number(Arch::HOST, name));
        Self {
            looked: vec![0; rings],
            at: at.filter(|_| in_namespace_of_machine() && !telling.is_empty()),
            telling,
            countable: numbers.flatten().collect(),
            bare_call,
            counting: None,
        }
    }

    /// Looks at the newest records, and has dense calls counted from now on. Returns what that costs, when it
    /// has just begun.
    pub(crate) fn look(&mut self, rings: &[Ring], schema: &Schema) -> Option<Cost> {
        self.at?;
        let mut seen: HashMap<u32, Seen> = HashMap::new();
        for (ring, looked) in rings.iter().zip(&mut self.looked) {
            if let Some(bytes) = ring.newest(looked, GROWN, LOOKED_AT) {
                count(&bytes, schema, &self.countable, &mut seen);
            }
        }
        let dense = seen.into_iter().filter(|(_, seen)| seen.is_dense());
        let dense: Vec<u32> = dense.map(|(task, _)| task).collect();
        let new = self.counting.is_none() && !dense.is_empty();
        if new {
            // Where it is not allowed each call goes on having its records.
            self.counting = Counting::load(self.at?, &self.telling, schema.offsets).ok();
        }
        let Some(counting) = &self.counting else {
            self.at = self.at.filter(|_| !new);
            return None;
        };
        dense.into_iter().for_each(|task| counting.begin(task));
        new.then(|| counting.cost(self.bare_call))
    }
}

impl Seen {
    fn is_dense(&self) -> bool {
        let quick = self.last.saturating_sub(self.first) <= EACH * u64::from(self.calls);
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
    fn load(at: [RawFd; 2], telling: &[(u32, [RawFd; 2])], offsets: Offsets) -> io::Result<Self> {
        let tasks = SharedTable::new(entry::SIZE, entry::TASKS)?;
        let kinds = SharedTable::new(kind::SIZE, kind::CALLS)?;
        let running = Table::of_words()?;
        let cpus = telling.iter().map(|(cpu, _)| *cpu as usize + 1).max().unwrap_or(1);
        let events = [Table::of_events(cpus)?, Table::of_events(cpus)?];
        for (cpu, of_cpu) in telling {
            for (table, event) in events.iter().zip(of_cpu) {
                table.set_event(*cpu, *event)?;
            }
        }
        let [told, sited] = events.each_ref().map(Table::fd);
        COUNTABLE.iter().for_each(|(name, alike)| allow(&kinds, name, alike));
        let tables =
            Tables { tasks: tasks.fd(), kinds: kinds.fd(), running: running.fd(), told, sited };
        let program =
            |code: Option<Vec<_>>| code.ok_or(io::Error::from(io::ErrorKind::InvalidData));
        let switching = Loaded::at_raw_tracepoint(&program(programs::switching(tables))?)?;
        let waking = Loaded::at_raw_tracepoint(&program(programs::waking(tables))?)?;
        let entering = programs::entering(tables, offsets.enter_nr, offsets.enter_args);
        let entering = Loaded::at_tracepoint(&program(entering)?)?;
        let leaving =
            Loaded::at_tracepoint(&program(programs::leaving(tables, offsets.leave_ret))?)?;
        // Nobody is counted before all four run.
        let attached = [switching.attach(c"sched_switch")?, waking.attach(c"sched_waking")?];
        let [enters, leaves] = at;
        kernel::run_at(leaves, &leaving)?;
        kernel::run_at(enters, &entering)?;
        Ok(Self { tasks, _kinds: kinds, _running: running, _events: events, _attached: attached })
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
            self.begin_at(me, clock(libc::CLOCK_MONOTONIC).0);
            empty_calls();
            self.end(me);
            let word = |offset| self.tasks.read(entry + entry::FIRST_KIND + offset);
            let each = word(entry::KIND_INSIDE).checked_div(word(entry::KIND_TIMED));
            let all = word(entry::KIND_COUNT) == EMPTY;
            inside = inside.into_iter().chain(each.filter(|_| all)).min();
        });
        Some((call, inside?))
    }

    /// Counts the calls of this task no more, if it was counted.
    fn end(&self, task: u32) {
        if let Some(owner) = self.tasks.shared(task as usize % entry::TASKS * entry::SIZE) {
            _ = owner.compare_exchange(task, 0, Ordering::AcqRel, Ordering::Relaxed);
        }
    }

    /// Counts the calls of this task, unless its place is taken; the first is told with its user half.
    fn begin(&self, task: u32) {
        self.begin_at(task, 0);
    }

    /// The same if a user half was told at this time of the programs' clock.
    fn begin_at(&self, task: u32, sited: u64) {
        let first = task as usize % entry::TASKS * entry::SIZE;
        let Some(owner) = self.tasks.shared(first + entry::TASK) else { return };
        if owner.load(Ordering::Acquire) != 0 {
            return;
        }
        for offset in (entry::NOW..entry::SIZE).step_by(8) {
            self.tasks.write(first + offset, 0);
        }
        self.tasks.write(first + entry::RUN, entry::CREDIT);
        self.tasks.write(first + entry::SITED, sited);
        owner.store(task, Ordering::Release);
    }
}

impl Drop for Counting {
    /// The programs stay where they are until their events are closed: they find nobody any more.
    fn drop(&mut self) {
        for at in (0..entry::TASKS).map(|task| task * entry::SIZE + entry::TASK) {
            if let Some(owner) = self.tasks.shared(at) {
                owner.store(0, Ordering::Release);
            }
        }
    }
}

/// Calls of this name may be counted; `alike` are arguments that tell none apart.
fn allow(kinds: &SharedTable, name: &str, alike: &[usize]) {
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
