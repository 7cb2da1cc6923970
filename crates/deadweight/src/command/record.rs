//! `record -o F -- CMD`: runs the command once and keeps the recording.

use super::destination::Destination;
use super::run::exit_code;
use super::say;
use crate::cli::Record;
use crate::failure::Failure;
use crate::recorder::Recorder;
use crate::running::program;
use deadweight_record::{Request, find};

pub(crate) fn record(wish: &Record) -> Result<u8, Failure> {
    let request = Request { argv: program::argv(&wish.command), ..Request::default() };
    let recorder = Recorder::ready()?;
    let destination = Destination::open("the recording", &wish.output)?;
    // A mistyped command must not cost the recording that is there already.
    let runs = find(&request.argv, None).is_some();
    let exit = recorder.record_to(&request, destination.into_file(runs)?, &wish.output)?;
    if !wish.quiet {
        let file = wish.output.display();
        say(&format!("deadweight: recorded to {file}; read it with: deadweight report {file}"));
    }
    Ok(exit_code(exit))
}
