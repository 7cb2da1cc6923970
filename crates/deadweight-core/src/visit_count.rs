//! Counts, in tests, how many things the cost part looks at.
//!
//! A time limit would depend on the machine; a count shows on any of them that the cost of weighing
//! grows with the recording and not with its square. Nothing is counted outside of tests.

#[cfg(test)]
thread_local! {
    static VISITED: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// So many things are looked at.
#[cfg(test)]
pub(crate) fn visit(things: usize) {
    VISITED.with(|n| n.set(n.get() + u64::try_from(things).unwrap_or(u64::MAX)));
}

/// So many things are looked at.
#[cfg(not(test))]
#[inline]
pub(crate) fn visit(_: usize) {}

/// How many things were looked at since the last time this was asked.
#[cfg(test)]
pub(crate) fn take() -> u64 {
    VISITED.with(std::cell::Cell::take)
}
