//! Events of traced tasks, owned, on their way from the tracing thread to the sink.
//!
//! Does not order them; see `event_sorter`.

use super::requests::Registers;
use deadweight_trace::Off;
use deadweight_trace::ids::Tid;
use deadweight_trace::raw::{RawKind, UserState};

/// One event of a task.
#[derive(Debug)]
pub(super) struct TaskEvent {
    /// The monotonic clock.
    pub(super) at: u64,
    pub(super) process: u32,
    pub(super) task: u32,
    pub(super) kind: EventKind,
}

/// User registers and stack of a task.
#[derive(Clone, Debug, Default)]
pub(super) struct UserSnapshot {
    pub(super) registers: Registers,
    pub(super) stack: Box<[u8]>,
}

/// One mapping of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mapping {
    pub(super) start: u64,
    pub(super) len: u64,
    pub(super) offset: u64,
    pub(super) inode: u64,
    pub(super) path: String,
    pub(super) executable: bool,
}

/// As the raw kinds of the same names. The others have a description.
#[derive(Debug)]
pub(super) enum EventKind {
    Fork {
        child: u32,
        process: u32,
    },
    Exec {
        former: u32,
        path: String,
    },
    Comm(String),
    Main,
    Exit,
    On,
    Off(Off),
    /// It lost its CPU to an unidentified task.
    Preempted,
    /// It is in a ptrace stop; the tracer has its CPU meanwhile.
    PtraceStop,
    Call {
        nr: u16,
        args: [u64; 6],
    },
    CallReturn(i64),
    Fault {
        addr: u64,
        ip: u64,
    },
    FaultEnd {
        major: bool,
    },
    Sample(UserSnapshot),
    /// A sample of user code that came too late to show the call site.
    MissedSample,
    CallSite(UserSnapshot),
    Map(Mapping),
    Fd {
        fd: i32,
        target: String,
    },
    Page {
        addr: u64,
        zero: bool,
    },
    /// The tracer has detached from it.
    Detached,
    /// This many events of all tasks were dropped before this time.
    Lost(u64),
}

pub(super) fn raw_kind(kind: &EventKind) -> RawKind<'_> {
    match kind {
        EventKind::Fork { child, process } => {
            RawKind::Fork { child: Tid(*child), process: Tid(*process) }
        }
        EventKind::Exec { former, path } => RawKind::Exec { former: Tid(*former), path },
        EventKind::Comm(name) => RawKind::Comm(name),
        EventKind::Main => RawKind::Main,
        EventKind::Exit => RawKind::Exit,
        EventKind::On
        | EventKind::Off(_)
        | EventKind::Preempted
        | EventKind::PtraceStop
        | EventKind::Detached
        | EventKind::Lost(_) => RawKind::On,
        EventKind::Call { nr, args } => RawKind::Syscall { nr: *nr, args: *args },
        EventKind::CallReturn(ret) => RawKind::Back { ret: *ret },
        EventKind::Fault { addr, ip } => RawKind::Fault { addr: *addr, ip: *ip, kernel: false },
        EventKind::FaultEnd { major } => RawKind::FaultEnd { major: *major },
        EventKind::MissedSample => RawKind::Sample { kernel: false, user: None, chain: &[] },
        EventKind::Sample(user) => {
            RawKind::Sample { kernel: false, user: Some(user.state()), chain: &[] }
        }
        EventKind::CallSite(user) => RawKind::Site(user.state()),
        EventKind::Map(map) => {
            let Mapping { start, len, offset, inode, ref path, executable } = *map;
            RawKind::Map { start, len, offset, inode, path, executable }
        }
        EventKind::Fd { fd, target } => RawKind::Fd { fd: *fd, what: target },
        EventKind::Page { addr, zero } => RawKind::Page { addr: *addr, zero: *zero },
    }
}

impl UserSnapshot {
    pub(super) fn state(&self) -> UserState<'_> {
        let Registers { ip, sp, fp, lr, .. } = self.registers;
        UserState { ip, sp, fp, lr, stack: &self.stack, chain: &[], general: &[] }
    }
}
