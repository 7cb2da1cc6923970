//! Gathers rows into batches of columns, and hands full ones on.

use crate::table::Gathered;
use crate::{Output, Table, Writer};
use deadweight_report::tables::Tables;
use std::io;

/// Rows of a batch: enough to compress well, few enough that the batches of all tables take a few megabytes.
const ROWS: usize = 8192;

/// Writes rows to outputs of columns.
pub struct Batches {
    tables: Vec<Table>,
    gathered: Gathered,
    output: Box<dyn Output>,
}

impl Batches {
    /// These tables go to `output`.
    #[must_use]
    pub fn new(tables: Vec<Table>, output: Box<dyn Output>) -> Self {
        Self { tables, gathered: Gathered::default(), output }
    }

    fn write(&mut self, table: Table) -> io::Result<()> {
        let batch = self.gathered.take(table).map_err(io::Error::other)?;
        if self.tables.contains(&table) { self.output.write(table, &batch) } else { Ok(()) }
    }
}

impl Writer for Batches {
    fn add(&mut self, tables: Tables) -> io::Result<()> {
        self.gathered.add(tables);
        for table in Table::ALL {
            if self.gathered.len(table) >= ROWS {
                self.write(table)?;
            }
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        // Also those without rows: a reader finds every table, with its columns.
        for table in Table::ALL {
            self.write(table)?;
        }
        self.output.finish()
    }
}
