//! Programs of ours in the kernel: they record the system calls of those that are followed, and count those that come
//! densely.
//!
//! They are at the tracepoints themselves, where perf's own events would be: two of those at one tracepoint, or one and
//! a program, are called through a list, which costs a small call more than the program. Where the kernel refuses
//! them, perf's events record each call.
//!
//! Not for who is followed or counted: that is `session` and `dense`.

mod assembler;
mod btf;
mod calls;
mod counted;
pub(crate) mod high_rate;
mod kernel;
pub(crate) mod layout;
mod recorded;
mod registers;
mod switches;
mod who;

use crate::perf::schema::{Offsets, Role};
use assembler::{Instruction, Op, Program, R};
use btf::{Types, undescribed};
use kernel::{Attached, Loaded, SharedTable, Table};
use layout::{FOLLOWED, entry, kind, recorded as record};
use std::io;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Dense calls are told after so many, or after a millisecond.
pub(crate) const MANY: i32 = 512;
/// Of dense calls one in so many is timed, at its entry and its return. A prime: programs repeat themselves, and seldom so.
pub(crate) const TIMED: i32 = 29;
/// The process ids in records are those of the machine in this namespace alone.
const MACHINE: &str = "pid:[4026531836]";

/// Functions of the kernel, `enum bpf_func_id`.
const LOOK_UP: i32 = 1;
const CLOCK: i32 = 5;
const TELL: i32 = 25;
/// `BPF_F_CURRENT_CPU`.
const THIS_CPU: i32 = -1;

/// What registers and the stack hold in all programs: the tracepoint's arguments, a task's entry.
const CONTEXT: R = R(6);
const TASK: R = R(9);
const STACK: R = R(10);

/// The arguments of the tracepoints of calls: where the caller's registers are; the call's number, or its result.
const REGISTERS: i16 = 0;
const VALUE: i16 = 8;

/// What programs tell, each by an event of its own on each CPU.
pub(crate) const TOLD: [Role; 4] = [Role::Enter, Role::Leave, Role::CallSite, Role::Dense];

/// The tables that the programs share, as descriptors.
#[derive(Copy, Clone, Debug)]
struct Tables {
    /// Whose calls are counted, and what was.
    tasks: i32,
    kinds: i32,
    /// Whose calls are told, a bit for each task.
    followed: i32,
    /// By CPU, the task that runs there if its calls are counted and that is known, otherwise 0.
    running: i32,
    /// When stacks of calls were taken.
    sited: i32,
    enters: i32,
    leaves: i32,
    sites: i32,
    told: i32,
}

/// The programs at work, and the tables that they share with us. They end with this.
#[derive(Debug)]
pub(crate) struct Programs {
    /// By [`entry`].
    pub(crate) tasks: SharedTable,
    /// By [`kind`].
    pub(crate) kinds: SharedTable,
    followed: SharedTable,
    running: Table,
    sited: Table,
    /// In the order of [`TOLD`].
    events: [Table; 4],
    _attached: Vec<Attached>,
}

