//! Tests of `--prove`: the saving of needless code is measured, findings about needed code are withdrawn, and
//! no file is left behind.

use crate::group::Group;
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
                    (How::Candidate | How::Estimate, Some(Outcome::Measured)) => {
                        f.evidence[0].starts_with("measured, at least: ")
                    }
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

/// The first proof of the class's finding begins like this.
fn tried(report: &Report, class: &str, words: &str) -> bool {
    of(report, class).is_some_and(|f| f.proofs.first().is_some_and(|p| p.text.starts_with(words)))
}

#[test]
fn syncs_are_skipped() {
    let table = program::scratch_folder().join("proved.csv");
    Truth::of(&format!("@synced_rows {} 300", table.display()))
        .with(&["--prove"])
        .expect("its syncs are measured".into(), |r| measured(r, "wait-disk", 0.5..=1.0))
        .check();
}

#[test]
fn sleeps_are_skipped_and_waits_for_events_are_not() {
    Truth::shell("for i in 1 2 3 4 5; do sleep 0.02; done; echo done")
        .with(&["--prove"])
        .expect("its sleeps are measured together".into(), |r| {
            let sleeps = r.findings.iter().filter(|f| f.class == "wait-sleep");
            let saved: f64 = sleeps.clone().map(|f| f.saving_share).sum();
            sleeps.clone().all(|f| f.how == How::Measured) && (0.7..=1.0).contains(&saved)
        })
        .check();
}

#[test]
fn waits_until_a_time_out_are_cut_short() {
    Truth::of("@poll_loop 50 5")
        .with(&["--prove"])
        .expect("its polls are measured".into(), |r| measured(r, "wait-sleep", 0.7..=1.0))
        .check();
    // The fast form notifies the condition: 60 ms instead of 404.
    Truth::of("@looks_again 20")
        .with(&["--prove"])
        .expect("its time-outs are measured".into(), |r| measured(r, "wait-sleep", 0.6..=0.9))
        .check();
    Truth::of("@needs_time_out")
        .with(&["--prove"])
        .expect("its time-outs are needed, and remain a finding".into(), |r| {
            tried(r, "wait-sleep", "not proved by leaving out the waits until a time-out")
                && of(r, "wait-sleep").is_some_and(|f| f.how != How::Measured)
        })
        .check();
}

#[test]
fn writes_need_not_wait_for_the_disk() {
    let rows = program::scratch_folder().join("durable.rows");
    Truth::of(&format!("@durable_rows {} 300", rows.display()))
        .with(&["--prove"])
        .expect("its durable writes are measured".into(), |r| {
            measured(r, "wait-disk", 0.5..=1.0)
                && of(r, "wait-disk").is_some_and(|f| f.proofs[0].text.contains("O_DSYNC"))
        })
        .check();
}

#[test]
fn questions_are_asked_once() {
    Truth::of("@recheck /etc/passwd 300000")
        .with(&["--prove"])
        .expect("what its questions cost at least is measured".into(), |r| {
            tried(r, "repeated-syscalls", "measured, at least: leaving out questions")
                && of(r, "repeated-syscalls").is_some_and(|f| f.low > 0.5)
        })
        .check();
}

#[test]
fn messages_are_sent_at_once() {
    Truth::of("@sent_in_parts")
        .with(&["--prove"])
        .expect("its stalls are measured".into(), |r| measured(r, "network-turns", 0.9..=1.0))
        .check();
}

#[test]
fn loops_of_yields_sleep() {
    Truth::of("@yields 8 100")
        .with(&["--prove=wait-cpu"])
        .expect("what its yields cost at least is tried, with the same sum".into(), |r| {
            tried(r, "wait-cpu", "measured, at least: leaving out yields in a loop")
                || tried(r, "wait-cpu", "no saving shown by leaving out yields in a loop")
        })
        .check();
}

#[test]
fn threads_on_one_cpu_share_no_line() {
    Truth::of("@neighbours")
        .with(&["--prove=false-sharing"])
        .expect("what sharing costs at least is tried, and withdraws nothing".into(), |r| {
            let at_least = "measured, at least: leaving out work on several CPUs at once";
            let nothing = "no saving shown by leaving out work on several CPUs at once";
            tried(r, "false-sharing", at_least) || tried(r, "false-sharing", nothing)
        })
        .check();
    // Four threads that take turns at a lock gain nothing from several CPUs, and lose little.
    Truth::of("@contended 3000 20000")
        .with(&["--prove=wait-lock"])
        .expect("its lock is no large cost of several CPUs".into(), |r| {
            of(r, "wait-lock").is_some_and(|f| f.how == How::Estimate && f.low < 0.6)
        })
        .check();
}

#[test]
fn a_program_without_its_quota_runs_on() {
    let first = [("cpu.cfs_period_us", "100000"), ("cpu.cfs_quota_us", "30000")];
    let quota = Group::new("cpu", &first, &[("cpu.max", "30000 100000")]);
    let group = quota.as_ref().map(Group::processes).map_err(Clone::clone);
    Truth::of("@word_count 200000")
        .in_group(group)
        .with(&["--prove"])
        .expect("its quota is measured".into(), |r| measured(r, "throttled", 0.3..=0.95))
        .check();
}

