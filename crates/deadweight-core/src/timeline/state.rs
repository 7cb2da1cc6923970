//! What is known of tasks and CPUs while the events are walked: data only.
//!
//! `build` drives the walk; `births`, `switches`, `wakes`, `inside`, `counted` and `holes` say what each kind of event
//! changes.

use super::arguments::Arguments;
use super::descriptors::Descriptors;
use super::kernel_stacks::KernelStacks;
use super::sleepers::Sleeps;
use super::tids::Tids;
use super::{Timeline, Within, WokenBy};
use deadweight_trace::Trace;
use deadweight_trace::ids::{CallId, Cpu, TaskId, Tid};
use deadweight_trace::units::Ns;
use std::collections::BTreeMap;

/// What the next user stack belongs to.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum StackOwner {
    Nothing,
    Call(CallId),
    Fault(u32),
    Block(u32),
}

/// The rest of a stretch of counted calls that is not placed yet.
#[derive(Clone, Debug)]
pub(super) struct Stretch {
    pub(super) start: Ns,
    /// Everything before this is placed.
    pub(super) placed: Ns,
    pub(super) end: Ns,
    /// Whether the task is in a call just after `placed`.
    pub(super) inside: bool,
    pub(super) parts: Vec<Part>,
}

/// Calls that are alike.
#[derive(Copy, Clone, Debug)]
pub(super) struct Part {
    pub(super) nr: u16,
    pub(super) args: [u64; 4],
    pub(super) ret: i64,
    pub(super) count: u32,
    pub(super) inside: Ns,
    /// The latest call of it that was placed.
    pub(super) latest: Option<CallId>,
}

/// The holes so far, and moves of tasks that may turn out to be in one.
#[derive(Debug, Default)]
pub(super) struct Holes {
    /// Intervals in which records of some CPU were lost.
    pub(super) lost: BTreeMap<Ns, Ns>,
    /// Tasks that were seen on a CPU without a switch from their last CPU: that CPU, and when they were
    /// last seen there. A later event of that CPU shows whether its records were lost.
    pub(super) moved: BTreeMap<TaskId, (Cpu, Ns)>,
}

/// Where a task is.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum State {
    OnCpu(Cpu),
    Runnable,
    /// Index into `Timeline::blocks`.
    Blocked(u32),
    /// Records were lost.
    Unrecorded,
    /// Another task has its CPU and its own switch was not seen: the next event decides.
    Away,
    Dead,
}

/// A wake-up of a running task: it may have been meant for a switch-out that it raced.
#[derive(Copy, Clone, Debug)]
pub(super) struct Pending {
    pub(super) at: Ns,
    pub(super) woken_by: WokenBy,
    pub(super) waker_call: Option<CallId>,
}

/// What is known of a task while the events are walked.
#[derive(Copy, Clone, Debug)]
pub(super) struct Live {
    pub(super) state: State,
    pub(super) call: Option<CallId>,
    /// The call before: `restart_syscall` continues it.
    pub(super) last_call: Option<CallId>,
    pub(super) fault: Option<u32>,
    pub(super) interrupt: bool,
    pub(super) starting: bool,
    pub(super) exiting: bool,
    /// It gave birth, and has had no event since.
    pub(super) gave_birth: bool,
    /// What the next user stack belongs to.
    pub(super) stack_owner: StackOwner,
    pub(super) pending: Option<Pending>,
    /// The latest signal from a task of the trace.
    pub(super) signalled: Option<(Ns, TaskId)>,
}

impl Live {
    pub(super) fn new(state: State) -> Self {
        Self {
            state,
            call: None,
            last_call: None,
            fault: None,
            interrupt: false,
            starting: true,
            exiting: false,
            gave_birth: false,
            stack_owner: StackOwner::Nothing,
            pending: None,
            signalled: None,
        }
    }

    pub(super) fn within(&self) -> Within {
        if self.interrupt {
            Within::Interrupt
        } else if self.exiting {
            Within::Exiting
        } else if self.starting {
            Within::Starting
        } else if let Some(fault) = self.fault {
            Within::Fault(fault)
        } else {
            self.call.map_or(Within::User, Within::Syscall)
        }
    }
}

/// What is known of a CPU while the events are walked.
#[derive(Copy, Clone, Debug, Default)]
pub(super) struct CpuState {
    /// The task that has it; none while it is idle or unknown.
    pub(super) current: Option<TaskId>,
    /// When its latest event was.
    pub(super) last_event: Ns,
    /// The latest event of the ring buffer that losses apply to, see [`Holes::survives_losses`].
    pub(super) last_record: Ns,
    /// `last_record` before its latest losses, if no record came after them.
    pub(super) lost_since: Option<Ns>,
}

/// Contradictions, counted.
#[derive(Copy, Clone, Debug, Default)]
pub(super) struct Anomalies {
    pub(super) missing_off: u64,
    pub(super) missing_on: u64,
    pub(super) unseen_wakes: u64,
    pub(super) inferred_wakes: u64,
    pub(super) raced_wakes: u64,
    pub(super) lost_records: u64,
    pub(super) unborn: u64,
    pub(super) replaced: u64,
}

/// The timeline while it is built.
pub(super) struct Builder<'a> {
    pub(super) trace: &'a Trace,
    pub(super) out: Timeline,
    pub(super) live: Vec<Live>,
    pub(super) tids: Tids,
    pub(super) cpus: Vec<CpuState>,
    pub(super) kernel: KernelStacks<'a>,
    pub(super) descriptors: Descriptors<'a>,
    pub(super) arguments: Arguments,
    /// Living own tasks, by process.
    pub(super) threads: BTreeMap<Tid, Vec<TaskId>>,
    /// The task that ends all threads of a process (or all others), and since when.
    pub(super) ending: BTreeMap<Tid, (Ns, TaskId)>,
    /// Calls that were counted and have no place in time yet.
    pub(super) counted: BTreeMap<TaskId, Stretch>,
    pub(super) sleeps: Sleeps,
    pub(super) holes: Holes,
    pub(super) numbers: Numbers,
    pub(super) anomalies: Anomalies,
    pub(super) now: Ns,
}

/// Numbers of the system calls that the timeline itself must know.
#[derive(Copy, Clone, Debug)]
pub(super) struct Numbers {
    pub(super) exit: Option<u16>,
    pub(super) exit_group: Option<u16>,
    pub(super) execve: Option<u16>,
    pub(super) execveat: Option<u16>,
    pub(super) restart: Option<u16>,
    pub(super) futex: Option<u16>,
}
