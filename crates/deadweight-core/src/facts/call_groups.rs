//! System calls in groups: the same call of the same program in a process on the same kind of object, counted once.
//!
//! Ten million calls become a few dozen groups; cost classes judge groups, never single calls. Time on the
//! path is charged by `attribute`.

use crate::facts::call_site::{CallSite, Weight, Weights};
use crate::facts::churn::Churn;
use crate::facts::connections::OF_CONNECTIONS;
use crate::facts::durable::DurableFiles;
use crate::facts::mergeable::{Mergeable, Moved, Turns};
use crate::facts::path_sample::PathSample;
use crate::facts::processes::{ProcessId, Processes};
use crate::timeline::descriptors::{ObjectKind, Origin};
use crate::timeline::transfer::Transfer;
use crate::timeline::{Call, Timeline};
use crate::visit_count;
use deadweight_trace::ids::{CallId, NameId, StackId};
use deadweight_trace::syscall::{self, Arch};
use deadweight_trace::units::Ns;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

/// Distinct sizes and objects that are remembered per group: enough to distinguish few from many.
pub(crate) const REMEMBERED: usize = 4096;

/// `whence` of an `lseek` from the start of the file, and of one from where the file is now.
const SEEK_SET: u64 = 0;
const SEEK_CUR: u64 = 1;

/// Calls that put bytes into what their descriptor refers to.
pub(crate) const WRITES: &[&str] = &["write", "writev", "sendto", "sendmsg", "splice", "sendfile"];

/// Calls that take bytes from what their descriptor refers to.
pub(crate) const READS: &[&str] = &["read", "readv", "recvfrom", "recvmsg"];

/// Whether the result of a call is the number of bytes that it moved. `sendmmsg` and `recvmmsg` return a number
/// of messages instead: how many bytes those had is not known.
pub(crate) fn returns_bytes(name: &str) -> bool {
    const MOVE: &[&str] = &[
        "read",
        "pread64",
        "readv",
        "preadv",
        "preadv2",
        "recvfrom",
        "recvmsg",
        "write",
        "pwrite64",
        "writev",
        "pwritev",
        "pwritev2",
        "sendto",
        "sendmsg",
        "sendfile",
        "splice",
        "tee",
        "vmsplice",
        "copy_file_range",
    ];
    MOVE.contains(&name)
}

/// An index into [`CallGroups::all`].
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct CallGroupId(pub(crate) u32);

/// All call groups of a timeline.
#[derive(Debug, Default)]
pub(crate) struct CallGroups {
    /// In order of their first call.
    pub(crate) all: Vec<CallGroup>,
    of_call: Vec<u32>,
    /// By process: its groups. A search through all groups for each process would take quadratic time on a
    /// script that starts thousands of programs.
    in_process: Vec<Vec<CallGroupId>>,
    /// By object: the groups that write to it.
    writing: BTreeMap<u32, Vec<CallGroupId>>,
    /// Which processes ask and answer each other.
    pub(crate) turns: Turns,
}