#[test]
fn a_means_that_breaks_the_program_is_refused() {
    Truth::of("@needs_pause")
        .with(&["--prove"])
        .expect("its pause is needed, and remains a finding".into(), |r| {
            tried(r, "wait-sleep", "not proved by skipping the sleeps: the program then")
                && of(r, "wait-sleep").is_some_and(|f| f.how != How::Measured)
        })
        .check();
    Truth::shell("sleep 0.1; date +%N")
        .with(&["--prove"])
        .expect("what differs from run to run cannot be compared".into(), |r| {
            of(r, "wait-sleep")
                .is_some_and(|f| f.proofs[0].text.contains("there is nothing to compare with"))
        })
        .check();
}

#[test]
fn a_program_that_notices_the_means_shows_nothing_and_keeps_its_finding() {
    Truth::of("@checks_itself 200000")
        .with(&["--prove"])
        .expect("its clearing remains a finding".into(), |r| {
            of(r, "zeroing").is_some_and(|f| {
                f.how != How::Measured
                    && f.proofs[0].text.contains("the program reads its own file")
            })
        })
        .check();
    Truth::of("@sandboxed")
        .with(&["--prove"])
        .expect("under a filter it ends otherwise".into(), |r| {
            let why = "a run of the program itself ended otherwise than the first one";
            of(r, "wait-sleep").is_some_and(|f| f.proofs[0].text.contains(why))
        })
        .check();
    Truth::of("@filters_itself")
        .with(&["--prove"])
        .expect("both filters hold".into(), |r| measured(r, "wait-sleep", 0.8..=1.0))
        .check();
    Truth::of("@times_itself")
        .with(&["--prove"])
        .expect("its sleeps are needed, and remain a finding".into(), |r| {
            tried(r, "wait-sleep", "not proved by skipping the sleeps: the program then")
                && of(r, "wait-sleep").is_some_and(|f| f.how != How::Measured)
        })
        .check();
}

#[test]
fn memory_is_kept_and_collections_are_left_out() {
    Truth::of("@churn 1000")
        .with(&["--prove"])
        .expect("its churn is measured".into(), |r| measured(r, "memory-churn", 0.7..=1.0))
        .check();
    Truth::of("@live_pointers")
        .with(&["--prove=gc"])
        .expect("its collections are measured".into(), |r| {
            of(r, "gc").is_none()
                || tried(r, "gc", "measured, at least: leaving out most collections")
        })
        .check();
}

#[test]
fn an_allocator_and_buffers_are_loaded_first() {
    Truth::of("@node_per_item 300000")
        .with(&["--prove"])
        .expect("what its allocations cost at least is measured".into(), |r| {
            let at_least = "measured, at least: leaving out the time in the allocator";
            tried(r, "allocation", at_least) && of(r, "allocation").is_some_and(|f| f.low > 0.05)
        })
        .check();
    Truth::of("@count_bytes")
        .reading(&program::bytes(300_000))
        .with(&["--prove"])
        .expect("its small reads are measured".into(), |r| measured(r, "tiny-reads", 0.5..=1.0))
        .check();
    let table = program::scratch_folder().join("proved.txt");
    Truth::of(&format!("@unbuffered {} 100000", table.display()))
        .with(&["--prove"])
        .expect("Go's own calls are not reached".into(), |r| {
            let static_one = "not proved by leaving out small writes: the program does not load it";
            tried(r, "tiny-writes", static_one)
        })
        .check();
}

#[test]
fn scans_that_cannot_be_left_out_are_done_twice() {
    for program in ["@appended_by_strcat", "@scanned_rest"] {
        Truth::of(program)
            .with(&["--prove=rescans"])
            .expect("what its scans cost at least is measured".into(), |r| {
                let least = "measured, at least: doing twice the scans at";
                tried(r, "rescans", least) && of(r, "rescans").is_some_and(|f| f.low > 0.2)
            })
            .check();
    }
}

#[test]
fn what_cannot_be_left_out_has_an_upper_bound() {
    Truth::of("@default_hasher")
        .with(&["--prove"])
        .expect("at most".into(), |r| {
            tried(r, "hashing", "it cannot be left out here: the program uses the result")
        })
        .check();
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

/// The processes of proofs of a deadweight with this process ID: their environment names its folder.
fn marked(pid: u32) -> usize {
    let name = format!("DEADWEIGHT_PROOF=deadweight-prove-{pid}-");
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let environments = entries.filter_map(|entry| std::fs::read(entry.path().join("environ")).ok());
    environments.filter(|text| String::from_utf8_lossy(text).contains(&name)).count()
}

/// Nobody can clean up after this signal himself.
#[test]
fn a_killed_proof_leaves_nothing_behind() {
    let Some(_alone) = leave(None) else { return };
    // A run takes longer than what is waited for after the kill.
    let mut proving = Command::new(env!("CARGO_BIN_EXE_deadweight"))
        .args(["-r", "3", "--prove", "-q", "--", "sh", "-c", "sleep 3; echo done"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("deadweight was built");
    let pid = proving.id();
    let within = |hundredths: u32, done: &dyn Fn() -> bool| {
        (0..hundredths).any(|_| {
            std::thread::sleep(Duration::from_millis(10));
            done()
        })
    };
    assert!(within(6000, &|| folders(pid) > 0 && marked(pid) > 0), "the proof began");
    proving.kill().expect("it is ours");
    proving.wait().expect("it ends");
    let gone = || folders(pid) == 0 && marked(pid) == 0;
    assert!(within(150, &gone), "the folder and its runs are gone");
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
    assert!(said.contains("the last run was the program itself"), "{said}");
    assert_eq!(folders(pid), 0, "{said}");
    assert_eq!(std::fs::read(&program).expect("still there"), before);
}
