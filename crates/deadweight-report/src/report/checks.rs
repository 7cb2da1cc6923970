//! Which hidden costs were looked for, and what came of it.
//!
//! Data only. Not for costs that were found; see `findings`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What came of looking for one kind of cost.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Check {
    /// The cost class.
    pub class: String,
    /// The outcome.
    pub outcome: CheckOutcome,
    /// The part of the undisturbed (or busy) wall time in its row, 0 to 1.
    pub share: f64,
    /// Why it could not be checked; else empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
}

/// What a check showed.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CheckOutcome {
    /// There is a finding.
    Found,
    /// Its row has less time than a finding needs.
    #[default]
    RuledOut,
    /// Its row has time, but nothing shows that it could be saved.
    Needed,
    /// This run cannot show it.
    NotCheckable,
}
