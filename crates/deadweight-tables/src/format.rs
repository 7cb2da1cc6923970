//! Batches of columns as files: Parquet or Arrow, a file for each table; or as a stream of all tables.

use crate::Table;
use arrow_array::RecordBatch;
use arrow_ipc::writer::{FileWriter, StreamWriter};
use arrow_schema::ArrowError;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use std::collections::BTreeMap;
use std::io::{self, Write};

/// Rows of a row group: what an engine reads at least. One that is being written is in memory.
const ROW_GROUP: usize = 64 << 10;

/// Where batches go.
pub trait Output {
    /// Writes a batch of a table.
    ///
    /// # Errors
    /// If it cannot be written.
    fn write(&mut self, table: Table, batch: &RecordBatch) -> io::Result<()>;

    /// Writes what belongs at the end.
    ///
    /// # Errors
    /// If it cannot be written.
    fn finish(&mut self) -> io::Result<()>;
}

/// A file for each of these tables: Parquet, or Arrow's file format.
///
/// # Errors
/// If the beginning of a file cannot be written.
pub fn files<W: Write + Send + 'static>(
    parquet: bool,
    tables: impl IntoIterator<Item = (Table, W)>,
) -> io::Result<Box<dyn Output>> {
    if parquet {
        let each = tables.into_iter().map(|(table, to)| {
            ArrowWriter::try_new(to, table.schema(), Some(properties(table)))
                .map(|file| (table, file))
        });
        Ok(Box::new(Files(each.collect::<Result<_, _>>().map_err(of_parquet)?)))
    } else {
        let each = tables
            .into_iter()
            .map(|(table, to)| FileWriter::try_new(to, &table.schema()).map(|file| (table, file)));
        Ok(Box::new(Files(each.collect::<Result<_, _>>().map_err(of_arrow)?)))
    }
}

fn properties(table: Table) -> WriterProperties {
    let metadata = table.metadata().map(|(key, value)| KeyValue::new(key.to_owned(), value));
    WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_max_row_group_row_count(Some(ROW_GROUP))
        .set_key_value_metadata(Some(metadata.into()))
        .set_created_by(concat!("deadweight ", env!("CARGO_PKG_VERSION")).to_owned())
        .build()
}

/// A stream of each batch, one after another, in `to`. The schema's metadata names the table; a table may come again.
/// Of one table it is a single stream, as every reader of Arrow expects it.
#[must_use]
pub fn stream<W: Write + 'static>(to: W, single: bool) -> Box<dyn Output> {
    match single {
        true => Box::new(Single { to: Some(to), stream: None }),
        false => Box::new(Sequence(to)),
    }
}

struct Files<F>(BTreeMap<Table, F>);

trait File {
    fn write(&mut self, batch: &RecordBatch) -> io::Result<()>;
    fn finish(&mut self) -> io::Result<()>;
}

impl<W: Write + Send> File for ArrowWriter<W> {
    fn write(&mut self, batch: &RecordBatch) -> io::Result<()> {
        Self::write(self, batch).map_err(of_parquet)
    }

    fn finish(&mut self) -> io::Result<()> {
        Self::finish(self).map_err(of_parquet)?;
        self.inner_mut().flush()
    }
}

impl<W: Write> File for FileWriter<W> {
    fn write(&mut self, batch: &RecordBatch) -> io::Result<()> {
        Self::write(self, batch).map_err(of_arrow)
    }

    fn finish(&mut self) -> io::Result<()> {
        Self::finish(self).map_err(of_arrow)?;
        self.get_mut().flush()
    }
}

impl<F: File> Output for Files<F> {
    fn write(&mut self, table: Table, batch: &RecordBatch) -> io::Result<()> {
        self.0.get_mut(&table).map_or(Ok(()), |file| file.write(batch))
    }

    fn finish(&mut self) -> io::Result<()> {
        self.0.values_mut().try_for_each(File::finish)
    }
}

struct Sequence<W>(W);

impl<W: Write> Output for Sequence<W> {
    fn write(&mut self, table: Table, batch: &RecordBatch) -> io::Result<()> {
        let mut stream = StreamWriter::try_new(&mut self.0, &table.schema()).map_err(of_arrow)?;
        stream.write(batch).and_then(|()| stream.finish()).map_err(of_arrow)
    }

    fn finish(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// The stream begins with the first batch, which has the schema.
struct Single<W: Write> {
    to: Option<W>,
    stream: Option<StreamWriter<W>>,
}

impl<W: Write> Output for Single<W> {
    fn write(&mut self, _table: Table, batch: &RecordBatch) -> io::Result<()> {
        if let Some(to) = self.to.take() {
            self.stream = Some(StreamWriter::try_new(to, &batch.schema()).map_err(of_arrow)?);
        }
        self.stream.as_mut().map_or(Ok(()), |stream| stream.write(batch).map_err(of_arrow))
    }

    fn finish(&mut self) -> io::Result<()> {
        let Some(stream) = &mut self.stream else { return Ok(()) };
        stream.finish().map_err(of_arrow)?;
        stream.get_mut().flush()
    }
}

/// The failure to write that is inside.
fn of_arrow(error: ArrowError) -> io::Error {
    match error {
        ArrowError::IoError(_, source) => source,
        other => io::Error::other(other),
    }
}

fn of_parquet(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(source) => match source.downcast::<io::Error>() {
            Ok(source) => *source,
            Err(other) => io::Error::other(other),
        },
        other => io::Error::other(other),
    }
}
