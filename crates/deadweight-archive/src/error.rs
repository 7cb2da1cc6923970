//! What can go wrong: one sentence that says what happened, why, and what to do.
//!
//! Passwords of addresses are never part of it.

/// Why the archive could not do something.
#[derive(Debug, thiserror::Error)]
#[error("{what}: {why}; {todo}")]
pub struct ArchiveError {
    /// What kind of failure it is, for callers that act on it.
    pub kind: ErrorKind,
    what: String,
    why: String,
    todo: String,
}

/// Kinds of failure.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The address names no archive.
    Address,
    /// There is nothing there yet.
    Missing,
    /// A newer deadweight made it.
    Newer,
    /// It is not an archive, or a damaged one.
    Damaged,
    /// No permission, or a wrong password.
    Denied,
    /// The disk is full.
    Full,
    /// Others hold it for too long.
    Busy,
    /// The connection to the server is lost, or there is none.
    Lost,
    /// There is no such run, or several.
    Unknown,
    /// What is to be kept cannot be kept.
    Refused,
    /// Anything else that the database reports.
    Database,
}

impl ArchiveError {
    /// There is no archive at `to`.
    pub(crate) fn missing(to: &str) -> Self {
        Self::new(
            ErrorKind::Missing,
            format!("there is no archive at {to}"),
            "no run was kept there yet",
            "keep one with: deadweight --keep -- COMMAND",
        )
    }

    /// A failure in three parts of one sentence.
    pub(crate) fn new(
        kind: ErrorKind,
        what: impl Into<String>,
        why: impl Into<String>,
        todo: impl Into<String>,
    ) -> Self {
        // The texts of databases may have several lines.
        let line = |text: String| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let [what, why, todo] = [what.into(), why.into(), todo.into()].map(line);
        Self { kind, what, why, todo }
    }
}
