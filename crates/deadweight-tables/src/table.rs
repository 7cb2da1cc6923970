//! The tables: their names, their columns, and which rows of a report they hold.

use crate::column::{Column, columns};
use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, Field, Schema, SchemaRef};
use deadweight_report::tables::{
    BuildRow, CountRow, FindingRow, LedgerRow, RunRow, TABLES_VERSION, Tables,
};
use std::sync::Arc;

/// A table.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Table {
    /// One row for each report.
    Runs,
    /// Ledgers.
    Rows,
    /// Findings.
    Findings,
    /// Counts.
    Counts,
    /// Binaries.
    Builds,
}

impl Table {
    /// All, in the order in which they are written.
    pub const ALL: [Self; 5] = [Self::Runs, Self::Rows, Self::Findings, Self::Counts, Self::Builds];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Runs => "runs",
            Self::Rows => "rows",
            Self::Findings => "findings",
            Self::Counts => "counts",
            Self::Builds => "builds",
        }
    }

    /// Its columns, and in the metadata its name and the version of the tables.
    #[must_use]
    pub fn schema(self) -> SchemaRef {
        let metadata = self.metadata().map(|(key, value)| (key.to_owned(), value));
        Arc::new(Schema::new_with_metadata(self.fields(), metadata))
    }

    /// What a file says about itself.
    pub(crate) fn metadata(self) -> [(&'static str, String); 2] {
        [
            ("deadweight.tables", TABLES_VERSION.to_string()),
            ("deadweight.table", self.name().to_owned()),
        ]
    }

    fn fields(self) -> Vec<Field> {
        match self {
            Self::Runs => fields(&runs()),
            Self::Rows => fields(&rows()),
            Self::Findings => fields(&findings()),
            Self::Counts => fields(&counts()),
            Self::Builds => fields(&builds()),
        }
    }
}

fn fields<R>(columns: &[Column<R>]) -> Vec<Field> {
    columns.iter().map(|column| column.field.clone()).collect()
}

/// Rows of several reports.
#[derive(Debug, Default)]
pub(crate) struct Gathered {
    runs: Vec<RunRow>,
    rows: Vec<LedgerRow>,
    findings: Vec<FindingRow>,
    counts: Vec<CountRow>,
    builds: Vec<BuildRow>,
}

impl Gathered {
    /// Adds those of one report.
    pub(crate) fn add(&mut self, tables: Tables) {
        self.runs.push(tables.run);
        self.rows.extend(tables.rows);
        self.findings.extend(tables.findings);
        self.counts.extend(tables.counts);
        self.builds.extend(tables.builds);
    }

    /// How many are here of a table.
    pub(crate) fn len(&self, table: Table) -> usize {
        match table {
            Table::Runs => self.runs.len(),
            Table::Rows => self.rows.len(),
            Table::Findings => self.findings.len(),
            Table::Counts => self.counts.len(),
            Table::Builds => self.builds.len(),
        }
    }

    /// Takes those of a table out, as columns.
    pub(crate) fn take(&mut self, table: Table) -> Result<RecordBatch, ArrowError> {
        let schema = table.schema();
        match table {
            Table::Runs => batch(schema, &runs(), &mut self.runs),
            Table::Rows => batch(schema, &rows(), &mut self.rows),
            Table::Findings => batch(schema, &findings(), &mut self.findings),
            Table::Counts => batch(schema, &counts(), &mut self.counts),
            Table::Builds => batch(schema, &builds(), &mut self.builds),
        }
    }
}

fn batch<R>(
    schema: SchemaRef,
    columns: &[Column<R>],
    rows: &mut Vec<R>,
) -> Result<RecordBatch, ArrowError> {
    let rows = std::mem::take(rows);
    RecordBatch::try_new(schema, columns.iter().map(|column| (column.values)(&rows)).collect())
}

columns! { runs of RunRow:
    run, workload, commit, commit_time, branch, dirty, time, kind, source, command, subject, language, producer,
    build_id, exit_code, machine, arch, cpu, cpus, kernel, deadweight, method, rung, wall_ns, net_ns, cpu_ns,
    clean_runs, clean_ns, clean_low_ns, clean_high_ns, clean_each_ns, max_rss, traced_runs, records, lost, requests,
    best_saving, unexplained, hazards, error
}

columns! { rows of LedgerRow: run, ledger, account, name, ns, share, low_ns, high_ns, exact }

columns! { findings of FindingRow:
    run, rank, class, process, function, file, line, amount_ns, saving_ns, saving, low, high, how, text
}

columns! { counts of CountRow: run, name, value, low, high, exact }

columns! { builds of BuildRow: run, path, build_id, language, producer }
