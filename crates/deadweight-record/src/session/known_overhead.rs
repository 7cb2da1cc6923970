//! The tracing overhead: as earlier calibrations of this boot found it, or from a new one.
//!
//! Calibrating takes some 50 ms. The results of the latest ones are kept, and their median counts: it is more precise
//! than one. A quick check decides which of them can be right now. Where events of perf record everything, each
//! recording calibrates anew.

use super::Session;
use super::calibrate::{self, Cold, Measured};
use crate::bpf::PROGRAMS_ID;
use crate::clock::now;
use crate::error::Error;
use crate::perf::private_dir::Folder;
use crate::procfs;
use crate::timing::Unrecorded;
use deadweight_trace::Overhead;
use std::cmp::Ordering;
use std::fmt::Write;

/// The file that keeps calibrations.
const CACHE: &str = "calibrations";
/// So many are kept, and with so many none is made.
const MOST: usize = 5;
const ENOUGH: usize = 3;
/// Older ones do not count, in ns: 20 minutes.
const MAX_AGE: u64 = 1_200_000_000_000;
/// How much faster an unrecorded call and a first touch may be than they were, as a part.
const TOLERANCE: f64 = 0.1;
/// How many times as slow they may be: as slow as beside a busy task on the same core.
const SLOWEST: f64 = 1.75;
/// So many quick checks, each of some 0.5 ms: a processor that was idle is slow at first.
const TRIES: u32 = 4;
/// Members of [`Costs`] that are calibrated.
const MEMBERS: usize = 16;

/// The tracing overhead: of events that follow each other closely, and what others cost more.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
pub(crate) struct Costs {
    pub(crate) overhead: Overhead,
    pub(crate) cold: Cold,
}

/// One calibration.
#[derive(Copy, Clone, Debug, PartialEq)]
struct Calibration {
    /// On the clock of events, in ns.
    at: u64,
    /// An empty call, a first touch of a page and a short call without events, in ns.
    quick: [f64; 3],
    costs: [u64; MEMBERS],
}

/// What is known before any event is open.
#[derive(Debug)]
pub(crate) enum Before {
    /// From the cache: durations of unrecorded calls, and the overhead.
    Known(Unrecorded, Costs),
    /// The first half of a calibration.
    Measured(Measured),
}

impl Before {
    /// Looks for earlier calibrations, or does the first half of a new one.
    ///
    /// # Errors
    ///
    /// If a child cannot be started.
    pub(crate) fn events() -> Result<Self, Error> {
        let undisturbed = undisturbed(kept(Folder::open().as_ref()));
        if let Some((quick, costs)) = median(&undisturbed)
            && (0..TRIES).any(|_| is_plausible(quick, calibrate::quick()))
        {
            return Ok(Self::Known(unrecorded(quick), costs));
        }
        calibrate::without_events().map(Self::Measured)
    }

    /// Durations of unrecorded calls, and the overhead in this session. Does the second half of a calibration if there
    /// was a first.
    ///
    /// # Errors
    ///
    /// As [`Before::events`], or if an event is refused.
    pub(crate) fn with_events(self, session: &mut Session) -> Result<(Unrecorded, Costs), Error> {
        let without_events = match self {
            Self::Known(unrecorded, costs) if session.has_programs() => {
                return Ok((unrecorded, costs));
            }
            // The session's events do not touch the child.
            Self::Known(..) => calibrate::without_events()?,
            Self::Measured(measured) => measured,
        };
        let with_events = calibrate::with_events(session, &without_events)?;
        let quick = [without_events.call, without_events.fault, without_events.short];
        let counted = session.cost_of_counting(unrecorded(quick));
        let overhead = calibrate::overhead(&without_events, &with_events);
        let costs = Costs {
            overhead: Overhead {
                counted_user: counted.user,
                counted_kernel: counted.kernel,
                starting: if session.has_programs() { overhead.starting } else { 0 },
                ..overhead
            },
            cold: calibrate::cold(&without_events, &with_events),
        };
        if session.has_programs() {
            keep(Calibration { at: now(), quick, costs: numbers(&costs) });
        }
        Ok((unrecorded(quick), costs))
    }
}

/// Calibrations of this boot that are not too old, the latest last.
fn kept(folder: Option<&Folder>) -> Vec<Calibration> {
    let text = folder.and_then(|folder| folder.read(CACHE)).unwrap_or_default();
    let mut kept = parse(&text, &key());
    let now = now();
    kept.retain(|one| one.at <= now && now - one.at <= MAX_AGE);
    kept
}

fn keep(calibration: Calibration) {
    let Some(folder) = Folder::open() else { return };
    let mut all = kept(Some(&folder));
    all.push(calibration);
    let first = all.len().saturating_sub(MOST);
    folder.write(CACHE, &render(&all[first..], &key()));
}

/// Those whose calls without events took no longer than the shortest: others were measured beside a busy task.
fn undisturbed(mut kept: Vec<Calibration>) -> Vec<Calibration> {
    let shortest = kept.iter().map(|one| one.quick[0]).fold(f64::MAX, f64::min);
    kept.retain(|one| one.quick[0] <= shortest * (1.0 + TOLERANCE));
    kept
}

