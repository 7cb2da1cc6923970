//! `--pid` without root or perf events: deadweight attaches with ptrace, and the program goes on undisturbed,
//! even if deadweight is killed.

use crate::each_rung::{await_line, on_each_rung};
use crate::program;
use crate::rungs::{Home, USER};
use crate::truth::leave;
use deadweight_report::report::Report;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

/// A program of the user that runs until the value is dropped.
struct Runs(Child);

impl Runs {
    fn new(home: &Home, words: &[&str]) -> Self {
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).current_dir(home.path()).uid(USER).gid(USER);
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let child = command.spawn().unwrap();
        std::thread::sleep(Duration::from_millis(300));
        Self(child)
    }

    fn pid(&self) -> String {
        self.0.id().to_string()
    }

    /// The tracer of its threads, and how many of them are stopped.
    fn traced(&self) -> Vec<String> {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.pid())).unwrap();
        let status = |task: std::fs::DirEntry| {
            std::fs::read_to_string(task.path().join("status")).unwrap_or_default()
        };
        let lines = tasks.flat_map(|task| {
            let text = status(task.unwrap());
            let odd = |line: &&str| {
                line.starts_with("TracerPid:") && line.trim_end() != "TracerPid:\t0"
                    || line.starts_with("State:\tt")
                    || line.starts_with("State:\tT")
            };
            text.lines().filter(odd).map(str::to_owned).collect::<Vec<_>>()
        });
        lines.collect()
    }

    fn ends(mut self) -> (Option<i32>, String) {
        let mut said = String::new();
        std::io::Read::read_to_string(&mut self.0.stdout.take().unwrap(), &mut said).unwrap();
        (self.0.wait().unwrap().code(), said)
    }
}

impl Drop for Runs {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn report(out: &Output) -> Report {
    let report: Report = serde_json::from_slice(&out.stdout)
        .unwrap_or_else(|e| panic!("{e}: {}", String::from_utf8_lossy(&out.stderr)));
    assert_eq!(report.ledger.iter().map(|r| r.ns).sum::<u64>(), report.wall_ns);
    report
}

#[test]
fn a_user_joins_his_program_and_sees_what_it_does() {
    let Some(_alone) = leave(None) else { return };
    let home = Home::new("join");
    let program = Runs::new(&home, &["dd", "if=/dev/zero", "of=/dev/null", "bs=1"]);
    let arguments = ["--pid", &program.pid(), "--for", "500ms", "--export-json", "-"];
    let mut seen = Vec::new();
    for _ in 0..4 {
        let said = report(&home.run(&[], &arguments));
        assert_eq!((said.wall_ns, said.recording.rung.as_str()), (500_000_000, "stops"));
        assert_eq!(program.traced(), [""; 0]);
        seen = said.findings;
        if seen.first().is_some_and(|first| first.class.starts_with("tiny-")) {
            return;
        }
    }
    panic!("no tiny reads or writes: {seen:?}");
}

#[test]
fn waits_of_every_kind_go_on_even_if_deadweight_is_killed() {
    let (missing, program) = match program::build("waits") {
        Ok(program) => (None, program),
        Err(reason) => (Some(reason), Path::new("").into()),
    };
    let Some(_alone) = leave(missing) else { return };
    let home = Home::new("waits");
    let program = home.put(&program, 0o755);
    let program = Runs::new(&home, &[program.to_str().unwrap(), "6500"]);
    for time in ["20ms", "100ms", "300ms"] {
        let out = home.run(&[], &["--pid", &program.pid(), "--for", time]);
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        assert_eq!(program.traced(), [""; 0]);
    }
    for (delay, signal) in
        [(150, "-KILL"), (250, "-KILL"), (400, "-KILL"), (600, "-TERM"), (700, "-INT")]
    {
        let mut recorder =
            home.command(&[], &["--pid", &program.pid()]).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(delay));
        Command::new("kill").args([signal, &recorder.id().to_string()]).status().unwrap();
        recorder.wait().unwrap();
        assert_eq!(program.traced(), [""; 0], "after {signal}");
    }
    let (code, said) = program.ends();
    assert_eq!(code, Some(0), "{said}");
    assert!(said.starts_with("all as ever"), "{said}");
}

#[test]
fn the_end_of_a_joined_program_is_reported() {
    let Some(_alone) = leave(None) else { return };
    let home = Home::new("becomes");
    let program = Runs::new(&home, &["sh", "-c", "sleep 0.8; exec sleep 0.7"]);
    let said = report(&home.run(&[], &["--pid", &program.pid(), "--export-json", "-"]));
    let slept: u64 =
        said.ledger.iter().filter(|r| r.account.starts_with("wait-sleep")).map(|r| r.ns).sum();
    assert!(slept * 2 > said.wall_ns, "{:?}", said.ledger);
    assert_eq!(program.ends().0, Some(0));
}

#[test]
fn a_process_that_a_user_cannot_join_is_refused_in_a_sentence() {
    let missing = program::tool("strace").err();
    let Some(_alone) = leave(missing) else { return };
    let home = Home::new("refused");
    let refused = |pid: &str, words: &str| {
        let out = home.run(&[], &["--pid", pid, "--for", "1s"]);
        let said = String::from_utf8_lossy(&out.stderr);
        assert_eq!((out.status.code(), said.lines().count()), (Some(2), 1), "{said}");
        assert!(said.contains(words), "no {words:?} in {said}");
    };
    refused(&std::process::id().to_string(), "sudo helps");
    let traced = Runs::new(&home, &["strace", "-o", "/dev/null", "sleep", "6"]);
    let child = format!("/proc/{0}/task/{0}/children", traced.pid());
    let child = std::fs::read_to_string(child).unwrap();
    refused(child.trim(), "traces it already");
    if std::fs::read_to_string("/proc/2/status").unwrap_or_default().contains("kthreadd") {
        refused("2", "kernel thread");
    }
}

#[test]
fn signals_reach_a_joined_program_each_once() {
    let counter = program::build("minds_signals");
    let missing = counter.as_ref().err().cloned();
    on_each_rung("signalled", missing, |rung, home, wrapper| {
        let program = home.put(counter.as_ref().unwrap(), 0o755);
        let program = Runs::new(home, &[program.to_str().unwrap()]);
        let pid = await_line(&home.path().join("ready"));
        let mut joins = home.command(wrapper, &["--pid", &pid, "--export-json", "-"]);
        let joins = joins.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        std::thread::sleep(Duration::from_secs(1));
        let many = format!("for i in $(seq 300); do kill -34 {pid}; done");
        let stopped = format!("kill -STOP {pid}; {many}; sleep 0.4; kill -CONT {pid}");
        let script = format!("{many}; {stopped}; {many}; sleep 0.1; kill -HUP {pid}");
        assert!(Command::new("sh").args(["-c", &script]).status().unwrap().success());
        assert_eq!(program.ends(), (Some(7), "900\n".to_owned()), "{rung}");
        let said = report(&joins.wait_with_output().unwrap());
        let stopped = said.ledger.iter().filter(|r| r.note.contains("stopped")).map(|r| r.ns);
        assert!(stopped.sum::<u64>() > 300_000_000, "{rung}: {:?}", said.ledger);
    });
}
