//! Reports as tables in files, for engines that count over thousands of runs.
//!
//! - In: the rows of reports, one report after another ([`deadweight_report::tables`]).
//! - Out: lines of JSON, Parquet or Arrow, written while rows come in: memory does not grow with their number.
//! - Must not know: where reports come from, or where the bytes go.
//!
//! The columns are described in `docs/tables.md`, which a test compares with the code.

mod batches;
mod column;
mod format;
mod ndjson;
mod table;

pub use batches::Batches;
pub use format::{Output, files, stream};
pub use ndjson::Ndjson;
pub use table::Table;

use deadweight_report::tables::Tables;
use sha2::{Digest, Sha256};
use std::io;

/// What takes the rows of reports and writes them.
pub trait Writer {
    /// Takes the rows of one report.
    ///
    /// # Errors
    /// If the output cannot be written.
    fn add(&mut self, tables: Tables) -> io::Result<()>;

    /// Writes the rest. Without it a file has no end and cannot be read.
    ///
    /// # Errors
    /// If the output cannot be written.
    fn finish(self: Box<Self>) -> io::Result<()>;
}

/// The id of the run in a file: the first 16 bytes of the SHA-256 of its content, in hexadecimal. The same file has the
/// same id on every machine.
#[must_use]
pub fn run_id(content: &[u8]) -> String {
    Sha256::digest(content).iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests;
