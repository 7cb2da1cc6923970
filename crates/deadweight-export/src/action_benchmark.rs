//! The input of github-action-benchmark's tool `customSmallerIsBetter`: the wall time and each row, in nanoseconds.
//!
//! Not for deciding what is slower: the action compares with values of earlier commits.

use crate::names::plain;
use deadweight_report::account::row_name;
use deadweight_report::report::{Basis, Report, Row};
use serde_json::{Value, json};

/// A JSON array of values.
#[must_use]
pub fn action_benchmark(report: &Report) -> String {
    let command = plain(&report.command.join(" ")).into_owned();
    let wall = json!({
        "name": "wall time",
        "unit": "ns",
        "value": report.wall_ns,
        "extra": command,
    });
    let values: Vec<Value> = [wall].into_iter().chain(report.ledger.iter().map(value)).collect();
    format!("{:#}\n", Value::Array(values))
}

fn value(row: &Row) -> Value {
    let name = plain(row_name(&row.account, &row.group));
    let mut value = json!({ "name": format!("row: {name}"), "unit": "ns", "value": row.ns });
    if row.basis == Basis::Sampled {
        value["range"] = json!(format!("{} to {}", row.low_ns, row.high_ns));
    }
    if !row.note.is_empty() {
        value["extra"] = json!(plain(&row.note));
    }
    value
}

#[cfg(test)]
mod tests {
    use super::action_benchmark;
    use crate::tests::of_golden;
    use serde_json::Value;

    #[test]
    fn each_value_has_what_the_action_reads_and_rows_add_up_to_the_wall_time() {
        of_golden(|name, report, _| {
            let values: Vec<Value> = serde_json::from_str(&action_benchmark(report)).unwrap();
            let ns = |value: &Value| value["value"].as_u64().unwrap();
            assert_eq!(values[1..].iter().map(ns).sum::<u64>(), ns(&values[0]), "{name}");
            for value in values {
                let fields = value.as_object().unwrap();
                for (field, value) in fields {
                    let fits = match field.as_str() {
                        "value" => value.is_u64(),
                        "name" | "unit" | "range" | "extra" => value.is_string(),
                        _ => false,
                    };
                    assert!(fits, "{name}: {field} {value}");
                }
                assert!(["name", "unit", "value"].iter().all(|f| fields.contains_key(*f)));
            }
        });
    }
}
