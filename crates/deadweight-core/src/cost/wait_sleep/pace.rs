//! A pace: sleeps until the next instant of a fixed rate (frames, ticks, a limit of requests). The rate is the program's
//! purpose, and there is no event that it could wait for.
//!
//! A loop that polls sleeps equally long each time; whatever it does between two sleeps moves all later ones. A loop with
//! a pace sleeps for what is left, so that its wake-ups stay on a grid. Who computes the instant and asks the kernel for it
//! has a pace, too, however late the wake-ups are.

use super::{LOOP, NEARLY_ALL};
use crate::facts::Facts;
use crate::facts::call_site::is_interpreted;
use crate::facts::processes::ProcessId;
use crate::timeline::Block;
use crate::timeline::kernel_stacks::WaitsFor;
use deadweight_trace::units::Ns;

/// `clock_nanosleep`'s flag for "until", linux/time.h.
const TIMER_ABSTIME: u64 = 1;

/// Fewer sleeps show no grid.
const FEW: usize = 12;
/// The lengths of the sleeps differ so many times as much as the wake-ups from the grid: of loops with a pace 2.5 times
/// and more, of loops that poll 0.2 times.
const STEADIER: f64 = 2.0;
/// Rates of frames and samples.
const RATES: [f64; 10] = [24.0, 30.0, 48.0, 60.0, 72.0, 75.0, 90.0, 120.0, 144.0, 240.0];
/// How exactly a rate is kept, in ns; and a millisecond.
const EXACT: f64 = 3_000.0;
const MS: f64 = 1e6;
/// Sleeps that ask for one length differ by this part of it, at most.
const ALIKE: f64 = 0.1;
/// The kernel adds this part of a sleep, or 50 µs; and wakes so many ns later, with that.
const SLACK: f64 = 0.001;
const LATE: f64 = 130_000.0;
/// The wait begins so many ns after it was asked for, at most.
const EARLY: f64 = 20_000.0;
/// A sleep shorter than this part of the typical one is no turn of its own.
const SHORT: f64 = 0.3;
/// With so many sleeps the grid alone shows it ...
const MANY: usize = 40;
/// ... if the standard deviation from it is this part of that of the distances between two, at most. If each wake-up has an
/// error of its own, it is 0.7; if each error moves all later ones, it grows with the number of sleeps. Of 1 000 simulated
/// loops with 40 sleeps, 1 % of those that poll are below, and 97 % of those with a pace.
const OWN_ERRORS: f64 = 0.9;

/// A sleep of less than this part of the one before is a shorter one ...
const SHORTER: f64 = 0.9;
/// ... which so many are, if lengths go up and down at random: nearly half.
const OFTEN: f64 = 0.35;
/// The tenth part of the sleeps is shorter than this part of the typical one.
const MUCH_SHORTER: f64 = 0.75;

/// Whether a process's sleeps, each with its start and its end, in order, are a pace, or last until something is due.
pub(super) fn is_one(facts: &Facts<'_>, process: ProcessId, sleeps: &[(Ns, Ns)]) -> bool {
    is_until_instants(facts, process) || is_pace(sleeps) || differ(sleeps)
}

/// Whether sleeps, each with its start and its end, in order, follow a fixed rate.
fn is_pace(sleeps: &[(Ns, Ns)]) -> bool {
    let sleeps = turns(sleeps);
    if sleeps.len() < FEW {
        return false;
    }
    let ends: Vec<f64> = sleeps.iter().map(|(_, end)| end.0 as f64).collect();
    let lengths = sleeps.iter().map(|(start, end)| (*end - *start).0 as f64).collect();
    let (from_grid, errors) = from_grid(&ends);
    let own_errors = deviation(&from_grid) <= deviation(&errors) * OWN_ERRORS;
    let on_grid = sleeps.len() >= MANY && own_errors && deviation(&errors) > 0.0;
    on_grid || is_round(&ends) || spread(lengths) > spread(from_grid) * STEADIER
}

