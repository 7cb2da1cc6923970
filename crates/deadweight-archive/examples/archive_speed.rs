//! Fills an archive with made-up runs and measures it: `archive_speed ADDRESS RUNS [REPORT.json]`; with 0 runs it only
//! measures. Times are the median of five readings, each on a new connection; in brackets the CPU time of this process.
//!
//! Each run has 12 rows and 20 counts around the same values, as the runs of one program have, and a report of a usual
//! length: a given one with its times changed. All are of one workload, which is the worst case for a series.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a program that measures, and stops where it cannot"
)]

use deadweight_archive::{Archive, Filter, Kept};
use deadweight_report::account::AccountId;
use deadweight_report::report::{CleanRuns, Count, Interval, Report, Row, Runs};
use deadweight_report::tables::Origin;
use std::time::Instant;

/// Runs in one transaction.
const AT_ONCE: u64 = 500;
/// Single additions that are timed.
const SINGLE: u64 = 200;
/// Readings that are timed: the median is given.
const READINGS: usize = 5;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [address, runs, rest @ ..] = &words[..] else {
        println!("archive_speed ADDRESS RUNS [REPORT.json]");
        return;
    };
    let runs: u64 = runs.parse().unwrap();
    let given = rest.first().map(|path| std::fs::read_to_string(path).unwrap());
    let report: Report =
        given.map_or_else(Report::default, |text| serde_json::from_str(&text).unwrap());
    let mut archive = Archive::open(address).unwrap();
    let begun = Instant::now();
    let numbers: Vec<u64> = (0..runs.saturating_sub(SINGLE)).collect();
    let mut bytes = 0;
    for part in numbers.chunks(usize::try_from(AT_ONCE).unwrap()) {
        let kept: Vec<Kept> = part.iter().map(|number| run(&report, *number)).collect();
        bytes = kept[0].report_json.len();
        archive.add_all(&kept).unwrap();
    }
    println!("filled in {:.1} s, reports of {bytes} bytes", begun.elapsed().as_secs_f64());
    let singles = (runs.saturating_sub(SINGLE)..runs).map(|number| {
        let kept = run(&report, number);
        seconds(|| archive.add(&kept).unwrap().new)
    });
    let mut singles: Vec<f64> = singles.collect();
    if !singles.is_empty() {
        println!("one `add`: {:.1} ms", median(&mut singles) * 1e3);
    }
    let read = |what: &str, step: &mut dyn FnMut(&mut Archive) -> f64| {
        let times: Vec<(f64, f64)> = (0..READINGS)
            .map(|_| {
                let mut opened = Archive::open_existing(address).unwrap();
                let before = cpu_seconds();
                let wall = seconds(|| step(&mut opened));
                (wall, cpu_seconds() - before)
            })
            .collect();
        let mut cpu: Vec<f64> = times.iter().map(|(_, cpu)| *cpu).collect();
        let mut wall: Vec<f64> = times.iter().map(|(wall, _)| *wall).collect();
        println!("{what}: {:.3} s ({:.3} s)", median(&mut wall), median(&mut cpu));
    };
    read("series of all runs, each row and count read", &mut |archive| {
        let series = archive.series("synthetic").unwrap();
        let rows = series.points.iter().flat_map(|point| point.rows().map(|(_, ns)| ns as f64));
        let counts = series.points.iter().flat_map(|point| point.counts().map(|(_, value)| value));
        assert!(series.points.len() as u64 >= runs);
        rows.sum::<f64>() + counts.sum::<f64>()
    });
    read("workloads", &mut |archive| archive.workloads().unwrap().len() as f64);
    read("list of the last 20", &mut |archive| {
        archive.list(&Filter { last: Some(20), ..Filter::default() }).unwrap().len() as f64
    });
    read("list of all", &mut |archive| archive.list(&Filter::default()).unwrap().len() as f64);
    let checking = Instant::now();
    let checked = archive.check().unwrap();
    println!("check: {:.1} s", checking.elapsed().as_secs_f64());
    let kept = checked.tables.iter().find(|(table, _)| *table == "runs");
    let all = kept.map_or(1, |(_, rows)| *rows).max(1);
    println!(
        "{} bytes for each run, {} MB in all; {:?}",
        checked.bytes / all,
        checked.bytes >> 20,
        checked.problems
    );
}

/// A run: times that wander by 10 % without a random generator.
fn run(report: &Report, number: u64) -> Kept {
    let ns = |base: u64, at: u64| base + (number * 7_919 + at * 104_729) % (base / 10);
    let names: Vec<&str> = AccountId::all().take(12).map(AccountId::id).collect();
    let ledger: Vec<Row> = (1..)
        .zip(names)
        .map(|(at, account)| Row {
            account: account.into(),
            ns: ns(10_000_000, at),
            share: 0.08,
            ..Row::default()
        })
        .collect();
    let wall_ns = ledger.iter().map(|row| row.ns).sum();
    let counts = (0..20)
        .map(|at| {
            let value = ns(100_000, at);
            Count { name: format!("count-{at}"), value, low: value, high: value, exact: true }
        })
        .collect();
    let clean = CleanRuns {
        count: 30,
        wall_ns: Interval { median: wall_ns, low: wall_ns - 1000, high: wall_ns + 1000 },
        each_ns: (0..30).map(|at| ns(120_000_000, at)).collect(),
        ..CleanRuns::default()
    };
    let runs = Runs { clean, ..report.runs.clone() };
    let report = Report { ledger, counts, wall_ns, net_ns: wall_ns, runs, ..report.clone() };
    let time = 1_600_000_000 + i64::try_from(number).unwrap() * 600;
    let origin = Origin {
        workload: "synthetic".into(),
        commit: format!("{:040x}", u128::from(number) * 0x9e37_79b9_7f4a_7c15),
        commit_time: time - 300,
        branch: "main".into(),
        time,
        kind: "deadweight".into(),
        ..Origin::default()
    };
    Kept::new(&report, &serde_json::to_string(&report).unwrap(), &origin)
}

fn seconds<T>(mut step: impl FnMut() -> T) -> f64 {
    let begun = Instant::now();
    std::hint::black_box(step());
    begun.elapsed().as_secs_f64()
}

/// CPU time of this thread so far.
fn cpu_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap();
    text.split(' ').next().unwrap().parse::<f64>().unwrap() / 1e9
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
