//! What each system call does to a process's descriptors, as a table. `descriptors` applies it.

use super::ObjectKind;
use deadweight_trace::syscall::{self, Arch};

/// `O_CLOEXEC`, and the same bit in pipes', sockets' and eventfds' flags, on both architectures.
pub(super) const CLOEXEC: u64 = 0o2_000_000;

/// What a successful call does to the table. `flags` is the position of the argument that holds
/// [`CLOEXEC`], if it was kept.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// Nothing.
    None,
    /// Its result is a new descriptor.
    Open { flags: Option<usize>, kind: ObjectKind },
    /// Two new descriptors are written to memory.
    Pair { flags: Option<usize>, kind: ObjectKind },
    /// Its result is a copy of its first argument.
    Dup { flags: Option<usize> },
    /// `fcntl`.
    Control,
    /// Its first argument is free again.
    Close,
    /// A range of descriptors is free again.
    CloseRange,
}

/// Numbers above this have no known effect (the tables end below 470 today).
const NUMBERS: u16 = 512;

/// The effects by number.
#[derive(Debug)]
pub(crate) struct Effects {
    effects: Vec<Effect>,
    descriptors: Vec<Option<usize>>,
}

impl Effects {
    pub(crate) fn new(arch: Arch) -> Self {
        let names = || (0..NUMBERS).map(|nr| syscall::name(arch, nr).unwrap_or(""));
        Self {
            effects: names().map(effect).collect(),
            descriptors: names().map(syscall::descriptor).collect(),
        }
    }

    pub(super) fn of(&self, nr: u16) -> Effect {
        self.effects.get(usize::from(nr)).copied().unwrap_or(Effect::None)
    }

    /// The position of the descriptor that the call works on.
    pub(super) fn descriptor(&self, nr: u16) -> Option<usize> {
        self.descriptors.get(usize::from(nr)).copied().flatten()
    }
}

fn effect(name: &str) -> Effect {
    use ObjectKind::{Anonymous, File, Pipe, Socket};
    match name {
        "creat" => Effect::Open { flags: None, kind: File },
        "open" => Effect::Open { flags: Some(1), kind: File },
        "openat" => Effect::Open { flags: Some(2), kind: File },
        "openat2" => Effect::Open { flags: None, kind: File },
        "memfd_create" => Effect::Open { flags: None, kind: File },
        "socket" => Effect::Open { flags: Some(1), kind: Socket },
        "accept" => Effect::Open { flags: None, kind: Socket },
        "accept4" => Effect::Open { flags: Some(1), kind: Socket },
        "epoll_create" | "eventfd" | "signalfd" | "signalfd4" | "pidfd_open" | "inotify_init"
        | "io_uring_setup" | "userfaultfd" | "perf_event_open" => {
            Effect::Open { flags: None, kind: Anonymous }
        }
        "epoll_create1" | "inotify_init1" => Effect::Open { flags: Some(0), kind: Anonymous },
        "eventfd2" | "timerfd_create" => Effect::Open { flags: Some(1), kind: Anonymous },
        "pipe" => Effect::Pair { flags: None, kind: Pipe },
        "pipe2" => Effect::Pair { flags: Some(1), kind: Pipe },
        "socketpair" => Effect::Pair { flags: Some(1), kind: Socket },
        "dup" | "dup2" => Effect::Dup { flags: None },
        "dup3" => Effect::Dup { flags: Some(2) },
        "fcntl" => Effect::Control,
        "close" => Effect::Close,
        "close_range" => Effect::CloseRange,
        _ => Effect::None,
    }
}
