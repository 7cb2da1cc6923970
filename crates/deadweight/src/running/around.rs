//! What the user wants done around a command's runs, in nobody's time: setup, prepare, conclude,
//! cleanup. Their output goes nowhere; one that fails ends everything, with its last words.

use crate::failure::Failure;
use std::ffi::OsString;
use std::io;
use std::process::{Command, Stdio};

/// Shell commands around the runs of one command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Around {
    /// Before its first run.
    pub setup: Option<OsString>,
    /// Before each run.
    pub prepare: Option<OsString>,
    /// After each run.
    pub conclude: Option<OsString>,
    /// After its last run.
    pub cleanup: Option<OsString>,
}

impl Around {
    pub(super) fn set_up(&self) -> Result<(), Failure> {
        shell(self.setup.as_ref(), "the command of --setup failed")
    }

    pub(super) fn make_ready(&self) -> Result<(), Failure> {
        shell(self.prepare.as_ref(), "the command of --prepare failed")
    }

    pub(super) fn conclude(&self) -> Result<(), Failure> {
        shell(self.conclude.as_ref(), "the command of --conclude failed")
    }

    pub(super) fn clean_up(&self) -> Result<(), Failure> {
        shell(self.cleanup.as_ref(), "the command of --cleanup failed")
    }
}

fn shell(line: Option<&OsString>, what: &'static str) -> Result<(), Failure> {
    let Some(line) = line else { return Ok(()) };
    let failed = |source| Failure::Repeat { what, source };
    // The input is the compared commands'.
    let done = Command::new("/bin/sh").arg("-c").arg(line).stdin(Stdio::null()).output();
    let done = done.map_err(failed)?;
    if done.status.success() {
        return Ok(());
    }
    let told = String::from_utf8_lossy(&done.stderr);
    let told = told.lines().last().unwrap_or_default();
    Err(failed(io::Error::other(format!("{} {told}", done.status))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fails_is_told_with_its_words() {
        let line = |text: &str| Some(OsString::from(text));
        let around = Around {
            prepare: line("echo no such luck >&2; exit 3"),
            conclude: line("true"),
            ..Around::default()
        };
        let told = around.make_ready().unwrap_err().to_string();
        assert!(told.contains("--prepare") && told.contains("no such luck"), "{told}");
        around.conclude().unwrap();
        around.set_up().unwrap();
        around.clean_up().unwrap();
    }
}
