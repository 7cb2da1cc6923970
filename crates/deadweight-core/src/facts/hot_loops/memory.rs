//! Which memory a loop waits for: how much of it, in which order, and how many bytes of each cache line.
//!
//! Each sample has the address of one access. Addresses of the samples of one instruction are a random choice of those
//! that it used: how many of them are alike shows how many there are. Not for whether that is slow.

use super::{Accessed, HotLoop, LoopSample, speed, trips};
use crate::facts::Facts;
use deadweight_code::instruction::{Kind, Memory};
use deadweight_code::machine_code::FunctionId;
use deadweight_code::{Pattern, Step};
use deadweight_trace::units::{FileAddr, Ns};
use std::collections::{BTreeMap, BTreeSet};

/// Bytes of a cache line, and of a small page.
pub(crate) const LINE: u64 = 64;
pub(crate) const PAGE: u64 = 4096;
/// The caches of a CPU by level, in bytes, where they are not known.
const CACHES: [u64; 3] = [32 << 10, 1 << 20, 32 << 20];
/// A loop whose accesses reach from one end to the other of this part of what several reach is a copy of them.
const SAME: f64 = 0.9;
/// Accesses with fewer samples are left out.
const SAMPLES: usize = 12;
/// Addresses are in order if so many of their steps from turn to turn go the same way ...
const SAME_WAY: f64 = 0.85;
/// ... or if their steps in time have a direction of this length, and this much more than chance gives.
const STEADY: f64 = 0.5;
const ABOVE_CHANCE: f64 = 0.3;
/// A link is an index of so many bytes at most: a pointer could be made smaller.
const INDEX: u64 = 4;
/// An operand of unknown size.
const WORD: u64 = 8;
/// Accesses count together from this part of the loop's samples on.
const PART: f64 = 0.1;
/// The lines of one run of a loop are still in the first cache in the next run if they take this part of it.
const KEPT: f64 = 0.25;

/// A sample of a loop by its number among them, with its access.
type Sampled<'s> = (usize, &'s LoopSample, Accessed);

/// The memory that one instruction of a loop waits for.
#[derive(Clone, Debug)]
pub(crate) struct Reached {
    /// The instruction.
    pub(crate) by: (FunctionId, FileAddr),
    /// How many samples waited for it.
    pub(crate) samples: usize,
    /// Whether one address follows from the one before, so that a CPU can fetch ahead.
    pub(crate) in_order: bool,
    /// Whether one address is what the access before loaded: so the loop waits for each, whatever else it does.
    pub(crate) chased: bool,
    /// Whether what is loaded is the next index and nothing else, from an array of such indexes: there is nothing to pack.
    pub(crate) only_links: bool,
    /// Whether each turn has a pointer of its own, from an array that the loop goes through in order: rows of a matrix, or
    /// objects. In which order they lie is not known.
    pub(crate) by_pointers: bool,
    /// How many distinct lines it uses, at least.
    pub(crate) lines: f64,
    /// Whether each sample shows another line: how many there are is then not known at all.
    each_other: bool,
    /// How many at most: as many as fit between the lowest and the highest address.
    pub(crate) most_lines: f64,
    /// The number of small pages between these.
    pub(crate) pages_of_span: f64,
    /// How many distinct small pages, at least.
    pub(crate) pages: f64,
    /// The bytes that the loop uses of each line that it fetches; 64 if the stride is not known.
    pub(crate) used: f64,
    /// How far the access of the next turn is, in bytes, where that is the same each time.
    stride: Option<i64>,
    /// The same without the sign, of the next line that a turn uses.
    pub(crate) spacing: Option<u64>,
    /// Whether that is only the median: each run of the loop has a stride of its own, as in a sieve.
    pub(crate) strides_vary: bool,
    /// The sampled pages.
    pub(crate) sampled_pages: BTreeSet<u64>,
}

impl Reached {
    /// Whether it waits for one load after the other, and how much memory these reach is not known at all.
    pub(crate) fn is_chase_of_unknown_reach(&self) -> bool {
        self.chased && !self.in_order && self.each_other
    }

    /// The bytes of all lines.
    pub(crate) fn footprint(&self) -> f64 {
        self.lines * LINE as f64
    }
}

/// The size of a CPU's cache of a level, or a usual one.
pub(crate) fn cache(facts: &Facts<'_>, level: usize) -> f64 {
    match facts.trace.meta.machine.caches[level - 1] {
        0 => CACHES[level - 1] as f64,
        bytes => bytes as f64,
    }
}

