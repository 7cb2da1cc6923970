//! False sharing.
//!
//! # What it is
//! Two threads write to different variables that share a cache line. A line can be changed by one CPU at a time: it
//! moves to and fro at each write, 50 to 250 ns away, though no data is shared.
//!
//! # How deadweight knows
//! The registers of samples give the addresses that threads wait for. One line is touched by several threads, at
//! different bytes, at least one of them writes, and much of their time is spent there. Where registers count the turns of the
//! loop, a turn takes longer than its instructions need. The saving is an estimate from that share, and from what a turn takes
//! beyond its need. After a run on several CPUs, two of them write to one line, and to two: where that takes hardly longer, the
//! saving may be none.
//!
//! # What it is mistaken for
//! Data that is really shared: the same bytes, such as locks and atomic counters. Lines that are only read. Threads that run
//! one after the other, or on CPUs of one core, which share their caches.
//!
//! # What to do
//! Give each thread's data lines of its own: align and pad to 128 bytes (two lines are fetched as a pair), or better count in a local
//! variable and store it once at the end.
//!
//! # Seen in
//! Two tallies of 32 bytes in one slice: 75 % of the time.
//! In `tests/programs`: `neighbours.go`.

use super::{AccountId, Claim, Class, Inspection};
use crate::facts::Facts;
use crate::facts::call_site::CallSite;
use crate::facts::hot_loops::memory::LINE;
use crate::facts::hot_loops::speed::Speed;
use crate::facts::hot_loops::{HotLoop, LoopSample, is_of_loops, with_access};
use crate::facts::processes::ProcessId;
use crate::inspect::shares::sampled_sites;
use crate::inspect::slow_loops::Waited;
use crate::inspect::{Draft, processes_in};
use deadweight_report::report::How;
use deadweight_report::wording::{percent, things, time};
use deadweight_trace::ids::{StackId, TaskId};
use deadweight_trace::units::Ns;
use std::collections::{BTreeMap, BTreeSet};

pub(super) const CLASS: Class = Class {
    id: "false-sharing",
    source: include_str!("false_sharing.rs"),
    // The time is the threads' work; its row is that of the work.
    claim: Claim::Slices(|_, _| false),
    inspect,
};

/// Below this share of the wall time it does not matter.
const LARGE: f64 = 0.08;
/// The threads spend this part of their samples at such lines.
const MUCH: f64 = 0.06;
/// Fewer pairs of samples of two threads at a line are chance.
const PAIRS: usize = 8;
/// Samples of two threads are a pair if they are no further apart than this many periods: work may move from thread to
/// thread.
const APART: f64 = 0.6;
/// So many of the pairs are at different bytes: of words that are really shared, some pairs are at the same.
const DIFFERENT: f64 = 0.9;
/// So many of the samples at the line are at writes: mostly the read of a sum waits, not its write.
const WRITTEN: f64 = 0.05;
/// What comes after a write waits too, once the CPU's queue of writes is full: this part of the rest counts (typical,
/// most), and no larger part than this many times that of the samples at the line.
const REST: (f64, f64) = (0.5, 0.8);
const AFTER: f64 = 3.0;
/// The accesses take this part of the time in lines of their own, too; and atomic operations that part. Two pairs of
/// programs with 64 to 71 % and 95 % of their samples there saved 77 %; one with 95 % at atomic operations, 62 %.
const NEEDED: (f64, f64) = (0.2, 0.35);
/// The least part of the time at the line that is saved ...
const LEAST: f64 = 0.6;
/// ... and in a loop whose turns are counted, what they take beyond this many times the time that they need with a line of
/// their own: a number in memory that each turn adds to waits for itself there, too. One pair with 90 % of its samples at such
/// lines, whose turns took 1.5 times what they need, saved 22 to 34 %.
const ALONE: f64 = 1.25;
/// An operand of unknown size.
const WORD: u32 = 8;
/// A turn of a loop takes so many times as long as its instructions need to begin, if a line is fetched from another CPU. What
/// they wait for among themselves does not count: some CPUs keep in registers what is written and read again. Counters in one
/// line, on a machine where lines of their own saved 5 %: 1.9.
const SLOW: f64 = 2.0;
/// Where two CPUs that write to one line take less than so many times as long as in two, in thousandths, the processor hides
/// the cost of simple writes. Such a machine (0.8 to 1.6 times): two counters cost nothing, four of each thread 36 to 66 %. On
/// another one two counters cost 84 %.
const HIDDEN: u64 = 2_000;
/// From here on a machine surely does not hide all of it (1.8 to 3.0 times on one where four counters of each thread cost 59 %):
/// then turns are compared with the CPU's own cycles. At 3.7 GHz they took 2.2 to 3.1 times as long as needed, and as long as
/// needed with lines of their own; at the 2.5 GHz that are assumed elsewhere, 1.5 to 2.1.
const NOT_HIDDEN: u64 = 1_700;

