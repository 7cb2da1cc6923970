//! A program behaves the same with and without deadweight: environment, input, output and exit.

use crate::support::{Bench, Said, deadweight, live, run, said};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Output, Stdio};

/// How a command is run: bare, once, repeated, recorded.
const WAYS: [&[&str]; 4] =
    [&[], &["-q", "--"], &["-q", "-r", "2", "--"], &["record", "-q", "-o", "/dev/null", "--"]];

fn command(way: &[&str], words: &[&str]) -> Command {
    let mut command = match way {
        [] => {
            let mut command = Command::new(words[0]);
            command.env("LC_ALL", "C.UTF-8").env_remove("NO_COLOR").env_remove("COLUMNS");
            command.args(&words[1..]);
            command
        }
        way => {
            let mut command = deadweight();
            command.args(way).args(words);
            command
        }
    };
    command.stdin(Stdio::null());
    command
}

/// Runs `words` in every way; all must give the same as the bare run.
fn same(words: &[&str], prepare: impl Fn(&mut Command)) {
    let outputs: Vec<Output> = WAYS
        .iter()
        .map(|way| {
            let mut command = command(way, words);
            prepare(&mut command);
            command.output().unwrap()
        })
        .collect();
    let bare = said(&outputs[0]);
    for (way, output) in WAYS.iter().zip(&outputs).skip(1) {
        let ours = said(output);
        assert_eq!(ours.out, bare.out, "{way:?} {words:?}: {}", ours.err);
        assert_eq!(ours.err, bare.err, "{way:?} {words:?}");
        let code = bare.code;
        assert_eq!(ours.code, code, "{way:?} {words:?}");
    }
}

#[test]
fn output_and_exit_code() {
    live!();
    same(&["sh", "-c", "echo out; echo err >&2; exit 0"], |_| {});
    same(&["sh", "-c", "echo out; exit 42"], |_| {});
    same(&["sh", "-c", "printf 'a\\0b\\377'"], |_| {});
}

#[test]
fn descriptors_environment_directory_umask() {
    live!();
    same(&["ls", "/proc/self/fd"], |_| {});
    same(&["env"], |command| {
        command.env_clear().env("LC_ALL", "C").env("ODD", "a b\nc").env("PATH", "/usr/bin:/bin");
    });
    same(&["sh", "-c", "pwd; umask; ulimit -n; nice"], |command| {
        command.current_dir("/usr");
    });
}

#[test]
fn signal_dispositions_and_masks() {
    live!();
    let signals = ["grep", "^SigBlk\\|^SigIgn\\|^SigCgt", "/proc/self/status"];
    same(&signals, |_| {});
    let bare =
        command(&[], &["sh", "-c", "trap '' PIPE INT; exec grep '^SigIgn' /proc/self/status"])
            .output()
            .unwrap();
    for way in &WAYS[1..] {
        let script = format!(
            "trap '' PIPE INT; exec {} {} grep '^SigIgn' /proc/self/status",
            env!("CARGO_BIN_EXE_deadweight"),
            way.join(" ")
        );
        let ours = command(&[], &["sh", "-c", &script]).output().unwrap();
        assert_eq!(said(&ours).out, said(&bare).out, "{way:?}");
    }
}

#[test]
fn scheduling_policy_and_niceness_in_every_run() {
    live!();
    let bench = Bench::new();
    let log = bench.path("log");
    // Fields 18, 19 and 41 of its own stat: priority, niceness, policy (3 is SCHED_BATCH).
    let script = format!("cut -d' ' -f18,19,41 /proc/self/stat >> {}", log.display());
    for way in WAYS {
        let tool = if way.is_empty() { "" } else { env!("CARGO_BIN_EXE_deadweight") };
        let line = format!("nice -n 5 chrt -b 0 {tool} {} sh -c \"{script}\"", way.join(" "));
        assert!(command(&[], &["sh", "-c", &line]).status().unwrap().success(), "{way:?}");
    }
    let seen = std::fs::read_to_string(&log).unwrap();
    assert!(seen.lines().count() >= 6, "{seen}");
    // The bare run comes first; the tests may already run with another niceness.
    let bare = seen.lines().next().unwrap();
    assert!(bare.ends_with(" 3") && seen.lines().all(|line| line == bare), "{seen}");
}

