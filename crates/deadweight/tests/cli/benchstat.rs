//! Files of Go's benchmarks, compared with benchstat itself: deadweight prints the same numbers.
//!
//! Its published test data and its source are read from Go's module cache; without them these
//! tests skip and say how to get them.

use crate::support::{Bench, deadweight, said};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

const MODULE: &str = "golang.org/x/perf@v0.0.0-20260908200009-22c9c6c9d4da";

/// benchstat's source.
fn source(test: &str) -> Option<PathBuf> {
    let go = |words: &[&str]| {
        let output = Command::new("go").args(words).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let cache = go(&["env", "GOMODCACHE"]);
    let source = cache.map(|cache| Path::new(&cache).join(MODULE));
    if source.as_ref().is_some_and(|source| source.is_dir()) {
        return source;
    }
    eprintln!("SKIPPED {test}: `go mod download {MODULE}` gets what it compares with");
    None
}

/// The output, line by line and word by word, without our additions: the verdicts at
/// the ends of lines and the sentences below, which are indented.
fn words(text: &str, verdicts: usize) -> Vec<Vec<String>> {
    let ours = ["faster", "slower", "less", "more", "lower", "higher", "~", "?"];
    text.lines()
        .filter(|line| !line.trim().is_empty() && !line.starts_with("  ! "))
        .filter(|line| !line.starts_with("  ") || line.contains(['│', '±']))
        .map(|line| {
            let mut words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            if words.last().is_some_and(|word| word == "shown") {
                words.pop();
            }
            let compared = line.contains("n=");
            for _ in 0..if compared { verdicts } else { 0 } {
                let last = words.pop().unwrap();
                assert!(ours.contains(&last.as_str()), "{last} in {line}");
            }
            words
        })
        .collect()
}

/// Runs `compare` in `directory`; returns its output.
fn compare(directory: &Path, arguments: &[&str]) -> String {
    let output = deadweight().current_dir(directory).arg("compare").args(arguments).output();
    let said = said(&output.unwrap());
    assert!([0, 1, 3].contains(&said.code) && said.err.is_empty(), "{}", said.err);
    said.out
}

#[test]
fn published_tables_are_printed_to_the_digit() {
    let Some(source) = source("published tables") else { return };
    let data = source.join("cmd/benchstat/testdata");
    let cases: [(&str, &[&str], usize); 7] = [
        ("crcOldNew", &["crc-old.txt", "crc-new.txt"], 0),
        ("crcIgnore", &["--ignore", "note", "crc-old.txt", "crc-new.txt"], 1),
        ("units", &["--col", "note", "units.txt"], 1),
        ("zero", &["--col", "note", "zero.txt"], 1),
        ("smallSample", &["--col", "note", "smallSample.txt"], 1),
        ("issue19565", &["--col", "note", "issue19565.txt"], 1),
        ("issue19634", &["--col", "note", "issue19634.txt"], 1),
    ];
    for (name, arguments, verdicts) in cases {
        let theirs = std::fs::read_to_string(data.join(format!("{name}.stdout"))).unwrap();
        let ours = compare(&data, arguments);
        assert_eq!(words(&ours, verdicts), words(&theirs, 0), "{name}");
    }
    // Its filter is left to grep.
    let all = std::fs::read_to_string(data.join("crc-new.txt")).unwrap();
    let aligned = all.lines().filter(|l| !l.starts_with("Bench") || l.contains("align=0"));
    let bench = Bench::new();
    let file = bench.file("aligned.txt", aligned.collect::<Vec<_>>().join("\n"));
    let file = file.to_str().unwrap();
    let theirs = std::fs::read_to_string(data.join("crcSizeVsPoly.stdout")).unwrap();
    let ours = compare(&data, &["--row", "/size", "--col", "/poly", file]);
    assert_eq!(words(&ours, 2), words(&theirs, 0));
}

/// Fields of one line of its CSV, which are never quoted here.
fn fields(line: &str) -> Vec<&str> {
    line.split(',').collect()
}

#[test]
fn published_values_are_the_same_in_every_bit() {
    let Some(source) = source("published values") else { return };
    let data = source.join("cmd/benchstat/testdata");
    let csv = std::fs::read_to_string(data.join("csvOldNew.stdout")).unwrap();
    same_bits(&csv, &compare(&data, &["-q", "--export-json", "-", "old.txt", "new.txt"]));
}

/// Every row of its CSV is in our JSON, with the same numbers to the last bit.
fn same_bits(csv: &str, json: &str) {
    let ours: Value = serde_json::from_str(json).unwrap();
    let mut tables = ours["tables"].as_array().unwrap().iter();
    let (mut table, mut row) = (&Value::Null, 0);
    for line in csv.lines().map(fields).filter(|line| line.len() > 1) {
        match line[0] {
            "" if !line[1].contains("/op") && !line[1].contains("/s") => {
                (table, row) = (tables.next().unwrap(), 0);
            }
            "" => assert_eq!(table["unit"], line[1]),
            "geomean" => {
                let means = table["means"].as_array().unwrap();
                for (mean, at) in means.iter().zip([1, 3]) {
                    let value = line.get(at).and_then(|field| field.parse::<f64>().ok());
                    assert_eq!(mean["value"].as_f64(), value, "{line:?}");
                }
            }
            name => {
                let cells = &table["rows"][row];
                assert_eq!(cells["name"], name);
                for (cell, at) in cells["cells"].as_array().unwrap().iter().zip([1, 3]) {
                    let value = line.get(at).and_then(|field| field.parse::<f64>().ok());
                    assert_eq!(cell["value"].as_f64(), value, "{line:?}");
                    assert_eq!(cell["reach"].as_str().unwrap(), line[at + 1], "{line:?}");
                }
                let change = &cells["cells"][1]["change"];
                assert_eq!(change["printed"].as_str().unwrap(), line[5], "{line:?}");
                let p = format!("p={:.3} n=", change["p"].as_f64().unwrap());
                assert!(line[6].starts_with(&p), "{line:?} {p}");
                row += 1;
            }
        }
    }
    assert!(tables.next().is_none() && row > 0);
}

/// A file of many benchmarks with series of all lengths, with and without ties.
fn drawn(seed: u64) -> String {
    let mut state = seed;
    let mut draw = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040);
        (state >> 33) % below
    };
    let mut text = String::new();
    for benchmark in 0..60 {
        let (count, base) = (1 + draw(70), 10_u64.pow(1 + benchmark % 8));
        // Few steps make ties, many make none.
        let steps = [3, 30, 1_000_000][usize::try_from(benchmark % 3).unwrap()];
        for _ in 0..count {
            let value = base as f64 * (1.0 + draw(steps) as f64 / steps as f64);
            text += &format!("BenchmarkB{benchmark}-4 100 {value} ns/op {} B/op\n", draw(3) * 8);
        }
    }
    text
}