/// The median of each number; none of too few calibrations.
fn median(all: &[Calibration]) -> Option<([f64; 3], Costs)> {
    if all.len() < ENOUGH {
        return None;
    }
    let quick = std::array::from_fn(|at| {
        middle(all.iter().map(|one| one.quick[at]).collect(), f64::total_cmp)
    });
    let numbers =
        std::array::from_fn(|at| middle(all.iter().map(|one| one.costs[at]).collect(), u64::cmp));
    Some((quick, costs(numbers)))
}

fn middle<T: Copy>(mut all: Vec<T>, compare: impl Fn(&T, &T) -> Ordering) -> T {
    all.sort_unstable_by(compare);
    all[all.len() / 2]
}

fn unrecorded([empty, _, short]: [f64; 3]) -> Unrecorded {
    Unrecorded { empty, short }
}

/// Whether actions without events, which took so long `then`, may take so long `now`, in ns.
fn is_plausible(then: [f64; 3], now: [f64; 3]) -> bool {
    let fits = |(then, now): (f64, f64)| now >= then * (1.0 - TOLERANCE) && now <= then * SLOWEST;
    then.into_iter().zip(now).all(fits)
}

fn numbers(costs: &Costs) -> [u64; MEMBERS] {
    let Overhead { syscall_user, syscall_kernel, fault_user, fault_kernel, .. } = costs.overhead;
    let Overhead { counted_user, counted_kernel, .. } = costs.overhead;
    let Overhead { switch, sample, birth, death, site, .. } = costs.overhead;
    let Overhead { path, folder, starting, .. } = costs.overhead;
    let Cold { call, fault } = costs.cold;
    let [a, b, c, d] = [syscall_user, syscall_kernel, counted_user, counted_kernel];
    let [e, f, g] = [path, folder, starting];
    [a, b, c, d, e, f, g, fault_user, fault_kernel, switch, sample, birth, death, site, call, fault]
}

fn costs(numbers: [u64; MEMBERS]) -> Costs {
    let [syscall_user, syscall_kernel, counted_user, counted_kernel, path, folder, starting, ..] =
        numbers;
    let [.., fault_user, fault_kernel, switch, sample, birth, death, site, call, fault] = numbers;
    let calls = Overhead { syscall_user, syscall_kernel, ..Overhead::default() };
    let calls = Overhead { counted_user, counted_kernel, path, folder, starting, ..calls };
    let overhead =
        Overhead { fault_user, fault_kernel, switch, sample, birth, death, site, ..calls };
    Costs { overhead, cold: Cold { call, fault } }
}

/// Identifies the boot, the CPUs, and the programs whose cost it is.
fn key() -> String {
    let boot = procfs::line("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    format!("8 {boot} {} {PROGRAMS_ID}", procfs::allowed_cpus())
}

fn render(calibrations: &[Calibration], key: &str) -> String {
    let mut text = format!("{key}\n");
    for Calibration { at, quick: [call, fault, short], costs } in calibrations {
        _ = write!(text, "{at} {call} {fault} {short}");
        costs.iter().for_each(|number| _ = write!(text, " {number}"));
        text.push('\n');
    }
    text
}

/// None of another key, and no damaged line.
fn parse(text: &str, key: &str) -> Vec<Calibration> {
    let Some((first, rest)) = text.split_once('\n') else { return Vec::new() };
    let line = |line: &str| {
        let mut words = line.split(' ');
        let at = words.next()?.parse().ok()?;
        let mut time = || words.next()?.parse().ok().filter(|time| *time > 0.0);
        let quick = [time()?, time()?, time()?];
        let costs: Vec<u64> = words.map(|word| word.parse().ok()).collect::<Option<_>>()?;
        Some(Calibration { at, quick, costs: costs.try_into().ok()? })
    };
    rest.lines().filter(|_| first == key).filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calibration(call: f64, number: u64) -> Calibration {
        Calibration { at: 5, quick: [call, 600.0, 150.0], costs: [number; MEMBERS] }
    }

    #[test]
    fn what_was_kept_is_read_again_for_the_same_boot_and_programs_only() {
        let all = [calibration(80.5, 3), calibration(81.0, 4)];
        let text = render(&all, "boot 1");
        assert_eq!(parse(&text, "boot 1"), all);
        assert_eq!(parse(&text, "boot 2"), []);
        assert_eq!(parse(&text[..text.len() - 3], "boot 1"), all[..1]);
        assert_eq!(
            parse(
                "boot 1\n5 -1 6 9 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n5 NaN 6 9 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16",
                "boot 1"
            ),
            []
        );
    }

    #[test]
    fn the_median_of_undisturbed_calibrations_counts() {
        let mut all = vec![calibration(80.0, 9), calibration(82.0, 4), calibration(120.0, 1)];
        assert_eq!(median(&undisturbed(all.clone())), None, "two are undisturbed");
        all.push(calibration(79.0, 5));
        let (quick, costs) = median(&undisturbed(all)).unwrap();
        assert_eq!((quick, costs.overhead.site, costs.cold.call), ([80.0, 600.0, 150.0], 5, 5));
    }

    #[test]
    fn the_same_machine_may_be_busy_but_not_faster() {
        let then = [80.0, 600.0, 150.0];
        let is_plausible = |call, fault| is_plausible(then, [call, fault, 150.0]);
        assert!(is_plausible(80.0, 610.0) && is_plausible(130.0, 900.0));
        assert!(!is_plausible(60.0, 600.0) && !is_plausible(80.0, 1200.0));
    }
}
