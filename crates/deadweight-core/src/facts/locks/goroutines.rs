//! Waits of goroutines for locks, from probes at the runtime's semaphores.
//!
//! The probe `go.lock.wait` is where a goroutine is put into a semaphore's queue. In older recordings it is where a
//! function begins that often returns without a wait, and no record says so. So a wait counts only if nothing
//! since shows its goroutine at work: a goroutine that hits a probe again does not wait any more. Not for the
//! runtime's own locks, nor for channels.

use super::LockWait;
use crate::facts::processes::{ProcessId, Processes};
use crate::timeline::kernel_stacks::WaitsFor;
use crate::timeline::{Run, Timeline};
use deadweight_trace::ids::{StackId, TaskId, Tid};
use deadweight_trace::symbols::Symbols;
use deadweight_trace::units::Ns;
use deadweight_trace::{Kind, Trace};
use std::collections::{BTreeMap, VecDeque};

/// When a goroutine ran again after a wait is known only if it hits a probe soon: within this, and so many times as long as
/// it waited. One that is seen much later may have worked on other threads meanwhile.
const SOON: Ns = Ns(1_000_000);
const LONGER: u64 = 4;

/// A goroutine that entered a wait.
#[derive(Copy, Clone)]
struct Parked {
    goroutine: u64,
    at: Ns,
    thread: TaskId,
    site: StackId,
}

/// A semaphore of a process: its address.
type Word = (ProcessId, u64);

/// The semaphores' queues as the runtime keeps them.
#[derive(Default)]
struct Queues {
    of_word: BTreeMap<Word, VecDeque<Parked>>,
    /// By goroutine: the semaphore that it waits for.
    waiting: BTreeMap<(ProcessId, u64), Word>,
    /// By goroutine: the semaphore that it was woken from, if no release of its own followed.
    woken: BTreeMap<(ProcessId, u64), Word>,
    /// By goroutine: its last wait, if no probe has shown since on which thread it runs.
    ended: BTreeMap<(ProcessId, u64), usize>,
}

impl Queues {
    /// A goroutine hit a probe: whatever it waited for is over, and no release showed when.
    fn is_at_work(&mut self, process: ProcessId, goroutine: u64) {
        if let Some(word) = self.waiting.remove(&(process, goroutine))
            && let Some(queue) = self.of_word.get_mut(&word)
        {
            queue.retain(|parked| parked.goroutine != goroutine);
        }
    }

    /// A goroutine that was woken and did not get the lock goes to the front, others to the end.
    fn wait(&mut self, word: Word, parked: Parked) {
        let goroutine = (word.0, parked.goroutine);
        let queue = self.of_word.entry(word).or_default();
        if self.woken.remove(&goroutine) == Some(word) {
            queue.push_front(parked);
        } else {
            queue.push_back(parked);
        }
        self.waiting.insert(goroutine, word);
    }

    /// A release wakes the first of the queue.
    fn release(&mut self, word: Word, releaser: u64) -> Option<Parked> {
        self.woken.remove(&(word.0, releaser));
        let parked = self.of_word.get_mut(&word)?.pop_front()?;
        self.waiting.remove(&(word.0, parked.goroutine));
        self.woken.insert((word.0, parked.goroutine), word);
        Some(parked)
    }
}

/// Whether a stack waits at a semaphore for something else than a lock.
fn is_no_lock(symbols: &Symbols, stack: StackId) -> bool {
    is_of_runtime(symbols.functions(stack)) || symbols.functions(stack).any(waits_for_else)
}

/// Whether the runtime waits for itself, such as for the end of a collection, in whatever the program was doing. By the
/// function that calls the semaphore: what the semaphore runs itself may be inlined or not.
fn is_of_runtime<'a>(mut functions: impl Iterator<Item = &'a str>) -> bool {
    let of_semaphore =
        |f: &str| f.starts_with("runtime.(*semaRoot)") || f.starts_with("runtime.semacquire");
    functions.find(|f| !of_semaphore(f)).is_some_and(|f| f.starts_with("runtime."))
}

