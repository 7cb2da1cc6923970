//! The `status` file of a process or task.
//!
//! Does not interpret its fields; their readers do.

use std::fs;

/// The text of the file.
pub(crate) struct Status(String);

impl Status {
    /// Of a process or task, by its folder in `/proc`. None if it has ended.
    pub(crate) fn of(folder: &str) -> Option<Self> {
        fs::read_to_string(format!("{folder}/status")).ok().map(Self)
    }

    /// The value of a field; its name ends in a colon. Empty if there is no such field.
    pub(crate) fn field(&self, name: &str) -> &str {
        let found = self.0.lines().rev().find_map(|line| line.strip_prefix(name));
        found.unwrap_or_default().trim()
    }

    /// A field that is a hexadecimal set of bits.
    pub(crate) fn bits(&self, name: &str) -> u64 {
        u64::from_str_radix(self.field(name), 16).unwrap_or(0)
    }
}
