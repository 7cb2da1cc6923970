//! A report from its JSON, checked: another schema, or rows that don't add up, are refused with a sentence.
//!
//! Not for conditions on reports; see `gate`.

use super::{Report, SCHEMA};

impl Report {
    /// Reads what `--export-json` wrote.
    ///
    /// # Errors
    /// If the text is not JSON of this form, has another schema, or if its rows do not add up to its wall time, which
    /// must not be 0. The error text is meant to follow `it is no report: `.
    pub fn from_json(text: &str) -> Result<Self, String> {
        let report: Self = serde_json::from_str(text).map_err(|error| error.to_string())?;
        if report.schema != SCHEMA {
            return Err(format!("its schema is {}, not {SCHEMA}", report.schema));
        }
        let sum: u128 = report.ledger.iter().map(|row| u128::from(row.ns)).sum();
        if sum != u128::from(report.wall_ns) || sum == 0 {
            let wall = report.wall_ns;
            return Err(format!("its rows add up to {sum} ns, its wall time is {wall}"));
        }
        Ok(report)
    }
}
