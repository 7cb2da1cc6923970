//! Whether two series differ, by rank tests: no distribution is assumed.
//!
//! Two tests, each exact for short series and with a normal approximation for long ones: the Mann-Whitney U test for two
//! independent series, Wilcoxon's signed-rank test for pairs. Not for how much they differ; see `ratio`.

/// Up to this length the test is exact if no values are tied ...
const EXACT: usize = 50;
/// ... and up to this length if some are.
const EXACT_TIED: usize = 25;

/// The probability of a difference at least as large as that between `a` and `b` if both came
/// from one source: Mann and Whitney's U test, two-sided. 1 if a series is empty.
#[must_use]
pub fn independent(a: &[f64], b: &[f64]) -> f64 {
    if a.is_empty() || b.is_empty() {
        return 1.0;
    }
    let ranks = Ranks::of(a.iter().chain(b));
    let sum: usize = ranks.doubled.iter().take(a.len()).sum();
    match ranks.counted(a.len(), b.len()) {
        Some((ways, unit)) => two_sided(&ways, sum / unit),
        None => approximate(&ranks, sum, a.len(), b.len()),
    }
}

/// The same test as benchstat computes it: twice the lower-tail probability of the smaller of the two U values.
/// With ties and series of unequal length the two tails differ, and so do the two results.
#[must_use]
pub fn lower_tail_doubled(a: &[f64], b: &[f64]) -> f64 {
    if a.is_empty() || b.is_empty() {
        return 1.0;
    }
    let ranks = Ranks::of(a.iter().chain(b));
    let sum: usize = ranks.doubled.iter().take(a.len()).sum();
    let Some((ways, unit)) = ranks.counted(a.len(), b.len()) else {
        return approximate(&ranks, sum, a.len(), b.len());
    };
    // All doubled: U of `a` is its rank sum minus the smallest possible one; U of `b` is the rest.
    let u = sum - a.len() * (a.len() + 1);
    let other = 2 * a.len() * b.len() - u;
    if u == other {
        return 1.0;
    }
    let at = (u.min(other) + a.len() * (a.len() + 1)) / unit;
    2.0 * ways[..=at.min(ways.len() - 1)].iter().sum::<f64>()
}

/// Mann and Whitney's test of long series.
fn approximate(ranks: &Ranks, doubled_sum: usize, m: usize, n: usize) -> f64 {
    let (m, n) = (m as f64, n as f64);
    let all = m + n;
    let mean = m * (all + 1.0) / 2.0;
    let variance = m * n / 12.0 * (all + 1.0 - ranks.ties() / (all * (all - 1.0)));
    by_normal(doubled_sum as f64 / 2.0, mean, variance)
}

/// The probability of differences as one-sided as these if both members of each pair came from
/// one source: Wilcoxon's signed-rank test, two-sided. Equal pairs are left out; 1 if there are no
/// others.
#[must_use]
pub fn paired(differences: &[f64]) -> f64 {
    let unequal: Vec<f64> = differences.iter().copied().filter(|d| *d != 0.0).collect();
    if unequal.is_empty() {
        return 1.0;
    }
    let sizes: Vec<f64> = unequal.iter().map(|d| d.abs()).collect();
    let ranks = Ranks::of(&sizes);
    let upward = ranks.doubled.iter().zip(&unequal).filter(|(_, d)| **d > 0.0);
    let sum: usize = upward.map(|(rank, _)| rank).sum();
    if unequal.len() <= EXACT {
        return two_sided(&sums_of_any(&ranks.doubled), sum);
    }
    let squares: f64 = ranks.doubled.iter().map(|r| (*r as f64 / 2.0).powi(2)).sum();
    let n = unequal.len() as f64;
    by_normal(sum as f64 / 2.0, n * (n + 1.0) / 4.0, squares / 4.0)
}

/// P values of a family of tests, corrected by Holm's step-down: each is increased so that the probability of any false
/// alarm among all of them stays that of a single test.
#[must_use]
pub fn holm(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|i, j| p[*i].total_cmp(&p[*j]));
    let mut adjusted = vec![1.0; p.len()];
    let mut largest = 0.0_f64;
    for (done, i) in order.into_iter().enumerate() {
        largest = largest.max((p[i] * (p.len() - done) as f64).min(1.0));
        adjusted[i] = largest;
    }
    adjusted
}

