//! Which writes wait until their data is stored, because their file was opened so; and calls on files that were opened
//! with some flag.

use crate::facts::Facts;
use crate::facts::call_site::{CallSite, Weights};
use crate::facts::processes::ProcessId;
use crate::timeline::descriptors::ObjectKind;
use crate::timeline::{Call, Timeline};
use deadweight_trace::ids::{CallId, StackId};
use deadweight_trace::syscall::{self, Arch};
use std::collections::{BTreeMap, BTreeSet};

/// Each write waits until its data is stored; a bit of `O_SYNC` too. From the kernel's uapi headers.
pub(crate) const O_DSYNC: u64 = 0o10_000;
/// The calls that open a file with flags among their arguments.
const OPENS: [&str; 2] = ["open", "openat"];
/// The calls that give an open file another number, and return that.
const DUPLICATES: [&str; 3] = ["dup", "dup2", "dup3"];
/// Calls that write to a file.
const WRITES: [&str; 6] = ["write", "writev", "pwrite64", "pwritev", "pwritev2", "sendfile"];

/// Those calls by number, each with the position of its flags.
fn opens(arch: Arch) -> BTreeMap<u16, usize> {
    let known = OPENS.iter();
    known
        .filter_map(|name| Some((syscall::number(arch, name)?, syscall::open_flags(name)?)))
        .collect()
}

/// The file `from` is called `to` as well: that is one of the set if `from` is.
fn duplicate<F: Ord>(files: &mut BTreeSet<F>, from: &F, to: F) {
    if files.contains(from) {
        files.insert(to);
    } else {
        files.remove(&to);
    }
}

/// The numbers of calls with these names.
fn numbers(arch: Arch, names: &[&str]) -> BTreeSet<u16> {
    names.iter().filter_map(|name| syscall::number(arch, name)).collect()
}

/// The descriptors that were opened with `O_DSYNC` or `O_SYNC`, while the calls are walked in order.
pub(crate) struct DurableFiles {
    opens: BTreeMap<u16, usize>,
    duplicates: BTreeSet<u16>,
    writes: BTreeSet<u16>,
    descriptors: BTreeSet<(ProcessId, u64)>,
}

impl DurableFiles {
    pub(crate) fn new(arch: Arch) -> Self {
        Self {
            opens: opens(arch),
            duplicates: numbers(arch, &DUPLICATES),
            writes: numbers(arch, &WRITES),
            descriptors: BTreeSet::new(),
        }
    }

    /// Takes the next call; whether it is a write that waits until its data is stored.
    pub(crate) fn is_durable(
        &mut self,
        timeline: &Timeline,
        process: ProcessId,
        call: &Call,
    ) -> bool {
        let args = || timeline.args(call);
        if let Some(flags) = self.opens.get(&call.nr) {
            if let Some(fd) = call.ret().and_then(|ret| u64::try_from(ret).ok()) {
                let descriptor = (process, fd);
                match args()[*flags] & O_DSYNC {
                    0 => self.descriptors.remove(&descriptor),
                    _ => self.descriptors.insert(descriptor),
                };
            }
            return false;
        }
        if self.descriptors.is_empty() {
            return false;
        }
        if self.duplicates.contains(&call.nr) {
            if let Some(fd) = call.ret().and_then(|ret| u64::try_from(ret).ok()) {
                duplicate(&mut self.descriptors, &(process, args()[0]), (process, fd));
            }
            return false;
        }
        if !self.writes.contains(&call.nr) {
            return false;
        }
        let kind = call.object().and_then(|object| timeline.objects.get(object)).map(|o| o.kind);
        let other = [ObjectKind::Socket, ObjectKind::Datagrams, ObjectKind::Pipe];
        self.descriptors.contains(&(process, args()[0]))
            && !kind.is_some_and(|kind| other.contains(&kind))
    }
}

/// The calls of a process on files that it opened with a flag.
pub(crate) struct OpenedWith {
    calls: BTreeSet<CallId>,
    /// Where it opened them.
    pub(crate) places: Weights,
}

impl OpenedWith {
    pub(crate) fn of(facts: &Facts<'_>, process: ProcessId, flag: u64) -> Self {
        let arch = facts.trace.meta.arch;
        let (opens, close) = (opens(arch), syscall::number(arch, "close"));
        let duplicates = numbers(arch, &DUPLICATES);
        let mut found = Self { calls: BTreeSet::new(), places: Weights::new() };
        let mut files: BTreeSet<u64> = BTreeSet::new();
        for (at, call) in facts.timeline.calls.iter().enumerate() {
            if facts.processes.of(call.task) != process {
                continue;
            }
            let args = facts.timeline.args(call);
            if let Some(position) = opens.get(&call.nr) {
                let Some(fd) = call.ret().and_then(|ret| u64::try_from(ret).ok()) else { continue };
                files.remove(&fd);
                if args[*position] & flag != 0 {
                    files.insert(fd);
                    if call.site != StackId(0) {
                        found.places.entry(CallSite::Stack(call.site)).or_default().amount += 1;
                    }
                }
            } else if !files.is_empty() && duplicates.contains(&call.nr) {
                let Some(fd) = call.ret().and_then(|ret| u64::try_from(ret).ok()) else { continue };
                duplicate(&mut files, &args[0], fd);
            } else if call.object().is_some() && files.contains(&args[0]) {
                found.calls.insert(CallId::at(at));
                if Some(call.nr) == close {
                    files.remove(&args[0]);
                }
            }
        }
        found
    }

    /// The calls on such files.
    pub(crate) fn calls(&self) -> impl Iterator<Item = CallId> {
        self.calls.iter().copied()
    }

    /// Whether a call is on such a file.
    pub(crate) fn holds(&self, call: CallId) -> bool {
        self.calls.contains(&call)
    }
}
