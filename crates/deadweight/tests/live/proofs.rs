//! Tests of `--prove`: the saving of needless code is measured, findings about needed code are withdrawn, and
//! no file is left behind.

use crate::program;
use crate::truth::{Truth, leave};
use deadweight_report::report::{Finding, How, Outcome, Report};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Duration;

fn of<'r>(report: &'r Report, class: &str) -> Option<&'r Finding> {
    report.findings.iter().find(|finding| finding.class == class)
}

/// The finding's saving was measured, and its interval touches this one.
fn measured(report: &Report, class: &str, share: std::ops::RangeInclusive<f64>) -> bool {
    of(report, class).is_some_and(|finding| {
        let said = finding.evidence.first().is_some_and(|line| line.starts_with("measured: "));
        let touches = finding.low <= *share.end() && finding.high >= *share.start();
        finding.how == How::Measured && said && touches && finding.proofs[0].pairs >= 9
    })
}

/// A finding was withdrawn, and its proof says so.
fn withdrawn(report: &Report, class: &str, words: &str) -> bool {
    let proofs = report.withdrawn.iter().filter(|f| f.class == class).flat_map(|f| &f.proofs);
    let needed = |text: &str| text.contains(words) && text.ends_with("it does needed work");
    of(report, class).is_none() && { proofs }
        .any(|proof| proof.outcome == Outcome::Needed && needed(&proof.text))
}

#[test]
fn needless_clearing_is_measured() {
    Truth::of("@cleared_frames 100000")
        .with(&["--prove"])
        .expect("its zeroing is measured".into(), |r| measured(r, "zeroing", 0.2..=0.7))
        .check();
}

#[test]
fn needed_clearing_is_withdrawn() {
    Truth::of("@cleared_counts 20000 apart")
        .with(&["--prove"])
        .expect("its zeroing is withdrawn".into(), |r| {
            withdrawn(r, "zeroing", "cleared_counts.c:39 the program wrote something else")
        })
        .check();
}

#[test]
fn memory_that_is_zero_by_chance_does_not_deceive() {
    Truth::of("@fresh_marks 20000")
        .with(&["--prove"])
        .expect("its zeroing is withdrawn".into(), |r| {
            withdrawn(r, "zeroing", "when fresh memory held other values than zero")
        })
        .check();
}

#[test]
fn locks_of_one_thread_are_measured() {
    Truth::of("@arc_clones 3000000")
        .with(&["--prove"])
        .expect("its locks are measured".into(), |r| measured(r, "atomics", 0.25..=0.95))
        .check();
    Truth::of("@shared_by_value 8000")
        .with(&["--prove"])
        .expect("its locks are measured".into(), |r| measured(r, "atomics", 0.25..=0.95))
        .check();
}

#[test]
fn checks_are_measured_or_honestly_not() {
    for program in ["@checked_rows 500", "@stencil"] {
        Truth::of(program)
            .with(&["--prove"])
            .expect("its checks are measured, or it is said that they are not".into(), |r| {
                let checks = of(r, "bounds-checks");
                checks.is_some_and(|f| match (f.how, f.proofs.first().map(|p| p.outcome)) {
                    (How::Measured, Some(Outcome::Measured)) => f.low > 0.0,
                    (How::Candidate, Some(Outcome::NoSaving)) => {
                        f.evidence[0].starts_with("no saving shown")
                            && f.evidence[0].contains("pairs of runs")
                    }
                    _ => false,
                })
            })
            .check();
    }
}

#[test]
fn a_program_inside_a_pipeline_is_found() {
    Truth::quoted("@cleared_frames 400000 | cat")
        .with(&["--prove", "--of", "cleared_frames"])
        .expect("its zeroing is measured".into(), |r| measured(r, "zeroing", 0.1..=0.8))
        .check();
}

#[test]
fn a_program_without_such_a_cost_gets_a_note() {
    Truth::of("@chase 600000")
        .with(&["--prove"])
        .expect("nothing was proved".into(), |report| {
            report.warnings.iter().any(|w| w.starts_with("nothing was proved"))
        })
        .check();
}

/// The folders with copies that a deadweight with this process ID made.
fn folders(pid: u32) -> usize {
    let name = format!("deadweight-prove-{pid}-");
    let entries = [std::env::temp_dir(), "/var/tmp".into()].map(std::fs::read_dir);
    let names = entries.into_iter().flatten().flatten().flatten().map(|entry| entry.file_name());
    names.filter(|entry| entry.to_string_lossy().starts_with(&name)).count()
}

#[test]
fn an_interrupt_leaves_nothing_behind() {
    let program = program::build("cleared_frames");
    let Some(_alone) = leave(program.clone().err()) else { return };
    let program = program.expect("it was built");
    let before = std::fs::read(&program).expect("it is there");
    let mut proving = Command::new(env!("CARGO_BIN_EXE_deadweight"))
        .args(["-r", "3", "--prove", "--"])
        .arg(&program)
        .arg("200000")
        .process_group(0)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("deadweight was built");
    let pid = proving.id();
    for _ in 0..600 {
        std::thread::sleep(Duration::from_millis(100));
        if folders(pid) > 0 || proving.try_wait().expect("it is ours").is_some() {
            break;
        }
    }
    assert_eq!(folders(pid), 1, "the proof began");
    std::thread::sleep(Duration::from_millis(700));
    // As a terminal's Ctrl-C: to the whole group.
    let group = format!("-{pid}");
    let killed = Command::new("sh").args(["-c", "kill -INT \"$0\"", &group]).status();
    assert!(killed.is_ok_and(|status| status.success()));
    let out = proving.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(130), "{said}");
    assert!(said.contains("interrupted in proof"), "{said}");
    assert_eq!(folders(pid), 0, "{said}");
    assert_eq!(std::fs::read(&program).expect("still there"), before);
}
