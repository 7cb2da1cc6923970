//! The drain: the thread that copies the ring buffers and adjusts what is recorded. The decoder reads the copies.

use super::decoder::Drained;
use super::lock;
use super::priority::{self, Lowered};
use super::shared::Shared;
use super::wake::Wake;
use crate::clock::now;
use crate::perf::ring::Ring;
use crate::procfs::ProcSample;
use crate::session::decimate::Decimation;
use crate::session::{Breakpoints, RetiredEvents, Session};
use std::os::fd::AsRawFd;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, Sender};

/// How often the drain checks whether a ring fills up or system calls come at a high rate: some hundred in that time.
const POLL_MS: i32 = 1;
/// How often it copies the rings in any case, in ns.
const COPY_NS: u64 = 50_000_000;
/// If decoding is this many ns behind, on a machine whose CPUs are all busy, it gets normal priority: undecoded
/// records are lost if the recorder is killed.
const LAG: u64 = 500_000_000;

/// The receivers of the drain's messages.
pub(super) struct DrainOutput {
    pub(super) decoder: Sender<Drained>,
    pub(super) retired: Sender<RetiredEvents>,
}

/// Copies the rings and does nothing else. Ends after the program, and disables the events.
pub(super) fn drain(
    mut session: Session,
    shared: &Shared,
    wake: &Wake,
    decoder: &Lowered,
    to: &DrainOutput,
    spent: &Receiver<Vec<u8>>,
) {
    shared.this_thread_records();
    priority::raise();
    let mut high_rate = session.high_rate();
    let mut rings = std::mem::take(&mut session.rings);
    let mut decimation = Decimation::new(&session);
    let mut breakpoints = Breakpoints::of(&session, &rings);
    let mut polled = libc::pollfd { fd: wake.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // A record may have its time but no place in the ring yet when a round starts; one round later it is there. So
    // everything older than the previous round can be passed on.
    let mut before = 0;
    let mut known = session.schema.events();
    loop {
        // SAFETY: one open descriptor.
        unsafe { libc::poll(&mut polled, 1, POLL_MS) };
        let ended = shared.ended.load(Ordering::SeqCst);
        if ended {
            // If that fails, events run until they are closed just below.
            _ = session.disable();
        }
        let start = now();
        if session.counting.stop_if_enough() {
            shared.add_proc_samples([ProcSample::CountingStopped(start)]);
        }
        if start.saturating_sub(shared.decoded_until.load(Ordering::Relaxed)) > LAG {
            decoder.lift();
        }
        if !ended && let Some(cost) = high_rate.scan(&rings, &session.schema) {
            *lock(&shared.call_cost) = cost;
        }
        for begun in if ended { Vec::new() } else { decimation.scan(&rings, &mut session) } {
            *lock(&shared.call_cost) = begun.cost;
            _ = to.decoder.send(Drained::DecimationStart(begun));
        }
        if session.schema.events() != known {
            // Send the schema before the records. A decoder that is gone panicked; the caller will see that.
            known = session.schema.events();
            _ = to.decoder.send(Drained::Schema(Box::new(session.schema.clone())));
        }
        if let Some(calls) = shared.fork_burst.take() {
            // The receiver ends after this thread.
            _ = to.retired.send(session.retire(&calls));
        }
        if let Some(breakpoints) = breakpoints.as_mut().filter(|_| !ended) {
            breakpoints.update(&rings, &session);
        }
        let due = start - before > COPY_NS || rings.iter().any(Ring::is_filling);
        if !(ended || due && shared.may_copy()) {
            continue;
        }
        copy_rings(&mut rings, shared, decoder, &to.decoder, spent);
        let full =
            rings.iter().zip(&session.cpus).filter(|(ring, _)| ended && ring.may_have_lost());
        full.for_each(|(_, cpu)| _ = to.decoder.send(Drained::Full(cpu.cast_unsigned())));
        let horizon = if ended { u64::MAX } else { before };
        shared.begin_round();
        if to.decoder.send(Drained::Horizon(horizon)).is_err() || ended {
            break;
        }
        before = start;
    }
    if let Some(warning) = breakpoints.and_then(|breakpoints| breakpoints.warning(&session)) {
        lock(&shared.warnings).push(warning);
    }
}

fn copy_rings(
    rings: &mut [Ring],
    shared: &Shared,
    decoder: &Lowered,
    to_decoder: &Sender<Drained>,
    spent: &Receiver<Vec<u8>>,
) {
    for ring in rings {
        let mut bytes = shared.take_spare(spent);
        bytes.clear();
        if bytes.capacity() < ring.filled() {
            decoder.lift();
        }
        ring.copy_to(&mut bytes);
        shared.copied(bytes.len());
        // A decoder that is gone panicked; the caller will see that.
        _ = to_decoder.send(Drained::Chunk(bytes));
    }
}
