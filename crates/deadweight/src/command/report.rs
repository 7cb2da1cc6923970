//! `report F`: the report of a recording made earlier, perhaps elsewhere.

use super::recording;
use super::view::{Reader, Usually};
use super::weighing::weighed_traces;
use crate::cli::{Report, View};
use crate::failure::Failure;
use crate::inlining;
use deadweight_report::report::Report as Weighed;
use deadweight_trace::Trace;

pub(crate) fn report(options: &Report) -> Result<u8, Failure> {
    let bytes = recording::bytes(&options.file)?;
    let report = if options.view.explain_inlining {
        let mut trace = recording::of(&bytes, &options.file)?;
        inlining::explain(std::slice::from_mut(&mut trace));
        weigh(trace, options)?
    } else {
        without_rights(|| weigh(recording::of(&bytes, &options.file)?, options))?
    };
    // Only now: of what is no recording no file is left.
    let reader = Reader::open(&options.view, Usually::Stdout)?;
    if !options.view.explain_inlining {
        deadweight_record::confine();
    }
    reader.give(&report)?;
    Ok(0)
}

fn weigh(trace: Trace, options: &Report) -> Result<Weighed, Failure> {
    let View { of, inside, .. } = &options.view;
    weighed_traces(std::slice::from_ref(&trace), &[], of.as_ref(), inside.as_deref())
}

/// Others may have written it: it is read by a thread that may do nothing else, with as much stack as the first has.
fn without_rights<T: Send>(read: impl FnOnce() -> Result<T, Failure> + Send) -> Result<T, Failure> {
    const STACK: usize = 8 << 20;
    let confined = || {
        deadweight_record::confine();
        read()
    };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, confined);
        let thread = thread.map_err(|error| Failure::Unknown(format!("no thread: {error}")))?;
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}
