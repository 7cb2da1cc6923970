//! The process that asks, seen from the one that wants to know.

use super::asker::NAME;
use super::exchange::{Answer, Question};
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// Time to read debug files, beyond the time for fetching them.
const READING: Duration = Duration::from_secs(60);

/// Bytes of an answer: a million names need less.
const MOST: u64 = 1 << 29;

/// The process. It ends with this value.
#[derive(Debug)]
pub(super) struct Process(Child);

impl Process {
    /// Starts this program again, under a name that makes it ask.
    pub(super) fn start() -> io::Result<Self> {
        let mut command = Command::new("/proc/self/exe");
        command.arg0(NAME).stdin(Stdio::piped()).stdout(Stdio::piped());
        command.spawn().map(Self)
    }

    /// Asks, and waits for the answer. The error is the reason, in words that follow a subject.
    pub(super) fn ask(mut self, question: &Question, time: Duration) -> Result<Answer, String> {
        let (Some(mut to), Some(mut from)) = (self.0.stdin.take(), self.0.stdout.take()) else {
            return Err("has no pipes".to_owned());
        };
        let text = serde_json::to_vec(question).map_err(|error| error.to_string())?;
        let (send, receive) = mpsc::channel();
        // Ends with the process, at the latest when this value is dropped.
        std::thread::spawn(move || {
            let mut answer = Vec::new();
            let done = to.write_all(&text).and_then(|()| {
                drop(to);
                from.by_ref().take(MOST).read_to_end(&mut answer)
            });
            // Nobody listens after the time.
            _ = send.send(done.map(|_| answer));
        });
        let answer = receive
            .recv_timeout(time.saturating_add(READING))
            .map_err(|_| "did not end in time".to_owned())?
            .map_err(|error| format!("ended too early ({error})"))?;
        serde_json::from_slice(&answer).map_err(|_| "ended without an answer".to_owned())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It has no question, or its answer has come; it may have ended.
        _ = self.0.kill();
        _ = self.0.wait();
    }
}
