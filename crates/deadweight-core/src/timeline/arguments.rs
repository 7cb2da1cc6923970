//! Arguments of system calls, equal ones kept once where that is cheap to see.
//!
//! A fixed cache of recent arguments, not an index of all: enough for loops that make the same call again
//! and again, at a cost that does not grow.

/// Slots of the cache; a power of two.
const SLOTS: usize = 4096;

/// The distinct arguments so far.
#[derive(Debug)]
pub(crate) struct Arguments {
    pub(crate) all: Vec<[u64; 4]>,
    recent: Vec<u32>,
}

impl Arguments {
    pub(crate) fn new() -> Self {
        Self { all: vec![[0; 4]], recent: vec![0; SLOTS] }
    }

    /// The index of `args` in `all`.
    pub(crate) fn keep(&mut self, args: [u64; 4]) -> u32 {
        let slot = slot_of(args);
        let known = self.recent[slot];
        if self.all[known as usize] == args {
            return known;
        }
        let Ok(index) = u32::try_from(self.all.len()) else { return 0 };
        self.all.push(args);
        self.recent[slot] = index;
        index
    }
}

/// Spreads arguments over the slots (multiplication by the golden ratio, as in Fibonacci
/// hashing).
fn slot_of(args: [u64; 4]) -> usize {
    let mixed =
        args.iter().fold(0_u64, |h, a| (h.rotate_left(23) ^ a).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    usize::try_from(mixed >> 52).unwrap_or(0) & (SLOTS - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_arguments_are_kept_once_and_read_back() {
        let mut kept = Arguments::new();
        let a = kept.keep([3, 1, 0, 0]);
        let b = kept.keep([3, 2, 0, 0]);
        assert_ne!(a, b);
        assert_eq!(kept.keep([3, 1, 0, 0]), a);
        assert_eq!(kept.all[b as usize], [3, 2, 0, 0]);
        assert_eq!(kept.keep([0; 4]), 0);
    }
}
