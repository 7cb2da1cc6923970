//! A level that lasted for a few values, with alike ones before and after it: a regression that was mended soon.
//!
//! Splitting in two does not see it: wherever it splits, one part holds values of both levels.

use super::disturbances::LASTING;
use super::segment::Segment;

/// The most values of an island: a longer one is seen by windows of 50.
const LONGEST: usize = 25;
/// The highest p value of both edges, divided by the number of places that the island was chosen from (Bonferroni).
const EDGE_P: f64 = 1e-4;

/// The first value of the island that explains most of the squares, and the first one after it; none if one of its edges
/// is no clear change.
pub(super) fn island(values: &[f64]) -> Option<[usize; 2]> {
    let count = values.len();
    let longest = LONGEST.min(count.checked_sub(2 * LASTING)?);
    let mean = Segment::of(values).mean;
    let mut sums = vec![0.0; count + 1];
    for (at, value) in values.iter().enumerate() {
        sums[at + 1] = sums[at] + value - mean;
    }
    let mut best = (0.0, [0, 0]);
    let mut places = 0_u32;
    for length in LASTING..=longest {
        let weight = count as f64 / (length as f64 * (count - length) as f64);
        for start in LASTING..=count - length - LASTING {
            let sum: f64 = sums[start + length] - sums[start];
            let gain = sum * sum * weight;
            places += 1;
            if gain > best.0 {
                best = (gain, [start, start + length]);
            }
        }
    }
    let (_, [start, end]) = best;
    let [before, island, after] =
        [&values[..start], &values[start..end], &values[end..]].map(Segment::of);
    let clear = |a: &Segment, b: &Segment| a.sample_p(b) * f64::from(places) <= EDGE_P;
    (end > 0 && clear(&before, &island) && clear(&island, &after)).then_some([start, end])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// So many values of each level, which repeat with a period of 7.
    fn levels(of: &[(usize, f64)]) -> Vec<f64> {
        let values = of.iter().flat_map(|(count, level)| std::iter::repeat_n(*level, *count));
        values.enumerate().map(|(i, level)| level * (1.0 + (i * 3 % 7) as f64 * 0.004)).collect()
    }

    #[test]
    fn a_level_that_returned_is_found_by_both_of_its_edges() {
        for (before, during, after) in [(4, 4, 4), (6, 4, 6), (6, 6, 6), (30, 20, 9)] {
            let values = levels(&[(before, 540.0), (during, 1080.0), (after, 540.0)]);
            assert_eq!(island(&values), Some([before, before + during]), "{before} {during}");
        }
    }

    #[test]
    fn a_single_step_noise_and_short_series_have_none() {
        assert_eq!(island(&levels(&[(12, 540.0), (12, 1080.0)])), None);
        assert_eq!(island(&levels(&[(60, 540.0)])), None);
        assert_eq!(island(&[1.0; 9]), None);
        assert_eq!(island(&[1.0, 2.0, 1.0]), None);
    }
}
