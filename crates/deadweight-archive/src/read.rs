//! What is kept: lists of runs and workloads, and one run by its id.

use crate::archive::Archive;
use crate::columns::{BUILDS, COUNTS, FINDINGS, ROWS, RUNS};
use crate::database::Value;
use crate::error::{ArchiveError, ErrorKind};
use crate::kept::Kept;
use deadweight_report::tables::{RunRow, Tables};
use std::io::Read;

/// Larger reports and traces, in bytes, are not unpacked: foreign archives may hold anything.
const LARGEST: u64 = 4 << 30;

/// Which runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Of this workload.
    pub workload: Option<String>,
    /// Of commits that begin so.
    pub commit: Option<String>,
    /// The newest, this many.
    pub last: Option<u32>,
}

/// A workload of an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workload {
    /// Its name.
    pub name: String,
    /// How many runs are kept.
    pub runs: u64,
    /// When the first of them was measured, in seconds since 1970.
    pub first: i64,
    /// And the last.
    pub last: i64,
}

impl Archive {
    /// The runs, newest first.
    ///
    /// # Errors
    /// If the archive cannot be read.
    pub fn list(&mut self, filter: &Filter) -> Result<Vec<RunRow>, ArchiveError> {
        let mut values = Vec::new();
        let mut conditions = String::new();
        if let Some(workload) = &filter.workload {
            values.push(Value::from(workload.as_str()));
            conditions.push_str(&format!(" AND workload = ${}", values.len()));
        }
        if let Some(commit) = &filter.commit {
            let like = format!("{}%", plain(commit, "a commit")?);
            values.push(Value::from(like.as_str()));
            conditions.push_str(&format!(" AND \"commit\" LIKE ${}", values.len()));
        }
        let limit = filter.last.map(|last| format!(" LIMIT {last}")).unwrap_or_default();
        let sql = format!(
            "SELECT {} FROM runs WHERE 1 = 1{conditions} ORDER BY moment DESC, time DESC, run DESC{limit}",
            RUNS.names()
        );
        self.database.rows(&sql, &values)?.iter().map(|values| RUNS.row(values)).collect()
    }

    /// The workloads with their numbers of runs, in order of their names.
    ///
    /// # Errors
    /// If the archive cannot be read.
    pub fn workloads(&mut self) -> Result<Vec<Workload>, ArchiveError> {
        let sql = "SELECT workload, count(*), min(time), max(time) FROM runs GROUP BY workload";
        let rows = self.database.rows(sql, &[])?;
        let mut workloads: Vec<Workload> = rows
            .iter()
            .map(|row| Workload {
                name: row[0].text().to_owned(),
                runs: row[1].int().unsigned_abs(),
                first: row[2].int(),
                last: row[3].int(),
            })
            .collect();
        // The databases' orders of texts differ.
        workloads.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(workloads)
    }

    /// The run whose id begins with `prefix`, without its trace.
    ///
    /// # Errors
    /// If there is no such run, or several.
    pub fn get(&mut self, prefix: &str) -> Result<Kept, ArchiveError> {
        let run = self.find(prefix)?;
        let database = self.database.as_mut();
        let sql = "SELECT json FROM reports WHERE run = $1";
        let json = database.rows(sql, &[run.run.as_str().into()])?;
        let packed = json.first().and_then(|row| row.first()).map(Value::bytes).unwrap_or_default();
        let report_json = unpacked(packed, &format!("the report of the run {}", run.run))?;
        let tables = Tables {
            rows: ROWS.of_run(database, &run.run)?,
            findings: FINDINGS.of_run(database, &run.run)?,
            counts: COUNTS.of_run(database, &run.run)?,
            builds: BUILDS.of_run(database, &run.run)?,
            run,
        };
        Ok(Kept { tables, report_json, trace: None })
    }

    /// The trace of a run, if it was kept.
    ///
    /// # Errors
    /// If there is no such run, or several, or its trace cannot be read.
    pub fn trace(&mut self, prefix: &str) -> Result<Option<Vec<u8>>, ArchiveError> {
        let run = self.find(prefix)?.run;
        let sql =
            "SELECT content FROM traces JOIN runs ON traces.trace = runs.trace WHERE run = $1";
        let rows = self.database.rows(sql, &[run.as_str().into()])?;
        let content = rows.first().and_then(|row| row.first()).map(Value::bytes);
        content.map(|bytes| unpacked(bytes, &format!("the trace of the run {run}"))).transpose()
    }

    fn find(&mut self, prefix: &str) -> Result<RunRow, ArchiveError> {
        let like = format!("{}%", plain(prefix, "an id")?);
        let sql =
            format!("SELECT {} FROM runs WHERE run LIKE $1 ORDER BY run LIMIT 2", RUNS.names());
        let found = self.database.rows(&sql, &[like.as_str().into()])?;
        match &found[..] {
            [only] => RUNS.row(only),
            [] => Err(ArchiveError::new(
                ErrorKind::Unknown,
                format!("no kept run has an id that begins with `{prefix}`"),
                format!("there is none in {}", self.address),
                "list them with: deadweight archive list",
            )),
            _ => Err(ArchiveError::new(
                ErrorKind::Unknown,
                format!("`{prefix}` is not one run"),
                "several kept runs have an id that begins so",
                "give more of its letters",
            )),
        }
    }
}

/// A text of hexadecimal digits or at least without the signs of `LIKE`.
fn plain<'t>(text: &'t str, what: &str) -> Result<&'t str, ArchiveError> {
    if !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric()) {
        return Ok(text);
    }
    let todo = "list the runs with: deadweight archive list";
    let why = "it has letters and digits only";
    Err(ArchiveError::new(ErrorKind::Unknown, format!("`{text}` is not {what}"), why, todo))
}

/// The bytes that were compressed.
pub(crate) fn unpacked(packed: &[u8], what: &str) -> Result<Vec<u8>, ArchiveError> {
    let mut bytes = Vec::new();
    let read = zstd::Decoder::new(packed).and_then(|reader| {
        let read = reader.take(LARGEST).read_to_end(&mut bytes)?;
        match packed.is_empty() || read as u64 == LARGEST {
            true => Err(std::io::Error::other("it is empty or larger than 4 GiB")),
            false => Ok(()),
        }
    });
    read.map(|()| bytes).map_err(|error| {
        ArchiveError::new(
            ErrorKind::Damaged,
            format!("{what} cannot be read"),
            format!("it is damaged ({error})"),
            "deadweight archive check names all that is damaged",
        )
    })
}
