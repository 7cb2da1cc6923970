//! Candidates of a scan as JSON; [docs/scan.md](../../../../../docs/scan.md) describes the fields.

use crate::render::json::escaped;
use crate::scan::difference::{Change, Difference};
use crate::scan::kind::Kind;
use crate::scan::{Candidates, Place};
use serde_json::{Value, json};

/// The version of both forms.
const SCHEMA: u32 = 1;

/// The candidates of one binary.
#[must_use]
pub fn candidates(found: &Candidates) -> String {
    let places: Vec<Value> = found.places().map(|(kind, place)| candidate(kind, place)).collect();
    escaped(&format!(
        "{:#}",
        json!({
            "schema": SCHEMA,
            "deadweight": env!("CARGO_PKG_VERSION"),
            "binary": binary(found),
            "candidates": places,
        })
    ))
}

/// What differs between two binaries.
#[must_use]
pub fn difference(first: &Candidates, second: &Candidates, difference: &Difference) -> String {
    let changes = |changes: &[Change]| changes.iter().map(change).collect::<Vec<_>>();
    escaped(&format!(
        "{:#}",
        json!({
            "schema": SCHEMA,
            "deadweight": env!("CARGO_PKG_VERSION"),
            "before": binary(first),
            "after": binary(second),
            "came": changes(&difference.came),
            "went": changes(&difference.went),
            "same": difference.same,
            "unnamed": { "before": difference.unnamed.0, "after": difference.unnamed.1 },
        })
    ))
}

fn binary(found: &Candidates) -> Value {
    json!({
        "path": found.path,
        "language": found.info.language,
        "producer": found.info.producer,
        "optimised": found.info.optimised,
        "has_symbols": found.info.has_symbols,
        "has_lines": found.info.has_lines,
        "functions": found.functions.0,
        "code_bytes": found.functions.1,
        "left_out": found.left_out,
        "notes": found.notes,
    })
}

fn candidate(kind: &Kind, place: &Place) -> Value {
    json!({
        "kind": kind.name,
        "class": kind.is_class.then_some(kind.name),
        "function": place.function,
        "file": place.file,
        "line": place.line,
        "loops": place.depth,
        "amount": place.amount,
        "unit": kind.unit,
        "sites": place.sites,
        "callee": place.callee,
        "why": place.why,
        "floats": place.floats.map(|floats| json!({
            "double": floats.double, "fit": floats.fit(), "reduces": floats.reduces,
        })),
        "text": place.text(kind),
    })
}

fn change(change: &Change) -> Value {
    json!({
        "kind": change.kind.name,
        "class": change.kind.is_class.then_some(change.kind.name),
        "function": change.function,
        "loops": change.depth,
        "before": change.sites.0,
        "after": change.sites.1,
    })
}
