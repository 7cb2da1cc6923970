//! What a wait was for, where only the rest of the run shows it.
//!
//! A wait for events with a time-out (a server's `epoll_wait`, an idle worker's condition variable, a lock
//! with a time-out) ends by the clock while nobody has anything for it: an event would have ended it. Such
//! a wait is a [`WaitsFor::Tick`], if events ended the same wait at other times: on the same descriptor or
//! futex word, or from the same call chain. A read of a pipe that its readers also write to is for a
//! [`WaitsFor::Turn`]: the bytes in it are tokens (a job server), nobody computes them.
//!
//! A time-out that was the only end ever seen stays a sleep: that is polling.

use super::latest::Latest;
use super::{Block, Timeline, WokenBy};
use crate::timeline::descriptors::ObjectKind;
use crate::timeline::kernel_stacks::{Interrupt, WaitsFor};
use deadweight_trace::ids::{StackId, Tid};
use deadweight_trace::symbols::Symbols;
use deadweight_trace::syscall::{self, Arch};
use std::collections::{BTreeMap, BTreeSet};

/// Go's function that puts a goroutine to sleep: its thread then waits for the clock and for events.
pub(crate) const GO_SLEEP: &str = "time.Sleep";

/// What identifies a wait: its process, its call, and what it waits on or from where.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Same {
    Object(Tid, u16, u32),
    Word(Tid, u16, u64),
    Site(Tid, u16, StackId),
}

/// The waits that events ended.
#[derive(Debug, Default)]
pub(super) struct Events {
    ended: BTreeSet<Same>,
}

impl Events {
    /// To be called before waits of idle threads are charged to those that worked meanwhile: only wake-ups
    /// count.
    pub(super) fn gather(timeline: &Timeline) -> Self {
        let by_event = |block: &&Block| {
            is_for_events(block)
                && !block.by_signal
                && match block.woken_by {
                    WokenBy::Task(_) => true,
                    WokenBy::Interrupt(kind) => kind != Interrupt::Timer,
                    WokenBy::Nobody | WokenBy::Unseen => false,
                }
        };
        let blocks = timeline.blocks.iter().filter(by_event);
        Self { ended: blocks.flat_map(|block| same(timeline, block)).flatten().collect() }
    }

    /// Finds the ticks among the waits that the clock ended.
    pub(super) fn mark_ticks(&self, timeline: &mut Timeline, symbols: &Symbols) {
        if self.ended.is_empty() {
            return;
        }
        for index in 0..timeline.blocks.len() {
            let block = timeline.blocks[index];
            let timed_out = block.woken_by == WokenBy::Interrupt(Interrupt::Timer);
            let known = || same(timeline, &block).into_iter().flatten();
            if timed_out
                && is_for_events(&block)
                && known().any(|key| self.ended.contains(&key))
                && !symbols.functions(block.site).any(|name| name == GO_SLEEP)
            {
                timeline.blocks[index].tick = true;
            }
        }
    }
}

fn is_for_events(block: &Block) -> bool {
    use WaitsFor::{Futex, Poll, Signal, SocketData};
    matches!(block.waits_for, Poll | Futex | Signal | SocketData)
}

/// The identities of a wait.
fn same(timeline: &Timeline, block: &Block) -> [Option<Same>; 3] {
    let Some(call) = block.call.map(|call| &timeline.calls[call.index()]) else {
        return [None; 3];
    };
    let process = timeline.task(block.task).process;
    let word = timeline.args(call)[0];
    let futex = block.waits_for == WaitsFor::Futex && word != 0;
    let site = if block.site == StackId(0) { call.site } else { block.site };
    [
        call.object().map(|object| Same::Object(process, call.nr, object)),
        futex.then_some(Same::Word(process, call.nr, word)),
        (site != StackId(0)).then_some(Same::Site(process, call.nr, site)),
    ]
}

