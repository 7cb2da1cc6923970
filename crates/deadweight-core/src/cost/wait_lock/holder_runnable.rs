//! When a lock's holder, or who waited for it, had no CPU although it could run.
//!
//! A holder that blocks while it has the lock is still in its critical section: that is not counted here.

use crate::facts::Facts;
use crate::facts::locks::LockWait;
use crate::timeline::Run;
use deadweight_trace::units::Ns;

/// A waiter that is woken is on a CPU so much later, at most; else the CPUs belong to others, and it would wait for one
/// without the lock, too.
const WAKE_UP: Ns = Ns(200_000);

/// When a waiter goes on. Goroutines wait for their turn, not for a CPU.
pub(super) fn resumed(wait: &LockWait) -> Ns {
    match wait.goroutine {
        0 => wait.resumed.min(wait.end + WAKE_UP),
        _ => wait.resumed,
    }
}

/// Intervals in which the holder was runnable but had no CPU: in order, each with the total length of those
/// before it.
pub(super) struct HolderRunnable(Vec<(Ns, Ns, Ns)>);

impl HolderRunnable {
    /// Of one lock's waits, in order of their end. Until a release, the task that releases is the holder.
    pub(super) fn of(facts: &Facts<'_>, waits: &[LockWait]) -> Self {
        let mut from = waits.iter().map(|w| w.start).min().unwrap_or_default();
        let mut sum = Ns::ZERO;
        let mut intervals = Vec::new();
        for wait in waits {
            let task = facts.timeline.task(wait.holder);
            let first = task.spans.partition_point(|s| s.start <= from).saturating_sub(1);
            let spans = task.spans.iter().enumerate().skip(first);
            for (i, span) in spans.take_while(|(_, s)| s.start < wait.end) {
                let (start, end) = (span.start.max(from), task.span_end(i).min(wait.end));
                if span.run() == Run::Runnable && end > start {
                    intervals.push((start, end, sum));
                    sum += end - start;
                }
            }
            from = wait.end;
        }
        Self(intervals)
    }

    /// From when to when.
    pub(super) fn intervals(&self) -> impl Iterator<Item = (Ns, Ns)> {
        self.0.iter().map(|(start, end, _)| (*start, *end))
    }

    /// The part of a wait in which the holder did not wait for a CPU.
    pub(super) fn worked(&self, wait: &LockWait) -> Ns {
        (wait.end - wait.start) - (self.before(wait.end) - self.before(wait.start))
    }

    fn before(&self, at: Ns) -> Ns {
        let next = self.0.partition_point(|(start, _, _)| *start < at);
        let last = next.checked_sub(1).map(|last| self.0[last]);
        last.map_or(Ns::ZERO, |(start, end, sum)| sum + (end.min(at) - start))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::processes::ProcessId;
    use deadweight_trace::ids::{StackId, TaskId};

    /// A wait of 100 µs whose waiter is on a CPU so much after it was woken.
    fn on_cpu_after(delay: u64, goroutine: u64) -> LockWait {
        LockWait {
            process: ProcessId(0),
            word: 4096,
            waiter: TaskId(1),
            holder: TaskId(0),
            start: Ns(0),
            end: Ns(100_000),
            resumed: Ns(100_000 + delay),
            waiter_site: StackId(0),
            holder_site: StackId(0),
            goroutine,
            holding_goroutine: 0,
        }
    }

    #[test]
    fn a_wake_up_belongs_to_the_wait() {
        assert_eq!(resumed(&on_cpu_after(50_000, 0)), Ns(150_000));
        // Goroutines have turns among themselves.
        assert_eq!(resumed(&on_cpu_after(4_000_000, 7)), Ns(4_100_000));
    }

    #[test]
    fn the_time_until_others_leave_the_cpu_is_refused() {
        assert_eq!(resumed(&on_cpu_after(4_000_000, 0)), Ns(300_000));
    }
}
