//! Whether an archive is whole: the database's own check, references, and each report against its id.

use crate::archive::Archive;
use crate::columns::PARTS;
use crate::error::{ArchiveError, ErrorKind};
use crate::kept;
use crate::read::unpacked;
use crate::schema;

/// At most so many damaged runs are named.
const NAMED: usize = 10;

/// What a check found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// The version of its tables.
    pub version: usize,
    /// Bytes on disk.
    pub bytes: u64,
    /// Tables with their numbers of rows.
    pub tables: Vec<(&'static str, u64)>,
    /// What is wrong, in sentences; empty if nothing is.
    pub problems: Vec<String>,
}

impl Archive {
    /// Checks everything; reads the whole archive.
    ///
    /// # Errors
    /// If it cannot be read at all.
    pub fn check(&mut self) -> Result<Checked, ArchiveError> {
        let mut checked = Checked {
            version: schema::version(self.database.as_mut())?,
            bytes: self.database.size()?,
            ..Checked::default()
        };
        checked.problems.extend(self.database.damage()?);
        match self.contents(&mut checked) {
            // The database's own check has named the place.
            Err(error) if error.kind == ErrorKind::Damaged && !checked.problems.is_empty() => {}
            read => read?,
        }
        Ok(checked)
    }

    fn contents(&mut self, checked: &mut Checked) -> Result<(), ArchiveError> {
        let parts = PARTS.iter().map(|table| table.name);
        for table in ["runs", "reports"].into_iter().chain(parts).chain(["traces"]) {
            let rows = self.database.number(&format!("SELECT count(*) FROM {table}"), &[])?;
            checked.tables.push((table, rows.unsigned_abs()));
        }
        self.orphans(&mut checked.problems)?;
        self.reports(&mut checked.problems)?;
        self.traces(&mut checked.problems)
    }

    /// Rows whose other half is missing.
    fn orphans(&mut self, problems: &mut Vec<String>) -> Result<(), ArchiveError> {
        let parts = PARTS.iter().map(|table| table.name).chain(["reports"]);
        let no_run = parts.map(|part| (part, "run", "runs", "belong to no run"));
        let others = [
            ("runs", "run", "reports", "have no report"),
            ("runs", "shape", "shapes", "have no names of rows"),
            ("traces", "trace", "runs", "belong to no run"),
        ];
        for (table, key, other, says) in no_run.chain(others) {
            let sql = format!(
                "SELECT count(*) FROM {table} WHERE {key} NOT IN (SELECT {key} FROM {other})"
            );
            let lost = self.database.number(&sql, &[])?;
            if lost > 0 {
                problems.push(format!("{lost} rows of `{table}` {says}"));
            }
        }
        let sql = "SELECT count(*) FROM runs WHERE trace <> '' AND trace NOT IN (SELECT trace FROM traces)";
        let lost = self.database.number(sql, &[])?;
        if lost > 0 {
            problems.push(format!("{lost} traces are missing"));
        }
        Ok(())
    }

    /// Reports that are damaged, or not those that their runs were named after.
    fn reports(&mut self, problems: &mut Vec<String>) -> Result<(), ArchiveError> {
        let mut damaged = Vec::new();
        let sql = "SELECT runs.run, workload, \"commit\", json FROM runs JOIN reports ON reports.run = runs.run";
        self.database.each(sql, &[], &mut |row| {
            let json = unpacked(row[3].bytes(), "");
            let id = json.map(|json| kept::id(row[1].text(), row[2].text(), &json));
            if id.is_ok_and(|id| id == row[0].text()) {
                return Ok(());
            }
            damaged.push(row[0].text().to_owned());
            Ok(())
        })?;
        say_damaged("reports", &damaged, problems);
        Ok(())
    }

    fn traces(&mut self, problems: &mut Vec<String>) -> Result<(), ArchiveError> {
        let mut damaged = Vec::new();
        self.database.each("SELECT trace, content FROM traces", &[], &mut |row| {
            let content = unpacked(row[1].bytes(), "");
            if !content.is_ok_and(|content| kept::key(&content) == row[0].text()) {
                damaged.push(row[0].text().to_owned());
            }
            Ok(())
        })?;
        say_damaged("traces", &damaged, problems);
        Ok(())
    }
}

fn say_damaged(what: &str, ids: &[String], problems: &mut Vec<String>) {
    if let Some(named) = ids.get(..ids.len().min(NAMED)).filter(|named| !named.is_empty()) {
        problems.push(format!("{} {what} are damaged: {}", ids.len(), named.join(", ")));
    }
}
