//! Large and long recordings, and bad conditions: the program runs to its normal end, and the recording can be read.

use crate::support::{Bench, live, mode, run, said};
use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How often the recorder is killed; a thousand times by hand before a release.
fn kills() -> u64 {
    std::env::var("DEADWEIGHT_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(30)
}

/// A process that has `script` among its arguments, if there is one.
fn running(script: &str) -> Option<String> {
    let processes = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let commands = processes.map(|process| process.path().join("cmdline"));
    commands
        .filter(|path| fs::read_to_string(path).is_ok_and(|c| c.contains(script)))
        .map(|path| path.display().to_string())
        .next()
}

#[test]
fn killed_at_any_instant_it_harms_no_program() {
    live!();
    let bench = Bench::new();
    let file = bench.path("t.dwt");
    let binary = bench.copy();
    let mut instant = 12_345_u64;
    let (mut started, mut opened) = (0, 0);
    for kill in 0..kills() {
        let _ = fs::remove_file(&file);
        let done = bench.path(&format!("done-{kill}"));
        let script =
            format!("for i in 1 2 3 4; do ls / > /dev/null; done; echo yes >> {}", done.display());
        let mut child = Command::new(&binary)
            .args(["record", "-q", "-o"])
            .arg(&file)
            .args(["--", "sh", "-c", &script])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        instant = instant.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        std::thread::sleep(Duration::from_micros((instant >> 33) % 800_000));
        child.kill().unwrap();
        child.wait().unwrap();
        // A program that was already started runs to its end; another one never starts.
        let until = Instant::now() + Duration::from_secs(30);
        while let Some(process) = running(&script) {
            assert!(Instant::now() < until, "{process} goes on for ever");
            std::thread::sleep(Duration::from_millis(5));
        }
        if let Ok(text) = fs::read_to_string(&done) {
            started += 1;
            assert_eq!(text, "yes\n", "it ran once and to its end");
        }
        if file.exists() {
            assert_eq!(mode(&file), 0o600);
            let said = run(&["report".as_ref(), file.as_os_str()]);
            assert!(said.code == 0 || said.err.lines().count() == 1, "{said:?}");
            opened += u64::from(said.code == 0);
        }
    }
    eprintln!("of {} that were killed, {started} had started, {opened} left a report", kills());
    let ours = || {
        let processes = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
        processes.filter(|p| fs::read_link(p.path().join("exe")).is_ok_and(|e| e == binary)).count()
    };
    let until = Instant::now() + Duration::from_secs(30);
    while ours() > 0 && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(ours(), 0, "no process of deadweight is left");
}

#[test]
fn a_recording_has_the_size_that_was_allowed() {
    live!();
    let bench = Bench::new();
    let file = bench.path("t.dwt");
    let work = "for i in $(seq 60); do ls /usr/bin; done > /dev/null; exit 3";
    let size = ["record", "--max-size", "200K", "-o", file.to_str().unwrap()];
    let said = run(&[&size[..], &["--", "sh", "-c", work]].concat());
    assert_eq!(said.code, 3, "the program's own: {}", said.err);
    assert!(fs::metadata(&file).unwrap().len() <= 200 << 10);
    let report = run(&["report".as_ref(), file.as_os_str()]);
    assert_eq!(report.code, 0, "{}", report.err);
    let printed = report.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(printed.contains("later events are missing"), "{printed}");
    // The unknown time is a row of its own, not the state at the cut.
    assert!(printed.contains("not recorded records were lost"), "{printed}");
    let few = run(&["record", "--max-size", "1K", "--", "true"]);
    assert_eq!(few.code, 2);
    assert!(few.err.contains("64K"), "{}", few.err);
}

/// Two processes that wake each other alternately, many more times than ring buffers hold records.
const TURNS: &str = "import os
def turns(count, r, w, first):
    for _ in range(count):
        if first: os.write(w, b'x')
        os.read(r, 1)
        if not first: os.write(w, b'x')
a, b = os.pipe(), os.pipe()
child = os.fork()
if child == 0:
    turns(102000, a[0], b[1], False)
    os._exit(0)
os.kill(os.getppid(), 19)
turns(100000, b[0], a[1], True)
open('far', 'w').close()
turns(2000, b[0], a[1], True)
os.waitpid(child, 0)
print('done')";

#[test]
fn what_did_not_fit_into_the_rings_is_a_row_and_said() {
    live!();
    let bench = Bench::new();
    let file = bench.path("t.dwt");
    let mut command = crate::support::deadweight();
    command.args(["record", "-q", "-o"]).arg(&file).args(["--", "python3", "-c", TURNS]);
    command.current_dir(bench.path(".")).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    let pid = i32::try_from(child.id()).unwrap();
    let signal = |signal: &str| {
        let sent = Command::new("kill").args([signal, &pid.to_string()]).status();
        assert!(sent.unwrap().success(), "{signal}");
    };
    let until = Instant::now() + Duration::from_secs(120);
    let wait_for = |name: &str| {
        while !bench.path(name).exists() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(2));
        }
    };
    // The program stops the recorder when it begins: the ring buffers are not drained until then.
    wait_for("far");
    signal("-CONT");
    let said = said(&child.wait_with_output().unwrap());
    assert_eq!((said.code, said.out.as_str()), (0, "done\n"), "{said:?}");
    let json = run(&[
        "report".as_ref(),
        file.as_os_str(),
        "--export-json".as_ref(),
        "-".as_ref(),
        "-q".as_ref(),
    ]);
    let report = deadweight_report::report::Report::from_json(&json.out);
    let report = report.unwrap_or_else(|why| panic!("{why}: {json:?}"));
    let unrecorded = report.ledger.iter().filter(|row| row.account == "unrecorded");
    let unrecorded: u64 = unrecorded.map(|row| row.ns).sum();
    // The rings hold a tenth of what happens meanwhile.
    assert!(unrecorded > report.wall_ns / 50, "{unrecorded} of {}", report.wall_ns);
    let words = run(&["report".as_ref(), file.as_os_str()]);
    assert!(words.code == 0 && words.out.contains("were lost"), "{words:?}");
    eprintln!("not recorded: {} %", 100 * unrecorded / report.wall_ns);
}

