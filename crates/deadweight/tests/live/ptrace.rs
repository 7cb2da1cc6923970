//! Without perf events: a real filter of system calls refuses them, as containers' profiles do.
//! Recordings are compared with known facts, and programs must run as without deadweight.

use crate::program;
use crate::truth::leave;
use deadweight_report::report::Report;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// deadweight, and before it the filter. [`None`] if the test is skipped, with a message.
fn deadweight(error: &str) -> Option<Command> {
    match program::build("refuse_perf") {
        Ok(filter) => {
            let mut command = Command::new(filter);
            command.args([error, env!("CARGO_BIN_EXE_deadweight")]).stdin(Stdio::null());
            Some(command)
        }
        Err(reason) => {
            assert!(leave(Some(reason)).is_none());
            None
        }
    }
}

fn built(name: &str) -> PathBuf {
    program::build(name).unwrap_or_else(|reason| panic!("{reason}"))
}

fn report(error: &str, words: &[&str]) -> Option<Report> {
    Some(report_of(deadweight(error)?.args(["--export-json", "-", "--"]).args(words)))
}

fn report_of(command: &mut Command) -> Report {
    let out = command.output().unwrap();
    let text = String::from_utf8_lossy(&out.stdout);
    let text = text.find("\n{").map_or(&*text, |at| &text[at..]);
    let report: Report = serde_json::from_str(text)
        .unwrap_or_else(|e| panic!("{e}: {}", String::from_utf8_lossy(&out.stderr)));
    assert_eq!(report.ledger.iter().map(|r| r.ns).sum::<u64>(), report.wall_ns);
    assert_eq!(report.recording.rung, "stops");
    report
}

/// Whether the test could run: the expectation must hold in one of several attempts, because the
/// machine may be busy.
fn in_some_attempt(error: &str, words: &[&str], expected: impl Fn(&Report) -> bool) -> bool {
    let mut said = String::new();
    for pause in [0, 0, 1, 3] {
        std::thread::sleep(Duration::from_secs(pause));
        let Some(report) = report(error, words) else { return false };
        if expected(&report) {
            return true;
        }
        said = format!("{:?} {:?} {:?}", report.ledger, report.findings, report.stages);
    }
    panic!("{words:?}: {said}");
}

fn run(words: &[&str]) -> Option<Output> {
    Some(deadweight("EPERM")?.arg("--").args(words).output().unwrap())
}

#[test]
fn without_perf_a_pipeline_says_what_it_waited_for() {
    let Some(_alone) = leave(None) else { return };
    for error in ["EPERM", "ENOSYS"] {
        let done = in_some_attempt(error, &["sh", "-c", "sleep .3 | cat"], |report| {
            let first = report.findings.first().is_some_and(|f| f.class == "wait-sleep");
            let rows = report.ledger.iter().filter(|r| r.account == "wait-sleep");
            let slept: u64 = rows.map(|r| r.ns).sum();
            let cat = report.stages.iter().find(|s| s.name == "cat");
            let lacks = &report.recording.lacks;
            first
                && (280_000_000..400_000_000).contains(&slept)
                && cat.is_some_and(|cat| cat.waited_for == "sleep")
                && lacks.iter().any(|lack| lack.contains("wakers are inferred"))
        });
        if !done {
            return;
        }
    }
}

#[test]
fn without_perf_tiny_reads_are_found_at_their_line() {
    let Some(_alone) = leave(None) else { return };
    let input = program::scratch_folder().join("stops-input");
    std::fs::write(&input, vec![b'x'; 100_000]).unwrap();
    let line = format!("{} < {}", built("count_bytes").display(), input.display());
    in_some_attempt("EPERM", &["sh", "-c", &line], |report| {
        let first = report.findings.first().filter(|first| first.class == "tiny-reads");
        let sites = first.map_or(&[][..], |first| &first.sites);
        sites.iter().any(|site| site.file.ends_with("count_bytes.c"))
    });
}

#[test]
fn without_perf_work_between_dense_calls_is_no_time_in_calls() {
    let Some(_alone) = leave(None) else { return };
    let program = built("work_between");
    in_some_attempt("EPERM", &[program.to_str().unwrap(), "300000"], |report| {
        let work: u64 =
            report.ledger.iter().filter(|r| r.account == "net-work").map(|r| r.ns).sum();
        let calls: u64 =
            report.ledger.iter().filter(|r| r.account == "tiny-reads").map(|r| r.ns).sum();
        // It is over 90 % of the time without tracing. The kernel samples every few milliseconds.
        work * 10 > report.net_ns * 6 && calls * 10 < report.net_ns * 3
    });
}

#[test]
fn without_perf_work_between_dense_calls_has_its_place() {
    let Some(_alone) = leave(None) else { return };
    let program = built("clears_between");
    in_some_attempt("EPERM", &[program.to_str().unwrap(), "150000"], |report| {
        let first = report.findings.first().filter(|first| first.class == "zeroing");
        let sites = first.map_or(&[][..], |first| &first.sites);
        sites.iter().any(|site| site.file.ends_with("clears_between.c"))
    });
}

/// On one CPU both go past their calls, and each read waits. Questions and answers are neither tiny reads nor tiny writes.
#[test]
fn without_perf_calls_of_two_kinds_are_each_counted() {
    let Some(_alone) = leave(None) else { return };
    let Some(traced) = deadweight("EPERM") else { return };
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let cpus = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap();
    let first: String = cpus.trim().chars().take_while(char::is_ascii_digit).collect();
    let mut command = Command::new("taskset");
    command.args(["-c", &first]).arg(traced.get_program()).args(traced.get_args());
    command.args(["--export-json", "-", "--"]).arg(built("turns")).arg("20000");
    let report = report_of(command.stdin(Stdio::null()));
    for name in ["calls/read", "calls/write"] {
        let count = report.counts.iter().find(|count| count.name == name).unwrap();
        assert!((39_000..41_000).contains(&count.value), "{report:?}");
    }
    let waits = report.findings.iter().filter(|found| found.class == "wait-input");
    for site in waits.flat_map(|found| &found.sites) {
        assert_eq!(site.function, "take", "{report:?}");
    }
    assert!(report.findings.iter().all(|found| !found.class.starts_with("tiny")), "{report:?}");
}

