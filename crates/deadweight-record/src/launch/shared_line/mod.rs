//! What it costs here that two CPUs write to one cache line. Some processors gather a thread's writes in registers and queues
//! until the line arrives, and virtual CPUs may be two threads of one core: then it costs nothing, whatever it costs elsewhere.

#[cfg_attr(target_arch = "x86_64", path = "x86_64.rs")]
#[cfg_attr(not(target_arch = "x86_64"), path = "other.rs")]
mod add;

use crate::clock::now;
use crate::procfs::affinity::Affinity;
use crate::timing::whole;
use add::add;
use std::fs;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;

/// Pairs of tries, with and without a shared line; the one in the middle counts. Two milliseconds for all.
const PAIRS: usize = 9;
/// How long a try takes, in ns: long enough for hundreds of turns of a line.
const TRY: u64 = 100_000;
/// Additions from one look at the clock to the next.
const TURNS: u64 = 256;
/// Threads that are not done after so long have no CPU of their own: nothing is known then.
const PATIENCE: u64 = 20_000_000;

/// Words of 8 bytes: the first two are in one line; the last one is in none of theirs, nor in one that is fetched with it.
#[repr(align(512))]
struct Words([AtomicU64; 64]);
const PLACES: [[usize; 2]; 2] = [[0, 1], [0, 63]];

/// How long an addition to memory takes while another CPU writes to the same line, in thousandths of the time in lines of
/// their own; 0 if that is not known: there is one CPU, or they are busy.
pub(crate) fn measured() -> u64 {
    two_cpus().and_then(ratio).map_or(0, |ratio| whole(ratio * 1000.0).max(1))
}

/// Two CPUs that this process may use, of different cores if it can be known.
fn two_cpus() -> Option<[usize; 2]> {
    let cpus: Vec<usize> = Affinity::of_this_thread().cpus().collect();
    let first = *cpus.first()?;
    let path = format!("/sys/devices/system/cpu/cpu{first}/topology/thread_siblings_list");
    let siblings = crate::procfs::cpu_list(&fs::read_to_string(path).unwrap_or_default());
    let apart =
        |cpu: &&usize| !siblings.iter().any(|sibling| usize::try_from(*sibling) == Ok(**cpu));
    let other = cpus[1..].iter().find(apart).or(cpus.get(1))?;
    Some([first, *other])
}

fn ratio(cpus: [usize; 2]) -> Option<f64> {
    let words = Words(std::array::from_fn(|_| AtomicU64::new(0)));
    let come = [const { AtomicUsize::new(0) }; 2 * PAIRS];
    let took = thread::scope(|scope| {
        let threads = [0, 1].map(|me| {
            let (words, come) = (&words, &come);
            let body = move || tries(cpus[me], come, |step| &words.0[PLACES[step % 2][me]]);
            thread::Builder::new().spawn_scoped(scope, body)
        });
        threads.map(|thread| thread.ok()?.join().ok()?)
    });
    let [Some(one), Some(two)] = took else { return None };
    let speed = |step: usize| 1.0 / one[step] + 1.0 / two[step];
    let mut ratios: Vec<f64> = (0..PAIRS).map(|i| speed(2 * i + 1) / speed(2 * i)).collect();
    ratios.sort_by(f64::total_cmp);
    Some(ratios[PAIRS / 2])
}

/// The tries of a thread: how long an addition took in each, in ns. None if the thread or the other one had no CPU.
fn tries<'w>(
    cpu: usize,
    come: &[AtomicUsize],
    word: impl Fn(usize) -> &'w AtomicU64,
) -> Option<Vec<f64>> {
    Affinity::only(cpu)?.apply_to(0).then_some(())?;
    let until = now() + PATIENCE;
    let mut took = Vec::with_capacity(come.len());
    for (step, come) in come.iter().enumerate() {
        come.fetch_add(1, Ordering::SeqCst);
        while come.load(Ordering::SeqCst) < 2 {
            (now() < until).then_some(())?;
        }
        let (start, mut turns) = (now(), 0);
        let mut passed = 0;
        while passed < TRY {
            add(word(step), TURNS);
            turns += TURNS;
            passed = now() - start;
        }
        took.push(passed as f64 / turns as f64);
    }
    Some(took)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_line_costs_is_a_ratio_or_not_known() {
        let Some(cpus) = two_cpus() else { return };
        assert_ne!(cpus[0], cpus[1]);
        // No less than a twentieth, no more than a thousand times: anything else is no time of a write.
        if let Some(ratio) = ratio(cpus) {
            assert!(ratio > 0.05 && ratio < 1000.0, "{ratio}");
        }
    }

    #[test]
    fn additions_are_made() {
        let word = AtomicU64::new(5);
        add(&word, 7);
        assert_eq!(word.into_inner(), 12);
    }
}