/// Whether a function waits at a semaphore for something else than a lock: a `WaitGroup` for work to end, a file
/// for its turn, the runtime for itself.
fn waits_for_else(function: &str) -> bool {
    function.contains("(*WaitGroup).Wait")
        || function.contains("SemacquireWaitGroup")
        || function.starts_with("internal/poll.")
        || matches!(function, "runtime.semacquire" | "sync.runtime_Semacquire")
}

/// When a goroutine that was woken at `from`, and is seen on this thread at `to`, ran again: after the thread last
/// waited for work, which no goroutine does.
fn resumed(timeline: &Timeline, thread: TaskId, from: Ns, to: Ns) -> Ns {
    let thread = timeline.task(thread);
    let idle = |run: Run| match run {
        Run::Blocked(block) => {
            let waits_for = timeline.blocks[block as usize].waits_for;
            matches!(waits_for, WaitsFor::Futex | WaitsFor::Sleep | WaitsFor::Poll)
        }
        _ => false,
    };
    let first = thread.spans.partition_point(|span| span.start <= from).saturating_sub(1);
    let until = thread.spans.partition_point(|span| span.start <= to);
    let last = (first..until).rev().find(|index| idle(thread.spans[*index].run()));
    last.map_or(from, |index| thread.on_cpu_from(thread.span_end(index)).min(to))
}

/// The probes that [`waits`] reads: a wait, and a release.
fn probes(symbols: &Symbols) -> Option<(usize, usize)> {
    let id = |name: &str| symbols.names.iter().position(|n| n == name);
    id("go.lock.wait").zip(id("go.lock.release"))
}

/// Whether a recording with these symbols may have such waits.
pub(crate) fn needs_events(symbols: &Symbols) -> bool {
    probes(symbols).is_some()
}

