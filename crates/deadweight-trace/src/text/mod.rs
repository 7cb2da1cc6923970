//! The text form of a trace: tests are written in it, and `dump` prints it.
//!
//! - In: text, or a trace.
//! - Out: the trace, or text that reads back as the same trace.
//! - Must not know: what events mean for a ledger. Not for speed: recordings are stored in binary.
//!
//! Reading: `read` parses lines into statements; `resolve` sorts them by time and fills in defaults. Writing: `write`
//! leaves out what `resolve` would fill in. `docs/trace-format.md` describes the form.

mod code;
mod defaults;
mod header;
mod read;
mod resolve;
mod stack;
#[cfg(test)]
mod tests;
mod word;
mod write;

use super::Trace;
use crate::ids::Tid;
use std::fmt;

/// Why a text cannot be read.
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

/// Which part of a trace is written. For a part in time see [`Trace::cut`].
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct TextOptions {
    /// Only the events of this task.
    pub task: Option<Tid>,
    /// Addresses also for functions that have a name. Without them the text is easier to read and to compare, but
    /// locations with the same function and line become one.
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
    /// The first line that cannot be parsed, with what was expected there.
    pub fn from_text(text: &str) -> Result<Self, TextError> {
        let statements = read::read(text)?;
        resolve::resolve(statements)
    }

    /// The text form of the whole trace: reading it gives this trace again.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        // Writing to a String never fails.
        let _ = self.write_text(TextOptions::default(), &mut text);
        text
    }

    /// Writes the text form of a part of the trace.
    ///
    /// # Errors
    /// Only errors of `out`.
    pub fn write_text(&self, part: TextOptions, out: &mut dyn fmt::Write) -> fmt::Result {
        write::write(self, part, out)
    }
}
