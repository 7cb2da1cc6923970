//! Several recordings without a clean run between them: what the later ones reuse.
//!
//! `record` does the recordings themselves.

use super::record_in;
use crate::bpf::{Attachment, MainProgram, Programs};
use crate::error::Error;
use crate::launch::{Outcome, Request};
use crate::perf::deferred_close::DeferredClose;
use crate::plan::Plan;
use crate::ptrace::{self, StopCosts};
use crate::session::known_overhead::{Before, Costs};
use crate::session::{Entry, Session, attach_to_mains};
use crate::timing::Unrecorded;
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
    /// Durations of unrecorded calls, and the overhead.
    known: Option<(Unrecorded, Costs)>,
    programs: Option<Arc<Programs>>,
    stops: Option<StopCosts>,
}

impl RecordingSeries {
    /// What is known of the tracing overhead while no event is open.
    pub(crate) fn before_events(&self) -> Result<Before, Error> {
        match self.known {
            Some((unrecorded, costs)) => Ok(Before::Known(unrecorded, costs)),
            None => Before::events(),
        }
    }

    /// The tracing overhead.
    pub(crate) fn costs(&mut self, session: &mut Session, before: Before) -> Result<Costs, Error> {
        let (unrecorded, costs) = match self.known {
            Some(known) => known,
            None => *self.known.insert(before.with_events(session)?),
        };
        session.calibrated(unrecorded, &costs.overhead);
        Ok(costs)
    }

    /// The BPF programs that record system calls, loaded at the first recording that needs them; none where the
    /// kernel refuses them.
    ///
    /// With them come their attachments to starts of `main`.
    pub(crate) fn programs(
        &mut self,
        cpus: &[i32],
        entries: &[Entry],
    ) -> Option<(Arc<Programs>, Vec<Attachment>)> {
        let attach = |main: &MainProgram| attach_to_mains(main, entries);
        if let Some(programs) = &self.programs {
            return Some((programs.clone(), programs.main().map(attach).unwrap_or_default()));
        }
        let (programs, attached) = Programs::start(cpus, attach).ok()?;
        self.programs = Some(programs.clone());
        Some((programs, attached.unwrap_or_default()))
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
        f.debug_struct("RecordingSeries").field("known", &self.known).finish_non_exhaustive()
    }
}
