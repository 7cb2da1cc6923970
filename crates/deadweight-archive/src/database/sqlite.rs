//! SQLite: one file. Several processes may write it; each waits for its turn.
//!
//! A commit is on disk before it returns: write-ahead log with `synchronous = FULL`.

use super::{Database, Row, Value};
use crate::error::{ArchiveError, ErrorKind};
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, Error, ErrorCode, OpenFlags, ToSql, params_from_iter};
use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long SQLite itself waits for another writer.
const WAIT: Duration = Duration::from_secs(10);
/// How long a transaction is tried to begin. SQLite's waiting is not fair: among many writers one may starve.
const TURN: Duration = Duration::from_secs(120);
/// Between tries of what SQLite does not wait for.
const PAUSE: Duration = Duration::from_millis(20);

/// An open file.
pub(crate) struct Sqlite {
    path: PathBuf,
    connection: Connection,
}

impl Sqlite {
    /// Opens the file. It is created, readable by its owner only, unless `existing` is set; then it may also be one that
    /// cannot be written.
    pub(crate) fn open(path: &Path, existing: bool) -> Result<Self, ArchiveError> {
        let opened = |connection| Self { path: path.to_owned(), connection };
        if existing {
            fs::File::open(path).map_err(|error| unreadable(path, &error))?;
            let connection = readable(path).map_err(|error| failure(path, OPENING, &error))?;
            return Ok(opened(connection));
        }
        create(path)?;
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags).and_then(|connection| {
            connection.busy_timeout(WAIT)?;
            let pragmas = "PRAGMA foreign_keys = ON; PRAGMA page_size = 8192; PRAGMA auto_vacuum = INCREMENTAL;
                           PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;";
            patiently(|| connection.execute_batch(pragmas))?;
            // A file that cannot be written is found out now, and not after an hour of measuring.
            patiently(|| connection.execute_batch("BEGIN IMMEDIATE; ROLLBACK;"))?;
            Ok(connection)
        });
        connection.map(opened).map_err(|error| failure(path, OPENING, &error))
    }

    fn failed(&self, error: &Error) -> ArchiveError {
        failure(&self.path, "cannot use", error)
    }
}

const OPENING: &str = "cannot open";

/// Why a file cannot be read.
fn unreadable(path: &Path, error: &io::Error) -> ArchiveError {
    if error.kind() == io::ErrorKind::NotFound {
        return ArchiveError::missing(&path.display().to_string());
    }
    let what = format!("{OPENING} the archive {}", path.display());
    ArchiveError::new(ErrorKind::Denied, what, error.to_string(), ELSEWHERE)
}

/// Creates an empty file, which SQLite takes for an empty database, and the folders to it.
fn create(path: &Path) -> Result<(), ArchiveError> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folders = folder
        .map_or(Ok(()), |folder| fs::DirBuilder::new().recursive(true).mode(0o700).create(folder));
    let created = folders.and_then(|()| {
        let mut new = fs::OpenOptions::new();
        new.write(true).create_new(true).mode(0o600).custom_flags(libc::O_NOFOLLOW).open(path)
    });
    match created {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            let kind = match error.kind() {
                io::ErrorKind::StorageFull => ErrorKind::Full,
                _ => ErrorKind::Denied,
            };
            let what = format!("cannot create the archive {}", path.display());
            Err(ArchiveError::new(kind, what, error.to_string(), ELSEWHERE))
        }
        _ => Ok(()),
    }
}

const ELSEWHERE: &str = "name another place with --archive or in DEADWEIGHT_ARCHIVE";

/// A connection that reads, and writes where it may. A file of another user is read beside its writers, if those are
/// there. Else there is no log that coordinates writers and no place for one, and the file is read as it is.
fn readable(path: &Path) -> Result<Connection, Error> {
    let prepare = |connection: Connection| {
        connection.busy_timeout(WAIT)?;
        connection.execute_batch("PRAGMA foreign_keys = ON; PRAGMA synchronous = FULL;")?;
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
        Ok(connection)
    };
    let denied = |opened: &Result<Connection, Error>| {
        let code = opened.as_ref().err().and_then(code);
        matches!(
            code,
            Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly | ErrorCode::PermissionDenied)
        )
    };
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let opened = Connection::open_with_flags(path, flags).and_then(prepare);
    if !denied(&opened) {
        return opened;
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let opened = Connection::open_with_flags(path, flags).and_then(prepare);
    if !denied(&opened) {
        return opened;
    }
    let escaped: String = path.to_string_lossy().chars().map(escape).collect();
    let address = format!("file:{escaped}?immutable=1");
    Connection::open_with_flags(address, flags | OpenFlags::SQLITE_OPEN_URI).and_then(prepare)
}

fn escape(c: char) -> String {
    match c {
        '%' | '?' | '#' => format!("%{:02X}", u32::from(c)),
        c => c.to_string(),
    }
}

/// Tries again while others hold the file.
fn patiently<T>(mut step: impl FnMut() -> Result<T, Error>) -> Result<T, Error> {
    let begun = Instant::now();
    loop {
        match step() {
            Err(error) if is_busy(&error) && begun.elapsed() < TURN => std::thread::sleep(PAUSE),
            done => return done,
        }
    }
}

fn code(error: &Error) -> Option<ErrorCode> {
    error.sqlite_error_code()
}

