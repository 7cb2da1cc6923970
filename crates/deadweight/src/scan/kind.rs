//! The kinds of candidates: one table.
//!
//! A kind with a cost class has the class's name, so that a candidate and a finding of a run name the same. The other
//! kinds have a name of their own.

use deadweight_code::scan::{Floats, Pattern};
use deadweight_report::wording::{bytes, things};
use deadweight_seal::Site;

/// A kind of candidate.
#[derive(Debug)]
pub struct Kind {
    /// Its name; of its cost class, if it has one.
    pub name: &'static str,
    /// Whether `explain` knows it.
    pub is_class: bool,
    /// What all its places have in common.
    pub title: &'static str,
    /// The unit of its amounts in JSON.
    pub unit: &'static str,
    pattern: Pattern,
}

/// All kinds, in the order in which they are shown.
pub const KINDS: &[Kind] = &[
    class("struct-copies", Pattern::Copy, "bytes", "a value of 128 bytes or more is copied"),
    class("buffer-copies", Pattern::Copy, "bytes", "more than 64 KiB of constant size are copied"),
    class("zeroing", Pattern::Zeroing, "bytes", "1 KiB or more is set to zero"),
    class("bounds-checks", Pattern::BoundsCheck, "checks", "an index is checked in a loop"),
    class("atomics", Pattern::Atomic, "operations", "an atomic operation in a loop"),
    class(
        "missed-inlining",
        Pattern::SmallCall,
        "instructions",
        "a small function is called in a loop",
    ),
    class("allocation", Pattern::GoAllocation, "calls", "Go allocates on the heap in a loop"),
    Kind {
        name: "division",
        is_class: false,
        title: "integers are divided by a variable in a loop",
        unit: "divisions",
        pattern: Pattern::Division,
    },
    Kind {
        name: SCALAR_FLOATS,
        is_class: false,
        title: "a loop computes floating-point numbers one by one",
        unit: "operations",
        pattern: Pattern::ScalarFloats(Floats { double: false, reduces: false }),
    },
    class(
        "unoptimised-build",
        Pattern::Unoptimised,
        "instructions",
        "the function was compiled without optimisation",
    ),
];

/// Loops that could compute several floating-point numbers at once.
pub const SCALAR_FLOATS: &str = "scalar-floats";

/// Copies of more bytes are buffers, as in the class.
const BUFFER: u32 = 1 << 16;

const fn class(
    name: &'static str,
    pattern: Pattern,
    unit: &'static str,
    title: &'static str,
) -> Kind {
    Kind { name, is_class: true, title, unit, pattern }
}

/// The kind of a site, with its number.
pub(super) fn of(site: &Site) -> Option<(usize, &'static Kind)> {
    let is_buffer = site.pattern == Some(Pattern::Copy) && site.amount > BUFFER;
    let fits = |kind: &Kind| {
        let is_pattern = site.pattern.is_some_and(|found| match (kind.pattern, found) {
            (Pattern::ScalarFloats(_), Pattern::ScalarFloats(_)) => true,
            (wanted, found) => wanted == found,
        });
        is_pattern && (kind.name == "buffer-copies") == is_buffer
    };
    KINDS.iter().enumerate().find(|(_, kind)| fits(kind))
}

impl Kind {
    /// Whether amounts of several places of one line add up; else the largest counts.
    pub(super) fn adds_up(&self) -> bool {
        use Pattern::{Atomic, BoundsCheck, Division, GoAllocation};
        matches!(self.pattern, BoundsCheck | Atomic | Division | GoAllocation)
    }

    /// Whether the program's author could change what is called.
    #[must_use]
    pub fn is_about_callee(&self) -> bool {
        self.pattern == Pattern::SmallCall
    }

    /// What happens at a place, in a few words. `floats`: what a loop computes one by one.
    #[must_use]
    pub fn text(&self, amount: u32, sites: u32, callee: &str, floats: Option<Floats>) -> String {
        let n = u64::from(amount);
        let times = if sites > 1 { format!(" ×{sites}") } else { String::new() };
        match self.pattern {
            Pattern::Copy => format!("copies {}{times}", bytes(n)),
            Pattern::Zeroing => format!("clears {}{times}", bytes(n)),
            Pattern::BoundsCheck => things(n, "check"),
            Pattern::Atomic => things(n, "atomic operation"),
            Pattern::SmallCall if callee.is_empty() => {
                format!("calls {}{times}", things(n, "instruction"))
            }
            Pattern::SmallCall => format!("calls {callee}{times}, {}", things(n, "instruction")),
            Pattern::Division => things(n, "division"),
            Pattern::ScalarFloats(_) => {
                let floats = floats.unwrap_or(Floats { double: false, reduces: false });
                let number = if floats.double { "double" } else { "float" };
                let sum = if floats.reduces { ": a sum" } else { "" };
                format!("1 {number} at a time, {} fit{sum}{times}", floats.fit())
            }
            Pattern::GoAllocation if callee.is_empty() => things(n, "allocation"),
            Pattern::GoAllocation => format!("{callee}{times}"),
            Pattern::Unoptimised => things(n, "instruction"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::KINDS;

    #[test]
    fn a_kind_with_a_class_has_the_classs_name() {
        for kind in KINDS {
            let is_class = deadweight_core::cost::ids().any(|id| id == kind.name);
            assert_eq!(is_class, kind.is_class, "{}", kind.name);
        }
    }
}
