//! Results side by side: a table per unit and kind of run, a row per benchmark, a column per side.
//!
//! The numbers are benchstat's. Beside each difference stands our verdict, which asks for more:
//! beyond chance at 1 % after Holm's correction over all rows of a column, and at least 1 % large.
//! Not for reading files or printing.

use super::keys::Key;
use super::sample::{self, Middle};
use super::units::{Better, Facts, better, is_time};
use super::{Measured, Results, Unusable};
use crate::compare::{ALPHA, MATERIAL};
use crate::stats::rank_tests::{holm, independent};
use crate::stats::spread::{Doubt, doubts};
use serde::Serialize;
use std::collections::BTreeMap;

/// The version of [`Tables`]' JSON form.
pub const SCHEMA: u32 = 1;

/// What makes a row and a column.
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

/// All of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Tables {
    /// [`SCHEMA`].
    pub schema: u32,
    /// In the order in which their units and kinds of run were first seen.
    pub tables: Vec<Table>,
    /// What tempers them, in sentences.
    pub warnings: Vec<String>,
}

/// One unit of one kind of run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Table {
    /// What the files say about the runs.
    pub config: Vec<(String, String)>,
    /// In seconds or bytes where it is a time or a size.
    pub unit: String,
    /// Which values are better, if that is known.
    pub better: Option<Better>,
    /// What the columns are.
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
    /// In order of the columns; none where it was not measured.
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
    /// Beside the first column.
    pub change: Option<Change>,
}

/// A difference from the first column.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Change {
    /// As printed: a percentage, `~` or `?`.
    pub printed: String,
    /// Mann and Whitney's p; 0 of exact values.
    pub p: f64,
    /// That after Holm's correction over the rows of this column.
    pub p_of_all: f64,
    /// Measurements in the first column and in this one.
    pub counts: (usize, usize),
    /// What the reader should know.
    pub notes: Vec<String>,
    /// What can be said.
    pub verdict: Verdict,
}

/// What can be said of a difference.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Shown to be better.
    Better,
    /// Shown to be worse.
    Worse,
    /// Shown to be lower, of a unit of which it is not known whether that is good.
    Lower,
    /// Shown to be higher, likewise.
    Higher,
    /// No difference was shown that is both beyond chance and worth speaking of.
    NoDifference,
    /// Too few measurements to show anything.
    #[default]
    CannotTell,
}

/// The geometric mean of a column.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Mean {
    /// Of its values, if all are positive.
    pub value: Option<f64>,
    /// Of the factors from the first column, if they can be had.
    pub ratio: Option<f64>,
    /// What the reader should know.
    pub notes: Vec<String>,
}

/// Lays out the sides, each with what it is called.
///
/// # Errors
/// If no benchmark of one can be compared with one of another, in a sentence.
pub fn lay_out(sides: &[(String, Results)], layout: &Layout) -> Result<Tables, Unusable> {
    let mut units: BTreeMap<String, Facts> = BTreeMap::new();
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
    warnings.extend(super::common::kept_apart(sides, &tables, layout)?);
    warnings.extend(tables.iter().flat_map(strange));
    Ok(Tables { schema: SCHEMA, tables, warnings })
}

/// Whether every side has one benchmark only, and not all the same one: then they are compared
/// whatever they are called.
fn sole_names(sides: &[(String, Results)]) -> bool {
    let mut names = sides.iter().map(|(_, results)| {
        let first = results.measured.first().map(|m| m.name.as_str())?;
        results.measured.iter().all(|m| m.name == first).then_some(first)
    });
    let all: Option<Vec<&str>> = names.by_ref().collect();
    all.is_some_and(|all| all.len() > 1 && all.windows(2).any(|pair| pair[0] != pair[1]))
}

/// What a row is called that has another benchmark in each column.
const SOLE: &str = "the only benchmark of each";

/// Tables in the making, and in which order names were seen.
#[derive(Default)]
struct Grids {
    grids: Vec<Grid>,
    seen: Seen,
}

/// Values of keys in the order in which they were first seen.
#[derive(Default)]
struct Seen {
    config: Vec<(String, Vec<String>)>,
    units: Vec<String>,
    rows: Vec<String>,
    columns: Vec<String>,
}

#[derive(Default)]
struct Grid {
    config: Vec<(String, String)>,
    unit: String,
    rows: Vec<String>,
    columns: Vec<String>,
    cells: BTreeMap<(String, String), Vec<f64>>,
    /// Full names that came together in a cell.
    names: BTreeMap<(String, String), Vec<String>>,
}

fn place(list: &mut Vec<String>, value: &str) -> usize {
    list.iter().position(|known| known == value).unwrap_or_else(|| {
        list.push(value.to_owned());
        list.len() - 1
    })
}

