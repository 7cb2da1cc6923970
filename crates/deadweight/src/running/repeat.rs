//! `-r`: clean runs for the time, traced runs for the reasons.
//!
//! The order is: warm-ups, clean runs for half a second, all traced runs, the other clean runs. Clean runs come first
//! because nothing was traced before them. The traced runs follow soon because the user may stop the command, and in
//! one block because the kernel needs a while to return to normal after each. The first run is not counted if cold
//! caches made it slower.

use super::counting_run::CountingRun;
use super::series::{RunOptions, RunResults, Series, Tracing, is_slower};
use crate::failure::Failure;
use std::time::{Duration, Instant};

/// Time for clean runs until the traced runs start. A first run shorter than this is not counted.
const BEFORE_TRACED: Duration = Duration::from_millis(500);

/// Runs the command as often as the options ask for, and once more if `counting` has something to count.
///
/// # Errors
/// If it cannot be started or recorded, or its input cannot be read again.
pub fn repeat(
    options: &RunOptions,
    tracing: &mut Tracing<'_>,
    counting: &mut CountingRun,
) -> Result<RunResults, Failure> {
    let mut series = Series::begin(options)?;
    let mut ran = RunResults::default();
    for number in 0..options.warmup {
        series.say(&format!("warm-up {} of {}", number + 1, options.warmup));
        series.clean_run()?;
    }
    let begun = Instant::now();
    let mut since = begun;
    let mut warm = options.warmup > 0;
    if !warm && !series.is_stopped() {
        series.clean_run_for(&mut ran)?;
        if begun.elapsed() < BEFORE_TRACED {
            ran.clean.clear();
            (warm, since) = (true, Instant::now());
        }
    }
    while series.goes_on(&ran, since) && begun.elapsed() < BEFORE_TRACED {
        series.clean_run_for(&mut ran)?;
    }
    let traced = Instant::now();
    series.traced_runs(&mut ran, tracing)?;
    // The time of traced runs does not count for clean runs.
    since += traced.elapsed();
    if !warm && is_slower(&ran.clean, &ran.traces) {
        ran.clean.clear();
    }
    while series.goes_on(&ran, since) {
        series.clean_run_for(&mut ran)?;
    }
    let failed = ran.failed_clean_runs();
    ran.leave_out(&failed);
    counting_run(&mut series, &ran, tracing, counting);
    series.conclude(&mut ran);
    ran.input = Some(series.into_input());
    Ok(ran)
}

/// The counting run. A failure of it costs nothing else.
fn counting_run(
    series: &mut Series<'_>,
    ran: &RunResults,
    tracing: &mut Tracing<'_>,
    counting: &mut CountingRun,
) {
    if series.is_stopped() {
        return;
    }
    let counts = counting.probes(ran);
    if !counts.is_empty() {
        series.say("counting run");
        let longest = counting.counting_time(&ran.clean);
        let run = series.traced_run(tracing, counts, Some(longest));
        counting.finish(run.map_err(|failure| failure.to_string()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Ignore, Runs};
    use crate::running::series::RunChanges;
    use deadweight_record::{Request, run_clean};
    use deadweight_trace::symbols::Symbols;
    use deadweight_trace::{Exit, Meta, Trace};
    use std::ffi::OsString;

    fn run_options(argv: &[&str], runs: Runs) -> RunOptions {
        let argv = argv.iter().map(OsString::from).collect();
        RunOptions {
            argv,
            runs,
            warmup: 0,
            ignore: Ignore::None,
            quiet: true,
            changes: RunChanges::default(),
        }
    }

    /// Stands for a traced run; these tests are about the order of runs.
    fn untraced(request: &Request) -> Result<Trace, Failure> {
        let run = run_clean(request)?;
        let meta = Meta { end: run.wall, exit: Some(run.exit), ..Meta::default() };
        Ok(Trace::new(meta, Symbols::default(), Vec::new()))
    }

    #[test]
    fn as_many_clean_runs_as_requested_and_traced_ones_between() {
        let ran = repeat(
            &run_options(&["/bin/true"], Runs::Count(4)),
            &mut untraced,
            &mut CountingRun::default(),
        )
        .unwrap();
        assert_eq!((ran.clean.len(), ran.traces.len()), (4, 4));
        assert_eq!(ran.exit, Exit::default());
    }

    #[test]
    fn a_failure_stops_repeating_unless_ignored() {
        let mut options = run_options(&["/bin/false"], Runs::Count(3));
        let ran = repeat(&options, &mut untraced, &mut CountingRun::default()).unwrap();
        assert_eq!((ran.clean.len(), ran.traces.len(), ran.exit.code), (0, 1, 1));
        assert!(ran.hazards.iter().any(|h| h.id == "stopped-repeating"));
        options.ignore = Ignore::All;
        let ran = repeat(&options, &mut untraced, &mut CountingRun::default()).unwrap();
        // All runs are alike.
        assert_eq!((ran.clean.len(), ran.exit.code), (3, 1));
        assert_eq!(ran.hazards, []);
    }

    #[test]
    fn runs_that_failed_are_left_out_if_others_did_not() {
        let counter = std::env::temp_dir().join(format!("deadweight-flaky-{}", std::process::id()));
        std::fs::write(&counter, "").unwrap();
        let script = format!(
            "echo >> {0}; [ $(( $(wc -l < {0}) % 3 )) -ne 2 ] || exit 3",
            counter.display()
        );
        let options = RunOptions {
            ignore: Ignore::All,
            warmup: 1,
            ..run_options(&["sh", "-c", &script], Runs::Count(9))
        };
        let ran = repeat(&options, &mut untraced, &mut CountingRun::default()).unwrap();
        std::fs::remove_file(&counter).unwrap();
        let ends = ran.clean.iter().map(|run| run.exit);
        let traced = ran.traces.iter().map(|trace| trace.meta.exit.unwrap());
        assert!(ends.chain(traced).all(|exit| exit == Exit::default()), "{ran:?}");
        let runs = ran.clean.len() + ran.traces.len() + ran.failed.len();
        let said = format!("{} of {runs} runs failed (exit code 3: {0})", ran.failed.len());
        let [hazard] = ran.hazards.as_slice() else { panic!("{:?}", ran.hazards) };
        assert!(ran.failed.len() >= 3 && hazard.text.starts_with(&said), "{hazard:?} {said}");
    }

    #[test]
    fn a_run_that_was_stopped_early_does_not_count() {
        let counter = std::env::temp_dir().join(format!("deadweight-cut-{}", std::process::id()));
        std::fs::write(&counter, "").unwrap();
        // One warm-up run, nine clean ones, two traced ones; the next is interrupted. On a slow machine the first
        // run may count.
        let script =
            format!("echo >> {0}; [ $(wc -l < {0}) -lt 13 ] || kill -INT $$", counter.display());
        let options = RunOptions {
            ignore: Ignore::All,
            ..run_options(&["sh", "-c", &script], Runs::Count(9))
        };
        let ran = repeat(&options, &mut untraced, &mut CountingRun::default()).unwrap();
        let counted = ran.clean.len() + ran.traces.len();
        assert!((11..=12).contains(&counted), "{ran:?}");
        assert_eq!(ran.exit.signal, Some(libc::SIGINT));
        let again = repeat(&options, &mut untraced, &mut CountingRun::default());
        std::fs::remove_file(&counter).unwrap();
        assert!(matches!(again, Err(Failure::Interrupted)), "no run was traced: {again:?}");
    }
}