/// Ranks from 1, doubled so that the mean of tied ranks stays whole.
struct Ranks {
    doubled: Vec<usize>,
    groups: Vec<usize>,
}

impl Ranks {
    fn of<'v>(values: impl IntoIterator<Item = &'v f64>) -> Self {
        let values: Vec<f64> = values.into_iter().copied().collect();
        let mut order: Vec<usize> = (0..values.len()).collect();
        order.sort_by(|i, j| values[*i].total_cmp(&values[*j]));
        let mut ranks = Self { doubled: vec![0; values.len()], groups: Vec::new() };
        let mut start = 0;
        while start < order.len() {
            let first = values[order[start]];
            let same = order[start..].iter().take_while(|i| values[**i].total_cmp(&first).is_eq());
            let end = start + same.count();
            for i in &order[start..end] {
                // First and last rank of the group are start + 1 and end.
                ranks.doubled[*i] = start + 1 + end;
            }
            ranks.groups.push(end - start);
            start = end;
        }
        ranks
    }

    fn tied(&self) -> bool {
        self.groups.iter().any(|size| *size > 1)
    }

    /// The distribution of the rank sum of `m` of these, if the series are short enough for an exact test, and the
    /// divisor of doubled sums.
    fn counted(&self, m: usize, n: usize) -> Option<(Vec<f64>, usize)> {
        let most = if self.tied() { EXACT_TIED } else { EXACT };
        if m.max(n) > most {
            return None;
        }
        // Untied ranks are whole without being doubled: half the table.
        let unit = if self.tied() { 1 } else { 2 };
        let whole: Vec<usize> = self.doubled.iter().map(|rank| rank / unit).collect();
        Some((sums_of(&whole, m), unit))
    }

    /// Sum of t³ - t over groups of t equal values: what ties take from the variance.
    fn ties(&self) -> f64 {
        self.groups.iter().map(|t| *t as f64).map(|t| t * t * t - t).sum()
    }
}

/// How many choices of `size` of the ranks have each sum, as shares of all choices.
fn sums_of(ranks: &[usize], size: usize) -> Vec<f64> {
    let most = ranks.iter().sum::<usize>();
    let mut ways = vec![vec![0.0; most + 1]; size + 1];
    ways[0][0] = 1.0;
    for rank in ranks {
        for chosen in (0..size).rev() {
            let (less, more) = ways.split_at_mut(chosen + 1);
            let with = more[0][*rank..].iter_mut().zip(&less[chosen]);
            with.for_each(|(to, from)| *to += from);
        }
    }
    shares(ways.swap_remove(size))
}

/// The same for choices of any size.
fn sums_of_any(ranks: &[usize]) -> Vec<f64> {
    let most = ranks.iter().sum::<usize>();
    let mut ways = vec![0.0; most + 1];
    ways[0] = 1.0;
    for rank in ranks {
        for sum in (*rank..=most).rev() {
            ways[sum] += ways[sum - *rank];
        }
    }
    shares(ways)
}

fn shares(mut ways: Vec<f64>) -> Vec<f64> {
    let all: f64 = ways.iter().sum();
    ways.iter_mut().for_each(|w| *w /= all);
    ways
}

/// Twice the smaller tail, the value itself in both.
fn two_sided(distribution: &[f64], sum: usize) -> f64 {
    let at = sum.min(distribution.len() - 1);
    let below: f64 = distribution[..=at].iter().sum();
    let above: f64 = distribution[at..].iter().sum();
    (2.0 * below.min(above)).min(1.0)
}

