//! Results side by side: a table for each unit and kind of run, a row for each benchmark, a column for each side.
//!
//! - In: [`Results`] with names, and a [`Layout`].
//! - Out: [`Tables`]. The numbers are benchstat's. The verdict on each difference is stricter: p below 1 % after
//!   Holm's correction over all rows of a column, and a difference of at least 1 %.
//! - Must not know: file formats or printing.

mod difference;
mod grid;
mod warnings;

use super::keys::Key;
use super::sample;
use super::units::{Better, UnitProperties};
use super::{Results, Unusable};
use crate::compare::ALPHA;
use grid::Grids;
use serde::Serialize;
use std::collections::BTreeMap;

/// The version of [`Tables`]' JSON form.
pub const SCHEMA: u32 = 1;

/// The keys of rows and columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Together they name a row.
    pub row: Vec<Key>,
    /// Names a column. The first column is what the others are compared with.
    pub col: Key,
    /// Facts about runs that are allowed to differ within a table.
    pub ignore: Vec<Key>,
}

impl Default for Layout {
    fn default() -> Self {
        Self { row: vec![Key::FullName], col: Key::File, ignore: Vec::new() }
    }
}

/// All tables of a comparison.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Tables {
    /// [`SCHEMA`].
    pub schema: u32,
    /// In the order in which their units and kinds of run were first seen.
    pub tables: Vec<Table>,
    /// What limits the results, in sentences.
    pub warnings: Vec<String>,
}

/// One unit of one kind of run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Table {
    /// Facts about the runs, from the files.
    pub config: Vec<(String, String)>,
    /// The unit; seconds or bytes if it is a time or a size.
    pub unit: String,
    /// Which values are better, if that is known.
    pub better: Option<Better>,
    /// The names of the columns.
    pub columns: Vec<String>,
    /// The benchmarks.
    pub rows: Vec<Row>,
    /// A geometric mean per column, if there is more than one row.
    pub means: Vec<Mean>,
}

/// A benchmark.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Row {
    /// Its name.
    pub name: String,
    /// In order of the columns; none where the benchmark was not measured.
    pub cells: Vec<Option<Cell>>,
}

/// A benchmark in one column.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Cell {
    /// Median; of an exact unit, the value.
    pub value: f64,
    /// Its 95 % interval, if there are enough measurements.
    pub interval: Option<(f64, f64)>,
    /// Half the interval's width as printed.
    pub reach: String,
    /// All measurements, in order of running.
    pub measured: Vec<f64>,
    /// What the reader should know.
    pub notes: Vec<String>,
    /// The difference from the first column.
    pub change: Option<Change>,
}

/// A difference from the first column.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Change {
    /// As printed: a percentage, `~` or `?`.
    pub printed: String,
    /// The p value (Mann-Whitney U test); 0 for exact values.
    pub p: f64,
    /// The p value after Holm's correction over the rows of this column.
    pub p_of_all: f64,
    /// Measurements in the first column and in this one.
    pub counts: (usize, usize),
    /// What the reader should know.
    pub notes: Vec<String>,
    /// The verdict.
    pub verdict: Verdict,
}

/// The verdict on a difference.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Shown to be better.
    Better,
    /// Shown to be worse.
    Worse,
    /// Shown to be lower, in a unit of which the better direction is unknown.
    Lower,
    /// Shown to be higher, in such a unit.
    Higher,
    /// No difference was shown that is both significant and material.
    NoDifference,
    /// Too few measurements to show anything.
    #[default]
    CannotTell,
}

/// The geometric mean of a column.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Mean {
    /// The mean of its values, if all are positive.
    pub value: Option<f64>,
    /// The mean of the factors from the first column, if they exist.
    pub ratio: Option<f64>,
    /// What the reader should know.
    pub notes: Vec<String>,
}

/// Lays out the sides, each with its name.
///
/// # Errors
/// If no benchmark of one can be compared with one of another, in a sentence.
pub fn lay_out(sides: &[(String, Results)], layout: &Layout) -> Result<Tables, Unusable> {
    let mut units: BTreeMap<String, UnitProperties> = BTreeMap::new();
    for (unit, facts) in sides.iter().flat_map(|(_, results)| &results.units) {
        let known = units.entry(unit.clone()).or_default();
        known.exact |= facts.exact;
        known.better = known.better.or(facts.better);
    }
    let mut grids = Grids::default();
    let alone = sole_names(sides);
    for (file, results) in sides {
        for one in &results.measured {
            grids.add(file, one, layout, alone);
        }
    }
    let tables: Vec<Table> =
        grids.into_sorted().into_iter().map(|grid| grid.finish(&units)).collect();
    let mut warnings: Vec<String> = sides
        .iter()
        .flat_map(|(file, results)| results.remarks.iter().map(move |r| format!("{file}: {r}")))
        .collect();
    warnings.extend(warnings::not_comparable(sides, &tables, layout)?);
    warnings.extend(tables.iter().flat_map(warnings::unusual_series));
    Ok(Tables { schema: SCHEMA, tables, warnings })
}

/// Whether each side has a single benchmark, and their names differ: then they are compared despite their names.
fn sole_names(sides: &[(String, Results)]) -> bool {
    let mut names = sides.iter().map(|(_, results)| {
        let first = results.measured.first().map(|m| m.name.as_str())?;
        results.measured.iter().all(|m| m.name == first).then_some(first)
    });
    let all: Option<Vec<&str>> = names.by_ref().collect();
    all.is_some_and(|all| all.len() > 1 && all.windows(2).any(|pair| pair[0] != pair[1]))
}

/// The name of a row with a different benchmark in each column.
const SOLE: &str = "the only benchmark of each";

impl Tables {
    /// Every difference, with its table.
    pub fn changes(&self) -> impl Iterator<Item = (&Table, &Change)> {
        self.tables.iter().flat_map(|table| {
            let cells = table.rows.iter().flat_map(|row| row.cells.iter().flatten());
            cells.filter_map(move |cell| Some((table, cell.change.as_ref()?)))
        })
    }

    /// How often each benchmark has to be measured for a significant test; None if all were measured often enough.
    #[must_use]
    pub fn measurements_needed(&self) -> Option<usize> {
        let short = |table: &Table| {
            let rows = (1..table.columns.len()).map(|column| {
                let changes = table
                    .rows
                    .iter()
                    .filter_map(|row| row.cells.get(column)?.as_ref()?.change.as_ref());
                let changes: Vec<&Change> = changes.collect();
                let family = changes.len() as f64;
                let is_short = |c: &&Change| {
                    c.verdict == Verdict::CannotTell
                        && sample::least_p(c.counts.0, c.counts.1) * family >= ALPHA
                };
                if changes.iter().any(is_short) { changes.len() } else { 0 }
            });
            rows.max().unwrap_or(0)
        };
        let family = self.tables.iter().map(short).max().filter(|family| *family > 0)?;
        (2..).find(|n| sample::least_p(*n, *n) * (family as f64) < ALPHA)
    }
}

#[cfg(test)]
mod tests;