/// Finds the reads that wait for a token.
pub(super) fn mark_turns(timeline: &mut Timeline, arch: Arch) {
    if !timeline.blocks.iter().any(|block| block.waits_for == WaitsFor::PipeData) {
        return;
    }
    let number = |name: &&str| syscall::number(arch, name);
    let reads: Vec<u16> = ["read", "readv"].iter().filter_map(number).collect();
    let writes: Vec<u16> = ["write", "writev"].iter().filter_map(number).collect();
    let mut ends: BTreeMap<(u32, Tid), (bool, bool)> = BTreeMap::new();
    let mut latest = Latest::default();
    for call in &timeline.calls {
        let pipe = |object: &u32| {
            timeline.objects.get(*object).is_some_and(|object| object.kind == ObjectKind::Pipe)
        };
        let [is_read, is_write] = [&reads, &writes].map(|calls| calls.contains(&call.nr));
        if (is_read || is_write)
            && let Some(object) = call.object().filter(pipe)
        {
            let process = timeline.task(call.task).process;
            if !latest.is_new((object, process, is_read)) {
                continue;
            }
            let end = ends.entry((object, process)).or_default();
            *end = (end.0 | is_read, end.1 | is_write);
        }
    }
    let tokens: BTreeSet<u32> = ends
        .into_iter()
        .filter(|(_, (reads, writes))| *reads && *writes)
        .map(|((object, _), _)| object)
        .collect();
    for index in 0..timeline.blocks.len() {
        let block = &timeline.blocks[index];
        let object = block.call.and_then(|call| timeline.calls[call.index()].object());
        if block.waits_for == WaitsFor::PipeData && object.is_some_and(|o| tokens.contains(&o)) {
            timeline.blocks[index].waits_for = WaitsFor::Turn;
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::timeline::kernel_stacks::WaitsFor::{self, Futex, PipeData, Poll, Tick, Turn};
    use crate::timeline::{Block, Timeline};
    use deadweight_trace::Trace;

    const CLOCK: &str = "interrupt : hrtimer_wakeup < asm_sysvec_apic_timer_interrupt";

    fn waits(text: &str) -> Vec<WaitsFor> {
        let timeline = Timeline::build(&Trace::from_text(text).unwrap());
        timeline.blocks.iter().map(Block::purpose).collect()
    }

    /// Two waits of one task; the second one is ended by `last`.
    fn two(first: &str, second: &str, last: &str) -> Vec<WaitsFor> {
        waits(&format!(
            "cpus 2
             task 1 main
             0 cpu0 on
            10 fork 2 thread
            15 syscall epoll_create1 0
            20 back 4
            25 syscall epoll_create1 0
            30 back 5
           100 off blocked {first}
           800 cpu0 on woken-by {CLOCK}
           810 back 0
           900 off blocked {second}
          1800 cpu0 on woken-by {last}
          1810 back 1
          1900 exit
          1910 off dead
            task 2 main
            12 cpu1 on"
        ))
    }

    #[test]
    fn a_time_out_where_events_also_arrive_is_a_tick() {
        let epoll = "epoll_wait 4 1 100 : do_epoll_wait";
        assert_eq!(two(epoll, epoll, "2"), [Tick, Poll]);
        let lock = "futex 9 393 0 0 : futex_do_wait";
        assert_eq!(two(lock, "futex 8 393 0 0 : futex_do_wait", "2"), [Futex, Futex]);
        let take = |word| format!("futex {word} 393 0 0 : futex_do_wait from take_gil <- eval");
        assert_eq!(two(&take(9), &take(8), "2"), [Tick, Futex]);
    }

    #[test]
    fn a_time_out_that_no_event_ever_ended_is_refused() {
        let epoll = "epoll_wait 4 1 100 : do_epoll_wait";
        assert_eq!(two(epoll, epoll, CLOCK), [Poll, Poll]);
        assert_eq!(two(epoll, "epoll_wait 5 1 100 : do_epoll_wait", "2"), [Poll, Poll]);
        let signal = "2 : complete_signal < __x64_sys_kill";
        assert_eq!(two(epoll, epoll, signal), [Poll, Poll]);
    }

    /// A worker that reads a byte of a pipe; it or its parent writes to it.
    fn pipe(worker: &str) -> Vec<WaitsFor> {
        waits(&format!(
            "cpus 2
             task 1 make
             0 cpu0 on
            10 syscall pipe2 0 0
            20 back 0
            30 fork 2
           500 syscall write 4 1
           510 back 1
          1000 exit
             task 2 worker
            40 cpu1 on
           100 off blocked read 3 1 : anon_pipe_read
           505 cpu1 on woken-by 1
           506 back 1
           {worker}
           900 exit"
        ))
    }

    #[test]
    fn a_token_that_its_reader_writes_back_is_a_turn() {
        assert_eq!(pipe("600 syscall write 4 1\n610 back 1"), [Turn]);
    }

    #[test]
    fn bytes_that_are_only_read_are_refused() {
        assert_eq!(pipe("600 syscall write 1 1\n610 back 1"), [PipeData]);
    }
}
