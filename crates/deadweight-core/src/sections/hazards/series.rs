//! Hazards of a series of clean runs, with the cause where the kernel counted it.
//!
//! Nothing was traced in these runs, but the kernel counts some things of every program: CPU time, blocks
//! read from storage, involuntary switches, throttled time. What the odd runs have more of than the others
//! is why they are odd. `stats::spread` decides which runs are odd.

use super::hazard;
use crate::facts::clean_run::CleanRun;
use deadweight_report::report::Hazard;
use deadweight_report::stats::median::summarise;
use deadweight_report::stats::spread::{Doubt, are_outliers, doubts};
use deadweight_report::wording::{bytes, things, time};
use deadweight_trace::units::Ns;

/// A cause has to account for this share of the odd runs' extra time.
const ENOUGH: f64 = 0.5;
/// Bytes in the blocks that the kernel counts.
const BLOCK: u64 = 512;
/// A cold cache is the cause only if the odd run read at least this many blocks more.
const NOTABLE_BLOCKS: u64 = 64;

/// The hazards of the clean runs.
pub(crate) fn of_series(clean: &[CleanRun]) -> Vec<Hazard> {
    let walls: Vec<u64> = clean.iter().map(|run| run.wall.0).collect();
    let noisy = |doubt: &Doubt| hazard("noisy", worded(doubt, &cause(doubt, clean, &walls)));
    doubts(&walls).iter().map(noisy).collect()
}

fn worded(doubt: &Doubt, cause: &str) -> String {
    let or = |unknown: &'static str| if cause.is_empty() { unknown } else { cause }.to_owned();
    match doubt {
        Doubt::ColdStart { factor } => format!(
            "The first run took {factor:.1} times as long as the others{}. One more --warmup \
             leaves it out.",
            or(": caches were cold")
        ),
        Doubt::Outliers { count, factor } => format!(
            "{} far from the rest (up to {factor:.1} times the median){cause}. The median is robust against this; \
             more runs narrow the interval.",
            if *count == 1 { "1 run was".to_owned() } else { format!("{count} runs were") }
        ),
        Doubt::TwoModes { fast, slow, slow_count } => format!(
            "The runs fall into two groups, around {} and {} ({slow_count} slow ones){}. Look at the \
             machine or the input before trusting the median.",
            time(Ns(*fast)),
            time(Ns(*slow)),
            or(": something differs between runs")
        ),
        Doubt::Drift { factor } => format!(
            "The later runs took {factor:.2} times as long as the earlier ones{}. Repeat.",
            or(": the machine or the program's files changed meanwhile")
        ),
    }
}

/// Which runs are odd.
fn odd(doubt: &Doubt, walls: &[u64]) -> Vec<bool> {
    match doubt {
        Doubt::ColdStart { .. } => (0..walls.len()).map(|at| at == 0).collect(),
        Doubt::Outliers { .. } => are_outliers(walls),
        Doubt::TwoModes { fast, slow, .. } => {
            walls.iter().map(|wall| wall.abs_diff(*slow) < wall.abs_diff(*fast)).collect()
        }
        // The slower half, whichever it is.
        Doubt::Drift { factor } => {
            (0..walls.len()).map(|at| (at >= walls.len() / 2) == (*factor > 1.0)).collect()
        }
    }
}

/// What the odd runs have more of, as a sentence; empty if no counter shows a cause.
fn cause(doubt: &Doubt, clean: &[CleanRun], walls: &[u64]) -> String {
    let odd = odd(doubt, walls);
    let middle = |which: bool, value: fn(&CleanRun) -> u64| {
        let fitting = clean.iter().zip(&odd).filter(|(_, odd)| **odd == which);
        summarise(&fitting.map(|(run, _)| value(run)).collect::<Vec<_>>()).interval.median
    };
    let more = |value| middle(true, value).saturating_sub(middle(false, value));
    let longer = more(|run| run.wall.0);
    if longer == 0 {
        return String::new();
    }
    let explains = |ns: u64| ns as f64 >= ENOUGH * longer as f64;
    let throttled = more(|run| run.counters.throttled.0);
    let read = more(|run| run.counters.blocks_read);
    let on_cpu = more(|run| (run.user + run.system).0);
    let displaced = more(|run| run.counters.displaced);
    if explains(throttled) {
        format!(": a CPU quota of the cgroup took {} more", time(Ns(throttled)))
    } else if read >= NOTABLE_BLOCKS {
        format!(", reading {} from storage that the others had in memory", bytes(read * BLOCK))
    } else if explains(on_cpu) {
        format!(
            ", with {} more CPU time: the CPU was slower (its clock, its caches, another virtual machine), or \
             there was more to do",
            time(Ns(on_cpu))
        )
    } else if displaced > 0 {
        format!(": other programs took the CPU away {} more", things(displaced, "time"))
    } else {
        format!(", with {} more of waiting without a CPU", time(Ns(longer - on_cpu)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::clean_run::RunCounters;

    fn run(wall: u64, cpu: u64, counters: RunCounters) -> CleanRun {
        CleanRun { wall: Ns(wall), user: Ns(cpu), counters, ..CleanRun::default() }
    }

    /// Nine similar runs and one different.
    fn said(odd: CleanRun, at: usize) -> String {
        let mut runs: Vec<CleanRun> =
            (0..9).map(|i| run(1_000_000 + i, 900_000, RunCounters::default())).collect();
        runs.insert(at, odd);
        let found = of_series(&runs);
        assert_eq!(found.len(), 1, "{found:?}");
        found[0].text.clone()
    }

    #[test]
    fn an_odd_run_is_reported_with_its_cause() {
        let plain = RunCounters::default();
        let read = RunCounters { blocks_read: 4096, ..plain };
        let cold = said(run(3_000_000, 900_000, read), 4);
        assert!(cold.contains("2 MiB from storage"), "{cold}");
        let first = said(run(3_000_000, 900_000, read), 0);
        assert!(first.contains("first run") && first.contains("from storage"), "{first}");
        let displaced = RunCounters { displaced: 3, ..plain };
        assert!(said(run(3_000_000, 900_000, displaced), 4).contains("the CPU away 3 times more"));
        let throttled = RunCounters { throttled: Ns(1_900_000), ..displaced };
        assert!(said(run(3_000_000, 900_000, throttled), 4).contains("quota"));
        assert!(said(run(3_000_000, 2_800_000, displaced), 4).contains("more CPU time"));
        assert!(said(run(3_000_000, 900_000, plain), 4).contains("2.00 ms more of waiting"));
    }

    #[test]
    fn an_even_series_says_nothing() {
        let runs: Vec<CleanRun> =
            (0..20).map(|i| run(1000 + (i * 37) % 50, 900, RunCounters::default())).collect();
        assert_eq!(of_series(&runs), []);
    }
}
