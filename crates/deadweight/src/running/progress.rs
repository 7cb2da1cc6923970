//! A progress line on a terminal while a command is repeated; removed at the end. Shows nothing elsewhere.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// Shorter commands need no line.
const PATIENCE: Duration = Duration::from_secs(1);

/// The progress line.
#[derive(Debug)]
pub struct Progress {
    since: Instant,
    visible: bool,
    shown: bool,
    /// Whether other output may have left the cursor in the middle of a line.
    beside: bool,
}

impl Progress {
    /// Starts now. Shows nothing if `quiet`, or if standard error is no terminal that can
    /// erase a line.
    #[must_use]
    pub fn start(quiet: bool) -> Self {
        let can_erase = std::env::var_os("TERM").is_none_or(|term| term != "dumb");
        let visible = !quiet && can_erase && std::io::stderr().is_terminal();
        Self { since: Instant::now(), visible, shown: false, beside: true }
    }

    /// The same where nothing else writes to the terminal.
    #[must_use]
    pub fn alone(quiet: bool) -> Self {
        Self { beside: false, ..Self::start(quiet) }
    }

    /// Shows what happens next.
    pub fn say(&mut self, text: &str) {
        if self.visible && self.since.elapsed() >= PATIENCE {
            // The first run's output may have left the cursor in the middle of a line.
            let lead = if self.shown || !self.beside { "\r\x1b[K" } else { "\n" };
            let _ = write!(std::io::stderr(), "{lead}  {text}");
            self.shown = true;
        }
    }

    /// Prints a line that stays.
    pub fn note(&mut self, text: &str) {
        self.done();
        let _ = writeln!(std::io::stderr(), "{text}");
    }

    /// Removes the line.
    pub fn done(&mut self) {
        if self.shown {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
            self.shown = false;
        }
    }
}
