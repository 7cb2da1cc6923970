//! Waits that Nagle's algorithm and a delayed ACK cause.
//!
//! A sender of a message in two small parts holds the second one back until the first is acknowledged (Nagle's
//! algorithm, RFC 896). The receiver delays the ACK in the hope of data of its own: Linux for 40 ms
//! (`TCP_DELACK_MIN`), rounded up to the next timer tick. So each message takes 40 ms, whatever the network. At the
//! receiver the wait follows the first part; at the sender it follows the last one and ends with the answer.

use super::sender::Sender;
use super::sockets::{Turn, Turns};
use crate::facts::Facts;
use crate::facts::call_site::{CallSite, Weight, Weights};
use crate::facts::processes::ProcessId;
use crate::timeline::kernel_stacks::{Interrupt, WaitsFor};
use crate::timeline::{Block, WokenBy};
use deadweight_trace::units::Ns;

/// How long an ACK is delayed: 40 ms, two ticks of a slow timer, and some delay of the receiver.
const DELAY: std::ops::RangeInclusive<u64> = 38_000_000..=49_000_000;
/// On a machine whose CPUs are busy the timer's work comes later: some of the waits, fewer than half, last up to this.
const LATE: Ns = Ns(60_000_000);
/// So many stalls are no chance ...
const MANY: u64 = 5;
/// ... if they are this part of the turns of their kind that are not short.
const MOST: f64 = 0.8;
/// A shorter wait is for a peer that is still sending, or answers.
const SHORT: Ns = Ns(5_000_000);
/// This part of a stall is a wait on the path: the rest is work.
const WAITED: f64 = 0.5;

/// The time on the path that an ACK held a message back.
#[derive(Debug, Default)]
pub(super) struct Stalls {
    pub(super) count: u64,
    pub(super) ns: Ns,
    pub(super) places: Weights,
    /// The process itself, if the messages are its own.
    pub(super) sender: Option<Sender>,
}

/// The turns of one kind that took long.
#[derive(Debug, Default)]
struct Long {
    stalls: Stalls,
    /// How many of the stalls took no longer than the delay.
    prompt: u64,
    others: u64,
}

/// The first messages of connections. Linux acknowledges the first data of a connection at once (`tcp_event_data_recv`
/// begins with quick ACKs): if the first answer takes as long as the others, the peer needs the time.
#[derive(Debug, Default)]
struct Begun {
    prompt: u64,
    late: u64,
}

impl Begun {
    fn count(&mut self, late: bool, first: bool) {
        *(if late { &mut self.late } else { &mut self.prompt }) += u64::from(first);
    }

    fn need_time(&self) -> bool {
        self.late > self.prompt
    }
}

impl Stalls {
    /// Of a process; none if there are few, or if other long turns are as frequent.
    pub(super) fn of(facts: &Facts<'_>, process: ProcessId) -> Option<Self> {
        // Few programs have any such wait, and many have millions of others.
        let blocks = facts.timeline.blocks.iter().filter(|block| {
            is_stall(block.end - block.start)
                && arrives(block)
                && facts.processes.of(block.task) == process
        });
        if (blocks.count() as u64) < MANY {
            return None;
        }
        let waits = Waits::of(facts, process);
        let (mut rests, mut whole) = (Long::default(), 0);
        let mut answers = Long::default();
        let (mut sender, mut begun) = (Sender::new(process), Begun::default());
        Turns::walk(facts, process, |turn| match turn {
            Turn::Rest { since, until } => rests.add(facts, waits.within(since, until)),
            Turn::Answer { since, until, parts, connects, first } if parts.len() > 1 => {
                let stalls = answers.add(facts, waits.within(since, until));
                begun.count(stalls, connects && first);
                if stalls {
                    sender.add(parts);
                }
                stalls
            }
            Turn::Answer { since, until, .. } => {
                whole += u64::from(waits.within(since, until).is_some_and(|wait| wait.stalls()));
                false
            }
        });
        // A peer that takes as long to answer a message in one part just needs the time.
        let needs_time = begun.need_time() || whole * 2 > answers.stalls.count;
        if answers.are_stalls() && !needs_time {
            return Some(Self { sender: Some(sender), ..answers.stalls });
        }
        rests.are_stalls().then_some(rests.stalls)
    }
}

