//! `compare`: its runs, its output, and its exit code for scripts.

use crate::support::{Bench, Said, deadweight, live, said};
use serde_json::Value;
use std::path::Path;

fn compare(words: &[&str]) -> Said {
    said(&deadweight().arg("compare").args(words).output().unwrap())
}

fn values(json: &Path) -> Vec<Value> {
    let text = std::fs::read(json).unwrap();
    serde_json::from_slice::<Value>(&text).unwrap().as_array().unwrap().clone()
}

/// The rows of one comparison add up to its difference.
fn adds_up(comparison: &Value) -> bool {
    let rows = comparison["rows"].as_array().unwrap();
    let sum: i64 = rows.iter().map(|row| row["difference_ns"].as_i64().unwrap()).sum();
    sum == comparison["difference_ns"].as_i64().unwrap()
}

#[test]
fn a_sleep_is_named_as_what_makes_b_slower() {
    live!();
    let bench = Bench::new();
    let json = bench.path("json");
    let file = json.to_str().unwrap();
    let said =
        compare(&["-r", "8", "--export-json", file, "sleep 0.01", "sleep 0.2", "sleep 0.01"]);
    let found = values(&json);
    assert_eq!(said.code, 1, "{}{}", said.out, said.err);
    assert_eq!((found[0]["verdict"].as_str(), found.len()), (Some("slower"), 2));
    assert_eq!(found[0]["rows"][0]["account"], "wait-sleep", "{found:?}");
    assert!(found.iter().all(adds_up));
    assert!(said.out.contains("B is ") && said.out.contains("slower than A"), "{}", said.out);
    assert!(said.out.contains("waiting"), "{}", said.out);
}

#[test]
fn too_few_runs_tell_nothing() {
    live!();
    let said = compare(&["-r", "2", "-w", "0", "true", "sleep 0.1"]);
    assert_eq!(said.code, 3, "{}{}", said.out, said.err);
    assert!(said.out.contains("cannot tell") && said.out.contains("-r "), "{}", said.out);
}

#[test]
fn an_interrupted_comparison_judges_by_the_rounds_before() {
    live!();
    let bench = Bench::new();
    // The fifth run of the first command asks for an end, as Ctrl-C does.
    let asks = "echo run >> runs; if [ $(wc -l < runs) = 5 ]; then kill -INT $PPID; sleep 1; fi";
    let interrupted = |options: &[&str]| {
        _ = std::fs::remove_file(bench.path("runs"));
        let mut command = deadweight();
        command.arg("compare").args(options).args(["-r", "30", "-w", "0"]);
        command.arg(format!("sh -c '{asks}'")).arg("sleep 0.05");
        said(&command.current_dir(bench.path(".")).output().unwrap())
    };
    for options in [&["--no-why"][..], &[]] {
        let said = interrupted(options);
        assert_eq!(said.code, 128 + 2, "{}{}", said.out, said.err);
        assert!(said.out.contains("4 runs") && said.out.contains("interrupted"), "{}", said.out);
    }
}

#[test]
fn other_output_is_said_first() {
    live!();
    let said = compare(&["-r", "3", "echo a", "echo b"]);
    assert!(said.out.contains("different output"), "{}{}", said.out, said.err);
    assert!(!said.out.contains("\na\n"), "their output is not passed on: {}", said.out);
}

#[test]
fn a_command_that_fails_ends_it_unless_ignored() {
    live!();
    let failing = compare(&["-r", "3", "true", "false"]);
    assert_eq!((failing.code, failing.out.as_str()), (2, ""));
    assert!(failing.err.contains("exit code 1") && failing.err.contains("-i"), "{}", failing.err);
    let ignored = compare(&["-i", "-r", "3", "true", "false"]);
    assert_eq!(ignored.code, 3, "{}", ignored.err);
    assert!(ignored.out.contains("end differently"), "{}", ignored.out);
}

#[test]
fn reports_made_before_are_compared_without_running_anything() {
    let reports = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reports");
    let mut files: Vec<_> =
        std::fs::read_dir(reports).unwrap().map(|f| f.unwrap().path()).collect();
    files.sort();
    let [a, b] = [&files[0], &files[1]].map(|path| path.to_str().unwrap().to_owned());
    let bench = Bench::new();
    let json = bench.path("json");
    let said = compare(&["--export-json", json.to_str().unwrap(), "-n", "old", &a, &b]);
    assert!([0, 1, 3].contains(&said.code), "{}", said.err);
    let found = values(&json);
    assert!(adds_up(&found[0]), "{found:?}");
    assert_eq!(found[0]["a"]["name"], "old");
}

