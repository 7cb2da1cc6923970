//! The unit of a recording: one thing that happened to one task at one instant.
//!
//! Events are facts as the kernel reported them. Not for causes (a disk, a lock): the analysis infers these from the
//! kernel's call stacks, so that better rules can be applied to old traces.

use crate::ids::{Cpu, ImageId, LocationId, NameId, StackId, Tid};
use crate::units::{LiveAddr, Ns};

/// One fact. Events of a trace are in order of time; of equal times, in order of recording.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// When, from the trace's zero.
    pub at: Ns,
    /// On which CPU it was recorded.
    pub cpu: Cpu,
    /// The task that it happened to. For [`Kind::Wake`] that is the wakee, not the waker.
    pub task: Tid,
    /// What happened.
    pub kind: Kind,
}

/// What happened.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The task created `child`. It is a thread if `process` is the parent's process. Of a thread of another program that
    /// is older than the recording: the first task of its process, when the thread leaves a CPU.
    Fork {
        /// The new task.
        child: Tid,
        /// The process that the new task belongs to.
        process: Tid,
    },
    /// The task's process became another program. `former` differs from the event's task when a
    /// thread other than the first called exec: it takes over the leader's tid.
    Exec {
        /// The tid that called exec.
        former: Tid,
        /// Path of the program, empty where unknown.
        path: NameId,
    },
    /// The task has this name (`comm`), at its birth or from now on. Tasks of other programs are named too.
    Comm(NameId),
    /// The task starts to exit. Its exit lasts until [`Off::Dead`].
    Exit,
    /// The task got the CPU.
    On,
    /// The task lost the CPU.
    Off {
        /// Why, as the scheduler saw it.
        why: Off,
        /// Kernel call stack at that point: it shows what the task waits for.
        stack: StackId,
    },
    /// The task was made runnable.
    Wake {
        /// The waker: the current task of the waking CPU, [`Tid`] 0 for its idle task. Where `stack` shows interrupt
        /// context, that task was only interrupted.
        waker: Tid,
        /// Whether the kernel flagged interrupt context. Weaker evidence than `stack`.
        irq: bool,
        /// The waker's kernel call stack.
        stack: StackId,
        /// Inferred from an overlapping system call of the peer process rather than recorded.
        inferred: bool,
    },
    /// Entered a system call.
    Syscall {
        /// Number on the trace's architecture.
        nr: u16,
        /// The arguments kept for that call, see [`crate::syscall::kept`]; others are 0.
        args: [u64; 4],
    },
    /// Left the system call.
    Back {
        /// What it returned: negative errno on failure.
        ret: i64,
    },
    /// From here on the task made `count` calls that are alike: they were counted rather than recorded one by one.
    /// Several of these at one instant are one stretch; the order of its calls is not known.
    Calls {
        /// Number, as in [`Kind::Syscall`].
        nr: u16,
        /// The arguments kept, as in [`Kind::Syscall`]; 0 for an argument in which the calls may differ.
        args: [u64; 4],
        /// The result of each call.
        ret: i64,
        /// How many.
        count: u32,
        /// Time in all of them together.
        inside: Ns,
        /// Length of the stretch: the calls and the time between them.
        over: Ns,
    },
    /// A page fault begins.
    Fault {
        /// The address that was touched.
        addr: LiveAddr,
        /// The instruction that touched it; location 0 where unknown.
        by: LocationId,
        /// Touched by the kernel on the task's behalf (inside a system call).
        kernel: bool,
    },
    /// The page fault has been handled.
    FaultEnd {
        /// Whether storage had to be read.
        major: bool,
    },
    /// The timer interrupt begins.
    Timer,
    /// The timer interrupt ends.
    TimerEnd,
    /// The sampling clock ticked while the task was on a CPU.
    Sample {
        /// Whether it was in the kernel.
        kernel: bool,
        /// User call stack, leaf first.
        stack: StackId,
        /// Kernel call stack if in the kernel.
        kernel_stack: StackId,
    },
    /// Some of the general registers at the task's [`Kind::Sample`] of user code at the same instant. Registers that no
    /// event names are not known.
    Registers {
        /// Number of the first one, as the machine code has it.
        first: u8,
        /// Its value and those of the next three.
        values: [u64; 4],
    },
    /// The user call stack at the task's latest [`Kind::Syscall`], [`Kind::Fault`] or at the
    /// [`Kind::Off`] at the same instant: taken for some of them only.
    Site(StackId),
    /// A range of the address space of the task's process is backed by an image.
    Map {
        /// First address.
        start: LiveAddr,
        /// Bytes.
        len: u64,
        /// What is mapped there.
        image: ImageId,
    },
    /// A descriptor of the task's process refers to this (`/path`, `pipe:[7]`, `socket:[9]`).
    Fd {
        /// The descriptor.
        fd: i32,
        /// As `/proc/PID/fd` names it; no name if it is closed. Behind a socket's: `:datagram` if it is no stream, else
        /// whether its peer made the connection (`:accepted`) or it did (`:connected`), or, of a Unix socket without a
        /// name, that it did or is one of a pair (`:unnamed`).
        what: NameId,
    },
    /// A resident page of the task's process, sampled from `/proc` without stopping it.
    Page {
        /// Its first address.
        addr: LiveAddr,
        /// Whether all its bytes were zero.
        zero: bool,
    },
    /// The program's own code begins: `main` or its language's equivalent was reached.
    Main,
    /// A probe was passed (calls counted, locks of a language's own scheduler).
    Probe {
        /// Which.
        probe: NameId,
        /// Two arguments, as the probe defines them.
        args: [u64; 2],
        /// User call stack, if taken.
        stack: StackId,
    },
    /// From the previous event on this CPU until now, `count` records were lost.
    Lost {
        /// How many.
        count: u64,
    },
}

/// Why a task left its CPU.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Off {
    /// It waits for something and is not runnable.
    Blocked,
    /// Another task was put in its place; it stays runnable.
    Preempted,
    /// It offered the CPU (`sched_yield`); it stays runnable.
    Yielded,
    /// Stopped by a signal or a tracer.
    Stopped,
    /// It is dead: nothing follows.
    Dead,
}