/// An access to a line.
#[derive(Clone, Copy)]
struct Use {
    at: Ns,
    task: TaskId,
    /// A bit for each byte.
    bytes: u64,
    writes: bool,
}

fn inspect(found: &Inspection<'_, '_>) -> Vec<Draft> {
    let several = |process: &ProcessId| found.facts.processes.get(*process).tasks.len() > 1;
    let processes = processes_in(found.wall.entries.iter()).into_iter().filter(several);
    processes.filter_map(|process| draft(found, process)).collect()
}

/// The accesses to each line, in order of time.
fn uses<'s>(samples: impl Iterator<Item = &'s LoopSample>) -> BTreeMap<u64, Vec<Use>> {
    let mut lines: BTreeMap<u64, Vec<Use>> = BTreeMap::new();
    for sample in samples {
        let Some(accessed) = sample.access else { continue };
        let memory = accessed.access.memory;
        let size = if memory.size == 0 { WORD } else { memory.size };
        let in_line = (accessed.address % LINE..LINE).take(size as usize);
        let bytes = in_line.fold(0, |bytes, byte| bytes | 1 << byte);
        let (at, task, writes) = (sample.at, sample.task, memory.written);
        let accesses = lines.entry(accessed.address / LINE).or_default();
        accesses.push(Use { at, task, bytes, writes });
    }
    lines.values_mut().for_each(|accesses| accesses.sort_by_key(|access| access.at));
    lines
}

/// Whether several threads use different bytes of a line at the same time, and one of them writes.
fn is_falsely_shared(accesses: &[Use], period: u64) -> bool {
    let near = |pair: &&[Use]| {
        let apart = pair[1].at - pair[0].at;
        pair[0].task != pair[1].task && (apart.0 as f64) <= APART * period as f64
    };
    let pairs: Vec<&[Use]> = accesses.windows(2).filter(near).collect();
    let different = pairs.iter().filter(|pair| pair[0].bytes & pair[1].bytes == 0).count() as f64;
    let written = accesses.iter().filter(|access| access.writes).count() as f64;
    let all = pairs.len() as f64;
    pairs.len() >= PAIRS
        && different >= DIFFERENT * all
        && written >= WRITTEN * accesses.len() as f64
}

/// Whether samples of an account can wait for a shared line: also atomic operations on words of its own.
fn counts(account: AccountId) -> bool {
    is_of_loops(account) || account.id() == "atomics"
}

/// The stacks of samples in loops whose turns take no longer than they need: their lines do not move.
fn quick_stacks(facts: &Facts<'_>, process: ProcessId) -> BTreeSet<StackId> {
    let own_cycles = facts.trace.meta.shared_line >= NOT_HIDDEN;
    let begun = |speed: Speed| if own_cycles { speed.begun_here() } else { speed.begun };
    let is_quick = |hot: &&HotLoop| hot.speed.is_some_and(|s| s.turn < SLOW * begun(s));
    let quick = facts.hot_loops(process).iter().filter(is_quick);
    quick.flat_map(|hot| hot.samples.iter().map(|sample| sample.stack)).collect()
}

/// The samples of a process with their addresses, and the lines that are falsely shared.
fn shared(facts: &Facts<'_>, process: ProcessId) -> (Vec<LoopSample>, BTreeMap<u64, Vec<Use>>) {
    let samples = with_access(facts, process);
    let quick = quick_stacks(facts, process);
    let mut lines = uses(samples.iter().filter(|sample| !quick.contains(&sample.stack)));
    let period = facts.trace.meta.sample_period;
    lines.retain(|_, accesses| is_falsely_shared(accesses, period));
    (samples, lines)
}

/// The least part of the time of samples at shared lines that is saved, by what their loops need.
fn least_saved(facts: &Facts<'_>, process: ProcessId, at: &[&LoopSample]) -> f64 {
    let mut known: BTreeMap<StackId, f64> = BTreeMap::new();
    for hot in facts.hot_loops(process) {
        let Some(speed) = hot.speed else { continue };
        let beyond = (1.0 - ALONE / speed.ratio()).clamp(0.0, LEAST);
        known.extend(hot.samples.iter().map(|sample| (sample.stack, beyond)));
    }
    let of = |sample: &&LoopSample| known.get(&sample.stack).copied().unwrap_or(LEAST);
    at.iter().map(of).sum::<f64>() / at.len().max(1) as f64
}

fn is_at(sample: &LoopSample, lines: &BTreeMap<u64, Vec<Use>>) -> bool {
    sample.access.is_some_and(|accessed| lines.contains_key(&(accessed.address / LINE)))
}