/// Whether a process asks the kernel for an instant, not for a length, at nearly all of its sleeps. Runtimes compute an
/// instant for each sleep: Python does.
fn is_until_instants(facts: &Facts<'_>, process: ProcessId) -> bool {
    if is_interpreted(&facts.processes.get(process).language) {
        return false;
    }
    let asleep = |block: &&Block| {
        block.waits_for == WaitsFor::Sleep && facts.processes.of(block.task) == process
    };
    let (mut until, mut all) = (0_usize, 0_usize);
    for block in facts.timeline.blocks.iter().filter(asleep) {
        let call = block.call.map(|call| &facts.timeline.calls[call.index()]);
        let flags = call.map_or(0, |call| facts.timeline.args(call)[1]);
        let absolute = facts.call_of(block) == "clock_nanosleep" && flags & TIMER_ABSTIME != 0;
        all += 1;
        until += usize::from(absolute);
    }
    all >= LOOP && until as f64 >= all as f64 * NEARLY_ALL
}

/// Whether the mean time of a turn is that of a rate that programs keep, to 3 µs: whole milliseconds, or so many in a
/// second. Sleeps of equal length make a turn longer than they are, by all that is done in it.
fn is_round(ends: &[f64]) -> bool {
    let mean = (ends[ends.len() - 1] - ends[0]) / (ends.len() - 1) as f64;
    let near = |period: f64| (mean - period).abs() <= EXACT;
    let whole = (mean / MS).round() * MS;
    mean >= 4.0 * MS && near(whole) || RATES.iter().any(|rate| near(1e9 / rate))
}

/// Whether sleeps, each with its start and its end, in order, are as long as a loop that polls asks for: whole
/// milliseconds. The kernel adds 50 µs or a thousandth of the time, and the wake-up. Shorter sleeps, and those that
/// differ, are not judged.
pub(super) fn are_of_round_length(sleeps: &[(Ns, Ns)]) -> bool {
    let mut lengths: Vec<f64> =
        turns(sleeps).iter().map(|(start, end)| (*end - *start).0 as f64).collect();
    lengths.sort_unstable_by(f64::total_cmp);
    let Some(&typical) = lengths.get(lengths.len() / 2) else { return true };
    let alike = lengths.len() >= FEW && spread(lengths) <= typical * ALIKE;
    let more = typical % MS;
    !alike || typical < 2.0 * MS || more <= typical * SLACK + LATE || more >= MS - EARLY
}

