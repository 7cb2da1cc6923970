//! `--pid`: attaching to running programs, and detaching without leaving anything behind.

use crate::support::{Bench, Said, deadweight, live, run, said};
use std::fs;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A program that runs until the value is dropped.
struct Runs(Child);

impl Runs {
    fn new(command: &[&str]) -> Self {
        let quiet = || Stdio::null();
        let child = Command::new(command[0])
            .args(&command[1..])
            .stdin(quiet())
            .stdout(quiet())
            .stderr(quiet())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(200));
        Self(child)
    }

    fn pid(&self) -> String {
        self.0.id().to_string()
    }

    /// A field of its `/proc/PID/status`.
    fn status(&self, field: &str) -> String {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(field)).unwrap();
        line.trim().to_owned()
    }
}

impl Drop for Runs {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A number of the JSON report, at its top.
fn number(said: &Said, key: &str) -> u64 {
    let mark = format!("\n  \"{key}\": ");
    let at = said.out.find(&mark).unwrap_or_else(|| panic!("no {key} in {}", said.out));
    let digits: String =
        said.out[at + mark.len()..].chars().take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap()
}

const DENSE: [&str; 4] = ["dd", "if=/dev/zero", "of=/dev/null", "bs=1"];

#[test]
fn the_interval_is_the_wall_time_and_the_finding_that_of_a_run() {
    live!();
    let program = Runs::new(&DENSE);
    let said = run(&["--pid", &program.pid(), "--for", "400ms", "--export-json", "-"]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(number(&said, "wall_ns"), 400_000_000, "{}", said.out);
    assert!(said.out.contains("\"attached\": true"), "{}", said.out);
    assert!(said.err.contains(&format!("attached to process {}", program.pid())), "{}", said.err);
    let first = said.err.lines().find(|line| line.starts_with("  1  ")).unwrap_or_default();
    assert!(first.contains("tiny"), "{}", said.err);
    assert!(!said.err.contains("still running"), "{}", said.err);
}

#[test]
fn what_cannot_be_joined_is_refused_in_one_sentence() {
    live!();
    let refused = |said: Said, words: &[&str]| {
        assert_eq!(said.code, 2, "{}", said.err);
        for word in words {
            assert!(said.err.contains(word), "no {word:?} in {}", said.err);
        }
        assert_eq!(said.err.lines().count(), 1, "{}", said.err);
    };
    refused(run(&["--pid", "4194305"]), &["4194305", "no such process"]);
    let itself = "exec \"$0\" --pid $$";
    let out = Command::new("sh").args(["-c", itself, env!("CARGO_BIN_EXE_deadweight")]).output();
    refused(said(&out.unwrap()), &["itself"]);
    let threaded = Runs::new(&["python3", "-c", THREAD]);
    let tasks = fs::read_dir(format!("/proc/{}/task", threaded.pid())).unwrap();
    let names = tasks.map(|t| t.unwrap().file_name().into_string().unwrap());
    let thread = names.max_by_key(|t| t.parse::<u32>().unwrap()).unwrap();
    if thread != threaded.pid() {
        refused(run(&["--pid", &thread]), &["thread of process", &threaded.pid()]);
    }
    let kernel = fs::read_to_string("/proc/2/status").unwrap_or_default();
    if kernel.contains("kthreadd") {
        refused(run(&["--pid", "2"]), &["kernel thread"]);
    }
    let wrong = run(&["--pid", "1", "--", "true"]);
    assert_eq!(wrong.code, 2, "{}", wrong.err);
}

#[test]
fn an_ordinary_user_gets_the_command_that_helps() {
    live!();
    let bench = Bench::new();
    let binary = bench.copy();
    let mut command = Command::new(&binary);
    command.args(["--pid", &std::process::id().to_string()]).current_dir("/");
    let ordinary = std::os::unix::process::CommandExt::uid(&mut command, 65_534);
    let said = said(&ordinary.output().unwrap());
    assert_eq!((said.code, said.err.lines().count()), (2, 1), "{}", said.err);
    assert!(said.err.contains("sudo") || said.err.contains("another user"), "{}", said.err);
}

#[test]
fn its_end_ends_the_recording() {
    live!();
    let program = Runs::new(&["sleep", "6"]);
    let said = run(&["--pid", &program.pid(), "--for", "60s", "--export-json", "-"]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(number(&said, "wall_ns") < 6_000_000_000, "{}", said.out);
    assert!(said.err.contains("waiting"), "{}", said.err);
}

#[test]
fn ctrl_c_ends_the_recording_and_not_the_program() {
    live!();
    let mut program = Runs::new(&["sh", "-c", "while :; do :; done"]);
    let mut command = deadweight();
    command.args(["--pid", &program.pid()]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    std::thread::sleep(Duration::from_millis(1500));
    let interrupted = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(interrupted.unwrap().success());
    let said = said(&child.wait_with_output().unwrap());
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.err.contains("wall time"), "{}", said.err);
    assert!(program.0.try_wait().unwrap().is_none(), "the program goes on");
}

/// After a moment a thread begins to read byte by byte.
const THREAD: &str = "import os, threading, time
def read():
    fd = os.open('/dev/zero', os.O_RDONLY)
    while True:
        os.read(fd, 1)
def begin():
    time.sleep(1.2)
    threading.Thread(target=read).start()
threading.Thread(target=begin).start()
time.sleep(60)";

#[test]
fn threads_are_followed_whether_they_run_already_or_start_later() {
    live!();
    let program = Runs::new(&["python3", "-c", THREAD]);
    for _ in 0..2 {
        let said = run(&["--pid", &program.pid(), "--for", "2500ms", "--cpu"]);
        assert_eq!(said.code, 0, "{}", said.err);
        assert!(said.err.contains("read ×"), "{}", said.err);
    }
}

#[test]
fn a_recording_of_it_is_kept() {
    live!();
    let bench = Bench::new();
    let file = bench.file("t.dwt", vec![b'x'; 1 << 20]);
    let program = Runs::new(&DENSE);
    let pid = program.pid();
    let recorded = run(&["record", "--pid", &pid, "--for", "200ms", "-o", file.to_str().unwrap()]);
    assert_eq!(recorded.code, 0, "{}", recorded.err);
    let report = run(&["report".as_ref(), file.as_os_str()]);
    assert!(report.out.contains("attached to process"), "{report:?}");
    let text = run(&["dump".as_ref(), file.as_os_str(), "--text".as_ref()]);
    assert!(text.out.lines().any(|line| line == "attached"), "{}", &text.out[..500]);
}

#[test]
fn nothing_is_left_behind() {
    live!();
    let bench = Bench::new();
    let binary = bench.copy();
    let program = Runs::new(&DENSE);
    let before = (program.status("TracerPid:"), program.status("Threads:"));
    for _ in 0..2 {
        let out = Command::new(&binary).args(["--pid", &program.pid(), "--for", "100ms"]).output();
        assert!(out.unwrap().status.success());
    }
    assert_eq!((program.status("TracerPid:"), program.status("Threads:")), before);
    let ours = || {
        let processes = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
        processes.filter(|p| fs::read_link(p.path().join("exe")).is_ok_and(|e| e == binary)).count()
    };
    let begun = Instant::now();
    while ours() > 0 && begun.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(ours(), 0, "processes that close what was open are gone");
    let places = fs::read_to_string("/sys/kernel/tracing/uprobe_events").unwrap_or_default();
    assert!(!places.contains(binary.to_str().unwrap()), "{places}");
}
