//! One truth: a command, and the facts known about it in advance, which deadweight must report.
//!
//! [`Truth::check`] runs deadweight on it and compares. The laws (rows add up, little is unexplained,
//! CPU time as the kernel counted it) hold for every program and are checked for each. A machine
//! that does something else at the same moment can spoil a reading, so a reading is given several
//! attempts, ever further apart; if other programs used the CPUs in all of them, a message says so
//! and the test passes. The law that rows add up is given one attempt, on any machine.

use crate::program;
use deadweight_report::report::Report;
use std::io::Write;
use std::ops::RangeInclusive;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

/// A recording covers all CPUs: two tests at a time would disturb each other's readings.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Seconds to wait before each attempt: what disturbs a shared machine takes some.
const PAUSES: [u64; 5] = [0, 0, 1, 4, 15];
/// Largest share of the wall time that may be unexplained or unrecorded.
const DARK: f64 = 0.02;
/// Largest difference of CPU time to the kernel's own count ...
const CPU_ERROR: f64 = 0.01;
/// ... apart from what the kernel charges to a woken task before it switches to it, and forgets
/// after it switched away (see `docs/method.md`): in ns per switch, here and at the least. A virtual
/// machine that leaves its host to set a timer takes longer; [`charged_early`] measures it.
const CHARGED_EARLY: RangeInclusive<u64> = 4_000..=40_000;
/// How much more than at that measurement a switch may take: one with cold caches does.
const COLDER: f64 = 2.0;

/// A command and what is known about it.
pub(crate) struct Truth {
    command: Vec<String>,
    options: Vec<String>,
    input: Option<PathBuf>,
    folder: PathBuf,
    group: Option<PathBuf>,
    missing: Option<String>,
    before: Option<Box<dyn Fn()>>,
    expectations: Vec<(String, Expectation)>,
}

type Expectation = Box<dyn Fn(&Report) -> bool>;

impl Truth {
    /// A command of words between blanks. `@name` stands for a program of `tests/programs`.
    pub(crate) fn of(command: &str) -> Self {
        let mut truth = Self {
            command: Vec::new(),
            options: Vec::new(),
            input: None,
            folder: program::scratch_folder(),
            group: None,
            missing: None,
            before: None,
            expectations: Vec::new(),
        };
        truth.command = command.split_whitespace().map(|word| truth.word(word)).collect();
        truth
    }

    /// A pipeline or other shell text in one argument, as a user quotes it.
    pub(crate) fn quoted(pipeline: &str) -> Self {
        let mut truth = Self::of(pipeline);
        truth.command = vec![truth.command.join(" ")];
        truth
    }

    /// `sh -c TEXT`.
    pub(crate) fn shell(text: &str) -> Self {
        let mut truth = Self::of(text);
        truth.command = vec!["sh".to_owned(), "-c".to_owned(), truth.command.join(" ")];
        truth
    }

    fn word(&mut self, word: &str) -> String {
        let Some(name) = word.strip_prefix('@') else { return word.to_owned() };
        match program::build(name) {
            Ok(path) => path.to_string_lossy().into_owned(),
            Err(reason) => {
                self.missing = Some(reason);
                word.to_owned()
            }
        }
    }

    /// One more argument of the command, which may hold blanks.
    pub(crate) fn argument(mut self, path: &Path) -> Self {
        self.command.push(path.to_string_lossy().into_owned());
        self
    }

    /// Needs these tools of the machine.
    pub(crate) fn needs(mut self, tools: &[&str]) -> Self {
        if let Some(reason) = tools.iter().find_map(|t| program::tool(t).err()) {
            self.missing = Some(reason);
        }
        self
    }

    /// Cannot be checked here, for this reason.
    pub(crate) fn lacking(mut self, reason: String) -> Self {
        self.missing = Some(reason);
        self
    }

    /// Runs before each attempt.
    pub(crate) fn before(mut self, done: impl Fn() + 'static) -> Self {
        self.before = Some(Box::new(done));
        self
    }

    /// Options of deadweight before the command.
    pub(crate) fn with(mut self, options: &[&str]) -> Self {
        self.options.extend(options.iter().map(|&o| o.to_owned()));
        self
    }

    /// Standard input comes from this file.
    pub(crate) fn reading(mut self, file: &Path) -> Self {
        self.input = Some(file.to_owned());
        self
    }

    /// Runs in this folder.
    pub(crate) fn within(mut self, folder: &Path) -> Self {
        folder.clone_into(&mut self.folder);
        self
    }

    /// Runs in this cgroup, deadweight with it, as in a container; `Err` is why there is none.
    pub(crate) fn in_group(mut self, group: Result<PathBuf, String>) -> Self {
        match group {
            Ok(group) => self.group = Some(group),
            Err(reason) => self.missing = Some(reason),
        }
        self
    }

