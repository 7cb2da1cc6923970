//! Proven locks: which task waited for which holder, and where.
//!
//! A futex alone proves nothing: condition variables, idle pools and joins sleep on futexes too. A wait
//! counts if the lock's holder woke it through the same word and the waiter's stack shows a lock function;
//! without stacks, if the word is used as locks use it (waiters wake too, and the value waited on is the 2
//! that glibc and Rust write for "contended"). Go's goroutines park without a system call: there, probes on
//! the runtime's semaphores give the same evidence (`goroutines`).

mod goroutines;

use crate::facts::call_site::CallSite;
use crate::facts::call_site::team_code::is_under_team_code;
use crate::facts::processes::{ProcessId, Processes};
use crate::timeline::kernel_stacks::WaitsFor;
use crate::timeline::{Block, Timeline, WokenBy};
use deadweight_trace::ids::{StackId, TaskId};
use deadweight_trace::symbols::Symbols;
use deadweight_trace::units::Ns;
use deadweight_trace::{Trace, syscall};
use std::collections::{BTreeMap, BTreeSet};

pub(crate) use goroutines::needs_events;

/// The value of a contended lock word in glibc and Rust's standard library.
const CONTENDED: u64 = 2;

/// All waits for proven locks.
#[derive(Debug, Default)]
pub(crate) struct Locks {
    /// In order of their end.
    pub(crate) waits: Vec<LockWait>,
}

/// A wait for a proven lock.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct LockWait {
    /// Whose lock.
    pub(crate) process: ProcessId,
    /// The lock's address.
    pub(crate) word: u64,
    /// The waiter: the task, or for Go the thread that the goroutine left.
    pub(crate) waiter: TaskId,
    /// The holder.
    pub(crate) holder: TaskId,
    /// When the wait began.
    pub(crate) start: Ns,
    /// When the holder ended it.
    pub(crate) end: Ns,
    /// When the waiter had a CPU again, as far as it is known.
    pub(crate) resumed: Ns,
    /// The waiter's stack.
    pub(crate) waiter_site: StackId,
    /// The holder's stack when it released the lock.
    pub(crate) holder_site: StackId,
    /// The goroutine that waited: they move between threads. 0 if a task waited.
    pub(crate) goroutine: u64,
    /// The goroutine that ended the wait; 0 if a task did.
    pub(crate) holding_goroutine: u64,
}

#[derive(Default)]
struct Word {
    waits: Vec<LockWait>,
    waiters: BTreeSet<TaskId>,
    wakers: BTreeSet<TaskId>,
    locking: u64,
    other: u64,
    contended: u64,
}

impl Locks {
    /// Finds the locks of a timeline.
    pub(crate) fn gather(trace: &Trace, timeline: &Timeline, processes: &Processes) -> Self {
        let mut words: BTreeMap<(ProcessId, u64), Word> = BTreeMap::new();
        let futex = syscall::number(trace.meta.arch, "futex");
        let mut purposes: BTreeMap<StackId, Option<Purpose>> = BTreeMap::new();
        for block in timeline.blocks.iter().filter(|b| b.waits_for == WaitsFor::Futex) {
            let Some((wait, value)) = futex_wait(timeline, processes, block, futex) else {
                continue;
            };
            let word = words.entry((wait.process, wait.word)).or_default();
            word.waiters.insert(wait.waiter);
            word.wakers.insert(wait.holder);
            word.contended += u64::from(value == CONTENDED);
            let purpose = *purposes
                .entry(wait.waiter_site)
                .or_insert_with(|| purpose(&trace.symbols, wait.waiter_site));
            match purpose {
                Some(Purpose::Lock) => word.locking += 1,
                Some(Purpose::Other) => word.other += 1,
                None => {}
            }
            word.waits.push(wait);
        }
        let mut waits: Vec<LockWait> =
            words.into_values().filter(Word::is_lock).flat_map(|w| w.waits).collect();
        waits.extend(goroutines::waits(trace, timeline, processes));
        waits.sort_by_key(|w| (w.end, w.waiter));
        Self { waits }
    }
}

impl Word {
    fn is_lock(&self) -> bool {
        if self.locking + self.other > 0 {
            return self.locking > self.other;
        }
        let count = u64::try_from(self.waits.len()).unwrap_or(u64::MAX);
        self.contended == count && self.waiters.intersection(&self.wakers).next().is_some()
    }
}

/// A futex wait that a task of the same process ended through the same word, and the value that
/// was waited on.
fn futex_wait(
    timeline: &Timeline,
    processes: &Processes,
    block: &Block,
    futex: Option<u16>,
) -> Option<(LockWait, u64)> {
    let call = &timeline.calls[block.call?.index()];
    let WokenBy::Task(holder) = block.woken_by else { return None };
    let waking = &timeline.calls[block.waker_call?.index()];
    let process = processes.of(block.task);
    let [word, _, value, _] = timeline.args(call);
    let same = Some(call.nr) == futex
        && waking.nr == call.nr
        && processes.of(holder) == process
        && timeline.args(waking)[0] == word;
    let waiter_site = if block.site == StackId(0) { call.site } else { block.site };
    let wait = LockWait {
        process,
        word,
        waiter: block.task,
        holder,
        start: block.start,
        end: block.end,
        resumed: timeline.task(block.task).on_cpu_from(block.end),
        waiter_site,
        holder_site: waking.site,
        goroutine: 0,
        holding_goroutine: 0,
    };
    same.then_some((wait, value))
}

#[derive(Copy, Clone, PartialEq, Eq)]
enum Purpose {
    Lock,
    Other,
}

/// Whether this stack is in a lock's function.
pub(crate) fn waits_for_lock(symbols: &Symbols, stack: StackId) -> bool {
    purpose(symbols, stack) == Some(Purpose::Lock)
}

/// What a stack waits on a futex for: the innermost known function decides. In code by which a team meets, a lock is a
/// part of that.
fn purpose(symbols: &Symbols, stack: StackId) -> Option<Purpose> {
    const OTHER: &[&str] = &[
        "cond_wait",
        "cond_timedwait",
        "cond_clockwait",
        "condition_variable",
        "condvar",
        "condition",
        "sem_wait",
        "semaphore",
        "park",
        "join",
        "barrier",
        "latch",
        "atomic_wait",
        "futexsleep",
        "notesleep",
        "resetevent",
        "waitgroup",
        "once",
    ];
    const LOCK: &[&str] = &[
        "mutex_lock",
        "lll_lock",
        "rwlock_rdlock",
        "rwlock_wrlock",
        "lock_contended",
        "read_contended",
        "write_contended",
        "mutex",
        "rwlock",
        "shared_mutex",
        "lockslow",
        "unique_lock",
        "lock_guard",
        "malloc",
    ];
    if is_under_team_code(symbols, CallSite::Stack(stack)) {
        return Some(Purpose::Other);
    }
    symbols.functions(stack).find_map(|function| {
        let name = function.to_ascii_lowercase();
        if name.contains("mutex_cond_lock") {
            Some(Purpose::Lock)
        } else if OTHER.iter().any(|o| name.contains(o)) {
            Some(Purpose::Other)
        } else if LOCK.iter().any(|l| name.contains(l)) {
            Some(Purpose::Lock)
        } else {
            None
        }
    })
}
