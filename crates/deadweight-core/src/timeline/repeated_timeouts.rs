//! Waits for an event with a repeated time-out: the clock runs out, and the same wait begins again.
//!
//! A thread that waits for work at a condition variable often has a time-out, checks some state, and waits
//! again (Java's VM thread, a pool's idle worker, a logger). It waited for the task that ended the last of
//! these waits, so the earlier ones were not for the clock either. A loop that only the clock ever wakes is
//! polling: its sleep is a cost (`wait-sleep`) and is left alone. A `poll` with a time-out that begins again with the same
//! descriptors waited for what came at last, also from outside of the command (curl looks at its timers in between). Not
//! `epoll_wait`: loops of events sleep in it.
//!
//! A wait for a lock may have a time-out, too: the waiter then asks the holder for the lock, and gets it before it waits
//! again (CPython's interpreter lock, every 5 ms). It waited for the holder, which worked all the time and gave up then.

use super::handover::{has_watchdog, waits_soon, worker};
use super::{Block, Run, Timeline, WokenBy};
use crate::timeline::kernel_stacks::{Interrupt, WaitsFor};
use deadweight_trace::ids::TaskId;
use deadweight_trace::symbols::Symbols;
use deadweight_trace::units::Ns;

/// The check between two waits takes no more CPU time than this; a thread that computes longer was woken by
/// the clock on purpose, for periodic work.
const LOOK: Ns = Ns(200_000);

/// A longer time-out is no request for a lock.
const LONGEST: Ns = Ns(100_000_000);
/// The holder of a lock has a CPU for at least this part of another task's wait for it.
const HELD: f64 = 0.9;

/// Numbers below are no addresses: what else than `poll` gives a wait for descriptors begins with their number, or with that of
/// an epoll.
const LEAST_ADDRESS: u64 = 1 << 16;

/// If a task of the program ended a repeated wait, charges also the repetitions before it, which the clock
/// ended, to that task. Go's idle threads have their own rules, see `handover`.
pub(super) fn until_the_event(timeline: &mut Timeline, symbols: &Symbols) {
    if has_watchdog(symbols) {
        return;
    }
    for index in 0..timeline.tasks.len() {
        if timeline.tasks[index].own {
            of_task(timeline, TaskId::at(index));
        }
    }
}

/// Charges a wait for a lock, which the clock ended, to the holder that then gave it up. Go's idle threads have their own
/// rules, see `handover`.
pub(super) fn until_the_lock(timeline: &mut Timeline, symbols: &Symbols) {
    if has_watchdog(symbols) {
        return;
    }
    for index in 0..timeline.blocks.len() {
        let block = timeline.blocks[index];
        let by_clock = block.woken_by == WokenBy::Interrupt(Interrupt::Timer);
        let length = block.end - block.start;
        if !by_clock || length > LONGEST || word(timeline, &block).is_none() {
            continue;
        }
        // Who waits again has not got it.
        if waits_soon(timeline, block.task, block.end) == Some(true) {
            continue;
        }
        let interval = (block.start, block.end);
        let holder = worker(timeline, block.task, interval, &[]).filter(|holder| {
            let worked = timeline.task(*holder).on_cpu_between(block.start, block.end);
            worked.share_of(length) >= HELD
                && waits_soon(timeline, *holder, block.end) == Some(true)
        });
        if let Some(holder) = holder {
            let block = &mut timeline.blocks[index];
            block.woken_by = WokenBy::Task(holder);
            block.waker_call = None;
            block.inferred = true;
        }
    }
}

fn of_task(timeline: &mut Timeline, task: TaskId) {
    // Backwards: the waker of the last wait is known before the waits that timed out.
    let mut event: Option<(u64, WokenBy)> = None;
    let mut worked = Ns::ZERO;
    for at in (0..timeline.task(task).spans.len()).rev() {
        let entry = timeline.task(task);
        match entry.spans[at].run() {
            Run::OnCpu(_) => worked += entry.span_end(at) - entry.spans[at].start,
            Run::Runnable => {}
            Run::Unrecorded => event = None,
            Run::Blocked(block) => {
                let looked = worked <= LOOK;
                worked = Ns::ZERO;
                let block = block as usize;
                let polled = polled(timeline, &timeline.blocks[block]);
                let waits = polled.or_else(|| word(timeline, &timeline.blocks[block]));
                event = match (waits, timeline.blocks[block].woken_by, event) {
                    (Some(word), WokenBy::Interrupt(Interrupt::Timer), Some((same, by)))
                        if looked && word == same =>
                    {
                        let block = &mut timeline.blocks[block];
                        block.woken_by = by;
                        block.waker_call = None;
                        block.inferred = true;
                        event
                    }
                    (Some(word), by @ WokenBy::Task(task), _) if timeline.task(task).own => {
                        Some((word, by))
                    }
                    (Some(word), by @ (WokenBy::Task(_) | WokenBy::Interrupt(_)), _)
                        if polled.is_some() && by != WokenBy::Interrupt(Interrupt::Timer) =>
                    {
                        Some((word, by))
                    }
                    _ => None,
                };
            }
        }
    }
}

/// The word that a futex wait is for.
fn word(timeline: &Timeline, block: &Block) -> Option<u64> {
    let call = block.call.filter(|_| block.waits_for == WaitsFor::Futex)?;
    Some(timeline.args(&timeline.calls[call.index()])[0]).filter(|word| *word != 0)
}