    /// The rows of these accounts together have this share of the wall time.
    pub(crate) fn rows(
        self,
        accounts: &'static [&'static str],
        share: RangeInclusive<f64>,
    ) -> Self {
        let says = format!("{} has {share:?} of the wall time", accounts.join(" + "));
        self.expect(says, move |report| share.contains(&share_of(report, accounts)))
    }

    /// As [`Self::rows`], or the report warns that there are two readings: allowed where threads
    /// depend on each other through flags that leave no edge in any trace.
    pub(crate) fn rows_or_two_readings(
        self,
        accounts: &'static [&'static str],
        share: RangeInclusive<f64>,
    ) -> Self {
        let says = format!("{} has {share:?}, or two readings are shown", accounts.join(" + "));
        self.expect(says, move |report| {
            share.contains(&share_of(report, accounts)) || has_hazard(report, "two-readings")
        })
    }

    /// The note beside a row of `account` contains `words`.
    pub(crate) fn note(self, account: &'static str, words: &'static str) -> Self {
        self.expect(format!("the note of {account} says `{words}`"), move |report| {
            report.ledger.iter().any(|r| r.account == account && r.note.contains(words))
        })
    }

    /// The best finding is of one of these classes.
    pub(crate) fn first_finding(self, classes: &'static [&'static str]) -> Self {
        self.expect(format!("the first finding is {}", classes.join(" or ")), move |report| {
            report.findings.first().is_some_and(|f| classes.contains(&f.class.as_str()))
        })
    }

    /// A finding of `class` names `function`, and `file` at the line that contains `mark`.
    pub(crate) fn found_at(
        self,
        class: &'static str,
        function: &'static str,
        file: &'static str,
        mark: &str,
    ) -> Self {
        let text = std::fs::read_to_string(program::source(file)).expect("the source is here");
        let line = text.lines().position(|l| l.contains(mark)).expect("the mark is in it") + 1;
        self.expect(format!("{class} at {function} ({file}:{line})"), move |report| {
            report.findings.iter().filter(|f| f.class == class).flat_map(|f| &f.sites).any(|s| {
                s.function.ends_with(function)
                    && s.file.ends_with(file)
                    && usize::try_from(s.line).is_ok_and(|l| l.abs_diff(line) <= 1)
            })
        })
    }

    /// A finding of `class` promises a saving whose range touches this one.
    pub(crate) fn saves(self, class: &'static str, share: RangeInclusive<f64>) -> Self {
        self.expect(format!("{class} saves within {share:?}"), move |report| {
            let undisturbed = undisturbed(report);
            report.findings.iter().any(|f| {
                let most = f.high.max(f.saving_share) * undisturbed;
                f.class == class && f.low <= *share.end() && most >= *share.start()
            })
        })
    }

    /// No finding of these classes saves 5 % or more.
    pub(crate) fn never(self, classes: &'static [&'static str]) -> Self {
        self.expect(format!("no finding of {}", classes.join(", ")), move |report| {
            !report
                .findings
                .iter()
                .any(|f| classes.contains(&f.class.as_str()) && f.saving_share >= 0.05)
        })
    }

    /// No finding saves 5 % or more.
    pub(crate) fn silent(self) -> Self {
        self.expect("no finding of 5 % or more".to_owned(), |report| {
            !report.findings.iter().any(|f| f.saving_share >= 0.05)
        })
    }

    /// The report warns of this.
    pub(crate) fn hazard(self, id: &'static str) -> Self {
        self.expect(format!("hazard {id}"), move |report| has_hazard(report, id))
    }

    /// Something else that is known.
    pub(crate) fn expect(
        mut self,
        says: String,
        holds: impl Fn(&Report) -> bool + 'static,
    ) -> Self {
        self.expectations.push((says, Box::new(holds)));
        self
    }

    /// Runs the command under deadweight and compares.
    ///
    /// # Panics
    /// If a law is broken, or the truth is not reported in any of the attempts.
    pub(crate) fn check(self) {
        let Some(_alone) = leave(self.missing.clone()) else { return };
        let mut failed = None;
        let early = charged_early();
        for (attempt, pause) in PAUSES.iter().enumerate() {
            std::thread::sleep(Duration::from_secs(*pause));
            if let Some(before) = &self.before {
                before();
            }
            let report = self.run();
            assert_rows_add_up(&report);
            let complaints = self.complaints(&report, early);
            if complaints.is_empty() {
                return;
            }
            let words = format!("{}\n{}", complaints.join("\n  "), outline(&report));
            let _ = writeln!(
                std::io::stderr(),
                "{}: attempt {}: {words}",
                self.command.join(" "),
                attempt + 1
            );
            if !has_hazard(&report, "noisy") && !busy() {
                failed = Some(words);
            }
        }
        match failed {
            Some(words) => panic!("`{}`\n{words}", self.command.join(" ")),
            None => say("BUSY", "other programs wanted the CPUs in every attempt"),
        }
    }

    fn run(&self) -> Report {
        let json = self.folder.join(format!("report-{}.json", std::process::id()));
        let input = self.input.as_ref().map_or(Stdio::null(), |file| {
            std::fs::File::open(file).expect("the input is there").into()
        });
        // With priority over other work of the machine.
        let mut run = Command::new("sh");
        match &self.group {
            Some(group) => run.args(["-c", "echo $$ > \"$0\" && exec \"$@\""]).arg(group),
            None => run.args(["-c", "exec \"$@\"", "sh"]),
        };
        let out = run
            .args(["nice", "-n", "-20", env!("CARGO_BIN_EXE_deadweight")])
            .args(&self.options)
            .arg("--export-json")
            .arg(&json)
            .arg("--")
            .args(&self.command)
            .current_dir(&self.folder)
            .stdin(input)
            .stdout(Stdio::null())
            .output()
            .expect("deadweight was built");
        let words = String::from_utf8_lossy(&out.stderr);
        assert!(out.status.success(), "`{}` failed:\n{words}", self.command.join(" "));
        let text = std::fs::read_to_string(&json).expect("the report was written");
        let _ = std::fs::remove_file(&json);
        serde_json::from_str(&text).expect("the report has the form of its types")
    }

    fn complaints(&self, report: &Report, early: u64) -> Vec<String> {
        let mut complaints = laws(report, early);
        let missing = self.expectations.iter().filter(|(_, holds)| !holds(report));
        complaints.extend(missing.map(|(says, _)| format!("not reported: {says}")));
        complaints
    }
}

