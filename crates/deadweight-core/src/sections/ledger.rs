//! Rows that add up to the wall time, exactly.
//!
//! This only names the sums and adds a note of a few words to each: `attribute` charges the time, and
//! `pool` combines several runs.

use crate::account::AccountId;
use crate::account::{Attribution, Detail, Entry, IDLE, NET_WORK};
use crate::facts::Facts;
use crate::inspect::Sum;
use crate::path::cpu_holder::CpuHolder;
use crate::timeline::kernel_stacks::{Interrupt, WaitsFor};
use crate::timeline::{Block, WokenBy};
use deadweight_report::account::UNRECORDED;
use deadweight_report::report::{Basis, Row};
use deadweight_report::stats::proportion::proportion;
use deadweight_report::wording::{bytes, count, percent, things, time};
use deadweight_trace::units::Ns;
use std::collections::BTreeMap;

/// Kinds of entries that one note lists.
const LISTED: usize = 3;
/// If at most one call in this many lies beside the path, a note counts all of its group; if at most one in this many is
/// not in the row, it says no other number.
const FEW: u64 = 20;
/// What comes before the holder of a CPU.
const HELD: &str = "held by ";

/// The rows of an attribution, largest first. They add up to its total exactly.
///
/// # Panics
/// If they do not: then the ledger is wrong, and no report is better than a wrong one.
pub(crate) fn rows(facts: &Facts<'_>, attribution: &Attribution) -> Vec<Row> {
    let total = attribution.total;
    let calls = all_calls(facts);
    let mut rows: Vec<Row> = AccountId::all()
        .filter_map(|account| {
            let ns = attribution.of(account);
            let sampled = interval(attribution, account);
            let (low, high) = sampled.unwrap_or((ns, ns));
            (ns > Ns::ZERO).then(|| Row {
                account: account.id().to_owned(),
                group: account.group().to_owned(),
                ns: ns.0,
                share: ns.share_of(total),
                basis: if sampled.is_some() { Basis::Sampled } else { Basis::Exact },
                low_ns: low.0,
                high_ns: high.0,
                note: note(facts, &calls, attribution, account),
                each_ns: Vec::new(),
            })
        })
        .collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.ns));
    assert_eq!(rows.iter().map(|r| r.ns).sum::<u64>(), total.0, "the ledger must close");
    rows
}

/// The 95 % interval of an account that is divided by samples: these are drawn from all of the program's
/// own time, whose total is exact. None without samples.
pub(crate) fn interval(attribution: &Attribution, account: AccountId) -> Option<(Ns, Ns)> {
    let whole: Ns = attribution.user_time().map(|e| e.ns).sum();
    let samples: u64 = attribution.user_time().map(Entry::sampled).sum();
    let ns: Ns = attribution.user_time().filter(|e| e.account == account).map(|e| e.ns).sum();
    let exact = attribution.of(account) - ns;
    let (low, high) = proportion(ns.share_of(whole), samples);
    (account.is_sampled() && samples > 0)
        .then(|| (exact + whole.part(low).min(ns), exact + whole.part(high).max(ns)))
}

/// Words that say no more than the names of their rows, unless others of their kind name the peer.
const REPEATS: &[&str] = &["input", "the disk", "a child", "space in its output"];

/// How often each call was made, by its name: in all rows, on the path or not. This is what strace -c -f counts.
type AllCalls = BTreeMap<&'static str, u64>;

fn all_calls(facts: &Facts<'_>) -> AllCalls {
    let mut all = AllCalls::new();
    for group in facts.call_groups.all.iter().filter(|g| facts.processes.get(g.process).own) {
        *all.entry(group.name).or_default() += group.calls;
    }
    all
}

