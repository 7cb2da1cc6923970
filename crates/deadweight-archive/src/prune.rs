//! Removing runs: those of before a time, or all but the last of each workload.

use crate::archive::Archive;
use crate::database::{Database, Row, Value, transaction};
use crate::error::ArchiveError;

/// Which runs to remove: those that every given condition holds for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// Measured before this moment, in seconds since 1970.
    pub before: Option<i64>,
    /// Not among the last of its workload, this many.
    pub keep_last: Option<u32>,
    /// Of this workload.
    pub workload: Option<String>,
    /// Whether nothing is to be removed, only counted.
    pub dry_run: bool,
}

/// What was removed, or would be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pruned {
    /// The ids of the runs.
    pub runs: Vec<String>,
    /// Traces that no run had any more.
    pub traces: u64,
}

impl Archive {
    /// Removes the runs. A policy without `before` and `keep_last` removes nothing.
    ///
    /// # Errors
    /// If the archive cannot be written; then nothing is removed.
    pub fn prune(&mut self, policy: &Policy) -> Result<Pruned, ArchiveError> {
        if policy.before.is_none() && policy.keep_last.is_none() {
            return Ok(Pruned::default());
        }
        let database = self.database.as_mut();
        if policy.dry_run {
            return Ok(Pruned { runs: chosen(database, policy)?, traces: 0 });
        }
        // A run that is being added may rely on a trace that no other has.
        let pruned = transaction(database, true, &mut |database| {
            let runs = chosen(database, policy)?;
            for run in &runs {
                database.execute("DELETE FROM runs WHERE run = $1", &[run.as_str().into()])?;
            }
            let unused = "DELETE FROM traces WHERE NOT EXISTS (SELECT 1 FROM runs WHERE runs.trace = traces.trace)";
            let traces = database.execute(unused, &[])?;
            let unused = "DELETE FROM shapes WHERE shape NOT IN (SELECT shape FROM runs)";
            database.execute(unused, &[])?;
            Ok(Pruned { runs, traces })
        })?;
        self.database.shrink()?;
        Ok(pruned)
    }
}

/// The ids of the runs that the policy removes.
fn chosen(database: &mut dyn Database, policy: &Policy) -> Result<Vec<String>, ArchiveError> {
    let keep = policy.keep_last.map_or(0, i64::from);
    let before = policy.before.unwrap_or(i64::MAX);
    let mut values: Vec<Value> = vec![keep.into(), before.into()];
    let of_workload = policy.workload.as_ref().map(|workload| {
        values.push(workload.as_str().into());
        " AND workload = $3"
    });
    let sql = format!(
        "SELECT run FROM (SELECT run, workload, time, row_number() OVER \
         (PARTITION BY workload ORDER BY moment DESC, time DESC, run DESC) AS place FROM runs) AS placed \
         WHERE place > $1 AND time < $2{}",
        of_workload.unwrap_or_default()
    );
    let rows = database.rows(&sql, &values)?;
    let id = |row: &Row| row[0].text().to_owned();
    Ok(rows.iter().map(id).collect())
}
