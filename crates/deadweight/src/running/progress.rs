//! A line on a terminal that says how far repeating is; nothing elsewhere, and nothing that stays.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// Shorter commands need no line.
const PATIENCE: Duration = Duration::from_secs(1);

/// How far it is.
#[derive(Debug)]
pub struct Progress {
    since: Instant,
    visible: bool,
    shown: bool,
}

impl Progress {
    /// Starts now. Silent unless standard error is a terminal, and if told so.
    #[must_use]
    pub fn start(quiet: bool) -> Self {
        let visible = !quiet && std::io::stderr().is_terminal();
        Self { since: Instant::now(), visible, shown: false }
    }

    /// Says what happens next.
    pub fn say(&mut self, text: &str) {
        if self.visible && self.since.elapsed() >= PATIENCE {
            // The first run's output may have left the cursor in the middle of a line.
            let lead = if self.shown { "\r\x1b[K" } else { "\n" };
            let _ = write!(std::io::stderr(), "{lead}  {text}");
            self.shown = true;
        }
    }

    /// Takes the line away.
    pub fn done(&mut self) {
        if self.shown {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
            self.shown = false;
        }
    }
}
