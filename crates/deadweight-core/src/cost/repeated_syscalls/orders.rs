//! Orders that a program gives to the kernel again and again, where a known other way needs none of them, or fewer. Not for
//! questions whose answer could be kept.

use super::CLASS;
use crate::account::{AccountId, Detail, Entry};
use crate::facts::Facts;
use crate::facts::call_groups::{CallGroup, READS, REMEMBERED, WRITES};
use crate::facts::call_site::{CallSite, sites};
use crate::facts::processes::ProcessId;
use crate::inspect::questions::{SAME, is_of_cpu_time};
use crate::inspect::syscalls::LibraryCode;
use crate::inspect::syscalls::entry_cost::{at_least, with_syscall_entry};
use crate::inspect::{Draft, Inspection, Sum};
use crate::timeline::descriptors::ObjectKind;
use deadweight_report::report::How;
use deadweight_report::wording::things;
use deadweight_trace::ids::StackId;
use deadweight_trace::units::Ns;
use std::collections::{BTreeMap, BTreeSet};

/// Fewer calls are no repetition.
const MANY: u64 = 1000;
/// Below this share of the wall time they are not worth reporting.
const LARGE: f64 = 0.05;
/// Below this share, readings of CPU time are a program's own measurement.
const MUCH: f64 = 0.15;
/// More random bytes than these are no longer a single number or identifier.
const FEW_BYTES: u64 = 64;

/// What is ordered.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// A context switch saves and restores the signal mask.
    SignalMask,
    /// The CPU time is read: no system call for other clocks.
    CpuTime,
    /// The protection of the same pages changes to and fro.
    Protection,
    /// The position in a file is set more often than it is read or written, or to where it already is.
    Seek,
    /// A few random bytes are fetched.
    Random,
}

const ALL: [Order; 5] =
    [Order::SignalMask, Order::CpuTime, Order::Protection, Order::Seek, Order::Random];

/// Which of these orders the calls of a group are.
pub(super) fn kind(facts: &Facts<'_>, group: &CallGroup) -> Option<Order> {
    if group.calls < MANY || group.starting || group.failed * 2 > group.calls {
        return None;
    }
    let asked = |is: &dyn Fn(&[u64; 4]) -> bool| {
        !group.questions.is_empty() && group.questions.iter().all(is)
    };
    let (order, holds) = match group.name {
        "rt_sigprocmask" => (Order::SignalMask, switches(facts, group)),
        "clock_gettime" => (Order::CpuTime, asked(&|args| is_of_cpu_time("clock_gettime", args))),
        "mprotect" => (Order::Protection, goes_to_and_fro(group)),
        "lseek" => {
            let on_file = group.kind == Some(ObjectKind::File) && group.per_object() >= MANY;
            let in_vain = || stays(group) || accesses(facts, group) < group.calls / 2;
            (Order::Seek, on_file && mostly_sets(group) && in_vain())
        }
        "getrandom" => (Order::Random, group.mean_asked() <= FEW_BYTES),
        _ => return None,
    };
    holds.then_some(order)
}

/// Whether calls of `mprotect` give the same few ranges one protection after the other: an allocator that makes more and more
/// of its memory writable does not.
fn goes_to_and_fro(group: &CallGroup) -> bool {
    let mut protections: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
    for [start, _, protection, _] in &group.questions {
        protections.entry(*start).or_default().insert(*protection);
    }
    let both = protections.values().filter(|given| given.len() > 1).count();
    let known = group.questions.len() < REMEMBERED;
    let few = u64::try_from(group.questions.len()).is_ok_and(|many| many <= group.calls / SAME);
    known && few && both * 2 > protections.len()
}

/// Whether calls of `lseek` set the position, besides questions where it is.
fn mostly_sets(group: &CallGroup) -> bool {
    let sets = group.questions.iter().filter(|args| args[2] == 0).count();
    let asks = group.questions.iter().filter(|args| args[1] == 0 && args[2] != 0).count();
    sets + asks == group.questions.len() && sets > asks
}

/// Whether most seeks lead to where the file already is.
fn stays(group: &CallGroup) -> bool {
    group.mergeable * 2 > group.calls
}

/// How often the process reads or writes files at their position.
fn accesses(facts: &Facts<'_>, group: &CallGroup) -> u64 {
    let groups = facts.call_groups.of_process(group.process).map(|(_, group)| group);
    let moves = |group: &&CallGroup| {
        group.kind == Some(ObjectKind::File)
            && (READS.contains(&group.name) || WRITES.contains(&group.name))
    };
    groups.filter(moves).map(|group| group.calls).sum()
}

