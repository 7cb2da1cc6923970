//! The state that the threads of a recording share: their progress, and what they pass to each other.

use super::fork_burst::ForkBurst;
use super::lock;
use crate::bpf::high_rate::Cost;
use crate::clock::now;
use crate::procfs::ProcSample;
use crate::procfs::memory_budget::memory_left;
use deadweight_trace::ids::Tid;
use std::fs::File;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender};

/// The most copied bytes that wait to be decoded, or a third of the memory budget. Above half of it decoding gets
/// normal priority; above all of it copying stops.
const BACKLOG: usize = 512 << 20;
/// This many bytes are always allowed.
const LITTLE: usize = 1 << 20;

/// What the threads share.
pub(super) struct Shared {
    /// The instant at which the program ended; 0 before.
    pub(super) end: AtomicU64,
    pub(super) ended: AtomicBool,
    /// Copied bytes that are not decoded.
    backlog: AtomicUsize,
    /// Rounds of copying that are not completely decoded.
    rounds: AtomicUsize,
    /// The current limit of `backlog`.
    most: AtomicUsize,
    /// Buffers that wait to be filled again.
    pub(super) spare: AtomicUsize,
    /// The instant up to which everything is decoded.
    pub(super) decoded_until: AtomicU64,
    pub(super) bytes: AtomicU64,
    /// The cost of calls that are counted or decimated.
    pub(super) call_cost: Mutex<Cost>,
    pub(super) proc_samples: Mutex<Vec<ProcSample>>,
    pub(super) executables: Mutex<Vec<(PathBuf, File)>>,
    pub(super) recorders: Mutex<Vec<Tid>>,
    pub(super) fork_burst: ForkBurst,
    /// Warnings about the recording.
    pub(super) warnings: Mutex<Vec<String>>,
}

impl Shared {
    pub(super) fn new() -> Self {
        Self {
            end: AtomicU64::new(0),
            ended: AtomicBool::new(false),
            backlog: AtomicUsize::new(0),
            rounds: AtomicUsize::new(0),
            most: AtomicUsize::new(BACKLOG),
            spare: AtomicUsize::new(0),
            decoded_until: AtomicU64::new(now()),
            bytes: AtomicU64::new(0),
            call_cost: Mutex::new(Cost::default()),
            proc_samples: Mutex::new(Vec::new()),
            executables: Mutex::new(Vec::new()),
            recorders: Mutex::new(Vec::new()),
            fork_burst: ForkBurst::default(),
            warnings: Mutex::new(Vec::new()),
        }
    }

    /// These bytes were copied out of a ring, and wait to be decoded.
    pub(super) fn copied(&self, bytes: usize) {
        self.backlog.fetch_add(bytes, Ordering::Relaxed);
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// These bytes are decoded.
    pub(super) fn decoded(&self, bytes: usize) {
        self.backlog.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// A round of copying is over; the decoder will get its horizon.
    pub(super) fn begin_round(&self) {
        self.rounds.fetch_add(1, Ordering::SeqCst);
    }

    /// The decoder has done what it can before the next round.
    pub(super) fn end_round(&self) {
        self.rounds.fetch_sub(1, Ordering::SeqCst);
    }

    /// Whether more may be copied. If not, the rings fill up, and what does not fit is counted as lost.
    pub(super) fn may_copy(&self) -> bool {
        let backlog = self.backlog.load(Ordering::Relaxed);
        // The rest of a round can only be decoded when the next one is there.
        if backlog < LITTLE || self.rounds.load(Ordering::SeqCst) == 0 {
            return true;
        }
        let left = usize::try_from(memory_left() / 3).unwrap_or(usize::MAX);
        let most = left.clamp(LITTLE, BACKLOG);
        self.most.store(most, Ordering::Relaxed);
        backlog < most
    }

    /// Copied bytes that are not decoded.
    pub(super) fn backlog(&self) -> usize {
        self.backlog.load(Ordering::Relaxed)
    }

    /// Whether so many bytes wait that decoding must get normal priority.
    pub(super) fn is_far_behind(&self) -> bool {
        self.backlog.load(Ordering::Relaxed) > self.most.load(Ordering::Relaxed) / 2
    }

    /// Whether few bytes wait.
    pub(super) fn has_caught_up(&self) -> bool {
        self.backlog.load(Ordering::Relaxed) < self.most.load(Ordering::Relaxed) / 16
    }

    /// Returns a buffer to be filled again.
    pub(super) fn give_back(&self, bytes: Vec<u8>, to_drain: &Sender<Vec<u8>>) {
        self.spare.fetch_add(1, Ordering::Relaxed);
        // A drain that has ended fills none.
        _ = to_drain.send(bytes);
    }

    /// A buffer to fill; a new one if all are in use.
    pub(super) fn take_spare(&self, spent: &Receiver<Vec<u8>>) -> Vec<u8> {
        let Ok(bytes) = spent.try_recv() else { return Vec::new() };
        self.spare.fetch_sub(1, Ordering::Relaxed);
        bytes
    }

    pub(super) fn this_thread_records(&self) {
        self.records(Tid(crate::procfs::own_tid()));
    }

    pub(super) fn records(&self, thread: Tid) {
        lock(&self.recorders).push(thread);
    }

    pub(super) fn add_proc_samples(&self, found: impl IntoIterator<Item = ProcSample>) {
        lock(&self.proc_samples).extend(found);
    }

    pub(super) fn keep(&self, executables: Vec<(PathBuf, File)>) {
        lock(&self.executables).extend(executables);
    }

    pub(super) fn take_executables(&self) -> Vec<(PathBuf, File)> {
        std::mem::take(&mut *lock(&self.executables))
    }

    pub(super) fn take_proc_samples(&self) -> Vec<ProcSample> {
        std::mem::take(&mut *lock(&self.proc_samples))
    }
}
