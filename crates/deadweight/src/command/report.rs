//! `report F`: the report of an existing recording, perhaps of another machine; or a report that was exported.

use super::pictures::pictured;
use super::recording;
use super::view::{DefaultStream, ReportOutputs};
use super::weighing::{Asked, made_before, weighed_trace, weighed_traces};
use crate::cli::{Report, View};
use crate::debuginfod::Debuginfod;
use crate::failure::Failure;
use crate::inlining;
use crate::render::picture::Picture;
use crate::running::progress::Progress;
use deadweight_report::report::Report as Weighed;
use deadweight_report::wording::bytes;
use deadweight_trace::Trace;
use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

const SECOND: Duration = Duration::from_secs(1);

pub(crate) fn report(options: &Report) -> Result<u8, Failure> {
    let bytes = recording::bytes(&options.file)?;
    let mut debuginfod = Debuginfod::new(options.view.debuginfod.no_debuginfod, options.view.quiet);
    let (report, picture) = if options.view.explain_inlining {
        let mut trace = recording::of(&bytes, &options.file)?;
        inlining::explain(std::slice::from_mut(&mut trace));
        weigh(trace, options, &mut debuginfod)?
    } else {
        debuginfod.start();
        let what = reading(&options.file, bytes.len());
        confined(&what, options.view.quiet, || read(bytes, options, &mut debuginfod))?
    };
    // Only now, so that an unreadable recording leaves no output file.
    let outputs = ReportOutputs::open(&options.view, DefaultStream::Stdout)?;
    // Go's compiler and a browser need the user's rights.
    if !options.view.explain_inlining && !options.view.pictures.open {
        deadweight_record::confine();
    }
    outputs.write(&report, picture.as_ref())?;
    Ok(0)
}

/// The report of a recording, or one that was made before.
fn read(
    bytes: Vec<u8>,
    options: &Report,
    debuginfod: &mut Debuginfod,
) -> Result<(Weighed, Option<Picture>), Failure> {
    let View { of, inside, why, pictures, .. } = &options.view;
    match made_before(&bytes, &options.file) {
        None => {
            let trace = recording::of(&bytes, &options.file)?;
            // The trace has its own copy: a long recording is not kept twice.
            drop(bytes);
            weigh(trace, options, debuginfod)
        }
        Some(_) if of.is_some() || inside.is_some() || *why || pictures.any() => {
            Err(Failure::Unknown(format!(
                "{} is a report, and --of, --in, --why, pages and drawings need the recording that it was made of",
                options.file.display()
            )))
        }
        Some(report) => Ok((report?, None)),
    }
}

fn weigh(
    mut trace: Trace,
    options: &Report,
    debuginfod: &mut Debuginfod,
) -> Result<(Weighed, Option<Picture>), Failure> {
    debuginfod.complete(std::slice::from_mut(&mut trace));
    let view = &options.view;
    if !view.pictures.any() {
        return Ok((weighed_trace(trace, Asked::by(view))?, None));
    }
    let traces = std::slice::from_ref(&trace);
    let report = weighed_traces(traces, &[], Asked::by(view))?;
    Ok((report, pictured(&view.pictures, traces, view.of.as_ref())?))
}

/// What is said while a recording of this size is read.
pub(super) fn reading(file: &Path, size: usize) -> String {
    format!("reading {} ({})", file.display(), bytes(size as u64))
}

/// Reads a recording that others may have written, in a thread that may do nothing else. The thread has as much stack
/// as the main thread. Unless `quiet`, `what` is said after a second.
pub(super) fn confined<T: Send>(
    what: &str,
    quiet: bool,
    read: impl FnOnce() -> Result<T, Failure> + Send,
) -> Result<T, Failure> {
    const STACK: usize = 8 << 20;
    let read = || {
        deadweight_record::confine();
        read()
    };
    // Nothing is ever sent: the end of the thread ends it.
    let (end, ended) = mpsc::channel::<()>();
    let read = move || {
        let _end = end;
        read()
    };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, read);
        let thread =
            thread.map_err(|error| Failure::Unknown(format!("cannot start a thread: {error}")))?;
        let (mut progress, begun) = (Progress::alone(quiet), Instant::now());
        while ended.recv_timeout(SECOND) == Err(RecvTimeoutError::Timeout) {
            progress.say(&format!("{what}: {} s", begun.elapsed().as_secs()));
        }
        progress.done();
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}
