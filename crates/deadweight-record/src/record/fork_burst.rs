//! Lets the events at some calls go while the program runs. Not for deciding which: that is `follow::fork_burst`.

use super::Shared;
use crate::clock::now;
use crate::follow::Follow;
use crate::perf::deferred_close::DeferredClose;
use crate::session::RetiredEvents;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Receiver;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// How often it is looked whether anybody is still in such a call.
const LOOK: Duration = Duration::from_millis(10);

/// What the threads tell each other about it.
#[derive(Default)]
pub(super) struct ForkBurst {
    /// From the decoder to the drain: calls that are not to be recorded any more.
    retired: Mutex<Option<Vec<u16>>>,
    /// To the decoder: since when no entry of theirs is recorded; before that 0.
    closed: AtomicU64,
    /// From the decoder: those of them that somebody is in whose entry was recorded. None: not known yet.
    under_way: Mutex<Option<BTreeSet<u16>>>,
}

impl ForkBurst {
    /// What is to be done since this was asked last.
    pub(super) fn take(&self) -> Option<Vec<u16>> {
        self.retired.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Tells what `follow` decided, which it does once, and what it knows, having taken all before `horizon`.
    pub(super) fn update(&self, follow: &Follow<'_>, horizon: u64, told: &mut bool) {
        let Some(retired) = follow.retired_calls() else { return };
        if !std::mem::replace(told, true) {
            *self.retired.lock().unwrap_or_else(PoisonError::into_inner) = Some(retired.to_vec());
        }
        let closed = self.closed.load(Ordering::SeqCst);
        if closed != 0 && horizon > closed {
            let under_way = Some(follow.under_way());
            *self.under_way.lock().unwrap_or_else(PoisonError::into_inner) = under_way;
        }
    }
}

/// Closes what the drain takes out of its session, until that ends.
pub(super) fn retire(
    retired: &Receiver<RetiredEvents>,
    shared: &Shared,
    deferred_close: &DeferredClose,
) {
    while let Ok(RetiredEvents { enters, leaves }) = retired.recv() {
        let mut retired = RetiredEvents { enters, leaves };
        // Should that fail, they are only closed later: by the child, in the end.
        _ = deferred_close.close_copies(&retired.files());
        retired.enters.clear();
        shared.fork_burst.closed.store(now(), Ordering::SeqCst);
        while !retired.leaves.is_empty() && !shared.ended.load(Ordering::SeqCst) {
            thread::sleep(LOOK);
            let under_way = &shared.fork_burst.under_way;
            let under_way = under_way.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(under_way) = under_way.clone() {
                retired.leaves.retain(|(nr, _)| under_way.contains(nr));
            }
        }
    }
}
