//! Whose turn it is on each connection: what was sent and received, in order.

use crate::facts::Facts;
use crate::facts::call_groups::CallGroup;
use crate::facts::processes::ProcessId;
use crate::timeline::Call;
use crate::timeline::descriptors::ObjectKind;
use crate::timeline::transfer::Transfer;
use deadweight_trace::ids::{CallId, StackId};
use deadweight_trace::syscall;
use deadweight_trace::units::Ns;
use std::collections::BTreeMap;

/// `IPPROTO_TCP`, a level of options, and its option `TCP_NODELAY`.
const TCP: u64 = 6;
const NO_DELAY: u64 = 1;
/// Sizes of `sockaddr_in` and `sockaddr_in6`: the addresses of the internet.
const ADDRESSES: [u64; 2] = [16, 28];

/// The time between two transfers on a connection, of which the second takes bytes.
pub(super) enum Turn<'s> {
    /// More of a message of which a part had arrived; the process had sent something since the last stall.
    Rest { since: Ns, until: Ns },
    /// The answer to what was sent over TCP in these parts.
    Answer {
        since: Ns,
        until: Ns,
        parts: &'s [StackId],
        /// Whether the process made the connection: else it is the server, and the next request came.
        connects: bool,
        /// Whether nothing came on the connection before.
        first: bool,
    },
}

/// What happened on a socket so far.
#[derive(Default)]
struct Socket {
    /// When the latest transfer ended.
    since: Ns,
    /// It took bytes: a message has begun.
    took: bool,
    /// The process has sent something since the last stall.
    asked: bool,
    /// The stacks of what was sent since.
    parts: Vec<StackId>,
    is_tcp: bool,
    connects: bool,
    /// Whether something came.
    has_taken: bool,
    /// How often `TCP_NODELAY` was set, to a value that is not recorded. Who sets it once switches it on; Go's
    /// library always does, and a program's own second call switches it off.
    no_delay: u32,
}

/// The turns on the sockets of a process.
#[derive(Default)]
pub(super) struct Turns {
    sockets: BTreeMap<u32, Socket>,
    /// Whether it takes connections at an address of the internet, as far as is known: a recording that began later has
    /// no trace of that.
    listens: bool,
}

impl Turns {
    /// Each turn in order; `stalls` says whether it was a stall.
    pub(super) fn walk(
        facts: &Facts<'_>,
        process: ProcessId,
        mut stalls: impl FnMut(Turn<'_>) -> bool,
    ) {
        let mut turns = Self { listens: facts.trace.meta.attached, ..Self::default() };
        for (index, call) in facts.timeline.calls.iter().enumerate() {
            let group = facts.call_groups.id(CallId::at(index));
            let Some(group) = group.map(|id| facts.call_groups.get(id)) else { continue };
            let Some(object) = call.object().filter(|_| group.process == process) else { continue };
            match group.transfer {
                Some(transfer) if group.kind == Some(ObjectKind::Socket) => {
                    if call.ret().is_some_and(|moved| moved > 0) {
                        turns.transfers(object, call, transfer, &mut stalls);
                    }
                }
                _ => turns.sets_up(object, group, facts.timeline.args(call)),
            }
        }
    }

    fn sets_up(&mut self, object: u32, group: &CallGroup, args: [u64; 4]) {
        match group.name {
            "bind" => self.listens |= ADDRESSES.contains(&syscall::address_length(&args)),
            "connect" => {
                let socket = self.sockets.entry(object).or_default();
                socket.connects = true;
                socket.is_tcp |= ADDRESSES.contains(&syscall::address_length(&args));
            }
            "setsockopt" if args[1] == TCP => {
                let socket = self.sockets.entry(object).or_default();
                socket.is_tcp = true;
                socket.no_delay += u32::from(args[2] == NO_DELAY);
            }
            _ => {}
        }
    }

    fn transfers(
        &mut self,
        object: u32,
        call: &Call,
        transfer: Transfer,
        stalls: &mut impl FnMut(Turn<'_>) -> bool,
    ) {
        let listens = self.listens;
        let socket = self.sockets.entry(object).or_default();
        match transfer {
            Transfer::Gives => {
                (socket.took, socket.asked) = (false, true);
                socket.parts.push(call.site);
            }
            Transfer::Takes => {
                let (since, until) = (socket.since, call.end);
                if socket.took && socket.asked {
                    socket.asked = !stalls(Turn::Rest { since, until });
                } else if !socket.parts.is_empty()
                    && (socket.is_tcp || listens && !socket.connects)
                    && socket.no_delay != 1
                {
                    let (parts, connects) = (&socket.parts[..], socket.connects);
                    let first = !socket.has_taken;
                    stalls(Turn::Answer { since, until, parts, connects, first });
                }
                (socket.took, socket.has_taken) = (true, true);
                socket.parts.clear();
            }
            Transfer::Asks | Transfer::Divides => return,
        }
        socket.since = call.end;
    }
}
