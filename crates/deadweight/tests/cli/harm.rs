//! Signals from outside, the death of the program or of deadweight, and full disks: the program is not harmed,
//! and the report says what is left of the recording.

use crate::support::{Bench, Said, deadweight, live, run, said};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Sends a signal as `kill` takes it: a name, and a process or, negative, a group.
fn send(signal: &str, to: &str) {
    let sent = Command::new("kill").args([&format!("-{signal}"), "--", to]).status().unwrap();
    assert!(sent.success(), "kill -{signal} {to}");
}

/// Waits for a file to have content, which the program writes when it is ready.
fn await_file(path: &Path) -> String {
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        match std::fs::read_to_string(path) {
            Ok(text) if text.ends_with('\n') => return text.trim().to_owned(),
            _ => assert!(Instant::now() < until, "{} was never written", path.display()),
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// deadweight in a process group of its own, as a shell starts it.
fn in_group(arguments: &[&str], script: &str) -> Child {
    let mut command = deadweight();
    command.args(arguments).args(["--", "sh", "-c", script]).process_group(0);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn ended(child: Child) -> Said {
    said(&child.wait_with_output().unwrap())
}

#[test]
fn an_interrupt_of_the_group_is_the_program_s_alone() {
    live!();
    let bench = Bench::new();
    let ready = bench.path("ready");
    let waits = format!("echo $$ > {}; while :; do sleep 0.02; done", ready.display());
    let child = in_group(&[], &format!("trap 'echo once; exit 7' INT; {waits}"));
    await_file(&ready);
    send("INT", &format!("-{}", child.id()));
    let caught = ended(child);
    assert_eq!((caught.code, caught.out.as_str()), (7, "once\n"), "{}", caught.err);
    assert!(caught.err.contains("wall time"), "the report covers what was seen: {}", caught.err);

    std::fs::remove_file(&ready).unwrap();
    let child = in_group(&[], &waits);
    await_file(&ready);
    send("INT", &format!("-{}", child.id()));
    let died = ended(child);
    assert_eq!(died.code, 130, "{}", died.err);
    assert!(died.err.contains("signal 2") && died.err.contains("wall time"), "{}", died.err);
}

/// Scripts end their children by `kill 0`. The signal reaches deadweight too, which does not forward it again.
#[test]
fn a_program_that_signals_its_group_hears_itself_once() {
    live!();
    for signal in ["INT", "TERM", "HUP", "QUIT"] {
        let script = format!("trap 'echo heard' {signal}; kill -{signal} 0; sleep 0.1; exit 7");
        let said = ended(in_group(&[], &script));
        assert_eq!((said.code, said.out.as_str()), (7, "heard\n"), "{signal}: {}", said.err);
    }
}

#[test]
fn an_interrupt_before_any_run_was_traced_is_said() {
    live!();
    let bench = Bench::new();
    let ready = bench.path("ready");
    let script = format!("echo $$ > {}; exec sleep 60", ready.display());
    let child = in_group(&["-r", "3"], &script);
    await_file(&ready);
    send("INT", &format!("-{}", child.id()));
    let said = ended(child);
    assert_eq!(said.code, 130, "{}", said.err);
    assert_eq!(said.err.lines().count(), 1, "{}", said.err);
    assert!(said.err.contains("interrupted"), "{}", said.err);
}

#[test]
fn a_program_that_is_killed_stopped_and_continued_from_outside() {
    live!();
    let bench = Bench::new();
    let ready = bench.path("ready");
    let child = in_group(&[], &format!("echo $$ > {}; exec sleep 60", ready.display()));
    send("KILL", &await_file(&ready));
    let killed = ended(child);
    assert_eq!(killed.code, 137, "{}", killed.err);
    assert!(killed.err.contains("signal 9") && killed.err.contains("wall time"), "{}", killed.err);

    std::fs::remove_file(&ready).unwrap();
    let script = format!("echo $$ > {}; sleep 0.1; echo done", ready.display());
    let child = in_group(&[], &script);
    let pid = await_file(&ready);
    send("STOP", &pid);
    std::thread::sleep(Duration::from_millis(300));
    send("CONT", &pid);
    let went_on = ended(child);
    assert_eq!((went_on.code, went_on.out.as_str()), (0, "done\n"), "{}", went_on.err);
}

#[test]
fn the_program_goes_on_if_we_are_killed_and_the_recording_opens() {
    live!();
    let bench = Bench::new();
    let (go, done, file) = (bench.path("go"), bench.path("done"), bench.path("t.dwt"));
    let script = format!(
        "exec 1>&- 2>&-; while [ ! -e {} ]; do sleep 0.02; done; echo yes > {}",
        go.display(),
        done.display()
    );
    let mut child = in_group(&["record", "-q", "-o", file.to_str().unwrap()], &script);
    let report = || run(&["report".as_ref(), file.as_os_str()]);
    let until = Instant::now() + Duration::from_secs(60);
    while report().code != 0 {
        assert!(Instant::now() < until, "nothing of the recording can be read: {:?}", report());
        std::thread::sleep(Duration::from_millis(20));
    }
    send("KILL", &child.id().to_string());
    assert_eq!(child.wait().unwrap().signal(), Some(9));
    bench.file("go", "");
    assert_eq!(await_file(&done), "yes");
    let said = report();
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.out.contains("breaks off"), "what is missing is said: {said:?}");
}

#[test]
fn a_reader_that_leaves_ends_the_program_as_without_us() {
    live!();
    for tool in ["", env!("CARGO_BIN_EXE_deadweight")] {
        let options = if tool.is_empty() { "" } else { "-q --" };
        let script = format!("{{ {tool} {options} yes; echo $? >&2; }} | head -n 1");
        let output = Command::new("sh").args(["-c", &script]).output().unwrap();
        let said = said(&output);
        assert_eq!((said.out.as_str(), said.err.trim()), ("y\n", "141"), "{tool}");
    }
}

#[test]
fn every_byte_of_a_long_output_arrives() {
    live!();
    let bench = Bench::new();
    let bytes: Vec<u8> = (0..3_000_000_u32).map(|i| (i * 7 + i / 256).to_le_bytes()[0]).collect();
    let file = bench.file("bytes", &bytes);
    for way in
        [&["-q", "--"][..], &["-q", "-r", "2", "--"], &["record", "-q", "-o", "/dev/null", "--"]]
    {
        let script = "tee /dev/stderr";
        let mut command = deadweight();
        command.args(way).args(["sh", "-c", script]);
        let output = command.stdin(std::fs::File::open(&file).unwrap()).output().unwrap();
        assert!(output.stdout == bytes, "{way:?}: {} bytes", output.stdout.len());
        assert!(output.stderr == bytes, "{way:?}: {} bytes", output.stderr.len());
    }
}

#[test]
fn a_disk_that_fills_up_costs_the_recording_and_not_the_program() {
    live!();
    let bench = Bench::new();
    let (dir, done) = (bench.path("small"), bench.path("done"));
    std::fs::create_dir(&dir).unwrap();
    let mounted = |then: &str| {
        let script = format!("mount -t tmpfs -o size=32k none {} && {then}", dir.display());
        said(&Command::new("unshare").args(["-m", "sh", "-c", &script]).output().unwrap())
    };
    let possible = mounted("echo yes");
    if possible.out != "yes\n" {
        eprintln!("SKIPPED: no mount namespace of its own for a small disk: {}", possible.err);
        return;
    }
    let work = format!(
        "for i in $(seq 300); do ls /usr/bin; done > /dev/null; echo yes > {}; exit 5",
        done.display()
    );
    let tool = env!("CARGO_BIN_EXE_deadweight");
    let full = mounted(&format!("{tool} record -o {}/t.dwt -- sh -c '{work}'", dir.display()));
    assert_eq!(full.code, 5, "the program's own: {full:?}");
    assert!(full.err.contains("No space left") && full.err.contains("t.dwt"), "{}", full.err);
    assert_eq!(full.err.lines().count(), 1, "{}", full.err);
    assert_eq!(await_file(&done), "yes");
}

#[test]
fn a_recording_that_may_not_be_read_is_said() {
    let bench = Bench::new();
    let file = bench.file("secret.dwt", "x");
    std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o000)).unwrap();
    let binary = bench.copy();
    let mut command = Command::new(&binary);
    command.args(["report".as_ref(), file.as_os_str()]).current_dir("/");
    // Root may read anything; other users are refused.
    let is_root = std::fs::metadata("/proc/self")
        .is_ok_and(|us| std::os::unix::fs::MetadataExt::uid(&us) == 0);
    if is_root {
        command.uid(65_534);
    }
    let said = said(&command.output().unwrap());
    assert_eq!(said.code, 2, "{said:?}");
    assert!(
        said.err.contains("secret.dwt") && said.err.contains("Permission denied"),
        "{}",
        said.err
    );
    assert_eq!(said.err.lines().count(), 1, "{}", said.err);
}
