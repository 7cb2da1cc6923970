//! BPF programs: they record what followed tasks do, and count calls at a high rate.
//!
//! - In: the tasks to follow and to count.
//! - Out: records in ring buffers of their own, and stacks in perf's.
//! - Must not know: which tasks belong to the recording; see `session`. `high_rate` chooses the
//!   tasks to count.
//!
//! The programs are written in C (`bpf/recorder.bpf.c`), and compiled when they change: building
//! needs no compiler for BPF. If the kernel refuses them, events of perf record the same.

mod btf;
pub(crate) mod high_rate;
mod kernel_types;
pub(crate) mod layout;
mod load;
mod object;
mod ring;
mod sys;

use crate::perf::schema::Role;
use crate::procfs::memory_budget::memory_left;
use kernel_types::KernelTypes;
use layout::{FOLLOWED_WORDS, STACK_SLOTS, STACK_TIMES_SIZE, call_filter, cpu_state, task_entry};
use load::Target;
use object::{Object, Value};
pub(crate) use ring::RecordRing;
use ring::Rings;
use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
pub(crate) use sys::Attachment;
use sys::{LoadedProgram, Map, SharedMap};

/// One in this many counted calls is timed, as in `bpf/counting.h`.
pub(crate) const TIME_ONE_IN: i32 = 29;
/// Ids in records are those of the initial PID namespace.
const INIT_PID_NAMESPACE: &str = "pid:[4026531836]";
/// The compiled programs; none for other architectures yet.
#[cfg(target_arch = "x86_64")]
const OBJECT: &[u8] = include_bytes!("../../bpf/recorder.x86.bpf.o");
#[cfg(not(target_arch = "x86_64"))]
const OBJECT: &[u8] = &[];
/// Identifies the compiled programs: the sum that `cargo xtask bpf` keeps.
#[cfg(target_arch = "x86_64")]
pub(crate) const PROGRAMS_ID: &str = include_str!("../../bpf/recorder.x86.sum").trim_ascii();
#[cfg(not(target_arch = "x86_64"))]
pub(crate) const PROGRAMS_ID: &str = "";

/// The tracepoints with programs. They are attached from the last to the first, and loaded from the first to the last:
/// the longest first.
const TRACEPOINTS: [&str; 10] = [
    "sys_enter",
    "sys_exit",
    "sched_switch",
    "sched_waking",
    "page_fault_user",
    "page_fault_kernel",
    "local_timer_entry",
    "local_timer_exit",
    "sched_process_exec",
    "sched_process_fork",
];
/// The programs at the ends of page faults, and at the start of `main`.
const FAULT_ENDS: [&str; 2] = ["perf_event/minor", "perf_event/major"];
const MAIN: &str = "uprobe.multi/main";
/// Tracepoints that not every architecture has.
const OPTIONAL: [&str; 2] = ["local_timer_entry", "local_timer_exit"];
/// Offsets of members that the programs read: name in the programs, structure, member.
const MEMBERS: [(&str, &str, &str); 12] = [
    ("task_pid", "task_struct", "pid"),
    ("task_tgid", "task_struct", "tgid"),
    ("task_comm", "task_struct", "comm"),
    ("task_pagefault_disabled", "task_struct", "pagefault_disabled"),
    ("bprm_filename", "linux_binprm", "filename"),
    ("task_files", "task_struct", "files"),
    ("files_fdt", "files_struct", "fdt"),
    ("fdt_max_fds", "fdtable", "max_fds"),
    ("fdt_fd", "fdtable", "fd"),
    ("file_inode", "file", "f_inode"),
    ("inode_ino", "inode", "i_ino"),
    ("inode_sb", "inode", "i_sb"),
];
/// Sizes of a ring in bytes, tried in this order: some kernels allow 4 MiB in all. Those of all CPUs take at most a
/// 32nd of the memory that is left.
const RING_SIZES: [usize; 4] = [8 << 20, 4 << 20, 2 << 20, 1 << 20];

/// User registers and stacks, each by an event of perf on each CPU.
pub(crate) const SITE_ROLES: [Role; 3] = [Role::CallSite, Role::FaultSite, Role::WaitSite];
/// Names of their maps in the programs.
const SITE_MAPS: [&str; 3] = ["call_sites", "fault_sites", "wait_sites"];

/// The attached programs and their maps. They end with this value.
#[derive(Debug)]
pub(crate) struct Programs {
    /// By [`task_entry`].
    pub(crate) tasks: SharedMap,
    /// By [`call_filter`].
    pub(crate) call_filters: SharedMap,
    followed: SharedMap,
    stack_times: Map,
    rings: Arc<Rings>,
    /// In the order of [`SITE_ROLES`].
    sites: [Map; 3],
    /// The event of each CPU that wakes the recorder.
    alarms: Map,
    /// At the ends of faults served from memory, and from storage.
    fault_ends: Vec<LoadedProgram>,
    /// None before Linux 6.6.
    main: Option<MainProgram>,
    attached: Vec<Attachment>,
}

