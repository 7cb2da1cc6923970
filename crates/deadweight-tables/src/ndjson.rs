//! Rows as lines of JSON: one object per row, which names its table first.

use crate::{Table, Writer};
use deadweight_report::tables::Tables;
use serde::Serialize;
use std::io::{self, Write};

/// Writes rows as lines of JSON.
#[derive(Debug)]
pub struct Ndjson<W> {
    to: W,
    tables: Vec<Table>,
    escaped: fn(&str) -> String,
}

impl<W: Write> Ndjson<W> {
    /// `escaped` makes a line of JSON harmless for a terminal, and ends it.
    pub fn new(to: W, tables: Vec<Table>, escaped: fn(&str) -> String) -> Self {
        Self { to, tables, escaped }
    }

    fn lines<R: Serialize>(&mut self, table: Table, rows: &[R]) -> io::Result<()> {
        if !self.tables.contains(&table) {
            return Ok(());
        }
        for row in rows {
            let line = serde_json::to_string(&Line { table: table.name(), row })?;
            self.to.write_all((self.escaped)(&line).as_bytes())?;
        }
        Ok(())
    }
}

#[derive(Serialize)]
struct Line<'r, R> {
    table: &'static str,
    #[serde(flatten)]
    row: &'r R,
}

impl<W: Write> Writer for Ndjson<W> {
    fn add(&mut self, tables: Tables) -> io::Result<()> {
        self.lines(Table::Runs, &[tables.run])?;
        self.lines(Table::Rows, &tables.rows)?;
        self.lines(Table::Findings, &tables.findings)?;
        self.lines(Table::Counts, &tables.counts)?;
        self.lines(Table::Builds, &tables.builds)
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        self.to.flush()
    }
}
