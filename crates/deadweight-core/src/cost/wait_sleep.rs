//! Sleeping.
//!
//! # What it is
//! The program waits for a clock: in a pause, or in a loop that checks whether something has
//! happened and sleeps until the next check. An event between two checks waits for the next check.
//!
//! # How deadweight knows
//! A timer ended the wait: in `nanosleep`, or in a `poll`, `epoll_wait` or futex wait that reached
//! its time-out. Both ends of the wait are exact. Where a child ended during a sleep that `wait4` with WNOHANG follows,
//! the rest of the sleep is lost.
//!
//! # What it is mistaken for
//! A loop that looks for what others do, such as `tail -f`: a look that finds nothing shows that the sleep before it was
//! needed. Waiting for an event with a long time-out: the event ends that wait, not the clock. While one
//! thread sleeps, another may do the work that the first one waits for. Then removing the sleep
//! saves less, and the saving is a range. An idle server wakes by the clock, too, and so does a
//! worker without work or a lock with a time-out: where events end the same wait at other times, the
//! clock is not what is waited for. A pace (frames, ticks, a limit of requests): it sleeps for what is
//! left, so that its wake-ups stay on a grid or at a rate that programs keep, or asks for an instant (TIMER_ABSTIME), and the rate is its purpose. A source that writes something after each pause
//! has work each time, and looks for none; one that wakes another task after each pause may be such a source, and so may a goroutine, where that does not show: the saving begins at 0. Sleeps of different lengths, up and down, last until something is due. A program that takes connections, that was joined while it ran,
//! or that waits for events until a signal stops it, is idle and makes no finding, unless it sleeps between a request
//! and its answer.
//!
//! # What to do
//! Wait for the event itself: with a condition variable, a channel, `poll` without a time-out, or
//! `wait`. If the program must poll, poll often at first and less often later.
//!
//! # Seen in
//! A hand-over between two threads, with `sleep_for(1 ms)` on both sides.
//! In `tests/programs`: `poll_loop.c`; `follow.c` and `pulse.go` have none.

mod advice;
mod children;
mod feeds;
mod goroutines;
mod looks;
mod one_loop;
mod pace;
mod pauses;
mod under_lock;

use super::{AccountId, Claim, Class, Inspection, is_server, is_stopped_by_signal};
use crate::account::{Detail, Entry, Slice, What};
use crate::facts::Facts;
use crate::facts::call_site::{CallSite, Weights, is_runtime, sites};
use crate::facts::processes::ProcessId;
use crate::inspect::{Draft, Sum, processes_in};
use crate::timeline::kernel_stacks::{Interrupt, WaitsFor};
use crate::timeline::transfer::Transfer;
use crate::timeline::{Block, Call, Run, WokenBy};
use advice::{Pace, Sleeps};
use deadweight_code::symbol_role::SymbolRole;
use deadweight_report::report::How;
use deadweight_report::wording::{count, things};
use deadweight_trace::ids::{CallId, StackId};
use deadweight_trace::units::Ns;
use looks::Looks;
use std::collections::{BTreeMap, BTreeSet};

pub(super) const CLASS: Class = Class {
    id: "wait-sleep",
    source: include_str!("wait_sleep.rs"),
    claim: Claim::Slices(claim),
    inspect,
};

/// From this many sleeps on it is a loop.
const LOOP: usize = 8;
/// A few sleeps that take less of the wall time are pauses at the edge of the work: a worker that has none left, a last
/// look at a child.
const FEW: f64 = 0.08;
/// What happens between so many of the sleeps happens each time.
const NEARLY_ALL: f64 = 0.9;
/// If others wait for a lock of the sleeping task during this part of its sleeps, the lock is what they wait for.
const UNDER_LOCK: f64 = 0.5;
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
    let facts = found.facts;
    let account = AccountId::of_class(CLASS.id);
    let draft = |process| {
        // Nothing shows that a joined program or a server would have ended earlier.
        let ends = !facts.trace.meta.attached && !is_server(facts, process);
        match ends {
            true => draft(found, account, process),
            false => pauses::draft(found, account, process),
        }
    };
    processes_in(found.wall.in_account(account)).into_iter().filter_map(draft).collect()
}

