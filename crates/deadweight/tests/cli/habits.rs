//! Options of `compare` that hyperfine's users bring: what is run when, with what, and what is
//! written about it.

use crate::workshop::{Bench, Said, deadweight, live, said};
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
    // What is set up for one may be in the way of the other: one after the other.
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
fn options_that_make_no_sense_are_told_so() {
    let bench = Bench::new();
    bench.file("go.txt", "BenchmarkX 1 100 ns/op\n");
    let dir = bench.path("");
    let refused = |words: &[&str], told: &str| {
        let said = compare(&dir, words);
        assert_eq!((said.code, said.out.as_str()), (2, ""), "{words:?}: {}", said.err);
        assert!(said.err.contains(told), "{words:?}: {}", said.err);
    };
    refused(&["--setup", "true", "go.txt", "go.txt"], "--setup is for commands");
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
