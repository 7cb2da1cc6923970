//! The drain: the thread that copies the ring buffers and adjusts what is recorded. The decoder reads the copies.

use super::decoder::Drained;
use super::lock;
use super::priority::{self, Lowered};
use super::shared::Shared;
use super::wake::Wake;
use crate::bpf::RecordRing;
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
/// The same while BPF programs write little: they wake the drain when they write more.
const QUIET_POLL_MS: i32 = 20;
/// How often it copies the rings in any case, in ns.
const COPY_NS: u64 = 50_000_000;
/// A fault's record comes with its end, and counted calls with their output: at most this many ns after the time in
/// them.
const LATE_NS: u64 = 2_000_000;
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
    let mut rings = AllRings::take(&mut session);
    let mut decimation = Decimation::new(&session);
    let mut breakpoints = Breakpoints::of(&session, &rings.perf);
    let mut pause = Pause::new(wake, &session);
    let mut previous = PreviousRound::default();
    let mut known = session.schema.events();
    loop {
        pause.pass();
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
        if !ended && let Some(cost) = high_rate.scan(&rings.records, &session.schema) {
            *lock(&shared.call_cost) = cost;
        }
        for begun in if ended { Vec::new() } else { decimation.scan(&rings.perf, &mut session) } {
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
            breakpoints.update(&rings.perf, &session);
        }
        let due = start - previous.start > COPY_NS || rings.are_filling();
        if !(ended || due && shared.may_copy()) {
            continue;
        }
        let sink = CopySink { shared, decoder, to_decoder: &to.decoder, spent };
        let complete = sink.copy_all(&mut rings);
        let full = rings.full(&session.cpus).filter(|_| ended).map(Drained::Full);
        full.for_each(|full| _ = to.decoder.send(full));
        let late = if rings.records.is_empty() { 0 } else { LATE_NS };
        let horizon = if ended { u64::MAX } else { previous.start.saturating_sub(late) };
        shared.begin_round();
        if to.decoder.send(Drained::Horizon(horizon)).is_err() || ended {
            break;
        }
        previous.becomes(start, complete);
    }
    if let Some(warning) = breakpoints.and_then(|breakpoints| breakpoints.warning(&session)) {
        lock(&shared.warnings).push(warning);
    }
}

/// Waits between two rounds of the drain.
struct Pause {
    /// The end of the program, then the alarms of the BPF programs.
    polled: Vec<libc::pollfd>,
    alarmed: bool,
}

impl Pause {
    fn new(wake: &Wake, session: &Session) -> Self {
        let files = [wake.as_raw_fd()].into_iter().chain(session.alarms());
        let polled = files.map(|fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 });
        Self { polled: polled.collect(), alarmed: false }
    }

    /// Passes the time until there is something to do, but a millisecond after an alarm.
    fn pass(&mut self) {
        let often = self.alarmed || self.polled.len() == 1;
        let (files, timeout) =
            if often { (1, POLL_MS) } else { (self.polled.len(), QUIET_POLL_MS) };
        // SAFETY: that many open descriptors.
        unsafe { libc::poll(self.polled.as_mut_ptr(), files as libc::nfds_t, timeout) };
        self.alarmed = !often && self.polled[1..].iter().any(|file| file.revents != 0);
    }
}

/// A record may have its time but no place in the ring yet when a round starts; one round later it is there. So
/// everything older than the previous round can be passed on.
#[derive(Default)]
struct PreviousRound {
    start: u64,
    stalled: bool,
}

impl PreviousRound {
    /// Records behind one that is not complete come a round later.
    fn becomes(&mut self, start: u64, complete: bool) {
        if complete || self.stalled {
            self.start = start;
        }
        self.stalled = !complete;
    }
}

/// The rings of perf and those of BPF programs, each by CPU.
struct AllRings {
    perf: Vec<Ring>,
    records: Vec<RecordRing>,
}

impl AllRings {
    fn take(session: &mut Session) -> Self {
        let perf = std::mem::take(&mut session.rings);
        Self { perf, records: std::mem::take(&mut session.record_rings) }
    }

    fn are_filling(&self) -> bool {
        self.perf.iter().any(Ring::is_filling) || self.records.iter().any(RecordRing::is_filling)
    }

    /// The CPUs of rings that may have lost records since the last one that they report.
    fn full(&self, cpus: &[i32]) -> impl Iterator<Item = u32> {
        let perf = self.perf.iter().map(Ring::may_have_lost).zip(cpus);
        let records = self.records.iter().map(RecordRing::may_have_lost).zip(cpus);
        perf.chain(records).filter(|(full, _)| *full).map(|(_, cpu)| cpu.cast_unsigned())
    }
}

/// Where copies go.
struct CopySink<'a> {
    shared: &'a Shared,
    decoder: &'a Lowered,
    to_decoder: &'a Sender<Drained>,
    spent: &'a Receiver<Vec<u8>>,
}

impl CopySink<'_> {
    /// Copies all rings; false if a record in one is not complete yet.
    fn copy_all(&self, rings: &mut AllRings) -> bool {
        for ring in &mut rings.perf {
            self.copy(ring.filled(), None, |bytes| ring.copy_to(bytes));
        }
        let mut complete = true;
        for ring in &rings.records {
            self.copy(ring.filled(), Some(ring.cpu()), |bytes| complete &= ring.copy_to(bytes));
        }
        complete
    }

    /// Copies one ring. `programs_of`: the CPU, if it is a ring of BPF programs.
    fn copy(&self, filled: usize, programs_of: Option<u16>, copy_to: impl FnOnce(&mut Vec<u8>)) {
        let mut bytes = self.shared.take_spare(self.spent);
        bytes.clear();
        if bytes.capacity() < filled {
            self.decoder.lift();
        }
        copy_to(&mut bytes);
        self.shared.copied(bytes.len());
        // A decoder that is gone panicked; the caller will see that.
        _ = self.to_decoder.send(match programs_of {
            Some(cpu) => Drained::OfPrograms(bytes, cpu),
            None => Drained::Chunk(bytes),
        });
    }
}
