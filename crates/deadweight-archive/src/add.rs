//! Adding a run: all of it in one transaction, or nothing. Adding it again changes nothing.

use crate::archive::Archive;
use crate::columns::{BUILDS, COUNTS, FINDINGS, ROWS, RUNS, Table};
use crate::database::{Database, Value, transaction};
use crate::error::{ArchiveError, ErrorKind};
use crate::kept::{self, Kept};
use crate::packed::pack;
use serde::Serialize;

/// Values of one statement: SQLite takes 32 766 at most, PostgreSQL 65 535.
const VALUES: usize = 30_000;
/// Compression of reports: higher levels gain 3 % and take five times as long.
const REPORT_LEVEL: i32 = 9;
/// Compression of traces, which are large and compress well at once.
const TRACE_LEVEL: i32 = 3;

/// What adding did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Added {
    /// The id of the run.
    pub id: String,
    /// Whether it was not there before.
    pub new: bool,
}

impl Archive {
    /// Keeps a run. It is on disk before this returns.
    ///
    /// # Errors
    /// If it cannot be written; then nothing of it is there.
    pub fn add(&mut self, kept: &Kept) -> Result<Added, ArchiveError> {
        let added = self.add_all(std::slice::from_ref(kept))?;
        let id = kept.tables.run.run.clone();
        Ok(Added { id, new: added.first().is_some_and(|added| added.new) })
    }

    /// Keeps several runs at once, which is faster: all of them or, if one cannot be kept, none.
    ///
    /// # Errors
    /// If they cannot be written; then nothing of them is there.
    pub fn add_all(&mut self, kept: &[Kept]) -> Result<Vec<Added>, ArchiveError> {
        let prepared: Vec<Prepared> = kept.iter().map(Prepared::of).collect::<Result<_, _>>()?;
        transaction(self.database.as_mut(), false, &mut |database| {
            let add = |(prepared, kept): (&Prepared, &Kept)| {
                let id = kept.tables.run.run.clone();
                Ok(Added { id, new: prepared.add(database, kept)? })
            };
            prepared.iter().zip(kept).map(add).collect()
        })
    }
}

/// A run with its bytes compressed, so that no other writer waits meanwhile.
struct Prepared {
    /// The values of its row in `runs`.
    run: Vec<Value>,
    shape: [Value; 2],
    json: Vec<u8>,
    /// Key, size and bytes; an empty key if there is none.
    trace: (String, u64, Vec<u8>),
}

impl Prepared {
    fn of(kept: &Kept) -> Result<Self, ArchiveError> {
        let run = &kept.tables.run;
        if run.run != kept::id(&run.workload, &run.commit, &kept.report_json) {
            return Err(ArchiveError::new(
                ErrorKind::Refused,
                format!("the run `{}` cannot be kept", run.run),
                "its id does not belong to its content: it was changed after it was measured",
                "export it again from where it was kept",
            ));
        }
        let packed = pack(&kept.tables);
        let trace = match &kept.trace {
            Some(trace) => (kept::key(trace), trace.len() as u64, compressed(trace, TRACE_LEVEL)?),
            None => Default::default(),
        };
        let mut run = RUNS.values(&kept.tables.run)?;
        let shape = packed.shape.as_str();
        let of = &kept.tables.run;
        // When it stands in a series.
        let moment = if of.commit_time > 0 { of.commit_time } else { of.time };
        run.extend([shape.into(), packed.values.into(), trace.0.as_str().into(), moment.into()]);
        Ok(Self {
            run,
            shape: [shape.into(), packed.names.as_str().into()],
            json: compressed(&kept.report_json, REPORT_LEVEL)?,
            trace,
        })
    }

    /// Writes it, unless it is there; returns whether it was not. The same run may have been kept without its trace.
    fn add(&self, database: &mut dyn Database, kept: &Kept) -> Result<bool, ArchiveError> {
        let new = self.insert(database, kept)?;
        if !new && !self.trace.0.is_empty() {
            self.insert_trace(database)?;
            let sql = "UPDATE runs SET trace = $1 WHERE run = $2 AND trace = ''";
            let run = kept.tables.run.run.as_str();
            database.execute(sql, &[self.trace.0.as_str().into(), run.into()])?;
        }
        Ok(new)
    }

    fn insert(&self, database: &mut dyn Database, kept: &Kept) -> Result<bool, ArchiveError> {
        let signs: Vec<String> = (1..=self.run.len()).map(|i| format!("${i}")).collect();
        let sql = format!(
            "INSERT INTO runs ({}, shape, packed, trace, moment) VALUES ({}) ON CONFLICT DO NOTHING",
            RUNS.names(),
            signs.join(", ")
        );
        if database.execute(&sql, &self.run)? == 0 {
            return Ok(false);
        }
        let sql = "INSERT INTO shapes (shape, names) VALUES ($1, $2) ON CONFLICT DO NOTHING";
        database.execute(sql, &self.shape)?;
        let run = kept.tables.run.run.as_str();
        let sql = "INSERT INTO reports (run, json) VALUES ($1, $2)";
        database.execute(sql, &[run.into(), self.json.clone().into()])?;
        self.insert_trace(database)?;
        insert(database, &ROWS, &kept.tables.rows)?;
        insert(database, &FINDINGS, &kept.tables.findings)?;
        insert(database, &COUNTS, &kept.tables.counts)?;
        insert(database, &BUILDS, &kept.tables.builds)?;
        Ok(true)
    }

    fn insert_trace(&self, database: &mut dyn Database) -> Result<(), ArchiveError> {
        let (key, size, content) = &self.trace;
        if key.is_empty() {
            return Ok(());
        }
        let sql =
            "INSERT INTO traces (trace, size, content) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING";
        let values = [key.as_str().into(), (*size).into(), content.clone().into()];
        database.execute(sql, &values).map(drop)
    }
}

/// Writes the rows of a table, as many in a statement as it takes.
fn insert<T: Serialize>(
    database: &mut dyn Database,
    table: &Table,
    rows: &[T],
) -> Result<(), ArchiveError> {
    let width = table.columns.len() + 1;
    let mut position: i64 = 0;
    for part in rows.chunks(VALUES / width) {
        let mut values = Vec::with_capacity(part.len() * width);
        for row in part {
            position += 1;
            values.extend(table.values(row)?);
            values.push(position.into());
        }
        let signs = |row: usize| {
            let of_row = (1..=width).map(|at| format!("${}", row * width + at));
            format!("({})", of_row.collect::<Vec<_>>().join(", "))
        };
        let all = (0..part.len()).map(signs).collect::<Vec<_>>().join(", ");
        let (name, names) = (table.name, table.names());
        let sql = format!("INSERT INTO {name} ({names}, position) VALUES {all}");
        database.execute(&sql, &values)?;
    }
    Ok(())
}

fn compressed(bytes: &[u8], level: i32) -> Result<Vec<u8>, ArchiveError> {
    zstd::bulk::compress(bytes, level).map_err(|error| {
        ArchiveError::new(
            ErrorKind::Refused,
            "the run cannot be kept",
            format!("it cannot be compressed ({error})"),
            "free some memory and try again",
        )
    })
}
