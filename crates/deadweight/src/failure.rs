//! What can go wrong in deadweight itself: one sentence and one exit code each.
//!
//! A recorded program that fails is no such failure: its exit code is passed on.

use deadweight_core::WeighError;
use deadweight_report::gate::GateError;
use deadweight_trace::Exit;
use std::io;
use std::path::{Path, PathBuf};

/// Exit code when deadweight itself failed.
pub const OURS: u8 = 2;

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The program could not be run or recorded.
    #[error("{0}")]
    Run(#[from] deadweight_record::Error),
    /// No report can be made of the recording.
    #[error("{0}")]
    Weigh(#[from] WeighError),
    /// A condition cannot be checked.
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
    #[error("{} cannot be read as a recording: {why}", path.display())]
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
    /// A recording is incomplete.
    #[error("the recording in {} is incomplete: {why}; {}", path.display(), after(path, *is_readable))]
    Incomplete {
        /// Where it is.
        path: PathBuf,
        /// Why it is incomplete.
        why: String,
        /// Whether the written part can be read.
        is_readable: bool,
        /// The program's exit, if it was started for the recording.
        exit: Option<Exit>,
    },
    /// The program ran to its end, but its report could not be written.
    #[error("{failure}")]
    Unreported {
        /// Why.
        failure: Box<Failure>,
        /// The program's exit.
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
    /// The program was interrupted before its first traced run.
    #[error("interrupted before the first traced run: there is nothing to report")]
    Interrupted,
    /// A command that is compared failed.
    #[error("`{command}` {ended}; use -i to compare it anyway")]
    Failed {
        /// The command.
        command: String,
        /// How it ended.
        ended: String,
    },
    /// The archive could not do something.
    #[error("{0}")]
    Archive(#[from] deadweight_archive::ArchiveError),
    /// A run could not be kept, and was saved.
    #[error("the run is not kept: {why}; it is saved, and this keeps it: deadweight archive add {}", path.display())]
    Unkept {
        /// Why.
        why: String,
        /// Where it was saved.
        path: PathBuf,
    },
    /// A name that is not known.
    #[error("{0}")]
    Unknown(String),
}

impl Failure {
    /// The exit code; the shell's code for a program that cannot be run or was interrupted.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Run(
                error @ (deadweight_record::Error::Exec { .. }
                | deadweight_record::Error::Interrupted(_)),
            ) => u8::try_from(error.exit_code()).unwrap_or(OURS),
            Self::Interrupted => interrupted_exit_code(),
            // A script that runs the program under deadweight relies on the program's exit code.
            Self::Incomplete { exit: Some(exit), .. } | Self::Unreported { exit, .. } => {
                exit_code(*exit)
            }
            _ => OURS,
        }
    }

    /// The same with the exit code of a verb that compares, not the shell's code for a missing command.
    #[must_use]
    pub fn of_comparison(self) -> Self {
        match self {
            Self::Run(error @ deadweight_record::Error::Exec { .. }) => {
                Self::Unknown(error.to_string())
            }
            failure => failure,
        }
    }

    /// Whether the reader of our output has closed it, which is not an error.
    #[must_use]
    pub fn is_broken_pipe(&self) -> bool {
        matches!(self, Self::Write { source, .. } if source.kind() == io::ErrorKind::BrokenPipe)
    }
}

/// 128 + the number of the signal by which the user asked for an end, as in shells.
pub(crate) fn interrupted_exit_code() -> u8 {
    let signal = deadweight_record::interrupted_by().unwrap_or(libc::SIGINT);
    exit_code(Exit { code: 0, signal: Some(signal) })
}

/// What can be done about an incomplete recording.
fn after(path: &Path, is_readable: bool) -> String {
    let helps = "for a complete one free some space there, or name another file with -o";
    match is_readable {
        true => {
            format!("read the written part with: deadweight report {}; {helps}", path.display())
        }
        false => format!("nothing of it can be read; {helps}"),
    }
}

/// The command's own exit code; 128 + the signal's number if a signal ended it, as in shells.
pub(crate) fn exit_code(exit: Exit) -> u8 {
    let code = exit.signal.map_or(exit.code, |signal| 128 + signal);
    u8::try_from(code).unwrap_or(OURS)
}
