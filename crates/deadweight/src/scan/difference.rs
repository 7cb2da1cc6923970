//! Two binaries side by side: candidates by function, kind and loop depth, without their lines.
//!
//! Lines move with every edit, and so do addresses: a function without a name is compared with nothing. A candidate that
//! moves to an outer loop goes in one depth and comes in another.

use super::Candidates;
use super::kind::Kind;
use std::collections::BTreeMap;

/// A function whose number of candidates of a kind differs at one loop depth.
#[derive(Clone, Debug)]
pub struct Change {
    /// The kind.
    pub kind: &'static Kind,
    /// The function.
    pub function: String,
    /// Sites in the first binary, and in the second.
    pub sites: (u32, u32),
    /// How many loops are around them.
    pub depth: u32,
}

/// What differs.
#[derive(Clone, Debug, Default)]
pub struct Difference {
    /// Where the second binary has more candidates, the most nested first.
    pub came: Vec<Change>,
    /// Where it has fewer.
    pub went: Vec<Change>,
    /// How many functions, kinds and depths have as many in both.
    pub same: usize,
    /// How many sites are in functions without a name, in the first binary and in the second.
    pub unnamed: (u32, u32),
}

/// What differs between two binaries.
#[must_use]
pub fn between(first: &Candidates, second: &Candidates) -> Difference {
    let mut difference = Difference::default();
    let mut both: BTreeMap<(&str, &str, u32), (&'static Kind, [u32; 2])> = BTreeMap::new();
    for (side, candidates) in [first, second].into_iter().enumerate() {
        for (kind, place) in candidates.places() {
            if place.has_no_name {
                let unnamed = &mut difference.unnamed;
                let count = if side == 0 { &mut unnamed.0 } else { &mut unnamed.1 };
                *count = count.saturating_add(place.sites);
                continue;
            }
            let key = (kind.name, place.function.as_str(), place.depth);
            let sites = &mut both.entry(key).or_insert((kind, [0, 0])).1[side];
            *sites = sites.saturating_add(place.sites);
        }
    }
    for ((_, function, depth), (kind, [before, after])) in both {
        let sites = (before, after);
        let change = Change { kind, function: function.to_owned(), sites, depth };
        match before.cmp(&after) {
            std::cmp::Ordering::Less => difference.came.push(change),
            std::cmp::Ordering::Greater => difference.went.push(change),
            std::cmp::Ordering::Equal => difference.same += 1,
        }
    }
    for changes in [&mut difference.came, &mut difference.went] {
        changes.sort_by_key(|c| std::cmp::Reverse((c.depth, c.sites.0.abs_diff(c.sites.1))));
    }
    difference
}

#[cfg(test)]
mod tests {
    use super::*;
    use deadweight_code::scan::Pattern;
    use deadweight_seal::{Frame, Scan, Site};

    fn binary(sites: &[(&str, u32)]) -> Candidates {
        let site = |(function, line): &(&str, u32)| Site {
            pattern: Some(Pattern::Division),
            amount: 1,
            frames: vec![Frame { function: (*function).into(), line: *line, ..Frame::default() }],
            ..Site::default()
        };
        let sites = sites.iter().map(site).collect();
        Candidates::of("app", &Scan { sites, ..Scan::default() }, false)
    }

    #[test]
    fn functions_are_compared_by_name_whatever_their_lines() {
        let first = binary(&[("stays", 1), ("goes", 2), ("grows", 3), ("", 0)]);
        let second = binary(&[("stays", 11), ("grows", 13), ("grows", 14), ("new", 15)]);
        let difference = between(&first, &second);
        let names = |changes: &[Change]| {
            changes.iter().map(|c| (c.function.clone(), c.sites)).collect::<Vec<_>>()
        };
        assert_eq!(names(&difference.came), [("grows".into(), (1, 2)), ("new".into(), (0, 1))]);
        assert_eq!(names(&difference.went), [("goes".into(), (1, 0))]);
        assert_eq!((difference.same, difference.unnamed), (1, (1, 0)));
    }
}
