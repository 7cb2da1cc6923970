//! The sealer: raw events in, a sealed trace out.
//!
//! - In: the events of a recording, in order of time.
//! - Out: the trace, in memory or written to a file while it is recorded (`trace_file`).
//! - Must not know: ELF or DWARF.
//!
//! It puts the other parts together and draws no conclusions.

mod stretches;
mod trace_file;

use self::stretches::Stretches;
use self::trace_file::TraceFile;
use crate::code::CopiedCode;
use crate::host::Host;
use crate::images::{Images, Mapping};
use crate::memory_budget::MemoryBudget;
use crate::symbolize::{name_kernel_functions, name_values, symbolize};
use crate::unwind::address_spaces::{Range, Spaces};
use crate::unwind::interned::Interned;
use crate::unwind::{Code, Unwinder};
use deadweight_trace::encoded::Events;
use deadweight_trace::hash::ByFast;
use deadweight_trace::ids::{ImageId, LocationId, StackId, Tid};
use deadweight_trace::raw::{Calls, RawEvent, RawKind, Sink, UserState};
use deadweight_trace::symbols::Symbols;
use deadweight_trace::units::{LiveAddr, Ns};
use deadweight_trace::{Event, Kind, Meta, Off, Trace, syscall};
use std::collections::HashSet;
use std::fs::File;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Seals a recording while it is made.
#[derive(Debug)]
pub struct Sealer {
    symbols: Symbols,
    interned: Interned,
    images: Images,
    spaces: Spaces,
    /// Tasks that are in a system call.
    in_syscall: HashSet<Tid, ByFast>,
    /// Processes that run a 32-bit program, whose system calls have other numbers.
    processes_32_bit: HashSet<Tid, ByFast>,
    unwinder: Unwinder,
    chain: Vec<Code>,
    locations: Vec<LocationId>,
    /// How many user-mode samples each stack has.
    hits: Vec<u64>,
    events: Events,
    register_stretches: Stretches,
    /// By number of a call: which of its arguments the trace keeps.
    kept_args: Vec<&'static [usize]>,
    /// The number of `mprotect`.
    mprotect: Option<u16>,
    zero: Option<u64>,
    meta: Meta,
    trace_file: Option<TraceFile>,
    host: Host,
    memory_budget: MemoryBudget,
    /// Nothing is recorded after this.
    is_last: bool,
    /// When events were last written.
    written: Instant,
}

/// `PROT_WRITE` of `mprotect`.
const WRITABLE: u64 = 2;

/// Warning about a 32-bit program.
const IS_32_BIT: &str = "is a 32-bit program: its system calls are counted and timed, but not \
     distinguished, and only the innermost function of its stacks is known";

/// How often the latest events are written to the trace file during a recording: if we are killed, no more is
/// lost.
const WRITE_EVERY: Duration = Duration::from_millis(500);

impl Sealer {
    /// A sealer that keeps the trace in memory, for [`Sealer::into_trace`].
    #[must_use]
    pub fn to_memory(host: Host) -> Self {
        let mut symbols = Symbols::default();
        let began = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let images = Images::new(&mut symbols, i64::try_from(began).unwrap_or(i64::MAX));
        let interned = Interned::default();
        Self {
            symbols,
            interned,
            images,
            spaces: Spaces::default(),
            in_syscall: HashSet::default(),
            processes_32_bit: HashSet::default(),
            unwinder: Unwinder::default(),
            chain: Vec::new(),
            locations: Vec::new(),
            hits: Vec::new(),
            events: Events::default(),
            register_stretches: Stretches::default(),
            kept_args: syscall::kept_by_number(syscall::Arch::HOST),
            mprotect: syscall::number(syscall::Arch::HOST, "mprotect"),
            zero: None,
            meta: Meta::default(),
            trace_file: None,
            host,
            memory_budget: MemoryBudget::new(host),
            is_last: false,
            written: Instant::now(),
        }
    }

    /// A sealer that writes the trace to `file` during the recording and keeps no events. A recording that breaks
    /// off can be read up to there.
    #[must_use]
    pub fn to_file(file: File, host: Host) -> Self {
        Self { trace_file: Some(TraceFile::new(file)), ..Self::to_memory(host) }
    }

