//! Replies that stall because of Nagle's algorithm and delayed ACKs.
//!
//! A peer that sends a reply in two small parts holds the second one back until the first is acknowledged
//! (Nagle's algorithm, RFC 896). The receiver delays the ACK in the hope of data of its own: Linux for 40 ms
//! (`TCP_DELACK_MIN`), rounded up to the next timer tick. So each reply takes 40 ms, whatever the network.

use crate::facts::Facts;
use crate::facts::call_site::{CallSite, Weight, Weights};
use crate::facts::mergeable::Transfer;
use crate::facts::processes::ProcessId;
use crate::timeline::Block;
use crate::timeline::descriptors::ObjectKind;
use crate::timeline::kernel_stacks::WaitsFor;
use deadweight_trace::ids::CallId;
use deadweight_trace::units::Ns;
use std::collections::BTreeMap;

/// How long an ACK is delayed: 40 ms, two ticks of a slow timer, and some delay of the receiver.
const DELAY: std::ops::RangeInclusive<u64> = 38_000_000..=49_000_000;
/// So many stalls are no chance ...
const MANY: u64 = 5;
/// ... if they are this part of the waits for the rest of a reply that are not short.
const MOST: f64 = 0.8;
/// A shorter wait is for a peer that is still sending.
const SHORT: Ns = Ns(5_000_000);

/// The waits on the path for the rest of a reply that an ACK held back.
#[derive(Debug, Default)]
pub(super) struct Stalls {
    pub(super) count: u64,
    pub(super) ns: Ns,
    pub(super) places: Weights,
}

/// What happened on a socket so far.
#[derive(Copy, Clone, Default)]
struct Socket {
    /// The latest transfer took bytes: a reply has begun.
    replies: bool,
    /// The program has sent something since the last stall.
    asked: bool,
}

impl Stalls {
    /// Of a process; none if there are few, or if other waits for the rest of a reply are as frequent.
    pub(super) fn of(facts: &Facts<'_>, process: ProcessId) -> Option<Self> {
        let waits = waits(facts, process);
        let fits = |wait: &&(Ns, Block)| DELAY.contains(&(wait.1.end - wait.1.start).0);
        if (waits.values().filter(fits).count() as u64) < MANY {
            return None;
        }
        let (mut sockets, mut stalls, mut others) = (BTreeMap::new(), Self::default(), 0_u64);
        for (index, call) in facts.timeline.calls.iter().enumerate() {
            let id = CallId::at(index);
            let Some(group) = facts.call_groups.id(id).map(|id| facts.call_groups.get(id)) else {
                continue;
            };
            let Some(object) = call.object().filter(|_| group.process == process) else { continue };
            if group.kind != Some(ObjectKind::Socket) {
                continue;
            }
            let socket: &mut Socket = sockets.entry(object).or_default();
            match (group.transfer, waits.get(&id)) {
                (Some(Transfer::Gives), _) => *socket = Socket { replies: false, asked: true },
                (Some(Transfer::Takes), Some((ns, block))) if socket.replies && socket.asked => {
                    let length = block.end - block.start;
                    if DELAY.contains(&length.0) {
                        stalls.add(CallSite::Stack(facts.site_of(block)), *ns);
                        socket.asked = false;
                    } else if length > SHORT {
                        others += 1;
                    }
                }
                (Some(Transfer::Takes), _) => socket.replies = true,
                _ => {}
            }
        }
        let part = stalls.count as f64 / (stalls.count + others).max(1) as f64;
        (stalls.count >= MANY && part >= MOST).then_some(stalls)
    }

    fn add(&mut self, site: CallSite, ns: Ns) {
        self.count += 1;
        self.ns += ns;
        let weight = self.places.entry(site).or_default();
        *weight = Weight { count: weight.count + 1, amount: weight.amount + ns.0 };
    }
}

/// The waits of a process on the path for data of a socket, each with its part on the path, by its call.
fn waits(facts: &Facts<'_>, process: ProcessId) -> BTreeMap<CallId, (Ns, Block)> {
    let waits = facts.path.waits(facts.timeline);
    let own = waits.filter(|(_, _, task, _)| facts.processes.of(*task) == process);
    own.filter_map(|(from, to, _, block)| {
        let block = facts.timeline.blocks[block as usize];
        let call = block.call.filter(|_| block.waits_for == WaitsFor::SocketData)?;
        Some((call, (to - from, block)))
    })
    .collect()
}
