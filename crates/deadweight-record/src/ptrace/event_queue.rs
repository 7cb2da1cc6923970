//! The queue of events from the tracing thread to the thread that sorts and writes them.
//!
//! It has a memory budget. If writing is slow, as on a disk that stalls, later events are dropped
//! and counted as lost: memory does not fill, and the program does not wait.

use super::event::{EventKind, TaskEvent};
use crate::procfs::memory_budget::memory_left;
use deadweight_trace::Off;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};

/// Most bytes of queued events, if a third of the free memory is not less.
const MAX_BYTES: usize = 128 << 20;
/// This much is always allowed.
const MIN_BYTES: usize = 4 << 20;

/// Events, and a watermark: nothing older follows.
pub(super) struct Batch {
    pub(super) events: Vec<TaskEvent>,
    pub(super) watermark: u64,
    bytes: usize,
}

/// The tracing thread's end.
pub(super) struct EventSender {
    sender: Sender<Batch>,
    queued_bytes: Arc<AtomicUsize>,
}

/// The sorting thread's end.
pub(super) struct EventReceiver {
    pub(super) batches: Receiver<Batch>,
    queued_bytes: Arc<AtomicUsize>,
}

pub(super) fn channel() -> (EventSender, EventReceiver) {
    let (sender, batches) = mpsc::channel();
    let queued_bytes = Arc::new(AtomicUsize::new(0));
    (
        EventSender { sender, queued_bytes: Arc::clone(&queued_bytes) },
        EventReceiver { batches, queued_bytes },
    )
}

impl EventSender {
    /// Sends these events. If the queue is full, only the essential ones.
    pub(super) fn send(&self, mut events: Vec<TaskEvent>, watermark: u64) {
        if self.is_full() {
            drop_optional(&mut events);
        }
        let bytes = events.iter().map(size).sum();
        self.queued_bytes.fetch_add(bytes, Ordering::Relaxed);
        // The receiver is gone only if its thread panicked; the caller finds that out at `join`.
        _ = self.sender.send(Batch { events, watermark, bytes });
    }

    fn is_full(&self) -> bool {
        let queued_bytes = self.queued_bytes.load(Ordering::Relaxed);
        queued_bytes > MIN_BYTES && {
            let spare = usize::try_from(memory_left() / 3).unwrap_or(usize::MAX);
            queued_bytes > spare.clamp(MIN_BYTES, MAX_BYTES)
        }
    }
}

impl EventReceiver {
    /// These bytes are no longer queued.
    pub(super) fn release(&self, bytes: usize) {
        self.queued_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}

impl Batch {
    /// Its size, for [`EventReceiver::release`].
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}

fn size(event: &TaskEvent) -> usize {
    let stack = match &event.kind {
        EventKind::Sample(user) | EventKind::CallSite(user) => user.stack.len(),
        _ => 0,
    };
    size_of::<TaskEvent>() + stack
}

/// Keeps the events of a task's life and of its code. No later event could be understood without
/// them.
fn drop_optional(events: &mut Vec<TaskEvent>) {
    let Some(at) = events.iter().map(|event| event.at).max() else { return };
    let all = events.len();
    events.retain(|event| is_essential(&event.kind));
    let count = (all - events.len()) as u64;
    if count > 0 {
        events.push(TaskEvent { at, process: 0, task: 0, kind: EventKind::Lost(count) });
    }
}

fn is_essential(kind: &EventKind) -> bool {
    match kind {
        EventKind::Fork { .. }
        | EventKind::Exec { .. }
        | EventKind::Comm(_)
        | EventKind::Main
        | EventKind::Exit => true,
        EventKind::Map(_) | EventKind::Fd { .. } | EventKind::Detached | EventKind::Lost(_) => true,
        EventKind::Off(why) => *why == Off::Dead,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ptrace::event::UserSnapshot;

    fn event(at: u64, kind: EventKind) -> TaskEvent {
        TaskEvent { at, process: 7, task: 7, kind }
    }

    #[test]
    fn a_full_queue_keeps_only_essential_events() {
        let (sender, receiver) = channel();
        let stack =
            || UserSnapshot { stack: vec![0; MIN_BYTES / 2].into(), ..UserSnapshot::default() };
        let send = || {
            let fork = EventKind::Fork { child: 8, process: 8 };
            sender.send(
                vec![
                    event(1, EventKind::On),
                    event(2, fork),
                    event(3, EventKind::CallSite(stack())),
                ],
                9,
            );
            receiver.batches.recv().unwrap()
        };
        let (first, second) = (send(), send());
        assert_eq!((first.events.len(), second.events.len()), (3, 3));
        // The test must not depend on how much memory is free.
        sender.queued_bytes.fetch_add(MAX_BYTES, Ordering::Relaxed);
        let third = send();
        let kinds: Vec<_> = third.events.iter().map(|e| format!("{} {:?}", e.at, e.kind)).collect();
        assert_eq!(kinds, ["2 Fork { child: 8, process: 8 }", "3 Lost(2)"]);
        receiver.release(first.bytes() + second.bytes() + third.bytes() + MAX_BYTES);
        assert_eq!(sender.queued_bytes.load(Ordering::Relaxed), 0);
        assert_eq!(send().events.len(), 3);
    }
}