impl Grids {
    fn add(&mut self, file: &str, one: &Measured, layout: &Layout, sole: bool) {
        let taken: Vec<&Key> =
            layout.row.iter().chain([&layout.col]).chain(&layout.ignore).collect();
        let parts: Vec<String> = layout.row.iter().map(|key| key.of(file, one, &taken)).collect();
        let row = if sole { SOLE.to_owned() } else { parts.join(" ") };
        let column = layout.col.of(file, one, &taken);
        let full = Key::FullName.of(file, one, &taken);
        let mut config = one.config.clone();
        config.retain(|(key, _)| !taken.contains(&&Key::Config(key.clone())));
        for (key, value) in &config {
            let at = self.seen.config.iter().position(|(known, _)| known == key);
            let at = at.unwrap_or_else(|| {
                self.seen.config.push((key.clone(), Vec::new()));
                self.seen.config.len() - 1
            });
            place(&mut self.seen.config[at].1, value);
        }
        place(&mut self.seen.rows, &row);
        place(&mut self.seen.columns, &column);
        for (value, unit) in &one.values {
            place(&mut self.seen.units, unit);
            let grid = self.grid(&config, unit);
            place(&mut grid.rows, &row);
            place(&mut grid.columns, &column);
            let cell = (row.clone(), column.clone());
            place(grid.names.entry(cell.clone()).or_default(), &full);
            grid.cells.entry(cell).or_default().push(*value);
        }
    }

    fn grid(&mut self, config: &[(String, String)], unit: &str) -> &mut Grid {
        let same = |grid: &Grid| {
            grid.unit == unit
                && grid.config.len() == config.len()
                && config.iter().all(|pair| grid.config.contains(pair))
        };
        let at = self.grids.iter().position(same).unwrap_or_else(|| {
            let (config, unit) = (config.to_vec(), unit.to_owned());
            self.grids.push(Grid { config, unit, ..Grid::default() });
            self.grids.len() - 1
        });
        &mut self.grids[at]
    }

    /// By kind of run, then unit; rows and columns too in the order of first sight.
    fn into_sorted(self) -> Vec<Grid> {
        let Self { mut grids, seen } = self;
        let order = |list: &[String], value: &str| {
            list.iter().position(|known| known == value).unwrap_or(list.len())
        };
        for grid in &mut grids {
            grid.rows.sort_by_key(|row| order(&seen.rows, row));
            grid.columns.sort_by_key(|column| order(&seen.columns, column));
            grid.config.sort_by_key(|(key, _)| seen.config.iter().position(|(k, _)| k == key));
        }
        grids.sort_by_cached_key(|grid| {
            let values = seen.config.iter().map(|(key, values)| {
                let said = grid.config.iter().find(|(known, _)| known == key);
                said.map_or(0, |(_, value)| 1 + order(values, value))
            });
            (values.collect::<Vec<_>>(), order(&seen.units, &grid.unit))
        });
        grids
    }
}

impl Grid {
    fn finish(mut self, units: &BTreeMap<String, Facts>) -> Table {
        let facts = units.get(&self.unit).copied().unwrap_or_default();
        let (rows, columns) = (std::mem::take(&mut self.rows), std::mem::take(&mut self.columns));
        let mut rows: Vec<Row> = rows
            .into_iter()
            .map(|name| {
                let cells = columns.iter().map(|column| self.cell(&name, column, facts)).collect();
                Row { name, cells }
            })
            .collect();
        let better = better(&self.unit, facts);
        for column in 1..columns.len() {
            compare_column(&mut rows, column, facts, (better, is_time(&self.unit)));
        }
        let means = if rows.len() > 1 {
            (0..columns.len()).map(|column| mean(&rows, column)).collect()
        } else {
            Vec::new()
        };
        Table { config: self.config, unit: self.unit, better, columns, rows, means }
    }

