//! Golden recordings: a trace of a real program, and the ledger that it must give.
//!
//! `golden/NAME.dwt`, here and in each folder of `cases`, was recorded once and is never recorded
//! again to make a test pass.
//! `golden/NAME.txt` is deadweight's result for it, reviewed by a person; `UPDATE_EXPECT=1 cargo test -p
//! deadweight-core --test golden` rewrites it for review. A trace without a text fails, and so does a text
//! without a trace.
#![expect(clippy::disallowed_methods, reason = "golden files are read by their test")]

use deadweight_core::{Weighing, weigh};
use deadweight_report::report::{Basis, Report};
use deadweight_trace::Trace;
use expect_test::expect_file;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Larger traces belong on a developer's disk.
const LARGEST: usize = 256 << 10;

/// The folders with recordings: this crate's, and one for each case.
fn folders() -> Vec<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut folders = vec![here.join("tests/golden")];
    folders.extend(cases().into_iter().map(|case| case.join("golden")));
    folders
}

/// The folders of the cases, in order.
fn cases() -> Vec<PathBuf> {
    let all = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../cases");
    let entries = std::fs::read_dir(all).expect("the folder is part of the repository");
    let mut cases: Vec<PathBuf> = entries
        .map(|entry| entry.expect("it can be read").path())
        .filter(|path| path.join("case.toml").is_file())
        .collect();
    cases.sort();
    cases
}

/// The paths of all files with this extension, without it, in order.
fn names(extension: &str) -> Vec<PathBuf> {
    let listed = |folder: PathBuf| {
        let none = format!("{} has no recordings", folder.display());
        std::fs::read_dir(folder).expect(&none).map(|entry| entry.expect("it can be read").path())
    };
    let mut names: Vec<PathBuf> = folders()
        .into_iter()
        .flat_map(listed)
        .filter(|path| path.extension().is_some_and(|e| e == extension))
        .map(|path| path.with_extension(""))
        .collect();
    names.sort();
    names
}

fn report(name: &Path) -> Report {
    let bytes = std::fs::read(name.with_extension("dwt")).expect("it was just listed");
    let name = name.display();
    assert!(bytes.len() <= LARGEST, "{name}.dwt is larger than {LARGEST} bytes");
    let (trace, warnings) = Trace::from_bytes(&bytes).expect("old recordings keep reading");
    assert!(warnings.is_empty(), "{name}: {warnings:?}");
    let weighing = Weighing { traces: &[trace], ..Weighing::default() };
    weigh(&weighing).expect("a complete recording can be weighed")
}

/// Everything that a reader would judge, one item per line, times in integer nanoseconds.
fn text(report: &Report) -> String {
    let mut text = String::new();
    write_to(&mut text, report).expect("a string takes everything");
    text
}

fn write_to(text: &mut String, report: &Report) -> std::fmt::Result {
    writeln!(text, "{}", report.command.join(" "))?;
    writeln!(
        text,
        "wall {} ns of {}, cpu {} ns",
        report.wall_ns, report.subject.name, report.cpu_ns
    )?;
    for row in &report.ledger {
        let basis = match row.basis {
            Basis::Exact => String::new(),
            Basis::Sampled => format!(" [{} to {}]", row.low_ns, row.high_ns),
        };
        let line = format!("{:>12} {:18}{basis} {}", row.ns, row.account, row.note);
        writeln!(text, "{}", line.trim_end())?;
    }
    for finding in &report.findings {
        let (amount, saving) = (finding.amount_ns, finding.saving_ns);
        let (low, high) = (100.0 * finding.low, 100.0 * finding.high);
        writeln!(text, "\n{} in {}: {}", finding.class, finding.process, finding.title)?;
        writeln!(
            text,
            "  {amount} ns, saves {saving} ns ({low:.1} to {high:.1} %), {:?}",
            finding.how
        )?;
        writeln!(text, "  {}", finding.text)?;
        for site in &finding.sites {
            let file = site.file.rsplit('/').next().unwrap_or("");
            let share = 100.0 * site.share;
            writeln!(
                text,
                "  {share:5.1} %  {} ({file}:{}) ×{}",
                site.function, site.line, site.count
            )?;
        }
        for line in &finding.evidence {
            writeln!(text, "  evidence: {line}")?;
        }
        writeln!(text, "  do: {}", finding.remedy)?;
    }
    for stage in &report.stages {
        let (alive, cpu, input) = (stage.alive_ns, stage.cpu_ns, stage.input_wait_ns);
        writeln!(
            text,
            "\nstage {}: alive {alive}, cpu {cpu}, input {input} {}",
            stage.name, stage.waited_for
        )?;
    }
    for hazard in &report.hazards {
        writeln!(text, "\nhazard {}: {}", hazard.id, hazard.text)?;
    }
    for warning in &report.warnings {
        writeln!(text, "\nwarning: {warning}")?;
    }
    for remark in &report.remarks {
        writeln!(text, "\nremark: {remark}")?;
    }
    Ok(())
}

#[test]
fn recordings_give_the_ledgers_that_were_reviewed() {
    let traces = names("dwt");
    for folder in folders() {
        let has = traces.iter().any(|trace| trace.starts_with(&folder));
        assert!(has, "{} has no recordings", folder.display());
    }
    for name in traces {
        let report = report(&name);
        let rows: u64 = report.ledger.iter().map(|row| row.ns).sum();
        let file = name.with_extension("txt");
        let name = name.display();
        assert_eq!(rows, report.wall_ns, "{name}: the rows do not add up");
        assert!(file.exists() || std::env::var_os("UPDATE_EXPECT").is_some(), "write {name}.txt");
        expect_file![file].assert_eq(&text(&report));
    }
}

#[test]
fn no_ledger_has_lost_its_recording() {
    let traces = names("dwt");
    for name in names("txt") {
        assert!(traces.contains(&name), "{}.txt has no recording", name.display());
    }
}