/// The program for starts of `main`.
#[derive(Debug)]
pub(crate) struct MainProgram(LoadedProgram);

impl MainProgram {
    /// Records when followed tasks come to this place of a binary: where `main` begins, or where the C library is about
    /// to call it. Ends with the result. Takes the kernel some 10 ms.
    ///
    /// # Errors
    ///
    /// The kernel's refusal.
    pub(crate) fn attach(&self, path: &Path, offset: u64, common: bool) -> io::Result<Attachment> {
        let path = CString::new(path.as_os_str().as_bytes())?;
        self.0.attach_to_uprobe(&path, offset, common.into())
    }
}

/// Whether BPF programs may run here: loads and closes them.
///
/// # Errors
///
/// The kernel's refusal, or a PID namespace whose ids differ from those in records.
pub(crate) fn is_allowed() -> io::Result<()> {
    Programs::load(1, RING_SIZES[3], |_| ()).map(drop)
}

pub(crate) fn in_initial_pid_namespace() -> bool {
    std::fs::read_link("/proc/self/ns/pid").is_ok_and(|ns| ns.as_os_str() == INIT_PID_NAMESPACE)
}

impl Programs {
    /// Loads the programs without attaching them. Does `beside` as soon as the one for `main` is loaded.
    fn load<T: Send>(
        cpus: usize,
        ring_size: usize,
        beside: impl FnOnce(&MainProgram) -> T + Send,
    ) -> io::Result<(Self, Vec<LoadedProgram>, Option<T>)> {
        if !in_initial_pid_namespace() {
            return Err(io::Error::other("this is not the initial PID namespace"));
        }
        let sites = || Map::perf_event_array(cpus);
        let mut programs = Self {
            tasks: SharedMap::new(task_entry::SIZE, task_entry::TASKS)?,
            call_filters: SharedMap::new(call_filter::SIZE, call_filter::CALLS)?,
            followed: SharedMap::new(8, FOLLOWED_WORDS)?,
            stack_times: Map::array(STACK_TIMES_SIZE, STACK_SLOTS)?,
            rings: Arc::new(Rings::new(cpus, ring_size)?),
            sites: [sites()?, sites()?, sites()?],
            alarms: sites()?,
            fault_ends: Vec::new(),
            main: None,
            attached: Vec::new(),
        };
        let members = MEMBERS.map(|(_, structure, member)| (structure, member));
        let types = KernelTypes::find(&TRACEPOINTS, &members)?;
        let object = Object::read(OBJECT)?;
        let mut wanted = Vec::new();
        for tracepoint in TRACEPOINTS {
            let id = match types.tracepoint(tracepoint) {
                Err(_) if OPTIONAL.contains(&tracepoint) => continue,
                found => found?,
            };
            wanted.push((format!("tp_btf/{tracepoint}"), Target::Tracepoint(id)));
        }
        wanted.extend(FAULT_ENDS.map(|section| (section.to_owned(), Target::Event)));
        let value = |name: &str| programs.value(name, &types);
        let (mut loaded, main) = thread::scope(|scope| {
            let main = scope.spawn(|| {
                let code = object.program(MAIN, value).ok()?;
                let main = MainProgram(LoadedProgram::uprobes(&code).ok()?);
                let result = beside(&main);
                Some((main, result))
            });
            let loaded = load::load(&object, &wanted, value)?;
            Ok::<_, io::Error>((loaded, main.join().ok().flatten()))
        })?;
        programs.fault_ends = loaded.split_off(loaded.len() - FAULT_ENDS.len());
        let (main, result) = main.unzip();
        programs.main = main;
        Ok((programs, loaded, result))
    }

    /// What stands for a name in the programs.
    fn value(&self, name: &str, types: &KernelTypes) -> Option<Value> {
        if let Some((_, structure, member)) = MEMBERS.iter().find(|(known, ..)| *known == name) {
            return types.offset(structure, member).map(|offset| Value::Number(offset.into()));
        }
        if let Some(at) = SITE_MAPS.iter().position(|known| *known == name) {
            return Some(Value::Map(self.sites[at].fd()));
        }
        Some(Value::Map(match name {
            "ring_mask" => return Some(Value::Number(self.rings.size as u64 - 1)),
            "cpus" => self.rings.cpus.fd(),
            "rings" => self.rings.memory.fd(),
            "followed" => self.followed.fd(),
            "tasks" => self.tasks.fd(),
            "call_filters" => self.call_filters.fd(),
            "stack_times" => self.stack_times.fd(),
            "alarms" => self.alarms.fd(),
            _ => return None,
        }))
    }

