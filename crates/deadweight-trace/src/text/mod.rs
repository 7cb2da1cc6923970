//! The readable form of a trace, both ways: what tests are written in and `dump` prints.
//!
//! `docs/trace-format.md` describes it for people. Reading: `read` makes lines of text into
//! statements, `resolve` puts them in order of time and fills in what they left out. Writing:
//! `write` leaves out what `resolve` would fill in. Not for speed: a recording is kept in binary.

mod code;
mod header;
mod read;
mod resolve;
mod stack;
#[cfg(test)]
mod tests;
mod usual;
mod word;
mod write;

use super::Trace;
use crate::ids::Tid;
use std::fmt;

/// Why a text is not a trace.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct TextError {
    /// Number of the line, from 1.
    pub line: usize,
    /// What should have been there.
    pub expected: String,
    /// The start of what was there, escaped; empty at the end of a line.
    pub found: String,
}

impl fmt::Display for TextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: expected {}", self.line, self.expected)?;
        match self.found.as_str() {
            "" => write!(f, " at the end of the line"),
            found => write!(f, ", found `{found}`"),
        }
    }
}

/// What of a trace is written. For a part in time see [`Trace::cut`].
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct TextOptions {
    /// Only what happened to this task.
    pub task: Option<Tid>,
    /// Also the addresses of functions that have a name. Without them the text is easier to read
    /// and compare, but locations of one function and line are one.
    pub addresses: bool,
}

impl Default for TextOptions {
    fn default() -> Self {
        Self { task: None, addresses: true }
    }
}

impl TextOptions {
    fn keep(&self, event: &super::Event) -> bool {
        self.task.is_none_or(|t| t == event.task)
    }
}

impl Trace {
    /// Reads the text form.
    ///
    /// # Errors
    /// The first line that is not understood, with what was expected there.
    pub fn from_text(text: &str) -> Result<Self, TextError> {
        let statements = read::read(text)?;
        resolve::resolve(statements)
    }

    /// The text form of the whole trace: reading it gives this trace again.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        // A String takes everything: there is no error to pass on.
        let _ = self.write_text(TextOptions::default(), &mut text);
        text
    }

    /// Writes the text form of a part of the trace.
    ///
    /// # Errors
    /// Only those of `out`.
    pub fn write_text(&self, part: TextOptions, out: &mut dyn fmt::Write) -> fmt::Result {
        write::write(self, part, out)
    }
}
