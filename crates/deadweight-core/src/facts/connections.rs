//! Connections that a process makes again: it had one to the same peer before, and that one was closed.
//!
//! A kept connection would have served. Connections that are open at once, as a pool's, are not made again, nor are
//! those to other peers. The recorder notes a number for each peer, where it can: see
//! [`deadweight_trace::syscall::peer`].

use crate::facts::processes::{ProcessId, Processes};
use crate::timeline::descriptors::ObjectKind;
use crate::timeline::transfer::Transfer;
use crate::timeline::{Call, Timeline};
use deadweight_trace::syscall::{self, Arch};
use std::collections::BTreeMap;

/// `EINPROGRESS`: the connection is made while the program does something else.
const IN_PROGRESS: i64 = -115;

/// What is done with a connection besides making it, sending and receiving.
pub(crate) const OF_CONNECTIONS: [&str; 6] =
    ["close", "shutdown", "getsockname", "getpeername", "getsockopt", "setsockopt"];

/// The connections of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Connections {
    /// How many it made to peers that are known.
    pub(crate) made: u64,
    /// How many of them when one to the same peer had been closed, which was not used again since.
    pub(crate) again: u64,
    /// How many of those that were closed the peer had closed before.
    pub(crate) ended_by_peer: u64,
    /// How many it took from others.
    pub(crate) taken: u64,
    /// The peers: how many connections were made to each.
    pub(crate) peers: BTreeMap<u64, u64>,
}

/// The connections of each process that made or took one.
#[derive(Debug, Default)]
pub(crate) struct AllConnections(BTreeMap<ProcessId, Connections>);

/// A connection that is open.
#[derive(Default)]
struct Open {
    peer: u64,
    /// Whether one to the same peer could have been used in its place.
    again: bool,
    /// Whether bytes came or went.
    used: bool,
    /// Whether a read found its end.
    ended: bool,
}

/// The walk over all calls.
#[derive(Default)]
struct Walk {
    all: BTreeMap<ProcessId, Connections>,
    open: BTreeMap<(ProcessId, u32), Open>,
    /// Per process and peer: connections that were closed, and in whose place no other was made.
    closed: BTreeMap<(ProcessId, u64), u64>,
}

impl AllConnections {
    pub(crate) fn gather(timeline: &Timeline, processes: &Processes, arch: Arch) -> Self {
        let number = |name| syscall::number(arch, name);
        let [connect, close] = [number("connect"), number("close")];
        let accepts = [number("accept"), number("accept4")];
        let mut walk = Walk::default();
        for call in &timeline.calls {
            let nr = Some(call.nr);
            let process = || processes.of(call.task);
            if accepts.contains(&nr) {
                let taken = call.ret().is_some_and(|fd| fd >= 0);
                walk.of(process()).taken += if taken { call.times() } else { 0 };
            }
            let Some(object) = call.object() else { continue };
            if nr == connect {
                walk.connects((process(), object), timeline, call);
            } else if walk.open.is_empty() {
                // Most programs have none.
            } else if nr == close {
                walk.closes((process(), object));
            } else if let Some(open) = walk.open.get_mut(&(process(), object)) {
                open.transfers(call, arch);
            }
        }
        for ((process, _), open) in std::mem::take(&mut walk.open) {
            walk.counts(process, &open);
        }
        Self(walk.all)
    }

    /// Those of a process; none if it has none.
    pub(crate) fn of(&self, process: ProcessId) -> Option<&Connections> {
        self.0.get(&process)
    }

    /// All processes that made or took one.
    pub(crate) fn each(&self) -> impl Iterator<Item = (ProcessId, &Connections)> {
        self.0.iter().map(|(process, connections)| (*process, connections))
    }
}

impl Walk {
    fn of(&mut self, process: ProcessId) -> &mut Connections {
        self.all.entry(process).or_default()
    }

    fn connects(&mut self, at: (ProcessId, u32), timeline: &Timeline, call: &Call) {
        let Some(peer) = syscall::peer(&timeline.args(call)) else { return };
        let kind = timeline.objects.get(at.1).map(|object| object.kind);
        let made = matches!(call.ret(), Some(0 | IN_PROGRESS));
        // A program that asks with `connect` how a connection is going gets its answer from a second call.
        if kind == Some(ObjectKind::Socket) && made && !self.open.contains_key(&at) {
            let closed = self.closed.entry((at.0, peer)).or_default();
            let again = *closed > 0;
            *closed -= u64::from(again);
            self.open.insert(at, Open { peer, again, ..Open::default() });
        }
    }

    fn closes(&mut self, at: (ProcessId, u32)) {
        let Some(open) = self.open.remove(&at) else { return };
        if open.used || open.again {
            *self.closed.entry((at.0, open.peer)).or_default() += 1;
        }
        self.counts(at.0, &open);
    }

    /// Counts a connection that is closed, or still open at the end.
    fn counts(&mut self, process: ProcessId, open: &Open) {
        if !open.used {
            return;
        }
        let connections = self.of(process);
        connections.made += 1;
        connections.again += u64::from(open.again);
        connections.ended_by_peer += u64::from(open.ended);
        *connections.peers.entry(open.peer).or_default() += 1;
    }
}

impl Open {
    /// Notes what a call on it did.
    fn transfers(&mut self, call: &Call, arch: Arch) {
        let transfer = syscall::name(arch, call.nr).and_then(Transfer::of);
        let (Some(Transfer::Takes | Transfer::Gives), Some(moved)) = (transfer, call.ret()) else {
            return;
        };
        self.used |= moved > 0;
        self.ended |= moved == 0 && transfer == Some(Transfer::Takes);
    }
}