/// The memory that a loop waits for, by instruction, most samples first.
pub(super) fn reached(facts: &Facts<'_>, hot: &HotLoop) -> Vec<Reached> {
    let positions = speed::positions(facts, hot);
    let mut by: BTreeMap<(FunctionId, FileAddr), Vec<Sampled<'_>>> = BTreeMap::new();
    for (at, sample) in hot.samples.iter().enumerate() {
        if let Some(access) = sample.access {
            by.entry(access.by).or_default().push((at, sample, access));
        }
    }
    let enough = by.into_iter().filter(|(_, samples)| samples.len() >= SAMPLES);
    let mut found: Vec<Reached> = enough
        .filter_map(|(by, samples)| {
            let turns = positions.as_ref().map(|p| samples.iter().map(|s| p[s.0]).collect());
            describe(facts, hot, by, &samples, turns)
        })
        .collect();
    found.sort_by_key(|reached| std::cmp::Reverse(reached.samples));
    join(hot, &mut found);
    pool(hot, &mut found);
    found
}

/// Accesses with one stride walk over the same memory, as those of an unrolled loop do: together they show more of it.
fn join(hot: &HotLoop, found: &mut [Reached]) {
    let mut lines: BTreeMap<i64, f64> = BTreeMap::new();
    for stride in found.iter().filter_map(|reached| reached.stride) {
        let alike = |by| found.iter().any(|r| r.by == by && r.stride == Some(stride));
        let addresses = hot.samples.iter().filter_map(|s| s.access.filter(|a| alike(a.by)));
        lines.insert(stride, distinct(addresses.map(|access| access.address / LINE)));
    }
    for reached in found {
        let together = reached.stride.and_then(|stride| lines.get(&stride));
        reached.lines = reached.lines.max(together.copied().unwrap_or(0.0));
    }
}

/// Accesses in no order of which no sample shows a line twice: together they show more of what the loop reaches, as the
/// buckets of a table and its nodes do.
fn pool(hot: &HotLoop, found: &mut [Reached]) {
    let many = PART * hot.samples.len() as f64;
    let is_wide = |r: &&Reached| !r.in_order && r.each_other && r.samples as f64 >= many;
    let wide: BTreeSet<_> = found.iter().filter(is_wide).map(|reached| reached.by).collect();
    let addresses = hot.samples.iter().filter_map(|s| s.access.filter(|a| wide.contains(&a.by)));
    let lines = distinct(addresses.map(|access| access.address / LINE));
    for reached in found.iter_mut().filter(|reached| wide.contains(&reached.by)) {
        reached.lines = reached.lines.max(lines);
    }
}

/// Copies of one loop in a function, as an unrolled loop around it has them: their chains lead through the same stretch of
/// memory, and together they show more of it.
pub(super) fn pool_copies(loops: &mut [HotLoop]) {
    let functions: BTreeSet<FunctionId> = loops.iter().map(|hot| hot.function).collect();
    for function in functions {
        let chains = loops.iter().enumerate().filter(|(_, hot)| hot.function == function);
        let chains = chains.map(|(at, hot)| (at, chased_lines(hot)));
        let chains: Vec<(usize, BTreeSet<u64>)> = chains.filter(|(_, l)| !l.is_empty()).collect();
        let all: BTreeSet<u64> = chains.iter().flat_map(|(_, lines)| lines).copied().collect();
        let reaches_all =
            |(_, lines): &(usize, BTreeSet<u64>)| span(lines) as f64 >= SAME * span(&all) as f64;
        let copies: Vec<_> = chains.into_iter().filter(reaches_all).collect();
        if copies.len() < 2 {
            continue;
        }
        let lines = distinct(copies.iter().flat_map(|(_, lines)| lines.iter().copied()));
        for (at, _) in copies {
            let chased = loops[at].reached.iter_mut().filter(|r| r.is_chase_of_unknown_reach());
            chased.for_each(|reached| reached.lines = reached.lines.max(lines));
        }
    }
}

/// The lines of a loop's accesses that wait for one another.
fn chased_lines(hot: &HotLoop) -> BTreeSet<u64> {
    let chased = |by| hot.reached.iter().any(|r| r.by == by && r.is_chase_of_unknown_reach());
    let accesses = hot.samples.iter().filter_map(|s| s.access.filter(|access| chased(access.by)));
    accesses.map(|access| access.address / LINE).collect()
}