/// The lock for running deadweight alone; `None`, after a message, if something is missing.
pub(crate) fn leave(missing: Option<String>) -> Option<MutexGuard<'static, ()>> {
    if let Some(reason) = missing.or_else(unprivileged) {
        skip(&reason);
        return None;
    }
    Some(ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner))
}

/// The share that the rows of these accounts have together: of the wall time without what the
/// observer cost and, unless it is asked for, without the wait for a CPU that others held. Both
/// depend on the machine at that moment and not on the program.
fn share_of(report: &Report, accounts: &[&str]) -> f64 {
    let aside = if accounts.contains(&"wait-cpu") { 0 } else { sum(report, &["wait-cpu"]) };
    let aside = aside + sum(report, &["observer"]);
    sum(report, accounts) as f64 / report.wall_ns.saturating_sub(aside).max(1) as f64
}

/// The time of the rows of these accounts together.
fn sum(report: &Report, accounts: &[&str]) -> u64 {
    let rows = report.ledger.iter().filter(|r| accounts.contains(&r.account.as_str()));
    rows.map(|r| r.ns).sum()
}

/// By how much a share of the wall time grows if the wait for a CPU is left out.
fn undisturbed(report: &Report) -> f64 {
    let net = report.wall_ns.saturating_sub(sum(report, &["observer"])).max(1);
    net as f64 / net.saturating_sub(sum(report, &["wait-cpu"])).max(1) as f64
}

fn has_hazard(report: &Report, id: &str) -> bool {
    report.hazards.iter().any(|h| h.id == id)
}

fn assert_rows_add_up(report: &Report) {
    let sum: u64 = report.ledger.iter().map(|r| r.ns).sum();
    assert_eq!(sum, report.wall_ns, "the rows do not add up:\n{}", outline(report));
    let sum: u64 = report.cpu_ledger.iter().map(|r| r.ns).sum();
    assert_eq!(sum, report.cpu_ns, "the rows of --cpu do not add up:\n{}", outline(report));
}

/// What this machine's kernel charges around a switch in ns, from a program that does nothing but
/// sleep and wake: measured once, under the lock of [`Truth::check`].
fn charged_early() -> u64 {
    static MEASURED: OnceLock<u64> = OnceLock::new();
    *MEASURED.get_or_init(|| {
        let traced = Truth::of("@poll_loop 200 2").run().runs.traced;
        let apart = traced.rusage_ns.saturating_sub(traced.on_cpu_ns);
        let each = (apart as f64 * COLDER / traced.switches.max(1) as f64).ceil() as u64;
        let charged = each.clamp(*CHARGED_EARLY.start(), *CHARGED_EARLY.end());
        let _ = writeln!(std::io::stderr(), "a switch may be charged {charged} ns early");
        charged
    })
}

