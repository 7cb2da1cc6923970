//! `import F`: a recording of another tool as one of deadweight. Formats are read by `deadweight-import`.

use super::destination::Destination;
use super::recording;
use crate::cli::Import;
use crate::failure::Failure;
use crate::recorder::seal;

pub(crate) fn import(options: &Import) -> Result<u8, Failure> {
    let bytes = recording::bytes(&options.file)?;
    let import = deadweight_import::import(&bytes).map_err(|error| {
        Failure::Unknown(format!("{} cannot be imported: {error}", options.file.display()))
    })?;
    // Only now, so that an unreadable file leaves no recording.
    let destination = Destination::open("the recording", &options.output)?;
    seal(import, destination.into_file()?, &options.output)?;
    Ok(0)
}
