//! What is said of cleared memory: title, page faults, and what to do. Does not measure.

use crate::facts::zeroed::Fate;
use deadweight_report::wording::{count as count_of, things, time};
use deadweight_trace::units::Ns;

/// A library that does more than this part of the clearing for itself decides the advice.
const MOST: f64 = 0.5;

/// The finding in a few words.
pub(super) fn title(fate: Fate) -> &'static str {
    if fate.is_in_vain() { "memory cleared in vain" } else { "memory cleared before it is used" }
}

/// The sentence about the page faults during the zeroing, and what is known of their pages.
pub(super) fn of_faults((ns, count): (Ns, u64), fate: Fate) -> String {
    let faults = format!("{} in {} during the zeroing", time(ns), things(count, "page fault"));
    if !fate.is_known() {
        return format!(
            "{faults}: saved only if the memory is not used at all, else the next writer causes them"
        );
    }
    let (zero, sampled) = (count_of(fate.zero), count_of(fate.sampled));
    if fate.is_in_vain() {
        format!(
            "{faults}: in vain, because {zero} of {sampled} such pages, sampled later, still held \
             nothing but zeroes, as the kernel had handed them out"
        )
    } else {
        format!(
            "{faults}: without the zeroing the next writer causes them, because only {zero} of \
             {sampled} such pages, sampled later, still held nothing but zeroes"
        )
    }
}

/// What to do. `kept`: the part of the clearing that a library does for itself.
pub(super) fn remedy(language: &str, kept: f64) -> &'static str {
    if kept > MOST {
        return "The library clears its own memory each time that it starts anew (a compressor's reset, for \
                example). Start it less often: one stream for several messages, or a smaller window or level.";
    }
    match language {
        "C++" => {
            "For a whole object: std::make_shared_for_overwrite<T>() instead of make_shared<T>(), \
             or a constructor of its own. For a buffer: keep one outside the loop; use a vector of \
             the needed size, filled by insert or resize_and_overwrite; or \
             std::make_unique_for_overwrite<char[]>(n), which does not clear."
        }
        "Rust" => {
            "Keep one Vec outside the loop. Vec::with_capacity(n) and extend, or read_to_end, \
             instead of vec![0; n]; MaybeUninit where every byte is written."
        }
        "Go" => {
            "Keep one slice outside the loop (buf = buf[:0]); make([]T, 0, n) and append instead \
             of make([]T, n)."
        }
        "Zig" => {
            "Keep one buffer outside the loop, or make it as small as it is used. Memory that is written \
             anyway: declare it undefined. Debug and ReleaseSafe builds fill that too, with 0xaa: \
             ReleaseFast does not, nor a function with @setRuntimeSafety(false)."
        }
        "Crystal" => {
            "Keep one Bytes outside the loop. A struct is cleared by its constructor: declare a large \
             one with `uninitialized` and let a method fill it."
        }
        _ => {
            "Use malloc instead of calloc where everything is written; clear only the part that is \
             used; keep one buffer instead of a fresh `= {0}` per call."
        }
    }
}
