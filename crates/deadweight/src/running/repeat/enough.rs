//! When a series of runs is long enough. Not for running any.

use crate::cli::Runs;
use deadweight_core::CleanRun;
use deadweight_report::stats::median;
use deadweight_trace::Trace;
use std::time::{Duration, Instant};

/// How `-r auto` decides that it is enough.
const AUTO_PRECISION: f64 = 0.02;
/// How long the clean runs of `-r auto` go on at most, as long as there are runs enough to say anything.
const AUTO_TIME: Duration = Duration::from_secs(3);
/// No series needs more runs than this.
const AUTO_MOST: usize = 1000;
/// Traced runs together should last this long: some two thousand samples at 5 kHz.
const TRACED_TIME: u64 = 400_000_000;
/// More traced runs than this say nothing new.
const TRACED_MOST: u64 = 10;

/// Whether the only clean run took longer than a traced one: then caches were cold for it.
pub(super) fn is_slower(clean: &[CleanRun], traces: &[Trace]) -> bool {
    let warm = traces.iter().map(|trace| trace.wall().0).min();
    warm.is_some_and(|warm| clean.iter().all(|run| run.wall.0 > warm))
}

/// How many traced runs make the shares firm without taking longer than the clean runs.
pub(super) fn traced_wanted(first: Option<&Trace>, runs: Runs) -> u64 {
    let wall = first.map_or(1, |t| t.wall().0).max(1);
    let most = match runs {
        Runs::Count(n) => u64::from(n).min(TRACED_MOST),
        Runs::Auto => TRACED_MOST,
    };
    TRACED_TIME.div_ceil(wall).clamp(1, most.max(1))
}

pub(super) fn enough(runs: Runs, clean: &[CleanRun], since: Instant) -> bool {
    match runs {
        Runs::Count(n) => clean.len() as u64 >= u64::from(n),
        Runs::Auto => {
            let walls: Vec<u64> = clean.iter().map(|run| run.wall.0).collect();
            let known = median::summarise(&walls).precision() <= AUTO_PRECISION;
            let late = since.elapsed() >= AUTO_TIME && !clean.is_empty();
            known || late || clean.len() >= AUTO_MOST
        }
    }
}

pub(super) fn progress(runs: Runs, done: usize) -> String {
    match runs {
        Runs::Count(n) => format!("run {} of {n}", done + 1),
        Runs::Auto => format!("run {}, until the median is known to 2 %", done + 1),
    }
}
