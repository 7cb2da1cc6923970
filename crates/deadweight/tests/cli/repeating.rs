//! `-r`: how often the command runs, with which input, and the warnings if runs differ.

use crate::support::{Bench, Said, deadweight, live, run, said};
use serde_json::Value;
use std::fs::File;
use std::path::Path;
use std::process::Stdio;

fn report(options: &[&str], words: &[&str], json: &Path) -> (Said, Value) {
    let mut command = deadweight();
    command.args(options).arg("-q").arg("--export-json").arg(json).arg("--").args(words);
    let said = said(&command.output().unwrap());
    let report = serde_json::from_slice(&std::fs::read(json).unwrap()).unwrap();
    (said, report)
}

fn hazards(report: &Value) -> Vec<&str> {
    let all = report["hazards"].as_array().unwrap();
    all.iter().map(|hazard| hazard["id"].as_str().unwrap()).collect()
}

#[test]
fn without_r_the_command_runs_exactly_once() {
    live!();
    let bench = Bench::new();
    let log = bench.path("log");
    let script = format!("echo x >> {}", log.display());
    assert_eq!(run(&["-q", "--", "sh", "-c", &script]).code, 0);
    assert_eq!(std::fs::read_to_string(&log).unwrap(), "x\n");
}

#[test]
fn clean_runs_give_the_wall_time_and_output_appears_once() {
    live!();
    let bench = Bench::new();
    let (said, report) =
        report(&["-r", "7", "-w", "1"], &["sh", "-c", "echo hi"], &bench.path("j"));
    assert_eq!((said.code, said.out.as_str()), (0, "hi\n"), "{}", said.err);
    assert_eq!(report["runs"]["clean"]["count"], 7);
    assert_eq!(report["runs"]["clean"]["wall_ns"]["median"], report["wall_ns"]);
    assert!(report["runs"]["traced"]["count"].as_u64().unwrap() >= 1);
    assert!(!hazards(&report).contains(&"output-differs"));
}

#[test]
fn every_run_reads_the_same_input() {
    live!();
    let bench = Bench::new();
    let log = bench.path("log");
    let input = bench.file("input", "a\nb\nc\n");
    let script = format!("wc -l >> {}", log.display());
    let mut command = deadweight();
    command.args(["-q", "-r", "3", "--", "sh", "-c", &script]).stdin(File::open(&input).unwrap());
    assert!(command.status().unwrap().success());
    let script = format!(
        "printf 'a\\nb\\nc\\n' | {} -q -r 3 -- sh -c '{script}'",
        env!("CARGO_BIN_EXE_deadweight")
    );
    assert!(deadweight_shell(&script));
    let counts = std::fs::read_to_string(&log).unwrap();
    assert!(counts.lines().count() >= 8, "{counts}");
    assert!(counts.lines().all(|line| line.trim() == "3"), "{counts}");
}

fn deadweight_shell(script: &str) -> bool {
    std::process::Command::new("sh").args(["-c", script]).status().unwrap().success()
}

#[test]
fn runs_that_write_different_things_are_said() {
    live!();
    let bench = Bench::new();
    let script = "cat /proc/sys/kernel/random/uuid";
    let (_, report) = report(&["-r", "3"], &["sh", "-c", script], &bench.path("j"));
    assert!(hazards(&report).contains(&"output-differs"), "{:?}", hazards(&report));
}

#[test]
fn a_failing_command_is_not_repeated_unless_asked() {
    live!();
    let bench = Bench::new();
    let log = bench.path("log");
    let script = format!("echo x >> {}; exit 5", log.display());
    let (said, first) = report(&["-r", "4"], &["sh", "-c", &script], &bench.path("j"));
    assert_eq!(said.code, 5);
    assert_eq!(first["exit"]["code"], 5);
    assert!(hazards(&first).contains(&"stopped-repeating"));
    // A second run, traced, shows the reasons.
    assert_eq!(std::fs::read_to_string(&log).unwrap().lines().count(), 2);
    let (said, all) = report(&["-r", "4", "-i"], &["sh", "-c", &script], &bench.path("j"));
    assert_eq!((said.code, &all["runs"]["clean"]["count"]), (5, &Value::from(4)));
}

#[test]
fn proving_repeats_and_says_if_there_is_nothing_to_prove() {
    live!();
    let bench = Bench::new();
    let (said, report) = report(&["--prove"], &["sh", "-c", "echo hi"], &bench.path("j"));
    assert_eq!((said.code, said.out.as_str()), (0, "hi\n"), "{}", said.err);
    assert!(report["runs"]["clean"]["count"].as_u64().unwrap() > 1);
    let warnings = report["warnings"].as_array().unwrap();
    let not_proved = |w: &Value| w.as_str().unwrap().starts_with("nothing was proved");
    assert!(warnings.iter().any(not_proved), "{warnings:?}");
}

#[test]
fn an_ordinary_user_proves_by_skipped_calls() {
    live!();
    let bench = Bench::new();
    let mut command = std::process::Command::new(bench.copy());
    command.args(["--prove", "--", "sh", "-c", "sleep 0.05; echo done"]).stdin(Stdio::null());
    let ordinary = std::os::unix::process::CommandExt::uid(&mut command, 65_534);
    let said = said(&ordinary.current_dir("/").output().unwrap());
    if said.code == 2 {
        // Users may not open perf events here.
        assert_eq!(said.err.lines().count(), 1, "{}", said.err);
        return;
    }
    let printed = said.err.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(printed.contains("measured: skipping the sleeps saves"), "{}", said.err);
}

#[test]
fn the_time_for_proofs_is_a_limit() {
    live!();
    let bench = Bench::new();
    let words = ["sh", "-c", "sleep 0.2; echo done"];
    let (said, report) = report(&["--prove", "--prove-budget", "1s"], &words, &bench.path("j"));
    assert_eq!((said.code, said.out.as_str()), (0, "done\n"), "{}", said.err);
    let proof = report["findings"][0]["proofs"][0]["text"].as_str().unwrap_or_default();
    assert!(proof.contains("are left of --prove-budget"), "{report}");
}
