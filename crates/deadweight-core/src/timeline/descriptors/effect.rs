//! What each system call does to a process's descriptors, as a table. `descriptors` applies it.

use super::ObjectKind;
use super::origin::Origin;
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
    Open { flags: Option<usize>, kind: ObjectKind, origin: Origin },
    /// Two new descriptors are written to memory.
    Pair { flags: Option<usize>, kind: ObjectKind },
    /// Its result is a copy of its first argument.
    Dup { flags: Option<usize> },
    /// `fcntl`.
    Control,
    /// Its first argument is connected to a peer, as soon as it begins: it may never return.
    Connect,
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
    let open = |flags, kind| Effect::Open { flags, kind, origin: Origin::Unknown };
    let accept = |flags| Effect::Open { flags, kind: Socket, origin: Origin::Accepted };
    match name {
        "creat" => open(None, File),
        "open" => open(Some(1), File),
        "openat" => open(Some(2), File),
        "openat2" => open(None, File),
        "memfd_create" => open(None, File),
        "socket" => open(Some(1), Socket),
        "accept" => accept(None),
        "accept4" => accept(Some(1)),
        "epoll_create" | "eventfd" | "signalfd" | "signalfd4" | "pidfd_open" | "inotify_init"
        | "io_uring_setup" | "userfaultfd" | "perf_event_open" => open(None, Anonymous),
        "epoll_create1" | "inotify_init1" => open(Some(0), Anonymous),
        "eventfd2" | "timerfd_create" => open(Some(1), Anonymous),
        "pipe" => Effect::Pair { flags: None, kind: Pipe },
        "pipe2" => Effect::Pair { flags: Some(1), kind: Pipe },
        "socketpair" => Effect::Pair { flags: Some(1), kind: Socket },
        "dup" | "dup2" => Effect::Dup { flags: None },
        "dup3" => Effect::Dup { flags: Some(2) },
        "fcntl" => Effect::Control,
        "connect" => Effect::Connect,
        "close" => Effect::Close,
        "close_range" => Effect::CloseRange,
        _ => Effect::None,
    }
}
