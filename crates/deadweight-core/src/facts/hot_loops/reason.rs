//! Why a hot loop is slow, from the registers at its samples: one reason for each loop, the strongest.
//!
//! Samples wait for what is slow: a loop that waits for memory has most of its samples behind a few loads; one that
//! guesses wrong has them where its branches lead to. Where registers count the turns, a loop that takes hardly longer
//! than its instructions need is not slow, whatever its samples wait for. Reasons overlap (a tree that is searched at
//! random misses caches, pages and branches), so they are not added: the loss is one. Not for what to do about it: each
//! reason has its class.

use super::divisions::{self, Divisions};
use super::memory::{LINE, PAGE, Reached, cache};
use super::{HotLoop, LoopSample, speed};
use crate::facts::Facts;
use deadweight_code::instruction::Kind;
use deadweight_code::machine_code::FunctionId;
use deadweight_trace::units::FileAddr;
use std::collections::{BTreeMap, BTreeSet};

/// A loop is slow if a turn takes this many times as long as its instructions need at 2.5 GHz. Sixteen pairs of programs were
/// apart here: 0.8 to 1.9 without a cause, from 3.5 on with one. For memory the CPU's own cycles count: at 3.7 GHz, records
/// of which a loop used little took 2.8 to 3.3 times as long (1.9 to 2.2 at 2.5 GHz), and loops that waited for no memory up
/// to 2.6 times.
pub(crate) const SLOW: f64 = 2.5;
/// Wrong guesses alone make a turn at most so many times as long: 20 cycles for each of a few instructions.
const GUESSES: f64 = 25.0;
/// The part of a loop's samples that show its reason.
const MOST: f64 = 0.5;
/// The same for memory, where what comes after a load waits too.
const MUCH: f64 = 0.4;
/// A loop that waits for far memory in each turn as well is no matter of branches only.
const SOME: f64 = 0.3;
/// Memory that is hardly larger than a cache is mostly in it: from so many times its size on, a third is not.
const BEYOND: f64 = 1.5;
/// Bytes of each line of 64: a loop that uses no more of them fetches mostly what it does not use.
const FEW_BYTES: f64 = 26.0;
/// Pages of 4 KiB that a CPU finds without a walk: 2048 entries of its second TLB (AMD Zen 2 to 4; Intel has 1536 to
/// 2048), twice.
const PAGES: f64 = 4096.0;
/// A page of which at most so many lines are used is there for little.
const LINES_OF_PAGE: f64 = 2.0;
/// A sampled page that was faulted in by itself is a small one.
const SMALL: f64 = 0.5;
/// So many instructions after the first one where a branch leads to begin with it.
const AFTER: usize = 1;
/// So many instructions before a jump through a table load where it goes to.
const BEFORE: usize = 4;
/// So many instructions after a division may wait for it, also behind a branch around it.
const DIVIDED: usize = 4;
/// A function that is called through a pointer counts from this part of the loop's samples on.
const CALLEE: f64 = 0.08;

/// Why a loop is slow.
#[derive(Clone, Debug)]
pub(crate) enum Reason {
    /// It divides, and need not: where its samples wait for that.
    Divisions(Divisions),
    /// Branches and calls through pointers go where the CPU did not expect: where they lead to.
    Branches(BTreeSet<FileAddr>),
    /// It fetches memory: these accesses.
    Memory(Vec<Reached>),
    /// It uses little of each of many pages: these accesses.
    Pages(Vec<Reached>),
}

/// What the samples of a loop show of each reason.
#[derive(Debug)]
pub(crate) struct Signs {
    /// Where they wait for divisions that need not be.
    divisions: Divisions,
    /// Where branches lead to.
    ways: BTreeSet<FileAddr>,
    /// The samples that come there, as a part of all in 0..=1, as the next.
    surprised: f64,
    /// Accesses to memory that the CPU's own caches do not hold.
    far: Vec<Reached>,
    /// Accesses that use little of each of many pages.
    sparse: Vec<Reached>,
}

