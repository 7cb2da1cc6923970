//! hyperfine's options of `compare`: what is run when, with what input, and what is exported.

use crate::support::{Bench, Said, deadweight, live, said};
use serde_json::Value;
use std::path::Path;

fn compare(directory: &Path, words: &[&str]) -> Said {
    said(&deadweight().current_dir(directory).arg("compare").args(words).output().unwrap())
}

#[test]
fn what_is_to_be_done_around_runs_is_done_for_each_of_them() {
    live!();
    let bench = Bench::new();
    let dir = bench.path("");
    let around = [
        ["--setup", "echo setup {n} >> log"],
        ["--prepare", "echo prepare {n} >> log"],
        ["--conclude", "echo conclude {n} >> log"],
        ["--cleanup", "echo cleanup {n} >> log"],
    ];
    let runs = ["-r", "3", "-w", "1", "-L", "n", "1,2", "--export-csv", "times.csv"];
    let words: Vec<&str> =
        around.iter().flatten().copied().chain(runs).chain(["sleep 0.00{n}"]).collect();
    let said = compare(&dir, &words);
    assert_eq!(said.code, 3, "{}", said.err);
    assert!(
        said.out.contains("A  sleep 0.001") && said.out.contains("B  sleep 0.002"),
        "{}",
        said.out
    );
    let log = std::fs::read_to_string(bench.path("log")).unwrap();
    let lines: Vec<&str> = log.lines().collect();
    let count = |line: &str| lines.iter().filter(|l| **l == line).count();
    for n in ["1", "2"] {
        assert_eq!((count(&format!("setup {n}")), count(&format!("cleanup {n}"))), (1, 1));
        // A warm-up and three clean runs: too few to tell a difference, and so none is explained.
        let prepared = count(&format!("prepare {n}"));
        assert_eq!((prepared, count(&format!("conclude {n}"))), (4, 4), "{lines:?}");
    }
    // The setup of one command may disturb the other: they run one after the other.
    assert_eq!(lines[..2], ["setup 1", "prepare 1"]);
    assert_eq!(lines[9..11], ["cleanup 1", "setup 2"]);
    assert!(lines.ends_with(&["conclude 2", "cleanup 2"]), "{lines:?}");
    let csv = std::fs::read_to_string(bench.path("times.csv")).unwrap();
    let rows: Vec<&str> = csv.lines().collect();
    assert_eq!(rows[0], "command,mean,stddev,median,user,system,min,max,parameter_n");
    assert!(rows[2].starts_with("sleep 0.002,0.0") && rows[2].ends_with(",2"), "{rows:?}");
}

#[test]
fn times_are_written_as_hyperfine_does_and_read_again() {
    live!();
    let bench = Bench::new();
    let dir = bench.path("");
    let written = compare(
        &dir,
        &[
            "-r",
            "6",
            "-N",
            "-n",
            "nap",
            "--export-hyperfine",
            "h.json",
            "--export-markdown",
            "-",
            "-q",
            "sleep '0.003'",
            "true",
        ],
    );
    assert!([0, 3].contains(&written.code), "{}{}", written.code, written.err);
    assert!(written.out.starts_with("| Command | Mean [ms] |"), "{}", written.out);
    assert!(written.out.contains("| `nap` |") && written.out.contains("| `true` |"));
    let json: Value =
        serde_json::from_slice(&std::fs::read(bench.path("h.json")).unwrap()).unwrap();
    assert_eq!(json["results"][0]["command"], "sleep '0.003'");
    assert_eq!(json["results"][0]["name"], "nap");
    assert_eq!(json["results"][0]["times"].as_array().unwrap().len(), 6);
    let read = compare(&dir, &["h.json", "h.json"]);
    assert_eq!(read.code, 0, "{}", read.err);
    assert!(read.out.contains("nap") && read.out.contains("n=6"), "{}", read.out);
}

#[test]
fn commands_read_and_write_where_it_is_said() {
    live!();
    let bench = Bench::new();
    let dir = bench.path("");
    bench.file("words", "b\na\n");
    let said = compare(&dir, &["-r", "2", "--input", "words", "--output", "out", "cat", "sort"]);
    assert!(said.out.contains("different output"), "{}{}", said.out, said.err);
    assert_eq!(std::fs::read_to_string(bench.path("out")).unwrap(), "a\nb\n");
    let none = compare(&dir, &["-r", "2", "--input", "null", "--output", "null", "cat", "sort"]);
    assert!(!none.out.contains("different output"), "{}{}", none.out, none.err);
    let absent = compare(&dir, &["--input", "absent", "cat", "sort"]);
    assert!(absent.code == 2 && absent.err.contains("absent: No such file"), "{}", absent.err);
}

