//! One traced run, sealed: the place where recorder and sealer meet.
//!
//! Not for repeating (`running`) or for reading recordings (`command`).

use crate::failure::Failure;
use deadweight_record::{
    AttachRequest, Error, Outcome, Plan, RecordingSeries, Request, attach, record, record_in,
};
use deadweight_seal::{Host, Sealer};
use deadweight_trace::{Exit, Trace};
use std::fs::File;
use std::path::Path;

/// What the sealer needs of this process: the recorder has it.
const HOST: Host = Host {
    drop_privileges: deadweight_record::confine,
    memory_left: deadweight_record::memory_left,
    return_memory: deadweight_record::trim_heap,
};

/// What is needed to record on this machine.
#[derive(Debug)]
pub struct Recorder {
    plan: Plan,
}

/// What is recorded.
#[derive(Debug)]
pub enum Whom<'r> {
    /// A command, run for it.
    Command(&'r Request),
    /// A process that runs already.
    Process(AttachRequest),
}

impl Whom<'_> {
    /// A joined process may live in a container, whose files are reached through it: that takes rights.
    fn confines(&self, sealer: &mut Sealer) {
        if let Self::Command(_) = self {
            sealer.is_last();
        }
    }

    fn record(&self, plan: &Plan, sealer: &mut Sealer) -> Result<Outcome, Error> {
        match self {
            Self::Command(request) => record(request, plan, sealer),
            Self::Process(join) => attach(join, plan, sealer),
        }
    }
}

impl Recorder {
    /// Looks at what this machine allows, before any program is run.
    ///
    /// # Errors
    /// If it does not let us record, with the command that helps.
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
        self.take_freely(&Whom::Command(request))
    }

    /// Records once and keeps the recording in memory and all rights.
    ///
    /// # Errors
    /// If it cannot be run, joined or recorded.
    pub fn take_freely(&self, whom: &Whom<'_>) -> Result<Trace, Failure> {
        let mut sealer = Sealer::to_memory(HOST);
        whom.record(&self.plan, &mut sealer)?;
        Ok(sealer.into_trace())
    }

    /// Records once, as the last thing that needs any rights, and keeps the recording in memory.
    ///
    /// # Errors
    /// If it cannot be run, joined or recorded.
    pub fn take(&self, whom: &Whom<'_>) -> Result<Trace, Failure> {
        let mut sealer = Sealer::to_memory(HOST);
        whom.confines(&mut sealer);
        whom.record(&self.plan, &mut sealer)?;
        deadweight_record::confine();
        Ok(sealer.into_trace())
    }

    /// The same as one of several recordings with no clean run between them.
    ///
    /// # Errors
    /// If it cannot be run or recorded.
    pub fn record_in(
        &self,
        row: &mut RecordingSeries,
        request: &Request,
    ) -> Result<Trace, Failure> {
        let mut sealer = Sealer::to_memory(HOST);
        record_in(row, request, &self.plan, &mut sealer)?;
        Ok(sealer.into_trace())
    }

    /// Records once and keeps the recording in `file`, which is called `path` and will have so many
    /// bytes at the most.
    ///
    /// # Errors
    /// If it cannot be run, joined or recorded, or the file not be written to the end.
    pub fn take_to(
        &self,
        whom: &Whom<'_>,
        (file, most): (File, u64),
        path: &Path,
    ) -> Result<Exit, Failure> {
        let mut sealer = Sealer::to_file(file, HOST);
        sealer.limit(most);
        whom.confines(&mut sealer);
        let outcome = whom.record(&self.plan, &mut sealer)?;
        match sealer.failure() {
            None => Ok(outcome.exit),
            Some(why) => Err(Failure::Unwhole {
                path: path.to_owned(),
                why: why.to_owned(),
                is_readable: sealer.is_readable(),
                exit: matches!(whom, Whom::Command(_)).then_some(outcome.exit),
            }),
        }
    }
}