/// The part of some samples of a process in 0..=1 that are at lines that are falsely shared.
pub(crate) fn part_of(facts: &Facts<'_>, process: ProcessId, samples: &[LoopSample]) -> f64 {
    let (_, lines) = shared(facts, process);
    let at = samples.iter().filter(|sample| is_at(sample, &lines)).count();
    at as f64 / samples.len().max(1) as f64
}

/// Whether most samples of an account wait for lines that are falsely shared: that explains their time.
pub(super) fn explains(facts: &Facts<'_>, process: ProcessId, account: AccountId) -> bool {
    let (samples, lines) = shared(facts, process);
    let mine = |s: &&LoopSample| facts.account_of_sample(CallSite::Stack(s.stack)) == account;
    let (at, all) = samples
        .iter()
        .filter(mine)
        .fold((0, 0), |(at, all), sample| (at + usize::from(is_at(sample, &lines)), all + 1));
    at * 2 > all
}

fn draft(found: &Inspection<'_, '_>, process: ProcessId) -> Option<Draft> {
    let facts = found.facts;
    let net = found.wall.net();
    let (samples, shared) = shared(facts, process);
    let threads: BTreeSet<TaskId> = shared.values().flatten().map(|access| access.task).collect();
    let of_threads = || samples.iter().filter(|sample| threads.contains(&sample.task));
    let there = |sample: &LoopSample| is_at(sample, &shared);
    let (at, all) = (of_threads().filter(|s| there(s)).count(), of_threads().count());
    if at == 0 || (at as f64) < MUCH * all as f64 {
        return None;
    }
    let waited = Waited::of(found, process, of_threads(), counts, there)?;
    let after = AFTER * waited.ns.share_of(waited.of_loops);
    let slowed = |rest: f64| waited.ns + (waited.of_loops - waited.ns).part(rest.min(after));
    let is_atomic =
        |s: &&LoopSample| facts.account_of_sample(CallSite::Stack(s.stack)).id() == "atomics";
    let atomic = of_threads().filter(|s| there(s)).filter(is_atomic).count() * 2 > at;
    let mut saving = slowed(REST.0).part(1.0 - if atomic { NEEDED.1 } else { NEEDED.0 });
    let most = slowed(REST.1).part(1.0 - NEEDED.0 / 2.0);
    let line = facts.trace.meta.shared_line;
    let is_hidden = line > 0 && line < HIDDEN;
    let beyond = if is_hidden {
        0.0
    } else {
        least_saved(facts, process, &of_threads().filter(|s| there(s)).collect::<Vec<_>>())
    };
    let least = waited.ns.part(beyond).min(saving);
    if beyond < LEAST {
        saving = saving.min((least + most).part(0.5));
    }
    if saving.share_of(net) < LARGE {
        return None;
    }
    Some(Draft {
        class: CLASS.id,
        moves: false,
        process,
        title: "threads write to one cache line".into(),
        text: format!(
            "{} of {} use different bytes of {}, and write: they waited there for {} of {} ({}).",
            things(threads.len() as u64, "thread"),
            facts.name(process),
            things(shared.len() as u64, "cache line"),
            time(waited.ns),
            time(net),
            percent(waited.ns, net),
        ),
        amount: waited.ns,
        saving,
        range: (least, most),
        how: How::Estimate,
        sites: sampled_sites(facts.symbols(), &waited.places),
        evidence: evidence((at, all), is_hidden.then_some(line)),
        remedy: "Let each thread count in a local variable and store it once at the end. Where that is impossible, give each \
                 thread's data cache lines of its own, padded and aligned to 128 bytes; atomic operations keep the cost \
                 that they have on one thread."
            .into(),
    })
}

