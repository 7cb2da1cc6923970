//! Reports as rows of five tables, for archives and for engines that count over thousands of runs.
//!
//! - In: a [`Report`], and where it came from ([`Origin`]).
//! - Out: [`Tables`]: one row of `runs`, and rows of `rows`, `findings`, `counts` and `builds` with the same run id.
//! - Must not know: how the tables are stored.
//!
//! Names of tables and columns are a contract: new columns are fine, renamed ones need a new [`TABLES_VERSION`]. Times
//! are integer nanoseconds, shares 0 to 1.

use crate::report::{Basis, How, Report};
use crate::wording::shell_word;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The version of the tables.
pub const TABLES_VERSION: u32 = 1;
/// The kind of runs that deadweight measured, see [`Origin::kind`].
pub const OURS: &str = "deadweight";

/// Where a report came from: what it does not say itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// What was measured, by a name that stays the same from version to version.
    pub workload: String,
    /// The commit that was measured, in hexadecimal, or empty.
    pub commit: String,
    /// When that commit was made, in seconds since 1970; 0 if unknown.
    pub commit_time: i64,
    /// The branch, or empty.
    pub branch: String,
    /// Whether the source had changes that are in no commit.
    pub dirty: bool,
    /// When it was measured, in seconds since 1970.
    pub time: i64,
    /// What made it: `deadweight`, or the kind of a benchmark file (`go`, `google-benchmark`, `criterion`, `hyperfine`).
    pub kind: String,
    /// The file that it was read from, or empty.
    pub source: String,
}

/// A report as rows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Tables {
    /// The run.
    pub run: RunRow,
    /// Its ledger, largest row first, and the same for CPU time.
    pub rows: Vec<LedgerRow>,
    /// Its findings, best first, then those withdrawn.
    pub findings: Vec<FindingRow>,
    /// Its counts.
    pub counts: Vec<CountRow>,
    /// Its binaries.
    pub builds: Vec<BuildRow>,
}

/// A row of `runs`: one report.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunRow {
    /// The id of the run: a hash of its content.
    pub run: String,
    /// What was measured, by a name that stays the same from version to version.
    pub workload: String,
    /// The commit that was measured, in hexadecimal, or empty.
    pub commit: String,
    /// When that commit was made, in seconds since 1970; 0 if unknown.
    pub commit_time: i64,
    /// The branch, or empty.
    pub branch: String,
    /// Whether the source had changes that are in no commit.
    pub dirty: bool,
    /// When it was measured, in seconds since 1970; 0 if unknown.
    pub time: i64,
    /// What made it: `deadweight`, or the kind of a benchmark file (`go`, `google-benchmark`, `criterion`, `hyperfine`).
    pub kind: String,
    /// The file that it was read from, or empty.
    pub source: String,
    /// The command with its arguments, quoted as for a shell.
    pub command: String,
    /// The process whose time was divided.
    pub subject: String,
    /// Its source language, or empty.
    pub language: String,
    /// Its compiler, or empty.
    pub producer: String,
    /// The build-id of its binary, or empty.
    pub build_id: String,
    /// Exit code; 128 + the signal's number if a signal ended it.
    pub exit_code: i32,
    /// Everything about the machine that decides whether times can be compared; empty if unknown.
    pub machine: String,
    /// Architecture.
    pub arch: String,
    /// CPU model.
    pub cpu: String,
    /// CPUs that could run the program.
    pub cpus: u32,
    /// Kernel release.
    pub kernel: String,
    /// Version of deadweight.
    pub deadweight: String,
    /// Number of the method that divided the time.
    pub method: u32,
    /// How much could be recorded (`root`, `user`, `stops`, `samples`); empty if nothing was.
    pub rung: String,
    /// The wall time that the rows add up to.
    pub wall_ns: u64,
    /// The undisturbed wall time; busy time of a program that serves.
    pub net_ns: u64,
    /// CPU time.
    pub cpu_ns: u64,
    /// Runs without tracing.
    pub clean_runs: u32,
    /// Their median; 0 if there was none.
    pub clean_ns: u64,
    /// Lower end of the median's 95 % interval.
    pub clean_low_ns: u64,
    /// Upper end.
    pub clean_high_ns: u64,
    /// Each of their wall times, in order of running.
    pub clean_each_ns: Vec<u64>,
    /// Largest resident set in bytes of the clean runs.
    pub max_rss: u64,
    /// Traced runs.
    pub traced_runs: u32,
    /// Records of the traced runs.
    pub records: u64,
    /// Lost records.
    pub lost: u64,
    /// Exchanges of a program that serves: a read and its answer.
    pub requests: u64,
    /// The best finding's predicted saving as a share; 0 without a finding.
    pub best_saving: f64,
    /// Time that has no explanation, as a share of `wall_ns`: rows `unexplained` and `unrecorded`.
    pub unexplained: f64,
    /// Ids of the measurement's hazards, in order.
    pub hazards: Vec<String>,
    /// Why there is no report; else empty. Then all else but `run` and `source` may be empty.
    pub error: String,
}