/// Why a loop is slow; none if it is not, or if that is not known.
pub(super) fn reason(facts: &Facts<'_>, hot: &HotLoop) -> Option<Reason> {
    let signs = Signs::of(facts, hot);
    if part_divided(&signs.divisions, hot) >= MOST {
        return Some(Reason::Divisions(signs.divisions));
    }
    let far = part(signs.far.iter(), hot);
    let ratio = hot.speed.map(|speed| speed.ratio());
    if ratio.is_some_and(|ratio| ratio < SLOW) {
        let by_own_cycles = hot.speed.is_some_and(|speed| speed.ratio_here() >= SLOW);
        return (by_own_cycles && far >= MOST).then_some(Reason::Memory(signs.far));
    }
    let far_each = signs.far.iter().filter(|r| r.spacing.is_none_or(|bytes| bytes >= LINE));
    let by_guesses = ratio.is_some_and(|ratio| ratio <= GUESSES);
    let is_guessed = signs.is_surprised() && part(far_each, hot) < SOME;
    let explained = || has_locked(facts, hot) || speed::is_passed_on(facts, hot);
    if by_guesses && is_guessed && !explained() {
        return Some(Reason::Branches(signs.ways));
    }
    if part(signs.sparse.iter(), hot) >= MUCH {
        return Some(Reason::Pages(signs.sparse));
    }
    (far >= MUCH).then_some(Reason::Memory(signs.far))
}

/// The samples of these accesses as a part of the loop's.
fn part<'r>(of: impl Iterator<Item = &'r Reached>, hot: &HotLoop) -> f64 {
    of.map(|reached| reached.samples).sum::<usize>() as f64 / hot.samples.len() as f64
}

impl Signs {
    /// Those of a loop.
    pub(crate) fn of(facts: &Facts<'_>, hot: &HotLoop) -> Self {
        let mut divisions = divisions::avoidable(facts, hot);
        let so_far = part_divided(&divisions, hot);
        if so_far < MOST {
            let waited_for = divisions::waited_for(facts, hot);
            divisions =
                if part_divided(&waited_for, hot) > so_far { waited_for } else { divisions };
        }
        let has_speed = hot.speed.is_some();
        let waits =
            |r: &&Reached| is_far(facts, r) && (has_speed || !waits_for_sums(facts, hot, r));
        let far = hot.reached.iter().filter(waits).cloned().collect();
        let sparse = hot.reached.iter().filter(|r| is_sparse(facts, r)).cloned().collect();
        let ways = ways(facts, hot);
        let before = before_tables(facts, hot);
        let divided = divided(facts, hot);
        let surprised = hot.part(|sample| {
            let own = sample.function == hot.function && before.contains(&sample.waited);
            (own || comes_after(facts, &ways, sample))
                && !divided.contains(&(sample.function, sample.waited))
        });
        Self { divisions, ways, surprised, far, sparse }
    }

    /// Whether most samples come where branches lead to.
    pub(crate) fn is_surprised(&self) -> bool {
        self.surprised >= MOST
    }

