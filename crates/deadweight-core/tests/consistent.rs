//! Numbers of one report that must agree with each other, on every golden recording.
//!
//! A reader sees a count, a time and places beside each other. They must be of the same things, and nothing may exceed
//! what the run can hold. Which numbers are right: `golden`.
#![expect(clippy::disallowed_methods, reason = "golden files are read by their test")]

use deadweight_core::{Weighing, weigh};
use deadweight_report::account::AccountId;
use deadweight_report::report::{Finding, How, Report, Row};
use deadweight_trace::Trace;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// What rounding to whole nanoseconds and shares may add.
const ROUNDING: f64 = 1.001;

/// All golden recordings: this crate's, and one folder for each case.
fn recordings() -> Vec<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let entries = |folder: &Path| -> Vec<PathBuf> {
        std::fs::read_dir(folder)
            .map_or(Vec::new(), |found| found.filter_map(|e| Some(e.ok()?.path())).collect())
    };
    let cases = entries(&here.join("../../cases")).into_iter().map(|case| case.join("golden"));
    let folders: Vec<PathBuf> = cases.chain([here.join("tests/golden")]).collect();
    let files = folders.iter().flat_map(|folder| entries(folder));
    files.filter(|path| path.extension().is_some_and(|e| e == "dwt")).collect()
}

/// The number before a word of a sentence: 69 for `times` in `waited 69 times`.
fn before(text: &str, word: &str) -> Option<u64> {
    let (before, _) = text.split_once(&format!(" {word}"))?;
    let digits: Vec<char> =
        before.chars().rev().take_while(|c| c.is_ascii_digit() || *c == ' ').collect();
    let digits: String = digits.into_iter().rev().filter(|c| *c != ' ').collect();
    digits.parse().ok()
}

/// The time in ns that a sentence ends with: `all waits together take 27.0 ms`.
fn time_after(text: &str, words: &str) -> Option<f64> {
    let mut found = text.split_once(words)?.1.split_whitespace();
    let (value, unit) = (found.next()?.parse::<f64>().ok()?, found.next()?);
    let size = [("ns", 1e0), ("µs", 1e3), ("ms", 1e6), ("s", 1e9)];
    size.iter().find(|(name, _)| unit.starts_with(name)).map(|(_, size)| value * size)
}

/// All sentences of a report.
fn sentences(report: &Report) -> Vec<&str> {
    let mut all: Vec<&str> = Vec::new();
    for finding in &report.findings {
        all.extend([finding.title.as_str(), &finding.text, &finding.remedy]);
        all.extend(finding.evidence.iter().map(String::as_str));
    }
    all.extend(report.ledger.iter().chain(&report.cpu_ledger).map(|row| row.note.as_str()));
    all.extend(report.hazards.iter().map(|hazard| hazard.text.as_str()));
    all.extend(report.warnings.iter().chain(&report.remarks).map(String::as_str));
    all
}

fn rows_have_own_names(rows: &[Row]) {
    let names: BTreeSet<&str> =
        rows.iter().map(|row| AccountId::of_class(&row.account).name()).collect();
    assert_eq!(names.len(), rows.len(), "two rows of one name");
}

fn holds(finding: &Finding, report: &Report, tasks: u64) {
    let Finding { amount_ns, saving_ns, saving_share, low, high, .. } = *finding;
    assert!(saving_ns <= report.net_ns, "more than the run took");
    assert!(low <= saving_share * ROUNDING && saving_share <= high * ROUNDING && high <= ROUNDING);
    let row = report.ledger.iter().find(|row| row.account == finding.class);
    // What waits for a lock, or for the last of a team, is another's work: its row is another.
    if !["wait-lock", "imbalance"].contains(&finding.class.as_str()) {
        let most = row.map_or(0, |row| row.high_ns.max(row.ns));
        assert!(amount_ns as f64 <= most as f64 * ROUNDING, "{amount_ns} of a row of {most}");
    }
    if finding.how == How::Exact && finding.class.starts_with("wait-") {
        assert!(saving_ns <= amount_ns, "more than was waited");
    }
    let shares: f64 = finding.sites.iter().map(|site| site.share).sum();
    let most = if finding.class == "wait-lock" { 2.0 } else { 1.0 };
    assert!(shares <= most * ROUNDING, "places of {shares} of it");
    // The places of these two are of page faults and of samples, not of what the sentence counts.
    let counted = !["memory-churn", "gc"].contains(&finding.class.as_str());
    let times = before(&finding.text, "times").filter(|_| counted);
    for site in &finding.sites {
        assert!(times.is_none_or(|times| site.count <= times), "{}: {}", site.function, site.count);
    }
    for line in &finding.evidence {
        let all = time_after(line, "all waits together take ").unwrap_or_default();
        assert!(all <= tasks as f64 * report.wall_ns as f64, "{line}");
    }
}

#[test]
fn the_numbers_of_each_golden_report_agree() {
    let all = recordings();
    assert!(all.len() > 10, "{all:?}");
    for path in all {
        let bytes = std::fs::read(&path).expect("it was just listed");
        let (trace, _) = Trace::from_bytes(&bytes).expect("old recordings keep reading");
        let tasks: BTreeSet<_> = trace.events().map(|event| event.task).collect();
        let tasks = u64::try_from(tasks.len()).unwrap_or(u64::MAX);
        let report =
            weigh(&Weighing { traces: &[trace], ..Weighing::default() }).expect("a report");
        println!("{}", path.display());
        rows_have_own_names(&report.ledger);
        rows_have_own_names(&report.cpu_ledger);
        for said in sentences(&report) {
            for nonsense in
                ["18446744073709551615", "NaN", "0 bytes in all", " 1 times", "for 0 bytes"]
            {
                let at = said.find(nonsense).filter(|at| {
                    // The 0 of 10 bytes is another number.
                    let before = said[..*at].chars().next_back();
                    !nonsense.starts_with('0') || before.is_none_or(|c| !c.is_ascii_digit())
                });
                assert_eq!(at, None, "{said}");
            }
        }
        for finding in &report.findings {
            println!("  {}: {}", finding.class, finding.text);
            holds(finding, &report, tasks);
        }
    }
}
