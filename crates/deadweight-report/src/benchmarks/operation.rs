//! The time of one operation, from the lines that a benchmark program prints for people.
//!
//! Reads the output of Go, Google Benchmark, criterion and Crystal. With it the ledger of a benchmark function applies to
//! one operation, whatever number of iterations a run chose. Not for comparing results: `go` and `json` read these from
//! files.

use crate::report::Operation;

/// The benchmark of `function` in a program's output: by name, or the only one.
#[must_use]
pub fn of_function(function: &str, text: &str) -> Option<Operation> {
    let all = all(text);
    let last = function.rsplit(['.', ':']).next().unwrap_or(function);
    let named = |operation: &&Operation| {
        let base = operation.name.split('/').next().unwrap_or_default();
        let base = base
            .rsplit_once('-')
            .filter(|(_, n)| n.parse::<u32>().is_ok())
            .map_or(base, |(b, _)| b);
        base == last
    };
    let mut fitting = all.iter().filter(named);
    match (fitting.next(), fitting.next(), all.as_slice()) {
        (Some(one), None, _) | (None, _, [one]) => Some(one.clone()),
        // Several sizes of one function take different times: the answer is ambiguous.
        _ => None,
    }
}

/// Whether a program's output has results of benchmarks: these differ from run to run.
#[must_use]
pub fn is_benchmark(text: &str) -> bool {
    !all(text).is_empty()
}

/// All results in the output of a benchmark program that prints them for people.
#[must_use]
pub fn all(text: &str) -> Vec<Operation> {
    let mut found = Vec::new();
    let mut before = "";
    for line in text.lines() {
        let operation = go(line).or_else(|| google(line)).or_else(|| criterion(line, before));
        found.extend(operation.or_else(|| crystal(line)));
        before = line;
    }
    found.retain(|operation| operation.ns.is_finite() && operation.ns > 0.0);
    found
}

fn unit(text: &str) -> Option<f64> {
    const UNITS: [(&str, f64); 7] =
        [("ps", 1e-3), ("ns", 1.0), ("us", 1e3), ("µs", 1e3), ("μs", 1e3), ("ms", 1e6), ("s", 1e9)];
    UNITS.iter().find(|(name, _)| *name == text).map(|(_, ns)| *ns)
}

fn time(value: &str, unit_of: &str) -> Option<f64> {
    Some(value.parse::<f64>().ok()? * unit(unit_of)?)
}

/// `BenchmarkJoin-2   1400   410042 ns/op   213624 B/op`.
fn go(line: &str) -> Option<Operation> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let name = words.first().filter(|name| name.starts_with("Benchmark"))?;
    let at = words.iter().position(|word| *word == "ns/op")?;
    Some(Operation { name: (*name).to_owned(), ns: words.get(at.checked_sub(1)?)?.parse().ok()? })
}

/// `BM_Copy/8   123 ns   120 ns   5600000`.
fn google(line: &str) -> Option<Operation> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [name, wall, wall_unit, cpu, cpu_unit, iterations, ..] = words[..] else { return None };
    time(cpu, cpu_unit)?;
    iterations.parse::<u64>().ok()?;
    Some(Operation { name: name.to_owned(), ns: time(wall, wall_unit)? })
}

/// `fib 20   time:   [26.0 µs 26.1 µs 26.3 µs]`, the name perhaps on the line before.
fn criterion(line: &str, before: &str) -> Option<Operation> {
    let (name, rest) = line.split_once("time:")?;
    let inside = rest.trim().strip_prefix('[')?.split(']').next()?;
    let [_, _, middle, middle_unit, _, _] = inside.split_whitespace().collect::<Vec<_>>()[..]
    else {
        return None;
    };
    let name = if name.trim().is_empty() { before.trim() } else { name.trim() };
    Some(Operation { name: name.to_owned(), ns: time(middle, middle_unit)? })
}

/// `join  41.77k ( 23.94µs) (± 3.43%)  48.0kB/op        fastest`.
fn crystal(line: &str) -> Option<Operation> {
    let (head, _) = line.split_once("(±")?;
    let (head, inside) = head.trim_end().strip_suffix(')')?.split_once('(')?;
    let inside = inside.trim();
    let digits = inside.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let name = head.trim_end().rsplit_once(char::is_whitespace)?.0;
    Some(Operation {
        name: name.trim().to_owned(),
        ns: time(&inside[..digits], inside[digits..].trim())?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_kinds_of_programs_are_understood() {
        let says = |function: &str, text: &str| of_function(function, text).map(|o| (o.name, o.ns));
        let go = "goos: linux\nBenchmarkJoin-2 \t 1400\t 410042 ns/op\t 213624 B/op\nBenchmarkX-2 5 7 ns/op\nPASS\n";
        assert_eq!(says("BenchmarkJoin", go), Some(("BenchmarkJoin-2".into(), 410_042.0)));
        assert_eq!(says("fib.BenchmarkX", go), Some(("BenchmarkX-2".into(), 7.0)));
        assert_eq!(says("Join", go), None, "two of them, and none of that name");
        let google = "Benchmark   Time   CPU  Iterations\nBM_Copy/8   1.5 us   1.4 us   5600000\n";
        assert_eq!(says("BM_Copy", google), Some(("BM_Copy/8".into(), 1500.0)));
        let criterion = "fib 20                  time:   [26.029 µs 26.251 µs 26.505 µs]\n";
        assert_eq!(says("fib", criterion), Some(("fib 20".into(), 26_251.0)));
        let crystal = " join  41.77k ( 23.94µs) (± 3.43%)  48.0kB/op        fastest\n";
        assert_eq!(says("join", crystal), Some(("join".into(), 23_940.0)));
    }

    #[test]
    fn other_words_are_no_benchmarks() {
        for text in [
            "",
            "time: none",
            "Benchmark ns/op",
            "a 1 ns b",
            "x (± y",
            "( 1s) (±",
            "BenchmarkX 1 NaN ns/op",
        ] {
            assert!(!is_benchmark(text), "{text}");
        }
        let sizes = "BenchmarkX/1-2 5 7 ns/op\nBenchmarkX/9-2 5 70 ns/op\n";
        assert_eq!(of_function("BenchmarkX", sizes), None, "two sizes");
    }
}
