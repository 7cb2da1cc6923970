//! Searches in what is in order of time, from where the search before ended: walks go on in time.

/// The index of the last of `count` things for which `starts` holds, 0 if it holds for none. It holds for the first ones
/// only. Fast if that is soon after `near`.
pub(crate) fn last_started(count: usize, near: usize, starts: impl Fn(usize) -> bool) -> usize {
    let starts = |index: usize| index < count && starts(index);
    let mut low = if starts(near) { near } else { 0 };
    let mut step = 1;
    while starts(low + step) {
        low += step;
        step *= 2;
    }
    // The first one that does not start is behind `low`, at most at `low + step`.
    while step > 1 {
        step /= 2;
        low += if starts(low + step) { step } else { 0 };
    }
    low
}

#[cfg(test)]
mod tests {
    use super::last_started;

    #[test]
    fn it_is_found_from_anywhere() {
        for count in 0..20 {
            for started in 0..=count {
                for near in 0..25 {
                    let found = last_started(count, near, |index| index < started);
                    assert_eq!(found, started.saturating_sub(1), "{count} {started} {near}");
                }
            }
        }
    }
}