/// The same call of the same program in a process on the same kind of object.
#[derive(Clone, Debug)]
pub(crate) struct CallGroup {
    /// The calling process.
    pub(crate) process: ProcessId,
    /// Name of the call, `?` if the tables don't know it.
    pub(crate) name: &'static str,
    /// Which argument is the size asked for, if one is.
    size: Option<usize>,
    /// Which argument is a path, if one is.
    path: Option<usize>,
    /// Which argument is the descriptor, if one is.
    descriptor: Option<usize>,
    /// What it does with bytes.
    pub(crate) transfer: Option<Transfer>,
    /// Result of the latest call with a size.
    answer: Option<i64>,
    /// The object of the latest call.
    object: Option<u32>,
    /// Whether all its calls were made before main.
    pub(crate) starting: bool,
    /// Whether they give memory back that is taken again, or take it again.
    pub(crate) churns: bool,
    /// Whether they are writes that wait until their data is stored: to a file opened with `O_DSYNC` or `O_SYNC`.
    pub(crate) durable: bool,
    /// What the descriptor referred to, if there is one.
    pub(crate) kind: Option<ObjectKind>,
    /// Of [`OF_CONNECTIONS`]: which side made the connection.
    pub(crate) origin: Origin,
    /// Whether its descriptors were all standard input, output or error.
    pub(crate) standard: bool,
    /// Whether they were all standard error.
    pub(crate) standard_error: bool,
    /// The name of what the descriptor referred to, where the recorder read it.
    pub(crate) object_name: NameId,
    /// How many.
    pub(crate) calls: u64,
    /// How many of them the kernel counted together: what their descriptors referred to is not certain.
    pub(crate) counted: u64,
    /// The paths of those of them that have a number for it, see [`syscall::PATH_NUMBER`].
    pub(crate) paths: PathSample,
    /// How many failed.
    pub(crate) failed: u64,
    /// How many transferred nothing (end of file).
    pub(crate) empty: u64,
    /// How many had to wait.
    pub(crate) blocked: u64,
    /// Whether its results are numbers of bytes.
    pub(crate) returns_bytes: bool,
    /// Bytes asked for. A call without a size among its arguments (`writev`) asks for what it moved.
    pub(crate) asked: u64,
    /// Smallest and largest size asked for; none if no size is known.
    pub(crate) sizes: Option<(u64, u64)>,
    /// Bytes transferred.
    pub(crate) bytes: u64,
    /// How many could have been merged with the one before, see [`Mergeable`].
    pub(crate) mergeable: u64,
    /// Distinct arguments of calls without a size (up to a limit).
    pub(crate) questions: BTreeSet<[u64; 4]>,
    /// Distinct results of calls with a size (up to a limit).
    pub(crate) answers: BTreeSet<i64>,
    /// Distinct objects (up to a limit).
    pub(crate) objects: BTreeSet<u32>,
    /// How many distinct objects there were. Beyond the limit of remembered ones: objects that appeared
    /// later than all before, as descriptors are opened and closed repeatedly.
    pub(crate) things: u64,
    newest: u32,
    /// See `inspect::same_files`: each of a process's groups is judged by all of them.
    pub(crate) distinct_paths: OnceLock<Option<u64>>,
    /// Time inside, waits included.
    pub(crate) time: Ns,
    /// Time inside without waits.
    pub(crate) busy: Ns,
    /// Stacks that calls were made from: those that were taken.
    pub(crate) sites: BTreeMap<StackId, u64>,
}

/// The first two of several processes: enough to know whether there is one besides a given process.
#[derive(Copy, Clone, Default)]
struct Two([Option<ProcessId>; 2]);

impl Two {
    fn add(&mut self, process: ProcessId) {
        if !self.0.contains(&Some(process))
            && let Some(free) = self.0.iter_mut().find(|known| known.is_none())
        {
            *free = Some(process);
        }
    }

    fn has_other_than(self, process: ProcessId) -> bool {
        self.0.iter().flatten().any(|known| *known != process)
    }
}

/// What the calls of a group have in common.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    process: ProcessId,
    /// Number of its program.
    program: usize,
    nr: u16,
    starting: bool,
    churns: bool,
    durable: bool,
    /// Kind and name of the object.
    kind: Option<ObjectKind>,
    name: NameId,
    /// See [`CallGroup::origin`].
    origin: Origin,
}

impl CallGroups {
    /// Counts all calls of the timeline.
    pub(crate) fn gather(
        timeline: &Timeline,
        processes: &Processes,
        churn: &Churn,
        arch: Arch,
    ) -> Self {
        let mut found = Self {
            all: Vec::new(),
            of_call: Vec::with_capacity(timeline.calls.len()),
            in_process: vec![Vec::new(); processes.all.len()],
            writing: BTreeMap::new(),
            turns: Turns::default(),
        };
        let mut index: BTreeMap<Key, u32> = BTreeMap::new();
        // Loops alternate between a few kinds of calls.
        let (mut latest, mut oldest) = ([None::<(Key, u32)>; 4], 0);
        let mut mergeable = Mergeable::new(timeline, processes, arch);
        let mut churning = churn.calls().iter().peekable();
        let mut files = DurableFiles::new(arch);
        let of_connections = OF_CONNECTIONS.map(|name| syscall::number(arch, name));
        for (at, call) in (0..).map(CallId::at).zip(&timeline.calls) {
            let churns = churning.next_if_eq(&&at).is_some();
            let durable = files.is_durable(timeline, processes.of(call.task), call);
            let sided = of_connections.contains(&Some(call.nr));
            let key = Key { churns, durable, ..key(timeline, processes, call, sided) };
            let known = latest.iter().flatten().find(|(k, _)| *k == key).map(|(_, id)| *id);
            let id = known.unwrap_or_else(|| {
                let id = *index.entry(key).or_insert_with(|| {
                    found.all.push(CallGroup::new(key, arch));
                    u32::try_from(found.all.len() - 1).unwrap_or(u32::MAX)
                });
                latest[oldest] = Some((key, id));
                oldest = (oldest + 1) % latest.len();
                id
            });
            found.of_call.push(id);
            let group = &mut found.all[id as usize];
            group.count(timeline, call);
            if let Some(moved) = group.moved(timeline, call) {
                group.mergeable += mergeable.count(&moved);
            }
        }
        found.turns = mergeable.into_turns();
        for block in &timeline.blocks {
            let Some(group) = block.call.and_then(|call| found.id(call)) else { continue };
            let group = &mut found.all[group.0 as usize];
            group.blocked += 1;
            group.busy -= block.end - block.start;
        }
        for (id, group) in (0u32..).map(CallGroupId).zip(&found.all) {
            if let Some(call_groups) = found.in_process.get_mut(group.process.0 as usize) {
                call_groups.push(id);
            }
            if WRITES.contains(&group.name) {
                for object in &group.objects {
                    found.writing.entry(*object).or_default().push(id);
                }
            }
        }
        found
    }