/// A row of `rows`: one row of a ledger.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LedgerRow {
    /// The run.
    pub run: String,
    /// `wall` or `cpu`.
    pub ledger: String,
    /// The account.
    pub account: String,
    /// What a reader sees.
    pub name: String,
    /// Its time.
    pub ns: u64,
    /// Its share.
    pub share: f64,
    /// Lower end of its interval.
    pub low_ns: u64,
    /// Upper end.
    pub high_ns: u64,
    /// Whether both ends of its time were recorded; else it was apportioned by samples.
    pub exact: bool,
}

/// A row of `findings`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FindingRow {
    /// The run.
    pub run: String,
    /// Its place in the report, from 1.
    pub rank: u32,
    /// The cost class.
    pub class: String,
    /// The process.
    pub process: String,
    /// Function of its most expensive place, or empty.
    pub function: String,
    /// Source file, or empty.
    pub file: String,
    /// Line from 1, or 0.
    pub line: u32,
    /// Its time.
    pub amount_ns: u64,
    /// The saving.
    pub saving_ns: u64,
    /// The same as a share.
    pub saving: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// `exact`, `estimate`, `candidate`, `measured`, or `withdrawn`.
    pub how: String,
    /// What happens, in a sentence or two.
    pub text: String,
}

/// A row of `counts`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CountRow {
    /// The run.
    pub run: String,
    /// What was counted: `calls` (system calls), `calls/read` (those of one name), `bytes-read`, `page-faults`, ...
    pub name: String,
    /// How many: mostly whole; of benchmark files any value, with the unit in the name.
    pub value: f64,
    /// Smallest of the runs.
    pub low: f64,
    /// Largest.
    pub high: f64,
    /// Whether all were counted.
    pub exact: bool,
}

/// A row of `builds`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BuildRow {
    /// The run.
    pub run: String,
    /// Path of the binary.
    pub path: String,
    /// Its build-id, or empty.
    pub build_id: String,
    /// Source language, or empty.
    pub language: String,
    /// Compiler, or empty.
    pub producer: String,
}

/// The rows of a report. `run` is its id.
#[must_use]
pub fn tables(run: &str, report: &Report, origin: &Origin) -> Tables {
    let ledgers = [("wall", &report.ledger), ("cpu", &report.cpu_ledger)];
    Tables {
        run: run_row(run, report, origin),
        rows: ledgers
            .into_iter()
            .flat_map(|(ledger, rows)| ledger_rows(run, ledger, rows))
            .collect(),
        findings: finding_rows(run, report),
        counts: count_rows(run, report),
        builds: report
            .builds
            .iter()
            .map(|build| BuildRow {
                run: run.into(),
                path: build.path.clone(),
                build_id: build.build_id.clone(),
                language: build.language.clone(),
                producer: build.producer.clone(),
            })
            .collect(),
    }
}

/// The rows of a file that no report could be made of: an error in `runs`, nothing else.
#[must_use]
pub fn failed(run: &str, origin: &Origin, error: &str) -> Tables {
    let row = run_row(run, &Report::default(), origin);
    Tables { run: RunRow { error: error.into(), ..row }, ..Tables::default() }
}

fn run_row(run: &str, report: &Report, origin: &Origin) -> RunRow {
    let origin = origin.clone();
    let (clean, traced) = (&report.runs.clean, &report.runs.traced);
    let own = report.builds.iter().find(|build| build.path == report.subject.image);
    let share = |accounts: &[&str]| {
        let rows = report.ledger.iter().filter(|row| accounts.contains(&row.account.as_str()));
        rows.map(|row| row.ns).sum::<u64>() as f64 / report.wall_ns.max(1) as f64
    };
    RunRow {
        run: run.into(),
        workload: origin.workload,
        commit: origin.commit,
        commit_time: origin.commit_time,
        branch: origin.branch,
        dirty: origin.dirty,
        time: origin.time,
        kind: origin.kind,
        source: origin.source,
        command: report.command.iter().map(|word| shell_word(word)).collect::<Vec<_>>().join(" "),
        subject: report.subject.name.clone(),
        language: report.subject.language.clone(),
        producer: report.subject.producer.clone(),
        build_id: own.map(|build| build.build_id.clone()).unwrap_or_default(),
        exit_code: report.exit.signal.map_or(report.exit.code, |signal| 128 + signal),
        machine: match report.machine.is_unknown() {
            true => String::new(),
            false => report.machine.fingerprint(),
        },
        arch: report.machine.arch.clone(),
        cpu: report.machine.cpu.clone(),
        cpus: report.machine.cpus,
        kernel: report.machine.kernel.clone(),
        deadweight: report.deadweight.clone(),
        method: report.method,
        rung: report.recording.rung.clone(),
        wall_ns: report.wall_ns,
        net_ns: report.net_ns,
        cpu_ns: report.cpu_ns,
        clean_runs: clean.count,
        clean_ns: clean.wall_ns.median,
        clean_low_ns: clean.wall_ns.low,
        clean_high_ns: clean.wall_ns.high,
        clean_each_ns: clean.each_ns.clone(),
        max_rss: clean.max_rss,
        traced_runs: traced.count,
        records: traced.records,
        lost: traced.lost,
        requests: report.service.as_ref().map_or(0, |service| service.requests),
        best_saving: report.findings.first().map_or(0.0, |finding| finding.saving_share),
        unexplained: share(&["unexplained", "unrecorded"]),
        hazards: report.hazards.iter().map(|hazard| hazard.id.clone()).collect(),
        error: String::new(),
    }
}

