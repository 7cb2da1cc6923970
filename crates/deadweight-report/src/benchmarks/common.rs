//! Whether sides have anything in common that can be compared, and if not, why.

use super::keys::Key;
use super::table::{Layout, Table};
use super::{Results, Unusable};
use std::collections::BTreeSet;

/// What keeps runs apart that could be compared, in a sentence; None if something was compared.
///
/// # Errors
/// If a side has no unit or no benchmark in common with the first.
pub(super) fn kept_apart(
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
                "no benchmark of {b} is in {a} ({} beside {}): there is nothing to compare",
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