    fn cell(&mut self, row: &str, column: &str, facts: Facts) -> Option<Cell> {
        let key = (row.to_owned(), column.to_owned());
        let measured = self.cells.remove(&key)?;
        let sorted = sorted(&measured);
        let middle = if facts.exact { sample::mode(&sorted) } else { sample::middle(&sorted) };
        let several = row != SOLE && self.names.get(&key).is_some_and(|names| names.len() > 1);
        let vary = several.then(|| "benchmarks vary in .fullname".to_owned());
        let reach = middle.reach();
        let Middle { value, interval, note } = middle;
        let notes = vary.into_iter().chain(note).collect();
        Some(Cell { value, interval, reach, measured, notes, change: None })
    }
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// Compares a column with the first one and judges each row as one of all of them.
fn compare_column(
    rows: &mut [Row],
    column: usize,
    facts: Facts,
    (better, is_time): (Option<Better>, bool),
) {
    let pairs: Vec<(usize, Cell, Cell)> = rows
        .iter()
        .enumerate()
        .filter_map(|(at, row)| {
            let cell = |column: usize| row.cells.get(column).cloned().flatten();
            Some((at, cell(0)?, cell(column)?))
        })
        .collect();
    let strict: Vec<f64> = pairs
        .iter()
        .map(|(_, a, b)| if facts.exact { 0.0 } else { independent(&a.measured, &b.measured) })
        .collect();
    let family = pairs.len();
    for ((at, a, b), p_of_all) in pairs.into_iter().zip(holm(&strict)) {
        let counts = (a.measured.len(), b.measured.len());
        let difference = if facts.exact {
            sample::Difference::default()
        } else {
            sample::difference(&sorted(&a.measured), &sorted(&b.measured))
        };
        let least = sample::least_p(counts.0, counts.1) * family as f64;
        // A run that took no time was not measured.
        let nothing = is_time && a.measured.iter().chain(&b.measured).any(|v| *v <= 0.0);
        let verdict = if nothing || !facts.exact && least >= ALPHA {
            Verdict::CannotTell
        } else {
            judge(a.value, b.value, p_of_all, better)
        };
        let printed = if difference.p > sample::ALPHA {
            "~".to_owned()
        } else {
            percentage(a.value, b.value)
        };
        let notes = difference.note.into_iter().collect();
        let change = Change { printed, p: difference.p, p_of_all, counts, notes, verdict };
        if let Some(Some(cell)) = rows[at].cells.get_mut(column) {
            cell.change = Some(change);
        }
    }
}

fn judge(a: f64, b: f64, p: f64, better: Option<Better>) -> Verdict {
    let immaterial = (b - a).abs() < MATERIAL * a.abs() || a.total_cmp(&b).is_eq();
    if p >= ALPHA || immaterial {
        return Verdict::NoDifference;
    }
    match (better, b < a) {
        (None, true) => Verdict::Lower,
        (None, false) => Verdict::Higher,
        (Some(better), lower) if (better == Better::Lower) == lower => Verdict::Better,
        (Some(_), _) => Verdict::Worse,
    }
}

fn percentage(old: f64, new: f64) -> String {
    match () {
        () if old.total_cmp(&new).is_eq() => "0.00%".into(),
        () if old == 0.0 => "?".into(),
        () => format!("{:+.2}%", (new / old - 1.0) * 100.0),
    }
}

/// The mean of a column's values, and of its rows' factors: where not all rows are in both, that
/// says more than the factor of the means.
fn mean(rows: &[Row], column: usize) -> Mean {
    let of = |row: &Row, column: usize| row.cells.get(column).cloned().flatten();
    let cells: Vec<(Option<Cell>, Cell)> =
        rows.iter().filter_map(|row| Some((of(row, 0), of(row, column)?))).collect();
    let values: Vec<f64> = cells.iter().map(|(_, cell)| cell.value).collect();
    let value = sample::geometric_mean(&values);
    let none = value.is_none().then(|| "summaries must be >0 to compute geomean".to_owned());
    if column == 0 {
        return Mean { value, ratio: None, notes: none.into_iter().collect() };
    }
    let in_first = rows.iter().filter(|row| of(row, 0).is_some()).count();
    let pairs: Vec<(f64, f64)> =
        cells.iter().filter_map(|(a, b)| Some((a.as_ref()?.value, b.value))).collect();
    let differs = (pairs.len() != in_first)
        .then(|| "benchmark set differs from baseline; geomeans may not be comparable".to_owned());
    let equal = |a: f64, b: f64| a.total_cmp(&b).is_eq();
    let impossible = pairs.iter().any(|(a, b)| *a == 0.0 && !equal(*a, *b));
    let factors: Vec<f64> =
        pairs.iter().map(|(a, b)| if equal(*a, *b) { 1.0 } else { b / a }).collect();
    let ratio = sample::geometric_mean(&factors).filter(|_| !impossible);
    let no_ratio =
        (ratio.is_none() && !impossible).then(|| "ratios must be >0 to compute geomean".to_owned());
    Mean { value, ratio, notes: differs.into_iter().chain(none).chain(no_ratio).collect() }
}

/// Series of times that have no one typical value.
fn strange(table: &Table) -> Vec<String> {
    if !is_time(&table.unit) {
        return Vec::new();
    }
    let mut said = Vec::new();
    for row in &table.rows {
        for (cell, column) in row.cells.iter().zip(&table.columns) {
            let Some(cell) = cell else { continue };
            // Picoseconds: fine enough for any benchmark, and whole numbers as others' times are.
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
            let whole = |v: &f64| (v * 1e12).clamp(0.0, 1e18) as u64;
            let series: Vec<u64> = cell.measured.iter().map(whole).collect();
            let name = &row.name;
            if cell.measured.iter().any(|v| *v <= 0.0) {
                said.push(format!("{column}, {name}: a time of 0 or less was not measured"));
            }
            said.extend(doubts(&series).iter().map(|d| format!("{column}, {name}: {}", worded(d))));
        }
    }
    said
}

fn worded(doubt: &Doubt) -> String {
    match doubt {
        Doubt::ColdStart { factor } => {
            format!("the first measurement is {factor:.1} × the others: something was cold")
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

impl Tables {
    /// Every difference that was looked at, with its table.
    pub fn changes(&self) -> impl Iterator<Item = (&Table, &Change)> {
        self.tables.iter().flat_map(|table| {
            let cells = table.rows.iter().flat_map(|row| row.cells.iter().flatten());
            cells.filter_map(move |cell| Some((table, cell.change.as_ref()?)))
        })
    }

    /// How often each benchmark has to be measured for the test to show anything; None if all were
    /// measured often enough.
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
