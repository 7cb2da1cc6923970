//! How much waits to be put in order and written down. Where that takes its time, as on a disk that stalls, what
//! comes later is left out, and told to be, rather than memory filled or the program kept waiting.

use super::note::{Note, What};
use crate::procfs::memory_budget::memory_left;
use deadweight_trace::Off;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};

/// Bytes of notes that may wait, or a third of the memory that is left.
const MOST: usize = 128 << 20;
/// So many of them never do harm.
const LITTLE: usize = 4 << 20;

/// From the tracer to whoever puts its notes in order: nothing older than the time follows.
pub(super) struct Batch {
    pub(super) notes: Vec<Note>,
    pub(super) horizon: u64,
    bytes: usize,
}

/// The tracer's end, and how much of what it sent waits.
pub(super) struct Backlog {
    to: Sender<Batch>,
    waiting: Arc<AtomicUsize>,
}

/// The other end.
pub(super) struct Batches {
    pub(super) from: Receiver<Batch>,
    waiting: Arc<AtomicUsize>,
}

pub(super) fn pair() -> (Backlog, Batches) {
    let (to, from) = mpsc::channel();
    let waiting = Arc::new(AtomicUsize::new(0));
    (Backlog { to, waiting: Arc::clone(&waiting) }, Batches { from, waiting })
}

impl Backlog {
    /// Sends these, or of them what must not be missing.
    pub(super) fn send(&self, mut notes: Vec<Note>, horizon: u64) {
        if self.is_full() {
            leave_out(&mut notes);
        }
        let bytes = notes.iter().map(size).sum();
        self.waiting.fetch_add(bytes, Ordering::Relaxed);
        // Who puts them in order is gone only if it panicked: its caller will see that.
        _ = self.to.send(Batch { notes, horizon, bytes });
    }

    fn is_full(&self) -> bool {
        let waiting = self.waiting.load(Ordering::Relaxed);
        waiting > LITTLE && {
            let left = usize::try_from(memory_left() / 3).unwrap_or(usize::MAX);
            waiting > left.clamp(LITTLE, MOST)
        }
    }
}

impl Batches {
    /// So many bytes wait no longer.
    pub(super) fn done(&self, bytes: usize) {
        self.waiting.fetch_sub(bytes, Ordering::Relaxed);
    }
}

impl Batch {
    /// What it holds, for [`Batches::done`].
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}

fn size(note: &Note) -> usize {
    let stack = match &note.what {
        What::Sample(user) | What::Site(user) => user.stack.len(),
        _ => 0,
    };
    size_of::<Note>() + stack
}

/// Leaves who lives, and what its code is: nothing later could be told without that.
fn leave_out(notes: &mut Vec<Note>) {
    let Some(at) = notes.iter().map(|note| note.at).max() else { return };
    let all = notes.len();
    notes.retain(|note| is_kept(&note.what));
    let count = (all - notes.len()) as u64;
    if count > 0 {
        notes.push(Note { at, process: 0, task: 0, what: What::Lost(count) });
    }
}

fn is_kept(what: &What) -> bool {
    match what {
        What::Fork { .. } | What::Exec { .. } | What::Comm(_) | What::Main | What::Exit => true,
        What::Map(_) | What::Fd { .. } | What::Left | What::Lost(_) => true,
        What::Off(why) => *why == Off::Dead,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ptrace::note::User;

    fn note(at: u64, what: What) -> Note {
        Note { at, process: 7, task: 7, what }
    }

    #[test]
    fn what_waits_too_long_is_left_out_but_for_lives() {
        let (backlog, batches) = pair();
        let stack = || User { stack: vec![0; LITTLE / 2].into(), ..User::default() };
        let send = || {
            let fork = What::Fork { child: 8, process: 8 };
            backlog.send(vec![note(1, What::On), note(2, fork), note(3, What::Site(stack()))], 9);
            batches.from.recv().unwrap()
        };
        let (first, second) = (send(), send());
        assert_eq!((first.notes.len(), second.notes.len()), (3, 3));
        // All that is left would not do: it is a matter of how much that is.
        backlog.waiting.fetch_add(MOST, Ordering::Relaxed);
        let third = send();
        let told: Vec<_> = third.notes.iter().map(|n| format!("{} {:?}", n.at, n.what)).collect();
        assert_eq!(told, ["2 Fork { child: 8, process: 8 }", "3 Lost(2)"]);
        batches.done(first.bytes() + second.bytes() + third.bytes() + MOST);
        assert_eq!(backlog.waiting.load(Ordering::Relaxed), 0);
        assert_eq!(send().notes.len(), 3);
    }
}
