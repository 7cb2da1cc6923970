//! Where one window of a series splits: E-divisive (Matteson and James 2014, arXiv:1306.4933).
//!
//! Not for whole series: time and memory grow with the square of the window.

use super::segment::Segment;
use std::ops::Range;

/// The best split of an interval.
#[derive(Copy, Clone, Debug)]
struct Candidate {
    /// The first value after the split.
    index: usize,
    /// By how much values differ across the split more than on either side of it.
    divergence: f64,
}

/// Finds splits of windows. Keeps its memory between windows.
#[derive(Default)]
pub(super) struct Divisive {
    /// Sums of distances from earlier values to each value, inside the window.
    to_earlier: Vec<f64>,
    /// The same inside the interval, summed up to each value.
    before: Vec<f64>,
    /// Row r, column j: the distances among the values r to j + 1, as the second part of a split. Rows as long as the
    /// interval.
    among_later: Vec<f64>,
    /// Column j: the distances from the values before the split to those up to j + 1, and among themselves.
    from_earlier: Vec<f64>,
}

impl Divisive {
    /// The splits of a window, in order: the best first, until the next best has a p value above `max_p`.
    pub(super) fn splits(&mut self, window: &[f64], max_p: f64) -> Vec<usize> {
        self.to_earlier.clear();
        let sums = (0..window.len()).map(|j| distances(window, j, 0..j));
        self.to_earlier.extend(sums);
        let mut found = Vec::new();
        let mut open = vec![(0..window.len(), self.candidate(window, 0..window.len()))];
        while let Some((at, best)) = best(&open) {
            let Range { start, end } = open[at].0;
            let [left, right] = [start..best.index, best.index..end];
            let p = Segment::of(&window[left.clone()]).p(&Segment::of(&window[right.clone()]));
            // Not a number for equal values: no reason to split.
            if p.is_nan() || p > max_p {
                break;
            }
            found.push(best.index);
            let halves = [left, right].map(|half| (half.clone(), self.candidate(window, half)));
            open.splice(at..=at, halves);
        }
        found.sort_unstable();
        found
    }

    /// The best split of an interval of the window; None if it has fewer than two values.
    ///
    /// A split is judged with the values up to some end, not with all of the interval, so that a later change in the
    /// other direction does not hide it. The sums are Otava's in its order: so equally good splits are rounded alike, and
    /// the same one is taken.
    fn candidate(&mut self, window: &[f64], interval: Range<usize>) -> Option<Candidate> {
        let values = &window[interval.clone()];
        // Splits, and ends.
        let width = values.len().checked_sub(1).filter(|width| *width > 0)?;
        self.sum(window, &interval);
        let from_earlier = &mut self.from_earlier;
        from_earlier.clear();
        from_earlier.resize(width, 0.0);
        let mut best = Candidate { index: 0, divergence: f64::NEG_INFINITY };
        for i in 0..width {
            let before = i.checked_sub(1).map_or(0.0, |previous| self.before[previous]);
            let mut sum = 0.0;
            for (column, value) in from_earlier[i..].iter_mut().zip(&values[i + 1..]) {
                sum += (values[i] - value).abs();
                *column += sum;
            }
            let later = (i + 1 < width).then(|| &self.among_later[(i + 1) * width..][..width]);
            for (j, across) in from_earlier.iter().enumerate().skip(i) {
                let among = later.map_or(0.0, |row| row[j]);
                let divergence = divergence(i, j, across - before, before, among);
                if divergence > best.divergence {
                    best = Candidate { index: interval.start + i + 1, divergence };
                }
            }
        }
        Some(best)
    }

    /// Fills `before` and `among_later` for an interval.
    fn sum(&mut self, window: &[f64], interval: &Range<usize>) {
        let values = &window[interval.clone()];
        let width = values.len() - 1;
        self.before.clear();
        let mut total = 0.0;
        for j in interval.start + 1..interval.end {
            total += self.to_earlier[j] - distances(window, j, 0..interval.start);
            self.before.push(total);
        }
        self.among_later.clear();
        self.among_later.resize(width * width, 0.0);
        for r in (1..width).rev() {
            let (above, below) = self.among_later.split_at_mut((r + 1) * width);
            let row = &mut above[r * width..];
            if let Some(below) = below.get(..width) {
                row.copy_from_slice(below);
            }
            let mut sum = 0.0;
            for (column, value) in row[r..].iter_mut().zip(&values[r + 1..]) {
                sum += (values[r] - value).abs();
                *column += sum;
            }
        }
    }
}

/// The sum of the distances from value `j` to others, in their order.
fn distances(window: &[f64], j: usize, others: Range<usize>) -> f64 {
    window[others].iter().fold(0.0, |sum, value| sum + (value - window[j]).abs())
}

/// Twice the mean distance across a split less the mean distance inside each part, by the size of the parts: the values
/// 0 to i, and i + 1 to j + 1. Given are the sums of the distances across, in the first and in the second part.
fn divergence(i: usize, j: usize, across: f64, first: f64, second: f64) -> f64 {
    let (i, j) = (i as f64, j as f64);
    let all = j + 2.0;
    let mut divergence = 2.0 / all * across;
    if i > 0.0 {
        divergence -= 2.0 * (j - i + 1.0) / (all * i) * first;
    }
    if j > i {
        divergence -= 2.0 * (i + 1.0) / (all * (j - i)) * second;
    }
    divergence
}

/// The interval with the best split, the earlier one of two that are equal.
fn best(open: &[(Range<usize>, Option<Candidate>)]) -> Option<(usize, Candidate)> {
    let candidates = open.iter().enumerate().filter_map(|(at, (_, found))| Some((at, (*found)?)));
    candidates.reduce(|a, b| if b.1.divergence > a.1.divergence { b } else { a })
}