#[test]
fn process_group_and_session() {
    live!();
    // Fields 5 and 6 of its own stat: process group and session.
    same(&["cut", "-d ", "-f5,6", "/proc/self/stat"], |_| {});
    let alone = |way: &[&str]| {
        let words = [
            "sh",
            "-c",
            "set -- $(cat /proc/$PPID/stat); [ $5 = $(cut -d' ' -f5 /proc/$$/stat) ] && echo same",
        ];
        let mut command = command(way, &words);
        command.process_group(0);
        said(&command.output().unwrap()).out
    };
    for way in &WAYS[1..] {
        assert_eq!(alone(way), "same\n", "{way:?}");
    }
}

#[test]
fn standard_input_of_each_kind() {
    live!();
    let bench = Bench::new();
    let text: String = (0..20_000).map(|i| format!("line {i}\n")).collect();
    let file = bench.file("input", &text);
    same(&["wc"], |command| {
        command.stdin(File::open(&file).unwrap());
    });
    same(&["sh", "-c", "read a; echo $a; [ -p /dev/stdin ] || [ -f /dev/stdin ]"], |command| {
        command.stdin(File::open(&file).unwrap());
    });
    for way in WAYS {
        let mut command = command(way, &["wc", "-c"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(said(&output).out.trim(), text.len().to_string(), "{way:?}");
    }
}

#[test]
fn the_position_in_an_input_file_is_left_where_the_program_left_it() {
    live!();
    let bench = Bench::new();
    let file = bench.file("input", "first\nsecond\n");
    let after = |way: &[&str]| {
        let mut rest = String::new();
        let mut input = File::open(&file).unwrap();
        let mut command = command(way, &["head", "-n", "1"]);
        command.stdin(input.try_clone().unwrap());
        let out = said(&command.output().unwrap()).out;
        input.read_to_string(&mut rest).unwrap();
        (out, rest)
    };
    let bare = after(&[]);
    assert_eq!(bare.0, "first\n");
    for way in &WAYS[1..] {
        assert_eq!(after(way), bare, "{way:?}");
    }
}

#[test]
fn a_terminal_stays_a_terminal_of_its_size() {
    live!();
    let on_terminal = |way: &[&str]| {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let ours = openpt(flags).unwrap();
        grantpt(&ours).unwrap();
        unlockpt(&ours).unwrap();
        let name = ptsname(&ours, Vec::new()).unwrap();
        let path = std::ffi::OsStr::from_bytes(name.as_bytes());
        let theirs = OpenOptions::new().read(true).write(true).open(path).unwrap();
        let size = Winsize { ws_row: 33, ws_col: 101, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&theirs, size).unwrap();
        let script = "stty size; for fd in 0 1 2; do [ -t $fd ] && echo $fd; done";
        let mut command = command(way, &["sh", "-c", script]);
        let stream = || Stdio::from(theirs.try_clone().unwrap());
        command.stdin(stream()).stdout(stream()).stderr(stream());
        let mut child = command.spawn().unwrap();
        drop(command);
        assert!(child.wait().unwrap().success(), "{way:?}");
        drop(theirs);
        let mut text = Vec::new();
        // A terminal without its other end reads as an error, after all that was written.
        let _ = File::from(ours).read_to_end(&mut text);
        String::from_utf8_lossy(&text).into_owned()
    };
    let bare = on_terminal(&[]);
    assert!(bare.starts_with("33 101\r\n0\r\n1\r\n2"), "{bare:?}");
    for way in &WAYS[1..] {
        assert_eq!(on_terminal(way), bare, "{way:?}");
    }
}

/// The result of `signal` sent to deadweight alone while a program that handles it runs under `options`.
fn signalled(options: &[&str], signal: &str) -> Said {
    let bench = Bench::new();
    let ready = bench.path("ready");
    let script = format!(
        "trap 'echo got it; exit 7' {signal}; : > {}; while :; do sleep 0.05; done",
        ready.display()
    );
    let child = deadweight()
        .args(options)
        .args(["--", "sh", "-c", &script])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    while !ready.exists() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let pid = child.id().to_string();
    assert!(Command::new("kill").args([&format!("-{signal}"), &pid]).status().unwrap().success());
    said(&child.wait_with_output().unwrap())
}

#[test]
fn a_signal_sent_to_us_reaches_the_program() {
    live!();
    for signal in ["TERM", "INT", "QUIT", "HUP"] {
        let said = signalled(&["-q"], signal);
        assert_eq!((said.code, said.out.as_str()), (7, "got it\n"), "{signal}");
    }
}

#[test]
fn a_program_that_minds_a_signal_is_not_repeated_after_it() {
    live!();
    // It would be run twenty times without end: no second signal is sent.
    let said = signalled(&["-i", "-r", "20"], "INT");
    assert!(said.err.contains("interrupted"), "{}", said.err);
}

#[test]
fn the_descriptor_limit_grows_for_deadweight_and_not_for_the_program() {
    live!();
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -S -n 32 && exec \"$@\"", "sh"]);
    command.arg(deadweight().get_program()).args(["-q", "-r", "2", "--", "sh", "-c", "ulimit -n"]);
    let said = said(&command.output().unwrap());
    assert_eq!((said.code, said.out.as_str()), (0, "32\n"), "{}", said.err);
}

