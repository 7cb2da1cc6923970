//! Change points of few and noisy values: Otava's, with five steps around it.
//!
//! 1. Disturbed values are left out (`disturbances`): one of them would hide a change from the t test, or be one.
//! 2. Each split is moved to where it explains most of the squares between its neighbours. Otava's is sometimes
//!    one beside.
//! 3. The t test divides by n - 1, and a level has at least three values.
//! 4. A level that returned after a few values is looked for by both of its edges at once (`islands`), and a strong step
//!    that weak splits beside it had kept from its best place.
//! 5. Each point has a span: the places where the change may also be.
//!
//! The p value in windows is not [`Options::max_p`] but [`WINDOW_P`]: Otava does not look further in a window after the
//! first split that is not significant there, and where changes are frequent, none is. A correction of the p values for
//! dependent neighbours was tried and left out. It hides true changes, as these look like dependence: of one each 12
//! values, two in three. [`Options::min_magnitude`] helps where the speed of a machine wanders.
//!
//! Not for equality with Otava; see [`find`](super::find).

use super::disturbances::{LASTING, undisturbed};
use super::islands::island;
use super::segment::Segment;
use super::{ChangePoint, Options, is_finite, weak_points};
use std::collections::BTreeSet;

/// The probability that a point's span aims at.
const CONFIDENCE: f64 = 0.95;
/// The highest p value of a split in a window.
const WINDOW_P: f64 = 0.05;
/// A step is added if its p value is so many times lower than it must be: its place is the best one of a level.
const STRONG: f64 = 100.0;
/// Moving and removing is repeated until nothing changes, at most so often.
const ROUNDS: usize = 8;

/// The change points of a series, in order. None if a value is not finite.
///
/// Better than [`find`](super::find) for a few dozen values: see `examples/planted_changes`. A change is found once it
/// has lasted three values. Use it with [`Options::refined`].
#[must_use]
pub fn find_refined(series: &[f64], options: &Options) -> Vec<ChangePoint> {
    if !is_finite(series) {
        return Vec::new();
    }
    let kept = undisturbed(series);
    let values: Vec<f64> = kept.iter().map(|i| series[*i]).collect();
    let mut levels =
        Levels::new(&values, weak_points(&values, options, WINDOW_P.max(options.max_p)));
    levels.settle(options);
    for _ in 0..ROUNDS {
        let before = levels.splits.clone();
        levels.add_islands(options);
        if levels.splits == before {
            break;
        }
        levels.settle(options);
        if levels.splits == before {
            break;
        }
    }
    (0..levels.splits.len()).map(|number| levels.point(number, series, &kept)).collect()
}

/// A series as levels, which splits separate.
struct Levels<'a> {
    values: &'a [f64],
    /// The first value of each level but the first.
    splits: Vec<usize>,
    /// One more than splits.
    segments: Vec<Segment>,
}

impl<'a> Levels<'a> {
    fn new(values: &'a [f64], splits: Vec<usize>) -> Self {
        let segments = segments(values, &splits);
        Self { values, splits, segments }
    }

    /// The first value of the level before a split, and the end of the level after it.
    fn around(&self, number: usize) -> (usize, usize) {
        let start = number.checked_sub(1).map_or(0, |previous| self.splits[previous]);
        (start, self.splits.get(number + 1).copied().unwrap_or(self.values.len()))
    }

    /// Moves splits and removes weak ones until nothing changes.
    fn settle(&mut self, options: &Options) {
        for _ in 0..ROUNDS {
            let before = self.splits.clone();
            self.move_splits();
            self.remove_weak(options);
            if self.splits == before {
                break;
            }
        }
    }

    /// Adds the edges of a short level inside each level, if there is one; else a strong step inside it.
    fn add_islands(&mut self, options: &Options) {
        let edges = (0..self.segments.len()).filter_map(|number| {
            let start = number.checked_sub(1).map_or(0, |previous| self.splits[previous]);
            let end = self.splits.get(number).copied().unwrap_or(self.values.len());
            let values = &self.values[start..end];
            let edges =
                island(values).map(Vec::from).or_else(|| Some(vec![step(values, options)?]))?;
            Some(edges.into_iter().map(move |edge| start + edge))
        });
        let edges: Vec<usize> = edges.flatten().collect();
        self.splits.extend(edges);
        self.splits.sort_unstable();
        self.segments = segments(self.values, &self.splits);
    }

