//! What a reader of the tables must know: why runs could not be compared, and series without one typical value.
//!
//! Not for the notes on a single cell; see `grid` and `difference`.

use super::{Layout, Table};
use crate::benchmarks::keys::Key;
use crate::benchmarks::units::is_time;
use crate::benchmarks::{Results, Unusable};
use crate::stats::spread::{Doubt, doubts};
use std::collections::BTreeSet;

/// Why nothing was compared, in a sentence; None if something was compared.
///
/// # Errors
/// If a side has no unit or no benchmark in common with the first.
pub(super) fn not_comparable(
    sides: &[(String, Results)],
    tables: &[Table],
    layout: &Layout,
) -> Result<Option<String>, Unusable> {
    let cells = tables.iter().flat_map(|table| &table.rows).flat_map(|row| row.cells.iter());
    if cells.flatten().any(|cell| cell.change.is_some()) {
        return Ok(None);
    }
    let Some(((a, first), others)) = sides.split_first() else { return Ok(None) };
    if layout.col != Key::File || others.is_empty() {
        return Ok((layout.col != Key::File).then(|| {
            "nothing was compared: no benchmark is in the first column and in another".into()
        }));
    }
    for (b, other) in others {
        if units(first).is_disjoint(&units(other)) {
            return Err(Unusable(format!(
                "{a} measures {}, {b} measures {}: there is nothing to compare",
                listed(units(first)),
                listed(units(other))
            )));
        }
        if layout.row == [Key::FullName] && names(first).is_disjoint(&names(other)) {
            return Err(Unusable(format!(
                "no benchmark of {b} is in {a} ({}; it has {}): there is nothing to compare",
                listed(names(other)),
                listed(names(first))
            )));
        }
    }
    let facts = |results: &Results| -> BTreeSet<(String, String)> {
        results.measured.iter().flat_map(|one| one.config.iter().cloned()).collect()
    };
    let known = facts(first);
    let ignored = |key: &str| layout.ignore.contains(&Key::Config(key.to_owned()));
    let differing: BTreeSet<String> = others
        .iter()
        .flat_map(|(_, other)| {
            facts(other).symmetric_difference(&known).cloned().collect::<Vec<_>>()
        })
        .map(|(key, _)| key)
        .filter(|key| !ignored(key))
        .collect();
    let listed: Vec<&str> = differing.iter().map(String::as_str).collect();
    let keys = listed.join(",");
    Ok(Some(format!(
        "nothing was compared, because the runs differ in `{keys}`: give --ignore {keys} to compare \
         them all the same"
    )))
}

fn units(results: &Results) -> BTreeSet<&str> {
    let values = results.measured.iter().flat_map(|one| &one.values);
    values.map(|(_, unit)| unit.as_str()).collect()
}

fn names(results: &Results) -> BTreeSet<&str> {
    results.measured.iter().map(|one| one.name.as_str()).collect()
}

/// The first few of many.
fn listed(all: BTreeSet<&str>) -> String {
    let shown: Vec<&str> = all.iter().copied().take(3).collect();
    let more = if all.len() > shown.len() { ", ..." } else { "" };
    format!("{}{more}", shown.join(", "))
}

/// Warnings about series of times without one typical value.
pub(super) fn unusual_series(table: &Table) -> Vec<String> {
    if !is_time(&table.unit) {
        return Vec::new();
    }
    let mut warnings = Vec::new();
    for row in &table.rows {
        for (cell, column) in row.cells.iter().zip(&table.columns) {
            let Some(cell) = cell else { continue };
            // Picoseconds: whole numbers, and precise enough for any benchmark.
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
            let whole = |v: &f64| (v * 1e12).clamp(0.0, 1e18) as u64;
            let series: Vec<u64> = cell.measured.iter().map(whole).collect();
            let name = &row.name;
            if cell.measured.iter().any(|v| *v <= 0.0) {
                warnings.push(format!("{column}, {name}: a time of 0 or less was not measured"));
            }
            warnings.extend(
                doubts(&series).iter().map(|d| format!("{column}, {name}: {}", sentence(d))),
            );
        }
    }
    warnings
}

fn sentence(doubt: &Doubt) -> String {
    match doubt {
        Doubt::ColdStart { factor } => {
            format!("the first measurement is {factor:.1} × the others: caches may have been cold")
        }
        Doubt::Outliers { count, factor } => {
            format!("{count} of the measurements are far off, the worst {factor:.2} × the median")
        }
        Doubt::TwoModes { fast, slow, slow_count } => {
            let factor = *slow as f64 / (*fast).max(1) as f64;
            format!(
                "two groups: {slow_count} measurements take {factor:.2} × as long as the others"
            )
        }
        Doubt::Drift { factor } => {
            format!("drifting: the second half takes {factor:.2} × as long as the first")
        }
    }
}
