//! `import`: files that `perf record` has just written become recordings; other files are refused.

use crate::support::{Bench, Said, run};
use serde_json::Value;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What `perf record` writes with these options and words; none, with a message, if it cannot record here.
fn perf(test: &str, bench: &Bench, words: &[&str]) -> Option<PathBuf> {
    let file = bench.path("perf.data");
    let mut perf = Command::new("perf");
    // Without its cache, or each run of the tests would leave copies of all programs in the home folder.
    perf.arg("record").arg("--no-buildid-cache").arg("-o").arg(&file).args(words);
    let recorded = perf.output();
    if recorded.as_ref().is_ok_and(|output| output.status.success()) {
        return Some(file);
    }
    let why = recorded.map(|output| String::from_utf8_lossy(&output.stderr).into_owned());
    eprintln!("SKIPPED {test}: perf does not record here: {why:?}; ./setup.sh tests installs it");
    None
}

fn imported(file: &Path, to: &Path) -> Said {
    run(&["import".as_ref(), file.as_os_str(), "-o".as_ref(), to.as_os_str()])
}

/// The report of an imported file.
fn report(bench: &Bench, file: &Path) -> Value {
    let to = bench.path("imported.dwt");
    let said = imported(file, &to);
    assert_eq!((said.code, said.err.as_str()), (0, ""));
    let words = ["-q", "--export-json", "-"].map(OsStr::new);
    let said = run(&[&["report".as_ref(), to.as_os_str()], &words[..]].concat());
    serde_json::from_str(&said.out).unwrap()
}

fn row(report: &Value, ledger: &str, account: &str) -> u64 {
    let rows = report[ledger].as_array().unwrap();
    rows.iter().filter(|row| row["account"] == account).filter_map(|row| row["ns"].as_u64()).sum()
}

/// A program that computes for some tenths of a second.
const COMPUTES: &str = "n = 0\nfor i in range(3000000): n += i";

#[test]
fn samples_become_cpu_time_and_the_rest_is_not_recorded() {
    let bench = Bench::new();
    let words = ["-e", "cpu-clock", "-F", "999", "-g", "--", "python3", "-c", COMPUTES];
    let Some(file) = perf("samples", &bench, &words) else { return };
    let report = report(&bench, &file);
    assert_eq!(report["command"][0], "python3", "{report}");
    let wall = report["wall_ns"].as_u64().unwrap();
    let (net, unrecorded) =
        (row(&report, "ledger", "net-work"), row(&report, "ledger", "unrecorded"));
    assert!(net > 50_000_000 && net + unrecorded > wall / 10 * 8, "{report}");
    let samples = report["runs"]["traced"]["samples"].as_u64().unwrap();
    let cpu = report["cpu_ns"].as_u64().unwrap();
    // A sample stands for its period, 1.001 ms; where the clock ticked late, for what was left of it.
    assert!(cpu <= samples * 1_001_002 && cpu > samples * 800_000, "{cpu} ns of {samples} samples");
    assert_eq!(report["findings"], Value::Array(Vec::new()), "{report}");
    let warned = report["warnings"].to_string();
    assert!(warned.contains("sched:sched_switch"), "{warned}");
}

#[test]
fn switches_of_the_whole_machine_become_waits() {
    let bench = Bench::new();
    let events = "cpu-clock,sched:sched_switch,sched:sched_waking,raw_syscalls:sys_enter,raw_syscalls:sys_exit";
    let words = ["-m", "16M", "-a", "-g", "-e", events, "--", "sleep", "0.3"];
    let Some(file) = perf("switches", &bench, &words) else { return };
    let report = report(&bench, &file);
    assert!(row(&report, "ledger", "wait-sleep") > 250_000_000, "{report}");
    assert_eq!(row(&report, "ledger", "unexplained"), 0, "{report}");
}

