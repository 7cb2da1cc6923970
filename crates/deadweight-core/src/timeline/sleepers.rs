//! Where a goroutine went to sleep.
//!
//! A goroutine that sleeps leaves its thread, which then waits for the next timer inside Go's scheduler:
//! the stack of that wait does not show the goroutine. A probe on `time.Sleep` records how long each
//! goroutine meant to sleep, and where; a wait that the clock ended belongs to the sleep that was due next.
//! Timers and tickers are left alone: they are made in one place and waited for in another.

use super::{Block, Timeline, WokenBy};
use crate::timeline::kernel_stacks::{Interrupt, WaitsFor};
use deadweight_trace::ids::{NameId, StackId, Tid};
use deadweight_trace::symbols::Symbols;
use deadweight_trace::units::Ns;
use deadweight_trace::{Event, Kind};
use std::collections::{BTreeMap, BTreeSet};

/// The probe at the start of `time.Sleep`, whose arguments are the duration in nanoseconds and the goroutine.
const PROBE: &str = "go.sleep";
/// Go's `netpoll` may wake up this much too early: it waits for whole milliseconds, and then for the rest.
const EARLY: Ns = Ns(1_000_000);

/// A goroutine's sleep: when it is due, when it began, from where, and which goroutine.
type Sleep = (Ns, Ns, StackId, u64);

/// The sleep of a goroutine that a thread waited for.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct GoSleep {
    /// When it began.
    pub(crate) start: Ns,
    /// When it is due.
    pub(crate) due: Ns,
    /// Whose it is.
    pub(crate) goroutine: u64,
}

/// The sleeps that probes recorded, by process.
#[derive(Debug, Default)]
pub(super) struct Sleeps {
    /// None if the recording has no such probe.
    probe: Option<NameId>,
    due: BTreeMap<Tid, BTreeSet<Sleep>>,
}

impl Sleeps {
    pub(super) fn of(symbols: &Symbols) -> Self {
        let probe = symbols.names.iter().position(|name| name == PROBE).map(NameId::at);
        Self { probe, due: BTreeMap::new() }
    }

    /// A goroutine of this process goes to sleep, if the event is that probe.
    pub(super) fn note(&mut self, process: Tid, event: &Event) {
        if let Kind::Probe { probe, args, stack } = event.kind
            && Some(probe) == self.probe
            && stack != StackId(0)
        {
            let end = Ns(event.at.0.saturating_add(args[0]));
            self.due.entry(process).or_default().insert((end, event.at, stack, args[1]));
        }
    }

    /// Gives each wait of a Go scheduler that the clock ended the stack of the sleep that was due.
    pub(super) fn place(&self, timeline: &mut Timeline) {
        if self.due.is_empty() {
            return;
        }
        let Timeline { tasks, blocks, sleeps, .. } = timeline;
        let waits = blocks.iter_mut().enumerate().filter(|(_, block)| may_be_a_sleep(block));
        for (index, block) in waits {
            let of_process = self.due.get(&tasks[block.task.index()].process);
            let begun = |(_, begin, ..): &&Sleep| *begin <= block.end;
            let next = of_process
                .and_then(|due| due.range((block.start, Ns::ZERO, StackId(0), 0)..).find(begun));
            if let Some((at, begin, stack, goroutine)) = next
                && *at <= block.end + EARLY
            {
                block.site = *stack;
                sleeps.insert(index, GoSleep { start: *begin, due: *at, goroutine: *goroutine });
            }
        }
    }
}

fn may_be_a_sleep(block: &Block) -> bool {
    matches!(block.waits_for, WaitsFor::Poll | WaitsFor::Futex)
        && block.woken_by == WokenBy::Interrupt(Interrupt::Timer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use deadweight_trace::Trace;

    /// A goroutine that sleeps 3 ms at 100 µs, and its thread's wait from 120 µs until `end`.
    fn site_of_wait(end: u64, by: &str) -> String {
        let text = format!(
            "task 1 app
             0 on
             100_000 probe go.sleep 3_000_000 0 from time.Sleep <- main.poll (main.go:7) <- main.main
             120_000 off blocked epoll_wait 4 from runtime.netpoll <- runtime.findRunnable
             {end} on woken-by {by}
             {end} back 0
             5_000_000 exit"
        );
        let trace = Trace::from_text(&text).unwrap();
        let timeline = Timeline::build(&trace);
        trace.symbols.functions(timeline.blocks[0].site).last().unwrap_or_default().to_owned()
    }

    #[test]
    fn a_wait_that_the_clock_ended_is_where_the_goroutine_went_to_sleep() {
        for end in [2_400_000, 3_110_000] {
            let clock = "interrupt : hrtimer_wakeup < asm_sysvec_apic_timer_interrupt";
            assert_eq!(site_of_wait(end, clock), "main.main", "{end}");
        }
    }

    #[test]
    fn a_wait_that_ended_before_or_by_an_event_keeps_its_place() {
        assert_eq!(
            site_of_wait(900_000, "interrupt : hrtimer_wakeup < asm_sysvec_apic_timer_interrupt"),
            "runtime.findRunnable"
        );
        assert_eq!(
            site_of_wait(3_110_000, "interrupt : asm_common_interrupt"),
            "runtime.findRunnable"
        );
    }
}
