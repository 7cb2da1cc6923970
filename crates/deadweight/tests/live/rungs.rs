//! What an ordinary user can record of his programs, against their known costs; the programs run as without
//! deadweight. Each rung is real: another user, capabilities, permissions of a file.

use crate::program;
use crate::truth::leave;
use deadweight_report::report::Report;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// An ordinary user.
pub(crate) const USER: u32 = 65_534;

/// A folder that the user can enter, with deadweight in it; removed when the value is dropped.
pub(crate) struct Home(PathBuf);

impl Home {
    pub(crate) fn new(name: &str) -> Self {
        let home =
            Self(Path::new("/tmp").join(format!("deadweight-{name}-{}", std::process::id())));
        std::fs::create_dir_all(&home.0).unwrap();
        std::os::unix::fs::chown(&home.0, Some(USER), Some(USER)).unwrap();
        home.put(Path::new(env!("CARGO_BIN_EXE_deadweight")), 0o755);
        home
    }

    /// A copy of a program that every user may run.
    pub(crate) fn put(&self, program: &Path, mode: u32) -> PathBuf {
        let to = self.0.join(program.file_name().unwrap());
        std::fs::copy(program, &to).unwrap();
        std::fs::set_permissions(&to, PermissionsExt::from_mode(mode)).unwrap();
        to
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// What deadweight did as the user, under `wrapper` if there is one.
    pub(crate) fn run(&self, wrapper: &[&str], arguments: &[&str]) -> Output {
        self.command(wrapper, arguments).output().unwrap()
    }

    /// deadweight as the user, under `wrapper` if there is one.
    pub(crate) fn command(&self, wrapper: &[&str], arguments: &[&str]) -> Command {
        let deadweight = self.0.join("deadweight");
        let words = [wrapper, &[deadweight.to_str().unwrap()], arguments].concat();
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).current_dir(&self.0).stdin(Stdio::null());
        command.env("XDG_CACHE_HOME", &self.0).env_remove("HOME");
        if wrapper.is_empty() {
            command.uid(USER).gid(USER);
        }
        command
    }