    /// The groups that write to the objects of this one.
    pub(crate) fn writing(&self, group: &CallGroup) -> impl Iterator<Item = &CallGroup> {
        let writing = group.objects.iter().filter_map(|object| self.writing.get(object));
        writing.flatten().map(|id| self.get(*id)).inspect(|_| visit_count::visit(1))
    }

    /// The group of a call.
    pub(crate) fn id(&self, call: CallId) -> Option<CallGroupId> {
        self.of_call.get(call.index()).map(|id| CallGroupId(*id))
    }

    /// The group behind `id`.
    pub(crate) fn get(&self, id: CallGroupId) -> &CallGroup {
        &self.all[id.0 as usize]
    }

    /// The groups of one process after its start, with their ids.
    pub(crate) fn of_process(
        &self,
        process: ProcessId,
    ) -> impl Iterator<Item = (CallGroupId, &CallGroup)> {
        self.all_of_process(process).filter(|(_, f)| !f.starting)
    }

    /// The groups of one process that began before a program's own code ran.
    pub(crate) fn of_start(&self, process: ProcessId) -> impl Iterator<Item = &CallGroup> {
        self.all_of_process(process).map(|(_, group)| group).filter(|group| group.starting)
    }

    fn all_of_process(
        &self,
        process: ProcessId,
    ) -> impl Iterator<Item = (CallGroupId, &CallGroup)> {
        let call_groups = self.in_process.get(process.0 as usize).map_or(&[][..], Vec::as_slice);
        visit_count::visit(call_groups.len());
        call_groups.iter().map(|id| (*id, self.get(*id)))
    }

    /// The processes that read what another process, one that is `own`, writes, or write what such a
    /// process reads.
    pub(crate) fn peers(&self, own: impl Fn(ProcessId) -> bool) -> BTreeSet<ProcessId> {
        let mut ends: BTreeMap<u32, [Two; 2]> = BTreeMap::new();
        let of = |group: &CallGroup| {
            [READS.contains(&group.name) && !group.starting, WRITES.contains(&group.name)]
        };
        for group in self.all.iter().filter(|group| own(group.process)) {
            visit_count::visit(group.objects.len());
            for (end, _) in of(group).into_iter().enumerate().filter(|(_, used)| *used) {
                for object in &group.objects {
                    ends.entry(*object).or_default()[end].add(group.process);
                }
            }
        }
        let talks = |group: &&CallGroup| {
            let [reads, writes] = of(group);
            let mut ends = group.objects.iter().filter_map(|object| ends.get(object));
            ends.any(|[readers, writers]| {
                reads && writers.has_other_than(group.process)
                    || writes && readers.has_other_than(group.process)
            })
        };
        self.all.iter().filter(talks).map(|group| group.process).collect()
    }

    /// How many different results reading files by path gave a process (0 if it read none).
    pub(crate) fn distinct_results(&self, process: ProcessId) -> usize {
        let mut answers: BTreeSet<i64> = BTreeSet::new();
        for (_, group) in self.of_process(process) {
            let reads = matches!(group.name, "read" | "pread64");
            if reads && group.objects.len() > 1 && group.per_object() <= 8 {
                answers.extend(group.answers.iter().filter(|a| **a > 0));
            }
        }
        answers.len()
    }
}

fn key(timeline: &Timeline, processes: &Processes, call: &Call, sided: bool) -> Key {
    let process = processes.of(call.task);
    let object = call.object().and_then(|o| timeline.objects.all.get(o as usize));
    let known = processes.all.get(process.0 as usize);
    let starting = known.is_some_and(|p| p.starting(call.start));
    let program = known.map_or(0, |p| p.program(call.start));
    Key {
        process,
        program,
        nr: call.nr,
        starting,
        churns: false,
        durable: false,
        kind: object.map(|o| o.kind),
        name: object.map_or(NameId(0), |o| o.name),
        origin: object.filter(|_| sided).map_or(Origin::Unknown, |o| o.origin),
    }
}

