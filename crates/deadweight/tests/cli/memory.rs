//! Little memory: the program runs to its normal end, the recording can be read, and the report says what is missing.

use crate::group::Group;
use crate::support::{Bench, FILTER, Said, USER, deadweight, limited, live, run, said, within};
use deadweight_report::report::Report;
use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::time::{Duration, Instant};

/// A cgroup with so much memory; `None`, with a message, if none can be made.
fn group(mib: u64) -> Option<Group> {
    let bytes = (mib << 20).to_string();
    let limits = ([("memory.limit_in_bytes", &*bytes)], [("memory.max", &*bytes)]);
    limited("memory", &limits.0, &limits.1)
}

/// Runs deadweight with these arguments in a group; `wrapper` is a command that starts it.
fn inside<S: AsRef<OsStr>>(
    group: &Group,
    bench: &Bench,
    wrapper: &[&str],
    arguments: &[S],
) -> Said {
    let mut command = Command::new("sh");
    command.args(["-c", &within(group), "env"]).args(wrapper).arg(bench.copy()).args(arguments);
    command.env("LC_ALL", "C.UTF-8").env("HOME", bench.path("."));
    said(&command.current_dir(bench.path(".")).output().unwrap())
}

/// Two processes that wake each other alternately, so many times: some eight records each time, and 900 bytes to weigh them.
const TURNS: &str = "import os, sys
a, b = os.pipe(), os.pipe()
turns = int(sys.argv[1])
if os.fork() == 0:
    for _ in range(turns):
        os.read(a[0], 1)
        os.write(b[1], b'x')
    os._exit(0)
for _ in range(turns):
    os.write(a[1], b'x')
    os.read(b[0], 1)
print('done')
os._exit(3)";

fn a_limit_costs_later_events_and_nothing_else(rung: &str, wrapper: &[&str]) {
    let bench = Bench::new();
    fs::set_permissions(bench.path("."), Permissions::from_mode(0o777)).unwrap();
    let Some(small) = group(48) else { return };
    let turning = |turns: &'static str| ["--", "/usr/bin/python3", "-c", TURNS, turns];
    // To weigh all would need twice as much as there is.
    let json = [&["-q", "--export-json", "report.json"][..], &turning("120000")].concat();
    let weighed = inside(&small, &bench, wrapper, &json);
    assert_eq!((weighed.code, &*weighed.out), (3, "done\n"), "{rung}: {}", weighed.err);
    let report = json_of(&bench);
    assert_eq!(report.recording.rung, if rung == "root" { "" } else { rung });
    assert_eq!(report.ledger.iter().map(|row| row.ns).sum::<u64>(), report.wall_ns);
    assert!(unrecorded(&report) > report.wall_ns / 20, "{}", missing(rung, &report));
    assert!(warns_of_memory(&report), "{}", missing(rung, &report));
    let record = [&["record", "-q", "-o", "t.dwt"][..], &turning("50000")].concat();
    let recorded = inside(&small, &bench, wrapper, &record);
    assert_eq!((recorded.code, &*recorded.out), (3, "done\n"), "{rung}: {}", recorded.err);
    let mut report = deadweight();
    report.args(["report", "--export-json", "report.json", "t.dwt"]).current_dir(bench.path("."));
    let printed = said(&report.output().unwrap());
    assert_eq!(printed.code, 0, "{rung}: {}", printed.err);
    assert!(printed.out.contains("exit code 3"), "{rung}: {}", printed.out);
    // It needs less: whether records are missing depends on the machine.
    let report = json_of(&bench);
    assert!(
        unrecorded(&report) < report.wall_ns / 20 || warns_of_memory(&report),
        "{}",
        missing(rung, &report)
    );
}

/// What is missing in a report, for messages.
fn missing(rung: &str, report: &Report) -> String {
    let (lost, wall) = (unrecorded(report), report.wall_ns);
    format!("{rung}: {lost} of {wall} ns not recorded; {:?}", report.warnings)
}

fn json_of(bench: &Bench) -> Report {
    Report::from_json(&fs::read_to_string(bench.path("report.json")).unwrap()).unwrap()
}

/// Time without records, in ns.
fn unrecorded(report: &Report) -> u64 {
    report.ledger.iter().filter(|row| row.account == "unrecorded").map(|row| row.ns).sum()
}

fn warns_of_memory(report: &Report) -> bool {
    report.warnings.iter().any(|said| said.contains("memory was left"))
}

#[test]
fn a_limit_that_recording_would_hit_costs_later_events_and_nothing_else() {
    live!();
    a_limit_costs_later_events_and_nothing_else("root", &[]);
    a_limit_costs_later_events_and_nothing_else("user", &USER);
    // perf_event_open, bpf.
    let numbers = if cfg!(target_arch = "x86_64") { "298,321" } else { "241,280" };
    a_limit_costs_later_events_and_nothing_else("stops", &["python3", "-c", FILTER, numbers]);
}

/// Takes so much memory that both cannot stay, and says when it is done.
const TAKES: &str = "import time
block = bytearray(52 << 20)
for at in range(0, len(block), 4096): block[at] = 1
time.sleep(0.2)
open('done', 'w').write('yes')";

#[test]
fn the_program_is_not_killed_when_memory_is_short() {
    live!();
    let bench = Bench::new();
    let Some(small) = group(72) else { return };
    let words = ["record", "-q", "-o", "t.dwt", "--", "/usr/bin/python3", "-c", TAKES];
    let recorded = inside(&small, &bench, &[], &words);
    let until = Instant::now() + Duration::from_secs(20);
    while !fs::read_to_string(bench.path("done")).is_ok_and(|text| text == "yes") {
        assert!(Instant::now() < until, "the program did not end: {recorded:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
    let file = bench.path("t.dwt");
    let report = run(&["report".as_ref(), file.as_os_str()]);
    assert!(report.code == 0 || report.err.lines().count() == 1, "{report:?}");
    eprintln!("the recorder ended with {}", recorded.code);
}

#[test]
fn the_program_does_not_volunteer_with_us() {
    live!();
    let own = fs::read_to_string("/proc/self/oom_score_adj").unwrap();
    let seen = run(&["-q", "--", "cat", "/proc/self/oom_score_adj"]);
    assert_eq!(seen.out, own, "{}", seen.err);
    let ours = run(&["-q", "--", "sh", "-c", "cat /proc/$PPID/oom_score_adj"]);
    assert_eq!(ours.out, "1000\n", "{}", ours.err);
    let clean = run(&["-q", "-r", "1", "--", "cat", "/proc/self/oom_score_adj"]);
    assert!(clean.out.lines().all(|line| line == own.trim()), "{clean:?}");
}

#[test]
fn few_addresses_are_enough() {
    live!();
    let script = "ulimit -v 200000 && exec \"$0\" -q -- sh -c 'echo done; exit 3'";
    let program = deadweight();
    let out = Command::new("sh").args(["-c", script]).arg(program.get_program()).output().unwrap();
    let said = said(&out);
    assert_eq!((said.code, &*said.out, &*said.err), (3, "done\n", ""));
}
