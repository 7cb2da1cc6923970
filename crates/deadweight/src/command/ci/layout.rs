//! How much the layout in memory alone changes a program's time: no smaller growth can be blamed on a change.
//!
//! Each layout has another size of the environment, which moves the stack, and another link order if a command for that
//! is given. What a layout needs is the CPU time of its fastest run: a layout changes how the code runs, while other
//! programs, and waits for a CPU, only add to a run. The noise is the largest distance of a layout from the median of
//! all, as a part of it. A slow layout is measured again: another program may have been busy during all of its runs.

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
/// Times that differ by less are the same.
const SAME: f64 = 0.02;
/// Each layout has so many bytes more in its environment: no multiple of a page or a cache line.
const STEP: usize = 1031;

pub(super) fn noise(options: &Ci, wanted: &Wanted, layouts: u32) -> Result<f64, Failure> {
    let sizes = (1..).take(layouts as usize).map(|n: usize| n * STEP % 65_536);
    let commands: Vec<(RunOptions, Hooks)> =
        sizes.map(|size| (run_options(options, wanted, size), wanted.hooks.clone())).collect();
    let mut fastest = Vec::new();
    // Layouts that are linked anew replace each other.
    let together = if options.relink.is_some() { 1 } else { commands.len().max(1) };
    for (group, seed) in commands.chunks(together).zip(1_u32..) {
        relink(options, &seed.to_string())?;
        fastest.extend(measure(group)?);
    }
    again(&mut fastest, |at| {
        relink(options, &(at + 1).to_string())?;
        Ok(measure(&commands[at..=at])?.into_iter().fold(f64::INFINITY, f64::min))
    })?;
    relink(options, "")?;
    Ok(farthest(&fastest).map_or(0.0, |(_, distance)| distance.abs()))
}

/// The CPU time of the fastest run of each, in ns.
fn measure(commands: &[(RunOptions, Hooks)]) -> Result<Vec<f64>, Failure> {
    let how = InterleaveOptions { trace_when: TraceWhen::Never, ..InterleaveOptions::default() };
    let mut no_trace =
        |_: &deadweight_record::Request| Err(Failure::Unknown("no run is traced here".into()));
    let sides = interleave(commands, &how, &mut no_trace)?;
    let fastest = sides.iter().map(|side| {
        let cpu = side.ran.clean.iter().map(|run| (run.user + run.system).0 as f64);
        cpu.fold(f64::INFINITY, f64::min)
    });
    Ok(fastest.collect())
}

/// Measures the slowest layout again while that makes it faster: what slowed it down was then another program.
fn again(
    fastest: &mut [f64],
    mut measure: impl FnMut(usize) -> Result<f64, Failure>,
) -> Result<(), Failure> {
    for _ in 0..fastest.len() {
        let Some((at, distance)) = farthest(fastest) else { return Ok(()) };
        if distance < SAME {
            return Ok(());
        }
        let now = measure(at)?;
        if now > fastest[at] * (1.0 - SAME) {
            return Ok(());
        }
        fastest[at] = now;
    }
    Ok(())
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

/// Which one is farthest from the median, and how far, as a part of it.
fn farthest(times: &[f64]) -> Option<(usize, f64)> {
    let middle = median_of(times).max(1.0);
    let distances = times.iter().map(|time| time / middle - 1.0).enumerate();
    distances.max_by(|a, b| a.1.abs().total_cmp(&b.1.abs()))
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
    use super::*;

    #[test]
    fn the_noise_is_the_farthest_layout() {
        let (at, distance) = farthest(&[100.0, 101.0, 97.0]).unwrap();
        assert!(at == 2 && (distance + 0.03).abs() < 1e-9, "{at} {distance}");
        assert_eq!(farthest(&[100.0, 100.0]).unwrap().1.to_bits(), 0.0_f64.to_bits());
        assert_eq!(farthest(&[]), None);
    }

    /// The layouts that are measured again, and what is left.
    fn measured_again(first: [f64; 4], later: f64) -> (Vec<usize>, Vec<f64>) {
        let (mut fastest, mut which) = (first.to_vec(), Vec::new());
        let measured = again(&mut fastest, |at| {
            which.push(at);
            Ok(later)
        });
        assert!(measured.is_ok());
        (which, fastest)
    }

    #[test]
    fn a_slow_layout_is_measured_again_while_that_makes_it_faster() {
        let neighbour = measured_again([100.0, 310.0, 101.0, 100.0], 101.0);
        assert_eq!(neighbour, (vec![1], vec![100.0, 101.0, 101.0, 100.0]));
        let slow = measured_again([100.0, 130.0, 101.0, 100.0], 130.5);
        assert_eq!(slow, (vec![1], vec![100.0, 130.0, 101.0, 100.0]), "it is the layout");
        let fast = measured_again([100.0, 80.0, 101.0, 100.0], 1.0);
        assert_eq!(fast.0, [0; 0], "nothing makes a run faster than it is");
        let busy = measured_again([200.0, 310.0, 100.0, 100.0], 100.0);
        assert_eq!(busy, (vec![1, 0], vec![100.0; 4]));
    }
}
