//! Which side asks on each socket of a program that serves: its peer, which is a client then, or the program itself.
//!
//! Who accepted a connection is asked on it, who made it asks. Where neither was recorded, the side that sends first
//! asks. But on a connection that was there before the recording an answer may be the first to be seen. There only a
//! program that answers each time before it looks for more is a server to all: one that asks another server first has to
//! look for its answer.

use crate::path::Subject;
use crate::timeline::descriptors::{ObjectKind, Origin};
use crate::timeline::transfer::Transfer;
use crate::timeline::{Call, Timeline};
use deadweight_trace::Trace;
use deadweight_trace::ids::TaskId;
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

/// If this part of the answers on old connections comes straight, the program asks nobody on them.
const STRAIGHT: f64 = 0.95;

impl Sides {
    pub(super) fn of(trace: &Trace, timeline: &Timeline, subject: &Subject) -> Self {
        let objects = (0..).zip(&timeline.objects.all);
        let own = objects.filter(|(_, object)| object.origin == Origin::Connected);
        let mut sides = Self { own: own.map(|(at, _)| at).collect(), ..Self::default() };
        let (mut gives_first, mut answers, mut straight) = (false, 0, 0);
        for (object, usage) in Uses::of(trace, timeline, subject).sockets {
            let Some(socket) = timeline.objects.get(object) else { continue };
            match socket.origin {
                Origin::Connected | Origin::Neither => {}
                Origin::Accepted => _ = sides.peer.insert(object),
                Origin::Unknown if is_old(trace, timeline, socket.kind) => {
                    sides.unknown.insert(object);
                    gives_first |= usage.gives_first;
                    answers += usage.answers;
                    straight += usage.straight;
                }
                Origin::Unknown if !usage.gives_first => _ = sides.peer.insert(object),
                Origin::Unknown => {}
            }
        }
        // A program that was waiting for an answer had a client that waited, too: its answer would be the first there.
        if !gives_first || f64::from(straight) > f64::from(answers) * STRAIGHT {
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

/// What the subject did on a socket.
#[derive(Default)]
struct Use {
    /// Whether the first bytes were sent.
    gives_first: bool,
    /// How often it sent after it had received.
    answers: u32,
    /// How often without a look for anything else between.
    straight: u32,
}

/// The walk over all transfers of the subject on sockets.
#[derive(Default)]
struct Uses {
    sockets: BTreeMap<u32, Use>,
    /// How often each task looked for more: at many sockets, or at one for the answer to what it had sent there.
    looks: BTreeMap<TaskId, u32>,
    /// The latest transfer of a task on a socket, and how often the task had looked then.
    latest: BTreeMap<(TaskId, u32), (Transfer, u32)>,
}

impl Uses {
    fn of(trace: &Trace, timeline: &Timeline, subject: &Subject) -> Self {
        let mut uses = Self::default();
        let moves = |call: &Call| call.ret().is_some_and(|ret| ret > 0);
        for call in timeline.calls.iter().filter(|call| subject.owns(call.task)) {
            let transfer = syscall::name(trace.meta.arch, call.nr).and_then(Transfer::of);
            let object = call.object().and_then(|at| Some((at, timeline.objects.get(at)?.kind)));
            match (transfer, object) {
                (Some(Transfer::Asks), _) => *uses.looks.entry(call.task).or_default() += 1,
                (
                    Some(transfer @ (Transfer::Takes | Transfer::Gives)),
                    Some((object, ObjectKind::Socket | ObjectKind::Datagrams)),
                ) if moves(call) => uses.transfers(object, call, transfer),
                _ => {}
            }
        }
        uses
    }

    fn transfers(&mut self, object: u32, call: &Call, transfer: Transfer) {
        let gives = transfer == Transfer::Gives;
        let first = || Use { gives_first: gives, ..Use::default() };
        let socket = self.sockets.entry(object).or_insert_with(first);
        let looks = self.looks.entry(call.task).or_default();
        let latest = self.latest.get(&(call.task, object));
        match latest {
            Some((Transfer::Takes, at)) if gives && call.counted == 0 => {
                socket.answers += 1;
                socket.straight += u32::from(at == looks);
            }
            Some((Transfer::Gives, at)) if !gives && at == looks => *looks += 1,
            _ => {}
        }
        self.latest.insert((call.task, object), (transfer, *looks));
    }
}