/// The note of an account.
fn note(
    facts: &Facts<'_>,
    all: &AllCalls,
    attribution: &Attribution,
    account: AccountId,
) -> String {
    let mut kinds: BTreeMap<Kind, (Ns, u64)> = BTreeMap::new();
    for entry in attribution.in_account(account) {
        if let Some(kind) = kind(facts, entry) {
            let (ns, times) = kinds.entry(kind).or_default();
            *ns += entry.ns;
            *times += counted(facts, entry);
        }
    }
    let total = attribution.of(account);
    let mut kinds: Vec<(Ns, String)> =
        kinds.into_iter().map(|(kind, (ns, times))| (ns, kind.words(times, all))).collect();
    kinds.sort_by(|a, b| b.cmp(a));
    let calls = kinds.iter().filter(|(ns, _)| ns.share_of(total) >= 0.1).take(LISTED);
    let mut listed: Vec<String> = calls.map(|(_, words)| words.clone()).collect();
    if let Some(at) = listed.iter().position(|words| REPEATS.contains(&words.as_str())) {
        let detailed = |words: &String| *words != listed[at] && words.starts_with(&listed[at]);
        if !listed.iter().any(detailed) {
            listed.remove(at);
        }
    }
    let faults = Sum::of(attribution.in_account(account).filter(|e| e.detail == Detail::Faults));
    match (listed.is_empty(), faults.count) {
        (true, 0) => fixed_note(facts, account).to_owned(),
        _ if account == IDLE => {
            let from = listed.iter().find(|words| words.contains(" from "));
            let work = from.or(listed.first()).cloned();
            work.into_iter().chain(ticks(facts)).collect::<Vec<_>>().join(", ")
        }
        (_, n) if n > 0 && account.is_sampled() => {
            let part = format!("{} in {}", percent(faults.ns, total), things(n, "page fault"));
            [vec![part], listed].concat().join(", ")
        }
        (true, n) => things(n, fault(account)),
        (false, _) if account == AccountId::of_class("wait-cpu") => {
            format!("a CPU, {}", holders(listed))
        }
        (false, _) => listed.join(", "),
    }
}

/// How often a timer wakes an idle program, if that is what mostly does.
fn ticks(facts: &Facts<'_>) -> Option<String> {
    let waits = facts.path.waits(facts.timeline).filter(|(.., block)| facts.is_idle(*block));
    let (mut idle, mut lengths) = (Ns::ZERO, Vec::new());
    for (from, to, _, block) in waits {
        let block = &facts.timeline.blocks[block as usize];
        idle += to - from;
        if block.woken_by == WokenBy::Interrupt(Interrupt::Timer) {
            lengths.push(to - from);
        }
    }
    lengths.sort_unstable();
    let by_timer: Ns = lengths.iter().copied().sum();
    let typical = lengths.get(lengths.len() / 2).filter(|_| lengths.len() > 1)?;
    (by_timer.share_of(idle) > 0.5).then(|| format!("a timer wakes it every {}", time(*typical)))
}

/// `held by a, b, or free, but ...`: the tasks that had the CPU first.
fn holders(listed: Vec<String>) -> String {
    let (held, other): (Vec<_>, Vec<_>) =
        listed.into_iter().partition(|words| words.starts_with(HELD));
    let held: Vec<_> = held.iter().map(|words| words.trim_start_matches(HELD)).collect();
    let held = if held.is_empty() { String::new() } else { format!("{HELD}{}", held.join(", ")) };
    [vec![held], other]
        .concat()
        .into_iter()
        .filter(|words| !words.is_empty())
        .collect::<Vec<_>>()
        .join(", or ")
}

/// How many began in an entry. Where all calls but a few of a group lie on the path, it is all of them: a finding counts
/// these, and two numbers would seem to be of two things.
fn counted(facts: &Facts<'_>, entry: &Entry) -> u64 {
    let Detail::Calls(group) = entry.detail else { return entry.count };
    let all = facts.call_groups.get(group).calls.max(entry.count);
    if all - entry.count <= all / FEW { all } else { entry.count }
}

/// What a page fault of an account is: it distinguishes rows of the same group.
fn fault(account: AccountId) -> &'static str {
    match account.id() {
        "first-touch" => "first touch",
        _ => "page fault",
    }
}