    /// Attaches them for these CPUs. No task is followed yet, and nothing is recorded.
    ///
    /// # Errors
    ///
    /// As [`is_allowed`], or if memory is short: the more that is recorded in a time, the more has to wait for the
    /// decoder. Then events of perf record.
    ///
    /// Does `beside` at the same time, with the program for `main`. No result if there is none.
    pub(crate) fn start<T: Send>(
        cpus: &[i32],
        beside: impl FnMut(&MainProgram) -> T + Send,
    ) -> io::Result<(Arc<Self>, Option<T>)> {
        let most = usize::try_from(memory_left() / 32).unwrap_or(usize::MAX);
        Self::start_within(cpus, most / (last_of(cpus) + 1), beside)
    }

    /// The same, with this much memory for each ring.
    fn start_within<T: Send>(
        cpus: &[i32],
        most: usize,
        mut beside: impl FnMut(&MainProgram) -> T + Send,
    ) -> io::Result<(Arc<Self>, Option<T>)> {
        let last = last_of(cpus);
        let mut sizes = RING_SIZES.into_iter().filter(|size| *size <= most).peekable();
        let (mut programs, loaded, result) = loop {
            let size = sizes.next().ok_or(io::ErrorKind::OutOfMemory)?;
            match Self::load(last + 1, size, &mut beside) {
                Err(error) if too_large(&error) && sizes.peek().is_some() => {}
                other => break other?,
            }
        };
        let attached = loaded.iter().rev().map(LoadedProgram::attach);
        programs.attached = attached.collect::<io::Result<_>>()?;
        Ok((Arc::new(programs), result))
    }

    /// The ring of this CPU.
    pub(crate) fn ring(&self, cpu: u32) -> RecordRing {
        RecordRing::new(self.rings.clone(), cpu)
    }

    /// Starts or stops recording, on all CPUs.
    pub(crate) fn record(&self, on: bool) {
        self.set_each_cpu(cpu_state::RECORDS, on.into());
    }

    /// Whether user stacks are taken.
    pub(crate) fn take_stacks(&self, on: bool) {
        self.set_each_cpu(cpu_state::STACKS_UNTIL, if on { 0 } else { u64::MAX });
    }

    fn set_each_cpu(&self, member: usize, value: u64) {
        let cpus = self.rings.cpus.entries();
        let word = |cpu| self.rings.cpus.shared_word(cpu * cpu_state::SIZE + member);
        let words = (0..cpus).filter_map(word);
        words.for_each(|word| word.store(value, Ordering::Release));
    }

    /// Stacks of this role (one of [`SITE_ROLES`]) on this CPU become records of this event.
    ///
    /// # Errors
    ///
    /// The kernel's refusal.
    pub(crate) fn set_sites(&self, role: Role, cpu: u32, event: RawFd) -> io::Result<()> {
        let at = SITE_ROLES
            .iter()
            .position(|known| *known == role)
            .ok_or(io::ErrorKind::InvalidInput)?;
        self.sites[at].set_event(cpu, event)
    }

    /// Much in the ring of this CPU becomes a record of this event, which wakes who polls its ring.
    ///
    /// # Errors
    ///
    /// The kernel's refusal.
    pub(crate) fn set_alarm(&self, cpu: u32, event: RawFd) -> io::Result<()> {
        self.alarms.set_event(cpu, event)
    }

    /// The program for starts of `main`.
    pub(crate) fn main(&self) -> Option<&MainProgram> {
        self.main.as_ref()
    }

    /// The program for events that count faults served from memory, or from storage.
    pub(crate) fn fault_end(&self, major: bool) -> Option<RawFd> {
        self.fault_ends.get(usize::from(major)).map(AsRawFd::as_raw_fd)
    }

    /// Records this task from now on, and its later descendants.
    pub(crate) fn follow(&self, task: u32) {
        let (word, bit) = (task as usize / 64 * 8, 1 << (task % 64));
        if let Some(word) = self.followed.shared_word(word) {
            word.fetch_or(bit, Ordering::AcqRel);
        }
    }

    /// Records all tasks, or none.
    pub(crate) fn follow_all(&self, all: bool) {
        let words = (0..FOLLOWED_WORDS).filter_map(|at| self.followed.shared_word(8 * at));
        words.for_each(|word| word.store(if all { u64::MAX } else { 0 }, Ordering::Release));
    }
}

fn last_of(cpus: &[i32]) -> usize {
    cpus.iter().max().map_or(0, |cpu| cpu.cast_unsigned() as usize)
}

/// Whether the kernel has no room for the maps.
fn too_large(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::E2BIG | libc::ENOMEM | libc::EINVAL))
}

#[cfg(test)]
pub(crate) mod tests;
