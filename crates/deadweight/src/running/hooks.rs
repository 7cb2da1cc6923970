//! Shell commands around a command's runs, outside the measured time: setup, prepare, conclude, cleanup.
//!
//! Their output is dropped. If one fails, deadweight ends with an error that quotes its
//! last line of standard error.

use crate::failure::Failure;
use std::ffi::OsString;
use std::io;
use std::process::{Command, Stdio};

/// Shell commands around the runs of one command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hooks {
    /// Before its first run.
    pub setup: Option<OsString>,
    /// Before each run.
    pub prepare: Option<OsString>,
    /// After each run.
    pub conclude: Option<OsString>,
    /// After its last run.
    pub cleanup: Option<OsString>,
}

impl Hooks {
    pub(super) fn set_up(&self) -> Result<(), Failure> {
        shell(self.setup.as_ref(), "the command of --setup failed")
    }

    pub(super) fn prepare(&self) -> Result<(), Failure> {
        shell(self.prepare.as_ref(), "the command of --prepare failed")
    }

    pub(super) fn conclude(&self) -> Result<(), Failure> {
        shell(self.conclude.as_ref(), "the command of --conclude failed")
    }

    pub(super) fn clean_up(&self) -> Result<(), Failure> {
        shell(self.cleanup.as_ref(), "the command of --cleanup failed")
    }
}

/// Runs this line, if there is one, with its output dropped.
///
/// # Errors
/// If it fails: `what`, and the last line that it wrote to standard error.
pub(crate) fn shell(line: Option<&OsString>, what: &'static str) -> Result<(), Failure> {
    let Some(line) = line else { return Ok(()) };
    let failed = |source| Failure::Repeat { what, source };
    // Standard input belongs to the compared commands.
    let done = Command::new("/bin/sh").arg("-c").arg(line).stdin(Stdio::null()).output();
    let done = done.map_err(failed)?;
    if done.status.success() {
        return Ok(());
    }
    let stderr = String::from_utf8_lossy(&done.stderr);
    let last_line = stderr.lines().last().unwrap_or_default();
    Err(failed(io::Error::other(format!("{} {last_line}", done.status))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_reported_with_the_last_line() {
        let line = |text: &str| Some(OsString::from(text));
        let hooks = Hooks {
            prepare: line("echo no such thing >&2; exit 3"),
            conclude: line("true"),
            ..Hooks::default()
        };
        let failure = hooks.prepare().unwrap_err().to_string();
        assert!(failure.contains("--prepare") && failure.contains("no such thing"), "{failure}");
        hooks.conclude().unwrap();
        hooks.set_up().unwrap();
        hooks.clean_up().unwrap();
    }
}