#[test]
fn with_too_few_descriptors_the_program_is_stopped_at_its_calls() {
    live!();
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -n 24 && exec \"$@\"", "sh"]).arg(deadweight().get_program());
    command.args(["--", "sh", "-c", "sleep 0.05; ulimit -n"]);
    let said = said(&command.output().unwrap());
    assert_eq!((said.code, said.out.as_str()), (0, "24\n"), "{}", said.err);
    // Who may raise the limit records as always.
    let lower = said.err.contains("only 24 files may be open");
    assert!(
        said.err.contains("wall time") && (lower || !said.err.contains("seen:")),
        "{}",
        said.err
    );
}

#[test]
fn the_report_keeps_out_of_standard_output() {
    live!();
    let said = run(&["--", "echo", "hello"]);
    assert_eq!(said.out, "hello\n");
    assert!(said.err.contains("wall time"), "{}", said.err);
    assert!(!said.err.contains('\u{1b}'), "no colours in a pipe");
    assert!(said.err.lines().all(|line| line.chars().count() <= 80), "{}", said.err);
}

#[test]
fn closed_descriptors_stay_closed() {
    live!();
    let seen = |way: &[&str]| {
        let tool = if way.is_empty() { "" } else { env!("CARGO_BIN_EXE_deadweight") };
        let look = "readlink /proc/self/fd/0 || echo closed";
        let script = format!("{tool} {} sh -c '{look}' <&-", way.join(" "));
        said(&command(&[], &["sh", "-c", &script]).output().unwrap()).out
    };
    let bare = seen(&[]);
    assert_eq!(bare, "closed\n");
    for way in &WAYS[1..] {
        assert_eq!(seen(way), bare, "{way:?}");
    }
}

/// The descriptors of a recording, as the program had them when it began.
#[test]
fn a_recording_knows_the_program_s_own_descriptors_and_none_of_ours() {
    live!();
    let bench = Bench::new();
    let file = bench.path("t.dwt");
    let bare = command(&[], &["sh", "-c", "ls /proc/$$/fd"]).output().unwrap();
    let expected: Vec<String> = said(&bare).out.lines().map(str::to_owned).collect();
    let record = format!("{} record -q -o", env!("CARGO_BIN_EXE_deadweight"));
    let script = format!("{record} {} sleep 0.1 <&-", file.display());
    assert!(command(&[], &["sh", "-c", &script]).status().unwrap().success());
    let dump = run(&["dump".as_ref(), file.as_os_str(), "--text".as_ref()]).out;
    let descriptor = |line: &str| Some(line.split_once("] fd ")?.1.to_owned());
    let found: Vec<String> = dump.lines().filter_map(descriptor).collect();
    assert!(found.contains(&"0 \"\"".to_owned()), "standard input is closed: {found:?}");
    for line in &found {
        let (fd, _) = line.split_once(' ').unwrap();
        assert!(expected.iter().any(|known| known == fd), "{line} is not among {expected:?}");
    }
}
