//! Go's benchmark text: what `go test -bench` prints, and everything that prints the same.
//!
//! A line is a measurement (`BenchmarkName-8  1000  1234 ns/op  56 B/op`), a fact about the run
//! (`goos: linux`), a fact about a unit (`Unit text-bytes assume=exact`), or is ignored. Not for JSON; see `json`.

use super::units::{Better, UnitProperties, tidied};
use super::{Measured, Results, Unusable};

/// Reads the text of a file.
///
/// # Errors
/// If it has no measurement. A line that cannot be read is left out with a remark.
pub fn read(text: &str) -> Result<Results, Unusable> {
    let mut results = Results { kind: "go", ..Results::default() };
    let mut config: Vec<(String, String)> = Vec::new();
    for (line, number) in text.lines().zip(1_u32..) {
        if let Some(rest) = line.strip_prefix("Benchmark") {
            match measurement(rest) {
                Line::Measured(name, values) => {
                    results.measured.push(Measured { config: config.clone(), name, values });
                }
                Line::NameAlone => {}
                Line::Damaged(why) => {
                    results.remarks.push(format!("line {number} is left out: {why}: `{line}`"));
                }
            }
        } else if let Some(rest) = line.strip_prefix("Unit ") {
            unit(rest, &mut results);
        } else if let Some((key, value)) = fact(line) {
            match (config.iter().position(|(known, _)| known == key), value.is_empty()) {
                (Some(at), true) => drop(config.remove(at)),
                (Some(at), false) => value.clone_into(&mut config[at].1),
                (None, true) => {}
                (None, false) => config.push((key.to_owned(), value.to_owned())),
            }
        }
    }
    if results.measured.is_empty() {
        let sought = "there is no line like `BenchmarkName  1000  1234 ns/op` in it";
        let why = results.remarks.first().map_or(sought, String::as_str);
        return Err(Unusable(format!("holds no measurements: {why}")));
    }
    Ok(results)
}

/// A line that begins like a measurement.
enum Line {
    Measured(String, Vec<(f64, String)>),
    /// A benchmark's name alone, printed by `go test -v` before it runs.
    NameAlone,
    Damaged(String),
}

fn measurement(rest: &str) -> Line {
    let mut fields = rest.split_whitespace();
    let name = if rest.starts_with(char::is_whitespace) { "" } else { fields.next().unwrap_or("") };
    let Some(iterations) = fields.next() else { return Line::NameAlone };
    if iterations.parse::<i64>().is_err() {
        return Line::Damaged("the number of iterations is missing".into());
    }
    let mut values = Vec::new();
    while let Some(number) = fields.next() {
        let Ok(value) = number.parse::<f64>() else {
            return Line::Damaged(format!("`{number}` is not a number"));
        };
        let Some(unit) = fields.next() else {
            return Line::Damaged(format!("`{number}` has no unit"));
        };
        if !value.is_finite() {
            let large = number.contains(|c: char| c.is_ascii_digit());
            let why = if large { "too large for a number" } else { "not a measurement" };
            return Line::Damaged(format!("{unit} of {name} is {number}, which is {why}"));
        }
        let (unit, factor) = tidied(unit);
        values.push((value * factor, unit));
    }
    if values.is_empty() {
        return Line::Damaged("there are no values in it".into());
    }
    Line::Measured(name.to_owned(), values)
}

/// `key: value`: the key starts with a small letter and has no capitals and no blanks.
fn fact(line: &str) -> Option<(&str, &str)> {
    let (key, value) = line.split_once(':')?;
    let plain = !key.chars().any(|c| c.is_whitespace() || c.is_uppercase());
    let blank = value.is_empty() || value.starts_with([' ', '\t']);
    (key.starts_with(char::is_lowercase) && plain && blank)
        .then(|| (key, value.trim_start_matches([' ', '\t'])))
}

fn unit(rest: &str, results: &mut Results) {
    let mut fields = rest.split_whitespace();
    let Some(unit) = fields.next() else { return };
    let facts: &mut UnitProperties = results.units.entry(tidied(unit).0).or_default();
    for field in fields {
        match field {
            "assume=exact" => facts.exact = true,
            "better=higher" => facts.better = Some(Better::Higher),
            "better=lower" => facts.better = Some(Better::Lower),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measurements_have_the_facts_that_precede_them() {
        let text = "goos: linux\npkg: a/b\nBenchmarkX-8 \t 100\t 12.5 ns/op\t 3 B/op\npkg:\n\
                    PASS\nok  \ta/b\t1.2s\nBenchmarkX-8\nBenchmarkY 1 7 ns/op\n";
        let read = read(text).unwrap();
        let [x, y] = read.measured.as_slice() else { panic!("{read:?}") };
        assert_eq!((x.name.as_str(), x.config.len()), ("X-8", 2));
        assert_eq!(x.values, [(12.5 * 1e-9, "sec/op".into()), (3.0, "B/op".into())]);
        assert_eq!(y.config, [("goos".into(), "linux".into())]);
        assert_eq!(read.remarks, Vec::<String>::new());
    }

    #[test]
    fn a_damaged_line_is_left_out_with_a_remark() {
        let text = "BenchmarkX many 1 ns/op\nBenchmarkX 1 7\nBenchmarkX 1 7 ns/op\n";
        let read = read(text).unwrap();
        assert_eq!((read.measured.len(), read.remarks.len()), (1, 2));
        assert_eq!(read.remarks[1], "line 2 is left out: `7` has no unit: `BenchmarkX 1 7`");
    }

    #[test]
    fn a_value_that_is_not_finite_costs_its_line_only() {
        for value in ["NaN", "inf", "-Inf", "1e999"] {
            let read = read(&format!("BenchmarkX 1 {value} ns/op\nBenchmarkX 1 7 ns/op")).unwrap();
            assert_eq!(read.measured.len(), 1);
            let said = format!("line 1 is left out: ns/op of X is {value}, which");
            assert!(read.remarks[0].starts_with(&said), "{:?}", read.remarks);
        }
        let none = read("BenchmarkX 1 NaN ns/op").unwrap_err().to_string();
        assert!(none.contains("line 1 is left out: ns/op of X is NaN"), "{none}");
        assert!(read("").unwrap_err().0.contains("no measurements"));
        assert!(read("BenchmarkX\nPASS\n").is_err());
    }

    #[test]
    fn units_are_described_once_for_all() {
        let read = read("Unit ns/op assume=exact better=higher\nBenchmarkX 1 1 ns/op\n").unwrap();
        let facts = read.units["sec/op"];
        assert!(facts.exact && facts.better == Some(Better::Higher));
    }
}
