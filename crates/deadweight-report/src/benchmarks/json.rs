//! The JSON of Google Benchmark, criterion and hyperfine (both of its schemas).
//!
//! Only files with every measurement are accepted: averages alone cannot be compared. The format is recognised by its
//! fields. Not for deadweight's own reports.

use super::{Measured, Results, Unusable, finite};
use serde::Deserialize;
use serde_json::{Map, Value};

/// Reads JSON text; None if it is of another kind. `name` is the name of criterion's benchmark, which another file has.
///
/// # Errors
/// If it is not JSON, or is one of these formats without anything that can be compared.
pub fn read(text: &str, name: &str) -> Result<Option<Results>, Unusable> {
    let refused = |error| Unusable(format!("is neither a report nor benchmark results: {error}"));
    let (value, odd): (Value, Option<String>) = match serde_json::from_str(text) {
        Ok(value) => (value, None),
        // Some programs write words where a number belongs.
        Err(error) => match without_words(text) {
            Some((text, remark)) => (serde_json::from_str(&text).map_err(refused)?, Some(remark)),
            None => return Err(refused(error)),
        },
    };
    let Value::Object(object) = &value else { return Ok(None) };
    let list = |field: &str| object.get(field).and_then(Value::as_array);
    let mut results = match (list("benchmarks"), list("results"), list("iters")) {
        (Some(runs), ..) => google(runs)?,
        (_, Some(commands), _) => hyperfine(commands)?,
        (.., Some(_)) => criterion(&value, name)?,
        _ if object.values().any(|v| v.get("point_estimate").is_some()) => {
            let why = "holds criterion's estimates alone; give the sample.json beside it";
            return Err(Unusable(why.into()));
        }
        _ => return Ok(None),
    };
    results.remarks.splice(0..0, odd);
    if results.measured.is_empty() {
        let why = results.remarks.first().map_or(String::new(), |why| format!(": {why}"));
        return Err(Unusable(format!("holds no measurements{why}")));
    }
    Ok(Some(results))
}

/// The text with null in place of NaN and Infinity, which are not JSON, and a remark about the first; none without.
fn without_words(text: &str) -> Option<(String, String)> {
    const WORDS: [&str; 5] = ["-Infinity", "Infinity", "-NaN", "NaN", "nan"];
    let (mut kept, mut first, mut quoted, mut escaped) = (String::new(), None, false, false);
    let mut rest = text;
    while let Some(next) = rest.chars().next() {
        let word = WORDS.iter().find(|word| !quoted && rest.starts_with(**word));
        if let Some(word) = word {
            let line = 1 + kept.matches('\n').count();
            first.get_or_insert_with(|| format!("line {line}: `{word}` is not a measurement"));
            kept.push_str("null");
            rest = &rest[word.len()..];
            continue;
        }
        quoted ^= next == '"' && !escaped;
        escaped = quoted && next == '\\' && !escaped;
        kept.push(next);
        rest = &rest[next.len_utf8()..];
    }
    first.map(|first| (kept, first))
}

fn unlike(what: &str) -> impl Fn(serde_json::Error) -> Unusable {
    move |error| Unusable(format!("is not what {what} writes: {error}"))
}

/// One line of Google Benchmark's results, without its counters.
#[derive(Deserialize)]
struct GoogleRun {
    name: String,
    run_name: Option<String>,
    run_type: Option<String>,
    aggregate_name: Option<String>,
    real_time: Option<f64>,
    cpu_time: Option<f64>,
    time_unit: Option<String>,
    #[serde(default)]
    error_occurred: bool,
    error_message: Option<String>,
    #[serde(flatten)]
    others: Map<String, Value>,
}

/// Numbers about the repetition rather than about the benchmark.
const NO_COUNTERS: [&str; 6] = [
    "family_index",
    "per_family_instance_index",
    "repetitions",
    "repetition_index",
    "threads",
    "iterations",
];

