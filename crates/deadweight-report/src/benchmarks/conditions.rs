//! Conditions of the gate language on benchmarks: a condition holds if it is true for at least one row.
//!
//! `B > A * 1.05` is evaluated for every benchmark that both sides have; differences that are not significant don't count.
//! Not for conditions on ledgers; see `gate`.

use super::table::{Row, Table, Tables, Verdict};
use super::units::is_time;
use crate::gate::{Amount, Condition, GateError, Quantity};

/// The result of a condition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Evaluation {
    /// The rows for which it holds, in words.
    pub holds: Vec<String>,
    /// The rows for which it would hold, but that have too few measurements for a test.
    pub unsure: Vec<String>,
}

/// Evaluates a condition on all rows. Columns are called A, B, ..., or by their names.
///
/// # Errors
/// If it names an unknown column, needs a ledger, compares units that don't match, or if no row has the quantities that
/// it uses.
pub fn evaluate(condition: &Condition, tables: &Tables) -> Result<Evaluation, GateError> {
    let Condition::Amounts(left, order, right) = condition else {
        return Err(GateError::NoLedger);
    };
    let mut asked = Evaluation::default();
    let mut rows = 0;
    for table in &tables.tables {
        if !(fits(left, table)? && fits(right, table)?) {
            continue;
        }
        let places = [column(left, table)?, column(right, table)?];
        for row in &table.rows {
            let (Some(l), Some(r)) = (value(left, places[0], row), value(right, places[1], row))
            else {
                continue;
            };
            rows += 1;
            if !order.holds(l, r) {
                continue;
            }
            let text =
                format!("{} {}: {}, compared with {}", row.name, table.unit, shown(l), shown(r));
            match trusted(places, row) {
                Some(true) => asked.holds.push(text),
                Some(false) => {}
                None => asked.unsure.push(text),
            }
        }
    }
    if rows == 0 { Err(GateError::NoRow) } else { Ok(asked) }
}

/// Whether an amount is one of this table's unit.
fn fits(amount: &Amount, table: &Table) -> Result<bool, GateError> {
    match &amount.of {
        Quantity::Wall(_) | Quantity::Time(_) => Ok(is_time(&table.unit)),
        Quantity::Metric(_, unit) => Ok(table.unit == super::units::tidied(unit).0),
        Quantity::Share(..) => Err(GateError::NoLedger),
        Quantity::Part(_) => Err(GateError::Units),
    }
}

fn column(amount: &Amount, table: &Table) -> Result<Option<usize>, GateError> {
    let Some(name) = amount.report() else { return Ok(None) };
    let by_name = table.columns.iter().position(|column| column == name);
    let by_letter = ('A'..='Z').zip(0..table.columns.len());
    let by_letter = by_letter.into_iter().find(|(l, _)| name == l.to_string()).map(|(_, at)| at);
    match by_name.or(by_letter) {
        Some(at) => Ok(Some(at)),
        None => Err(GateError::Unknown(name.to_owned())),
    }
}

/// An amount in the table's unit.
fn value(amount: &Amount, column: Option<usize>, row: &Row) -> Option<f64> {
    let value = match (&amount.of, column) {
        (Quantity::Time(ns), _) => ns * 1e-9,
        (_, Some(at)) => row.cells.get(at)?.as_ref()?.value,
        _ => return None,
    };
    Some(value * amount.factor)
}

/// Whether the measurements show a difference between the two; None if there are too few.
fn trusted(places: [Option<usize>; 2], row: &Row) -> Option<bool> {
    // Only differences from the first column are tested.
    let tested = match places {
        [Some(0), Some(other)] | [Some(other), Some(0)] if other > 0 => Some(other),
        _ => None,
    };
    let change = tested.and_then(|at| row.cells.get(at)?.as_ref()?.change.as_ref());
    match change.map(|change| change.verdict) {
        Some(Verdict::CannotTell) => None,
        Some(Verdict::NoDifference) => Some(false),
        _ => Some(true),
    }
}

fn shown(value: f64) -> String {
    format!("{value:.4e}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::benchmarks::go;
    use crate::benchmarks::table::{Layout, lay_out};

    fn tables(old: u32, new: u32, count: u32) -> Tables {
        let text = |base: u32| -> String {
            let line = |i| format!("BenchmarkX 9 {} ns/op {} allocs/op\n", base * 100 + i, base);
            (0..count).map(line).collect()
        };
        let read = |base| go::read(&text(base)).unwrap();
        let sides = [("old.txt".to_owned(), read(old)), ("new".to_owned(), read(new))];
        lay_out(&sides, &Layout::default()).unwrap()
    }

    fn asked(condition: &str, tables: &Tables) -> Result<(usize, usize), GateError> {
        let asked = evaluate(&condition.parse::<Condition>()?, tables)?;
        Ok((asked.holds.len(), asked.unsure.len()))
    }

    #[test]
    fn a_condition_holds_for_a_row_shown_to_be_worse() {
        let worse = tables(10, 20, 8);
        assert_eq!(asked("B > A * 1.05", &worse), Ok((1, 0)));
        assert_eq!(asked("new > A * 2.5", &worse), Ok((0, 0)));
        assert_eq!(asked("B.allocs/op > A.allocs/op", &worse), Ok((1, 0)));
        assert_eq!(asked("B > 1 us", &worse), Ok((1, 0)));
        assert_eq!(asked("B > 1 ms", &worse), Ok((0, 0)));
    }

    #[test]
    fn a_condition_does_not_hold_by_chance_or_with_too_few_measurements() {
        assert_eq!(asked("B > A * 1.05", &tables(10, 20, 2)), Ok((0, 1)));
        assert_eq!(asked("B > A * 0.5", &tables(10, 10, 8)), Ok((0, 0)));
    }

    #[test]
    fn a_condition_that_cannot_be_evaluated_is_an_error() {
        let same = tables(10, 10, 8);
        assert_eq!(asked("C > A", &same), Err(GateError::Unknown("C".into())));
        assert_eq!(asked("B.gc > 3 %", &same), Err(GateError::NoLedger));
        assert_eq!(asked("B.finding = none", &same), Err(GateError::NoLedger));
        assert_eq!(asked("B.B/op > A.B/op", &same), Err(GateError::NoRow));
        assert_eq!(asked("B > 3 %", &same), Err(GateError::Units));
    }
}