#[test]
fn tables_are_in_the_order_and_unit_that_are_asked_for() {
    live!();
    let bench = Bench::new();
    let dir = bench.path("");
    let shown = ["--sort", "mean-time", "-u", "microsecond", "--no-why"];
    let files = ["--export-asciidoc", "t.adoc", "--export-orgmode", "t.org"];
    let words = ["-r", "3", "-N", "sleep 0.05", "true"];
    let said = compare(&dir, &[&shown[..], &files, &words].concat());
    let [first, second] = [0, 1].map(|line| said.out.lines().nth(line).unwrap_or_default());
    assert!(first.contains("B  true") && first.contains(" µs ("), "{}{}", said.out, said.err);
    assert!(second.contains("A  sleep 0.05") && second.contains(" µs ("), "{}", said.out);
    for file in ["t.adoc", "t.org"] {
        let table = std::fs::read_to_string(bench.path(file)).unwrap();
        let at = |what: &str| table.find(what).unwrap_or_else(|| panic!("{what} in {table}"));
        assert!(at("Mean [µs]") < at("true") && at("true") < at("sleep 0.05"), "{table}");
    }
}

#[test]
fn failures_are_minded_unless_their_code_is_said() {
    live!();
    let bench = Bench::new();
    let dir = bench.path("");
    let code = |ignore: &str| {
        compare(&dir, &["-r", "2", "--no-why", ignore, "sh -c 'exit 3'", "true"]).code
    };
    assert_eq!(["-i", "-i=3", "-i=1,3", "-i=1"].map(code), [3, 3, 3, 2]);
}

#[test]
fn what_comes_through_a_pipe_is_read_or_refused_in_a_sentence() {
    let bench = Bench::new();
    let dir = bench.path("");
    bench.file("go.txt", "BenchmarkX 1 100 ns/op\n");
    bench.file("large.txt", "BenchmarkX 1 1e400 ns/op\n");
    bench.file("cut.json", "{\"results\": [");
    let line = format!(
        "mkfifo pipe; exec {} compare <(cat go.txt) go.txt",
        env!("CARGO_BIN_EXE_deadweight")
    );
    let bash = std::process::Command::new("bash").arg("-c").arg(&line).current_dir(&dir).output();
    let read = said(&bash.unwrap());
    assert!(read.code == 3 && read.out.contains("100.0n"), "{}{}", read.out, read.err);
    let refused = |side: &str, sentence: &str| {
        let said = compare(&dir, &["go.txt", side]);
        assert!(said.code == 2 && said.err.contains(sentence), "{side}: {}{}", said.out, said.err);
    };
    refused("pipe", "pipe is a pipe or a device: save it as a file first");
    refused("large.txt", "ns/op of X is 1e400, which is too large for a number");
    refused("cut.json", "cut.json is neither a report nor benchmark results: EOF");
}

#[test]
fn options_that_make_no_sense_are_refused() {
    let bench = Bench::new();
    bench.file("go.txt", "BenchmarkX 1 100 ns/op\n");
    let dir = bench.path("");
    let refused = |words: &[&str], sentence: &str| {
        let said = compare(&dir, words);
        assert_eq!((said.code, said.out.as_str()), (2, ""), "{words:?}: {}", said.err);
        assert!(said.err.contains(sentence), "{words:?}: {}", said.err);
    };
    refused(&["--setup", "true", "go.txt", "go.txt"], "--setup is only for commands");
    refused(&["-P", "n", "3", "1", "true {n}"], "the range is empty");
    refused(&["-P", "n", "0.1", "1", "true {n}"], "--parameter-step-size");
    refused(&["-L", "n", "1,2", "-P", "m", "1", "2", "true"], "cannot be used with");
    refused(&["-p", "a", "-p", "b", "-p", "c", "true", "true"], "--prepare is given 3 times");
    refused(&["-N", "echo 'open", "true"], "cannot split");
}

#[test]
fn what_is_set_up_for_all_is_set_up_once_and_a_shell_can_be_chosen() {
    let bench = Bench::new();
    let dir = bench.path("");
    let around = ["--setup", "mkdir made", "--cleanup", "rmdir made"];
    let words =
        ["--no-why", "-r", "2", "-S", "sh -e", "--reference", "test -d made", "[ -d made ]"];
    let said = compare(&dir, &[&around[..], &words].concat());
    assert_eq!(said.code, 3, "{}{}", said.out, said.err);
    assert!(said.out.contains("A  test -d made"), "{}", said.out);
    assert!(!bench.path("made").exists());
}