    /// Limits the trace file to this many bytes: later events are then dropped.
    pub fn limit(&mut self, most: u64) {
        if let Some(file) = &mut self.trace_file {
            file.limit(most);
        }
    }

    /// Nothing is recorded after this: before the program's files are read, this process gives up its privileges
    /// ([`Host::drop_privileges`]).
    pub fn mark_last(&mut self) {
        self.is_last = true;
    }

    /// Why the trace file is not complete, in a sentence; none if it is, or if it only reached its limit.
    #[must_use]
    pub fn failure(&self) -> Option<&str> {
        self.trace_file.as_ref().filter(|file| !file.is_full)?.failure.as_deref()
    }

    /// Whether a trace file with a failure can be read up to there.
    #[must_use]
    pub fn is_readable(&self) -> bool {
        self.trace_file.as_ref().is_none_or(|file| !file.is_unreadable)
    }

    /// The sealed trace. Incomplete ([`Meta::complete`]) before [`Sink::finish`] was called;
    /// without events if they went to a file.
    #[must_use]
    pub fn into_trace(self) -> Trace {
        Trace::from_encoded(self.meta, self.symbols, self.events)
    }

    /// Writes the blocks of events that are full.
    fn write(&mut self) {
        if let Some(file) = &mut self.trace_file
            && !self.events.closed().is_empty()
        {
            file.append(&self.meta, &self.symbols, &self.events.take_closed());
            self.written = Instant::now();
        }
    }

    /// The stack that the user registers and stack of `task` of `process` give.
    fn user_stack(&mut self, process: Tid, task: Tid, state: &UserState<'_>) -> StackId {
        let space = self.spaces.of(process).unwrap_or_default();
        let in_syscall = self.in_syscall.contains(&task);
        self.unwinder.walk(state, in_syscall, &space, &mut self.images, &mut self.chain);
        self.locations.clear();
        for code in &self.chain {
            let (image, address) = file_address(*code);
            self.locations.push(self.interned.location(&mut self.symbols, image, address));
        }
        self.interned.stack(&mut self.symbols, &self.locations)
    }

    /// Keeps the registers of a sample: of all at first, later of stretches.
    fn registers(&mut self, sample: &Event, general: &[u64]) {
        let groups = general.as_chunks::<4>().0;
        if groups.is_empty() || !self.register_stretches.next() {
            return;
        }
        for (first, values) in (0..).step_by(4).zip(groups) {
            self.events.push(Event { kind: Kind::Registers { first, values: *values }, ..*sample });
        }
    }

    /// The stack of a chain of kernel return addresses, leaf first.
    fn kernel_stack(&mut self, chain: &[u64]) -> StackId {
        if chain.is_empty() {
            return StackId(0);
        }
        let kernel = self.images.kernel(&mut self.symbols);
        self.locations.clear();
        for (depth, address) in chain.iter().enumerate() {
            // The leaf is an instruction that executes; the others are return addresses: the call is before them.
            let address = if depth == 0 { *address } else { address.wrapping_sub(1) };
            self.locations.push(self.interned.location(&mut self.symbols, kernel, address));
        }
        self.interned.stack(&mut self.symbols, &self.locations)
    }

    /// The location of an instruction of `process`, or of the kernel.
    fn instruction(&mut self, process: Tid, ip: u64, kernel: bool) -> LocationId {
        if kernel {
            let image = self.images.kernel(&mut self.symbols);
            return self.interned.location(&mut self.symbols, image, ip);
        }
        let range = self.spaces.of(process).and_then(|space| space.find(ip).copied());
        let (image, address) = file_address(Code { address: ip, range });
        self.interned.location(&mut self.symbols, image, address)
    }