    /// Moves each split to the best place between its neighbours, and drops it if there is none.
    fn move_splits(&mut self) {
        let mut moved: Vec<usize> = Vec::with_capacity(self.splits.len());
        for number in 0..self.splits.len() {
            let start = moved.last().copied().unwrap_or(0);
            let end = self.splits.get(number + 1).copied().unwrap_or(self.values.len());
            let gains = gains(&self.values[start..end]);
            let best = gains.into_iter().reduce(|a, b| if b.1 > a.1 { b } else { a });
            moved.extend(best.map(|(place, _)| start + place));
        }
        self.splits = moved;
        self.segments = segments(self.values, &self.splits);
    }

    /// Removes the split with the highest p value until all are significant, then those that change too little.
    fn remove_weak(&mut self, options: &Options) {
        let mut tested = Tests::new(&self.segments);
        while let Some(number) = tested.weakest(options) {
            tested.remove(number);
        }
        let remain = |number: &usize| tested.splits[*number].is_some();
        self.splits = (0..self.splits.len()).filter(remain).map(|n| self.splits[n]).collect();
        self.segments = segments(self.values, &self.splits);
    }

    /// A split as a point of the series, of which `kept` values are here.
    fn point(&self, number: usize, series: &[f64], kept: &[usize]) -> ChangePoint {
        let split = self.splits[number];
        let [a, b] = [&self.segments[number], &self.segments[number + 1]];
        let (first, last) = self.span(number);
        // A disturbed value between the two levels belongs to the nearer one.
        let is_after = |i: &usize| (series[*i] - b.mean).abs() < (series[*i] - a.mean).abs();
        let index = (kept[split - 1] + 1..kept[split]).find(is_after).unwrap_or(kept[split]);
        ChangePoint {
            earliest: kept[first - 1] + 1,
            latest: kept[last],
            ..ChangePoint::at(index, a.sample_p(b), a, b)
        }
    }

    /// The first and last split that may also be the true one. Splits are weighed by their likelihood for normal values
    /// of unknown variance; the most likely ones with 95 % of the weight are taken.
    fn span(&self, number: usize) -> (usize, usize) {
        let (start, end) = self.around(number);
        let all = Segment::of(&self.values[start..end]).squares;
        let exponent = (end - start - 2) as f64 / 2.0;
        let mut left: Vec<(usize, f64)> = gains(&self.values[start..end]);
        left.iter_mut().for_each(|(_, gain)| *gain = (all - *gain).max(0.0));
        left.sort_by(|a, b| a.1.total_cmp(&b.1));
        let least = left.first().map_or(0.0, |(_, squares)| *squares);
        let weight =
            |squares: f64| if squares > least { (least / squares).powf(exponent) } else { 1.0 };
        let wanted = CONFIDENCE * left.iter().map(|(_, squares)| weight(*squares)).sum::<f64>();
        let (mut first, mut last, mut sum) = (self.splits[number], self.splits[number], 0.0);
        for (place, squares) in left {
            if sum >= wanted {
                break;
            }
            sum += weight(squares);
            first = first.min(start + place);
            last = last.max(start + place);
        }
        (first, last)
    }
}

/// A split between two levels.
#[derive(Copy, Clone)]
struct Tested {
    p: f64,
    /// [`ChangePoint::magnitude`].
    size: f64,
}

impl Tested {
    fn of(a: &Segment, b: &Segment) -> Self {
        // Not a number for equal values: no change.
        let p = Some(a.sample_p(b)).filter(|p| !p.is_nan()).unwrap_or(1.0);
        Self { p, size: ChangePoint::at(0, p, a, b).magnitude() }
    }
}

/// The splits that remain, each with its test, and in order of both values: a long series has thousands of weak ones.
struct Tests {
    /// None where it was removed.
    splits: Vec<Option<Tested>>,
    /// The segment before each split, and one more; those of removed splits are joined to one before.
    segments: Vec<Segment>,
    by_p: BTreeSet<(u64, usize)>,
    by_size: BTreeSet<(u64, usize)>,
    /// The splits before and after a remaining one; `usize::MAX` for none.
    around: Vec<[usize; 2]>,
}