/// Whether most of these calls are made by the C library's switch of contexts.
fn switches(facts: &Facts<'_>, group: &CallGroup) -> bool {
    let known = group.sites.iter().filter(|(stack, _)| **stack != StackId(0));
    let (mut of_switches, mut all) = (0, 0);
    for (stack, calls) in known {
        all += calls;
        of_switches += if is_switch(facts, CallSite::Stack(*stack)) { *calls } else { 0 };
    }
    of_switches * 2 > all
}

/// Whether the C library switches contexts here.
fn is_switch(facts: &Facts<'_>, site: CallSite) -> bool {
    let symbols = facts.symbols();
    let mut names = site.frames(symbols).take(2).map(|(_, frame)| symbols.name(frame.function));
    names.any(|name| {
        matches!(name, "swapcontext" | "getcontext" | "setcontext")
            || name.contains("sigjmp")
            || name.contains("sigsetjmp")
    })
}

/// Which order an entry of the account is.
pub(super) fn of(facts: &Facts<'_>, entry: &Entry) -> Option<Order> {
    let Detail::Calls(group) = entry.detail else { return None };
    kind(facts, facts.call_groups.get(group))
}

/// The findings of a process that gives such orders.
pub(super) fn drafts(found: &Inspection<'_, '_>, process: ProcessId) -> Vec<Draft> {
    ALL.into_iter().filter_map(|order| draft(found, process, order)).collect()
}

fn draft(found: &Inspection<'_, '_>, process: ProcessId, order: Order) -> Option<Draft> {
    let facts = found.facts;
    let account = AccountId::of_class(CLASS.id);
    let entries = found.wall.of_process(account, process);
    let sum = Sum::of(entries.filter(|entry| of(facts, entry) == Some(order)));
    let share = sum.ns.share_of(found.wall.net());
    if sum.count < MANY || share < if order == Order::CpuTime { MUCH } else { LARGE } {
        return None;
    }
    let certain = at_least(found, sum.ns, sum.count);
    let saving = with_syscall_entry(found, process, sum.ns, sum.count, &sum.places);
    let most = match order {
        // Another switch takes a few instructions.
        Order::SignalMask => {
            let own = found.wall.user_time_of(process);
            saving.max(sum.ns + own.map(|e| e.sampled_at(|s| is_switch(facts, s))).sum::<Ns>())
        }
        _ => saving + LibraryCode::around(found, process, &sum.places, sum.ns).all(),
    };
    let (low, likely) = match order {
        Order::SignalMask => (certain, most.part(0.9).max(certain)),
        Order::Seek => (certain, saving),
        // The bytes have to be made all the same.
        Order::Random => (certain.part(0.5), saving.part(0.8)),
        // Both may be wanted as they are.
        Order::CpuTime | Order::Protection => (Ns::ZERO, saving.part(0.5)),
    };
    let name = facts.name(process);
    let times = things(sum.count, "time");
    let (title, text, remedy) = words(order, &name, &times);
    Some(Draft {
        class: CLASS.id,
        moves: true,
        process,
        title: title.into(),
        text,
        amount: sum.ns,
        saving: likely,
        range: (low, most),
        how: How::Estimate,
        sites: sites(facts.symbols(), &sum.places, sum.count),
        evidence: Vec::new(),
        remedy: remedy.into(),
    })
}

fn words(order: Order, name: &str, times: &str) -> (&'static str, String, &'static str) {
    match order {
        Order::SignalMask => (
            "the signal mask saved at each switch",
            format!("{name} called rt_sigprocmask {times}, to switch between stacks."),
            "swapcontext, getcontext and sigsetjmp ask the kernel for the signal mask each time. Switch by code that leaves it \
             alone: _setjmp and _longjmp once a context runs, Boost.Context, or a few lines of assembly.",
        ),
        Order::CpuTime => (
            "the CPU time read over and over",
            format!("{name} asked for its CPU time {times}: each reading is a system call."),
            "Read it once in a thousand turns. For a deadline take CLOCK_MONOTONIC (std::chrono::steady_clock), which needs \
             no system call; clock() does.",
        ),
        Order::Protection => (
            "the same pages protected and opened again",
            format!("{name} changed the protection of the same few ranges {times} (mprotect)."),
            "Open the pages once, make all changes, and protect them once; limit the range to the pages that change. Or map \
             the memory twice: once for writing, once for running.",
        ),
        Order::Seek => (
            "the position in a file set over and over",
            format!(
                "{name} set the position in a file {times} (lseek), mostly for nothing: the file was there already, or nothing \
                 was read or written there."
            ),
            "Records that follow each other need no fseek or seekg between them: each is a system call, also to where the \
             file is. For records anywhere: pread and pwrite, which take the position with them, or map the file.",
        ),
        Order::Random => (
            "random bytes fetched a few at a time",
            format!("{name} asked the kernel for a few random bytes {times} (getrandom)."),
            "Fetch 256 bytes at once and hand them out from there; or seed a generator of the program's own with them, a \
             cryptographic one where others must not guess the numbers.",
        ),
    }
}

