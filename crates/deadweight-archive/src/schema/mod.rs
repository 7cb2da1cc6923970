//! The version of an archive's tables, and the steps from each version to the next.
//!
//! One numbered file for each step. Steps only go forwards: an archive of a newer version is refused. An old step is
//! never changed, because archives were made with it.

use crate::database::Database;
use crate::error::{ArchiveError, ErrorKind};

/// The steps: the first makes version 1 of nothing.
const STEPS: &[&str] = &[include_str!("0001.sql")];

/// Brings the archive at `to` to the newest version. If there is none, it is made, unless `existing` is set.
pub(crate) fn prepare(
    database: &mut dyn Database,
    to: &str,
    existing: bool,
) -> Result<(), ArchiveError> {
    bring(database, to, existing, STEPS)
}

/// The version of the tables; 0 if there are none.
pub(crate) fn version(database: &mut dyn Database) -> Result<usize, ArchiveError> {
    if !database.has_table("archive")? {
        return Ok(0);
    }
    let version = database.number("SELECT max(version) FROM archive", &[])?;
    Ok(usize::try_from(version).unwrap_or(0))
}

fn bring(
    database: &mut dyn Database,
    to: &str,
    existing: bool,
    steps: &[&str],
) -> Result<(), ArchiveError> {
    if is_newest(database, to, existing, steps)? {
        return Ok(());
    }
    database.begin(true)?;
    // Another process may have been first.
    let done = is_newest(database, to, existing, steps).and_then(|newest| {
        let from = version(database)?;
        let step = |(sql, number): (&&str, i64)| {
            database.batch(&database.dialect(sql))?;
            database.execute("DELETE FROM archive", &[])?;
            database.execute("INSERT INTO archive (version) VALUES ($1)", &[number.into()])?;
            Ok(())
        };
        if !newest {
            steps.iter().zip(1..).skip(from).try_for_each(step)?;
        }
        database.batch("COMMIT")
    });
    if done.is_err() {
        _ = database.batch("ROLLBACK");
    }
    done
}

fn is_newest(
    database: &mut dyn Database,
    to: &str,
    existing: bool,
    steps: &[&str],
) -> Result<bool, ArchiveError> {
    let found = version(database)?;
    if found > steps.len() {
        return Err(ArchiveError::new(
            ErrorKind::Newer,
            format!("cannot use the archive {to}"),
            format!(
                "a newer deadweight made it (version {found}, this one knows up to {})",
                steps.len()
            ),
            "install that deadweight, or name another archive with --archive",
        ));
    }
    if found == 0 && !database.is_empty()? {
        return Err(ArchiveError::new(
            ErrorKind::Damaged,
            format!("cannot use {to} as an archive"),
            "it holds tables of something else",
            "name another place with --archive",
        ));
    }
    if found == 0 && existing {
        return Err(missing(to));
    }
    Ok(found == steps.len())
}

/// There is no archive at `to`.
pub(crate) fn missing(to: &str) -> ArchiveError {
    ArchiveError::new(
        ErrorKind::Missing,
        format!("there is no archive at {to}"),
        "no run was kept there yet",
        "keep one with: deadweight --keep -- COMMAND",
    )
}
