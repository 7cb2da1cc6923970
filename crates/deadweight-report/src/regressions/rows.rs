//! Whether a row of the ledger grew. A row has no clock of its own: it is red only where the policy gives it a limit.

use super::policy::Limits;
use super::{Change, Kind, State};
use crate::compare::{Comparison, RowDifference};

/// Without a limit of its own, a row that grew by this part of the wall time is mentioned.
const MENTIONED: f64 = 0.02;
/// A row is moved work if the rows that shrank make up for this part of its growth.
const MADE_UP: f64 = 0.5;

/// The changes of rows. `slower`: the time grew by more than its limit, which the rows then explain.
pub(super) fn changes(limits: &Limits, comparison: &Comparison, slower: bool) -> Vec<Change> {
    let shown: Vec<&RowDifference> =
        comparison.rows.iter().filter(|row| row.p.is_some() && !row.is_chance()).collect();
    let wall = comparison.a.wall_ns.median.max(1) as f64;
    let shrunk: f64 = shown.iter().map(|row| (-row.difference_ns).max(0) as f64).sum();
    let judged = |row: &&RowDifference| {
        let growth = row.difference_ns as f64 / wall;
        let own = limits.rows.get(&row.account).copied();
        let limit = own.unwrap_or(Some(MENTIONED))?;
        if growth <= limit {
            return None;
        }
        let moved = !slower && shrunk >= MADE_UP * row.difference_ns as f64;
        let (state, why) = match (moved, own) {
            (true, _) => (State::Moved, shrunken(&shown)),
            (false, Some(_)) => (State::Regressed, String::new()),
            (false, None) if slower => (State::Unchanged, "part of the time's growth".to_owned()),
            (false, None) => (State::Unchanged, "the time as a whole did not grow".to_owned()),
        };
        let ends = row.interval_ns.unwrap_or([row.difference_ns; 2]);
        Some(Change {
            kind: Kind::Row,
            name: row.account.clone(),
            row: row.account.clone(),
            base: row.a_ns as f64,
            head: row.b_ns as f64,
            growth,
            interval: ends.map(|ns| ns as f64 / wall),
            limit,
            state,
            why,
            ..Change::default()
        })
    };
    shown.iter().filter_map(judged).collect()
}

/// The row that shrank most, in words.
fn shrunken(rows: &[&RowDifference]) -> String {
    let least = rows.iter().min_by_key(|row| row.difference_ns);
    let name = |row: &&RowDifference| crate::account::row_name(&row.account, &row.group).to_owned();
    least.map_or(String::new(), |row| format!("{} shrank as it grew", name(row)))
}
