//! Events as the recorder passes them to a sink: live addresses, stack bytes, borrowed names.
//!
//! The sink (`deadweight-seal`) turns them into `crate::Event`s: it unwinds, interns stacks and names images. Not a
//! file format: raw events are never stored.

use crate::ids::{Cpu, Tid};
use crate::{Meta, Off};
#[expect(
    clippy::disallowed_types,
    reason = "a file that the recorder has open; nothing here reads it"
)]
use std::fs::File;
use std::path::PathBuf;

/// The tid for any task of another program, where those are not recorded one by one: no task has it.
pub const OTHER_PROGRAM: u32 = u32::MAX - 1;
/// The name of that task.
pub const OTHER_PROGRAM_NAME: &str = "another program";

/// Takes events as they are merged. Called from one thread, in order of time.
pub trait Sink {
    /// Recording begins. `meta` holds what is known now, which is all that a recording that breaks off will have.
    /// Event times are stored relative to `meta.zero`. Called once, before the first event.
    fn begin(&mut self, meta: &Meta) {
        let _ = meta;
    }
    /// One more event.
    fn event(&mut self, event: &RawEvent<'_>);
    /// A running program was executed from this path. The file may be gone before the program's first event comes,
    /// so it is passed along. The program does not wait for this call.
    #[expect(clippy::disallowed_types, reason = "passed along unread")]
    fn executable(&mut self, path: PathBuf, file: File) {
        let _ = (path, file);
    }
    /// No event follows for the moment: a good time to write out buffers.
    fn flush(&mut self) {}
    /// The recording is over; `meta` holds all that the recorder knows about it.
    fn finish(&mut self, meta: Meta);
}

/// One fact, before sealing.
#[derive(Clone, Debug)]
pub struct RawEvent<'a> {
    /// The clock's reading in ns (`CLOCK_MONOTONIC`), not yet relative.
    pub at: u64,
    /// Where it was recorded.
    pub cpu: Cpu,
    /// Its process, 0 where unknown.
    pub process: Tid,
    /// The task that it happened to; for `Wake` the wakee.
    pub task: Tid,
    /// What happened.
    pub kind: RawKind<'a>,
}

/// User registers and stack of a task at one instant: enough to unwind the stack later.
#[derive(Copy, Clone, Debug)]
pub struct UserState<'a> {
    /// Instruction pointer.
    pub ip: u64,
    /// Stack pointer.
    pub sp: u64,
    /// Frame pointer.
    pub fp: u64,
    /// Link register where the architecture has one, else 0.
    pub lr: u64,
    /// Bytes of the stack from `sp` upwards; may be empty.
    pub stack: &'a [u8],
    /// Return addresses by frame pointers as the kernel walked them, leaf (`ip`) first.
    pub chain: &'a [u64],
    /// General registers by their number in machine code; empty where they were not recorded.
    pub general: &'a [u64],
}

/// Calls that are alike and were counted together.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Calls {
    /// Number.
    pub nr: u16,
    /// Arguments as in `Syscall`; the last two are not known.
    pub args: [u64; 6],
    /// The result of each call.
    pub ret: i64,
    /// How many.
    pub count: u32,
    /// Time in all of them together, in ns.
    pub inside: u64,
    /// Length of the stretch that holds them, in ns.
    pub over: u64,
}

/// What happened; see `crate::Kind` for the meaning of each.
#[derive(Clone, Debug)]
pub enum RawKind<'a> {
    /// Created `child` in `process`.
    Fork {
        /// The new task.
        child: Tid,
        /// Its process.
        process: Tid,
    },
    /// Became another program.
    Exec {
        /// The tid that called exec.
        former: Tid,
        /// Path, empty where unknown.
        path: &'a str,
    },
    /// Has this name from now on.
    Comm(&'a str),
    /// Starts to exit.
    Exit,
    /// Got the CPU.
    On,
    /// Lost the CPU.
    Off {
        /// Why.
        why: Off,
        /// Kernel return addresses, leaf first.
        chain: &'a [u64],
    },
    /// Was made runnable.
    Wake {
        /// The task current on the waking CPU.
        waker: Tid,
        /// Whether the kernel flagged interrupt context.
        irq: bool,
        /// The waker's kernel return addresses, leaf first.
        chain: &'a [u64],
        /// Inferred rather than recorded.
        inferred: bool,
    },
    /// Entered a system call.
    Syscall {
        /// Number.
        nr: u16,
        /// All six arguments; the sink keeps `syscall::kept` of them.
        args: [u64; 6],
    },
    /// Left it.
    Back {
        /// Result.
        ret: i64,
    },
    /// From here on it made these calls, which were counted together.
    Calls(Calls),
    /// A page fault begins.
    Fault {
        /// Address touched.
        addr: u64,
        /// Instruction that touched it.
        ip: u64,
        /// Touched by the kernel.
        kernel: bool,
    },
    /// The page fault has been handled.
    FaultEnd {
        /// Storage was read.
        major: bool,
    },
    /// Timer interrupt begins.
    Timer,
    /// Timer interrupt ends.
    TimerEnd,
    /// The sampling clock ticked.
    Sample {
        /// In the kernel.
        kernel: bool,
        /// User registers and stack; none for a kernel thread or where the kernel gave none.
        user: Option<UserState<'a>>,
        /// Kernel return addresses, leaf first; empty in user mode.
        chain: &'a [u64],
    },
    /// User registers and stack at the task's latest `Syscall` or `Fault`, or at the `Off` at this instant.
    Site(UserState<'a>),
    /// A file was mapped executable (perf's MMAP2), or was mapped already when recording began.
    Map {
        /// First address.
        start: u64,
        /// Bytes.
        len: u64,
        /// Offset in the file.
        offset: u64,
        /// Number of the file's inode, 0 where unknown: it identifies a file that was replaced since.
        inode: u64,
        /// Path as the kernel prints it (`//anon`, `[vdso]` included).
        path: &'a str,
        /// Whether it can be executed.
        executable: bool,
    },
    /// A descriptor of the task's process refers to this.
    Fd {
        /// Descriptor.
        fd: i32,
        /// As `/proc/PID/fd` names it; empty if it is closed.
        what: &'a str,
    },
    /// A resident page of the task's process, sampled from `/proc` without stopping it.
    Page {
        /// Its first address.
        addr: u64,
        /// Whether all its bytes were zero.
        zero: bool,
    },
    /// The program's own code begins.
    Main,
    /// A probe was passed.
    Probe {
        /// Its name.
        probe: &'a str,
        /// Two arguments.
        args: [u64; 2],
        /// User registers and stack, if taken.
        user: Option<UserState<'a>>,
    },
    /// Records were lost on this CPU since its previous event.
    Lost {
        /// How many.
        count: u64,
    },
}
