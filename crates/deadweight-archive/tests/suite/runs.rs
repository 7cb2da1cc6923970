//! Runs to keep, made up: with every table filled.

use deadweight_archive::Kept;
use deadweight_report::report::{
    Build, CleanRuns, Count, Finding, Hazard, Interval, MachineInfo, Report, Row, Runs, Site,
};
use deadweight_report::tables::Origin;

/// A report whose times depend on `number`.
fn report(number: u64) -> Report {
    let ns = 1_000_000 + number;
    let row = |account: &str, ns| Row { account: account.into(), ns, share: 0.5, ..Row::default() };
    let site = Site { function: "main".into(), file: "a.c".into(), line: 3, ..Site::default() };
    Report {
        schema: deadweight_report::report::SCHEMA,
        deadweight: "0.1.0".into(),
        method: 1,
        machine: MachineInfo { arch: "x86_64".into(), cpus: 2, ..MachineInfo::default() },
        builds: vec![Build { path: "/bin/p".into(), build_id: "ab".into(), ..Build::default() }],
        command: vec!["./p".into(), "it's \u{1b}[31m".into()],
        wall_ns: ns,
        net_ns: ns - 1,
        ledger: vec![row("net-work", ns - 10), row("tiny-reads", 10)],
        findings: vec![Finding { saving_share: 0.5, sites: vec![site], ..Finding::default() }],
        counts: vec![Count { name: "calls".into(), value: 7, exact: true, ..Count::default() }],
        hazards: vec![Hazard { id: "few-runs".into(), ..Hazard::default() }],
        runs: Runs {
            clean: CleanRuns {
                count: 3,
                wall_ns: Interval { median: ns, low: ns - 2, high: ns + 2 },
                each_ns: vec![ns - 2, ns, ns + 2],
                ..CleanRuns::default()
            },
            ..Runs::default()
        },
        ..Report::default()
    }
}

/// A run of `workload`, measured at the second `number`.
pub(crate) fn run(workload: &str, number: u64) -> Kept {
    run_with(workload, number, |_| {})
}

/// The same with a changed report.
pub(crate) fn run_with(workload: &str, number: u64, change: impl Fn(&mut Report)) -> Kept {
    let origin = Origin {
        workload: workload.into(),
        commit: format!("{number:040x}"),
        commit_time: 0,
        branch: "main".into(),
        dirty: number % 2 == 1,
        time: i64::try_from(number).unwrap(),
        kind: "deadweight".into(),
        source: String::new(),
    };
    let mut report = report(number);
    change(&mut report);
    Kept::new(&report, &serde_json::to_string_pretty(&report).unwrap(), &origin)
}