    fn map(&mut self, mapping: &Mapping<'_>, executable: bool) -> Kind {
        let end = mapping.start.saturating_add(mapping.len);
        let image = if executable {
            let (image, bias) = self.images.map(&mut self.symbols, mapping);
            let range = Range { start: mapping.start, end, image, bias };
            self.spaces.map(mapping.process, range);
            if self.images.is_32_bit(image) {
                self.processes_32_bit.insert(mapping.process);
                self.images.warn(mapping.path, IS_32_BIT);
            }
            image
        } else {
            self.spaces.unmap(mapping.process, mapping.start, end);
            self.images.named(&mut self.symbols, mapping.path)
        };
        Kind::Map { start: LiveAddr(mapping.start), len: mapping.len, image }
    }

    /// Counts a sample of user code.
    fn hit(&mut self, stack: StackId) {
        if self.hits.len() <= stack.index() {
            self.hits.resize(stack.index() + 1, 0);
        }
        self.hits[stack.index()] += 1;
    }

    /// The sealed form of a raw event. `process` is the process of its task.
    fn seal(&mut self, process: Tid, raw: &RawEvent<'_>) -> Kind {
        match raw.kind {
            RawKind::Fork { child, process: of } => {
                self.spaces.fork(process, child, of);
                if child == of {
                    self.images.forget(of);
                }
                if self.processes_32_bit.contains(&process) {
                    self.processes_32_bit.insert(of);
                }
                Kind::Fork { child, process: of }
            }
            RawKind::Exec { former, path } => {
                self.spaces.exec(process);
                self.images.forget(process);
                self.processes_32_bit.remove(&process);
                self.in_syscall.remove(&raw.task);
                Kind::Exec { former, path: self.symbols.intern(path) }
            }
            RawKind::Comm(name) => Kind::Comm(self.symbols.intern(name)),
            RawKind::Off { why, chain } => {
                let stack = self.kernel_stack(chain);
                if why == Off::Dead {
                    self.task_ended(raw.task);
                }
                Kind::Off { why, stack }
            }
            RawKind::Wake { waker, irq, chain, inferred } => {
                Kind::Wake { waker, irq, stack: self.kernel_stack(chain), inferred }
            }
            RawKind::Syscall { nr, args } => {
                self.in_syscall.insert(raw.task);
                self.syscall(process, nr, &args)
            }
            RawKind::Calls(calls) => self.counted(process, &calls),
            RawKind::Fault { addr, ip, kernel } => {
                let by = self.instruction(process, ip, kernel);
                Kind::Fault { addr: LiveAddr(addr), by, kernel }
            }
            RawKind::Sample { kernel, user, chain } => {
                let stack =
                    user.map_or(StackId(0), |user| self.user_stack(process, raw.task, &user));
                if !kernel {
                    self.hit(stack);
                }
                Kind::Sample { kernel, stack, kernel_stack: self.kernel_stack(chain) }
            }
            RawKind::Site(user) => Kind::Site(self.user_stack(process, raw.task, &user)),
            RawKind::Map { start, len, offset, inode, path, executable } => {
                self.map(&Mapping { process, start, len, offset, inode, path }, executable)
            }
            RawKind::Fd { fd, what } => Kind::Fd { fd, what: self.symbols.intern(what) },
            RawKind::Probe { probe, args, user } => {
                let stack =
                    user.map_or(StackId(0), |user| self.user_stack(process, raw.task, &user));
                Kind::Probe { probe: self.symbols.intern(probe), args, stack }
            }
            RawKind::Page { addr, zero } => Kind::Page { addr: LiveAddr(addr), zero },
            RawKind::Exit => Kind::Exit,
            RawKind::On => Kind::On,
            RawKind::Back { ret } => {
                self.in_syscall.remove(&raw.task);
                Kind::Back { ret }
            }
            RawKind::FaultEnd { major } => Kind::FaultEnd { major },
            RawKind::Timer => Kind::Timer,
            RawKind::TimerEnd => Kind::TimerEnd,
            RawKind::Main => Kind::Main,
            RawKind::Lost { count } => Kind::Lost { count },
        }
    }

    /// A task has ended. What is known about its process is dropped later.
    fn task_ended(&mut self, task: Tid) {
        self.in_syscall.remove(&task);
        if let Some(ended) = self.spaces.ended(task) {
            self.processes_32_bit.remove(&ended);
            self.images.forget(ended);
        }
    }

