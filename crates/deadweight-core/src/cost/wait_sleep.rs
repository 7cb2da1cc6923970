//! Sleeping.
//!
//! # What it is
//! The program waits for a clock: in a pause, or in a loop that checks whether something has
//! happened and sleeps until the next check. An event between two checks waits for the next check.
//!
//! # How deadweight knows
//! A timer ended the wait: in `nanosleep`, or in a `poll`, `epoll_wait` or futex wait that reached
//! its time-out. Both ends of the wait are exact.
//!
//! # What it is mistaken for
//! Waiting for an event with a long time-out: the event ends that wait, not the clock. While one
//! thread sleeps, another may do the work that the first one waits for. Then removing the sleep
//! saves less, and the saving is a range.
//!
//! # What to do
//! Wait for the event itself: with a condition variable, a channel, `poll` without a time-out, or
//! `wait`. If the program must poll, poll often at first and less often later.
//!
//! # Seen in
//! A hand-over between two threads, with `sleep_for(1 ms)` on both sides.
//! In `tests/programs`: `poll_loop.c`.

use super::{AccountId, Claim, Class, Inspection};
use crate::account::{Detail, Entry, Slice, What};
use crate::facts::Facts;
use crate::facts::call_site::{CallSite, Weights, is_runtime, sites};
use crate::facts::processes::ProcessId;
use crate::inspect::{Draft, Sum, processes_in};
use crate::timeline::kernel_stacks::{Interrupt, WaitsFor};
use crate::timeline::{Block, WokenBy};
use deadweight_code::symbol_role::SymbolRole;
use deadweight_report::report::How;
use deadweight_report::wording::{percent, things, time};
use deadweight_trace::units::Ns;

pub(super) const CLASS: Class = Class {
    id: "wait-sleep",
    source: include_str!("wait_sleep.rs"),
    claim: Claim::Slices(claim),
    inspect,
};

/// From this many sleeps on it is a loop.
const LOOP: usize = 8;
/// The cost of waiting for the event instead of sleeping: a wake-up and two context switches.
const WAKE_UP: Ns = Ns(20_000);

fn claim(facts: &Facts<'_>, slice: &Slice) -> bool {
    let What::Wait(block) = slice.what else { return false };
    is_sleep(&facts.timeline.blocks[block as usize])
}

fn is_sleep(block: &Block) -> bool {
    match block.waits_for {
        WaitsFor::Sleep => true,
        WaitsFor::Poll | WaitsFor::Futex | WaitsFor::Signal | WaitsFor::SocketData => {
            block.woken_by == WokenBy::Interrupt(Interrupt::Timer)
        }
        _ => false,
    }
}

fn inspect(found: &Inspection<'_, '_>) -> Vec<Draft> {
    let account = AccountId::of_class(CLASS.id);
    processes_in(found.wall.in_account(account))
        .into_iter()
        .map(|process| draft(found, account, process))
        .filter(|draft| draft.amount.0 > 0)
        .collect()
}

/// Whether a language's scheduler sleeps for its own purposes, between spins: Go's threads do so
/// with `nanosleep`, while goroutines that sleep leave a thread waiting on a futex or in a poll.
fn is_scheduler(facts: &Facts<'_>, block: &Block) -> bool {
    let site = CallSite::Stack(facts.site_of(block));
    let sleeps = || {
        facts.processes.get(facts.processes.of(block.task)).language == "Go"
            || is_runtime(facts.symbols(), site)
    };
    (block.waits_for == WaitsFor::Sleep && sleeps()) || is_collector(facts, &site)
}

/// Whether the wait belongs to the collector or the allocator: their findings include it.
fn is_collector(facts: &Facts<'_>, site: &CallSite) -> bool {
    let Some(stack) = site.stack() else { return false };
    let sample = facts.sample(stack);
    sample.under(SymbolRole::Collect) || sample.under(SymbolRole::Allocate)
}

