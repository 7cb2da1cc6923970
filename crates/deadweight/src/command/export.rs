//! `export FORMAT F`: a recording as a file that other tools open. Formats are made by `deadweight-export`.

use super::destination::Destination;
use super::recording;
use super::report::confined;
use super::weighing::subject_of;
use crate::cli::{Export, Format};
use crate::failure::Failure;
use deadweight_core::one_run;
use deadweight_export::folded;
use deadweight_trace::Trace;

pub(crate) fn export(options: &Export) -> Result<u8, Failure> {
    let bytes = recording::bytes(&options.file)?;
    let made = confined(|| made(&recording::of(&bytes, &options.file)?, options))?;
    // Only now, so that an unreadable recording leaves no file.
    let destination = Destination::open("the export", &options.output)?;
    deadweight_record::confine();
    destination.write_bytes(&made)?;
    Ok(0)
}

/// The file's content.
fn made(trace: &Trace, options: &Export) -> Result<Vec<u8>, Failure> {
    let of = subject_of(trace, options.of.as_ref());
    let made = one_run(trace, of.as_deref(), |run| match options.format {
        Format::Folded => folded::folded(run).into_bytes(),
    });
    Ok(made?)
}
