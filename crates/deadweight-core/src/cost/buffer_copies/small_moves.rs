//! Copies of a few bytes: what they cost is the call, and no other way of keeping the data saves it.

use super::{Inspection, Share};
use crate::facts::call_site::CallSite;
use crate::facts::processes::ProcessId;
use deadweight_trace::ids::StackId;

/// A cache line: moving less costs no more than one store does.
const SMALL: u64 = 64;
/// So much of the time in copies must be small ones ...
const MOSTLY: f64 = 0.75;
/// ... and so much of the whole in the C library's function ...
const BY_CALL: f64 = 0.5;
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
    // A container's copy moves its elements mostly by code of its own.
    let by_call = super::part(share, &|stack| is_in_c_library(found, stack));
    lengths.len() >= SAMPLES && small as f64 >= MOSTLY * lengths.len() as f64 && by_call >= BY_CALL
}

/// Whether a sample was taken in `memcpy` or `memmove` themselves.
fn is_in_c_library(found: &Inspection<'_, '_>, stack: StackId) -> bool {
    let name = found.facts.symbols().functions(stack).next().unwrap_or("");
    let plain = name.trim_start_matches('_');
    plain.starts_with("memcpy") || plain.starts_with("memmove")
}

#[cfg(test)]
mod tests {
    use crate::cost::tests::{found, looping};

    #[test]
    fn moves_of_a_few_bytes_are_refused_and_of_a_few_hundred_are_found() {
        // A number is moved to the right in its field: the length is in rdx, register 2.
        let aligned = |length: u64| {
            looping("", 100, |i| {
                match i % 3 {
                0 => ("memmove @libc.so.6 <- std::string::_M_erase @libc.so.6 <- align (page.cpp:9) <- main (page.cpp:30)".into(), vec![(2, length)]),
                _ => ("main (page.cpp:31)".into(), vec![(2, 1 << 40)]),
            }
            })
        };
        let image = "image libc.so.6 path /lib/libc.so.6\nsample-period";
        let shift = |length| found(&aligned(length).replace("sample-period", image));
        assert_eq!(shift(5), "");
        assert!(shift(300).starts_with("buffer-copies 42 %"), "{}", shift(300));
    }

    #[test]
    fn a_container_of_short_texts_is_copied_by_code_of_its_own() {
        let copying = |by_call: u64| {
            let text = looping("", 100, |i| {
                let copy = "std::__do_uninit_copy<a> (/usr/include/c++/12/bits/stl_uninitialized.h:119) in std::vector<b>::vector (/usr/include/c++/12/bits/stl_vector.h:600) in month (join.cpp:97) <- main (join.cpp:9)";
                match i % 8 {
                    0 | 1 => ("main (join.cpp:10)".into(), vec![(2, 1 << 40)]),
                    at if at < 2 + by_call => {
                        (format!("memmove @libc.so.6 <- {copy}"), vec![(2, 5)])
                    }
                    _ => (copy.to_owned(), vec![(2, 1 << 40)]),
                }
            });
            found(
                &text
                    .replace("sample-period", "image libc.so.6 path /lib/libc.so.6\nsample-period"),
            )
        };
        assert!(copying(2).starts_with("buffer-copies 80 % (58..88)"), "{}", copying(2));
        assert!(copying(2).contains("@ month:97"), "{}", copying(2));
        assert_eq!(copying(4), "", "calls of the C library take most of it");
    }
}