fn ledger_rows(run: &str, ledger: &str, rows: &[crate::report::Row]) -> Vec<LedgerRow> {
    let row = |row: &crate::report::Row| LedgerRow {
        run: run.into(),
        ledger: ledger.into(),
        account: row.account.clone(),
        name: crate::account::row_name(&row.account, &row.group).to_owned(),
        ns: row.ns,
        share: row.share,
        low_ns: row.low_ns,
        high_ns: row.high_ns,
        exact: row.basis == Basis::Exact,
    };
    rows.iter().map(row).collect()
}

fn finding_rows(run: &str, report: &Report) -> Vec<FindingRow> {
    let found = report.findings.iter().map(|finding| (finding, finding.how.word()));
    let withdrawn = report.withdrawn.iter().map(|finding| (finding, "withdrawn"));
    (1..)
        .zip(found.chain(withdrawn))
        .map(|(rank, (finding, how))| {
            let site = finding.sites.first().cloned().unwrap_or_default();
            FindingRow {
                run: run.into(),
                rank,
                class: finding.class.clone(),
                process: finding.process.clone(),
                function: site.function,
                file: site.file,
                line: site.line,
                amount_ns: finding.amount_ns,
                saving_ns: finding.saving_ns,
                saving: finding.saving_share,
                low: finding.low,
                high: finding.high,
                how: how.into(),
                text: finding.text.clone(),
            }
        })
        .collect()
}

fn count_rows(run: &str, report: &Report) -> Vec<CountRow> {
    let row = |name: &str, [value, low, high]: [u64; 3], exact| CountRow {
        run: run.into(),
        name: name.into(),
        value: value as f64,
        low: low as f64,
        high: high as f64,
        exact,
    };
    let counts = report.counts.iter();
    let counts = counts.map(|c| row(&c.name, [c.value, c.low, c.high], c.exact));
    let allocations = report.allocations.iter().flat_map(|found| {
        let exact = found.basis == crate::report::CountBasis::Exact;
        [("allocations", found.count), ("allocated-bytes", found.bytes)]
            .map(|(name, value)| row(name, [value; 3], exact))
    });
    counts.chain(allocations).collect()
}

impl How {
    /// Its name, as in JSON.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Estimate => "estimate",
            Self::Candidate => "candidate",
            Self::Measured => "measured",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Count, Finding, Row, Site};

    #[test]
    fn a_report_becomes_rows_with_one_id() {
        let row = |account: &str, ns| Row { account: account.into(), ns, ..Row::default() };
        let site = Site { function: "main".into(), file: "a.c".into(), line: 3, ..Site::default() };
        let report = Report {
            command: vec!["./p".into(), "it's".into()],
            wall_ns: 100,
            ledger: vec![row("net-work", 90), row("unexplained", 10)],
            findings: vec![Finding { saving_share: 0.5, sites: vec![site], ..Finding::default() }],
            counts: vec![Count { name: "calls".into(), value: 7, exact: true, ..Count::default() }],
            ..Report::default()
        };
        let found = tables("id", &report, &Origin { workload: "w".into(), ..Origin::default() });
        assert_eq!(found.run.command, "./p 'it'\\''s'");
        assert_eq!((found.run.unexplained, found.run.best_saving), (0.1, 0.5));
        assert_eq!(found.rows.iter().map(|r| r.ns).sum::<u64>(), found.run.wall_ns);
        assert_eq!((found.findings[0].rank, found.findings[0].line), (1, 3));
        assert_eq!((found.counts[0].value, found.counts[0].exact), (7.0, true));
        assert!(found.rows.iter().all(|r| r.run == "id") && found.run.run == "id");
        assert_eq!(failed("x", &Origin::default(), "no").run.error, "no");
    }
}
