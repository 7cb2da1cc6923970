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
    let mut found = version(database)?;
    if found == 0 && !database.is_empty()? {
        // Another process may have made it between the two questions.
        found = version(database)?;
        if found == 0 {
            return Err(ArchiveError::new(
                ErrorKind::Damaged,
                format!("cannot use {to} as an archive"),
                "it holds tables of something else",
                "name another place with --archive",
            ));
        }
    }
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
    if found == 0 && existing {
        return Err(ArchiveError::missing(to));
    }
    Ok(found == steps.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::Sqlite;

    /// Two versions: the second has a column more.
    const TWO: [&str; 2] = [
        "CREATE TABLE archive (version BIGINT NOT NULL); CREATE TABLE runs (run TEXT);",
        "ALTER TABLE runs ADD COLUMN load DOUBLE PRECISION;",
    ];

    #[test]
    fn an_older_archive_becomes_a_newer_one_and_not_the_other_way() {
        let file = std::env::temp_dir().join(format!("deadweight-steps-{}.db", std::process::id()));
        _ = std::fs::remove_file(&file);
        let mut database = Sqlite::open(&file, false).unwrap();
        let to = "x.db";
        assert_eq!(
            bring(&mut database, to, true, &TWO).unwrap_err().kind,
            ErrorKind::Missing,
            "reading makes nothing"
        );
        bring(&mut database, to, false, &TWO[..1]).unwrap();
        database.execute("INSERT INTO runs (run) VALUES ($1)", &["a".into()]).unwrap();
        // A step that fails changes nothing.
        assert!(bring(&mut database, to, false, &[TWO[0], "ALTER TABLE none ADD x"]).is_err());
        assert_eq!(version(&mut database).unwrap(), 1);
        bring(&mut database, to, false, &TWO).unwrap();
        bring(&mut database, to, true, &TWO).unwrap();
        assert_eq!(version(&mut database).unwrap(), 2);
        let database: &mut dyn Database = &mut database;
        let rows = database.rows("SELECT run, load FROM runs", &[]).unwrap();
        assert_eq!(rows[0][0].text(), "a");
        let refused = bring(database, to, false, &TWO[..1]).unwrap_err();
        assert_eq!(refused.kind, ErrorKind::Newer);
        std::fs::remove_file(&file).unwrap();
    }
}
