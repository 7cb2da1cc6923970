//! What file descriptors refer to, replayed per process from open, dup, pipe, fork, exec, close.
//!
//! Two descriptors of one pipe, in any processes, lead to one [`Object`]. For calls that write descriptors
//! to memory (`pipe`) the kernel's own rule is applied, the lowest free number; a later reading of `/proc`
//! overrules it. Files that were opened without a reading of `/proc` get no name: their paths lie in the
//! program's memory.

mod effect;
mod origin;

use deadweight_trace::ids::{NameId, Tid};
use deadweight_trace::symbols::Symbols;
use deadweight_trace::syscall::Arch;
use deadweight_trace::units::Ns;
use effect::{CLOEXEC, Effect, Effects};
use std::collections::BTreeMap;

pub use origin::Origin;

/// Everything that descriptors referred to.
#[derive(Clone, Debug, Default)]
pub struct Objects {
    /// The objects; `Call::object` is an index.
    pub all: Vec<Object>,
    /// Whether the recorder noted the origins of connections that were there before.
    pub origins_recorded: bool,
}

impl Objects {
    /// The object at `index`, if there is one.
    #[must_use]
    pub fn get(&self, index: u32) -> Option<&Object> {
        self.all.get(index as usize)
    }
}

/// Something a descriptor refers to.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Object {
    /// What it is.
    pub kind: ObjectKind,
    /// Its name as `/proc/PID/fd` shows it, where known.
    pub name: NameId,
    /// Of a socket: whether the peer connected to it.
    pub origin: Origin,
}

impl Object {
    /// Adds what else is known of a socket.
    fn add(&mut self, kind: ObjectKind, origin: Origin) {
        if kind == ObjectKind::Datagrams {
            self.kind = kind;
        }
        if origin != Origin::Unknown {
            self.origin = origin;
        }
    }
}

/// What kind of thing a descriptor refers to.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ObjectKind {
    /// A regular file or directory.
    File,
    /// A pipe or FIFO.
    Pipe,
    /// A socket, as far as known for a stream of bytes.
    Socket,
    /// A socket that keeps messages apart: what is sent in two calls arrives as two.
    Datagrams,
    /// A terminal.
    Terminal,
    /// A device other than a terminal.
    Device,
    /// epoll, eventfd, timerfd, inotify, ...
    Anonymous,
    /// Not known.
    Unknown,
}

impl ObjectKind {
    /// By the name that `/proc/PID/fd` shows, and a socket's type behind it.
    fn of_name(name: &str) -> Self {
        const TERMINALS: [&str; 3] = ["/dev/pts/", "/dev/tty", "/dev/console"];
        if name.starts_with("pipe:") {
            Self::Pipe
        } else if name.starts_with("socket:") {
            if origin::of_name(name).1 { Self::Datagrams } else { Self::Socket }
        } else if name.starts_with("anon_inode:") {
            Self::Anonymous
        } else if TERMINALS.iter().any(|t| name.starts_with(t)) {
            Self::Terminal
        } else if name.starts_with("/dev/") && !name.starts_with("/dev/shm/") {
            Self::Device
        } else if name.starts_with('/') {
            Self::File
        } else {
            Self::Unknown
        }
    }

    /// Whether two descriptors of one name mean one object that bytes pass through.
    fn is_shared(self) -> bool {
        use ObjectKind::{Datagrams, Device, Pipe, Socket, Terminal};
        matches!(self, Pipe | Socket | Datagrams | Terminal | Device)
    }

    /// The kind of a new socket, by the argument that holds its type beside its flags (`accept4` has flags only).
    fn of_type(self, argument: Option<u64>) -> Self {
        /// `SOCK_DGRAM`, `SOCK_RAW`, `SOCK_SEQPACKET`, and the bits of a type.
        const MESSAGES: [u64; 3] = [2, 3, 5];
        const TYPE: u64 = 0xf;
        let messages = argument.is_some_and(|argument| MESSAGES.contains(&(argument & TYPE)));
        if self == Self::Socket && messages { Self::Datagrams } else { self }
    }
}

