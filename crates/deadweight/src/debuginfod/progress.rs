//! A line about what is asked for, once that takes longer than a second.
//!
//! On a terminal it changes and is removed at the end; elsewhere it is printed once, so that a log shows what took time.

use crate::render::page::printable;
use deadweight_debuginfod::Step;
use std::io::{IsTerminal, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What takes less has no line.
const PATIENCE: Duration = Duration::from_secs(1);

/// How often the line may change.
const EVERY: Duration = Duration::from_millis(200);

/// What is said, and what is shown; none when everything is done.
#[derive(Debug, Default)]
struct State {
    text: String,
    is_done: bool,
}

/// The line.
#[derive(Debug)]
pub(super) struct Progress(Option<(Arc<Mutex<State>>, std::thread::JoinHandle<()>)>);

impl Progress {
    /// Starts now; shows nothing if `quiet`.
    pub(super) fn start(quiet: bool) -> Self {
        let state = Arc::new(Mutex::new(State::default()));
        let shared = Arc::clone(&state);
        let started = || std::thread::Builder::new().spawn(move || show(&shared)).ok();
        Self((!quiet).then(started).flatten().map(|thread| (state, thread)))
    }

    /// What happens now.
    pub(super) fn step(&self, step: Step<'_>) {
        let Some((state, _)) = &self.0 else { return };
        state.lock().unwrap_or_else(PoisonError::into_inner).text = said(step);
    }

    /// Removes the line.
    pub(super) fn end(self) {
        let Some((state, thread)) = self.0 else { return };
        state.lock().unwrap_or_else(PoisonError::into_inner).is_done = true;
        thread.thread().unpark();
        // It cannot have panicked: it only prints.
        _ = thread.join();
    }
}

fn said(step: Step<'_>) -> String {
    match step {
        Step::Asking { server, what } => {
            format!("asking {server} for the debug information of {what}")
        }
        Step::Receiving { what, bytes, of } => {
            let of = of.map(|of| format!(" of {}", megabytes(of))).unwrap_or_default();
            format!("receiving the debug information of {what}: {}{of}", megabytes(bytes))
        }
    }
}

fn megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}

fn show(state: &Mutex<State>) {
    let begun = Instant::now();
    let can_erase = std::env::var_os("TERM").is_none_or(|term| term != "dumb");
    let changes = can_erase && std::io::stderr().is_terminal();
    let mut shown = String::new();
    loop {
        std::thread::park_timeout(EVERY);
        let (text, is_done) = {
            let state = state.lock().unwrap_or_else(PoisonError::into_inner);
            (printable(&state.text), state.is_done)
        };
        let mut out = std::io::stderr().lock();
        if is_done {
            if changes && !shown.is_empty() {
                _ = write!(out, "\r\x1b[K");
            }
            return;
        }
        if begun.elapsed() < PATIENCE || text == shown || (!changes && !shown.is_empty()) {
            continue;
        }
        // Nothing can be done if standard error is closed.
        _ = if changes {
            write!(out, "\r\x1b[K  {text}")
        } else {
            writeln!(out, "deadweight: {text}")
        };
        shown = text;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_who_is_asked_and_how_much_came() {
        let asking = Step::Asking { server: "https://a", what: "zstd" };
        assert_eq!(said(asking), "asking https://a for the debug information of zstd");
        let step = |of| Step::Receiving { what: "zstd", bytes: 1_500_000, of };
        let came = "receiving the debug information of zstd: 1.5 MB";
        assert_eq!(said(step(None)), came);
        assert_eq!(said(step(Some(3_000_000))), format!("{came} of 3.0 MB"));
    }
}