/// Whether a wait of this kind, which the clock ended, may have been for the clock.
fn counts(facts: &Facts<'_>, process: ProcessId, waits_for: WaitsFor) -> bool {
    match waits_for {
        WaitsFor::Tick => false,
        WaitsFor::Sleep => facts.processes.get(process).language != "Go",
        // A time limit for a child, as `timeout` sets it.
        WaitsFor::Signal if !facts.processes.get(process).children.is_empty() => false,
        _ => !is_stopped_by_signal(facts, process),
    }
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

/// The sleeps of a process that the wall time consists of, without those of its collector.
fn slept(found: &Inspection<'_, '_>, account: AccountId, process: ProcessId) -> Sum {
    let facts = found.facts;
    let counts = |e: &&Entry| match e.detail {
        Detail::Waits(waits_for, _) => counts(facts, process, waits_for),
        _ => true,
    };
    let mut sum = Sum::of(found.wall.of_process(account, process).filter(counts));
    let (others, own): (Weights, Weights) = sum.places.iter().partition(|(site, _)| {
        is_collector(facts, site) || goroutines::is_timer(facts, process, **site)
    });
    let count: u64 = others.values().map(|weight| weight.count).sum();
    let others = Ns(others.values().map(|weight| weight.amount).sum());
    sum.alone = (sum.alone - others).min(sum.ns - others);
    sum.ns -= others;
    sum.count = sum.count.saturating_sub(count);
    sum.places = own;
    sum
}

/// The same sleeps, each with its start, its end and its stack, in order. Of goroutines, the sleeps that they asked for:
/// several threads may wait for one after another.
fn sleeps(facts: &Facts<'_>, process: ProcessId) -> BTreeSet<(Ns, Ns, StackId)> {
    let mut blocks = BTreeSet::new();
    let pieces = facts.path.pieces.iter();
    for piece in pieces.filter(|p| !p.unexplained && facts.processes.of(p.task) == process) {
        let spans = piece.spans(facts.timeline);
        blocks.extend(spans.filter_map(|(.., span)| match span.run() {
            Run::Blocked(block) => Some(block),
            _ => None,
        }));
    }
    let mut kinds = BTreeMap::new();
    let mut may = |kind| *kinds.entry(kind).or_insert_with(|| counts(facts, process, kind));
    let blocks = blocks.into_iter().map(|at| (at as usize, &facts.timeline.blocks[at as usize]));
    blocks
        .filter(|(_, block)| is_sleep(block) && may(block.purpose()))
        .filter(|(_, block)| !is_scheduler(facts, block))
        .filter(|(_, block)| {
            !goroutines::is_timer(facts, process, CallSite::Stack(facts.site_of(block)))
        })
        .map(|(at, block)| {
            let sleep = facts.timeline.sleeps.get(&at).map(|sleep| (sleep.start, sleep.due));
            let (start, end) = sleep.unwrap_or((block.start, block.end));
            (start, end, facts.site_of(block))
        })
        .collect()
}

/// Whether the process writes something between nearly any two sleeps: it has work each time, and does not look for it.
fn gives_between(facts: &Facts<'_>, process: ProcessId, sleeps: &[(Ns, Ns)]) -> bool {
    let gives = |(at, call): (usize, &Call)| {
        let group = facts.call_groups.get(facts.call_groups.id(CallId::at(at))?);
        let moved = call.ret().is_some_and(|bytes| bytes > 0);
        (group.process == process && group.transfer == Some(Transfer::Gives) && moved)
            .then_some(call.start)
    };
    let gives: Vec<Ns> = facts.timeline.calls.iter().enumerate().filter_map(gives).collect();
    let until = |at: Ns| gives.partition_point(|start| *start < at);
    let between = sleeps.windows(2).filter(|pair| until(pair[1].0) > until(pair[0].1)).count();
    between as f64 >= sleeps.len().saturating_sub(1) as f64 * NEARLY_ALL
}

fn draft(found: &Inspection<'_, '_>, account: AccountId, process: ProcessId) -> Option<Draft> {
    let facts = found.facts;
    let placed = sleeps(facts, process);
    let sum = goroutines::counted(facts, process, &placed, slept(found, account, process));
    children::draft(found, process, &placed, &sum)
        .or_else(|| for_the_clock(found, process, &placed, sum))
}

/// The finding about all sleeps of a process.
fn for_the_clock(
    found: &Inspection<'_, '_>,
    process: ProcessId,
    placed: &BTreeSet<(Ns, Ns, StackId)>,
    sum: Sum,
) -> Option<Draft> {
    let facts = found.facts;
    let sleeps: Vec<(Ns, Ns)> = placed.iter().map(|(start, end, _)| (*start, *end)).collect();
    let mut lengths: Vec<Ns> = sleeps.iter().map(|(start, end)| *end - *start).collect();
    lengths.sort_unstable();
    let few = lengths.len() < LOOP && sum.ns.share_of(found.wall.net()) < FEW;
    let works = || sleeps.len() >= LOOP && gives_between(facts, process, &sleeps);
    let due = || goroutines::last_until(facts, process, &sleeps);
    if few || sum.ns == Ns::ZERO || pace::is_one(facts, process, &sleeps) || works() || due() {
        return None;
    }
    let typical = lengths.get(lengths.len() / 2).copied().unwrap_or_default();
    let under_lock = under_lock::share(facts, process) >= UNDER_LOCK;
    let polls = lengths.len() >= LOOP && !under_lock;
    if polls && !pace::are_of_round_length(&sleeps) {
        return None;
    }
    let polls = polls && one_loop::is_one(facts, process, &sleeps);
    let wake_ups = if polls { Ns(WAKE_UP.0.saturating_mul(sum.count)) } else { Ns::ZERO };
    let stays = wake_ups + under_lock::at_once(facts, process, under_lock, sum.ns);
    let looks = polls.then(|| looks::between(facts, process, &sleeps)).flatten();
    let all: Ns = lengths.iter().copied().sum();
    let late = looks.map(|looks| sum.ns.part(looks.late.share_of(all)));
    if late.is_some_and(|late| late.share_of(found.wall.net()) < FEW) {
        return None;
    }
    let in_go = || facts.processes.get(process).language == "Go" && late.is_none();
    let pace = match polls {
        true if feeds::another(facts, process) => Some(Pace::Feeds),
        true if in_go() => Some(Pace::Goroutine),
        _ => None,
    };
    // A sleep with only its end on the critical path counts too.
    let times = u64::try_from(lengths.len()).unwrap_or(u64::MAX).max(1);
    let times = format!("{} slept {}", facts.name(process), things(times, "time"));
    let how = Sleeps { under_lock, polls, pace };
    let (title, text) = how.said(&times, typical, sum.ns);
    Some(Draft {
        class: CLASS.id,
        moves: true,
        process,
        title,
        text,
        amount: sum.ns,
        // What is found may have come at any time of the sleep before.
        saving: late.map_or(sum.alone - stays, |late| late.part(0.5)),
        range: match (late, pace) {
            (Some(late), _) => (Ns::ZERO, late),
            (None, Some(_)) => (Ns::ZERO, sum.ns),
            (None, None) => (sum.alone - stays, sum.ns),
        },
        // What is slept for may be the work: then only the lock is the cost.
        how: match late {
            _ if under_lock || pace.is_some() => How::Candidate,
            Some(_) => How::Estimate,
            None => How::Exact,
        },
        sites: sites(facts.symbols(), &sum.places, sum.count),
        evidence: [sum.meanwhile()].into_iter().chain(looks.map(said)).collect(),
        remedy: match under_lock {
            true => advice::UNDER_LOCK.into(),
            false => {
                advice::remedy(&facts.processes.get(process).language, polls && pace.is_none())
            }
        },
    })
}

/// What the looks between sleeps saw, as evidence.
fn said(looks: Looks) -> String {
    let counted =
        if looks.answers { "the sleeps before the former count" } else { "the last sleep counts" };
    format!(
        "{} found something, {} nothing yet: only {counted}, by at most their length",
        things(looks.found, "check"),
        count(looks.vain)
    )
}

#[cfg(test)]
mod tests {
    use super::super::tests::{found, repeat, weighed};
    use deadweight_report::report::How;
    use expect_test::expect;

    const MS: u64 = 1_000_000;

    fn poller(looks: u64) -> String {
        looks_and(looks, "")
    }

    /// The same with this call between two sleeps.
    fn looks_and(looks: u64, call: &str) -> String {
        let look = |at| {
            let call = match call {
                "" => String::new(),
                call => format!("{} syscall {call}\n{} back 40\n", at + 10_000, at + 20_000),
            };
            format!(
                "{call}{} off blocked clock_nanosleep 1 from std::sleep_for <- take (spool.cpp:48) <- main
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
    fn a_source_that_writes_after_each_pause_is_refused_and_one_that_reads_is_found() {
        assert_eq!(found(&looks_and(20, "write 3 40")), "");
        assert!(found(&looks_and(20, "pread64 3 40 0")).starts_with("wait-sleep 4"));
    }

    #[test]
    fn sleeps_until_an_instant_are_refused() {
        let until =
            poller(20).replace("blocked clock_nanosleep 1", "blocked clock_nanosleep 1 1 :");
        assert!(found(&poller(20)).starts_with("wait-sleep 4"));
        assert_eq!(found(&until), "");
        // Python's sleep computes the instant.
        let python = until.replacen("task 1", "image app path /bin/app language Python\ntask 1", 1);
        let python = python.replacen("0 on\n", "0 on\n0 exec /bin/app\n0 main\n", 1);
        assert!(found(&python).starts_with("wait-sleep 4"), "{}", found(&python));
    }

    #[test]
    fn one_short_pause_is_refused_and_one_long_pause_is_found() {
        let pause = |length: u64| {
            let end = 20 * MS;
            found(&format!(
                "task 1 rg\n0 on\n0 main\n{MS} off blocked clock_nanosleep 1
                 {} on woken-by interrupt : hrtimer_wakeup < asm_sysvec_apic_timer_interrupt
                 {end} exit\n{end} off dead",
                MS + length
            ))
        };
        assert_eq!(pause(MS), "");
        assert!(pause(5 * MS).starts_with("wait-sleep 25 %"), "{}", pause(5 * MS));
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
            wait-sleep 0 % (0..83) @ nowhere: main slept 1 time in all.
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

    const CLOCK: &str = "interrupt : hrtimer_wakeup < asm_sysvec_apic_timer_interrupt";

    /// A program that waits ten times for an event until the clock ends the wait, and then until `last`.
    fn waiter(before: &str, wait: &str, last: &str) -> String {
        let look = |at| {
            format!(
                "{} off blocked {wait}\n{} on woken-by {CLOCK}\n{} back 0\n",
                at + 100_000,
                at + MS,
                at + MS + 10
            )
        };
        let end = 20 * MS;
        format!(
            "task 1 app\n0 on\n{before}{}{end} off blocked {wait}\n{} on woken-by {last}
             {} exit\n{} off dead\ntask 9 sh outside\n0 on",
            repeat(10, 100, 2 * MS, look),
            end + MS,
            end + MS + 100,
            end + MS + 110
        )
    }

    const POLL: &str = "poll 4096 1 5 : do_sys_poll from look <- main (app.c:9)";
    const EPOLL: &str = "epoll_wait 4 1 100 : do_epoll_wait from serve <- main (app.c:9)";
    const KILL: &str = "9 : complete_signal < do_send_sig_info < __x64_sys_kill";

    #[test]
    fn a_time_out_that_alone_ever_ends_the_wait_is_found() {
        let polls = found(&waiter("", POLL, CLOCK));
        assert!(polls.contains("wait-sleep 4"), "{polls}");
        assert!(polls.contains("@ look: app slept 11 times, typically for 900 µs"), "{polls}");
        let slept = found(&waiter("", "clock_nanosleep 1 : do_nanosleep", KILL));
        assert!(slept.contains("wait-sleep"), "{slept}");
    }

    #[test]
    fn a_server_that_wakes_by_the_clock_is_refused() {
        let accepts = "10 syscall accept4 3\n20 back 5\n";
        assert_eq!(found(&waiter(accepts, EPOLL, CLOCK)), "");
    }

    #[test]
    fn a_time_out_where_events_arrive_too_is_refused() {
        let epoll = "10 syscall epoll_create1 0\n20 back 4\n";
        let served = found(&waiter(epoll, EPOLL, "9 : ep_poll_callback < sock_def_readable"));
        assert!(!served.contains("wait-sleep"), "{served}");
    }

    #[test]
    fn waiting_for_events_until_a_signal_is_refused() {
        assert_eq!(found(&waiter("", EPOLL, KILL)), "");
    }

    #[test]
    fn a_program_that_was_joined_is_refused() {
        assert_eq!(found(&format!("attached\n{}", waiter("", EPOLL, CLOCK))), "");
        assert_eq!(found(&format!("attached\n{}", poller(10))), "");
    }

    #[test]
    fn a_time_limit_for_a_child_is_refused() {
        let wait = "rt_sigsuspend 0 : sigsuspend";
        assert!(found(&waiter("", wait, CLOCK)).contains("wait-sleep"));
        let child =
            "\ntask 2 child\n11 on\n12 exec /bin/child\n13 off blocked read 0 : anon_pipe_read";
        let text = format!("{}{child}", waiter("10 fork 2\n", wait, CLOCK));
        assert!(!found(&text).contains("wait-sleep"), "{}", found(&text));
    }

    #[test]
    fn a_lock_with_a_time_out_is_refused() {
        // CPython's lock has two words in turn; a holder woke the last wait from the same place.
        let take = |word| format!("futex {word} 393 0 0 : futex_do_wait from take_gil <- eval");
        let text = waiter("5 fork 2 thread\n", &take(8), "2").replacen(&take(8), &take(9), 9);
        let holder = "task 2 app\n6 cpu1 on\n21_000_010 exit\n21_000_020 off dead\n";
        let text = format!("cpus 2\n{}\n{holder}", text.replace("task 9 sh outside\n0 on", ""));
        assert!(!found(&text).contains("wait-sleep"), "{}", found(&text));
    }

    #[test]
    fn sleeps_of_a_thread_that_nobody_waits_for_are_not_counted() {
        let text = poller(10).replacen("0 on\n", "0 on\n50 fork 2 thread\n", 1);
        let nap =
            |at| format!("{at} off blocked clock_nanosleep 1\n{} on woken-by {CLOCK}\n", at + 400);
        let other = repeat(1000, 100, 500, nap);
        let said = found(&format!("cpus 2\n{text}\ntask 2 spool\n60 cpu1 on\n{other}"));
        assert!(said.contains("spool slept 10 times, typically for 900 µs"), "{said}");
    }
}
