//! Whether a loop looks through one list again and again, from the list's start.
//!
//! Each sample shows where in its list a search is. If the list is searched once, or searched on from where the last search
//! ended, the place only moves on; if each search begins anew, it goes back between samples. Not for what a search costs.

use super::{SAMPLES, WithRegisters};
use deadweight_code::Search;
use deadweight_code::instruction::Reg;
use std::collections::BTreeMap;

/// So many of the samples are in a list that was searched at an earlier sample, too.
const SAME_LIST: f64 = 0.5;
/// In so many of these the place is before that of the sample before: at random it is a half.
const BACK: f64 = 0.25;
/// A list that grows, or is one of several side by side, ends within this part of its length from where it ended before.
const NEAR: f64 = 0.125;
/// The start of a list is the first place in so many samples one after the other.
const TOGETHER: usize = 8;
/// The way of a search as a part of the mean of places in it: if searches end anywhere, a sample is at a third of the list on
/// average, and a search goes over half of it.
const WAY: f64 = 1.5;
/// An element has so many bytes, where the code does not show it: a string.
const ELEMENT: f64 = 16.0;

/// A list that is searched again and again.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(crate) struct Searched {
    /// The turns of a search, in the mean; where no register counts them, the least that they may be.
    pub(crate) turns: f64,
    /// The bytes of the list that it goes over in these.
    pub(crate) way: f64,
    /// The length of the list in bytes, at most.
    pub(crate) bytes: f64,
    /// The samples that show it.
    pub(crate) samples: usize,
}

/// A sample's list and how many turns are left in it.
struct Place {
    list: u64,
    left: f64,
}

/// The list that a loop looks through, by these samples in it and in comparisons that it calls, which leave its registers
/// alone: by task, in order of time. None if it is not searched again and again.
pub(crate) fn searched(search: &Search, samples: &[WithRegisters]) -> Option<Searched> {
    let places: Vec<Place> = samples.iter().filter_map(|sample| place(search, sample)).collect();
    if places.len() < SAMPLES {
        return None;
    }
    let (length, turns) = mean(&places);
    let bytes = length * search.stride as f64;
    // A base is the same for the whole life of a list.
    let near = if search.base.is_some() { 0.0 } else { NEAR * bytes };
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bytes")]
    let begins_anew = begins_anew(&places, near as u64);
    let way = turns * search.stride as f64;
    begins_anew.then_some(Searched { turns, way, bytes, samples: places.len() })
}

/// The list that these samples of one thread look through, which are known to search: by accesses with a base and an
/// index. None if it is not searched again and again.
pub(crate) fn by_accesses(samples: &[WithRegisters]) -> Option<Searched> {
    let places = samples.iter().filter_map(|sample| {
        let memory = sample.access?.access.memory;
        let value = |register: Reg| sample.general.get(register.index()).copied();
        let (list, index) = (value(memory.base?)?, value(memory.index?)?);
        let way = index.cast_signed() as f64 * f64::from(memory.scale);
        Some(Place { list, left: -way })
    });
    let places: Vec<Place> = places.collect();
    if places.len() < SAMPLES || !begins_anew(&places, 0) {
        return None;
    }
    let (bytes, way) = mean(&places);
    Some(Searched { turns: way / ELEMENT, way, bytes, samples: places.len() })
}

/// The length of the list, at most, and the way of a search in it, in the mean.
fn mean(places: &[Place]) -> (f64, f64) {
    let passed: Vec<(f64, f64)> = places.chunks(TOGETHER).flat_map(ways).collect();
    let length = passed.iter().map(|(length, _)| *length).fold(0.0, f64::max);
    let mean = passed.iter().map(|(_, way)| way).sum::<f64>() / passed.len().max(1) as f64;
    (length, WAY * mean)
}

/// Where a sample is.
fn place(search: &Search, sample: &WithRegisters) -> Option<Place> {
    let value = |register: Reg| sample.general.get(register.index()).copied();
    let counter = value(search.counter)?;
    let end = search.end.map_or(Some(0), value)?;
    let left = end.wrapping_sub(counter).cast_signed() as f64 / search.by as f64;
    let base = search.base.map(value);
    let list = base.unwrap_or(search.end.and(Some(end))).unwrap_or(0);
    Some(Place { list, left })
}

/// The length of the list and how far each of these places, which are close in time, is from its start, in turns.
fn ways(places: &[Place]) -> impl Iterator<Item = (f64, f64)> {
    let lefts = || places.iter().map(|place| place.left);
    let (low, high) =
        lefts().fold((f64::MAX, f64::MIN), |(low, high), left| (low.min(left), high.max(left)));
    let length = if low >= 0.0 { high } else { high - low };
    lefts().map(move |left| (length, high - left))
}

/// Whether most samples are in lists that were sampled before, and often at an earlier place than then.
fn begins_anew(places: &[Place], near: u64) -> bool {
    let mut last: BTreeMap<u64, f64> = BTreeMap::new();
    let (mut same, mut back) = (0_usize, 0_usize);
    for Place { list, left } in places {
        let around = list.saturating_sub(near)..=list.saturating_add(near);
        let nearest = last.range(around).min_by_key(|(other, _)| other.abs_diff(*list));
        if let Some((_, before)) = nearest {
            same += 1;
            back += usize::from(left > before);
        }
        last.insert(*list, *left);
    }
    same as f64 >= SAME_LIST * places.len() as f64 && back as f64 >= BACK * same as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(list: impl Fn(u64) -> u64, left: impl Fn(u64) -> u64) -> Vec<Place> {
        (0..200).map(|n| Place { list: list(n), left: left(n) as f64 }).collect()
    }

    #[test]
    fn a_list_that_is_searched_anew_goes_back() {
        assert!(begins_anew(&places(|_| 64, |n| n * 37 % 100), 0));
        // One of three lists.
        assert!(begins_anew(&places(|n| n % 3, |n| n * 37 % 100), 0));
        // It grows.
        assert!(begins_anew(&places(|n| 8 * n, |n| n * 37 % 100), 16));
    }

    #[test]
    fn single_passes_and_other_lists_each_time_are_refused() {
        assert!(!begins_anew(&places(|_| 64, |n| 1000 - n), 0));
        assert!(!begins_anew(&places(|n| n * 4096, |n| n * 37 % 100), 16));
    }

    #[test]
    fn a_place_is_counted_from_the_first_of_its_time() {
        let ways: Vec<_> = ways(&places(|_| 64, |n| 100 - n % 4)[..4]).collect();
        assert_eq!(ways, [(100.0, 0.0), (100.0, 1.0), (100.0, 2.0), (100.0, 3.0)]);
    }
}
