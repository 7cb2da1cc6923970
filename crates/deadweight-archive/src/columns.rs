//! The columns of the five tables, and the rows of [`deadweight_report::tables`] as values of them.
//!
//! A row is turned into its fields by name (serde), so a column is a line here and in the schema, and nothing else.

use crate::database::{Database, Value};
use crate::error::{ArchiveError, ErrorKind};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value as Json};

/// What a column holds.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A text.
    Text,
    /// An integer.
    Int,
    /// A number.
    Real,
    /// Yes or no.
    Bool,
    /// A list, as JSON text.
    List,
}
use Kind::{Bool, Int, List, Real, Text};

/// A table's columns, as the field of the same name has them.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) name: &'static str,
    pub(crate) columns: &'static [(&'static str, Kind)],
}

/// One row for each report.
pub(crate) const RUNS: Table = Table {
    name: "runs",
    columns: &[
        ("run", Text),
        ("workload", Text),
        ("commit", Text),
        ("commit_time", Int),
        ("branch", Text),
        ("dirty", Bool),
        ("time", Int),
        ("kind", Text),
        ("source", Text),
        ("command", Text),
        ("subject", Text),
        ("language", Text),
        ("producer", Text),
        ("build_id", Text),
        ("exit_code", Int),
        ("machine", Text),
        ("arch", Text),
        ("cpu", Text),
        ("cpus", Int),
        ("kernel", Text),
        ("deadweight", Text),
        ("method", Int),
        ("rung", Text),
        ("wall_ns", Int),
        ("net_ns", Int),
        ("cpu_ns", Int),
        ("clean_runs", Int),
        ("clean_ns", Int),
        ("clean_low_ns", Int),
        ("clean_high_ns", Int),
        ("clean_each_ns", List),
        ("max_rss", Int),
        ("traced_runs", Int),
        ("records", Int),
        ("lost", Int),
        ("requests", Int),
        ("best_saving", Real),
        ("unexplained", Real),
        ("hazards", List),
        ("error", Text),
    ],
};

/// The rows of ledgers.
pub(crate) const ROWS: Table = Table {
    name: "rows",
    columns: &[
        ("run", Text),
        ("ledger", Text),
        ("account", Text),
        ("name", Text),
        ("ns", Int),
        ("share", Real),
        ("low_ns", Int),
        ("high_ns", Int),
        ("exact", Bool),
    ],
};

/// Findings.
pub(crate) const FINDINGS: Table = Table {
    name: "findings",
    columns: &[
        ("run", Text),
        ("rank", Int),
        ("class", Text),
        ("process", Text),
        ("function", Text),
        ("file", Text),
        ("line", Int),
        ("amount_ns", Int),
        ("saving_ns", Int),
        ("saving", Real),
        ("low", Real),
        ("high", Real),
        ("how", Text),
        ("text", Text),
    ],
};

/// Counts.
pub(crate) const COUNTS: Table = Table {
    name: "counts",
    columns: &[
        ("run", Text),
        ("name", Text),
        ("value", Real),
        ("low", Real),
        ("high", Real),
        ("exact", Bool),
    ],
};

/// Binaries.
pub(crate) const BUILDS: Table = Table {
    name: "builds",
    columns: &[
        ("run", Text),
        ("path", Text),
        ("build_id", Text),
        ("language", Text),
        ("producer", Text),
    ],
};

/// The tables with several rows for each run; they also have the row's `position`, from 1.
pub(crate) const PARTS: [&Table; 4] = [&ROWS, &FINDINGS, &COUNTS, &BUILDS];

impl Table {
    /// The columns' names for a statement. `commit` is a word of SQL.
    pub(crate) fn names(&self) -> String {
        self.columns.iter().map(|(name, _)| format!("\"{name}\"")).collect::<Vec<_>>().join(", ")
    }

