//! What can go wrong on our side: one clear sentence each, and the exit code that goes with it.
//!
//! A program that fails is not a failure of ours: its exit code is handed on as it is.

use deadweight_core::WeighError;
use deadweight_report::gate::GateError;
use deadweight_trace::Exit;
use std::io;
use std::path::{Path, PathBuf};

/// Exit code when deadweight itself could not do its work.
pub const OURS: u8 = 2;

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The program could not be run or recorded.
    #[error("{0}")]
    Run(#[from] deadweight_record::Error),
    /// What was recorded could not be weighed.
    #[error("{0}")]
    Weigh(#[from] WeighError),
    /// A condition cannot be asked.
    #[error("{0}")]
    Gate(#[from] GateError),
    /// A file could not be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file is not a recording, or a damaged one.
    #[error("{} is not a recording that can be read: {why}", path.display())]
    Recording {
        /// Which.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// Something could not be written.
    #[error("cannot write {what} to {to}: {source}")]
    Write {
        /// What was to be written.
        what: &'static str,
        /// Where to.
        to: String,
        /// Why.
        source: io::Error,
    },
    /// A recording is not whole.
    #[error("the recording in {} is not whole: {why}; {}", path.display(), after(path, *is_readable))]
    Unwhole {
        /// Where it is.
        path: PathBuf,
        /// What became of it.
        why: String,
        /// Whether what is there can be read.
        is_readable: bool,
        /// How the program ended, if it was started for the recording.
        exit: Option<Exit>,
    },
    /// A program ran to its end, and its report could not be written.
    #[error("{failure}")]
    Untold {
        /// Why.
        failure: Box<Failure>,
        /// How the program ended.
        exit: Exit,
    },
    /// The program's input or output could not be prepared for repeating.
    #[error("cannot repeat the command: {what}: {source}")]
    Repeat {
        /// What was being done.
        what: &'static str,
        /// Why it failed.
        source: io::Error,
    },
    /// The program was interrupted before any run of it was traced.
    #[error("interrupted before a run was traced: there is nothing to report")]
    Interrupted,
    /// A command that is compared failed.
    #[error("`{command}` {ended}; give -i to compare it all the same")]
    Failed {
        /// The command.
        command: String,
        /// How it ended.
        ended: String,
    },
    /// A name that is not known.
    #[error("{0}")]
    Unknown(String),
}

impl Failure {
    /// The exit code: of a program that cannot be run or was interrupted, what a shell would give.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Run(
                error @ (deadweight_record::Error::Exec { .. }
                | deadweight_record::Error::Interrupted(_)),
            ) => u8::try_from(error.exit_code()).unwrap_or(OURS),
            Self::Interrupted => 128 + 2,
            // Who calls us in place of a program relies on what that one says.
            Self::Unwhole { exit: Some(exit), .. } | Self::Untold { exit, .. } => exit_code(*exit),
            _ => OURS,
        }
    }

    /// Whether it means no more than that our reader went away, which is not an error.
    #[must_use]
    pub fn is_broken_pipe(&self) -> bool {
        matches!(self, Self::Write { source, .. } if source.kind() == io::ErrorKind::BrokenPipe)
    }
}

/// What can be done about a recording that is not whole.
fn after(path: &Path, is_readable: bool) -> String {
    let helps = "for all of it make room there, or name another place with -o";
    match is_readable {
        true => format!("read what there is with: deadweight report {}; {helps}", path.display()),
        false => format!("nothing of it can be read; {helps}"),
    }
}

/// The command's own exit code; 128 and the signal's number if a signal ended it, as shells say.
pub(crate) fn exit_code(exit: Exit) -> u8 {
    let code = exit.signal.map_or(exit.code, |signal| 128 + signal);
    u8::try_from(code).unwrap_or(OURS)
}