/// From the first of these to the last.
fn span(lines: &BTreeSet<u64>) -> u64 {
    lines.last().zip(lines.first()).map_or(0, |(last, first)| last - first)
}

fn describe(
    facts: &Facts<'_>,
    hot: &HotLoop,
    by: (FunctionId, FileAddr),
    samples: &[Sampled<'_>],
    turns: Option<Vec<f64>>,
) -> Option<Reached> {
    let access = samples.first()?.2.access;
    let addresses: Vec<u64> = samples.iter().map(|s| s.2.address).collect();
    let mut strides = Vec::new();
    let stride = match access.pattern {
        Pattern::Fixed => return None,
        Pattern::Strided(step) => {
            strides = strides_of(samples, step);
            // The median.
            Some(*strides.get(strides.len() / 2)?)
        }
        Pattern::Chased | Pattern::Open => turns.and_then(|turns| in_turns(&turns, &addresses)),
    };
    let in_order = stride.is_some() || goes_round(samples, &addresses);
    let count = |unit: u64| distinct(addresses.iter().map(|address| address / unit));
    let (mut lines, mut pages) = (count(LINE), count(PAGE));
    let (low, high) = (addresses.iter().min()?, addresses.iter().max()?);
    let span = (high - low) as f64;
    // All addresses are so many bytes apart, or a multiple.
    let apart = addresses.iter().fold(0, |apart, address| divisor(apart, address - low));
    if let Some(stride) = stride {
        lines = lines.max(span / (stride.unsigned_abs().max(LINE) as f64));
        pages = pages.max(span / (stride.unsigned_abs().max(PAGE) as f64));
    }
    let mut used = stride.map(|stride| used(facts, hot, &samples[0].2, stride));
    if let (Some(used), Some(turns)) = (&mut used, trips::trips(facts, hot))
        && turns * (used.lines * LINE) as f64 <= cache(facts, 1) * KEPT
    {
        used.of_each = used.of_each.max(in_lines(&addresses, access.memory));
    }
    // An unrolled loop uses several lines in each turn.
    let apart_each = |stride: i64| stride.unsigned_abs() / used.map_or(1, |u| u.lines.max(1));
    let chased = access.pattern == Pattern::Chased;
    Some(Reached {
        by,
        samples: samples.len(),
        in_order,
        chased,
        only_links: chased && apart <= INDEX && reads_only_links(facts, hot, by),
        by_pointers: access.pattern == Pattern::Open && has_pointers(facts, hot, by, access.memory),
        lines,
        each_other: addresses.iter().map(|a| a / LINE).collect::<BTreeSet<_>>().len()
            == addresses.len(),
        most_lines: span / apart.max(LINE) as f64 + 1.0,
        pages_of_span: span / PAGE as f64 + 1.0,
        pages,
        used: used.map_or(LINE as f64, |used| used.of_each),
        stride,
        spacing: stride.map(apart_each),
        strides_vary: vary(&strides),
        sampled_pages: addresses.iter().map(|address| address / PAGE).collect(),
    })
}

/// Whether all accesses of a loop that move are to one array of links.
fn reads_only_links(facts: &Facts<'_>, hot: &HotLoop, by: (FunctionId, FileAddr)) -> bool {
    let Some(cycle) = hot.cycle(facts).filter(|_| !hot.calls() && by.0 == hot.function) else {
        return false;
    };
    let code = facts.machine.function(hot.function);
    let of = |at: u64| code.access(FileAddr(at), Some(&cycle));
    let all = cycle.instructions().filter_map(|i| of(i.addr));
    let moving: Vec<_> = all.filter(|access| access.pattern != Pattern::Fixed).collect();
    let Some(link) = of(by.1.0).map(|access| access.memory) else { return false };
    let small = link.size > 0 && u64::from(link.size) <= INDEX;
    let key = |m: &Memory| (m.base, m.index, m.scale);
    let in_one_array = |m: &Memory| {
        let indexed = m.base == link.base && m.scale == link.scale;
        let constant = m.base.is_some_and(|base| cycle.is_constant(base));
        key(m) == key(&link) || m.index.is_some() && indexed && constant
    };
    let alike = |m: &Memory| m.offset == link.offset && m.size == link.size && in_one_array(m);
    small && moving.iter().all(|access| alike(&access.memory))
}

/// Whether the loop loads the base of an access from an array that it goes through in order.
fn has_pointers(
    facts: &Facts<'_>,
    hot: &HotLoop,
    by: (FunctionId, FileAddr),
    memory: Memory,
) -> bool {
    let (Some(cycle), Some(base)) = (hot.cycle(facts), memory.base) else { return false };
    let code = facts.machine.function(hot.function);
    let strided = |at: u64| {
        let access = code.access(FileAddr(at), Some(&cycle));
        access.is_some_and(|access| matches!(access.pattern, Pattern::Strided(_)))
    };
    let mut sets = cycle.instructions().filter(|i| i.writes.has(base));
    by.0 == hot.function && sets.any(|i| i.kind == Kind::Load && strided(i.addr))
}

/// The bytes of a line that an access uses at any sample: all of them where each run of a short loop moves on by less than
/// a line, as in a block of a matrix.
fn in_lines(addresses: &[u64], memory: Memory) -> f64 {
    let size = if memory.size == 0 { WORD } else { memory.size.into() };
    let bytes = addresses.iter().flat_map(|address| (0..size).map(move |n| (address + n) % LINE));
    bytes.collect::<BTreeSet<u64>>().len() as f64
}

/// The steps of an address in bytes, smallest first: one, or a register's values in the samples.
fn strides_of(samples: &[Sampled<'_>], step: Step) -> Vec<i64> {
    let (register, times) = match step {
        Step::By(by) => return vec![by],
        Step::Of(register, times) => (register, times),
    };
    let of = |sample: &LoopSample| {
        let value = sample.general.get(register.index())?.cast_signed();
        value.checked_mul(times)
    };
    let mut steps: Vec<i64> = samples.iter().filter_map(|s| of(s.1)).collect();
    steps.sort_unstable();
    steps
}

/// Whether the middle half of these numbers differs.
fn vary(sorted: &[i64]) -> bool {
    sorted.get(sorted.len() / 4) != sorted.get(sorted.len() * 3 / 4)
}

/// How many distinct values there are, if these are a random choice: Chao's lower bound, in the form without bias
/// (A. Chao, Scandinavian Journal of Statistics 11, 1984).
fn distinct(values: impl Iterator<Item = u64>) -> f64 {
    let mut seen: BTreeMap<u64, u32> = BTreeMap::new();
    for value in values {
        *seen.entry(value).or_default() += 1;
    }
    let times = |n: u32| seen.values().filter(|count| **count == n).count() as f64;
    let (once, twice) = (times(1), times(2));
    seen.len() as f64 + once * (once - 1.0) / (2.0 * (twice + 1.0))
}

/// The step per turn of addresses that move with a loop's counter; none if they do not.
fn in_turns(turns: &[f64], addresses: &[u64]) -> Option<i64> {
    let mut both: Vec<(f64, u64)> = turns.iter().copied().zip(addresses.iter().copied()).collect();
    both.sort_by(|a, b| a.0.total_cmp(&b.0));
    let steps = both.windows(2).filter(|pair| pair[1].0 - pair[0].0 >= 1.0);
    let steps: Vec<f64> = steps
        .map(|pair| {
            pair[1].1.wrapping_sub(pair[0].1).cast_signed() as f64 / (pair[1].0 - pair[0].0)
        })
        .filter(|step| *step != 0.0)
        .collect();
    #[expect(clippy::cast_possible_truncation, reason = "a difference of addresses")]
    steady(steps).map(|step| step.round() as i64).filter(|step| *step != 0)
}

/// Whether addresses go steadily through their range, again and again: from one sample to the next by the same part of
/// it, whatever the number of rounds in between. That is judged on a circle as long as the range: the mean of the steps'
/// directions is long. It is longer than the addresses themselves would make it if they came in random order.
fn goes_round(samples: &[Sampled<'_>], addresses: &[u64]) -> bool {
    let (Some(low), Some(high)) = (addresses.iter().min(), addresses.iter().max()) else {
        return false;
    };
    let turn = std::f64::consts::TAU / (high - low).max(1) as f64;
    let mut steps: Vec<(Ns, f64)> = Vec::new();
    for (pair, at) in samples.windows(2).zip(addresses.windows(2)) {
        let moved = at[1].wrapping_sub(at[0]).cast_signed() as f64;
        if pair[0].1.task == pair[1].1.task {
            steps.push((pair[1].1.at - pair[0].1.at, moved * turn));
        }
    }
    steps.sort_by_key(|step| step.0);
    let Some((usual, _)) = steps.get(steps.len() / 2).copied() else { return false };
    let near = |ns: Ns| ns.0 * 10 > usual.0 * 9 && ns.0 * 10 < usual.0 * 11;
    let steps: Vec<f64> = steps.iter().filter(|(ns, _)| near(*ns)).map(|step| step.1).collect();
    let places: Vec<f64> = addresses.iter().map(|at| (at - low) as f64 * turn).collect();
    steps.len() >= SAMPLES && mean(&steps) >= STEADY.max(mean(&places).powi(2) + ABOVE_CHANCE)
}

/// The length of the mean of unit vectors in these directions, in 0..=1.
fn mean(directions: &[f64]) -> f64 {
    let sum = |of: fn(f64) -> f64| directions.iter().map(|d| of(*d)).sum::<f64>();
    sum(f64::cos).hypot(sum(f64::sin)) / directions.len().max(1) as f64
}

/// The median of steps that go the same way.
fn steady(mut steps: Vec<f64>) -> Option<f64> {
    if steps.len() < SAMPLES / 2 {
        return None;
    }
    let up = steps.iter().filter(|step| **step > 0.0).count() as f64 / steps.len() as f64;
    steps.sort_by(f64::total_cmp);
    (up.max(1.0 - up) >= SAME_WAY).then(|| steps[steps.len() / 2])
}

fn divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { divisor(b, a % b) }
}

/// What a turn of a loop uses of the lines that it fetches.
#[derive(Copy, Clone, Debug)]
struct Used {
    /// The bytes of each line.
    of_each: f64,
    /// How many lines, if these are as far from each other as from those of the next turn; else 1.
    lines: u64,
}

/// What a loop uses of the lines that it fetches, if an access moves by `stride` from turn to turn.
fn used(facts: &Facts<'_>, hot: &HotLoop, access: &Accessed, stride: i64) -> Used {
    let machine = &facts.machine;
    let memory = access.access.memory;
    let own = machine.function(hot.function).accesses_like(&memory, hot.cycle(facts));
    let called = (access.by.0 != hot.function)
        .then(|| machine.function(access.by.0).accesses_like(&memory, None));
    let base = access.address.wrapping_sub(memory.offset.cast_unsigned());
    let stride = stride.unsigned_abs().max(1);
    let mut bytes = BTreeSet::new();
    for m in own.chain(called.into_iter().flatten()) {
        let start = base.wrapping_add_signed(m.offset);
        let size = if m.size == 0 { WORD } else { m.size.into() };
        bytes.extend((0..size).map(|n| start.wrapping_add(n)));
    }
    if stride < LINE {
        let covered: BTreeSet<u64> = bytes.iter().map(|byte| byte % stride).collect();
        let of_each = LINE as f64 * covered.len() as f64 / stride as f64;
        return Used { of_each, lines: 1 };
    }
    let lines: BTreeSet<u64> = bytes.iter().map(|byte| byte / LINE).collect();
    let count = lines.len().max(1) as u64;
    let even =
        lines.iter().zip(lines.iter().skip(1)).all(|(a, b)| (b - a) * LINE == stride / count);
    Used { of_each: bytes.len() as f64 / count as f64, lines: if even { count } else { 1 } }
}

#[cfg(test)]
mod tests {
    use crate::cost::tests::{found, looping, scattered};

    /// Two copies of the loop over a list, in turns; the second one's nodes lie so far behind.
    fn copies(samples: u64, apart: u64) -> String {
        let code = "code walk @0x1000 48034708 488b3f 4885ff 75f4 48034708 488b3f 4885ff 75f4 c3";
        looping(code, samples, |i| {
            let (at, place) = if i % 2 == 0 { (0x1004, 0) } else { (0x1010, apart) };
            let stack = format!("walk (s.c:5) @{at:#x} <- main (s.c:9) @0x2000");
            (stack, vec![(7, 0x7f00_0000_0000 + place + scattered(i, 1 << 20) * 64)])
        })
    }

    #[test]
    fn copies_of_a_loop_over_a_list_are_found_and_loops_over_two_small_lists_are_refused() {
        let said = found(&copies(240, 0));
        assert!(said.starts_with("cache-misses 85 % (18..100) @ walk:5: 2 loops of app"), "{said}");
        assert_eq!(found(&copies(240, 1 << 30)), "");
    }
}
