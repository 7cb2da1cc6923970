//! Copies of a few bytes: what they cost is the call, and no other way of keeping the data saves it.

use super::{Inspection, Share};
use crate::facts::call_site::CallSite;
use crate::facts::processes::ProcessId;
use deadweight_trace::ids::StackId;

/// A cache line: moving less costs no more than one store does.
const SMALL: u64 = 64;
/// So much of the time in copies must be small ones ...
const MOSTLY: f64 = 0.75;
/// ... by at least as many samples.
const SAMPLES: usize = 6;

/// Whether the copies of this share mostly move a few bytes: the C library's function still has the
/// length in the register of its third argument. Not known of Go's, and without registers.
pub(super) fn are_small(found: &Inspection<'_, '_>, process: ProcessId, share: &Share) -> bool {
    let facts = found.facts;
    let lengths = facts.registers_of(process).filter_map(|registers| {
        let sample = facts.timeline.task(registers.task).samples.get(registers.sample as usize)?;
        let here = share.places.contains_key(&CallSite::Stack(sample.stack));
        (here && is_in_c_library(found, sample.stack))
            .then(|| facts.machine.third_argument(&registers.general))
            .flatten()
    });
    let lengths: Vec<u64> = lengths.collect();
    let small = lengths.iter().filter(|length| **length < SMALL).count();
    lengths.len() >= SAMPLES && small as f64 >= MOSTLY * lengths.len() as f64
}

/// Whether a sample was taken in `memcpy` or `memmove` themselves.
fn is_in_c_library(found: &Inspection<'_, '_>, stack: StackId) -> bool {
    let name = found.facts.symbols().functions(stack).next().unwrap_or("");
    let plain = name.trim_start_matches('_');
    plain.starts_with("memcpy") || plain.starts_with("memmove")
}