fn is_busy(error: &Error) -> bool {
    matches!(code(error), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

/// The failure as a sentence.
fn failure(path: &Path, doing: &str, error: &Error) -> ArchiveError {
    let (kind, todo) = match code(error) {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            (ErrorKind::Busy, "find the process that holds it with `fuser`, and try again")
        }
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::CannotOpen) => {
            (ErrorKind::Denied, ELSEWHERE)
        }
        Some(ErrorCode::DiskFull) => (ErrorKind::Full, "free some space there and try again"),
        Some(ErrorCode::SystemIoFailure) => {
            (ErrorKind::Full, "check the disk: its space, its limits (`ulimit -f`), its health")
        }
        Some(ErrorCode::TooBig) => {
            (ErrorKind::Refused, "SQLite keeps up to 1 GB: keep the run without its recording")
        }
        Some(ErrorCode::NotADatabase) => (ErrorKind::Damaged, ELSEWHERE),
        Some(ErrorCode::DatabaseCorrupt) => (
            ErrorKind::Damaged,
            "save what can be read with `deadweight archive export -o FILE`, and add FILE to a new archive",
        ),
        _ => (ErrorKind::Database, "`deadweight archive check` examines it"),
    };
    ArchiveError::new(
        kind,
        format!("{doing} the archive {}", path.display()),
        error.to_string(),
        todo,
    )
}

impl Database for Sqlite {
    fn execute(&mut self, sql: &str, values: &[Value]) -> Result<u64, ArchiveError> {
        let run = || self.connection.prepare_cached(sql)?.execute(params_from_iter(values));
        run().map(|changed| changed as u64).map_err(|error| self.failed(&error))
    }

    fn each(
        &mut self,
        sql: &str,
        values: &[Value],
        take: &mut dyn FnMut(Row) -> Result<(), ArchiveError>,
    ) -> Result<(), ArchiveError> {
        let failed = |error: Error| self.failed(&error);
        let mut statement = self.connection.prepare_cached(sql).map_err(failed)?;
        let width = statement.column_count();
        let mut rows = statement.query(params_from_iter(values)).map_err(failed)?;
        while let Some(row) = rows.next().map_err(failed)? {
            let cell = |at| row.get_ref(at).map(value);
            take((0..width).map(cell).collect::<Result<_, _>>().map_err(failed)?)?;
        }
        Ok(())
    }

    fn batch(&mut self, sql: &str) -> Result<(), ArchiveError> {
        self.connection.execute_batch(sql).map_err(|error| self.failed(&error))
    }

    fn begin(&mut self, _alone: bool) -> Result<(), ArchiveError> {
        patiently(|| self.connection.execute_batch("BEGIN IMMEDIATE"))
            .map_err(|error| self.failed(&error))
    }

    fn has_table(&mut self, name: &str) -> Result<bool, ArchiveError> {
        let sql = "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = $1";
        (self as &mut dyn Database).number(sql, &[name.into()]).map(|tables| tables > 0)
    }

    fn is_empty(&mut self) -> Result<bool, ArchiveError> {
        let sql = "SELECT count(*) FROM sqlite_schema";
        (self as &mut dyn Database).number(sql, &[]).map(|things| things == 0)
    }

    fn dialect(&self, sql: &str) -> String {
        sql.replace("{clustered}", " WITHOUT ROWID")
    }

    fn size(&mut self) -> Result<u64, ArchiveError> {
        let beside = |end: &str| {
            let mut name = self.path.clone().into_os_string();
            name.push(end);
            fs::metadata(name).map_or(0, |meta| meta.len())
        };
        Ok(beside("") + beside("-wal"))
    }

    fn damage(&mut self) -> Result<Vec<String>, ArchiveError> {
        let mut said = Vec::new();
        let checked = self.each("PRAGMA integrity_check(10)", &[], &mut |row| {
            said.extend(row.first().map(|cell| cell.text().to_owned()).filter(|text| text != "ok"));
            Ok(())
        });
        match checked {
            // The check itself can fail on what it finds.
            Err(error) if error.kind == ErrorKind::Damaged => {
                said.push("SQLite's check ended early: a page of the file is malformed".into());
            }
            checked => checked?,
        }
        Ok(said)
    }

    fn shrink(&mut self) -> Result<(), ArchiveError> {
        let mut ignore = |_| Ok(());
        self.each("PRAGMA incremental_vacuum", &[], &mut ignore)?;
        self.each("PRAGMA wal_checkpoint(TRUNCATE)", &[], &mut ignore)
    }

    fn reconnect(&mut self) -> Result<(), ArchiveError> {
        Ok(())
    }
}

fn value(cell: ValueRef<'_>) -> Value {
    match cell {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(value) => Value::Int(value),
        ValueRef::Real(value) => Value::Real(value),
        ValueRef::Text(text) => Value::Text(String::from_utf8_lossy(text).into_owned()),
        ValueRef::Blob(bytes) => Value::Bytes(bytes.to_vec()),
    }
}

impl ToSql for Value {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Int(value) => ValueRef::Integer(*value),
            Self::Real(value) => ValueRef::Real(*value),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
            Self::Bool(value) => ValueRef::Integer(i64::from(*value)),
            Self::Bytes(bytes) => ValueRef::Blob(bytes),
            Self::Null => ValueRef::Null,
        }))
    }
}