fn google(runs: &[Value]) -> Result<Results, Unusable> {
    let mut results = Results { kind: "google-benchmark", ..Results::default() };
    let mut averages = false;
    for run in runs {
        let run = GoogleRun::deserialize(run).map_err(unlike("Google Benchmark"))?;
        let name = run.run_name.unwrap_or(run.name);
        if run.error_occurred {
            let why = run.error_message.unwrap_or_default();
            results.remarks.push(format!("{name} is left out because it failed: {why}"));
            continue;
        }
        if run.run_type.is_some_and(|kind| kind == "aggregate") || run.aggregate_name.is_some() {
            averages = true;
            continue;
        }
        let factor = match run.time_unit.as_deref().unwrap_or("ns") {
            "ns" => 1e-9,
            "us" => 1e-6,
            "ms" => 1e-3,
            "s" => 1.0,
            other => {
                return Err(Unusable(format!("gives {name} in {other}, an unknown unit of time")));
            }
        };
        let mut values = Vec::new();
        for (time, unit) in [(run.real_time, "sec/op"), (run.cpu_time, "cpu-sec/op")] {
            let Some(time) = time else { continue };
            values.push((finite(time, &name)? * factor, unit.to_owned()));
        }
        for (counter, value) in &run.others {
            let Some(value) = value.as_f64() else { continue };
            let unit = match counter.as_str() {
                "bytes_per_second" => "B/s",
                "items_per_second" => "items/s",
                known if NO_COUNTERS.contains(&known) => continue,
                own => own,
            };
            values.push((finite(value, &name)?, unit.to_owned()));
        }
        results.measured.push(Measured { name, values, ..Measured::default() });
    }
    if results.measured.is_empty() && averages {
        let why = "holds averages alone: leave --benchmark_report_aggregates_only out";
        return Err(Unusable(why.into()));
    }
    Ok(results)
}

/// One command of hyperfine's: schema 1 has `times`, schema 2 `measurements`.
#[derive(Deserialize)]
struct HyperfineCommand {
    command: String,
    name: Option<String>,
    times: Option<Vec<Option<f64>>>,
    /// Of each run; null if a signal ended it.
    exit_codes: Option<Vec<Option<i64>>>,
    measurements: Option<Vec<HyperfineRun>>,
}

#[derive(Deserialize)]
struct HyperfineRun {
    time_wall_clock: Quantity,
    /// Absent where it is not recorded, null if a signal ended it.
    #[serde(default, deserialize_with = "given")]
    exit_code: Option<Option<i64>>,
}

/// Keeps null apart from a field that is not there.
fn given<'d, D: serde::Deserializer<'d>>(from: D) -> Result<Option<Option<i64>>, D::Error> {
    Option::deserialize(from).map(Some)
}

#[derive(Deserialize)]
struct Quantity {
    value: f64,
    unit: String,
}

fn hyperfine(commands: &[Value]) -> Result<Results, Unusable> {
    let mut results = Results { kind: "hyperfine", ..Results::default() };
    for command in commands {
        let one = HyperfineCommand::deserialize(command).map_err(unlike("hyperfine"))?;
        let name = one.name.unwrap_or(one.command);
        let runs: Vec<(Option<f64>, Option<Option<i64>>)> = match (one.times, one.measurements) {
            (Some(times), _) => {
                let codes = one.exit_codes.unwrap_or_default();
                let code = |at: usize| codes.get(at).copied();
                times.into_iter().enumerate().map(|(at, time)| (time, code(at))).collect()
            }
            (None, Some(runs)) => {
                let odd = runs.iter().find(|run| run.time_wall_clock.unit != "second");
                if let Some(Quantity { unit, .. }) = odd.map(|run| &run.time_wall_clock) {
                    return Err(Unusable(format!("gives `{name}` in {unit}, not in seconds")));
                }
                runs.into_iter()
                    .map(|run| (Some(run.time_wall_clock.value), run.exit_code))
                    .collect()
            }
            (None, None) => {
                return Err(Unusable(format!("holds averages alone for `{name}`, and no times")));
            }
        };
        results.remarks.extend(failed(&name, runs.iter().map(|(_, code)| *code)));
        for (number, (time, code)) in (1..).zip(runs) {
            match time {
                _ if code.is_some_and(|code| code != Some(0)) => {}
                Some(time) => {
                    let values = vec![(finite(time, &name)?, "sec".to_owned())];
                    let name = name.clone();
                    results.measured.push(Measured { name, values, ..Measured::default() });
                }
                None => results.remarks.push(format!(
                    "run {number} of `{name}` is left out: its time is not a number"
                )),
            }
        }
    }
    Ok(results)
}

