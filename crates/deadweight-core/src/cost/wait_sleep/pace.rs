//! A pace: sleeps until the next instant of a fixed rate (frames, ticks, a limit of requests). The rate is the program's
//! purpose, and there is no event that it could wait for.
//!
//! A loop that polls sleeps equally long each time; whatever it does between two sleeps moves all later ones. A loop with
//! a pace sleeps for what is left, so that its wake-ups stay on a grid.

use deadweight_trace::units::Ns;

/// Fewer sleeps show no grid.
const FEW: usize = 12;
/// The lengths of the sleeps differ so many times as much as the wake-ups from the grid.
const STEADIER: f64 = 2.0;
/// A sleep shorter than this part of the typical one is no turn of its own.
const SHORT: f64 = 0.3;
/// With so many sleeps the grid alone shows it ...
const MANY: usize = 48;
/// ... if the wake-ups differ from it by this part of what the distances between two differ, at most. If each wake-up has
/// an error of its own, it is 0.7; if each error moves all later ones, it grows with the number of sleeps, and is 1.6 for
/// 40.
const OWN_ERRORS: f64 = 1.0;

/// Whether sleeps, each with its start and its end, in order, follow a fixed rate.
pub(super) fn is_pace(sleeps: &[(Ns, Ns)]) -> bool {
    let sleeps = turns(sleeps);
    if sleeps.len() < FEW {
        return false;
    }
    let ends: Vec<f64> = sleeps.iter().map(|(_, end)| end.0 as f64).collect();
    let lengths = sleeps.iter().map(|(start, end)| (*end - *start).0 as f64).collect();
    let distances = ends.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let (from_grid, lengths, distances) =
        (spread(from_grid(&ends)), spread(lengths), spread(distances));
    let own_errors = distances > 0.0 && from_grid <= distances * OWN_ERRORS;
    lengths > from_grid * STEADIER && from_grid < distances.max(lengths)
        || sleeps.len() >= MANY && own_errors
}

/// Each turn's sleep: a short one right behind another is the rest of it, as schedulers sleep for whole milliseconds first;
/// other short ones are no turn.
fn turns(sleeps: &[(Ns, Ns)]) -> Vec<(Ns, Ns)> {
    let mut lengths: Vec<Ns> = sleeps.iter().map(|(start, end)| *end - *start).collect();
    lengths.sort_unstable();
    let short = lengths.get(lengths.len() * 2 / 3).copied().unwrap_or_default().part(SHORT);
    let mut turns: Vec<(Ns, Ns)> = Vec::new();
    for (start, end) in sleeps {
        match turns.last_mut() {
            _ if *end - *start >= short => turns.push((*start, *end)),
            Some((_, last)) if *start - *last < short => *last = *end,
            _ => {}
        }
    }
    turns
}

/// How far each of these is from the straight line through all.
fn from_grid(ends: &[f64]) -> Vec<f64> {
    let count = ends.len() as f64;
    let (middle, mean) = ((count - 1.0) / 2.0, ends.iter().sum::<f64>() / count);
    let places = || ends.iter().enumerate().map(|(i, end)| (i as f64 - middle, end - mean));
    let slope =
        places().map(|(i, end)| i * end).sum::<f64>() / places().map(|(i, _)| i * i).sum::<f64>();
    places().map(|(i, end)| end - slope * i).collect()
}

/// The width of the middle four fifths of these.
fn spread(mut all: Vec<f64>) -> f64 {
    all.sort_unstable_by(f64::total_cmp);
    all[all.len() * 9 / 10] - all[all.len() / 10]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sleeps after work that takes between 0 and 1 ms, with late wake-ups of up to 50 µs: for 5 ms, or until the next 10 ms.
    fn sleeps(count: u64, work: u64, paced: bool) -> Vec<(Ns, Ns)> {
        let random = |i: u64, below: u64| {
            let mixed = (i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) % below.max(1)
        };
        let mut now = 0;
        let sleep = |i: u64| {
            let start = now + 200_000 + random(i, work);
            let wanted = if paced { (i + 1) * 10_000_000 } else { start + 5_000_000 };
            now = wanted + 50_000 + random(i + 1000, 50_000);
            (Ns(start), Ns(now))
        };
        (0..count).map(sleep).collect()
    }

    #[test]
    fn wake_ups_on_a_grid_are_a_pace() {
        assert!(is_pace(&sleeps(12, 1_000_000, true)));
        assert!(is_pace(&sleeps(100, 0, true)), "by the errors alone");
    }

    #[test]
    fn equal_sleeps_are_none() {
        for count in [8, 12, 40, 100, 1000] {
            for work in [0, 20_000, 1_000_000] {
                assert!(!is_pace(&sleeps(count, work, false)), "{count} {work}");
            }
        }
        assert!(!is_pace(&sleeps(11, 1_000_000, true)), "too few");
        let exact: Vec<_> = (0..100).map(|i| (Ns(i * 2000), Ns(i * 2000 + 900))).collect();
        assert!(!is_pace(&exact), "both fit");
    }
}
