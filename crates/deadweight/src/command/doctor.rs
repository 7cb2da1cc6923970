//! `doctor`: checks what can be recorded on this machine. The checks are in `deadweight_record`.

use super::{page, print};
use crate::cli::Doctor;
use crate::failure::{Failure, OURS};
use crate::render;

/// The exit code says whether anything can be recorded at all.
pub(crate) fn doctor(options: &Doctor) -> Result<u8, Failure> {
    let checkup = deadweight_record::doctor();
    let text = if options.json {
        render::doctor::json(&checkup)
    } else {
        render::doctor::render(&checkup, page::page(&std::io::stdout(), &options.style))
    };
    print("the checkup", &text)?;
    Ok(if checkup.plan.allows_recording().is_ok() { 0 } else { OURS })
}