/// One entry of a process's table.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
struct Entry {
    object: u32,
    closed_by_exec: bool,
    /// When the recorder found it there, if no call had shown it before.
    found: Option<Ns>,
}

impl Entry {
    /// Whether the recorder has found it since.
    fn is_found(&self, since: Ns) -> bool {
        self.found.is_some_and(|at| at >= since)
    }
}

/// One process's descriptors.
type Table = BTreeMap<i32, Entry>;

/// Every process's descriptors at this moment.
#[derive(Debug)]
pub(crate) struct Descriptors<'a> {
    symbols: &'a Symbols,
    effects: Effects,
    tables: BTreeMap<Tid, Table>,
    /// By their names without what the recorder adds.
    by_name: BTreeMap<&'a str, u32>,
    objects: Objects,
}

impl<'a> Descriptors<'a> {
    pub(crate) fn new(symbols: &'a Symbols, arch: Arch) -> Self {
        let (tables, by_name) = (BTreeMap::new(), BTreeMap::new());
        let effects = Effects::new(arch);
        Self { symbols, effects, tables, by_name, objects: Objects::default() }
    }

    /// All objects that were found, at the end.
    pub(crate) fn into_objects(self) -> Objects {
        self.objects
    }

    /// The object that the call with these arguments works on.
    pub(crate) fn object_of(&self, process: Tid, nr: u16, args: &[u64; 4]) -> Option<u32> {
        let fd = as_fd(*args.get(self.effects.descriptor(nr)?)?);
        self.tables.get(&process)?.get(&fd).map(|e| e.object)
    }

    /// The object that a call works on which begins now.
    pub(crate) fn begins(&mut self, process: Tid, nr: u16, args: &[u64; 4]) -> Option<u32> {
        let object = self.object_of(process, nr, args);
        if self.effects.of(nr) == Effect::Connect
            && let Some(object) = object.and_then(|at| self.objects.all.get_mut(at as usize))
        {
            object.origin = Origin::Connected;
        }
        object
    }

    /// The kind of that object.
    pub(crate) fn kind(&self, object: u32) -> Option<ObjectKind> {
        self.objects.get(object).map(|o| o.kind)
    }

    /// A child process starts with a copy of its parent's table.
    pub(crate) fn forked(&mut self, parent: Tid, child: Tid) {
        if parent != child {
            let table = self.table(parent).clone();
            self.tables.insert(child, table);
        }
    }

    /// A process became another program.
    pub(crate) fn executed(&mut self, process: Tid) {
        if let Some(table) = self.tables.get_mut(&process) {
            table.retain(|_, e| !e.closed_by_exec);
        }
    }

    /// A process is gone.
    pub(crate) fn ended(&mut self, process: Tid) {
        self.tables.remove(&process);
    }

