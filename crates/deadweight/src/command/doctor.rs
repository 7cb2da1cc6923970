//! `doctor`: checks what can be recorded on this machine. The checks are in `deadweight_record`.

use super::{page, print};
use crate::cli::Doctor;
use crate::failure::{Failure, OURS};
use crate::render;

/// The exit code says whether anything can be recorded at all.
pub(crate) fn doctor(options: &Doctor) -> Result<u8, Failure> {
    let examination = deadweight_record::doctor();
    let text = if options.json {
        render::doctor::json(&examination)
    } else {
        render::doctor::render(&examination, page::page(&std::io::stdout(), &options.style))
    };
    print("the examination", &text)?;
    Ok(if examination.plan.allows_recording().is_ok() { 0 } else { OURS })
}