/// What perf did not record is neither a cost nor ruled out.
#[test]
fn switches_alone_show_waits_for_a_cpu_and_rule_nothing_else_out() {
    let bench = Bench::new();
    let events = "sched:sched_switch,sched:sched_waking";
    let Some(file) = perf("perf sched", &bench, &["-a", "-e", events, "--", "sleep", "0.3"]) else {
        return;
    };
    let report = report(&bench, &file);
    assert!(row(&report, "ledger", "unrecorded") > 250_000_000, "{report}");
    assert_eq!(row(&report, "ledger", "start-up"), 0, "{report}");
    let checks = report["checks"].as_array().unwrap();
    let ruled_out = checks.iter().filter(|check| check["outcome"] == "ruled-out");
    assert_eq!(ruled_out.count(), 0, "{report}");
    assert!(report["recording"]["lacks"].to_string().contains("what ran on a CPU"), "{report}");
}

#[test]
fn stacks_of_copied_memory_are_walked() {
    let bench = Bench::new();
    let words =
        ["-e", "cpu-clock", "-F", "999", "--call-graph", "dwarf", "--", "python3", "-c", COMPUTES];
    let Some(file) = perf("dwarf", &bench, &words) else { return };
    let report = report(&bench, &file);
    assert!(row(&report, "ledger", "net-work") > 50_000_000, "{report}");
}

#[test]
fn a_damaged_file_is_read_as_far_as_it_goes_or_refused_in_words() {
    let bench = Bench::new();
    let Some(file) = perf("damage", &bench, &["-e", "cpu-clock", "-g", "--", "ls", "/"]) else {
        return;
    };
    let whole = std::fs::read(&file).unwrap();
    let to = bench.path("out.dwt");
    let fine = |damaged: &[u8]| {
        let said = imported(&bench.file("damaged", damaged), &to);
        assert!(said.code == 0 || said.code == 2, "{said:?}");
        assert!(said.err.lines().count() <= 1 && said.err.len() < 500, "{said:?}");
        assert!(said.code == 0 || !to.exists(), "{said:?}");
        _ = std::fs::remove_file(&to);
    };
    for part in 0..20 {
        fine(&whole[..whole.len() * part / 20]);
        let mut flipped = whole.clone();
        let at = whole.len() * part / 20;
        flipped.iter_mut().skip(at).take(16).for_each(|byte| *byte = !*byte);
        fine(&flipped);
    }
}

#[test]
fn other_files_are_refused_in_one_sentence() {
    let bench = Bench::new();
    let to = bench.path("out.dwt");
    let text = bench.file("text", "hello\n");
    for (file, word) in [
        (text.as_path(), "no perf.data"),
        (Path::new("/tmp"), "directory"),
        (Path::new("/no/file"), "No such"),
    ] {
        let said = imported(file, &to);
        assert_eq!(said.code, 2);
        assert!(said.err.contains(word) && said.err.lines().count() == 1, "{}", said.err);
        assert!(!to.exists());
    }
}

/// Files of three versions of perf, see `tests/perf`.
#[test]
fn files_of_every_version_of_perf_are_imported_as_root_and_user_wrote_them() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/perf");
    let mut clocks = Vec::new();
    for version in ["6.1", "6.12", "7.2"] {
        for by in ["root", "packed", "user"] {
            let bench = Bench::new();
            let report = report(&bench, &folder.join(format!("{version}-{by}.data")));
            let text = format!("{version} {by}: {report}");
            let command = report["command"][0].as_str().unwrap();
            assert!(command == "dd" || command.ends_with("/dd"), "{text}");
            let samples = report["runs"]["traced"]["samples"].as_u64().unwrap();
            assert!(samples >= if by == "user" { 3 } else { 10 }, "{text}");
            clocks.push(report["cpu_ns"].as_u64().unwrap() / samples);
        }
    }
    assert!(clocks.iter().all(|ns| (500_000..=1_001_002).contains(ns)), "{clocks:?}");
}
