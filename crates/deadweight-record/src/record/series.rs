//! Several recordings without a clean run between them: what the later ones reuse.
//!
//! `record` does the recordings themselves.

use super::record_in;
use crate::bpf::Programs;
use crate::error::Error;
use crate::launch::{Outcome, Request};
use crate::perf::deferred_close::DeferredClose;
use crate::plan::Plan;
use crate::ptrace::{self, StopCosts};
use crate::session::Session;
use crate::session::calibrate::{self, Measured};
use deadweight_trace::Overhead;
use deadweight_trace::raw::Sink;
use std::fmt;
use std::sync::Arc;

/// Records one run and passes its events to `sink`.
///
/// # Errors
/// As [`record_in`].
pub fn record(request: &Request, plan: &Plan, sink: &mut dyn Sink) -> Result<Outcome, Error> {
    record_in(&mut RecordingSeries::default(), request, plan, sink)
}

/// What the recordings of a series share, so that the later ones start sooner. Tracepoints that the previous one
/// still holds are neither closed nor opened anew, both of which are slow; and the tracing overhead is measured once.
///
/// While this lives, the machine's system calls are slightly slower: clean runs come before or after.
#[derive(Default)]
pub struct RecordingSeries {
    before: Option<DeferredClose>,
    overhead: Option<Overhead>,
    /// The duration of one unrecorded empty system call, in ns.
    bare_call: f64,
    programs: Option<Arc<Programs>>,
    stops: Option<StopCosts>,
}

impl RecordingSeries {
    /// The first half of the calibration, while no event is open.
    pub(crate) fn without_events(&self) -> Result<Option<Measured>, Error> {
        if self.overhead.is_some() {
            return Ok(None);
        }
        calibrate::without_events().map(Some)
    }

    /// The tracing overhead. Does the second half of the calibration if there was a first.
    pub(crate) fn overhead(
        &mut self,
        session: &mut Session,
        without_events: Option<&Measured>,
    ) -> Result<Overhead, Error> {
        if let Some(without_events) = without_events {
            let with_events = calibrate::with_events(session, without_events)?;
            self.overhead = Some(calibrate::overhead(without_events, &with_events));
            self.bare_call = without_events.call;
        }
        let overhead = self.overhead.unwrap_or_default();
        session.calibrated(self.bare_call, &overhead);
        Ok(overhead)
    }

    /// The BPF programs that record system calls, loaded at the first recording that needs them; none where the
    /// kernel refuses them.
    pub(crate) fn programs(&mut self, cpus: &[i32]) -> Option<Arc<Programs>> {
        self.programs = self.programs.take().or_else(|| Programs::start(cpus).ok());
        self.programs.clone()
    }

    /// The cost of a ptrace stop, measured the first time.
    pub(crate) fn stop_costs(&mut self) -> Result<StopCosts, Error> {
        if self.stops.is_none() {
            self.stops = Some(ptrace::costs()?);
        }
        Ok(self.stops.unwrap_or_default())
    }

    /// Releases the previous recording's events, now that nothing is measured, and keeps this one's until the next
    /// has its own.
    pub(crate) fn keep(&mut self, deferred_close: DeferredClose) {
        self.before = Some(deferred_close);
    }
}

impl fmt::Debug for RecordingSeries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecordingSeries").field("overhead", &self.overhead).finish_non_exhaustive()
    }
}