impl Long {
    /// Counts a turn with its wait; says whether it stalled.
    fn add(&mut self, facts: &Facts<'_>, wait: Option<Wait>) -> bool {
        let Some(wait) = wait else { return false };
        if !self.counts(wait.length, wait.stalls()) {
            return false;
        }
        self.stalls.ns += wait.on_path;
        let site = CallSite::Stack(facts.site_of(&wait.last));
        let weight = self.stalls.places.entry(site).or_default();
        let amount = weight.amount + wait.on_path.0;
        *weight = Weight { count: weight.count + 1, amount };
        true
    }

    /// Counts a turn of this length; says whether it stalled.
    fn counts(&mut self, length: Ns, stalls: bool) -> bool {
        self.prompt += u64::from(stalls && DELAY.contains(&length.0));
        *(if stalls { &mut self.stalls.count } else { &mut self.others }) += 1;
        stalls
    }

    fn are_stalls(&self) -> bool {
        let all = (self.stalls.count + self.others).max(1);
        self.stalls.count >= MANY
            && self.prompt * 2 > self.stalls.count
            && self.stalls.count as f64 / all as f64 >= MOST
    }
}

/// The answers of a server that it sent in parts, if the next request of the connection came when an ACK was due.
pub(super) fn held_back_answers(facts: &Facts<'_>, process: ProcessId) -> Option<Sender> {
    let (mut answers, mut whole) = (Long::default(), 0);
    let mut sender = Sender::new(process);
    Turns::walk(facts, process, |turn| {
        let Turn::Answer { since, until, parts, connects: false, .. } = turn else { return false };
        let length = until - since;
        match parts.len() {
            _ if length <= SHORT => false,
            1 => {
                whole += u64::from(is_stall(length));
                false
            }
            _ => {
                let stalls = answers.counts(length, is_stall(length));
                if stalls {
                    sender.add(parts);
                }
                stalls
            }
        }
    });
    (answers.are_stalls() && whole * 2 <= answers.stalls.count).then_some(sender)
}

/// The waits of a process on the path for what arrives at its sockets: `(from, to, wait)`, in order.
struct Waits(Vec<(Ns, Ns, Block)>);

/// The waits of one turn.
struct Wait {
    /// From the transfer before to the end of the last wait.
    length: Ns,
    on_path: Ns,
    last: Block,
}

impl Wait {
    fn stalls(&self) -> bool {
        is_stall(self.length) && self.on_path.share_of(self.length) >= WAITED
    }
}

fn is_stall(length: Ns) -> bool {
    length.0 >= *DELAY.start() && length <= LATE
}

/// Whether the wait is for what arrives at a socket.
fn arrives(block: &Block) -> bool {
    match block.waits_for {
        WaitsFor::SocketData => true,
        WaitsFor::Poll => block.woken_by != WokenBy::Interrupt(Interrupt::Timer),
        _ => false,
    }
}

impl Waits {
    fn of(facts: &Facts<'_>, process: ProcessId) -> Self {
        let waits = facts.path.waits(facts.timeline);
        let own = waits.filter(|(_, _, task, _)| facts.processes.of(*task) == process);
        let found = own.filter_map(|(from, to, _, block)| {
            let block = facts.timeline.blocks[block as usize];
            arrives(&block).then_some((from, to, block))
        });
        Self(found.collect())
    }

    /// The waits between two transfers; none if they are short.
    fn within(&self, since: Ns, until: Ns) -> Option<Wait> {
        let first = self.0.partition_point(|(_, to, _)| *to <= since);
        let inside = || self.0[first..].iter().take_while(|(from, ..)| *from < until);
        let last = inside().last()?;
        let on_path = inside().map(|(from, to, _)| (*to).min(until) - (*from).max(since)).sum();
        let length = last.1.min(until) - since;
        (on_path > SHORT).then_some(Wait { length, on_path, last: last.2 })
    }
}
