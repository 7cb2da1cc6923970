//! Whether registers show that memory is gone over again and again, from its start up to an end that moves on, or from a
//! start that moves on up to its end.
//!
//! - In: what could be the place of a search, at each of its samples in order of time: registers, an address.
//! - Out: how far a search went at first and at last.
//! - Must not know: which functions search.
//!
//! One of these is where the search is. Between two samples it begins anew many times, so its values are a random
//! choice of all places from the start to the end of that time. Of a single pass both ends move on; of searches for
//! different things in the same memory neither does.

use deadweight_trace::units::Ns;

/// The time is cut into so many parts, ...
const PARTS: usize = 5;
/// ... each with so many samples at least.
const SAMPLES: usize = 12;
/// A place is known at one in so many samples at least. That of an index beside a fixed start is known only at the
/// instruction that loads: which samples are there depends on the CPU.
const KNOWN: usize = 16;
/// Smaller numbers are no addresses.
const LEAST_ADDRESS: u64 = 1 << 32;
/// Less memory is gone over quickly, and more is none.
const SPANS: [u64; 2] = [4 << 10, 1 << 30];
/// The tenth of the samples nearest to the fixed end lies within this part of the way; at random it is a tenth.
const NEAR: f64 = 0.3;
/// The mean of the samples is in this part of the way; at random it is half.
const MIDDLE: [f64; 2] = [0.3, 0.7];
/// The way is so many times as long in the last part as in the first. If it grows by the same length after each search,
/// it is twice as long.
const GREW: f64 = 1.5;
/// From the middle to the end it grows by the same factor as the time since the first sample, or so many times that: a
/// program that tries one length after the other doubles them.
const SLOWLY: f64 = 1.4;

/// If it begins anew several times, it grows in this part of the samples.
const MOST: f64 = 0.6;

/// How far a search goes, in bytes.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Growing {
    /// In the first fifth of its samples.
    pub(crate) first: u64,
    /// In the last one.
    pub(crate) last: u64,
    /// Whether it goes up to the end of the memory, and its start moves on: then it becomes shorter.
    pub(crate) to_the_end: bool,
}

/// A sample: its time, and the general registers by number with the address that it accessed behind them.
pub(crate) type Values = (Ns, [u64; ADDRESS + 1]);

/// The index of the address.
pub(crate) const ADDRESS: usize = 32;

/// One of the values of a sample, with its time.
type Value = (Ns, u64);

/// How far a search with these values goes, if that grows or shrinks.
pub(crate) fn growing(samples: &[Values]) -> Option<Growing> {
    let ((begin, first), (end, _)) = (*samples.first()?, *samples.last()?);
    (0..first.len()).find_map(|number| {
        // 0 is not known.
        let known = samples.iter().map(|(at, all)| (*at - begin, all[number]));
        let values: Vec<Value> = known.filter(|(_, value)| *value != 0).collect();
        if values.len() < (PARTS * SAMPLES).max(samples.len() / KNOWN) {
            return None;
        }
        let backwards =
            values.iter().rev().map(|(at, value)| (end - begin - *at, u64::MAX - value));
        let mirrored: Vec<Value> = backwards.collect();
        let (low, span) = range(&values)?;
        let once_or_more = |values, low| ways(values, low).or_else(|| rounds(values, low));
        let forward = once_or_more(&values, low);
        let backward = || once_or_more(&mirrored, u64::MAX - low - span);
        let grows = |[first, last]: [u64; 2]| Growing { first, last, to_the_end: false };
        let shrinks = |[last, first]: [u64; 2]| Growing { first, last, to_the_end: true };
        forward.map(grows).or_else(|| backward().map(shrinks))
    })
}

/// The lowest of these addresses, and how far the highest is; without the fiftieth at both ends. None if they are no
/// addresses of one memory.
fn range(values: &[Value]) -> Option<(u64, u64)> {
    let mut sorted: Vec<u64> = values.iter().map(|(_, value)| *value).collect();
    sorted.sort_unstable();
    let [low, high] =
        [sorted.len() / 50, sorted.len() - 1 - sorted.len() / 50].map(|at| sorted[at]);
    let is_memory = low >= LEAST_ADDRESS && (SPANS[0]..=SPANS[1]).contains(&(high - low));
    is_memory.then_some((low, high - low))
}

/// How far from `low` the values go in the first part and in the last, if that grows.
fn ways(values: &[Value], low: u64) -> Option<[u64; 2]> {
    let way = |part: &[Value]| {
        let mut from: Vec<u64> = part.iter().map(|(_, value)| value.saturating_sub(low)).collect();
        from.retain(|way| *way <= SPANS[1]);
        from.sort_unstable();
        let at = |part: usize| from.get(part * from.len().saturating_sub(1) / 100).copied();
        let far = at(97)?.max(1) as f64 / 0.97;
        let mean = from.iter().sum::<u64>() as f64 / from.len() as f64 / far;
        let begins_at_low = at(10)? as f64 <= NEAR * far;
        (begins_at_low && (MIDDLE[0]..=MIDDLE[1]).contains(&mean)).then_some(far)
    };
    let each = values.len() / PARTS;
    let ways: Vec<f64> = values.chunks(each).take(PARTS).map(way).collect::<Option<_>>()?;
    let grows = ways.windows(2).all(|pair| pair[1] > pair[0]);
    let (first, middle, last) = (ways[0], ways[PARTS / 2], ways[PARTS - 1]);
    let time = |part: usize| (values[part * each + each / 2].0 - values[0].0).0.max(1) as f64;
    let slowly = SLOWLY * time(PARTS - 1) / time(PARTS / 2);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bytes")]
    let bytes = |way: f64| way as u64;
    (grows && last >= GREW * first && last <= slowly * middle).then(|| [bytes(first), bytes(last)])
}

