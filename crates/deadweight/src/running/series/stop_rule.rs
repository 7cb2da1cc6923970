//! When a series has enough runs. Starts none.

use crate::cli::Runs;
use deadweight_core::CleanRun;
use deadweight_report::stats::median;
use deadweight_trace::Trace;
use std::time::{Duration, Instant};

/// `-r auto` stops at this precision of the median.
const AUTO_PRECISION: f64 = 0.02;
/// How long the clean runs of `-r auto` go on at most, if there is at least one run.
const AUTO_TIME: Duration = Duration::from_secs(3);
/// The most clean runs of `-r auto`.
const AUTO_MOST: usize = 1000;
/// Traced runs together should take this long, in ns: some two thousand samples at 5 kHz.
const TRACED_TIME: u64 = 400_000_000;
/// The most traced runs: more add no information.
const TRACED_MOST: u64 = 10;

/// Whether the only clean run took longer than a traced one: then it had cold caches.
pub(in crate::running) fn is_slower(clean: &[CleanRun], traces: &[Trace]) -> bool {
    let warm = traces.iter().map(|trace| trace.wall().0).min();
    warm.is_some_and(|warm| clean.iter().all(|run| run.wall.0 > warm))
}

/// How many traced runs give enough samples without taking longer than the clean runs.
pub(super) fn traced_wanted(first: Option<&Trace>, runs: Runs) -> u64 {
    let wall = first.map_or(1, |t| t.wall().0).max(1);
    let most = match runs {
        Runs::Count(n) => u64::from(n).min(TRACED_MOST),
        Runs::Auto => TRACED_MOST,
    };
    TRACED_TIME.div_ceil(wall).clamp(1, most.max(1))
}

/// Whether there are enough clean runs.
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

/// What the progress line shows before the next clean run.
pub(super) fn progress(runs: Runs, done: usize) -> String {
    match runs {
        Runs::Count(n) => format!("run {} of {n}", done + 1),
        Runs::Auto => format!("run {}, until the median is known to 2 %", done + 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use deadweight_trace::Meta;
    use deadweight_trace::symbols::Symbols;
    use deadweight_trace::units::Ns;

    #[test]
    fn traced_runs_are_fewer_the_longer_the_command_takes() {
        let trace = |ms: u64| {
            let meta = Meta { end: Ns(ms * 1_000_000), ..Meta::default() };
            Trace::new(meta, Symbols::default(), Vec::new())
        };
        let wanted = |ms, runs| traced_wanted(Some(&trace(ms)), runs);
        assert_eq!(wanted(1, Runs::Count(30)), 10);
        assert_eq!(wanted(1, Runs::Count(5)), 5);
        assert_eq!(wanted(150, Runs::Auto), 3);
        assert_eq!(wanted(3000, Runs::Count(30)), 1);
    }
}
