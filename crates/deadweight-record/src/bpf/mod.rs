//! BPF programs at tracepoints: they record the system calls of followed tasks, and count calls at
//! a high rate. They are assembled here, without a compiler.
//!
//! - In: the tasks to follow and to count.
//! - Out: records in perf's ring buffers.
//! - Must not know: which tasks belong to the recording; see `session`. `high_rate` chooses the
//!   tasks to count.
//!
//! The programs are attached to the tracepoints themselves in place of perf events: two events at
//! one tracepoint, or an event and a program, are called through a list, which costs a short call
//! more than the program. If the kernel refuses them, perf events record each call.

mod assembler;
mod btf;
mod call_counts;
mod call_records;
mod calls;
mod current_task;
pub(crate) mod high_rate;
pub(crate) mod layout;
mod pt_regs;
mod sched;
mod sys;

use crate::perf::schema::{Offsets, Role};
use assembler::{Instruction, Op, Program, R};
use btf::{Types, no_btf};
use layout::{FOLLOWED_WORDS, call_filter, call_record, task_entry};
use std::io;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use sys::{Attachment, LoadedProgram, Map, SharedMap};

/// Counts are output after this many calls, or after a millisecond.
pub(crate) const REPORT_AFTER: i32 = 512;
/// One in this many counted calls is timed, at entry and return. A prime, because programs repeat
/// themselves in other periods.
pub(crate) const TIME_ONE_IN: i32 = 29;
/// Ids in records are those of the initial PID namespace.
const INIT_PID_NAMESPACE: &str = "pid:[4026531836]";

/// Helper functions, `enum bpf_func_id`.
const MAP_LOOKUP_ELEM: i32 = 1;
const KTIME_GET_NS: i32 = 5;
const PERF_EVENT_OUTPUT: i32 = 25;
/// `BPF_F_CURRENT_CPU`.
const THIS_CPU: i32 = -1;

/// Registers in all programs: the tracepoint's arguments, the task's entry, the frame pointer.
const CONTEXT: R = R(6);
const TASK: R = R(9);
const STACK: R = R(10);

/// Arguments of the system call tracepoints: the caller's registers; the call's number, or its
/// result.
const REGISTERS: i16 = 0;
const VALUE: i16 = 8;

/// Outputs of the programs, each by an event of its own on each CPU.
pub(crate) const OUTPUT_ROLES: [Role; 4] =
    [Role::Enter, Role::Leave, Role::CallSite, Role::CallCounts];

/// The maps that the programs share, as descriptors.
#[derive(Copy, Clone, Debug)]
struct Maps {
    /// Counted tasks and their counts.
    tasks: i32,
    call_filters: i32,
    /// Followed tasks, one bit each.
    followed: i32,
    /// By CPU, the id of its current task if that is known and counted, otherwise 0.
    running: i32,
    /// When stacks of calls were taken.
    stack_times: i32,
    enters: i32,
    leaves: i32,
    sites: i32,
    counts: i32,
}

/// The attached programs and their maps. They end with this value.
#[derive(Debug)]
pub(crate) struct Programs {
    /// By [`task_entry`].
    pub(crate) tasks: SharedMap,
    /// By [`call_filter`].
    pub(crate) call_filters: SharedMap,
    followed: SharedMap,
    running: Map,
    stack_times: Map,
    /// In the order of [`OUTPUT_ROLES`].
    events: [Map; 4],
    _attached: Vec<Attachment>,
}