#[test]
fn stopped_programs_end_as_they_would() {
    let Some(_alone) = leave(None) else { return };
    let own_child = built("traces_itself");
    let own_child = own_child.to_str().unwrap();
    for (script, code, said) in [
        ("exit 7", 7, ""),
        ("kill -TERM $$", 128 + 15, ""),
        ("kill -KILL $$", 128 + 9, ""),
        ("trap 'echo caught' USR1; kill -USR1 $$; echo after", 0, "caught\nafter\n"),
        ("(sleep .1; kill -CONT $$) & kill -STOP $$; wait; echo went on", 0, "went on\n"),
        ("sleep 5 & kill -9 $!; wait $!; echo $?", 0, "137\n"),
        ("yes | head -n 1", 0, "y\n"),
        (own_child, 0, "the child ended with 7\n"),
    ] {
        let Some(out) = run(&["sh", "-c", script]) else { return };
        assert_eq!(out.status.code(), Some(code), "{script}");
        assert_eq!(String::from_utf8_lossy(&out.stdout), said, "{script}");
    }
}

#[test]
fn a_program_with_more_rights_keeps_them_though_it_cannot_be_traced() {
    let missing = program::tool("setpriv").err();
    let Some(_alone) = leave(missing) else { return };
    let Some(mut command) = deadweight("EPERM") else { return };
    let folder = Path::new("/tmp").join(format!("deadweight-stops-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let id = folder.join("id");
    std::fs::copy("/usr/bin/id", &id).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o4755);
    std::fs::set_permissions(&id, mode).unwrap();
    let filter = command.get_program().to_owned();
    command = Command::new(filter);
    let ours = folder.join("deadweight");
    std::fs::copy(env!("CARGO_BIN_EXE_deadweight"), &ours).unwrap();
    command.args(["EPERM", "setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]);
    let line = format!("{} -u", id.display());
    let out = command.arg(&ours).args(["--", "sh", "-c", &line]).output().unwrap();
    let said = String::from_utf8_lossy(&out.stdout).into_owned();
    let words = String::from_utf8_lossy(&out.stderr).replace("\n        ", " ");
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!(said, "0\n", "{words}");
    assert!(words.contains("set-user-id"), "{words}");
}

#[test]
fn a_program_goes_on_when_its_tracer_is_killed() {
    let Some(_alone) = leave(None) else { return };
    let mark = program::scratch_folder().join("stops-mark");
    for delay in [0, 1, 10, 50, 100] {
        let _ = std::fs::remove_file(&mark);
        let busy = "i=0; while [ $i -lt 2000 ]; do i=$((i+1)); read x < /dev/null; done";
        let to = mark.display();
        let line = format!("echo begun > {to}; {busy}; sleep .2; echo done > {to}");
        let Some(mut command) = deadweight("EPERM") else { return };
        let mut recorder = command.args(["--", "sh", "-c", &line]).spawn().unwrap();
        assert!(comes(&mark, "begun\n"), "it did not begin");
        std::thread::sleep(Duration::from_millis(delay));
        recorder.kill().unwrap();
        recorder.wait().unwrap();
        assert!(comes(&mark, "done\n"), "killed after {delay} ms");
    }
}

/// Whether a file says so within some seconds.
fn comes(path: &Path, wanted: &str) -> bool {
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(20) {
        if std::fs::read_to_string(path).is_ok_and(|text| text == wanted) {
            return true;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    false
}

#[test]
fn two_thousand_threads_at_once_are_all_recorded() {
    let Some(_alone) = leave(None) else { return };
    let Some(mut command) = deadweight("EPERM") else { return };
    let file = program::scratch_folder().join("many-threads.dwt");
    command.args(["record", "-o"]).arg(&file).arg("--").arg(built("many_threads"));
    let out = command.arg("2000").output().unwrap();
    assert_eq!(String::from_utf8_lossy(&out.stdout), "2000\n");
    let mut dump = Command::new(env!("CARGO_BIN_EXE_deadweight"));
    let text = dump.arg("dump").arg(&file).arg("--text").output().unwrap().stdout;
    let text = String::from_utf8_lossy(&text);
    let born = text.lines().filter(|l| l.contains(" fork ") && l.contains(" thread")).count();
    assert_eq!(born, 2000, "{}", String::from_utf8_lossy(&out.stderr));
}

#[test]
fn doctor_names_this_rung_and_what_it_has_instead() {
    let Some(_alone) = leave(None) else { return };
    let Some(mut command) = deadweight("EPERM") else { return };
    let out = command.arg("doctor").output().unwrap();
    let text = String::from_utf8_lossy(&out.stdout);
    assert!(text.contains("stops:") && text.contains("here: "), "{text}");
}

#[test]
fn a_traced_process_cannot_be_recorded_and_the_error_says_so() {
    let missing = program::tool("strace").err();
    let Some(_alone) = leave(missing) else { return };
    let Some(filtered) = deadweight("EPERM") else { return };
    let mut command = Command::new("strace");
    command.args(["-f", "-o", "/dev/null"]).arg(filtered.get_program()).args(filtered.get_args());
    let out = command.args(["--", "true"]).output().unwrap();
    let words = String::from_utf8_lossy(&out.stderr);
    assert!(!out.status.success() && words.contains("trace"), "{words}");
}