/// The remark about runs that failed: what they did took another time than the work.
fn failed(name: &str, codes: impl Iterator<Item = Option<Option<i64>>>) -> Option<String> {
    let (mut all, mut ends) = (0, std::collections::BTreeMap::<Option<i64>, u64>::new());
    for code in codes {
        all += 1;
        if let Some(code) = code.filter(|code| *code != Some(0)) {
            *ends.entry(code).or_default() += 1;
        }
    }
    let failed: u64 = ends.values().sum();
    let each: Vec<String> = ends
        .into_iter()
        .map(|(code, runs)| match code {
            Some(code) => format!("exit code {code}: {runs}"),
            None => format!("ended by a signal: {runs}"),
        })
        .collect();
    (failed > 0).then(|| {
        let each = each.join(", ");
        format!("{failed} of {all} runs of `{name}` failed ({each}); their times are left out")
    })
}

/// criterion's samples: each of some iterations, with the time of all of them in nanoseconds.
#[derive(Deserialize)]
struct CriterionSample {
    iters: Vec<f64>,
    times: Vec<f64>,
}

fn criterion(value: &Value, name: &str) -> Result<Results, Unusable> {
    let sample = CriterionSample::deserialize(value).map_err(unlike("criterion"))?;
    if sample.iters.len() != sample.times.len() {
        return Err(Unusable("does not have as many times as iterations".into()));
    }
    let mut results = Results { kind: "criterion", ..Results::default() };
    for (iterations, time) in sample.iters.iter().zip(&sample.times) {
        let per_operation = finite(time / iterations, name)?;
        let values = vec![(per_operation * 1e-9, "sec/op".to_owned())];
        results.measured.push(Measured { name: name.to_owned(), values, ..Measured::default() });
    }
    Ok(results)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> String {
        read(text, "x").unwrap_err().to_string()
    }

    #[test]
    fn google_benchmark_repetitions_are_kept_and_averages_left_out() {
        let text = r#"{"context": {}, "benchmarks": [
            {"name": "BM_a/8", "run_name": "BM_a/8", "run_type": "iteration", "repetitions": 2,
             "iterations": 10, "real_time": 1.5, "cpu_time": 1.0, "time_unit": "us",
             "bytes_per_second": 4e6, "hits": 3},
            {"name": "BM_a/8_mean", "run_name": "BM_a/8", "run_type": "aggregate",
             "aggregate_name": "mean", "real_time": 1.5, "cpu_time": 1.0, "time_unit": "us"},
            {"name": "BM_b", "error_occurred": true, "error_message": "no file"}]}"#;
        let read = read(text, "x").unwrap().unwrap();
        let [only] = read.measured.as_slice() else { panic!("{read:?}") };
        let expected = [(1.5 * 1e-6, "sec/op"), (1e-6, "cpu-sec/op"), (4e6, "B/s"), (3.0, "hits")];
        let values: Vec<_> = only.values.iter().map(|(v, unit)| (*v, unit.as_str())).collect();
        assert_eq!((only.name.as_str(), values.as_slice()), ("BM_a/8", expected.as_slice()));
        assert_eq!(read.remarks, ["BM_b is left out because it failed: no file"]);
        let alone = r#"{"benchmarks": [{"name": "a_mean", "run_type": "aggregate"}]}"#;
        assert!(refusal(alone).contains("averages alone"));
        let fortnights = r#"{"benchmarks": [{"name": "a", "time_unit": "fortnight"}]}"#;
        assert!(refusal(fortnights).contains("unknown unit"));
    }

    #[test]
    fn both_schemas_of_hyperfine_are_read() {
        let one = r#"{"results": [{"command": "ls", "mean": 2.0, "times": [1.0, 3.0]}]}"#;
        let two = r#"{"schema_version": 2, "results": [{"command": "ls -l", "name": "ls",
            "measurements": [{"time_wall_clock": {"value": 1.0, "unit": "second"}},
                             {"time_wall_clock": {"value": 3.0, "unit": "second"}}]}]}"#;
        let (one, two) = (read(one, "").unwrap().unwrap(), read(two, "").unwrap().unwrap());
        assert_eq!(one, two);
        assert_eq!(one.measured[1].values, [(3.0, "sec".to_owned())]);
        assert!(refusal(r#"{"results": [{"command": "ls", "mean": 2.0}]}"#).contains("no times"));
        assert!(refusal(r#"{"results": []}"#).contains("no measurements"));
        assert!(refusal(r#"{"results": [3]}"#).contains("not what hyperfine writes"));
    }

    #[test]
    fn criterions_samples_are_times_per_iteration() {
        let read = read(r#"{"iters": [10, 20], "times": [100, 220]}"#, "fib/20").unwrap().unwrap();
        let values: Vec<f64> = read.measured.iter().map(|m| m.values[0].0).collect();
        assert_eq!(values, [10.0 * 1e-9, 11.0 * 1e-9]);
        assert_eq!(read.measured[0].name, "fib/20");
        assert!(refusal(r#"{"iters": [0], "times": [1]}"#).contains("x is inf"));
        assert!(refusal(r#"{"iters": [0], "times": [0]}"#).contains("x is NaN"));
        assert!(refusal(r#"{"iters": [1], "times": []}"#).contains("as many"));
        assert!(refusal(r#"{"mean": {"point_estimate": 3}}"#).contains("sample.json"));
    }

    #[test]
    fn other_json_is_none_of_these() {
        assert_eq!(read(r#"{"schema": 1, "ledger": []}"#, ""), Ok(None));
        assert_eq!(read("[]", ""), Ok(None));
        assert!(refusal("{").contains("nor benchmark results: EOF"), "{}", refusal("{"));
        let odd = refusal(r#"{"results": [{"command": "ls", "times": [NaN]}]}"#);
        assert!(odd.contains("line 1: `NaN` is not a measurement"), "{odd}");
    }

    #[test]
    fn a_value_that_is_no_number_costs_that_value_only() {
        let text = "{\"results\": [{\"command\": \"a NaN \\\"b\",\n\"times\": [1.0, NaN, 2]}]}";
        let results = read(text, "").unwrap().unwrap();
        assert_eq!((results.measured.len(), results.measured[0].name.as_str()), (2, "a NaN \"b"));
        let expected = [
            "line 2: `NaN` is not a measurement",
            "run 2 of `a NaN \"b` is left out: its time is not a number",
        ];
        assert_eq!(results.remarks, expected);
    }

    #[test]
    fn runs_that_failed_are_left_out_with_their_exit_codes() {
        let text = r#"{"results": [{"command": "ls", "times": [0.1, 2.0, 0.1, 2.1],
            "exit_codes": [3, 0, null, 0]}]}"#;
        let results = read(text, "").unwrap().unwrap();
        assert_eq!(results.measured.iter().map(|m| m.values[0].0).collect::<Vec<_>>(), [2.0, 2.1]);
        let failed = "2 of 4 runs of `ls` failed (ended by a signal: 1, exit code 3: 1); their times \
                      are left out";
        assert_eq!(results.remarks, [failed]);
        let two = r#"{"results": [{"command": "ls", "measurements": [
            {"time_wall_clock": {"value": 1.0, "unit": "second"}, "exit_code": 1},
            {"time_wall_clock": {"value": 3.0, "unit": "second"}, "exit_code": 0},
            {"time_wall_clock": {"value": 4.0, "unit": "second"}}]}]}"#;
        assert_eq!(read(two, "").unwrap().unwrap().measured.len(), 2);
        let all = r#"{"results": [{"command": "ls", "times": [0.1], "exit_codes": [3]}]}"#;
        assert!(refusal(all).contains("1 of 1 runs of `ls` failed (exit code 3: 1)"));
    }
}
