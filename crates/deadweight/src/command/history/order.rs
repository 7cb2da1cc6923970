//! The order of commits of one second, which a rebase or a script makes, as git knows it.
//!
//! Where git does not know them, the order of measuring stays.

use super::super::archive::git;
use deadweight_archive::{Point, Series};
use std::collections::{BTreeMap, BTreeSet};

/// At most so many commits are named to git: a command line has a limit.
const ASKED: usize = 1_000;

/// Places of commits among those of the same second, from 1, parents first; without the commits that are alone in theirs.
pub(super) fn places(series: &Series) -> BTreeMap<String, u32> {
    let same = |a: &Point, b: &Point| a.commit_time == b.commit_time && a.commit_time > 0;
    let (mut asked, mut oldest) = (BTreeSet::new(), i64::MAX);
    for points in series.points.chunk_by(same).rev() {
        let of_second: BTreeSet<&str> = points.iter().map(|point| &*point.commit).collect();
        let of_second: Vec<&str> = of_second.into_iter().filter(|commit| is_id(commit)).collect();
        if of_second.len() > 1 && asked.len() + of_second.len() <= ASKED {
            asked.extend(of_second);
            oldest = points.first().map_or(oldest, |point| point.commit_time);
        }
    }
    if asked.is_empty() {
        return BTreeMap::new();
    }
    let since = format!("--max-age={oldest}");
    let mut words = vec!["rev-list", "--topo-order", "--reverse", "--ignore-missing", &since];
    words.extend(&asked);
    let known = git(&words).unwrap_or_default();
    let asked = known.lines().filter(|commit| asked.contains(commit)).map(str::to_owned);
    asked.zip(1..).collect()
}

/// A full name of a commit: a foreign archive may hold anything, also what git would take for an option.
fn is_id(commit: &str) -> bool {
    commit.len() >= 40 && commit.chars().all(|c| c.is_ascii_hexdigit())
}