impl CallGroup {
    /// The call sites of all its calls, on the path or not, as far as stacks were taken.
    pub(crate) fn all_places(&self) -> Weights {
        let weight = |calls: u64| Weight { count: calls, amount: calls };
        self.sites.iter().map(|(site, calls)| (CallSite::Stack(*site), weight(*calls))).collect()
    }

    fn new(key: Key, arch: Arch) -> Self {
        let name = syscall::name(arch, key.nr).unwrap_or("?");
        Self {
            process: key.process,
            name,
            size: syscall::size(name),
            path: syscall::path(name),
            descriptor: syscall::descriptor(name),
            transfer: Transfer::of(name),
            returns_bytes: returns_bytes(name),
            answer: None,
            object: None,
            starting: key.starting,
            churns: key.churns,
            durable: key.durable,
            kind: key.kind,
            origin: key.origin,
            standard: true,
            standard_error: true,
            object_name: key.name,
            calls: 0,
            counted: 0,
            paths: PathSample::default(),
            failed: 0,
            empty: 0,
            blocked: 0,
            asked: 0,
            sizes: None,
            bytes: 0,
            mergeable: 0,
            questions: BTreeSet::new(),
            answers: BTreeSet::new(),
            objects: BTreeSet::new(),
            things: 0,
            newest: 0,
            distinct_paths: OnceLock::new(),
            time: Ns::ZERO,
            busy: Ns::ZERO,
            sites: BTreeMap::new(),
        }
    }

    fn count(&mut self, timeline: &Timeline, call: &Call) {
        let times = call.times();
        self.calls += times;
        self.counted += u64::from(call.counted);
        if let Some(at) = self.path.filter(|_| call.counted == 0) {
            let mut path = timeline.args(call);
            if path[at] & syscall::PATH_NUMBER != 0 {
                path[at + 1..].fill(0);
                self.paths.add(path);
            }
        }
        self.time += call.end - call.start;
        self.busy += call.end - call.start;
        if call.site != StackId(0) {
            *self.sites.entry(call.site).or_default() += 1;
        }
        if call.object() != self.object
            && let Some(object) = call.object()
        {
            let new = if self.objects.len() < REMEMBERED {
                self.objects.insert(object)
            } else {
                object > self.newest
            };
            self.things += u64::from(new);
            self.newest = self.newest.max(object);
        }
        self.object = call.object();
        let descriptor = self.descriptor.map(|fd| timeline.args(call)[fd]);
        self.standard &= descriptor.is_some_and(|fd| fd <= 2);
        self.standard_error &= descriptor == Some(2);
        match call.ret() {
            Some(ret @ ..0) if ret > -4096 => self.failed += times,
            Some(0) => self.empty += times,
            _ => {}
        }
        let asked = self.size.map(|position| timeline.args(call)[position]);
        let got = call.ret().and_then(|ret| u64::try_from(ret).ok());
        if asked.is_some() || self.returns_bytes {
            let moved = got.unwrap_or(0);
            self.bytes = self.bytes.saturating_add(moved.saturating_mul(times));
        }
        if let Some(asked) = asked.or(got.filter(|_| self.returns_bytes)) {
            self.asked = self.asked.saturating_add(asked.saturating_mul(times));
            let (low, high) = self.sizes.unwrap_or((asked, asked));
            self.sizes = Some((low.min(asked), high.max(asked)));
        }
        if self.size.is_some() {
            // Most calls return what the one before returned.
            if call.ret() != self.answer && self.answers.len() < REMEMBERED {
                self.answers.extend(call.ret());
            }
            self.answer = call.ret();
        } else if self.questions.len() < REMEMBERED {
            self.questions.insert(timeline.args(call));
        }
    }

    /// One of its calls, if it moves bytes.
    fn moved<'c>(&self, timeline: &Timeline, call: &'c Call) -> Option<Moved<'c>> {
        let transfer = self.transfer?;
        let args = timeline.args(call);
        // A question where the file is now moves nothing.
        if self.name == "lseek" && args[1..3] == [0, SEEK_CUR] {
            return None;
        }
        let argument = |position: usize| args.get(position).copied();
        let leads = match self.name {
            "pread64" | "pwrite64" => Some(args[2]),
            "lseek" => Some(args[1]).filter(|_| args[2] == SEEK_SET),
            _ => None,
        };
        Some(Moved {
            call,
            process: self.process,
            transfer,
            kind: self.kind,
            descriptor: self.descriptor.and_then(argument).unwrap_or_default(),
            size: self.size.and_then(argument),
            offset: leads,
        })
    }

    /// Calls per object.
    pub(crate) fn per_object(&self) -> u64 {
        self.calls / self.things.max(1)
    }

    /// Mean size asked for.
    pub(crate) fn mean_asked(&self) -> u64 {
        self.asked / self.calls.max(1)
    }
}
