//! What can go wrong before or while a program runs under the recorder, each as one sentence.
//!
//! A program that fails is not an error here: it is an [`Exit`](deadweight_trace::Exit).

use std::io;
use std::path::PathBuf;

/// Why a program could not be run or recorded.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The program could not be executed.
    #[error("cannot run {}: {why}", path.display())]
    Exec {
        /// The program as requested, or the file that the kernel refused.
        path: PathBuf,
        /// The kernel's error number.
        errno: i32,
        /// The reason in words, with what was found out about the file.
        why: String,
    },
    /// The command is empty or has a zero byte in it.
    #[error("not a command that can be run: {0}")]
    Command(&'static str),
    /// The directory to run in cannot be entered.
    #[error("cannot enter {}: {source}", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// This machine does not allow recording.
    #[error("{why}. {help}")]
    NotAllowed {
        /// What is missing, in words.
        why: String,
        /// The command that helps.
        help: String,
    },
    /// A process that cannot be attached to.
    #[error("cannot attach to process {pid}: {why}")]
    NoProcess {
        /// The process.
        pid: u32,
        /// The reason.
        why: String,
    },
    /// A signal ended the child before it became the program.
    #[error("interrupted by signal {0} before the program was started")]
    Interrupted(i32),
    /// The kernel refused something that should have worked.
    #[error("{what}: {source}")]
    System {
        /// The attempted action.
        what: String,
        /// The reason.
        source: io::Error,
    },
}

impl Error {
    /// The exit code that a shell would give: 127 for a missing program, 126 for one that cannot be executed, 128 and
    /// the signal's number if a signal came first, 125 for a failure of the recorder.
    #[must_use]
    pub fn exit_code(&self) -> i32 {
        match self {
            Self::Exec { errno: libc::ENOENT | libc::ENOTDIR, .. } => 127,
            Self::Exec { .. } => 126,
            Self::Interrupted(signal) => 128 + signal,
            _ => 125,
        }
    }

    /// The latest system error, which occurred during the action `what`.
    pub(crate) fn last(what: impl Into<String>) -> Self {
        Self::System { what: what.into(), source: io::Error::last_os_error() }
    }
}
