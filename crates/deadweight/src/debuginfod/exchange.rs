//! What goes to the process that asks, and what comes back: one line of JSON each.

use serde::{Deserialize, Serialize};

/// What is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Question {
    /// Show no progress.
    pub(super) quiet: bool,
    /// Binaries without symbols, those with most samples first.
    pub(super) images: Vec<Wanted>,
}

/// A binary without symbols.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Wanted {
    /// In hexadecimal.
    pub(super) build_id: String,
    /// Its file name, for people.
    pub(super) name: String,
    /// Whether hardly any stack shows it: nothing is said if no server has it.
    pub(super) is_minor: bool,
    /// Whether lines are wanted, or only functions.
    pub(super) lines: bool,
    /// The addresses to name, in ascending order.
    pub(super) addresses: Vec<u64>,
}

/// The answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Answer {
    /// For each binary of the question what was found.
    pub(super) images: Vec<Option<Found>>,
    /// Sentences about what was not.
    pub(super) remarks: Vec<String>,
}

/// What a debug file says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Found {
    /// For each address its frames, innermost first.
    pub(super) frames: Vec<Vec<Named>>,
    /// Source language, or empty.
    pub(super) language: String,
    /// The compiler, or empty.
    pub(super) producer: String,
    /// Whether the code was optimised, if that is known.
    pub(super) optimised: Option<bool>,
    /// Whether function names are known.
    pub(super) has_symbols: bool,
    /// Whether lines are known.
    pub(super) has_lines: bool,
}

/// One frame: function, file, line; empty or 0 where unknown.
pub(super) type Named = (String, String, u32);