    /// A system call begins.
    fn syscall(&mut self, process: Tid, nr: u16, args: &[u64; 6]) -> Kind {
        if !self.processes_32_bit.is_empty() && self.processes_32_bit.contains(&process) {
            return Kind::Syscall { nr: u16::MAX, args: [0; 4] };
        }
        let [start, len, protection, ..] = *args;
        if Some(nr) == self.mprotect && protection & WRITABLE != 0 {
            let space = self.spaces.of(process).unwrap_or_default();
            for range in space.within(start, start.saturating_add(len)) {
                let at = |live: u64| live.wrapping_sub(range.bias);
                self.images.rewrite(range.image, at(range.start)..at(range.end));
            }
        }
        Kind::Syscall { nr, args: self.kept(nr, args) }
    }

    /// System calls that were only counted: none of them changes mappings.
    fn counted(&self, process: Tid, calls: &Calls) -> Kind {
        let hidden = self.processes_32_bit.contains(&process);
        let args = if hidden { [0; 4] } else { self.kept(calls.nr, &calls.args) };
        let nr = if hidden { u16::MAX } else { calls.nr };
        let (inside, over) = (Ns(calls.inside), Ns(calls.over));
        Kind::Calls { nr, args, ret: calls.ret, count: calls.count, inside, over }
    }

    /// The arguments of a system call that the trace keeps.
    fn kept(&self, nr: u16, args: &[u64; 6]) -> [u64; 4] {
        let mut kept = [0; 4];
        let positions = self.kept_args.get(usize::from(nr)).copied();
        for (to, from) in kept.iter_mut().zip(positions.unwrap_or_else(|| syscall::kept(""))) {
            *to = args[*from];
        }
        kept
    }
}

/// Image and file address of code; unknown code keeps its live address.
fn file_address(code: Code) -> (ImageId, u64) {
    code.range.map_or((ImageId(0), code.address), |range| {
        (range.image, code.address.wrapping_sub(range.bias))
    })
}

impl Sink for Sealer {
    fn begin(&mut self, meta: &Meta) {
        self.zero = Some(meta.zero);
        self.meta = meta.clone();
        if let Some(file) = &mut self.trace_file {
            // The file can be opened even if nothing follows.
            file.append(&self.meta, &self.symbols, &[]);
        }
    }

    fn event(&mut self, raw: &RawEvent<'_>) {
        if self.memory_budget.drops_event(&self.events, self.images.largest) {
            return;
        }
        let zero = *self.zero.get_or_insert(raw.at);
        let process = self.spaces.process(raw.process, raw.task);
        let kind = self.seal(process, raw);
        let event =
            Event { at: Ns(raw.at.saturating_sub(zero)), cpu: raw.cpu, task: raw.task, kind };
        self.events.push(event);
        if let RawKind::Sample { kernel: false, user: Some(user), .. } = raw.kind {
            self.registers(&event, user.general);
        }
        self.write();
    }

    fn executable(&mut self, path: PathBuf, file: File) {
        self.images.keep(path, file);
    }

    fn flush(&mut self) {
        self.memory_budget.check(&self.events, self.images.largest);
        if self.trace_file.is_some() && self.written.elapsed() >= WRITE_EVERY {
            self.events.close();
            self.write();
        }
    }

    fn finish(&mut self, meta: Meta) {
        self.meta = meta;
        self.memory_budget.finish(&mut self.events, &mut self.meta);
        // If we are killed while names are read, the events are not lost.
        self.events.close();
        self.write();
        let (symbols, images) = (&mut self.symbols, &mut self.images);
        name_kernel_functions(symbols, images);
        if self.is_last {
            (self.host.drop_privileges)();
        }
        let code = CopiedCode::of_leaves(symbols, &mut self.interned, images, &self.hits);
        symbolize(symbols, images, &self.host);
        code.keep(symbols, images, &self.hits);
        name_values(symbols, images, &self.host);
        self.meta.warnings.append(&mut self.images.warnings);
        if let Some(file) = &mut self.trace_file {
            self.events.close();
            file.finish(&mut self.meta, &self.symbols, &self.events.take_closed());
        }
    }
}
