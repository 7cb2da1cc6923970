//! How long the statistics of a comparison of long series take, warm: 10 000 runs of each command.
//! `cargo run --release -p deadweight-report --example statistics_speed`.
//!
//! Not a test: times depend on the machine.
#![expect(clippy::print_stdout, reason = "a measurement for people")]
#![expect(clippy::disallowed_types, reason = "it measures time; the core itself has no clock")]

use deadweight_report::compare::compare;
use deadweight_report::report::{CleanRuns, Report, Row, Runs};
use deadweight_report::stats::median::summarise;
use deadweight_report::stats::spread::doubts;
use std::time::Instant;

const RUNS: u64 = 10_000;

fn series(seed: u64) -> Vec<u64> {
    (0..RUNS).map(|i| 2_000_000 + (i * 7919 + seed) % 10_007 * 13).collect()
}

fn report(each: &[u64]) -> Report {
    let clean = CleanRuns {
        count: u32::try_from(each.len()).unwrap_or(u32::MAX),
        wall_ns: summarise(each).interval,
        each_ns: each.to_vec(),
        ..CleanRuns::default()
    };
    let ns = clean.wall_ns.median;
    let row = Row { account: "net-work".into(), ns, ..Row::default() };
    Report {
        wall_ns: ns,
        ledger: vec![row],
        runs: Runs { clean, ..Runs::default() },
        ..Report::default()
    }
}

fn main() {
    let [a, b] = [series(1), series(500)];
    for paired in [true, false] {
        let mut took: Vec<f64> = (0..9)
            .map(|_| {
                let since = Instant::now();
                let odd = doubts(&a).len() + doubts(&b).len();
                let found = compare(("a", &report(&a)), ("b", &report(&b)), paired);
                assert!(odd < 9 && found.ratio.value > 0.0, "computed");
                since.elapsed().as_secs_f64() * 1e3
            })
            .collect();
        took.sort_by(f64::total_cmp);
        let how = if paired { "in pairs" } else { "independent" };
        println!("{RUNS} runs of each, {how}: {:.1} ms (median of {})", took[4], took.len());
    }
}