fn draft(found: &Inspection<'_, '_>, account: AccountId, process: ProcessId) -> Draft {
    let facts = found.facts;
    let go = facts.processes.get(process).language == "Go";
    let scheduler = |e: &&Entry| go && matches!(e.detail, Detail::Waits(WaitsFor::Sleep, _));
    let entries = found.wall.of_process(account, process);
    let mut sum = Sum::of(entries.filter(|e| !scheduler(e)));
    let (others, own): (Weights, Weights) =
        sum.places.iter().partition(|(site, _)| is_collector(facts, site));
    let others = Ns(others.values().map(|weight| weight.amount).sum());
    sum.alone = (sum.alone - others).min(sum.ns - others);
    sum.ns -= others;
    sum.places = own;
    let mut lengths: Vec<Ns> = facts
        .waits_of(process)
        .filter(|b| is_sleep(b))
        .filter(|b| !is_scheduler(facts, b))
        .map(|b| b.end - b.start)
        .collect();
    lengths.sort_unstable();
    let typical = lengths.get(lengths.len() / 2).copied().unwrap_or_default();
    let name = facts.name(process);
    let polls = lengths.len() >= LOOP;
    let stays = if polls { Ns(WAKE_UP.0.saturating_mul(sum.count)) } else { Ns::ZERO };
    let times = things(u64::try_from(lengths.len()).unwrap_or(u64::MAX), "time");
    Draft {
        class: CLASS.id,
        moves: true,
        process,
        title: if polls {
            format!("a polling loop that sleeps {}", time(typical))
        } else {
            format!("asleep for {}", time(sum.ns))
        },
        text: if polls {
            format!(
                "{name} slept {times}, typically for {}, and then checked again.",
                time(typical)
            )
        } else {
            format!("{name} slept {times} in all.")
        },
        amount: sum.ns,
        saving: sum.alone - stays,
        range: (sum.alone - stays, sum.ns),
        how: How::Exact,
        sites: sites(facts.symbols(), &sum.places, sum.count),
        evidence: vec![format!(
            "no task of the measured command was on a CPU for {} of this time",
            percent(sum.alone, sum.ns)
        )],
        remedy: remedy(&facts.processes.get(process).language, polls),
    }
}

fn remedy(language: &str, polls: bool) -> String {
    let event = match language {
        "C" => "pthread_cond_wait, or poll without time-out",
        "C++" => "std::condition_variable::wait with the condition as predicate",
        "Rust" => "Condvar::wait, or a channel's recv()",
        "Go" => "receive from a channel, or sync.Cond.Wait",
        "Zig" => "std.Thread.Condition.wait",
        "Crystal" => "Channel#receive",
        "Python" => "threading.Event.wait, or Popen.wait",
        "shell" => "the `wait` builtin, or a pipe or FIFO that is read",
        _ => "a condition variable, a pipe, or `wait`",
    };
    if polls {
        format!(
            "Wait for the event instead of the clock: {event}. A shorter interval helps too, but \
             costs more wake-ups."
        )
    } else {
        format!("If the pause waits for something, wait for that instead: {event}.")
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{found, repeat, weighed};
    use deadweight_report::report::How;
    use expect_test::expect;

    const MS: u64 = 1_000_000;

    fn poller(looks: u64) -> String {
        let look = |at| {
            format!(
                "{} off blocked clock_nanosleep 1 from std::sleep_for <- take (spool.cpp:48) <- main
                 {} on woken-by interrupt : hrtimer_wakeup < asm_sysvec_apic_timer_interrupt
                 {} back 0\n",
                at + 100_000,
                at + MS,
                at + MS + 10
            )
        };
        let end = looks * 2 * MS + 10;
        format!("task 1 spool\n0 on\n{}{end} exit\n{end} off dead", repeat(looks, 0, 2 * MS, look))
    }

    #[test]
    fn a_polling_loop_is_found_with_its_interval() {
        expect![[r#"
            wait-sleep 44 % (44..45) @ take:48: spool slept 10 times, typically for 900 µs, and then checked again.
        "#]]
        .assert_eq(&found(&poller(10)));
    }

    #[test]
    fn a_sleep_between_two_stops_is_an_estimate() {
        let how = |text: &str| weighed(text).findings[0].how;
        assert_eq!(how(&poller(10)), How::Exact);
        assert_eq!(how(&format!("rung stops\n{}", poller(10))), How::Estimate);
    }

    #[test]
    fn work_beside_the_sleep_makes_the_saving_a_range() {
        let text = "cpus 2
        task 1 main
             0 cpu0 on
            50 fork 2 thread
           100 off blocked clock_nanosleep 1
           900 cpu0 on woken-by interrupt : hrtimer_wakeup < asm_sysvec_apic_timer_interrupt
          1000 exit
          1000 off dead
        task 2 spinner
           100 cpu1 on
           900 off blocked futex";
        expect![[r#"
            wait-sleep 0 % (0..80) @ nowhere: main slept 1 time in all.
        "#]]
        .assert_eq(&found(text));
    }

    #[test]
    fn an_event_before_the_time_out_is_refused() {
        let text = "task 1 main
             0 on
           100 off blocked poll 3 1 5000 : do_sys_poll
           900 on woken-by 9 peer
          1000 exit
          1000 off dead
        task 9 peer outside
             0 on";
        assert!(!found(text).contains("wait-sleep"));
    }
}
