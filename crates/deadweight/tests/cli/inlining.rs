//! `--explain-inlining`: the compiler is run only where the user allows it, and its reasons are quoted.

use crate::support::{Bench, deadweight, live, said};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// A program with a method that is just beyond the budget, built in a folder of its own. `None`
/// without Go, with a message.
fn program(bench: &Bench) -> Option<()> {
    bench.file("main.go", include_str!("../../../../tests/programs/over_budget.go"));
    bench.file("go.mod", "module example.org/window\n\ngo 1.18\n");
    let mut build = Command::new("go");
    build.args(["build", "-o", "window"]).current_dir(bench.path(""));
    match build.output() {
        Ok(built) => {
            assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
            Some(())
        }
        Err(why) => {
            eprintln!("SKIPPED --explain-inlining: go is not here ({why})");
            None
        }
    }
}

/// The report of the program, run from `folder`.
fn report(bench: &Bench, folder: &Path, options: &[&str]) -> Value {
    let json = bench.path("report.json");
    let mut command = deadweight();
    command.args(["-q", "-r", "3", "--export-json"]).arg(&json).args(options).arg("--");
    let said = said(&command.arg(bench.path("window")).current_dir(folder).output().unwrap());
    assert_eq!(said.code, 0, "{}", said.err);
    serde_json::from_slice(&std::fs::read(json).unwrap()).unwrap()
}

#[test]
fn the_budget_is_quoted_when_asked_for_and_only_below_this_directory() {
    live!();
    let bench = Bench::new();
    let Some(()) = program(&bench) else { return };
    let quoted = |report: &Value| report.to_string().contains("exceeds budget 80");
    let asked = report(&bench, &bench.path(""), &["--explain-inlining"]);
    assert_eq!(asked["findings"][0]["class"], "missed-inlining", "{asked}");
    assert!(quoted(&asked), "{asked}");
    assert!(!quoted(&report(&bench, &bench.path(""), &[])), "nobody asked");
    let beside = Bench::new();
    let beside = report(&bench, &beside.path(""), &["--explain-inlining"]);
    assert!(!quoted(&beside), "{beside}");
    assert!(beside["warnings"].to_string().contains("--explain-inlining"), "{beside}");
}

#[test]
fn a_scan_quotes_it_too_when_asked_for() {
    let bench = Bench::new();
    let Some(()) = program(&bench) else { return };
    let scan = |options: &[&str]| -> Value {
        let mut command = deadweight();
        command.arg("scan").args(options).args(["--json", "./window"]);
        let said = said(&command.current_dir(bench.path("")).output().unwrap());
        assert_eq!(said.code, 0, "{}", said.err);
        serde_json::from_str(&said.out).unwrap()
    };
    let quoted = |json: &Value| {
        let candidates = json["candidates"].as_array().unwrap();
        let mut small = candidates.iter().filter(|c| c["kind"] == "missed-inlining");
        small.any(|c| c["why"].as_str().unwrap().contains("exceeds budget 80"))
    };
    let asked = scan(&["--explain-inlining"]);
    assert!(quoted(&asked), "{asked}");
    assert!(!quoted(&scan(&[])));
}