#[test]
fn conditions_decide_the_exit_code_and_are_read_before_anything_runs() {
    live!();
    let bench = Bench::new();
    let mark = bench.path("ran");
    let touch = format!("touch {}", mark.display());
    let unread = compare(&["--fail-if", "B > ", "true", &touch]);
    assert_eq!((unread.code, mark.exists()), (2, false), "{}", unread.err);
    let sides = ["true", "sleep 0.05"];
    let gate = |condition| compare(&[&["-r", "8", "--fail-if", condition], &sides[..]].concat());
    let failed = gate("B > A * 1.05");
    assert_eq!(failed.code, 1);
    assert!(failed.err.contains("failed: B > A * 1.05 ("), "{}", failed.err);
    assert_eq!(gate("B > 30 s").code, 0);
    let unknown = compare(&["--fail-if", "C > A", "true", &touch]);
    assert_eq!((unknown.code, mark.exists()), (2, false), "{}", unknown.err);
    assert!(unknown.err.contains("there are A, B"), "{}", unknown.err);
    let named = ["-r", "8", "-n", "old", "-n", "new", "--fail-if", "new > 30 s"];
    assert_eq!(compare(&[&named[..], &sides].concat()).code, 0);
}

#[test]
fn what_is_no_report_is_refused_in_a_sentence() {
    let bench = Bench::new();
    for text in ["", "{", "[]", "{\"schema\": 1}", "{\"schema\": NaN}"] {
        let file = bench.file("bad.json", text);
        let file = file.to_str().unwrap();
        let said = compare(&[file, file]);
        assert_eq!((said.code, said.out.as_str()), (2, ""), "{text}");
        let refused = ["is no report", "is neither a report nor"];
        assert!(refused.iter().any(|words| said.err.contains(words)), "{}", said.err);
        assert_eq!(said.err.lines().count(), 1, "{}", said.err);
    }
    let missing = compare(&["missing.json", "true"]);
    assert_eq!(missing.code, 2);
    assert!(missing.err.contains("cannot read missing.json"), "{}", missing.err);
    let absent = compare(&["-r", "1", "no-such-program-here", "true"]);
    assert_eq!((absent.code, absent.out.as_str()), (2, ""), "{}", absent.err);
    let one = compare(&["-r", "2", "true"]);
    assert!(one.code == 0 && one.out.contains("median"), "{}{}", one.out, one.err);
    let names = compare(&["-n", "x", "-n", "y", "-n", "z", "true", "true"]);
    assert!(names.code == 2 && names.err.contains("more names"), "{}", names.err);
}

#[test]
fn a_gate_passes_fails_or_says_that_it_cannot_ask() {
    let reports = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reports");
    let mut files: Vec<_> =
        std::fs::read_dir(reports).unwrap().map(|f| f.unwrap().path()).collect();
    files.sort();
    let run = format!("run={}", files[0].display());
    let gate = |words: &[&str]| said(&deadweight().arg("gate").args(words).output().unwrap());
    let passed = gate(&[&run, "run.wall > 0 ns", "run < run * 2"]);
    assert_eq!(passed.code, 0, "{}", passed.err);
    assert_eq!(passed.out.matches("holds  ").count(), 2);
    let failed = gate(&[&run, "run.wall > 0 ns", "run > run * 2"]);
    assert!(failed.code == 1 && failed.out.contains("FAILS  run > run * 2"), "{}", failed.out);
    for words in [
        vec![run.as_str()],
        vec!["run > 1 s"],
        vec![&run, "run > "],
        vec!["run=no.json", "run > 1 s"],
        vec![&run, "run.alocation < 10 %"],
        vec![&run, "run.finding = \"tiny-raeds\""],
    ] {
        let said = gate(&words);
        assert_eq!((said.code, said.out.as_str()), (2, ""), "{words:?}");
        assert_eq!(said.err.lines().count(), 1, "{}", said.err);
    }
}

#[test]
fn where_no_difference_is_shown_nothing_is_traced_and_nothing_explained() {
    let same = compare(&["-N", "-r", "8", "-w", "2", "--no-why", "true", "true"]);
    assert!([0, 1].contains(&same.code), "{}{}", same.out, same.err);
    assert!(!same.out.contains("why:"), "{}", same.out);
    let asked = compare(&["--no-why", "--fail-if", "B.exit > 10 %", "true", "true"]);
    assert_eq!((asked.code, asked.out.as_str()), (2, ""));
    assert!(asked.err.contains("--no-why"), "{}", asked.err);
}

#[test]
fn rows_have_intervals_and_are_tested_as_one_family() {
    live!();
    let bench = Bench::new();
    let json = bench.path("json");
    let file = json.to_str().unwrap();
    compare(&["-r", "16", "--export-json", file, "sleep 0.001", "sleep 0.02"]);
    let found = values(&json);
    let row = &found[0]["rows"][0];
    assert_eq!(row["account"], "wait-sleep", "{found:?}");
    let traced = found[0]["a"]["traced"].as_u64().unwrap();
    assert!(traced >= 1, "{found:?}");
    // On a busy machine the time for traced runs is up after the first.
    if traced > 1 {
        let [low, high] = [0, 1].map(|at| row["interval_ns"][at].as_i64().unwrap());
        let difference = row["difference_ns"].as_i64().unwrap();
        assert!(low <= difference && difference <= high, "{row:?}");
    }
    if traced >= 7 {
        assert!(row["p"].as_f64().is_some_and(|p| p < 0.01), "{row:?}");
    }
}