/// Waits of goroutines, from the probes `go.lock.wait` and `go.lock.release`, whose arguments are the
/// semaphore and the goroutine that waits or releases.
pub(super) fn waits(trace: &Trace, timeline: &Timeline, processes: &Processes) -> Vec<LockWait> {
    let Some((wait, release)) = probes(&trace.symbols) else { return Vec::new() };
    let mut by_tid: BTreeMap<Tid, Vec<TaskId>> = BTreeMap::new();
    for (index, task) in timeline.tasks.iter().enumerate().filter(|(_, t)| t.own) {
        by_tid.entry(task.tid).or_default().push(TaskId::at(index));
    }
    let mut queues = Queues::default();
    let mut found = Vec::new();
    for event in trace.events() {
        let Kind::Probe { probe, args: [address, goroutine], stack } = event.kind else { continue };
        let lives = by_tid.get(&event.task).map_or(&[][..], Vec::as_slice);
        let task = lives.iter().copied().find(|id| {
            let task = timeline.task(*id);
            task.birth <= event.at && event.at <= task.end
        });
        let Some(task) = task else { continue };
        let process = processes.of(task);
        queues.is_at_work(process, goroutine);
        if let Some(wait) = queues.ended.remove(&(process, goroutine)) {
            let wait: &mut LockWait = &mut found[wait];
            if event.at - wait.end <= SOON + (wait.end - wait.start).scaled(LONGER, 1) {
                wait.resumed = resumed(timeline, task, wait.end, event.at);
            }
        }
        if probe.index() == wait && !is_no_lock(&trace.symbols, stack) {
            let parked = Parked { goroutine, at: event.at, thread: task, site: stack };
            queues.wait((process, address), parked);
        } else if probe.index() == release
            && let Some(parked) = queues.release((process, address), goroutine)
        {
            queues.ended.insert((process, parked.goroutine), found.len());
            found.push(LockWait {
                process,
                word: address,
                waiter: parked.thread,
                holder: task,
                start: parked.at,
                end: event.at,
                resumed: event.at,
                waiter_site: parked.site,
                holder_site: stack,
                goroutine: parked.goroutine,
                holding_goroutine: goroutine,
            });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use crate::cost::tests::{found, repeat};

    /// Two goroutines work beside each other; the second one waits for a lock of the first for 20 µs, in the middle of each
    /// `every` ns, while its thread sleeps, and then works again.
    fn pool(every: u64, times: u64) -> String {
        pool_of("sync.(*Mutex).lockSlow", every, times)
    }

    fn pool_of(lock: &str, every: u64, times: u64) -> String {
        let wait = format!("probe go.lock.wait 0x10 2 from {lock} <- main.get (tile.go:33)");
        let two = repeat(times, 10_000, every, |at| {
            format!(
                "{at} {wait}\n{0} syscall futex 4096 128 0 0\n{0} off blocked\n{1} cpu1 on woken-by 1\n{1} back 0\n\
                 {2} sample main.work <- main.run (tile.go:20)\n{3} syscall futex 4096 128 0 0\n{3} off blocked\n\
                 {4} cpu1 on woken-by 1\n{4} back 0\n",
                at + 1,
                at + 20_000,
                at + every / 2,
                at + every - 2_000,
                at + every - 1_000
            )
        });
        let one = repeat(times, 10_000, every, |at| {
            format!(
                "{} probe go.lock.release 0x10 1 from main.get (tile.go:38)\n{0} syscall futex 4096 129 1 0\n{1} back 1\n\
                 {2} sample main.work <- main.run (tile.go:20)\n",
                at + 19_000,
                at + 19_500,
                at + every / 2
            )
        });
        let end = 20_000 + every * times;
        format!(
            "cpus 2\nimage app path /bin/app language Go\n\
             task 1 app\n0 cpu0 on\n0 exec /bin/app\n100 fork 2 thread\n{one}{end} exit\n{end} off dead\n\
             task 2 app\n200 cpu1 on\n{two}{end} exit\n{end} off dead"
        )
    }

    /// Seen again at once, the goroutine waited until its thread had slept; a second later it may have worked meanwhile.
    #[test]
    fn a_goroutine_that_is_seen_again_soon_is_found_and_one_that_is_seen_much_later_is_refused() {
        let soon = found(&pool(100_000, 40));
        assert!(soon.contains("wait-lock"), "{soon}");
        let later = found(&pool(200_000_000, 5));
        assert!(!later.contains("wait-lock"), "{later}");
    }

    /// A goroutine that allocates waits for the end of a collection, at a semaphore of the collector: nobody works under that lock.
    #[test]
    fn a_lock_is_found_through_the_semaphore_and_one_of_the_runtime_is_refused() {
        let semaphore = "runtime.(*semaRoot).queue <- runtime.semacquire1";
        let lock = format!(
            "{semaphore} <- internal/sync.runtime_SemacquireMutex <- internal/sync.(*Mutex).lockSlow"
        );
        let lock = found(&pool_of(&lock, 100_000, 40));
        assert!(lock.contains("wait-lock"), "{lock}");
        // What a `WaitGroup` started waits for locks as well; a wait for its end is none.
        let started =
            found(&pool_of("sync.(*Mutex).lockSlow <- sync.(*WaitGroup).Go.func1", 100_000, 40));
        assert!(started.contains("wait-lock"), "{started}");
        let end = found(&pool_of("sync.(*WaitGroup).Wait", 100_000, 40));
        assert!(!end.contains("wait-lock"), "{end}");
        for semaphore in [semaphore, "runtime.(*semaRoot).queue"] {
            let allocates = "runtime.gcMarkDone <- runtime.gcAssistAlloc <- runtime.mallocgc";
            let collector = found(&pool_of(&format!("{semaphore} <- {allocates}"), 100_000, 40));
            assert!(!collector.contains("wait-lock"), "{collector}");
        }
    }
}
