//! Work on many things in several threads: each takes the next few until there are none.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

/// More threads are not started.
const MOST_THREADS: usize = 16;

/// Does the work on `count` things in several threads, `chunk` at a time; what is returned is in no order.
pub(super) fn in_threads<T: Send>(
    count: usize,
    chunk: usize,
    work: impl Fn(Range<usize>) -> T + Sync,
) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let run = || {
        let mut done = Vec::new();
        loop {
            let first = next.fetch_add(chunk, Ordering::Relaxed);
            let last = count.min(first.saturating_add(chunk));
            if first >= last {
                return done;
            }
            done.push(work(first..last));
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(MOST_THREADS);
    std::thread::scope(|scope| {
        // Where no thread can be started, this one does the work.
        let others: Vec<_> = (1..threads)
            .filter_map(|_| std::thread::Builder::new().spawn_scoped(scope, run).ok())
            .collect();
        let mut done = run();
        for other in others {
            done.extend(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        done
    })
}
