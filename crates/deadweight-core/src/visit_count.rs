//! Counts, in tests, how many items the analysis visits.
//!
//! A time limit would depend on the machine; a count shows on any machine that the cost of weighing grows
//! linearly with the recording. Nothing is counted outside of tests.

#[cfg(test)]
thread_local! {
    static VISITED: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// Adds to the count of visited items.
#[cfg(test)]
pub(crate) fn visit(things: usize) {
    VISITED.with(|n| n.set(n.get() + u64::try_from(things).unwrap_or(u64::MAX)));
}

/// Outside of tests: does nothing.
#[cfg(not(test))]
#[inline]
pub(crate) fn visit(_: usize) {}

/// How many items were visited since the last call.
#[cfg(test)]
pub(crate) fn take() -> u64 {
    VISITED.with(std::cell::Cell::take)
}
