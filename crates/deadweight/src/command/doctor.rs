//! `doctor`: what this machine lets us see, and how to get the rest.

use super::{page, print};
use crate::cli::Doctor;
use crate::failure::{Failure, OURS};
use crate::render::checkup;
use deadweight_record::Plan;

/// The exit code says whether anything can be recorded at all.
pub(crate) fn doctor(wish: &Doctor) -> Result<u8, Failure> {
    let plan = Plan::detect();
    let page = page::page(&std::io::stdout(), &wish.style);
    print("the examination", &checkup::render(&plan, page))?;
    Ok(if plan.allows_recording().is_ok() { 0 } else { OURS })
}
