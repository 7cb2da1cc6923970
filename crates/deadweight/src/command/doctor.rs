//! `doctor`: what this machine lets us see, and how to get the rest.

use super::{page, print};
use crate::cli::Doctor;
use crate::failure::{Failure, OURS};
use crate::render::checkup;
use deadweight_record::examine;

/// The exit code says whether anything can be recorded at all.
pub(crate) fn doctor(wish: &Doctor) -> Result<u8, Failure> {
    let examination = examine();
    let text = if wish.json {
        checkup::json(&examination)
    } else {
        checkup::render(&examination, page::page(&std::io::stdout(), &wish.style))
    };
    print("the examination", &text)?;
    Ok(if examination.plan.allows_recording().is_ok() { 0 } else { OURS })
}
