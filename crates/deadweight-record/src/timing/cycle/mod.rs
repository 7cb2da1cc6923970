//! How long a cycle of this CPU takes, by a chain of additions: each takes one, on all processors.

#[cfg_attr(target_arch = "x86_64", path = "x86_64.rs")]
#[cfg_attr(not(target_arch = "x86_64"), path = "other.rs")]
mod chain;

use crate::clock::now;
use crate::timing::whole;
use chain::add;

/// Tries, of which the shortest counts: other tasks and interrupts disturb the rest. Half a millisecond for all.
const TRIES: usize = 40;
/// Additions of a try, at least.
const ADDITIONS: u64 = 40_000;

/// The time of a cycle in ps; 0 if that is not known.
pub(crate) fn measured() -> u64 {
    let one = || {
        let start = now();
        let made = add(ADDITIONS)?;
        Some((now() - start) as f64 / made as f64)
    };
    let shortest = (0..TRIES).filter_map(|_| one()).min_by(f64::total_cmp);
    shortest.map_or(0, |ns| whole(ns * 1000.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cycle_is_that_of_a_processor_or_not_known() {
        let cycle = measured();
        // 10 GHz to 500 MHz.
        assert!(cycle == 0 && add(1).is_none() || (100..2_000).contains(&cycle), "{cycle}");
    }
}