    fn report(&self, wrapper: &[&str], command: &[&str]) -> Report {
        let out = self.run(wrapper, &[&["--export-json", "-", "--"], command].concat());
        let text = String::from_utf8_lossy(&out.stdout);
        let text = text.find("\n{").map_or(&*text, |at| &text[at..]);
        let report: Report = serde_json::from_str(text)
            .unwrap_or_else(|e| panic!("{e}: {}", String::from_utf8_lossy(&out.stderr)));
        assert_eq!(report.ledger.iter().map(|r| r.ns).sum::<u64>(), report.wall_ns);
        report
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn share(report: &Report, account: &str) -> f64 {
    report.ledger.iter().filter(|r| r.account == account).map(|r| r.share).sum()
}

#[test]
fn a_user_sees_tiny_reads_at_their_line() {
    let Some(_alone) = leave(None) else { return };
    let home = Home::new("reads");
    let program = match program::build("count_bytes") {
        Ok(program) => home.put(&program, 0o755),
        Err(reason) => return assert!(leave(Some(reason)).is_none()),
    };
    let input = home.0.join("input");
    std::fs::write(&input, vec![b'x'; 60_000]).unwrap();
    let line = format!("{} < {}", program.display(), input.display());
    let report = home.report(&[], &["sh", "-c", &line]);
    let first = report.findings.first();
    let first = first.unwrap_or_else(|| panic!("{:?} {:?}", report.ledger, report.warnings));
    assert_eq!((report.recording.rung.as_str(), first.class.as_str()), ("user", "tiny-reads"));
    assert!(first.sites.iter().any(|s| s.file.ends_with("count_bytes.c")), "{:?}", first.sites);
    assert!(report.recording.lacks.iter().any(|lack| lack.contains("wakers are inferred")));
}

#[test]
fn a_users_dense_reads_are_counted_where_one_in_so_many_is_recorded() {
    let Some(_alone) = leave(None) else { return };
    let home = Home::new("dense");
    let program = match program::build("count_bytes") {
        Ok(program) => home.put(&program, 0o755),
        Err(reason) => return assert!(leave(Some(reason)).is_none()),
    };
    let input = home.0.join("input");
    std::fs::write(&input, vec![b'x'; 600_000]).unwrap();
    // Before and after it other processes make the same call.
    let (program, input) = (program.display(), input.display());
    let line = format!("wc -c < {input}; {program} < {input}; wc -c < {input}");
    let report = home.report(&[], &["sh", "-c", &line]);
    let warns = |text: &str| report.warnings.iter().any(|w| w.contains(text));
    assert!(warns("one in 61 was recorded"), "{:?}", report.warnings);
    let first = report.findings.first();
    let first = first.unwrap_or_else(|| panic!("{:?} {:?}", report.ledger, report.warnings));
    assert_eq!(first.class, "tiny-reads");
    assert_eq!(first.how, deadweight_report::report::How::Estimate);
    assert!(first.sites.iter().any(|s| s.file.ends_with("count_bytes.c")), "{:?}", first.sites);
    let calls: u64 = first.evidence[0]
        .split(" calls")
        .next()
        .map(|n| n.replace(|c: char| !c.is_ascii_digit(), ""))
        .and_then(|n| n.parse().ok())
        .expect("a number of calls");
    let all = 594_000..=606_000;
    assert!(report.runs.traced.lost > 0 || all.contains(&calls), "{calls}");
}

#[test]
fn a_users_dense_reads_of_several_threads_are_counted_alike() {
    let Some(_alone) = leave(None) else { return };
    let home = Home::new("readers");
    let program = match program::build("readers") {
        Ok(program) => home.put(&program, 0o755),
        Err(reason) => return assert!(leave(Some(reason)).is_none()),
    };
    std::fs::write(home.0.join("input"), vec![b'x'; 100_000]).unwrap();
    let report = home.report(&[], &[program.to_str().unwrap(), "8", "100000", "input"]);
    // Each of them alone would have two records for each call.
    let records = report.runs.traced.records;
    assert!(records < 8 * 2 * 100_000 * 6 / 10, "{records}");
    assert!(report.warnings.iter().any(|w| w.contains("one in 61 was recorded")));
}

#[test]
fn a_task_with_the_id_of_a_thread_with_high_rate_reads_is_recorded_too() {
    const NEXT: &str = "/proc/sys/kernel/ns_last_pid";
    let unwritable = std::fs::read(NEXT).and_then(|last| std::fs::write(NEXT, last));
    let refused = unwritable.err().map(|e| format!("cannot choose the next task's number: {e}"));
    let Some(_alone) = leave(refused) else { return };
    let home = Home::new("again");
    let program = match program::build("readers") {
        Ok(program) => home.put(&program, 0o755),
        Err(reason) => return assert!(leave(Some(reason)).is_none()),
    };
    std::fs::write(home.0.join("input"), vec![b'x'; 200_000]).unwrap();
    let words = ["record", "-o", "again.dwt", "--", program.to_str().unwrap()];
    let words = [&words[..], &["again", "200000", "input"]].concat();
    let mut recorder = home.command(&[], &words).stdout(Stdio::piped()).spawn().unwrap();
    let mut first = String::new();
    BufReader::new(recorder.stdout.take().unwrap()).read_line(&mut first).unwrap();
    let first: u32 = first.trim().parse().unwrap();
    let status = loop {
        if let Some(status) = recorder.try_wait().unwrap() {
            break status;
        }
        std::fs::write(NEXT, (first - 1).to_string()).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(1));
    };
    assert_eq!(status.code(), Some(0), "no thread got the number {first}");
    let text = home.run(&[], &["dump", "--text", "again.dwt"]).stdout;
    let text = String::from_utf8(text).unwrap();
    assert!(text.contains("tasks got the number of one"));
    let (_, after) = text.rsplit_once(&format!("fork {first}")).unwrap();
    // One by one, and what the kernel counted once they were frequent enough.
    let its = |line: &&str| line.contains(&format!("[{first}")) && line.contains(" read");
    let reads: u64 = after.lines().filter(its).filter_map(calls_of).sum();
    assert!(reads >= 500 || text.contains(" lost "), "{reads}");
}

/// How many calls a line of a trace in text stands for: `syscall read` one, `calls 12 read` twelve.
fn calls_of(line: &str) -> Option<u64> {
    match line.split_once("] calls ") {
        Some((_, counted)) => counted.split(' ').next()?.parse().ok(),
        None => line.contains("] syscall read").then_some(1),
    }
}

#[test]
fn a_user_sees_what_a_pipeline_waited_for() {
    let Some(_alone) = leave(None) else { return };
    let home = Home::new("pipe");
    let report = home.report(&[], &["sh", "-c", "sleep .3 | cat"]);
    assert!(share(&report, "wait-sleep") > 0.5, "{:?}", report.ledger);
    assert_eq!(report.findings.first().map(|f| f.class.as_str()), Some("wait-sleep"));
    let cat = report.stages.iter().find(|s| s.name == "cat").expect("a stage");
    assert_eq!(cat.waited_for, "sleep", "{:?}", report.stages);
}

#[test]
fn a_user_sees_the_lock_that_goroutines_wait_for() {
    let Some(_alone) = leave(None) else { return };
    let home = Home::new("lock");
    let program = match program::build("contended_in_go") {
        Ok(program) => home.put(&program, 0o755),
        Err(reason) => return assert!(leave(Some(reason)).is_none()),
    };
    let mut seen = Vec::new();
    for _ in 0..4 {
        let report = home.report(&[], &[program.to_str().unwrap(), "1000"]);
        seen = report.findings;
        let Some(lock) = seen.iter().find(|f| f.class == "wait-lock") else { continue };
        assert!(lock.sites.iter().any(|s| s.file.ends_with("contended_in_go.go")), "{lock:?}");
        return;
    }
    panic!("no lock found: {seen:?}");
}

#[test]
fn a_users_many_processes_are_recorded_by_fewer_calls_and_that_is_said() {
    let Some(_alone) = leave(None) else { return };
    let home = Home::new("many");
    let script = |births: u32, then: &str| {
        let line = format!("i=0; while [ $i -lt {births} ]; do (:); i=$((i+1)); done; {then}");
        home.report(&[], &["sh", "-c", &line])
    };
    let said = |report: &Report| report.warnings.iter().any(|w| w.contains("had been born when"));
    let few = script(40, "exit 4");
    assert!(!said(&few), "{:?}", few.warnings);
    let many = script(400, "sleep .4; exit 3");
    assert_eq!((few.exit.code, many.exit.code), (4, 3));
    assert!(said(&many), "{:?}", many.warnings);
    // Births and sleeps are recorded as before.
    assert!(share(&many, "wait-sleep") * many.wall_ns as f64 > 3e8, "{:?}", many.ledger);
    // A wait in a call that is no longer recorded (opening a pipe without a peer) is no task's work.
    let unseen = script(500, "mkfifo fifo; (sleep .5; echo x > fifo) & read x < fifo; exit 5");
    assert_eq!(unseen.exit.code, 5);
    assert!(said(&unseen), "{:?}", unseen.warnings);
    assert!(share(&unseen, "net-work") * (unseen.wall_ns as f64) < 4e8, "{:?}", unseen.ledger);
}

#[test]
fn what_runs_for_a_user_ends_as_it_would() {
    let Some(_alone) = leave(None) else { return };
    let home = Home::new("ends");
    for (script, code) in [("exit 7", 7), ("kill -TERM $$", 128 + 15), ("echo x; exit 0", 0)] {
        let out = home.run(&[], &["--", "sh", "-c", script]);
        assert_eq!(out.status.code(), Some(code), "{script}");
        assert_eq!(out.stdout.as_slice(), if code == 0 { b"x\n".as_slice() } else { b"" });
    }
}

#[test]
fn a_program_with_more_rights_than_its_user_runs_and_is_not_recorded() {
    let Some(_alone) = leave(None) else { return };
    let home = Home::new("rights");
    let sleep = home.put(Path::new("/bin/sleep"), 0o4755);
    let report = home.report(&[], &[sleep.to_str().unwrap(), "0.3"]);
    assert_eq!(report.exit.code, 0);
    assert!(share(&report, "unrecorded") > 0.8, "{:?}", report.ledger);
    assert!(report.warnings.iter().any(|w| w.contains("set-user-id")), "{:?}", report.warnings);
}

#[test]
fn root_sees_what_a_program_with_more_rights_than_its_user_calls() {
    let Some(_alone) = leave(program::tool("setpriv").err()) else { return };
    let (home, user) = (Home::new("elevated"), USER.to_string());
    let dd = home.put(Path::new("/bin/dd"), 0o4755);
    let words = ["setpriv", "--reuid", &user, "--clear-groups", dd.to_str().unwrap()];
    let copies = ["if=/dev/zero", "of=/dev/null", "bs=1", "count=30000"];
    let report = home.report(&["env"], &[&words[..], &copies].concat());
    assert_eq!(report.exit.code, 0);
    let reports = |call: &str| {
        let sentence = format!("{call} was called 30 000 times for 1 byte each");
        report.findings.iter().any(|finding| finding.text.contains(&sentence))
    };
    assert!(reports("read") && reports("write"), "{:?}", report.findings);
}

/// Words that run the rest as the user with only this capability.
fn having(capability: &str) -> [String; 10] {
    let (user, more) = (USER.to_string(), format!("+{capability}"));
    let words = ["setpriv", "--reuid", &user, "--regid", &user, "--clear-groups", "--inh-caps"];
    let words = [&words[..], &[&more, "--ambient-caps", &more]].concat();
    std::array::from_fn(|at| words[at].to_owned())
}

#[test]
fn a_capability_shows_more() {
    let missing = program::tool("setpriv").err();
    let Some(_alone) = leave(missing) else { return };
    let home = Home::new("capability");
    let wrapper = having("perfmon");
    let more =
        home.report(&wrapper.each_ref().map(String::as_str), &["sh", "-c", "sleep .2 | cat"]);
    let less = home.report(&[], &["sh", "-c", "sleep .2 | cat"]);
    assert!(more.recording.lacks.len() < less.recording.lacks.len(), "{:?}", more.recording);
    assert_eq!(more.findings.first().map(|f| f.class.as_str()), Some("wait-sleep"));
}

#[test]
fn a_readable_tracefs_spares_the_search_for_what_it_lists() {
    let missing = program::tool("setpriv").err();
    let Some(_alone) = leave(missing) else { return };
    let home = Home::new("readable");
    let found = home.path().join("cache/deadweight/tracepoints");
    std::fs::create_dir(home.path().join("cache")).unwrap();
    std::os::unix::fs::chown(home.path().join("cache"), Some(USER), Some(USER)).unwrap();
    let cache = format!("XDG_CACHE_HOME={}", home.path().join("cache").display());
    let may_read = having("dac_read_search");
    let may_read = [&["env", &cache], &may_read.each_ref().map(String::as_str)[..]].concat();
    let command = ["dd", "if=/dev/zero", "of=/dev/null", "bs=1", "count=30000", "status=none"];
    let listed = home.report(&may_read, &command);
    assert_eq!(listed.recording.rung, "user");
    assert!(!found.exists(), "{} was searched for", found.display());
    assert!(listed.findings.iter().any(|f| f.class == "tiny-reads"), "{:?}", listed.findings);
    // Without that capability.
    home.report(&may_read[..may_read.len() - 4], &command);
    assert!(found.exists(), "there is no {}", found.display());
    // The tried events are closed while nothing is recorded: for a while the kernel blocks opening and closing other events.
    for _ in 0..5 {
        let later = home.report(&may_read, &command);
        assert!(later.findings.iter().any(|f| f.class == "tiny-reads"), "{:?}", later.ledger);
        assert!(share(&later, "unrecorded") == 0.0, "{:?} {:?}", later.ledger, later.warnings);
        assert!(!later.warnings.iter().any(|w| w.contains("not be read")), "{:?}", later.warnings);
    }
}

/// `kernel.perf_event_paranoid` is restored when this is dropped.
struct Paranoia(String);

const PARANOIA: &str = "/proc/sys/kernel/perf_event_paranoid";

impl Paranoia {
    fn set(level: &str) -> Option<Self> {
        let before = std::fs::read_to_string(PARANOIA).ok()?;
        let this = Self(before.trim().to_owned());
        std::fs::write(PARANOIA, level).ok().map(|()| this)
    }
}

impl Drop for Paranoia {
    fn drop(&mut self) {
        let _ = std::fs::write(PARANOIA, &self.0);
    }
}

#[test]
fn a_less_strict_kernel_shows_a_user_more_and_a_stricter_one_still_something() {
    let Some(_alone) = leave(None) else { return };
    let home = Home::new("paranoia");
    let mut lacks = usize::MAX;
    for level in ["2", "1", "0", "-1"] {
        let Some(_before) = Paranoia::set(level) else {
            return assert!(leave(Some(format!("{PARANOIA} cannot be written"))).is_none());
        };
        let report = home.report(&[], &["sh", "-c", "sleep .2 | cat"]);
        let now = report.recording.lacks.len();
        assert!(now <= lacks, "{level}: {:?}", report.recording);
        assert_eq!(
            report.findings.first().map(|f| f.class.as_str()),
            Some("wait-sleep"),
            "{level}"
        );
        lacks = now;
    }
    // Debian and its kin have a level at which users get no events at all; elsewhere it is as 2.
    let Some(_before) = Paranoia::set("4") else { return };
    let report = home.report(&[], &["sh", "-c", "sleep .2 | cat"]);
    assert_eq!(report.findings.first().map(|f| f.class.as_str()), Some("wait-sleep"));
}