impl Tests {
    fn new(segments: &[Segment]) -> Self {
        let splits = segments.len().saturating_sub(1);
        let mut tests = Self {
            splits: vec![None; splits],
            segments: segments.to_vec(),
            by_p: BTreeSet::new(),
            by_size: BTreeSet::new(),
            around: (0..splits)
                .map(|n| [n.wrapping_sub(1), if n + 1 < splits { n + 1 } else { usize::MAX }])
                .collect(),
        };
        (0..splits).for_each(|number| tests.test(number));
        tests
    }

    /// The number of the split to remove next; None if all may remain.
    fn weakest(&self, options: &Options) -> Option<usize> {
        let (_, highest) = *self.by_p.last()?;
        if self.splits[highest]?.p > options.max_p {
            return Some(highest);
        }
        let (_, least) = *self.by_size.first()?;
        (self.splits[least]?.size < options.min_magnitude).then_some(least)
    }

    fn remove(&mut self, number: usize) {
        self.forget(number);
        let [before, after] = self.around[number];
        let next = self.segments[self.end(number)];
        let first = self.start(number);
        self.segments[first] = self.segments[first].joined(&next);
        if let Some(around) = self.around.get_mut(before) {
            around[1] = after;
        }
        if let Some(around) = self.around.get_mut(after) {
            around[0] = before;
        }
        [before, after].into_iter().filter(|n| *n != usize::MAX).for_each(|n| self.test(n));
    }

    /// Tests a split, perhaps again.
    fn test(&mut self, number: usize) {
        self.forget(number);
        let [a, b] = [self.start(number), self.end(number)].map(|at| self.segments[at]);
        let tested = Tested::of(&a, &b);
        self.by_p.insert((key(tested.p), number));
        self.by_size.insert((key(tested.size), number));
        self.splits[number] = Some(tested);
    }

    fn forget(&mut self, number: usize) {
        if let Some(tested) = self.splits[number].take() {
            self.by_p.remove(&(key(tested.p), number));
            self.by_size.remove(&(key(tested.size), number));
        }
    }

    /// The segment before a split: it begins with the one after the split before.
    fn start(&self, number: usize) -> usize {
        match self.around[number][0] {
            usize::MAX => 0,
            before => before + 1,
        }
    }

    /// The segment after a split.
    fn end(&self, number: usize) -> usize {
        number + 1
    }
}

/// A number that is not negative, as an integer of the same order.
fn key(value: f64) -> u64 {
    value.max(0.0).to_bits()
}

fn segments(values: &[f64], splits: &[usize]) -> Vec<Segment> {
    let starts = std::iter::once(0).chain(splits.iter().copied());
    let ends = splits.iter().copied().chain(std::iter::once(values.len()));
    starts.zip(ends).map(|(start, end)| Segment::of(&values[start..end])).collect()
}

/// The best split of a level, if it is strong.
fn step(values: &[f64], options: &Options) -> Option<usize> {
    let (place, _) = gains(values).into_iter().reduce(|a, b| if b.1 > a.1 { b } else { a })?;
    let tested = Tested::of(&Segment::of(&values[..place]), &Segment::of(&values[place..]));
    let strong = tested.p * STRONG <= options.max_p && tested.size >= options.min_magnitude;
    strong.then_some(place)
}

