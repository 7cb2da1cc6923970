//! How much waits to be put in order and written down. Where that takes its time, as on a disk that stalls, what
//! comes later is left out, and told to be, rather than memory filled or the program kept waiting.

use super::event::{EventKind, TaskEvent};
use crate::procfs::memory_budget::memory_left;
use deadweight_trace::Off;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};

/// Bytes of notes that may wait, or a third of the memory that is left.
const MAX_BYTES: usize = 128 << 20;
/// So many of them never do harm.
const MIN_BYTES: usize = 4 << 20;

/// From the tracer to whoever puts its notes in order: nothing older than the time follows.
pub(super) struct Batch {
    pub(super) events: Vec<TaskEvent>,
    pub(super) watermark: u64,
    bytes: usize,
}

/// The tracer's end, and how much of what it sent waits.
pub(super) struct EventSender {
    sender: Sender<Batch>,
    queued_bytes: Arc<AtomicUsize>,
}

/// The other end.
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
    /// Sends these, or of them what must not be missing.
    pub(super) fn send(&self, mut events: Vec<TaskEvent>, watermark: u64) {
        if self.is_full() {
            drop_optional(&mut events);
        }
        let bytes = events.iter().map(size).sum();
        self.queued_bytes.fetch_add(bytes, Ordering::Relaxed);
        // Who puts them in order is gone only if it panicked: its caller will see that.
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
    /// So many bytes wait no longer.
    pub(super) fn release(&self, bytes: usize) {
        self.queued_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}

impl Batch {
    /// What it holds, for [`EventReceiver::release`].
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

/// Leaves who lives, and what its code is: nothing later could be told without that.
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
    fn what_waits_too_long_is_left_out_but_for_lives() {
        let (event_queue, batches) = channel();
        let stack =
            || UserSnapshot { stack: vec![0; MIN_BYTES / 2].into(), ..UserSnapshot::default() };
        let send = || {
            let fork = EventKind::Fork { child: 8, process: 8 };
            event_queue.send(
                vec![
                    event(1, EventKind::On),
                    event(2, fork),
                    event(3, EventKind::CallSite(stack())),
                ],
                9,
            );
            batches.batches.recv().unwrap()
        };
        let (first, second) = (send(), send());
        assert_eq!((first.events.len(), second.events.len()), (3, 3));
        // All that is left would not do: it is a matter of how much that is.
        event_queue.queued_bytes.fetch_add(MAX_BYTES, Ordering::Relaxed);
        let third = send();
        let kinds: Vec<_> = third.events.iter().map(|n| format!("{} {:?}", n.at, n.kind)).collect();
        assert_eq!(kinds, ["2 Fork { child: 8, process: 8 }", "3 Lost(2)"]);
        batches.release(first.bytes() + second.bytes() + third.bytes() + MAX_BYTES);
        assert_eq!(event_queue.queued_bytes.load(Ordering::Relaxed), 0);
        assert_eq!(send().events.len(), 3);
    }
}
