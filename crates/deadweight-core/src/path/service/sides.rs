//! Which side asks on each socket of a program that serves: its peer, which is a client then, or the program itself.
//!
//! Who accepted a connection is asked on it, who made it asks. Where neither was recorded, the side that sends first
//! asks. But on a connection that was there before the recording an answer may be the first to be seen.

use crate::path::Subject;
use crate::timeline::descriptors::{ObjectKind, Origin};
use crate::timeline::transfer::Transfer;
use crate::timeline::{Call, Timeline};
use deadweight_trace::Trace;
use deadweight_trace::syscall;
use std::collections::{BTreeMap, BTreeSet};

/// The sockets of a program by the side that asks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Sides {
    /// The program asks: it made the connection.
    pub(super) own: BTreeSet<u32>,
    /// The peer asks.
    pub(super) peer: BTreeSet<u32>,
    /// It is not known which side asks.
    pub(super) unknown: BTreeSet<u32>,
}

impl Sides {
    pub(super) fn of(trace: &Trace, timeline: &Timeline, subject: &Subject) -> Self {
        let connect = syscall::number(trace.meta.arch, "connect");
        let connects = timeline.calls.iter().filter(|call| Some(call.nr) == connect);
        let mut sides =
            Self { own: connects.filter_map(Call::object).collect(), ..Self::default() };
        let mut gives_first = false;
        for (object, first) in first_transfers(trace, timeline, subject) {
            let Some(socket) = timeline.objects.get(object) else { continue };
            let takes = first == Transfer::Takes;
            match socket.origin {
                _ if sides.own.contains(&object) => {}
                Origin::Connected => _ = sides.own.insert(object),
                Origin::Accepted => _ = sides.peer.insert(object),
                Origin::Neither => {}
                Origin::Unknown if is_old(trace, timeline, socket.kind) => {
                    sides.unknown.insert(object);
                    gives_first |= !takes;
                }
                Origin::Unknown if takes => _ = sides.peer.insert(object),
                Origin::Unknown => {}
            }
        }
        // A program that was waiting for an answer had a client that waited, too: its answer would be the first there.
        if !gives_first {
            sides.peer.append(&mut sides.unknown);
        }
        sides
    }
}

/// Whether a socket of unknown origin may have been in use before the recording: then the first that is seen there may
/// be an answer. A recorder that records origins records those of all such connections.
fn is_old(trace: &Trace, timeline: &Timeline, kind: ObjectKind) -> bool {
    trace.meta.attached && !timeline.objects.origins_recorded && kind == ObjectKind::Socket
}

/// Whether the first bytes that the subject moved on each socket came or went.
fn first_transfers(
    trace: &Trace,
    timeline: &Timeline,
    subject: &Subject,
) -> BTreeMap<u32, Transfer> {
    let mut first = BTreeMap::new();
    for call in timeline.calls.iter().filter(|call| subject.owns(call.task)) {
        let kind = call.object().and_then(|object| timeline.objects.get(object)).map(|o| o.kind);
        let is_socket = matches!(kind, Some(ObjectKind::Socket | ObjectKind::Datagrams));
        let Some(object) = call.object().filter(|object| is_socket && !first.contains_key(object))
        else {
            continue;
        };
        let transfer = syscall::name(trace.meta.arch, call.nr).and_then(Transfer::of);
        let moves = matches!(transfer, Some(Transfer::Takes | Transfer::Gives));
        if let Some(transfer) = transfer.filter(|_| moves && call.ret().is_some_and(|ret| ret > 0))
        {
            first.insert(object, transfer);
        }
    }
    first
}
