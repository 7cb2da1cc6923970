//! What was met last, of things that millions of events have in common: a loop alternates between a few.

/// How many are remembered.
const KEPT: usize = 8;

/// The latest different things.
#[derive(Debug)]
pub(crate) struct Latest<T> {
    kept: [Option<T>; KEPT],
    oldest: usize,
}

impl<T: Copy> Default for Latest<T> {
    fn default() -> Self {
        Self { kept: [None; KEPT], oldest: 0 }
    }
}

impl<T: Copy + PartialEq> Latest<T> {
    /// Whether this is none of the latest. It is one from now on.
    pub(crate) fn is_new(&mut self, thing: T) -> bool {
        let known = self.kept.iter().flatten().any(|known| *known == thing);
        if !known {
            self.kept[self.oldest] = Some(thing);
            self.oldest = (self.oldest + 1) % KEPT;
        }
        !known
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_are_not_new_and_older_ones_are_forgotten() {
        let mut latest = Latest::default();
        assert!((0..KEPT).all(|thing| latest.is_new(thing)));
        assert!((0..KEPT).all(|thing| !latest.is_new(thing)));
        assert!(latest.is_new(KEPT) && latest.is_new(0) && !latest.is_new(KEPT));
    }
}