fn fixed_note(facts: &Facts<'_>, account: AccountId) -> &'static str {
    match account.id() {
        "kernel-other" if !facts.trace.meta.records_wakers() => {
            "system calls that were not recorded"
        }
        "start-up" => "exec, linking and initialising",
        "exit" => "freeing memory",
        "observer" => "the cost of recording, calibrated",
        "unrecorded" if facts.trace.meta.has_only_samples() => "between samples",
        "unrecorded" if !facts.trace.meta.records_calls() => "what ran, or why it waited",
        "unrecorded" => "records were lost",
        "kernel-other" => "interrupts and switches",
        _ => "",
    }
}

/// The kind of an account's entries, for its note.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// Calls of this name, for so many bytes each where that is always the same.
    Calls(&'static str, Option<u64>),
    /// Anything else.
    Words(String),
}

impl Kind {
    fn words(self, times: u64, all: &AllCalls) -> String {
        let (name, each) = match self {
            Self::Calls(name, Some(each)) => (name, format!(", {} each", bytes(each))),
            Self::Calls(name, None) => (name, String::new()),
            Self::Words(words) => return words,
        };
        let all = all.get(name).copied().unwrap_or_default();
        let beside = all.saturating_sub(times) > all / FEW;
        // A few beside the path make no difference: the number is that of `strace -c -f` then.
        let times = if beside { times } else { times.max(all) };
        let all = if beside { format!(" ({} in all)", count(all)) } else { String::new() };
        format!("{name} ×{}{each}{all}", count(times))
    }
}

/// The kind of an entry; none if there is nothing to note.
fn kind(facts: &Facts<'_>, entry: &Entry) -> Option<Kind> {
    let words = match entry.detail {
        Detail::Calls(_) if entry.account == AccountId::of_class("start-up") => return None,
        Detail::Calls(group) => {
            let group = facts.call_groups.get(group);
            let same = |(low, high): &(u64, u64)| low == high && *high < 4096;
            let each = group.sizes.filter(same).map(|(low, _)| low);
            return Some(Kind::Calls(group.name, each));
        }
        Detail::Waits(kind, peer) => {
            let peer = peer.map(|p| facts.name(p));
            let asked = facts.path.subject.service.is_some();
            match (kind, peer) {
                (WaitsFor::SocketData | WaitsFor::Poll | WaitsFor::Tick, peer)
                    if asked && entry.account == AccountId::of_class("wait-input") =>
                {
                    peer.map_or("an answer".into(), |peer| format!("an answer of {peer}"))
                }
                (kind, peer) => waiting(kind, peer.as_deref(), entry.account),
            }
        }
        Detail::Held(CpuHolder::Own(task)) if facts.processes.of(task) == entry.process => {
            format!("{HELD}its other threads")
        }
        Detail::Held(CpuHolder::Own(task) | CpuHolder::Outside(task)) => {
            format!("{HELD}{}", facts.name(facts.processes.of(task)))
        }
        Detail::Held(CpuHolder::Nobody) if entry.account == AccountId::of_class("throttled") => {
            "denied by a quota".to_owned()
        }
        Detail::Held(CpuHolder::Nobody) if entry.account == AccountId::of_class("wait-cpu") => {
            match facts.trace.meta.records_wakers() {
                true => "free, but the kernel was late to use it".to_owned(),
                false => format!("{HELD}an unidentified task"),
            }
        }
        Detail::Held(CpuHolder::Nobody | CpuHolder::Recorder) | Detail::Faults | Detail::Plain => {
            return None;
        }
    };
    Some(Kind::Words(words))
}

/// What happened in an entry, in words; nothing for the program's own code.
pub(crate) fn event(facts: &Facts<'_>, entry: &Entry) -> String {
    match (entry.detail, kind(facts, entry)) {
        (Detail::Calls(group), _) => facts.call_groups.get(group).name.to_owned(),
        (Detail::Faults, _) => fault(entry.account).to_owned(),
        (_, Some(Kind::Words(words))) => words,
        _ => fixed_note(facts, entry.account).to_owned(),
    }
}

/// What a wait was for, in words.
pub(crate) fn waits_for(facts: &Facts<'_>, block: &Block) -> String {
    let peer = facts.peer(block).map(|peer| facts.name(peer));
    waiting(block.purpose(), peer.as_deref(), NET_WORK)
}

/// What was waited for, as text.
fn waiting(kind: WaitsFor, peer: Option<&str>, account: AccountId) -> String {
    let sleeping = account == AccountId::of_class("wait-sleep");
    match (kind, peer) {
        (WaitsFor::Sleep, _) if account == IDLE => "asleep".into(),
        (_, Some(peer)) if account == IDLE => format!("waiting for work from {peer}"),
        _ if account == IDLE => "waiting for work".into(),
        _ if sleeping => "asleep until a timer expired".into(),
        (WaitsFor::PipeData | WaitsFor::SocketData | WaitsFor::Poll, Some(peer)) => {
            format!("input from {peer}")
        }
        (WaitsFor::PipeData | WaitsFor::SocketData | WaitsFor::Poll, None) => "input".into(),
        (WaitsFor::PipeRoom | WaitsFor::SocketRoom, Some(peer)) => {
            format!("space in its output, for {peer}")
        }
        (WaitsFor::PipeRoom | WaitsFor::SocketRoom, None) => "space in its output".into(),
        (WaitsFor::Terminal, _) => "the terminal".into(),
        (WaitsFor::Futex, Some(peer)) => format!("a lock or condition, until {peer} woke it"),
        (WaitsFor::Futex, None) => "a lock or condition".into(),
        (WaitsFor::Tick, _) if account == AccountId::of_class("wait-lock") => {
            "the turn of another thread of the interpreter".into()
        }
        (WaitsFor::Sleep | WaitsFor::Tick, _) => "asleep".into(),
        (WaitsFor::Turn, _) => "its turn, with a token of a pipe".into(),
        (WaitsFor::Child | WaitsFor::Vfork, _) => "a child".into(),
        (WaitsFor::Disk, _) => "the disk".into(),
        (WaitsFor::Signal, _) => "stopped, or waiting for a signal".into(),
        (WaitsFor::KernelLock, _) => "a lock in the kernel".into(),
        (WaitsFor::Recording, _) => "recording".into(),
        (WaitsFor::Threads, _) => "threads to end".into(),
        (WaitsFor::Other, _) if account == UNRECORDED => "why it waited".into(),
        (WaitsFor::Other, _) => "unknown, in the kernel".into(),
    }
}

#[cfg(test)]
mod tests {
    use crate::cost::tests::{repeat, rows};

    /// The row of a tool's system calls: it made so many before main and 100 after, and a child that
    /// nobody waited for so many.
    fn calls(before: u64, of_child: u64) -> String {
        let open = |at: u64| format!("{at} syscall readlink 4096 0\n{} back -22\n", at + 60);
        let (first, last) = (repeat(before, 100, 100, open), repeat(100, 20_000, 100, open));
        let beside = repeat(of_child, 22_000, 100, open);
        let text = format!(
            "cpus 2\ntask 1 tool\n0 cpu0 on\n10 exec /bin/tool\n{first}19000 main\n19500 fork 2\n{last}40000 exit\n\
             40000 off dead\ntask 2 tool\n19900 cpu1 on\n{beside}30000 exit\n30000 off dead"
        );
        rows(&text, 9).lines().find(|row| row.starts_with("system-calls")).unwrap().to_owned()
    }

    #[test]
    fn a_note_counts_all_calls_of_a_name_in_all_rows_and_processes() {
        assert_eq!(calls(40, 50), "system-calls 6000 readlink ×100 (190 in all)");
        assert_eq!(calls(0, 50), "system-calls 6000 readlink ×100 (150 in all)");
        assert_eq!(calls(40, 0), "system-calls 6000 readlink ×100 (140 in all)");
    }

    #[test]
    fn a_few_calls_in_another_row_are_counted_with_the_others() {
        assert_eq!(calls(3, 0), "system-calls 6000 readlink ×103");
    }
}