/// The places where values can be split, each with the part of their squares that this explains.
fn gains(values: &[f64]) -> Vec<(usize, f64)> {
    let mean = Segment::of(values).mean;
    let count = values.len() as f64;
    let mut sum = 0.0;
    let mut found = Vec::new();
    for (place, value) in (1..values.len()).zip(values) {
        sum += value - mean;
        if place >= LASTING && values.len() - place >= LASTING {
            let left = place as f64;
            found.push((place, sum * sum * count / (left * (count - left))));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn indices(series: &[f64]) -> Vec<usize> {
        find_refined(series, &Options::refined()).iter().map(|point| point.index).collect()
    }

    /// 20 values around 100 and 20 around 105, which repeat with a period of 7.
    fn step() -> Vec<f64> {
        let level = |i: i32| if i < 20 { 100.0 } else { 105.0 };
        (0..40).map(|i| level(i) + f64::from(i * 3 % 7) * 0.4).collect()
    }

    #[test]
    fn a_row_that_begins_is_a_change() {
        // Among the new values a second split is likely, and keeps the first one from its place.
        let series = [0.0, 0.0, 0.0, 0.0, 0.0, 27.3, 29.7, 21.3, 22.5, 25.8];
        assert_eq!(indices(&series), [5]);
    }

    #[test]
    fn disturbed_values_do_not_hide_a_change_and_are_none() {
        let mut series = step();
        assert_eq!(indices(&series), [20]);
        for disturbed in [3, 4, 17, 30, 39] {
            series[disturbed] *= 1.3;
        }
        assert_eq!(indices(&series), [20]);
    }

    #[test]
    fn a_disturbed_value_at_the_change_widens_the_span() {
        let mut series = step();
        series[19] *= 1.3;
        let found = find_refined(&series, &Options::refined());
        assert_eq!((found[0].earliest, found[0].index, found[0].latest), (19, 19, 20));
    }

    #[test]
    fn a_change_must_last_three_values() {
        let mut series = step();
        series.truncate(22);
        assert!(indices(&series).is_empty());
        series.push(105.8);
        assert_eq!(indices(&series), [20]);
    }

    #[test]
    fn a_level_that_returned_is_two_changes() {
        for (before, during, after) in [(4, 4, 4), (6, 4, 6), (6, 6, 6), (14, 3, 20)] {
            let level = |i: i32| if (before..before + during).contains(&i) { 200.0 } else { 100.0 };
            let all = 0..before + during + after;
            let series: Vec<f64> = all.map(|i| level(i) + f64::from(i * 3 % 7) * 0.4).collect();
            let expected = [before, before + during].map(|at| usize::try_from(at).unwrap());
            assert_eq!(indices(&series), expected);
        }
    }

    #[test]
    fn small_changes_are_left_out() {
        let series: Vec<f64> = (0..60).map(|i| if i < 30 { 1000.0 } else { 1008.0 }).collect();
        assert!(indices(&series).is_empty());
        let options = Options { min_magnitude: 0.005, ..Options::refined() };
        assert_eq!(find_refined(&series, &options)[0].index, 30);
    }

    /// The rule of [`Tests`] without its order: each removal looks at all others.
    fn removed_one_by_one(segments: &[Segment], options: &Options) -> Vec<usize> {
        let mut numbers: Vec<usize> = (0..segments.len() - 1).collect();
        let mut segments = segments.to_vec();
        loop {
            let tests: Vec<Tested> =
                segments.windows(2).map(|pair| Tested::of(&pair[0], &pair[1])).collect();
            let order = || tests.iter().enumerate();
            let highest = order().max_by(|a, b| a.1.p.total_cmp(&b.1.p));
            let least = order().min_by(|a, b| a.1.size.total_cmp(&b.1.size));
            let weak = highest
                .filter(|(_, test)| test.p > options.max_p)
                .or(least.filter(|(_, test)| test.size < options.min_magnitude));
            let Some((at, _)) = weak else { return numbers };
            numbers.remove(at);
            let next = segments.remove(at + 1);
            segments[at] = segments[at].joined(&next);
        }
    }

    #[test]
    fn weak_splits_are_removed_in_order_of_their_tests() {
        for seed in 1..40_u32 {
            let mut state = seed;
            let mut next = || {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                f64::from(state >> 16) / 65_536.0
            };
            let level = |i: i32| f64::from(100 + i / 30 * i32::try_from(seed % 7).unwrap());
            let values: Vec<f64> = (0..200).map(|i| level(i) + 4.0 * next()).collect();
            let splits: Vec<usize> = (1..50).map(|n| n * 4).collect();
            let segments = segments(&values, &splits);
            let options = Options { max_p: 1e-3, ..Options::refined() };
            let expected = removed_one_by_one(&segments, &options);
            let mut levels = Levels::new(&values, splits.clone());
            levels.remove_weak(&options);
            let expected: Vec<usize> = expected.iter().map(|number| splits[*number]).collect();
            assert_eq!(levels.splits, expected, "{seed}");
        }
    }

    #[test]
    fn odd_series_have_no_points() {
        for series in [&[][..], &[1.0], &[0.0; 50], &[1.0, f64::NAN, 2.0], &[1.0, 2.0, 3.0]] {
            assert!(indices(series).is_empty(), "{series:?}");
        }
    }
}