/// More programs at work, at switches and wake-ups. They end with this.
#[derive(Debug)]
pub(crate) struct AtSwitches(#[expect(dead_code, reason = "closed at its end")] [Attached; 2]);

/// Whether programs of ours may run in the kernel here: loads them, and lets them go again.
///
/// # Errors
/// What the kernel refused with, or that process ids have another meaning here than in its records.
pub(crate) fn is_allowed() -> io::Result<()> {
    Programs::load(1).map(drop)
}

pub(crate) fn in_namespace_of_machine() -> bool {
    std::fs::read_link("/proc/self/ns/pid").is_ok_and(|ns| ns.as_os_str() == MACHINE)
}

impl Programs {
    /// They are not at work yet.
    fn load(cpus: usize) -> io::Result<(Self, [Loaded; 3])> {
        if !in_namespace_of_machine() {
            return Err(io::Error::other("process ids here are not those of the machine"));
        }
        let events = || Table::of_events(cpus);
        let programs = Self {
            tasks: SharedTable::new(entry::SIZE, entry::TASKS)?,
            kinds: SharedTable::new(kind::SIZE, kind::CALLS)?,
            followed: SharedTable::new(8, FOLLOWED)?,
            running: Table::of_words()?,
            sited: Table::of(record::SITED)?,
            events: [events()?, events()?, events()?, events()?],
            _attached: Vec::new(),
        };
        let types = Types::of_kernel()?;
        let tables = programs.tables();
        let typed = |tracepoint: &str, code: Option<Vec<Instruction>>| {
            let number = types.definition(&format!("btf_trace_{tracepoint}"));
            Loaded::at_typed(&code.ok_or_else(undescribed)?, number.ok_or_else(undescribed)?)
        };
        let own_number = types.member("task_struct", "pid").and_then(|at| i16::try_from(at).ok());
        let giving_birth = own_number.and_then(|number| who::giving_birth(tables, number));
        let loaded = [
            typed("sched_process_fork", giving_birth)?,
            typed("sys_exit", calls::leaving(tables))?,
            typed("sys_enter", calls::entering(tables))?,
        ];
        Ok((programs, loaded))
    }

    /// Has them run on these CPUs. Nobody is followed yet.
    ///
    /// # Errors
    /// As [`is_allowed`].
    pub(crate) fn start(cpus: &[i32]) -> io::Result<Arc<Self>> {
        let last = cpus.iter().max().map_or(0, |cpu| cpu.cast_unsigned() as usize);
        let (mut programs, loaded) = Self::load(last + 1)?;
        let attached = loaded.iter().map(|loaded| loaded.attach(None));
        programs._attached = attached.collect::<io::Result<_>>()?;
        Ok(Arc::new(programs))
    }

    /// Has two more run where tasks leave their CPU and wake others: needed before any calls are counted.
    ///
    /// # Errors
    /// What the kernel refused with.
    pub(crate) fn start_at_switches(&self) -> io::Result<AtSwitches> {
        let start = |name, code: Option<Vec<_>>| {
            let code = code.ok_or(io::ErrorKind::InvalidData)?;
            Loaded::at_raw_tracepoint(&code)?.attach(Some(name))
        };
        Ok(AtSwitches([
            start(c"sched_switch", switches::switching(self.tables()))?,
            start(c"sched_waking", switches::waking(self.tables()))?,
        ]))
    }

    /// What is told on this CPU in this role (one of [`TOLD`]) becomes a record of this event.
    ///
    /// # Errors
    /// What the kernel refused with.
    pub(crate) fn tell(&self, role: Role, cpu: u32, event: RawFd) -> io::Result<()> {
        let at = TOLD.iter().position(|told| *told == role).ok_or(io::ErrorKind::InvalidInput)?;
        self.events[at].set_event(cpu, event)
    }

    /// The calls of this task are told from now on, and those of all who are born of it.
    pub(crate) fn follow(&self, task: u32) {
        let (word, bit) = (task as usize / 64 * 8, 1 << (task % 64));
        if let Some(word) = self.followed.shared_word(word) {
            word.fetch_or(bit, Ordering::AcqRel);
        }
    }

    /// The calls of everybody are told, or of nobody.
    pub(crate) fn follow_all(&self, all: bool) {
        let words = (0..FOLLOWED).filter_map(|at| self.followed.shared_word(8 * at));
        words.for_each(|word| word.store(if all { u64::MAX } else { 0 }, Ordering::Release));
    }

    /// Where what is told of a call has its fields.
    pub(crate) fn place(offsets: Offsets) -> Offsets {
        Offsets {
            enter_nr: record::NR,
            enter_args: record::ARGS,
            leave_ret: record::RESULT,
            ..offsets
        }
    }

    fn tables(&self) -> Tables {
        let [enters, leaves, sites, told] = self.events.each_ref().map(Table::fd);
        Tables {
            tasks: self.tasks.fd(),
            kinds: self.kinds.fd(),
            followed: self.followed.fd(),
            running: self.running.fd(),
            sited: self.sited.fd(),
            enters,
            leaves,
            sites,
            told,
        }
    }
}

/// Of the tables' entries, offsets are small.
#[expect(clippy::cast_possible_truncation, clippy::cast_possible_wrap, reason = "at most 1024")]
const fn at(offset: usize) -> i16 {
    offset as i16
}

/// The same as a value.
const fn whole(size: usize) -> i32 {
    at(size) as i32
}

const fn kind_at(index: usize, offset: usize) -> i16 {
    at(entry::FIRST_KIND + index * entry::KIND_SIZE + offset)
}

/// A program, whose tracepoint's arguments are where [`CONTEXT`] says.
fn begin() -> Program {
    let mut p = Program::default();
    p.with(Op::Set, CONTEXT, R(1));
    p
}

/// Register 0 becomes the entry with the number at the top of the stack.
fn look_up(p: &mut Program, table: i32) {
    p.map(R(1), table);
    p.with(Op::Set, R(2), STACK);
    p.by(Op::Add, R(2), -4);
    p.call(LOOK_UP);
}

/// Tells so many bytes of the task's entry.
fn tell(p: &mut Program, events: i32, size: usize) {
    tell_from(p, events, (TASK, 0), size);
}

/// Tells so many bytes from there.
fn tell_from(p: &mut Program, events: i32, (base, offset): (R, i16), size: usize) {
    p.with(Op::Set, R(1), CONTEXT);
    p.map(R(2), events);
    p.set_32(R(3), THIS_CPU);
    p.with(Op::Set, R(4), base);
    p.by(Op::Add, R(4), offset.into());
    p.by(Op::Set, R(5), whole(size));
    p.call(TELL);
}

#[cfg(test)]
pub(crate) mod tests;