/// How it is known; with what a shared line costs on this machine, in thousandths, if that is little.
fn evidence((at, all): (usize, usize), hidden: Option<u64>) -> Vec<String> {
    let samples = format!(
        "{at} of these threads' {all} samples wait for such a line; their registers give the address"
    );
    let cost = hidden.map(|line| {
        format!(
            "two CPUs of this machine that added to numbers in one line took {:.1} times as long as in two lines, \
             after the run: its processors hide such a cost, or a part",
            line as f64 / 1000.0
        )
    });
    std::iter::once(samples).chain(cost).collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::{found, sampled};
    use expect_test::expect;
    use std::fmt::Write;

    // 0: add qword ptr [rdi], 1; 4: dec rsi; 7: jne 0; 9: ret
    const COUNTS: &str = "code count @0x1000 48830701 48ffce 75f7 c3";
    // 0: mov rax, [rdi]; 3: dec rsi; ...
    const READS: &str = "code count @0x1000 488b07 48ffce 75f8 c3";

    /// Two threads on two CPUs, of which each waits for an address of its own.
    fn two(code: &str, place: &str, addresses: impl Fn(u64) -> [u64; 2]) -> String {
        turning((code, 1), place, addresses)
    }

    /// The same with so many turns from one sample to the next.
    fn turning(
        (code, turns): (&str, u64),
        place: &str,
        addresses: impl Fn(u64) -> [u64; 2],
    ) -> String {
        let mut threads = [String::new(), String::new()];
        for i in 0..60 {
            for (thread, address) in addresses(i).into_iter().enumerate() {
                let stack = format!("count (s.c:5) @{place} <- start_thread @0x2000");
                let at = 5_000 + i * 10_000 + thread as u64 * 50;
                threads[thread] +=
                    &sampled(at, &(stack, vec![(7, address), (6, 9_000_000 - i * turns)]));
            }
        }
        let [one, two] = threads;
        let mut text =
            format!("cpus 2\nimage app path /bin/app language C\nsample-period 10000\n{code}\n");
        writeln!(text, "task 1 app\n0 cpu0 on\n0 exec /bin/app\n0 main\n100 fork 2 thread")
            .unwrap();
        writeln!(text, "{one}600_000 exit\n600_000 off dead").unwrap();
        write!(text, "task 2 app\n200 cpu1 on\n{two}599_000 exit\n599_000 off dead").unwrap();
        text
    }

    const LINE: u64 = 0x7f00_0000_0040;

    #[test]
    fn two_counters_in_one_line_are_found() {
        let said = found(&two(COUNTS, "0x1004", |_| [LINE, LINE + 8]));
        assert!(said.starts_with("false-sharing") && said.contains("@ count:5"), "{said}");
    }

    #[test]
    fn counters_in_their_own_lines_and_one_shared_counter_are_refused() {
        assert_eq!(found(&two(COUNTS, "0x1004", |_| [LINE, LINE + 64])), "");
        assert_eq!(found(&two(COUNTS, "0x1004", |_| [LINE, LINE])), "");
        // Eight words that both count in.
        let both = |i: u64| [LINE + i * 5 % 8 * 8, LINE + i * 3 % 8 * 8];
        assert_eq!(found(&two(COUNTS, "0x1004", both)), "");
    }

    #[test]
    fn two_counters_in_one_line_whose_loop_is_not_slow_are_refused() {
        let after = |turns| found(&turning((COUNTS, turns), "0x1004", |_| [LINE, LINE + 8]));
        // A turn takes 2 ns; its three instructions begin in 0.4.
        assert!(after(5_000).starts_with("false-sharing"), "{}", after(5_000));
        // 0.7 ns: as fast as in lines of their own.
        assert_eq!(after(14_000), "");
    }

    #[test]
    fn own_cycles_count_where_a_shared_line_surely_costs_something() {
        let said = |line| {
            let text = turning((COUNTS, 14_000), "0x1004", |_| [LINE, LINE + 8]);
            found(&text.replacen("cpus 2", &format!("cpus 2\nshared-line {line}\ncycle 271"), 1))
        };
        assert!(said(1_900).starts_with("false-sharing"), "{}", said(1_900));
        assert_eq!(said(1_600), "");
    }

    #[test]
    fn counters_that_wait_for_themselves_save_what_a_turn_takes_beyond_that() {
        let said = |turns| found(&turning((COUNTS, turns), "0x1004", |_| [LINE, LINE + 8]));
        // A turn takes 20 ns, and 3 to 5: its addition to memory takes 2 to 3 of them in a line of its own.
        expect![[r#"
            false-sharing 79 % (54..91) @ count:5: 2 threads of app use different bytes of 1 cache line, and write: they waited there for 595 µs of 600 µs (99 %).
            false-sharing 57 % (22..91) @ count:5: 2 threads of app use different bytes of 1 cache line, and write: they waited there for 595 µs of 600 µs (99 %).
        "#]].assert_eq(&format!("{}{}", said(500), said(3_000)));
    }

    #[test]
    fn nothing_is_certain_where_a_shared_line_costs_nothing() {
        let said = |line| {
            let two = two(COUNTS, "0x1004", |_| [LINE, LINE + 8]);
            found(&two.replacen("cpus 2", &format!("cpus 2\nshared-line {line}"), 1))
        };
        expect![[r#"
            false-sharing 45 % (0..91) @ count:5: 2 threads of app use different bytes of 1 cache line, and write: they waited there for 595 µs of 600 µs (99 %).
            false-sharing 79 % (54..91) @ count:5: 2 threads of app use different bytes of 1 cache line, and write: they waited there for 595 µs of 600 µs (99 %).
        "#]]
        .assert_eq(&format!("{}{}", said(900), said(6_000)));
    }

    #[test]
    fn a_line_that_is_only_read_is_refused() {
        assert_eq!(found(&two(READS, "0x1003", |_| [LINE, LINE + 8])), "");
    }
}
