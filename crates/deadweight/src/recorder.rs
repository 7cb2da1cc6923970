//! One traced run, sealed: connects recorder and sealer.
//!
//! Does not repeat runs (`running`) and does not read recordings (`command`).

use crate::debuginfod::{Debuginfod, StartAtEnd};
use crate::failure::Failure;
use deadweight_import::Import;
use deadweight_record::{
    AttachRequest, Error, Outcome, Plan, RecordingSeries, Request, attach, record, record_in,
};
use deadweight_seal::{Host, Sealer};
use deadweight_trace::raw::Sink;
use deadweight_trace::{Exit, Trace};
use std::fs::File;
use std::path::Path;

/// The recorder's functions that the sealer needs.
const HOST: Host = Host {
    drop_privileges: deadweight_record::confine,
    memory_left: deadweight_record::memory_left,
    return_memory: deadweight_record::trim_heap,
};

/// Seals a recording of another tool into `file`, which has the path `path`.
///
/// # Errors
/// If the file cannot be written completely.
pub fn seal(import: Import, file: File, path: &Path) -> Result<(), Failure> {
    let mut sealer = Sealer::to_file(file, HOST);
    sealer.mark_last();
    import.pass_to(&mut sealer);
    match sealer.failure() {
        None => Ok(()),
        Some(why) => Err(Failure::Incomplete {
            path: path.to_owned(),
            why: why.to_owned(),
            is_readable: sealer.is_readable(),
            exit: None,
        }),
    }
}

/// What is needed to record on this machine.
#[derive(Debug)]
pub struct Recorder {
    plan: Plan,
}

/// What is recorded.
#[derive(Debug)]
pub enum Target<'r> {
    /// A command that is run for the recording.
    Command(&'r Request),
    /// A process that runs already.
    Process(AttachRequest),
}

impl Target<'_> {
    /// Privileges are dropped before sealing, but not for a joined process: it may run in a container, whose files are
    /// read through `/proc` with privileges.
    fn mark_last(&self, sealer: &mut Sealer) {
        if let Self::Command(_) = self {
            sealer.mark_last();
        }
    }

    fn record(&self, plan: &Plan, sink: &mut dyn Sink) -> Result<Outcome, Error> {
        match self {
            Self::Command(request) => record(request, plan, sink),
            Self::Process(join) => attach(join, plan, sink),
        }
    }
}

impl Recorder {
    /// Detects what this machine allows, before any program runs.
    ///
    /// # Errors
    /// If recording is not allowed, with the command that helps.
    pub fn ready() -> Result<Self, Failure> {
        let plan = Plan::detect();
        plan.allows_recording()?;
        Ok(Self { plan })
    }

    /// Runs the command once and keeps the recording in memory.
    ///
    /// # Errors
    /// If it cannot be run or recorded.
    pub fn record(&self, request: &Request) -> Result<Trace, Failure> {
        self.record_keeping_privileges(&Target::Command(request))
    }

    /// Records once, keeps the recording in memory, and keeps all privileges.
    ///
    /// # Errors
    /// If it cannot be run, joined or recorded.
    pub fn record_keeping_privileges(&self, target: &Target<'_>) -> Result<Trace, Failure> {
        let mut sealer = Sealer::to_memory(HOST);
        target.record(&self.plan, &mut sealer)?;
        Ok(sealer.into_trace())
    }

    /// Records once, as the last step that needs privileges, and keeps the recording in memory. What asks debuginfod
    /// servers is started when the program has ended.
    ///
    /// # Errors
    /// If it cannot be run, joined or recorded.
    pub(crate) fn record_last(
        &self,
        target: &Target<'_>,
        debuginfod: &mut Debuginfod,
    ) -> Result<Trace, Failure> {
        let mut sealer = Sealer::to_memory(HOST);
        target.mark_last(&mut sealer);
        target.record(&self.plan, &mut StartAtEnd { sink: &mut sealer, debuginfod })?;
        deadweight_record::confine();
        Ok(sealer.into_trace())
    }

    /// Records one of several recordings with no clean run between them.
    ///
    /// # Errors
    /// If it cannot be run or recorded.
    pub fn record_in_series(
        &self,
        series: &mut RecordingSeries,
        request: &Request,
    ) -> Result<Trace, Failure> {
        let mut sealer = Sealer::to_memory(HOST);
        record_in(series, request, &self.plan, &mut sealer)?;
        Ok(sealer.into_trace())
    }

    /// Records once into `file`, which has the path `path` and a limit of this many bytes.
    ///
    /// # Errors
    /// If it cannot be run, joined or recorded, or the file cannot be written completely.
    pub fn record_to(
        &self,
        target: &Target<'_>,
        (file, most): (File, u64),
        path: &Path,
    ) -> Result<Exit, Failure> {
        let mut sealer = Sealer::to_file(file, HOST);
        sealer.limit(most);
        target.mark_last(&mut sealer);
        let outcome = target.record(&self.plan, &mut sealer)?;
        match sealer.failure() {
            None => Ok(outcome.exit),
            Some(why) => Err(Failure::Incomplete {
                path: path.to_owned(),
                why: why.to_owned(),
                is_readable: sealer.is_readable(),
                exit: matches!(target, Target::Command(_)).then_some(outcome.exit),
            }),
        }
    }
}