/// What holds for every program, where `early` ns may be charged around a switch.
fn laws(report: &Report, early: u64) -> Vec<String> {
    let mut broken = Vec::new();
    let dark = sum(report, &["unexplained", "unrecorded"]) as f64 / report.wall_ns.max(1) as f64;
    if dark > DARK {
        broken.push(format!("{:.1} % of the wall time is dark", 100.0 * dark));
    }
    let traced = &report.runs.traced;
    let (ours, theirs) = (traced.on_cpu_ns, traced.rusage_ns);
    let early = early * traced.switches;
    if ours.abs_diff(theirs).saturating_sub(early) as f64 > CPU_ERROR * theirs as f64 {
        let error = 100.0 * (ours as f64 / theirs.max(1) as f64 - 1.0);
        let switches = traced.switches;
        broken.push(format!("on CPU {ours}, rusage {theirs}: {error:+.2} %, {switches} switches"));
    }
    let apart = ours.abs_diff(theirs) as f64 > CPU_ERROR * theirs as f64;
    let said = report
        .warnings
        .iter()
        .chain(&report.remarks)
        .any(|w| w.contains("CPU time than the kernel"));
    if apart != said {
        broken.push(format!("on CPU {ours}, rusage {theirs}, and the report says so: {said}"));
    }
    broken
}

/// The report in a few lines, for a failing test.
fn outline(report: &Report) -> String {
    let mut lines = vec![format!("  wall {} ns, cpu {} ns", report.wall_ns, report.cpu_ns)];
    for row in &report.ledger {
        let share = 100.0 * row.share;
        lines.push(format!("  {share:5.1} %  {:18} {:12} {}", row.account, row.ns, row.note));
    }
    for finding in &report.findings {
        let at = finding.sites.first().map(|s| format!("{} ({}:{})", s.function, s.file, s.line));
        let saves = 100.0 * finding.saving_share;
        let (low, high) = (100.0 * finding.low, 100.0 * finding.high);
        let at = at.unwrap_or_default();
        lines
            .push(format!("  * {} saves {saves:.1} % ({low:.1} to {high:.1}) {at}", finding.class));
    }
    lines.extend(report.hazards.iter().map(|h| format!("  ! {}: {}", h.id, h.text)));
    lines.extend(report.warnings.iter().map(|w| format!("  ? {w}")));
    lines.join("\n")
}

/// Whether we are root: the owner of our own /proc entry is our user.
fn root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

/// Whether more tasks than ours and one other have wanted this machine's CPUs in the last minute.
fn busy() -> bool {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load: f64 = load.split_whitespace().next().and_then(|l| l.parse().ok()).unwrap_or(0.0);
    load > std::thread::available_parallelism().map_or(1.0, |cpus| cpus.get() as f64) + 2.0
}

/// Why this machine or user cannot record, if so.
fn unprivileged() -> Option<String> {
    let tracefs = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
    let known = |at: &&str| Path::new(at).join("events/sched/sched_waking/id").exists();
    if !root() {
        return Some("recording needs root".to_owned());
    }
    (!tracefs.iter().any(known)).then(|| "no tracefs with sched_waking is mounted".to_owned())
}

/// Prints that a test was skipped, past the capture of the test harness. A CI machine
/// with root is set up for these tests: there, a skip is a failure.
fn skip(reason: &str) {
    let ci = std::env::var_os("CI").is_some() && root();
    assert!(!ci, "not checked: {reason}");
    say("SKIPPED", reason);
}

/// Prints a message about the running test, past the capture of the test harness.
fn say(what: &str, reason: &str) {
    let test = std::thread::current().name().unwrap_or("a truth").to_owned();
    let _ = writeln!(std::io::stderr(), "{what} {test}: {reason}");
}

#[test]
fn the_laws_notice_what_breaks_them() {
    let row = |account: &str, ns| deadweight_report::report::Row {
        account: account.to_owned(),
        ns,
        ..Default::default()
    };
    let mut report = Report { wall_ns: 100, ..Default::default() };
    report.ledger = vec![row("net-work", 97), row("unexplained", 3)];
    report.runs.traced.on_cpu_ns = 97;
    report.runs.traced.rusage_ns = 100;
    assert_eq!(laws(&report, 4_000).len(), 3, "3 % dark, 3 % off, and the report does not say so");
    report.warnings.push("the recording has 3 % less CPU time than the kernel counted".into());
    assert_eq!(laws(&report, 4_000).len(), 2, "it says so");
    report.warnings.clear();
    report.ledger[1].account = "wait-sleep".to_owned();
    report.runs.traced.rusage_ns = 97;
    assert!(laws(&report, 4_000).is_empty());
    report.ledger[1].ns = 4;
    assert!(std::panic::catch_unwind(|| assert_rows_add_up(&report)).is_err(), "101 of 100 ns");
}