/// The programs at switches and wake-ups. They end with this value.
#[derive(Debug)]
pub(crate) struct SchedPrograms(#[expect(dead_code, reason = "closed at its end")] [Attachment; 2]);

/// Whether BPF programs may run here: loads and closes them.
///
/// # Errors
///
/// The kernel's refusal, or a PID namespace whose ids differ from those in records.
pub(crate) fn is_allowed() -> io::Result<()> {
    Programs::load(1).map(drop)
}

pub(crate) fn in_initial_pid_namespace() -> bool {
    std::fs::read_link("/proc/self/ns/pid").is_ok_and(|ns| ns.as_os_str() == INIT_PID_NAMESPACE)
}

impl Programs {
    /// Loads the programs without attaching them.
    fn load(cpus: usize) -> io::Result<(Self, [LoadedProgram; 3])> {
        if !in_initial_pid_namespace() {
            return Err(io::Error::other("this is not the initial PID namespace"));
        }
        let events = || Map::perf_event_array(cpus);
        let programs = Self {
            tasks: SharedMap::new(task_entry::SIZE, task_entry::TASKS)?,
            call_filters: SharedMap::new(call_filter::SIZE, call_filter::CALLS)?,
            followed: SharedMap::new(8, FOLLOWED_WORDS)?,
            running: Map::per_cpu_words()?,
            stack_times: Map::array(call_record::STACK_SLOTS)?,
            events: [events()?, events()?, events()?, events()?],
            _attached: Vec::new(),
        };
        let types = Types::of_kernel()?;
        let maps = programs.map_fds();
        let typed = |tracepoint: &str, code: Option<Vec<Instruction>>| {
            let id = types.definition(&format!("btf_trace_{tracepoint}"));
            LoadedProgram::typed_tracepoint(&code.ok_or_else(no_btf)?, id.ok_or_else(no_btf)?)
        };
        let pid_offset = types.member("task_struct", "pid").and_then(|at| i16::try_from(at).ok());
        let on_fork = pid_offset.and_then(|offset| current_task::on_fork(maps, offset));
        let loaded = [
            typed("sched_process_fork", on_fork)?,
            typed("sys_exit", calls::on_sys_exit(maps))?,
            typed("sys_enter", calls::on_sys_enter(maps))?,
        ];
        Ok((programs, loaded))
    }

    /// Attaches them for these CPUs. No task is followed yet.
    ///
    /// # Errors
    ///
    /// As [`is_allowed`].
    pub(crate) fn start(cpus: &[i32]) -> io::Result<Arc<Self>> {
        let last = cpus.iter().max().map_or(0, |cpu| cpu.cast_unsigned() as usize);
        let (mut programs, loaded) = Self::load(last + 1)?;
        let attached = loaded.iter().map(|loaded| loaded.attach(None));
        programs._attached = attached.collect::<io::Result<_>>()?;
        Ok(Arc::new(programs))
    }

    /// Attaches the programs at switches and wake-ups. Needed before calls are counted.
    ///
    /// # Errors
    ///
    /// The kernel's refusal.
    pub(crate) fn start_sched_programs(&self) -> io::Result<SchedPrograms> {
        let start = |name, code: Option<Vec<_>>| {
            let code = code.ok_or(io::ErrorKind::InvalidData)?;
            LoadedProgram::raw_tracepoint(&code)?.attach(Some(name))
        };
        Ok(SchedPrograms([
            start(c"sched_switch", sched::on_switch(self.map_fds()))?,
            start(c"sched_waking", sched::on_waking(self.map_fds()))?,
        ]))
    }

    /// Output of this role (one of [`OUTPUT_ROLES`]) on this CPU becomes a record of this event.
    ///
    /// # Errors
    ///
    /// The kernel's refusal.
    pub(crate) fn set_output(&self, role: Role, cpu: u32, event: RawFd) -> io::Result<()> {
        let at = OUTPUT_ROLES
            .iter()
            .position(|known| *known == role)
            .ok_or(io::ErrorKind::InvalidInput)?;
        self.events[at].set_event(cpu, event)
    }

    /// Records the calls of this task from now on, and of its later descendants.
    pub(crate) fn follow(&self, task: u32) {
        let (word, bit) = (task as usize / 64 * 8, 1 << (task % 64));
        if let Some(word) = self.followed.shared_word(word) {
            word.fetch_or(bit, Ordering::AcqRel);
        }
    }

    /// Records the calls of all tasks, or of none.
    pub(crate) fn follow_all(&self, all: bool) {
        let words = (0..FOLLOWED_WORDS).filter_map(|at| self.followed.shared_word(8 * at));
        words.for_each(|word| word.store(if all { u64::MAX } else { 0 }, Ordering::Release));
    }

    /// The offsets of fields in the records of calls.
    pub(crate) fn with_record_offsets(offsets: Offsets) -> Offsets {
        Offsets {
            enter_nr: call_record::NR,
            enter_args: call_record::ARGS,
            leave_ret: call_record::RESULT,
            ..offsets
        }
    }

    fn map_fds(&self) -> Maps {
        let [enters, leaves, sites, counts] = self.events.each_ref().map(Map::fd);
        Maps {
            tasks: self.tasks.fd(),
            call_filters: self.call_filters.fd(),
            followed: self.followed.fd(),
            running: self.running.fd(),
            stack_times: self.stack_times.fd(),
            enters,
            leaves,
            sites,
            counts,
        }
    }
}

/// An offset in a map's entry, which is small.
#[expect(clippy::cast_possible_truncation, clippy::cast_possible_wrap, reason = "at most 1024")]
const fn at(offset: usize) -> i16 {
    offset as i16
}

/// The same as an immediate value.
const fn imm(size: usize) -> i32 {
    at(size) as i32
}

const fn kind_at(index: usize, offset: usize) -> i16 {
    at(task_entry::FIRST_KIND + index * task_entry::KIND_SIZE + offset)
}

/// A program that has the tracepoint's arguments in [`CONTEXT`].
fn prologue() -> Program {
    let mut p = Program::default();
    p.op_reg(Op::Mov, CONTEXT, R(1));
    p
}

/// Register 0 becomes the entry whose key is at the top of the stack.
fn lookup(p: &mut Program, map: i32) {
    p.load_map(R(1), map);
    p.op_reg(Op::Mov, R(2), STACK);
    p.op_imm(Op::Add, R(2), -4);
    p.call(MAP_LOOKUP_ELEM);
}

/// Outputs the first `size` bytes of the task's entry.
fn output(p: &mut Program, events: i32, size: usize) {
    output_from(p, events, (TASK, 0), size);
}

/// Outputs `size` bytes from this address.
fn output_from(p: &mut Program, events: i32, (base, offset): (R, i16), size: usize) {
    p.op_reg(Op::Mov, R(1), CONTEXT);
    p.load_map(R(2), events);
    p.mov32_imm(R(3), THIS_CPU);
    p.op_reg(Op::Mov, R(4), base);
    p.op_imm(Op::Add, R(4), offset.into());
    p.op_imm(Op::Mov, R(5), imm(size));
    p.call(PERF_EVENT_OUTPUT);
}

#[cfg(test)]
pub(crate) mod tests;
