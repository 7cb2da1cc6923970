//! Pairs of pipes or sockets over which two processes take turns: what one writes to the first, the other reads, and
//! writes its answer to the second.
//!
//! The answer need not be waited for: on another CPU it may be there when it is asked for. It still divides what was
//! written before it from what is written after it.

use super::Transfer;
use crate::facts::processes::{ProcessId, Processes};
use crate::timeline::Timeline;
use crate::timeline::descriptors::ObjectKind;
use crate::timeline::latest::Latest;
use deadweight_trace::syscall::{self, Arch};
use std::collections::{BTreeMap, BTreeSet};

/// Pairs are not looked for among more connections of one process: it is a server.
const MOST: usize = 64;

/// Who reads from an object, and who writes to it.
#[derive(Default)]
struct Users {
    takers: BTreeSet<ProcessId>,
    givers: BTreeSet<ProcessId>,
}

/// Who takes turns, and over what.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    /// For each object that a process uses: the objects at which the other end of it answers, or asks.
    objects: BTreeMap<(ProcessId, u32), Vec<u32>>,
    /// The processes, each pair in both orders.
    pairs: BTreeSet<(ProcessId, ProcessId)>,
}

impl Turns {
    pub(super) fn gather(timeline: &Timeline, processes: &Processes, arch: Arch) -> Self {
        let users = users(timeline, processes, arch);
        let (mut taken, mut given) = (BTreeMap::new(), BTreeMap::new());
        for (object, users) in &users {
            let list = |of: &mut BTreeMap<ProcessId, Vec<u32>>, who: &BTreeSet<ProcessId>| {
                who.iter().for_each(|process| of.entry(*process).or_default().push(*object));
            };
            list(&mut taken, &users.takers);
            list(&mut given, &users.givers);
        }
        let mut turns = Self::default();
        for (process, taken) in &taken {
            let Some(given) = given.get(process) else { continue };
            if taken.len().max(given.len()) > MOST {
                continue;
            }
            for (from, to) in taken.iter().flat_map(|from| given.iter().map(move |to| (*from, *to)))
            {
                let answers =
                    |other: &ProcessId| other != process && users[&from].givers.contains(other);
                let others: Vec<ProcessId> =
                    users[&to].takers.iter().copied().filter(|other| answers(other)).collect();
                if from == to || others.is_empty() {
                    continue;
                }
                turns.objects.entry((*process, from)).or_default().push(to);
                turns.objects.entry((*process, to)).or_default().push(from);
                for other in others {
                    turns.pairs.extend([(*process, other), (other, *process)]);
                }
            }
        }
        turns
    }

    /// The objects that a process uses in turns with this one.
    pub(crate) fn with(&self, process: ProcessId, object: u32) -> &[u32] {
        if self.objects.is_empty() {
            return &[];
        }
        self.objects.get(&(process, object)).map_or(&[], Vec::as_slice)
    }

    /// The processes that ask and answer others.
    pub(crate) fn processes(&self) -> BTreeSet<ProcessId> {
        self.pairs.iter().map(|(one, _)| *one).collect()
    }

    /// Those that a process takes turns with.
    pub(crate) fn others(&self, one: ProcessId) -> impl Iterator<Item = ProcessId> {
        let pairs = (one, ProcessId(0))..=(one, ProcessId(u32::MAX));
        self.pairs.range(pairs).map(|(_, other)| *other)
    }

    /// Whether two processes ask and answer each other.
    pub(crate) fn are_between(&self, one: ProcessId, other: ProcessId) -> bool {
        self.pairs.contains(&(one, other))
    }
}

/// Who uses which pipe or socket.
fn users(timeline: &Timeline, processes: &Processes, arch: Arch) -> BTreeMap<u32, Users> {
    let transfer = |nr| syscall::name(arch, nr).and_then(Transfer::of);
    let transfers: Vec<Option<Transfer>> = (0..512).map(transfer).collect();
    let mut users: BTreeMap<u32, Users> = BTreeMap::new();
    let mut latest = Latest::default();
    for call in &timeline.calls {
        let transfer = transfers.get(usize::from(call.nr)).copied().flatten();
        let (Some(transfer), Some(object)) = (transfer, call.object()) else { continue };
        let process = processes.of(call.task);
        let kind = timeline.objects.get(object).map(|object| object.kind);
        if call.ret().is_none_or(|moved| moved <= 0)
            || !matches!(kind, Some(ObjectKind::Pipe | ObjectKind::Socket | ObjectKind::Datagrams))
            || !latest.is_new((process, object, transfer))
        {
            continue;
        }
        let of_object = users.entry(object).or_default();
        match transfer {
            Transfer::Takes => of_object.takers.insert(process),
            Transfer::Gives => of_object.givers.insert(process),
            Transfer::Asks | Transfer::Divides => false,
        };
    }
    users
}