/// The same where the whole is done several times: the way grows, and begins anew. Of the last time.
fn rounds(values: &[Value], low: u64) -> Option<[u64; 2]> {
    let way = |(_, value): &Value| value.saturating_sub(low);
    let tops = values.chunks(SAMPLES).map(|some| some.iter().map(way).max().unwrap_or(0));
    let tops: Vec<u64> = tops.collect();
    let begins = (1..tops.len()).filter(|at| tops[*at] < tops[at - 1] / 2).map(|at| at * SAMPLES);
    let begins: Vec<usize> = [0].into_iter().chain(begins).chain([values.len()]).collect();
    let rounds = begins.windows(2).map(|of| &values[of[0]..of[1]]);
    let long = rounds.filter(|round| round.len() >= PARTS * SAMPLES);
    let grown: Vec<_> = long.filter_map(|of| Some((of.len(), ways(of, low)?))).collect();
    let covered: usize = grown.iter().map(|(samples, _)| samples).sum();
    let most = covered as f64 >= MOST * values.len() as f64;
    grown.last().filter(|_| most && grown.len() > 1).map(|(_, ways)| *ways)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEMORY: u64 = 0x7f00_0000_0000;

    /// A number that looks random, in 0..1.
    fn random(i: u64) -> f64 {
        let mixed = (i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        ((mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 40) as f64
            / f64::from(1 << 24)
    }

    /// The registers of 1000 samples; `at`: where the search is, of a MiB, by the part of the time and a random number.
    fn searching(at: impl Fn(f64, f64) -> f64) -> Vec<Values> {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an address")]
        let sample = |i: u64| {
            let place = MEMORY + (at(i as f64 / 1000.0, random(i)) * f64::from(1 << 20)) as u64;
            let mut values = [0; ADDRESS + 1];
            (values[3], values[7], values[12]) = (i, place, MEMORY);
            (Ns(i * 1000), values)
        };
        (0..1000).map(sample).collect()
    }

    #[test]
    fn a_search_from_the_start_is_found_and_so_is_one_to_the_end() {
        // As far as the root of the time: each search takes as long as its way.
        let grows = growing(&searching(|time, any| time.sqrt() * any)).unwrap();
        assert!(!grows.to_the_end && grows.last > 2 * grows.first, "{grows:?}");
        assert!((900_000..1_200_000).contains(&grows.last), "{grows:?}");
        let shrinks = growing(&searching(|time, any| 1.0 - (1.0 - time).sqrt() * any)).unwrap();
        assert!(shrinks.to_the_end && shrinks.first > 2 * shrinks.last, "{shrinks:?}");
    }

    #[test]
    fn a_place_that_is_known_at_some_samples_is_enough() {
        let known = |each: usize| {
            let mut samples = searching(|time, any| time.sqrt() * any);
            let others = samples.iter_mut().enumerate().filter(|(at, _)| at % each > 0);
            others.for_each(|(_, (_, all))| all[7] = 0);
            growing(&samples)
        };
        assert!(known(6).is_some_and(|grows| grows.last > 2 * grows.first));
        assert_eq!(known(20), None);
    }

    #[test]
    fn a_search_that_is_done_several_times_is_found_and_other_texts_in_one_buffer_are_refused() {
        let rounds = |time: f64| (time * 4.0).fract();
        let grows = growing(&searching(|time, any| rounds(time).sqrt() * any)).unwrap();
        assert!(!grows.to_the_end && grows.last > 3 * grows.first / 2, "{grows:?}");
        let shrinks = growing(&searching(|time, any| 1.0 - (1.0 - rounds(time)).sqrt() * any));
        assert!(shrinks.unwrap().to_the_end);
        // Each text has another length, and is searched several times.
        for each in [10.0, 20.0, 40.0] {
            let length = |time: f64| random((time * each).floor().to_bits());
            assert_eq!(growing(&searching(|time, any| length(time) * any)), None, "{each}");
        }
    }

    #[test]
    fn other_searches_are_refused() {
        let refused = |at: &dyn Fn(f64, f64) -> f64| assert_eq!(growing(&searching(at)), None);
        // Once through the memory, and again and again through all of it.
        refused(&|time, any| 0.98 * time + 0.02 * any);
        refused(&|_, any| any);
        refused(&|time, _| time * 7.0 % 1.0);
        // One length after the other, each twice the one before.
        refused(&|time, any| 2_f64.powf((time * 8.0).floor() - 8.0) * any);
        // Longer and longer, each in memory of its own.
        refused(&|time, any| 8.0 * time + time.sqrt() * any);
        assert_eq!(growing(&searching(|time, any| time.sqrt() * any)[..40]), None);
    }
}