/// Two-sided, with half a unit for whole numbers standing for a continuous value.
fn by_normal(value: f64, mean: f64, variance: f64) -> f64 {
    if variance <= 0.0 {
        return 1.0;
    }
    let off = ((value - mean).abs() - 0.5).max(0.0) / variance.sqrt();
    libm::erfc(off / std::f64::consts::SQRT_2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::random::Random;

    /// The U test by trying every way to deal the values out.
    fn dealt(a: &[f64], b: &[f64]) -> f64 {
        let all: Vec<f64> = a.iter().chain(b).copied().collect();
        let ranks = Ranks::of(&all).doubled;
        let ours: usize = ranks.iter().take(a.len()).sum();
        let (mut count, mut below, mut above) = (0, 0, 0);
        for hand in (0_u32..1 << all.len()).filter(|h| h.count_ones() as usize == a.len()) {
            let sum: usize = (0..all.len()).filter(|i| hand >> i & 1 == 1).map(|i| ranks[i]).sum();
            count += 1;
            below += u32::from(sum <= ours);
            above += u32::from(sum >= ours);
        }
        (2.0 * f64::from(below.min(above)) / f64::from(count)).min(1.0)
    }

    #[test]
    fn short_series_are_counted_exactly_ties_or_not() {
        for (a, b) in [
            (vec![1.0, 2.0, 3.0], vec![4.0, 5.0, 6.0]),
            (vec![1.0, 5.0, 3.0, 9.0], vec![4.0, 2.0, 6.0]),
            (vec![1.0, 1.0, 2.0, 3.0], vec![1.0, 2.0, 2.0, 7.0, 9.0]),
            (vec![5.0; 4], vec![5.0; 4]),
        ] {
            let (ours, theirs) = (independent(&a, &b), dealt(&a, &b));
            assert!((ours - theirs).abs() < 1e-12, "{a:?} {b:?}: {ours} {theirs}");
        }
        // Three against three, without overlap: 2 of 20 ways.
        assert!((independent(&[1.0, 2.0, 3.0], &[4.0, 5.0, 6.0]) - 0.1).abs() < 1e-12);
        assert!((independent(&[], &[1.0]) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn pairs_all_of_one_sign_are_as_rare_as_tosses_of_a_coin() {
        for n in 1..12_u32 {
            let differences: Vec<f64> = (1..=n).map(f64::from).collect();
            let expected = (2.0 / 2_f64.powi(n.try_into().unwrap())).min(1.0);
            assert!((paired(&differences) - expected).abs() < 1e-12, "{n}");
        }
        assert!((paired(&[0.0; 9]) - 1.0).abs() < 1e-12);
        assert!((paired(&[1.0, -1.0]) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn the_approximation_joins_the_exact_count() {
        let series = |n: u32, shift: f64| -> Vec<f64> {
            (0..n).map(|i| f64::from(i * 7919 % 1009) + shift).collect()
        };
        for shift in [0.5, 40.5, 150.5] {
            let exact = independent(&series(50, 0.0), &series(50, shift));
            let close = independent(&series(51, 0.0), &series(51, shift));
            assert!((exact - close).abs() < 0.05, "{shift}: {exact} {close}");
        }
    }

    #[test]
    fn alike_series_are_found_different_at_the_significance_level() {
        let mut random = Random::new(7);
        let mut draw = || (random.number() >> 33) as f64;
        for n in [8, 60] {
            let (mut alarms, mut pair_alarms) = (0, 0);
            for _ in 0..1000 {
                let a: Vec<f64> = (0..n).map(|_| draw()).collect();
                let b: Vec<f64> = (0..n).map(|_| draw()).collect();
                alarms += i32::from(independent(&a, &b) < 0.05);
                let differences: Vec<f64> = a.iter().zip(&b).map(|(x, y)| x - y).collect();
                pair_alarms += i32::from(paired(&differences) < 0.05);
            }
            assert!((20..=70).contains(&alarms), "n {n}: {alarms}");
            assert!((20..=70).contains(&pair_alarms), "n {n}: {pair_alarms}");
        }
    }

    #[test]
    fn holm_raises_the_smallest_most_and_keeps_the_order() {
        let adjusted = holm(&[0.01, 0.04, 0.03, 0.5]);
        let expected = [0.04, 0.09, 0.09, 0.5];
        for (ours, theirs) in adjusted.iter().zip(expected) {
            assert!((ours - theirs).abs() < 1e-12, "{adjusted:?}");
        }
        assert!(holm(&[]).is_empty());
    }
}