#[cfg(test)]
mod tests {
    use crate::cost::tests::{found, repeat};

    /// A program that makes this call so many times, from here, and computes for `own` ns after each.
    fn giving(call: impl Fn(u64) -> String, from: &str, calls: u64, own: u64) -> String {
        going(call, |_| 0, from, calls, own)
    }

    /// The same; each call returns this.
    fn going(
        call: impl Fn(u64) -> String,
        back: impl Fn(u64) -> u64,
        from: &str,
        calls: u64,
        own: u64,
    ) -> String {
        let each = 200 + own;
        let order = |at: u64| {
            format!(
                "{at} syscall {} from {from}step (a.c:7) <- main\n{} back {}\n",
                call(at / each),
                at + 200,
                back(at / each)
            )
        };
        let end = calls * each;
        let orders = repeat(calls, 0, each, order);
        found(&format!(
            "image a path /bin/a\nimage libc.so.6 path /lib/libc.so.6\ntask 1 a\n0 fd 3 /data\n0 on\n0 exec /bin/a\n0 main\n{orders}{end} exit\n{end} off dead"
        ))
    }

    #[test]
    fn signal_masks_of_switches_are_found_and_those_of_the_program_are_refused() {
        let mask = |_| "rt_sigprocmask 2 0 0 8".to_owned();
        let said = giving(mask, "swapcontext @libc.so.6 <- ", 2000, 200);
        assert!(
            said.starts_with("repeated-syscalls 45 % (38..57) @ step:7: a called rt_sigprocmask"),
            "{said}"
        );
        assert_eq!(giving(mask, "pthread_sigmask @libc.so.6 <- ", 2000, 200), "");
        assert_eq!(giving(mask, "", 2000, 200), "");
        assert_eq!(giving(mask, "swapcontext @libc.so.6 <- ", 2000, 20_000), "");
    }

    #[test]
    fn cpu_time_is_found_where_it_takes_much_and_refused_where_it_is_a_measurement() {
        let cpu = |_| "clock_gettime 2".to_owned();
        let said = giving(cpu, "", 2000, 300);
        assert!(said.starts_with("repeated-syscalls") && said.contains("(0.."), "{said}");
        assert_eq!(giving(cpu, "", 2000, 2000), "");
    }

    #[test]
    fn pages_protected_to_and_fro_are_found_and_new_pages_each_time_are_refused() {
        let to_and_fro = |i: u64| format!("mprotect 0x7f0000000000 65536 {}", 1 + i % 2 * 2);
        let said = giving(to_and_fro, "", 2000, 200);
        assert!(said.starts_with("repeated-syscalls") && said.contains("(0.."), "{said}");
        let grows = |i: u64| format!("mprotect {:#x} 4096 3", 0x7f00_0000_0000 + i * 4096);
        assert_eq!(giving(grows, "", 2000, 200), "");
        // The heap of a thread grows again where it was made smaller.
        let same = |i: u64| format!("mprotect {:#x} 4096 3", 0x7f00_0000_0000 + i % 8 * 4096);
        assert_eq!(giving(same, "", 2000, 200), "");
    }

    #[test]
    fn positions_set_before_each_access_are_found_and_questions_of_the_position_are_not_orders() {
        let said = giving(|i| format!("lseek 3 {} 0", i * 48), "", 2000, 200);
        assert!(said.contains("set the position in a file 2 000 times"), "{said}");
        // As many accesses: each may be anywhere in the file.
        let access = |i| match i % 2 {
            0 => format!("lseek 3 {} 0", i * 48),
            _ => "write 3 4096".to_owned(),
        };
        assert_eq!(giving(access, "", 4000, 200), "");
        // To where the last access ended.
        let in_order = |i| match i % 2 {
            0 => format!("lseek 3 {} 0", i / 2 * 200),
            _ => "read 3 200".to_owned(),
        };
        let back = |i: u64| if i.is_multiple_of(2) { i / 2 * 200 } else { 200 };
        let said = going(in_order, back, "", 4000, 200);
        assert!(said.contains("set the position in a file 2 000 times"), "{said}");
        assert!(said.contains("tiny-reads"), "{said}");
        // A shell goes back to the end of the line that it took.
        assert_eq!(giving(|_| "lseek 3 18446744073709551526 1".to_owned(), "", 2000, 200), "");
    }

    #[test]
    fn random_bytes_a_few_at_a_time_are_found_and_blocks_of_them_are_refused() {
        let bytes = |n: u64| move |_| format!("getrandom {n} 0");
        assert!(giving(bytes(16), "", 2000, 200).contains("a few random bytes 2 000 times"));
        assert_eq!(giving(bytes(256), "", 2000, 200), "");
        assert_eq!(giving(bytes(16), "", 500, 200), "");
    }
}
