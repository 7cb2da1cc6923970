//! Where the tables go: opened before anything is read. Does not know what is in them.

use super::super::destination::{Destination, sudo_user};
use crate::cli::{Rows, RowsFormat, TableName};
use crate::failure::Failure;
use crate::render::json::escaped;
use deadweight_tables::{Batches, Ndjson, Table, Writer, files, stream};
use std::io::{self, BufWriter, IsTerminal, Write};
use std::os::unix::fs::chown;
use std::path::Path;

type Out = BufWriter<Box<dyn Write + Send>>;

/// Opens the outputs that the options name.
pub(super) fn open(options: &Rows) -> Result<Box<dyn Writer>, Failure> {
    let tables = options.table.map_or(Table::ALL.to_vec(), |name| vec![table(name)]);
    let to_stdout = options.output == Path::new("-");
    if to_stdout && options.format != RowsFormat::Ndjson && io::stdout().is_terminal() {
        let why = "this format is not text: name a directory, or with --table a file, with -o";
        return Err(Failure::Unknown(why.into()));
    }
    let output = match (options.format, options.table) {
        (RowsFormat::Ndjson, _) => {
            return Ok(Box::new(Ndjson::new(out(&options.output)?, tables, escaped)));
        }
        (RowsFormat::Arrow, one) if to_stdout => stream(out(&options.output)?, one.is_some()),
        (RowsFormat::Parquet, None) if to_stdout => {
            let why = "a Parquet file holds one table: choose it with --table, or name a directory for all with -o";
            return Err(Failure::Unknown(why.into()));
        }
        (format, Some(name)) => begun(format, vec![(table(name), out(&options.output)?)])?,
        (format, None) => begun(format, folder(&options.output, format, &tables)?)?,
    };
    Ok(Box::new(Batches::new(tables, output)))
}

fn begun(
    format: RowsFormat,
    to: Vec<(Table, Out)>,
) -> Result<Box<dyn deadweight_tables::Output>, Failure> {
    files(format == RowsFormat::Parquet, to).map_err(|source| Failure::Write {
        what: "the tables",
        to: "a file".into(),
        source,
    })
}

/// A file for each table in a directory, which is made if there is none.
fn folder(path: &Path, format: RowsFormat, tables: &[Table]) -> Result<Vec<(Table, Out)>, Failure> {
    let fail =
        |source| Failure::Write { what: "the tables", to: path.display().to_string(), source };
    if !path.is_dir() {
        std::fs::create_dir_all(path).map_err(fail)?;
        if let Some((user, group)) = sudo_user() {
            // If this fails, root stays the owner.
            _ = chown(path, Some(user), Some(group));
        }
    }
    let extension = if format == RowsFormat::Parquet { "parquet" } else { "arrow" };
    let file =
        |&table: &Table| Ok((table, out(&path.join(table.name()).with_extension(extension))?));
    tables.iter().map(file).collect()
}

fn out(path: &Path) -> Result<Out, Failure> {
    Ok(BufWriter::with_capacity(64 << 10, Destination::open("the tables", path)?.into_stream()?))
}

fn table(name: TableName) -> Table {
    match name {
        TableName::Runs => Table::Runs,
        TableName::Rows => Table::Rows,
        TableName::Findings => Table::Findings,
        TableName::Counts => Table::Counts,
        TableName::Builds => Table::Builds,
    }
}
