//! Values of a report at paths such as `runs.traced.lost`. Does not know what a report holds; see `verdict`.

use serde_json::Value;

/// The value at a path, if there is one.
fn at<'v>(value: &'v Value, path: &str) -> Option<&'v Value> {
    path.split('.').try_fold(value, |value, key| value.get(key))
}

/// The number at a path; 0 if there is none.
pub(super) fn number(value: &Value, path: &str) -> f64 {
    at(value, path).and_then(Value::as_f64).unwrap_or(0.0)
}

/// The text at a path; empty if there is none.
pub(super) fn text<'v>(value: &'v Value, path: &str) -> &'v str {
    at(value, path).and_then(Value::as_str).unwrap_or_default()
}

/// The list at a path; empty if there is none.
pub(super) fn list<'v>(value: &'v Value, path: &str) -> &'v [Value] {
    at(value, path).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Calls `see` with each number and each text, and its path without list positions.
pub(super) fn each(value: &Value, path: &str, see: &mut impl FnMut(&str, &Value)) {
    match value {
        Value::Array(list) => list.iter().for_each(|value| each(value, path, see)),
        Value::Object(entries) => {
            for (key, value) in entries {
                let dot = if path.is_empty() { "" } else { "." };
                each(value, &format!("{path}{dot}{key}"), see);
            }
        }
        leaf => see(path, leaf),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_by_path_and_leaves_are_seen_with_theirs() {
        let value = serde_json::json!({"a": {"b": 1.5, "c": "x"}, "l": [{"n": 2}, {"n": 3}]});
        assert_eq!((number(&value, "a.b"), text(&value, "a.c")), (1.5, "x"));
        assert_eq!(
            (number(&value, "a.z"), text(&value, "a.b"), list(&value, "a").len()),
            (0.0, "", 0)
        );
        let mut seen = Vec::new();
        each(&value, "", &mut |path, leaf| seen.push(format!("{path}={leaf}")));
        assert_eq!(seen, ["a.b=1.5", "a.c=\"x\"", "l.n=2", "l.n=3"]);
    }
}