    /// The signs by name, each with the part of the loop's samples that show it. The parts overlap.
    pub(crate) fn shares(&self, hot: &HotLoop) -> [(&'static str, f64); 4] {
        [
            ("far memory", part(self.far.iter(), hot)),
            ("branches", self.surprised),
            ("divisions", part_divided(&self.divisions, hot)),
            ("small pages", part(self.sparse.iter(), hot)),
        ]
    }
}

fn part_divided(divisions: &Divisions, hot: &HotLoop) -> f64 {
    hot.part(|s| divisions.contains_key(&(s.function, s.waited)))
}

/// Whether a loop has a locked instruction: what comes after one waits for it, also where a branch leads to.
fn has_locked(facts: &Facts<'_>, hot: &HotLoop) -> bool {
    hot.cycle(facts).is_some_and(|cycle| cycle.instructions().any(|i| i.kind == Kind::Atomic))
}

/// Whether most samples of an access that is no chain come after a sum from turn to turn, which waits for the sum before
/// as well: without the time of a turn, they do not show a wait for memory.
fn waits_for_sums(facts: &Facts<'_>, hot: &HotLoop, reached: &Reached) -> bool {
    let Some(cycle) = hot.cycle(facts).filter(|_| !reached.in_order && !reached.chased) else {
        return false;
    };
    let own = |s: &LoopSample| s.access.is_some_and(|access| access.by == reached.by);
    let sums = hot.samples.iter().filter(|s| own(s) && cycle.adds_up(s.waited)).count();
    sums as f64 >= MOST * reached.samples as f64
}

/// Where the branches of a loop lead to: those in it, jumps through tables, and calls through a pointer that reach
/// several functions.
fn ways(facts: &Facts<'_>, hot: &HotLoop) -> BTreeSet<FileAddr> {
    let machine = &facts.machine;
    let Some(cycle) = hot.cycle(facts) else { return BTreeSet::new() };
    let mut ways = cycle.ways();
    if !cycle.instructions().any(|i| i.kind == Kind::Call(None) && i.callee().is_none()) {
        return ways;
    }
    let mut called: BTreeMap<_, usize> = BTreeMap::new();
    for sample in hot.samples.iter().filter(|sample| sample.function != hot.function) {
        *called.entry(sample.function).or_default() += 1;
    }
    called.retain(|_, samples| *samples as f64 >= CALLEE * hot.samples.len() as f64);
    if called.len() > 1 {
        ways.extend(called.keys().map(|function| machine.code(*function).addr));
    }
    ways
}

/// The few instructions of a loop that a jump through a table needs: where it goes is known after them.
fn before_tables(facts: &Facts<'_>, hot: &HotLoop) -> BTreeSet<FileAddr> {
    let Some(cycle) = hot.cycle(facts) else { return BTreeSet::new() };
    let all: Vec<_> = cycle.instructions().collect();
    let jumps = all.iter().enumerate().filter(|(_, i)| i.kind == Kind::Jump(None));
    let needed = jumps.flat_map(|(at, _)| all[at.saturating_sub(BEFORE)..=at].iter());
    needed.map(|i| FileAddr(i.addr)).collect()
}

/// Whether a sample waited for one of the first instructions where a branch leads to: the CPU begins to fetch there.
pub(crate) fn comes_after(
    facts: &Facts<'_>,
    ways: &BTreeSet<FileAddr>,
    sample: &LoopSample,
) -> bool {
    let instructions = facts.machine.function(sample.function).instructions();
    let at = instructions.partition_point(|i| i.addr < sample.waited.0);
    let first = at.saturating_sub(AFTER);
    instructions[first..=at.min(instructions.len() - 1)]
        .iter()
        .any(|i| ways.contains(&FileAddr(i.addr)))
}

/// Where samples wait just behind a division: its result comes late, whichever way a branch around it went.
fn divided(facts: &Facts<'_>, hot: &HotLoop) -> BTreeSet<(FunctionId, FileAddr)> {
    let mut places: BTreeSet<_> = hot.samples.iter().map(|s| (s.function, s.waited)).collect();
    places.retain(|(function, waited)| {
        let instructions = facts.machine.function(*function).instructions();
        let end = instructions.partition_point(|i| i.addr <= waited.0);
        let mut near = instructions[end.saturating_sub(DIVIDED + 1)..end].iter();
        near.any(|i| facts.machine.division(*function, FileAddr(i.addr)).is_some())
    });
    places
}

/// Whether an access reaches more memory than the CPU's own caches hold, at random or in lines of which little is used.
fn is_far(facts: &Facts<'_>, reached: &Reached) -> bool {
    // Lines that are a page apart share few places of a cache.
    let in_few_sets = reached.spacing.is_some_and(|bytes| bytes as f64 >= PAGE as f64);
    let beyond = if in_few_sets { 1.0 } else { BEYOND };
    reached.footprint() > cache(facts, 2) * beyond
        && (!reached.in_order || reached.used <= FEW_BYTES)
}

/// Whether an access reaches more small pages than the CPU has entries for, at random, and little of each.
fn is_sparse(facts: &Facts<'_>, reached: &Reached) -> bool {
    let few_lines = reached.most_lines <= LINES_OF_PAGE * reached.pages_of_span
        && reached.most_lines * LINE as f64 <= cache(facts, 3) / 2.0;
    few_lines && !reached.in_order && reached.pages >= PAGES && has_small_pages(facts, reached)
}

fn has_small_pages(facts: &Facts<'_>, reached: &Reached) -> bool {
    let faulted: BTreeSet<u64> = facts.timeline.faults.iter().map(|f| f.addr.0 / PAGE).collect();
    let small = reached.sampled_pages.intersection(&faulted).count();
    small as f64 >= SMALL * reached.sampled_pages.len() as f64
}
