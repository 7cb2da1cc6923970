//! A run's rows and counts as a few bytes in its own row of `runs`, so that the series of a workload is read without
//! the tables `rows` and `counts`: for 100 000 runs these have three million rows.
//!
//! The names are apart, in `shapes`: most runs of a workload have the same. A shape is found by a hash of its text, so
//! writers need not agree on numbers.

use crate::kept::short_key;
use deadweight_report::tables::Tables;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Bytes of a value.
const WIDTH: usize = 8;

/// The names of a run's rows and counts, in the order of its values.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Shape {
    /// Accounts of the ledger of wall time.
    pub(crate) rows: Vec<String>,
    /// Names of counts.
    pub(crate) counts: Vec<String>,
}

/// A run's rows and counts.
#[derive(Debug)]
pub(crate) struct Packed {
    /// The key of its shape.
    pub(crate) shape: String,
    /// The shape, as JSON text.
    pub(crate) names: String,
    /// Its values: of rows as integers, of counts as numbers.
    pub(crate) values: Vec<u8>,
}

/// Packs a run.
pub(crate) fn pack(tables: &Tables) -> Packed {
    // Several rows may have one account; in order of names, fewer shapes differ.
    let (mut rows, mut counts) = (BTreeMap::new(), BTreeMap::new());
    for row in tables.rows.iter().filter(|row| row.ledger == "wall") {
        let sum: &mut u64 = rows.entry(row.account.clone()).or_default();
        *sum = sum.saturating_add(row.ns);
    }
    for count in &tables.counts {
        *counts.entry(count.name.clone()).or_insert(0.0) += count.value;
    }
    let values = rows.values().flat_map(|ns| ns.to_le_bytes());
    let values =
        values.chain(counts.values().flat_map(|value: &f64| value.to_le_bytes())).collect();
    let shape = Shape { rows: rows.into_keys().collect(), counts: counts.into_keys().collect() };
    // Lists of texts have a JSON form.
    let names = serde_json::to_string(&shape).unwrap_or_default();
    Packed { shape: short_key(names.as_bytes()), names, values }
}

impl Shape {
    /// The shape of this JSON text; empty if it is damaged.
    pub(crate) fn read(names: &str) -> Self {
        serde_json::from_str(names).unwrap_or_default()
    }

    /// The rows of a run with this shape.
    pub(crate) fn rows<'s>(&'s self, values: &'s [u8]) -> impl Iterator<Item = (&'s str, u64)> {
        let values = values.as_chunks::<WIDTH>().0.iter().map(|bytes| u64::from_le_bytes(*bytes));
        self.rows.iter().map(String::as_str).zip(values)
    }

    /// Its counts.
    pub(crate) fn counts<'s>(&'s self, values: &'s [u8]) -> impl Iterator<Item = (&'s str, f64)> {
        let values = values.as_chunks::<WIDTH>().0.iter().map(|bytes| f64::from_le_bytes(*bytes));
        self.counts.iter().map(String::as_str).zip(values.skip(self.rows.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use deadweight_report::tables::{CountRow, LedgerRow};

    #[test]
    fn rows_and_counts_come_back_by_name() {
        let row = |ledger: &str, account: &str, ns| LedgerRow {
            ledger: ledger.into(),
            account: account.into(),
            ns,
            ..LedgerRow::default()
        };
        let count = CountRow { name: "calls".into(), value: 1.5, ..CountRow::default() };
        let tables = Tables {
            rows: vec![
                row("wall", "b", 2),
                row("wall", "a", 1),
                row("wall", "b", 3),
                row("cpu", "a", 9),
            ],
            counts: vec![count],
            ..Tables::default()
        };
        let packed = pack(&tables);
        let shape = Shape::read(&packed.names);
        assert_eq!(shape.rows(&packed.values).collect::<Vec<_>>(), [("a", 1), ("b", 5)]);
        assert_eq!(shape.counts(&packed.values).collect::<Vec<_>>(), [("calls", 1.5)]);
        // Damaged bytes give fewer values, and no panic.
        assert_eq!(shape.rows(&packed.values[..9]).count(), 1);
        assert_eq!(Shape::read("no").rows(&packed.values).count(), 0);
    }
}