    /// The recorder read in `/proc` what a descriptor refers to: no name if it is closed.
    pub(crate) fn seen(&mut self, process: Tid, fd: i32, name: NameId, at: Ns) {
        if name == NameId(0) {
            self.table(process).remove(&fd);
            return;
        }
        let known = self.tables.get(&process).and_then(|t| t.get(&fd)).copied();
        let (shared_name, _, origin) = origin::of_name(self.symbols.name(name));
        let named = self.by_name.get(shared_name).copied();
        let before = named.or(known.map(|entry| entry.object).filter(|o| self.has_name(*o, name)));
        let before = before.and_then(|object| self.objects.get(object)).map(|object| object.kind);
        let kind = match ObjectKind::of_name(self.symbols.name(name)) {
            // The name does not always show the type.
            ObjectKind::Socket if before == Some(ObjectKind::Datagrams) => ObjectKind::Datagrams,
            kind => kind,
        };
        let nameless = known.map(|e| e.object).filter(|o| self.may_be(*o, kind, name));
        // Earlier uses of the descriptor, before its name was known, were uses of an object of that name.
        if let Some(object) = nameless.and_then(|o| self.objects.all.get_mut(o as usize)) {
            *object = Object { kind, name, origin: object.origin };
        }
        let object = match named {
            Some(named) if kind.is_shared() => named,
            _ => nameless.unwrap_or_else(|| self.add(kind, name)),
        };
        if kind.is_shared() {
            self.by_name.insert(shared_name, object);
        }
        if let Some(object) = self.objects.all.get_mut(object as usize) {
            object.add(kind, origin);
        }
        self.objects.origins_recorded |= origin != Origin::Unknown;
        let closed_by_exec = known.is_some_and(|e| e.closed_by_exec);
        let known_as = known.filter(|e| e.object == object);
        let found = known_as.map_or(Some(at), |e| e.found);
        self.table(process).insert(fd, Entry { object, closed_by_exec, found });
    }

    /// Whether `object` has this name, or none.
    fn has_name(&self, object: u32, name: NameId) -> bool {
        let known = |name| origin::of_name(self.symbols.name(name)).0;
        let is_it = |o: &Object| o.name == NameId(0) || known(o.name) == known(name);
        self.objects.get(object).is_some_and(is_it)
    }

    /// Whether `object` may be what `/proc` calls `name`.
    fn may_be(&self, object: u32, kind: ObjectKind, name: NameId) -> bool {
        self.objects.get(object).filter(|_| self.has_name(object, name)).is_some_and(|o| {
            o.name != NameId(0)
                || (o.kind == kind
                    || matches!(o.kind, ObjectKind::Unknown | ObjectKind::File)
                        && !matches!(kind, ObjectKind::Pipe | ObjectKind::Socket))
        })
    }

    /// A call that began at `since` returned.
    pub(crate) fn returned(&mut self, process: Tid, nr: u16, args: &[u64; 4], ret: i64, since: Ns) {
        let effect = self.effects.of(nr);
        if effect == Effect::None || ret < 0 && effect != Effect::Close {
            return;
        }
        let flagged = |flags: Option<usize>| {
            flags.and_then(|i| args.get(i)).is_some_and(|flags| flags & CLOEXEC != 0)
        };
        match effect {
            Effect::None | Effect::Connect => {}
            Effect::Open { flags, kind, origin } => {
                let fd = i32::try_from(ret).unwrap_or(-1);
                let entry = self.tables.get(&process).and_then(|table| table.get(&fd)).copied();
                let found = entry.filter(|entry| entry.is_found(since));
                let kind = kind.of_type(flags.and_then(|at| args.get(at)).copied());
                let object = found.map_or_else(|| self.add(kind, NameId(0)), |e| e.object);
                if let Some(object) = self.objects.all.get_mut(object as usize) {
                    object.add(kind, origin);
                }
                self.put(process, fd, object, flagged(flags));
            }
            // The recorder may have read `/proc` before the call returned.
            Effect::Pair { kind, .. } if self.pair_is_found(process, kind, since) => {}
            Effect::Pair { flags, kind } => {
                let kind = kind.of_type(flags.and_then(|at| args.get(at)).copied());
                let object = self.add(kind, NameId(0));
                if let Some(object) = self.objects.all.get_mut(object as usize) {
                    object.add(kind, Origin::Neither);
                }
                for _ in 0..2 {
                    let fd = self.lowest_free(process);
                    self.put(process, fd, object, flagged(flags));
                }
            }
            Effect::Dup { flags } => {
                let to = i32::try_from(ret).unwrap_or(-1);
                self.copy(process, as_fd(args[0]), to, flagged(flags));
            }
            Effect::Control => self.control(process, args, ret),
            Effect::Close => {
                if let Some(table) = self.tables.get_mut(&process) {
                    table.remove(&as_fd(args[0]));
                }
            }
            Effect::CloseRange => self.close_range(process, args),
        }
    }

