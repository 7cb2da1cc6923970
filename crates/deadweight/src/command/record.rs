//! `record -o F -- CMD`: runs the command once and writes the recording to a file. Makes no report.

use super::destination::Destination;
use super::run::joined;
use super::say;
use crate::cli::Record;
use crate::debuginfod::Debuginfod;
use crate::failure::{Failure, exit_code};
use crate::recorder::{Recorder, Target};
use crate::running::program;
use deadweight_record::{Request, find};
use std::path::Path;

pub(crate) fn record(options: &Record) -> Result<u8, Failure> {
    let request = Request { argv: program::argv(&options.command), ..Request::default() };
    let target = joined(&options.join).map_or(Target::Command(&request), Target::Process);
    let recorder = Recorder::ready()?;
    let destination = Destination::open("the recording", &options.output)?;
    // A mistyped command or process ID must not overwrite an existing recording.
    let runs = match options.join.pid {
        None => find(&request.argv, None).is_some(),
        Some(pid) => Path::new("/proc").join(pid.to_string()).exists(),
    };
    let most = options.max_size.map_or(u64::MAX, |size| size.0);
    if !runs {
        // It was not found: running it gives the precise error, and nothing is written.
        recorder.record_last(&target, &mut Debuginfod::default())?;
        let late = "the command was not found before it ran, so its recording was not kept";
        return Err(Failure::Unknown(late.into()));
    }
    let exit = recorder.record_to(&target, (destination.into_file()?, most), &options.output)?;
    if !options.quiet {
        let file = options.output.display();
        say(&format!("deadweight: recorded to {file}; read it with: deadweight report {file}"));
    }
    Ok(exit_code(exit))
}