    /// A row as values, in the order of the columns.
    pub(crate) fn values<T: Serialize>(&self, row: &T) -> Result<Vec<Value>, ArchiveError> {
        let fields = serde_json::to_value(row).map_err(|error| self.unfit(&error))?;
        let none = Json::Null;
        let one = |(name, kind): &(&str, Kind)| value(fields.get(name).unwrap_or(&none), *kind);
        Ok(self.columns.iter().map(one).collect())
    }

    /// The row of these values.
    pub(crate) fn row<T: DeserializeOwned>(&self, values: &[Value]) -> Result<T, ArchiveError> {
        let fields: Map<String, Json> = self
            .columns
            .iter()
            .zip(values)
            .map(|((name, kind), value)| ((*name).to_owned(), json(value, *kind)))
            .collect();
        serde_json::from_value(Json::Object(fields)).map_err(|error| self.unfit(&error))
    }

    /// All rows of a run, in their order.
    pub(crate) fn of_run<T: DeserializeOwned>(
        &self,
        database: &mut dyn Database,
        run: &str,
    ) -> Result<Vec<T>, ArchiveError> {
        let names = self.names();
        let sql = format!("SELECT {names} FROM {} WHERE run = $1 ORDER BY position", self.name);
        database.rows(&sql, &[run.into()])?.iter().map(|values| self.row(values)).collect()
    }

    fn unfit(&self, error: &serde_json::Error) -> ArchiveError {
        ArchiveError::new(
            ErrorKind::Damaged,
            format!("a row of the table `{}` cannot be read", self.name),
            error.to_string(),
            "examine the archive with: deadweight archive check",
        )
    }
}

fn value(json: &Json, kind: Kind) -> Value {
    match kind {
        Text => json.as_str().unwrap_or_default().into(),
        Int => match json.as_i64() {
            Some(value) => Value::Int(value),
            None => json.as_u64().unwrap_or_default().into(),
        },
        Real => Value::Real(json.as_f64().unwrap_or_default()),
        Bool => Value::Bool(json.as_bool().unwrap_or_default()),
        List => json.to_string().as_str().into(),
    }
}

fn json(value: &Value, kind: Kind) -> Json {
    match (kind, value) {
        (Bool, value) => Json::Bool(value.int() != 0),
        (List, Value::Text(text)) => serde_json::from_str(text).unwrap_or_default(),
        (Real, Value::Int(value)) => (*value as f64).into(),
        (_, Value::Int(value)) => (*value).into(),
        (_, Value::Real(value)) => (*value).into(),
        (_, value) => value.text().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use deadweight_report::tables::{BuildRow, CountRow, FindingRow, LedgerRow, RunRow};

    fn fields<T: Serialize + Default>() -> Vec<String> {
        let Json::Object(fields) = serde_json::to_value(T::default()).unwrap() else { panic!() };
        fields.keys().cloned().collect()
    }

    #[test]
    fn every_field_is_a_column() {
        for (table, mut fields) in [
            (&RUNS, fields::<RunRow>()),
            (&ROWS, fields::<LedgerRow>()),
            (&FINDINGS, fields::<FindingRow>()),
            (&COUNTS, fields::<CountRow>()),
            (&BUILDS, fields::<BuildRow>()),
        ] {
            let mut columns: Vec<&str> = table.columns.iter().map(|(name, _)| *name).collect();
            columns.sort_unstable();
            fields.sort();
            assert_eq!(columns, fields, "{}", table.name);
        }
    }

    #[test]
    fn odd_values_come_back_as_something_that_every_database_holds() {
        let row = CountRow { name: "a\0b".into(), value: f64::NAN, ..CountRow::default() };
        let back: CountRow = COUNTS.row(&COUNTS.values(&row).unwrap()).unwrap();
        assert_eq!((back.name.as_str(), back.value), ("a\u{2400}b", 0.0));
        let row = RunRow { wall_ns: u64::MAX, clean_each_ns: vec![1, 2], ..RunRow::default() };
        let back: RunRow = RUNS.row(&RUNS.values(&row).unwrap()).unwrap();
        assert_eq!((back.wall_ns, back.clean_each_ns), (i64::MAX as u64, vec![1, 2]));
    }
}
