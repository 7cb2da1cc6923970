//! How much the layout in memory alone changes a program's time: no smaller growth can be blamed on a change.
//!
//! Each layout has another size of the environment, which moves the stack, and another link order if a command for that
//! is given. What a layout needs is the CPU time of its fastest run: a layout changes how the code runs, while other
//! programs, and waits for a CPU, only add to a run. The noise is the largest distance of a layout from the median of
//! all, as a part of it.

use super::wanted::Wanted;
use crate::cli::{Ci, Ignore, Runs};
use crate::failure::Failure;
use crate::running::hooks::{Hooks, shell};
use crate::running::interleave::{InterleaveOptions, TraceWhen, interleave};
use crate::running::series::{RunChanges, RunOptions};
use deadweight_report::stats::median::median_of;
use std::ffi::OsString;

/// Runs of each layout.
const RUNS: u32 = 7;
/// Each layout has so many bytes more in its environment: no multiple of a page or a cache line.
const STEP: usize = 1031;

pub(super) fn noise(options: &Ci, wanted: &Wanted, layouts: u32) -> Result<f64, Failure> {
    let sizes = (1..).take(layouts as usize).map(|n: usize| n * STEP % 65_536);
    let commands: Vec<(RunOptions, Hooks)> =
        sizes.map(|size| (run_options(options, wanted, size), wanted.hooks.clone())).collect();
    let how = InterleaveOptions { trace_when: TraceWhen::Never, ..InterleaveOptions::default() };
    let mut no_trace =
        |_: &deadweight_record::Request| Err(Failure::Unknown("no run is traced here".into()));
    let mut fastest = Vec::new();
    // Layouts that are linked anew replace each other.
    let together = if options.relink.is_some() { 1 } else { commands.len().max(1) };
    for (group, seed) in commands.chunks(together).zip(1_u32..) {
        relink(options, &seed.to_string())?;
        for side in interleave(group, &how, &mut no_trace)? {
            let cpu = side.ran.clean.iter().map(|run| (run.user + run.system).0 as f64);
            fastest.push(cpu.fold(f64::INFINITY, f64::min));
        }
    }
    relink(options, "")?;
    Ok(spread(&fastest))
}

/// Links the base in the order of this seed; without one, as usual.
fn relink(options: &Ci, seed: &str) -> Result<(), Failure> {
    let line = options.relink.as_ref().map(|command| {
        let mut line = OsString::from(format!("DEADWEIGHT_SEED={seed}; export DEADWEIGHT_SEED; "));
        line.push(command);
        line
    });
    shell(line.as_ref(), "the command of --relink failed")
}

fn spread(times: &[f64]) -> f64 {
    let middle = median_of(times).max(1.0);
    times.iter().map(|time| (time / middle - 1.0).abs()).fold(0.0, f64::max)
}

fn run_options(options: &Ci, wanted: &Wanted, size: usize) -> RunOptions {
    let padding = format!("DEADWEIGHT_LAYOUT={}", "x".repeat(size));
    let mut argv: Vec<OsString> = vec!["/usr/bin/env".into(), padding.into()];
    argv.extend_from_slice(&wanted.base);
    RunOptions {
        argv,
        runs: Runs::Count(RUNS),
        warmup: 1,
        ignore: options.ignore_failure.clone().unwrap_or(Ignore::None),
        quiet: options.quiet,
        changes: RunChanges::default(),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_noise_is_the_farthest_layout() {
        assert!((super::spread(&[100.0, 101.0, 97.0]) - 0.03).abs() < 1e-9);
        assert_eq!(super::spread(&[100.0, 100.0]).to_bits(), 0.0_f64.to_bits());
    }
}
