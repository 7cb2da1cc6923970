//! What the tracer notes, owned, on its way from its thread to the sink.
//!
//! Tasks stop one by one, and what they did before is known only then: notes of different tasks
//! come out of order. Here they are put in order, and tasks on CPUs.

use super::requests::Registers;
use deadweight_trace::Off;
use deadweight_trace::ids::{Cpu, Tid};
use deadweight_trace::raw::{
    OTHER_PROGRAM, OTHER_PROGRAM_NAME, RawEvent, RawKind, Sink, UserState,
};
use std::collections::HashMap;

/// One fact about a task.
#[derive(Debug)]
pub(super) struct Note {
    /// The clock's reading.
    pub(super) at: u64,
    pub(super) process: u32,
    pub(super) task: u32,
    pub(super) what: What,
}

/// The user half of a task.
#[derive(Clone, Debug, Default)]
pub(super) struct User {
    pub(super) registers: Registers,
    pub(super) stack: Box<[u8]>,
}

/// What is mapped somewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mapping {
    pub(super) start: u64,
    pub(super) len: u64,
    pub(super) offset: u64,
    pub(super) inode: u64,
    pub(super) path: String,
    pub(super) executable: bool,
}

/// As the raw kinds of the same names; the others are said.
#[derive(Debug)]
pub(super) enum What {
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
    /// It lost its CPU to whoever was not seen.
    Displaced,
    /// It is stopped by us, and its CPU is ours meanwhile.
    Held,
    Call {
        nr: u16,
        args: [u64; 6],
    },
    Back(i64),
    Fault {
        addr: u64,
        ip: u64,
    },
    FaultEnd {
        major: bool,
    },
    Sample(User),
    /// A sample of user code whose place was missed.
    Missed,
    Site(User),
    Map(Mapping),
    Fd {
        fd: i32,
        what: String,
    },
    Page {
        addr: u64,
        zero: bool,
    },
    /// It is not seen from here on.
    Left,
    /// So many notes of all tasks, until then, were left out.
    Lost(u64),
}

/// Who has a CPU.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Place {
    Free,
    Of(u32),
    /// Ours, while this task is stopped.
    HeldFor(u32),
}

/// Puts notes in order of time and tasks on CPUs, and tells the sink.
pub(super) struct Order<'s> {
    sink: &'s mut dyn Sink,
    /// The thread that holds stopped tasks.
    pub(super) recorder: u32,
    waiting: Vec<Note>,
    places: Vec<Place>,
    latest: HashMap<u32, usize>,
    /// Time of the latest event handed on.
    last: u64,
    told_of_stranger: bool,
    /// Events handed on.
    pub(super) count: u64,
}

impl<'s> Order<'s> {
    pub(super) fn new(sink: &'s mut dyn Sink, cpus: usize, recorder: u32) -> Self {
        Self {
            sink,
            recorder,
            waiting: Vec::new(),
            places: vec![Place::Free; cpus.max(1)],
            latest: HashMap::new(),
            last: 0,
            told_of_stranger: false,
            count: 0,
        }
    }

    pub(super) fn add(&mut self, notes: impl IntoIterator<Item = Note>) {
        self.waiting.extend(notes);
    }

    /// Hands on what is older than this: nothing older will come.
    pub(super) fn hand_on(&mut self, horizon: u64) {
        // Those of one task are in order already and stay so.
        self.waiting.sort_by_key(|note| note.at);
        let safe = self.waiting.partition_point(|note| note.at < horizon);
        let mut notes = std::mem::take(&mut self.waiting);
        for note in notes.drain(..safe) {
            self.tell(&note);
        }
        self.waiting = notes;
        self.sink.flush();
    }

