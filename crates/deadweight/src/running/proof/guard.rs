//! A process that cleans up if this one is killed: it ends runs that lack a cost, and removes the folder of proofs.
//!
//! - In: the folder, and a mark that the runs of proofs carry in their environment, those of both sides of a pair.
//! - Must not know: what the runs leave out. The last run, of the program as it is, has no mark, and goes on.
//!
//! Nobody can clean up after SIGKILL himself. The guard waits for the end of a pipe whose other end only this process has. Its own
//! process group keeps it from the signals of a terminal.

use super::means::folder::remove_unused;
use deadweight_record::descendants;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The name by which this program is started to guard.
const NAME: &str = "deadweight-guard";
/// The variable that marks a run.
const MARK: &str = "DEADWEIGHT_PROOF";
/// A run may be about to start, or another process of it: they are looked for until there was none so many times ...
const QUIET: u32 = 20;
/// ... but no more often than this ...
const ROUNDS: u32 = 200;
/// ... with this pause.
const PAUSE: Duration = Duration::from_millis(5);
/// How long its end is waited for.
const PATIENCE: Duration = Duration::from_secs(2);

/// The guard, seen from the process that it guards. It ends with this value.
#[derive(Debug)]
pub(super) struct Guard {
    process: Child,
    mark: OsString,
}

impl Guard {
    /// Starts it for a folder of proofs.
    ///
    /// # Errors
    /// If no process can be started.
    pub(super) fn start(folder: &Path) -> io::Result<Self> {
        // The folder's name has this process's number, and is used once.
        let mark = folder.file_name().unwrap_or_default().to_owned();
        let process = Command::new("/proc/self/exe")
            .arg0(NAME)
            .args([folder.as_os_str(), &mark])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()?;
        Ok(Self { process, mark })
    }

    /// The variable for a run that must not outlive this process. It is the same for all: a program may print it.
    pub(super) fn mark(&self) -> (OsString, OsString) {
        (MARK.into(), self.mark.clone())
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // A byte before the end: nothing is left to do, and what the program left running on purpose goes on.
        _ = self.process.stdin.take().map(|mut stdin| stdin.write_all(b"."));
        let until = Instant::now() + PATIENCE;
        while matches!(self.process.try_wait(), Ok(None)) && Instant::now() < until {
            std::thread::sleep(Duration::from_micros(200));
        }
    }
}

/// Whether these words of a command line start a guard.
pub(crate) fn is_meant(words: &[OsString]) -> bool {
    words.first().is_some_and(|first| first == NAME)
}

/// Guards until standard input ends. Returns the exit code.
pub(crate) fn guard(words: &[OsString]) -> u8 {
    let [_, folder, mark] = words else { return 2 };
    let mut said = Vec::new();
    // The other end is closed when the guarded process ends.
    _ = io::stdin().lock().read_to_end(&mut said);
    if !said.is_empty() {
        return 0;
    }
    let mut variable = OsString::from(MARK);
    variable.push("=");
    variable.push(mark);
    let mut quiet = 0;
    for _ in 0..ROUNDS {
        quiet = if kill_marked(&variable) { 0 } else { quiet + 1 };
        if quiet == QUIET {
            break;
        }
        std::thread::sleep(PAUSE);
    }
    remove_unused(Path::new(folder));
    0
}

/// Kills the processes with this variable, and their descendants. Returns whether there were any.
fn kill_marked(variable: &OsStr) -> bool {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let mut any = false;
    for number in numbers.filter(|number| *number != std::process::id()) {
        any |= kill_if(number, |number| has(number, variable));
    }
    any
}

/// Kills a process and its descendants if `condition` holds.
fn kill_if(number: u32, condition: impl Fn(u32) -> bool) -> bool {
    // A descriptor of the process: its number may get another meaning meanwhile.
    let open = |number: u32| {
        let pid = Pid::from_raw(i32::try_from(number).ok()?)?;
        pidfd_open(pid, PidfdFlags::empty()).ok()
    };
    let Some(process) = open(number).filter(|_| condition(number)) else { return false };
    let family = descendants(number).into_iter().filter_map(|one| Some((one, open(one)?)));
    let family: Vec<_> = family.collect();
    // Those that are still there are the ones that were opened.
    let still = descendants(number);
    let family = family.iter().filter(|(one, _)| still.contains(one)).map(|(_, one)| one);
    for one in family.chain([&process]) {
        // It may have ended by itself.
        _ = pidfd_send_signal(one, Signal::KILL);
    }
    true
}

/// Whether a process was started with this variable.
fn has(number: u32, variable: &OsStr) -> bool {
    let environment = fs::read(format!("/proc/{number}/environ")).unwrap_or_default();
    environment.split(|byte| *byte == 0).any(|entry| entry == variable.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marked_processes_and_their_children_are_killed_and_others_are_not() {
        let mark = format!("test-{}", std::process::id());
        let shell = |value: &str| {
            let mut command = Command::new("sh");
            // The inner one has another environment.
            command.args(["-c", "env -i sleep 60; :"]).env(MARK, value);
            command.spawn().unwrap()
        };
        let elsewhere = format!("another-{}", std::process::id());
        let (mut ours, mut other) = (shell(&mark), shell(&elsewhere));
        // A program that is not executed yet has the environment of this one.
        while [ours.id(), other.id()].iter().any(|shell| descendants(*shell).len() < 2) {
            std::thread::sleep(PAUSE);
        }
        let inner = descendants(ours.id())[1];
        let variable = OsString::from(format!("{MARK}={mark}"));
        assert!(kill_marked(&variable));
        assert!(!ours.wait().unwrap().success());
        while Path::new(&format!("/proc/{inner}/exe")).read_link().is_ok() {
            std::thread::sleep(PAUSE);
        }
        assert!(!kill_marked(&variable));
        assert!(other.try_wait().unwrap().is_none());
        let another = OsString::from(format!("{MARK}={elsewhere}"));
        assert!(kill_marked(&another));
        other.wait().unwrap();
    }
}
