//! A database, as far as the archive uses one: statements with values, transactions, a few questions.
//!
//! - In: SQL that both databases understand, with `$1`, `$2`, ... for its values, each first used in this order.
//! - Out: rows of [`Value`]s, or failures as sentences.
//! - Must not know: the archive's tables.

mod postgres;
mod sqlite;

pub(crate) use postgres::Postgres;
pub(crate) use sqlite::Sqlite;

use crate::error::{ArchiveError, ErrorKind};

/// A value of a column.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    /// An integer.
    Int(i64),
    /// A number.
    Real(f64),
    /// A text without NUL, which PostgreSQL has none of.
    Text(String),
    /// Yes or no.
    Bool(bool),
    /// Bytes.
    Bytes(Vec<u8>),
    /// Nothing.
    Null,
}

/// A row of a result.
pub(crate) type Row = Vec<Value>;

/// A connection.
pub(crate) trait Database: Send {
    /// Executes a statement; returns how many rows changed.
    fn execute(&mut self, sql: &str, values: &[Value]) -> Result<u64, ArchiveError>;
    /// Hands each row of the result to `take`.
    fn each(
        &mut self,
        sql: &str,
        values: &[Value],
        take: &mut dyn FnMut(Row) -> Result<(), ArchiveError>,
    ) -> Result<(), ArchiveError>;
    /// Executes statements without values.
    fn batch(&mut self, sql: &str) -> Result<(), ArchiveError>;
    /// Begins a transaction that writes; if it is `alone`, no other process writes meanwhile.
    fn begin(&mut self, alone: bool) -> Result<(), ArchiveError>;
    /// Whether there is a table of this name.
    fn has_table(&mut self, name: &str) -> Result<bool, ArchiveError>;
    /// Whether there is nothing: an archive may be made here.
    fn is_empty(&mut self) -> Result<bool, ArchiveError>;
    /// Text of a migration for this database.
    fn dialect(&self, sql: &str) -> String;
    /// Bytes on disk.
    fn size(&mut self) -> Result<u64, ArchiveError>;
    /// What the database itself finds wrong with its pages.
    fn damage(&mut self) -> Result<Vec<String>, ArchiveError>;
    /// Gives the space of removed runs back, if that is cheap.
    fn shrink(&mut self) -> Result<(), ArchiveError>;
    /// Connects again after a lost connection.
    fn reconnect(&mut self) -> Result<(), ArchiveError>;
}

impl dyn Database + '_ {
    /// All rows of the result.
    pub(crate) fn rows(&mut self, sql: &str, values: &[Value]) -> Result<Vec<Row>, ArchiveError> {
        let mut rows = Vec::new();
        self.each(sql, values, &mut |row| {
            rows.push(row);
            Ok(())
        })?;
        Ok(rows)
    }

    /// The first value of the result as a number; 0 if there is none.
    pub(crate) fn number(&mut self, sql: &str, values: &[Value]) -> Result<i64, ArchiveError> {
        let rows = self.rows(sql, values)?;
        Ok(rows.first().and_then(|row| row.first()).map_or(0, Value::int))
    }
}

/// Does `work` in one transaction: all of it or nothing. If the connection is lost it is done again on a new one, so `work`
/// must not change anything the second time.
pub(crate) fn transaction<T>(
    database: &mut dyn Database,
    alone: bool,
    work: &mut dyn FnMut(&mut dyn Database) -> Result<T, ArchiveError>,
) -> Result<T, ArchiveError> {
    match once(database, alone, work) {
        Err(error) if error.kind == ErrorKind::Lost => {
            database.reconnect()?;
            once(database, alone, work)
        }
        done => done,
    }
}

fn once<T>(
    database: &mut dyn Database,
    alone: bool,
    work: &mut dyn FnMut(&mut dyn Database) -> Result<T, ArchiveError>,
) -> Result<T, ArchiveError> {
    database.begin(alone)?;
    let done = work(database).and_then(|done| database.batch("COMMIT").map(|()| done));
    if done.is_err() {
        // Without a connection there is nothing to roll back.
        _ = database.batch("ROLLBACK");
    }
    done
}

impl Value {
    /// As an integer; 0 if it is none.
    pub(crate) fn int(&self) -> i64 {
        match self {
            Self::Int(value) => *value,
            Self::Bool(value) => i64::from(*value),
            _ => 0,
        }
    }

    /// As a text; empty if it is none.
    pub(crate) fn text(&self) -> &str {
        match self {
            Self::Text(text) => text,
            _ => "",
        }
    }

    /// As bytes; empty if there are none.
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Self::Bytes(bytes) => bytes,
            _ => &[],
        }
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        // PostgreSQL has no NUL in texts; a symbol that shows it stands for it in both.
        Self::Text(text.replace('\0', "\u{2400}"))
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}

impl From<u64> for Value {
    /// Nanoseconds of 292 years fit.
    fn from(value: u64) -> Self {
        Self::Int(i64::try_from(value).unwrap_or(i64::MAX))
    }
}

impl From<Vec<u8>> for Value {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Bytes(bytes)
    }
}
