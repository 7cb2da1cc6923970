//! Closes the events at some calls while the program runs. `follow::fork_burst` decides which.

use super::lock;
use crate::clock::now;
use crate::follow::Follow;
use crate::perf::deferred_close::DeferredClose;
use crate::session::RetiredEvents;
use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::Receiver;
use std::thread;
use std::time::Duration;

/// How often to check whether a task is still in such a call.
const CHECK_INTERVAL: Duration = Duration::from_millis(10);

/// The state shared by the threads for this.
#[derive(Default)]
pub(super) struct ForkBurst {
    /// From the decoder to the drain: calls that need not be recorded any more.
    retired: Mutex<Option<Vec<u16>>>,
    /// To the decoder: since when no entry of these calls is recorded; 0 before.
    closed: AtomicU64,
    /// From the decoder: those of the calls that a task is in, with a recorded entry. None: not known yet.
    under_way: Mutex<Option<BTreeSet<u16>>>,
}

impl ForkBurst {
    /// The calls to retire since the last question.
    pub(super) fn take(&self) -> Option<Vec<u16>> {
        lock(&self.retired).take()
    }

    /// Passes on what `follow` decided (once), and which calls are under way, after all records before `horizon`.
    pub(super) fn update(&self, follow: &Follow<'_>, horizon: u64, passed_on: &mut bool) {
        let Some(retired) = follow.retired_calls() else { return };
        if !std::mem::replace(passed_on, true) {
            *lock(&self.retired) = Some(retired.to_vec());
        }
        let closed = self.closed.load(Ordering::SeqCst);
        if closed != 0 && horizon > closed {
            let under_way = Some(follow.under_way());
            *lock(&self.under_way) = under_way;
        }
    }
}

/// Closes the events that the drain takes out of its session, until the session ends.
pub(super) fn retire(
    retired: &Receiver<RetiredEvents>,
    burst: &ForkBurst,
    ended: &AtomicBool,
    deferred_close: &DeferredClose,
) {
    while let Ok(RetiredEvents { enters, leaves }) = retired.recv() {
        let mut retired = RetiredEvents { enters, leaves };
        // If that fails, the child closes them at the end.
        _ = deferred_close.close_copies(&retired.files());
        retired.enters.clear();
        burst.closed.store(now(), Ordering::SeqCst);
        while !retired.leaves.is_empty() && !ended.load(Ordering::SeqCst) {
            thread::sleep(CHECK_INTERVAL);
            let under_way = lock(&burst.under_way);
            if let Some(under_way) = under_way.clone() {
                retired.leaves.retain(|(nr, _)| under_way.contains(nr));
            }
        }
    }
}
