//! Measurements into a grid: rows and columns by their keys, in order of first appearance.
//!
//! Not for judging a difference; see `difference`.

use super::difference::{compare_column, mean, sorted};
use super::{Cell, Layout, Row, SOLE, Table};
use crate::benchmarks::Measured;
use crate::benchmarks::keys::Key;
use crate::benchmarks::sample::{self, Middle};
use crate::benchmarks::units::{UnitProperties, better, is_time};
use std::collections::BTreeMap;

/// Unfinished tables, and the order in which names appeared.
#[derive(Default)]
pub(super) struct Grids {
    grids: Vec<Grid>,
    seen: Seen,
}

/// Values of keys, in order of first appearance.
#[derive(Default)]
struct Seen {
    config: Vec<(String, Vec<String>)>,
    units: Vec<String>,
    rows: Vec<String>,
    columns: Vec<String>,
}

#[derive(Default)]
pub(super) struct Grid {
    config: Vec<(String, String)>,
    unit: String,
    rows: Vec<String>,
    columns: Vec<String>,
    cells: BTreeMap<(String, String), Vec<f64>>,
    /// Full names of the benchmarks in a cell.
    names: BTreeMap<(String, String), Vec<String>>,
}

fn place(list: &mut Vec<String>, value: &str) -> usize {
    list.iter().position(|known| known == value).unwrap_or_else(|| {
        list.push(value.to_owned());
        list.len() - 1
    })
}

impl Grids {
    pub(super) fn add(&mut self, file: &str, one: &Measured, layout: &Layout, sole: bool) {
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

    /// Sorted by kind of run, then unit; rows and columns in order of first appearance.
    pub(super) fn into_sorted(self) -> Vec<Grid> {
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
                let value = grid.config.iter().find(|(known, _)| known == key);
                value.map_or(0, |(_, value)| 1 + order(values, value))
            });
            (values.collect::<Vec<_>>(), order(&seen.units, &grid.unit))
        });
        grids
    }
}

impl Grid {
    pub(super) fn finish(mut self, units: &BTreeMap<String, UnitProperties>) -> Table {
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

    fn cell(&mut self, row: &str, column: &str, facts: UnitProperties) -> Option<Cell> {
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
