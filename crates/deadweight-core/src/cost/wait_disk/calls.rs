//! System calls by which a process makes the disk work: its syncs, and writes that wait.
//!
//! Not about how long they took: waits are charged time.

use super::{FREQUENT, is_sync};
use crate::facts::Facts;
use crate::facts::call_groups::WRITES;
use crate::facts::processes::ProcessId;
use deadweight_report::wording::things;
use deadweight_trace::ids::CallId;
use deadweight_trace::syscall;
use deadweight_trace::units::Ns;
use std::collections::BTreeMap;

/// Writes at an offset, besides [`WRITES`].
const WRITES_AT: &[&str] = &["pwrite64", "pwritev", "pwritev2"];
/// Calls that remove a file, put another in its place, or cut it off.
pub(super) const CHANGES_FILES: &[&str] =
    &["creat", "unlink", "unlinkat", "rename", "renameat", "renameat2", "ftruncate"];
/// Opening frees what the file held.
const O_TRUNC: u64 = 0o1000;
/// One in this many syncs must be of a thing that is synced over and over. The others are then part of the
/// same record, as the syncs of a journal.
const PARTS: u64 = 6;

/// The calls of all processes.
pub(super) struct DiskCalls {
    of_process: BTreeMap<ProcessId, OfProcess>,
}

/// The calls of one process after its start.
#[derive(Default)]
pub(super) struct OfProcess {
    /// Syncs by name.
    pub(super) by_name: BTreeMap<&'static str, u64>,
    /// How long they took together, from call to return, also those that nobody waited for.
    time: Ns,
    /// Bytes written to what is synced.
    pub(super) bytes: u64,
    /// Syncs of each thing, `None` for all files at once.
    of_object: BTreeMap<Option<u32>, u64>,
    written: BTreeMap<Option<u32>, u64>,
}

impl DiskCalls {
    pub(super) fn gather(facts: &Facts<'_>) -> Self {
        let mut found = Self { of_process: BTreeMap::new() };
        for (index, call) in facts.timeline.calls.iter().enumerate() {
            let id = CallId::at(index);
            let Some(group) = facts.call_groups.id(id).map(|id| facts.call_groups.get(id)) else {
                continue;
            };
            let (name, process) = (group.name, group.process);
            let result = call.ret().and_then(|ret| u64::try_from(ret).ok());
            if is_write(name) {
                let of = found.of_process.entry(process).or_default();
                let bytes = result.unwrap_or(0).saturating_mul(call.times());
                *of.written.entry(call.object()).or_default() += bytes;
            } else if is_sync(name) && !group.starting {
                let of = found.of_process.entry(process).or_default();
                *of.by_name.entry(name).or_default() += call.times();
                of.time += call.end - call.start;
                *of.of_object.entry(call.object()).or_default() += call.times();
            }
        }
        for of in found.of_process.values_mut() {
            let everything = of.of_object.contains_key(&None);
            let synced = |object| everything || of.of_object.contains_key(object);
            let bytes = of.written.iter().filter(|(object, _)| synced(object));
            of.bytes = bytes.map(|(_, bytes)| *bytes).sum();
        }
        found
    }

    pub(super) fn of(&self, process: ProcessId) -> Option<&OfProcess> {
        self.of_process.get(&process)
    }
}

/// Bytes that a disk stores in a millisecond: a usual one, and a slow one.
pub(super) const USUAL: u64 = 500_000;
pub(super) const SLOW: u64 = 100_000;
/// With fewer bytes than this for each, a sync itself takes the time.
const LARGE: u64 = 64 << 10;

impl OfProcess {
    /// How long a disk needs to store all that was written, also by a single sync, where that matters beside the syncs
    /// themselves; `speed` is in bytes per millisecond.
    pub(super) fn stored_at(&self, speed: u64) -> Ns {
        let is_large = self.bytes / self.syncs().max(1) >= LARGE;
        if is_large { Ns((self.bytes / speed).saturating_mul(1_000_000)) } else { Ns::ZERO }
    }

    pub(super) fn syncs(&self) -> u64 {
        self.by_name.values().sum()
    }

    /// How long one takes, on average.
    pub(super) fn each(&self) -> Ns {
        Ns(self.time.0 / self.syncs().max(1))
    }

    /// Whether one thing is synced over and over. Files that are each synced once, when they are complete,
    /// are not.
    pub(super) fn is_per_record(&self) -> bool {
        let again = self.of_object.values().filter(|syncs| **syncs >= FREQUENT).sum::<u64>();
        again > 0 && again * PARTS >= self.syncs()
    }

    /// The most frequent call that waits for all data of a file, and how many such calls there are. If there
    /// are none: the call that only begins to write.
    pub(super) fn main_sync(&self) -> Option<(&'static str, u64)> {
        let full = || self.by_name.iter().filter(|(name, _)| **name != "sync_file_range");
        let (name, calls) =
            full().max_by_key(|(_, calls)| **calls).or(self.by_name.iter().next())?;
        Some((name, full().map(|(_, calls)| calls).sum::<u64>().max(*calls)))
    }

    /// Each call with its own number, `first` first.
    pub(super) fn wording(&self, first: &str) -> String {
        let mut names: Vec<_> = self.by_name.iter().collect();
        names.sort_by_key(|(name, calls)| (**name != first, std::cmp::Reverse(**calls)));
        let parts: Vec<String> = names
            .iter()
            .map(|(name, calls)| format!("{name} {}", things(**calls, "time")))
            .collect();
        parts.join(" and ")
    }
}

pub(super) fn is_write(name: &str) -> bool {
    WRITES.contains(&name) || WRITES_AT.contains(&name)
}

/// What to do about many calls of this sync.
pub(super) fn remedy(call: &str) -> String {
    if call == "sync_file_range" {
        return "It makes the kernel write early, and nothing durable: call it for larger ranges, or leave it to the kernel."
            .into();
    }
    format!(
        "Call {call} once per batch or when the file is complete; a crash then loses the records since the last {call}. \
         If each record must be durable, several writers can share one {call} (group commit; databases and servers have \
         a setting for it)."
    )
}

/// Whether a call gives blocks of a file free.
pub(super) fn frees(name: &str, args: [u64; 4]) -> bool {
    const FREES: &[&str] = &["close", "rmdir", "truncate", "dup2", "dup3"];
    FREES.contains(&name)
        || CHANGES_FILES.contains(&name)
        || syscall::open_flags(name).is_some_and(|at| args[at] & O_TRUNC != 0)
}
