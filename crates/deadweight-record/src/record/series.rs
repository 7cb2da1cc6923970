//! Several recordings without a clean run between them: what the later ones need not do again.
//!
//! Not for the recordings themselves: that is `record`.

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

/// Runs the program once and tells `sink` what happened.
///
/// # Errors
/// As [`record_in`].
pub fn record(request: &Request, plan: &Plan, sink: &mut dyn Sink) -> Result<Outcome, Error> {
    record_in(&mut RecordingSeries::default(), request, plan, sink)
}

/// What recordings in a row share, so that the later ones start sooner: a tracepoint that the one
/// before still holds is neither closed nor opened anew, each of which takes the kernel long, and
/// what observing costs is measured once.
///
/// While this lives, the machine's system calls are a little slower: clean runs come before or after.
#[derive(Default)]
pub struct RecordingSeries {
    before: Option<DeferredClose>,
    observer: Option<Overhead>,
    /// One empty system call that nobody observes, in ns.
    bare_call: f64,
    programs: Option<Arc<Programs>>,
    stops: Option<StopCosts>,
}

impl RecordingSeries {
    /// The first half of measuring what observing costs, to be done while nothing is open.
    pub(crate) fn unobserved(&self) -> Result<Option<Measured>, Error> {
        if self.observer.is_some() {
            return Ok(None);
        }
        calibrate::unobserved().map(Some)
    }

    /// What observing costs, with the second half if there was a first.
    pub(crate) fn observer(
        &mut self,
        session: &mut Session,
        unobserved: Option<&Measured>,
    ) -> Result<Overhead, Error> {
        if let Some(unobserved) = unobserved {
            let observed = calibrate::observed(session, unobserved)?;
            self.observer = Some(calibrate::observer(unobserved, &observed));
            self.bare_call = unobserved.call;
        }
        let observer = self.observer.unwrap_or_default();
        session.calibrated(self.bare_call, &observer);
        Ok(observer)
    }

    /// The programs in the kernel that tell of calls, at work from the first recording on that wants them; none where the
    /// kernel refuses them.
    pub(crate) fn programs(&mut self, cpus: &[i32]) -> Option<Arc<Programs>> {
        self.programs = self.programs.take().or_else(|| Programs::start(cpus).ok());
        self.programs.clone()
    }

    /// What a stop costs, measured the first time.
    pub(crate) fn stops(&mut self) -> Result<StopCosts, Error> {
        if self.stops.is_none() {
            self.stops = Some(ptrace::costs()?);
        }
        Ok(self.stops.unwrap_or_default())
    }

    /// Lets the recording before go, now that nothing is measured, and keeps this one's events until the
    /// next has its own.
    pub(crate) fn keep(&mut self, deferred_close: DeferredClose) {
        self.before = Some(deferred_close);
    }
}

impl fmt::Debug for RecordingSeries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecordingSeries").field("observer", &self.observer).finish_non_exhaustive()
    }
}