    /// Whether the recorder has found two objects of one kind since.
    fn pair_is_found(&self, process: Tid, kind: ObjectKind, since: Ns) -> bool {
        let entries = self.tables.get(&process).into_iter().flat_map(BTreeMap::values);
        let of_kind = |e: &&Entry| e.is_found(since) && self.kind(e.object) == Some(kind);
        entries.filter(of_kind).nth(1).is_some()
    }

    /// `fcntl`.
    fn control(&mut self, process: Tid, args: &[u64; 4], ret: i64) {
        const DUP: u64 = 0;
        const SET_FLAGS: u64 = 2;
        const DUP_CLOEXEC: u64 = 1030;
        let fd = as_fd(args[0]);
        match args[1] {
            DUP | DUP_CLOEXEC => {
                let to = i32::try_from(ret).unwrap_or(-1);
                self.copy(process, fd, to, args[1] == DUP_CLOEXEC);
            }
            SET_FLAGS => {
                let entry = self.tables.get_mut(&process).and_then(|t| t.get_mut(&fd));
                if let Some(entry) = entry {
                    entry.closed_by_exec = args[2] & 1 != 0;
                }
            }
            _ => {}
        }
    }

    fn close_range(&mut self, process: Tid, args: &[u64; 4]) {
        const AT_EXEC: u64 = 4;
        let first = i32::try_from(args[0] & 0xffff_ffff).unwrap_or(i32::MAX);
        let last = i32::try_from(args[1] & 0xffff_ffff).unwrap_or(i32::MAX);
        let Some(table) = self.tables.get_mut(&process) else { return };
        if args[2] & AT_EXEC != 0 {
            for (fd, entry) in table.iter_mut() {
                entry.closed_by_exec |= (first..=last).contains(fd);
            }
        } else {
            table.retain(|fd, _| !(first..=last).contains(fd));
        }
    }

    /// A process's table. A new one has the three standard descriptors taken.
    fn table(&mut self, process: Tid) -> &mut Table {
        if !self.tables.contains_key(&process) {
            let standard = |fd| {
                let object = self.add(ObjectKind::Unknown, NameId(0));
                (fd, Entry { object, closed_by_exec: false, found: None })
            };
            let table = (0..3).map(standard).collect();
            self.tables.insert(process, table);
        }
        self.tables.entry(process).or_default()
    }

    fn add(&mut self, kind: ObjectKind, name: NameId) -> u32 {
        let Ok(index) = u32::try_from(self.objects.all.len()) else { return u32::MAX };
        self.objects.all.push(Object { kind, name, origin: Origin::Unknown });
        index
    }

    fn put(&mut self, process: Tid, fd: i32, object: u32, closed_by_exec: bool) {
        if fd >= 0 {
            let entry = Entry { object, closed_by_exec, found: None };
            self.table(process).insert(fd, entry);
        }
    }

    fn copy(&mut self, process: Tid, from: i32, to: i32, closed_by_exec: bool) {
        let known = self.tables.get(&process).and_then(|t| t.get(&from)).map(|e| e.object);
        let object = known.unwrap_or_else(|| self.add(ObjectKind::Unknown, NameId(0)));
        self.put(process, from, object, false);
        self.put(process, to, object, closed_by_exec);
    }

    /// The number that the kernel gives to the next descriptor.
    fn lowest_free(&mut self, process: Tid) -> i32 {
        let mut free = 0;
        for fd in self.table(process).keys() {
            if *fd != free {
                break;
            }
            free += 1;
        }
        free
    }
}

/// A descriptor as an argument: the lower half of the register.
fn as_fd(arg: u64) -> i32 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_possible_wrap, reason = "C's int")]
    let fd = arg as u32 as i32;
    fd
}

#[cfg(test)]
mod tests;