#[test]
fn drawn_series_give_what_benchstat_says_of_them() {
    let Some(source) = source("drawn series") else { return };
    let bench = Bench::new();
    let program = bench.path("benchstat");
    let built = Command::new("go")
        .args(["build", "-o"])
        .arg(&program)
        .arg("./cmd/benchstat")
        .current_dir(&source)
        .output()
        .unwrap();
    if !built.status.success() {
        let errors = String::from_utf8_lossy(&built.stderr).into_owned();
        eprintln!("SKIPPED drawn series: benchstat cannot be built: {errors}");
        return;
    }
    for seed in 1..=2 {
        let (old, new) = (drawn(seed), drawn(seed + 100));
        bench.file("old", &old);
        bench.file("new", &new);
        let theirs = |arguments: &[&str]| {
            let mut command = Command::new(&program);
            let output = command.args(arguments).current_dir(bench.path("")).output();
            String::from_utf8(output.unwrap().stdout).unwrap()
        };
        let ours = compare(&bench.path(""), &["-q", "--export-json", "-", "old", "new"]);
        same_bits(&theirs(&["-format", "csv", "old", "new"]), &ours);
        let ours = compare(&bench.path(""), &["old", "new"]);
        assert_eq!(words(&ours, 1), words(&theirs(&["old", "new"]), 0), "seed {seed}");
    }
}