/// The address of the descriptors that a `poll` waits for.
fn polled(timeline: &Timeline, block: &Block) -> Option<u64> {
    let call = block.call.filter(|_| block.waits_for == WaitsFor::Poll)?;
    Some(timeline.args(&timeline.calls[call.index()])[0]).filter(|list| *list >= LEAST_ADDRESS)
}

#[cfg(test)]
mod tests {
    use crate::timeline::{Timeline, WokenBy};
    use deadweight_trace::Trace;

    const CLOCK: &str = "interrupt : hrtimer_wakeup < asm_sysvec_apic_timer_interrupt";

    /// The waker of each wait of task 2, which times out three times at word `third` and works for `work`
    /// ns before the last wait.
    fn ended(third: u64, work: u64, last: &str) -> Vec<String> {
        let (a, b) = (3_000_000, 3_000_000 + work);
        let text = format!(
            "cpus 2
             task 1 java
                 0 cpu0 on
                10 fork 2 thread
               {end} exit
               {end} off dead
             task 2 java
                15 cpu1 on
                30 off blocked futex 9 393 0 0 : futex_do_wait
           1000000 cpu1 on woken-by {CLOCK}
           1000010 off blocked futex 9 393 0 0 : futex_do_wait
           2000000 cpu1 on woken-by {CLOCK}
           2000010 off blocked futex {third} 393 0 0 : futex_do_wait
           {a} cpu1 on woken-by {CLOCK}
           {b} off blocked futex 9 393 0 0 : futex_do_wait
           9000000 cpu1 on woken-by {last}
           9000010 exit
           9000020 off dead",
            end = 9_500_000
        );
        let trace = Trace::from_text(&text).unwrap();
        let timeline = Timeline::build(&trace);
        let by = |woken: WokenBy| match woken {
            WokenBy::Task(_) => "task".to_owned(),
            WokenBy::Interrupt(_) => "clock".to_owned(),
            other => format!("{other:?}"),
        };
        timeline.blocks.iter().map(|block| by(block.woken_by)).collect()
    }

    #[test]
    fn a_repeated_wait_is_for_the_task_that_ended_the_last_one() {
        assert_eq!(ended(9, 10, "1"), ["task", "task", "task", "task"]);
    }

    #[test]
    fn a_wait_that_only_the_clock_ends_stays_a_sleep() {
        assert_eq!(ended(9, 10, CLOCK), ["clock", "clock", "clock", "clock"]);
    }

    #[test]
    fn work_after_a_timeout_is_what_the_clock_was_for() {
        assert_eq!(ended(9, 900_000, "1"), ["clock", "clock", "clock", "task"]);
    }

    #[test]
    fn another_word_is_another_wait() {
        assert_eq!(ended(8, 10, "1"), ["clock", "clock", "clock", "task"]);
    }

    /// The wakers of the waits of a program that waits for an answer from outside: with a time-out, and then without.
    fn polls(call: &str) -> Vec<String> {
        let text = format!(
            "cpus 2
             task 1 curl
                 0 cpu0 on
                30 off blocked {call} : do_sys_poll
         200000000 cpu0 on woken-by {CLOCK}
         200000100 back 0
         200005000 off blocked {call} : do_sys_poll
         500000000 cpu0 on woken-by 9
         500000100 back 1
         500200000 exit
         500200010 off dead
             task 9 server outside
                 0 cpu1 on"
        );
        let timeline = Timeline::build(&Trace::from_text(&text).unwrap());
        timeline.blocks.iter().map(|block| format!("{:?}", block.woken_by)).collect()
    }

    #[test]
    fn a_poll_that_begins_again_waited_for_what_came() {
        assert!(
            polls("poll 140000 2 199")[0].starts_with("Task"),
            "{:?}",
            polls("poll 140000 2 199")
        );
        // A loop of events sleeps until its next timer.
        assert!(polls("epoll_wait 4 140000 8 199")[0].starts_with("Interrupt"));
    }

    /// The wakers of the waits of task 2 for a lock, which the clock ends after 5 ms, while task 1 computes, and goes on for
    /// `more` ns before it waits for the lock itself.
    fn waited(more: u64) -> Vec<String> {
        let gives_up = 5_000_100 + more;
        let text = format!(
            "cpus 2
             task 1 python
                 0 cpu0 on
                10 fork 2 thread
               {gives_up} off blocked futex 8 137 0 99 : futex_do_wait
               9000000 cpu0 on woken-by {CLOCK}
               9500000 exit
               9500000 off dead
             task 2 python
                15 cpu1 on
                30 off blocked futex 9 137 0 99 : futex_do_wait
           5000100 cpu1 on woken-by {CLOCK}
           9600000 exit
           9600020 off dead"
        );
        let timeline = Timeline::build(&Trace::from_text(&text).unwrap());
        let of_second = timeline.blocks.iter().filter(|block| block.start.0 == 30);
        of_second.map(|block| format!("{:?}", block.woken_by)).collect()
    }

    #[test]
    fn a_lock_that_its_holder_gives_up_after_the_time_out_was_waited_for() {
        assert!(waited(20_000)[0].starts_with("Task"), "{:?}", waited(20_000));
        assert!(waited(900_000)[0].starts_with("Interrupt"), "{:?}", waited(900_000));
    }
}