/// Whether sleeps, each with its start and its end, in order, are of different lengths by intention: until something is due.
/// A loop that polls asks for one length, and noise only lengthens it; one that backs off makes them longer until it starts
/// again.
fn differ(sleeps: &[(Ns, Ns)]) -> bool {
    let lengths: Vec<Ns> = turns(sleeps).iter().map(|(start, end)| *end - *start).collect();
    if lengths.len() < FEW {
        return false;
    }
    let shorter = lengths.windows(2).filter(|pair| pair[1] < pair[0].part(SHORTER)).count();
    let mut sorted = lengths.clone();
    sorted.sort_unstable();
    let [low, typical] = [sorted[sorted.len() / 10], sorted[sorted.len() / 2]];
    low < typical.part(MUCH_SHORTER) && shorter as f64 >= lengths.len() as f64 * OFTEN
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

/// How far each of these is from the straight line through all, and by how much each distance between two differs from a
/// number of turns: where one is missing, the next one is two turns on.
fn from_grid(ends: &[f64]) -> (Vec<f64>, Vec<f64>) {
    let distances: Vec<f64> = ends.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let mut sorted = distances.clone();
    sorted.sort_unstable_by(f64::total_cmp);
    let typical = sorted[sorted.len() / 2].max(1.0);
    let steps: Vec<f64> =
        distances.iter().map(|distance| (distance / typical).round().max(1.0)).collect();
    let errors = distances.iter().zip(&steps).map(|(d, steps)| d - steps * typical).collect();
    let mut turn = 0.0;
    let later = steps.iter().map(|steps| {
        turn += steps;
        turn
    });
    let turns: Vec<f64> = std::iter::once(0.0).chain(later).collect();
    let mean = |all: &[f64]| all.iter().sum::<f64>() / all.len() as f64;
    let (middle, mean) = (mean(&turns), mean(ends));
    let places = || turns.iter().zip(ends).map(|(turn, end)| (turn - middle, end - mean));
    let slope =
        places().map(|(i, end)| i * end).sum::<f64>() / places().map(|(i, _)| i * i).sum::<f64>();
    (places().map(|(i, end)| end - slope * i).collect(), errors)
}

/// The standard deviation of these.
fn deviation(all: &[f64]) -> f64 {
    let mean = all.iter().sum::<f64>() / all.len() as f64;
    (all.iter().map(|one| (one - mean).powi(2)).sum::<f64>() / all.len() as f64).sqrt()
}

/// The width of the middle four fifths of these.
fn spread(mut all: Vec<f64>) -> f64 {
    all.sort_unstable_by(f64::total_cmp);
    all[all.len() * 9 / 10] - all[all.len() / 10]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A number by chance.
    fn random(i: u64, below: u64) -> u64 {
        let mixed = (i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) % below.max(1)
    }

    /// Sleeps after work that takes between 0 and 1 ms, with late wake-ups of up to 50 µs: for 5 ms, or until the next 10 ms.
    fn sleeps(count: u64, work: u64, paced: bool) -> Vec<(Ns, Ns)> {
        let mut now = 0;
        let sleep = |i: u64| {
            let start = now + 200_000 + random(i, work);
            let wanted = if paced { (i + 1) * 10_000_000 } else { start + 5_000_000 };
            now = wanted + 50_000 + random(i + 1000, 50_000);
            (Ns(start), Ns(now))
        };
        (0..count).map(sleep).collect()
    }

    /// 28 turns of `period` after work of nearly the same length, or sleeps of 15 ms after it; all to some 30 µs.
    fn steady(period: Option<u64>) -> Vec<(Ns, Ns)> {
        let mut now = 0;
        let sleep = |i: u64| {
            let start = now + 1_430_000 + random(i, 60_000);
            let wanted = period.map_or(start + 15_000_000, |period| (i + 1) * period);
            now = wanted + 55_000 + random(i + 1000, 8_000);
            (Ns(start), Ns(now))
        };
        (0..28).map(sleep).collect()
    }

    #[test]
    fn frames_with_steady_work_are_a_pace_and_sleeps_of_one_length_are_none() {
        assert!(is_pace(&steady(Some(16_666_667))));
        assert!(is_pace(&steady(Some(20_000_000))));
        assert!(!is_pace(&steady(None)));
        assert!(are_of_round_length(&steady(None)));
        // A bucket of tokens, one each 20 ms and what the loop takes.
        assert!(!are_of_round_length(&steady(Some(20_089_000))));
    }

    #[test]
    fn wake_ups_on_a_grid_are_a_pace() {
        assert!(is_pace(&sleeps(12, 1_000_000, true)));
        assert!(is_pace(&sleeps(100, 0, true)), "by the errors alone");
        let known = sleeps(100, 1_000_000, true);
        let some: Vec<_> = (0..100).filter(|i| i * i % 7 > 1).map(|i| known[i]).collect();
        assert!(is_pace(&some), "some are missing");
    }

    /// Sleeps of these lengths, with 100 µs between them.
    fn lasting(length: impl Fn(u64) -> u64) -> Vec<(Ns, Ns)> {
        let mut now = 0;
        let sleep = |i: u64| {
            let start = now + 100_000;
            now = start + length(i);
            (Ns(start), Ns(now))
        };
        (0..100).map(sleep).collect()
    }

    #[test]
    fn sleeps_until_something_is_due_differ() {
        assert!(differ(&lasting(|i| 1_000_000 + random(i, 4_000_000))));
    }

    #[test]
    fn sleeps_of_one_length_and_those_that_grow_do_not_differ() {
        assert!(!differ(&lasting(|i| 2_000_000 + random(i, 100_000))));
        assert!(!differ(&lasting(|i| 2_000_000 + random(i, 4) / 3 * 3_000_000)), "late wake-ups");
        for steps in [4, 5, 6, 100] {
            let backs_off = lasting(|i| 500_000 << (i % steps).min(8));
            assert!(!differ(&backs_off), "{steps}");
        }
        assert!(!differ(&sleeps(100, 1_000_000, false)));
    }

    #[test]
    fn equal_sleeps_are_none() {
        for count in [8, 12, 40, 100, 1000] {
            for work in [0, 20_000, 1_000_000, 20_000_000] {
                assert!(!is_pace(&sleeps(count, work, false)), "{count} {work}");
            }
        }
        assert!(!is_pace(&sleeps(11, 1_000_000, true)), "too few");
        let exact: Vec<_> = (0..100).map(|i| (Ns(i * 2000), Ns(i * 2000 + 900))).collect();
        assert!(!is_pace(&exact), "both fit");
    }
}