/// What a command prints and how it ends, by itself and recorded.
fn same(words: &[&str]) {
    let plain =
        said(&Command::new(words[0]).args(&words[1..]).stdin(Stdio::null()).output().unwrap());
    let recorded = run(&[&["-q", "--"], words].concat());
    assert_eq!((plain.code, &plain.out), (recorded.code, &recorded.out), "{words:?}: {recorded:?}");
    assert_eq!(plain.err, recorded.err, "{words:?}");
}

const PYTHON: [&str; 2] = ["python3", "-c"];

#[test]
fn many_threads_and_many_processes_are_followed() {
    live!();
    let threads = "import threading
threading.stack_size(65536)
gate = threading.Event()
all = [threading.Thread(target=gate.wait) for _ in range(1000)]
[t.start() for t in all]
gate.set()
[t.join() for t in all]
print(len(all))";
    same(&[&PYTHON[..], &[threads]].concat());
    same(&["sh", "-c", "i=0; while [ $i -lt 1000 ]; do (exit 0); i=$((i+1)); done; echo $i"]);
}

#[test]
fn programs_that_do_not_want_to_be_watched_run_as_ever() {
    live!();
    // Not dumpable: other processes may not read it.
    let hidden = "import ctypes, os
ctypes.CDLL(None).prctl(4, 0)
print(sum(os.getppid() > 0 for _ in range(1000)))";
    same(&[&PYTHON[..], &[hidden]].concat());
    // Only read, write, exit and sigreturn are allowed from here on (strict seccomp).
    let strict = "import ctypes, os
libc = ctypes.CDLL(None)
os.write(1, b'before ')
libc.prctl(22, 1)
libc.write(1, b'after', 5)
libc.syscall(60, 5)";
    if cfg!(target_arch = "x86_64") {
        same(&[&PYTHON[..], &[strict]].concat());
    }
    // In namespaces of its own.
    same(&["unshare", "--pid", "--fork", "--mount-proc", "sh", "-c", "echo $$; exit 4"]);
    same(&["unshare", "--user", "--map-root-user", "--net", "id", "-u"]);
    // With a tracer of its own.
    if Command::new("strace").arg("-V").output().is_ok() {
        same(&["strace", "-qq", "-e", "trace=none", "sh", "-c", "echo traced; exit 6"]);
    } else {
        eprintln!("SKIPPED a program with a tracer: strace is not installed");
    }
    // With another user's permissions.
    same(&["setpriv", "--reuid", "1001", "--regid", "1001", "--clear-groups", "id", "-u"]);
}