    pub(super) fn finish(self) -> &'s mut dyn Sink {
        self.sink
    }

    fn tell(&mut self, note: &Note) {
        self.last = self.last.max(note.at);
        let task = note.task;
        let cpu = self.place(note);
        match &note.what {
            What::Off(why) => self.emit(note, cpu, RawKind::Off { why: *why, chain: &[] }),
            What::Displaced | What::Held => {
                self.emit(note, cpu, RawKind::Off { why: Off::Preempted, chain: &[] });
                let held = matches!(note.what, What::Held);
                let holder = if held { self.recorder } else { OTHER_PROGRAM };
                self.strange(cpu, holder, RawKind::On);
                if !held && !std::mem::replace(&mut self.told_of_stranger, true) {
                    self.strange(cpu, holder, RawKind::Comm(OTHER_PROGRAM_NAME));
                }
            }
            What::Left => self.emit(note, cpu, RawKind::Lost { count: 1 }),
            What::Lost(count) => self.lose(note, *count),
            _ => {
                let kind = kind(&note.what);
                self.emit(note, cpu, kind);
            }
        }
        if matches!(note.what, What::Off(Off::Dead)) {
            self.latest.remove(&task);
        }
    }

    /// Who had which CPU meanwhile is not known, on any of them.
    fn lose(&mut self, note: &Note, count: u64) {
        self.latest.clear();
        let cpus = self.places.len();
        self.places.fill(Place::Free);
        for cpu in 0..cpus {
            self.emit(note, cpu, RawKind::Lost { count: (count / cpus as u64).max(1) });
        }
    }

    fn strange(&mut self, cpu: usize, task: u32, kind: RawKind<'_>) {
        let note = Note { at: self.last, process: 0, task, what: What::On };
        self.emit(&note, cpu, kind);
    }

    fn emit(&mut self, note: &Note, cpu: usize, kind: RawKind<'_>) {
        self.count += 1;
        let cpu = Cpu(u16::try_from(cpu).unwrap_or(u16::MAX));
        let (process, task) = (Tid(note.process), Tid(note.task));
        self.sink.event(&RawEvent { at: self.last, cpu, process, task, kind });
    }

    /// On which CPU the task of this note is, after it. The kernel does not say: the one that it had, unless
    /// another task took that.
    fn place(&mut self, note: &Note) -> usize {
        let task = note.task;
        let had = self.latest.get(&task).copied();
        match note.what {
            What::On => {
                let cpu = self.choose(task, had);
                self.places[cpu] = Place::Of(task);
                self.latest.insert(task, cpu);
                cpu
            }
            What::Off(_) | What::Displaced | What::Held => {
                let cpu = had.unwrap_or(0);
                if self.places[cpu] == Place::Of(task) {
                    let held = matches!(note.what, What::Held);
                    self.places[cpu] = if held { Place::HeldFor(task) } else { Place::Free };
                }
                cpu
            }
            _ => had.unwrap_or(0),
        }
    }

    fn choose(&mut self, task: u32, had: Option<usize>) -> usize {
        let its = [Place::Free, Place::Of(task), Place::HeldFor(task)];
        if let Some(cpu) = had.filter(|cpu| its.contains(&self.places[*cpu])) {
            return cpu;
        }
        let find = |wanted: fn(&Place) -> bool| self.places.iter().position(wanted);
        let free = find(|place| *place == Place::Free);
        free.or_else(|| find(|place| matches!(place, Place::HeldFor(_)))).unwrap_or_else(|| {
            // Times are known to some µs: for so long there may seem to be more CPUs than there are.
            self.places.push(Place::Free);
            self.places.len() - 1
        })
    }
}

fn kind(what: &What) -> RawKind<'_> {
    match what {
        What::Fork { child, process } => {
            RawKind::Fork { child: Tid(*child), process: Tid(*process) }
        }
        What::Exec { former, path } => RawKind::Exec { former: Tid(*former), path },
        What::Comm(name) => RawKind::Comm(name),
        What::Main => RawKind::Main,
        What::Exit => RawKind::Exit,
        What::On | What::Off(_) | What::Displaced | What::Held | What::Left | What::Lost(_) => {
            RawKind::On
        }
        What::Call { nr, args } => RawKind::Syscall { nr: *nr, args: *args },
        What::Back(ret) => RawKind::Back { ret: *ret },
        What::Fault { addr, ip } => RawKind::Fault { addr: *addr, ip: *ip, kernel: false },
        What::FaultEnd { major } => RawKind::FaultEnd { major: *major },
        What::Missed => RawKind::Sample { kernel: false, user: None, chain: &[] },
        What::Sample(user) => {
            RawKind::Sample { kernel: false, user: Some(user.state()), chain: &[] }
        }
        What::Site(user) => RawKind::Site(user.state()),
        What::Map(map) => {
            let Mapping { start, len, offset, inode, ref path, executable } = *map;
            RawKind::Map { start, len, offset, inode, path, executable }
        }
        What::Fd { fd, what } => RawKind::Fd { fd: *fd, what },
        What::Page { addr, zero } => RawKind::Page { addr: *addr, zero: *zero },
    }
}

impl User {
    fn state(&self) -> UserState<'_> {
        let Registers { ip, sp, fp, lr, .. } = self.registers;
        UserState { ip, sp, fp, lr, stack: &self.stack, chain: &[] }
    }
}
