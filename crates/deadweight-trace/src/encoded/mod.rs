//! Events in encoded form, the same in memory and in the file: a few bytes each, decoded while they are walked.
//!
//! - In: events in order of time, or the bytes of a block.
//! - Out: [`Block`]s, each decodable without any other, and the events in them.
//! - Must not know: files; `binary` puts blocks into one. `docs/trace-format.md` describes the layout.

mod ahead;
pub(crate) mod bytes;
mod registers;

use crate::event::{Event, Kind, Off};
use crate::ids::{Cpu, ImageId, LocationId, NameId, StackId, Tid};
use crate::units::{LiveAddr, Ns};
use bytes::{Bytes, put, put_signed};
use registers::Registers;

/// A block is closed when its events take this many bytes: small enough that a damaged block loses little, large
/// enough that its frame costs nothing.
const BLOCK: usize = 1 << 16;

/// Fewer bytes of events are not worth a thread: they are decoded in some milliseconds.
pub(crate) const FOR_A_THREAD: usize = 512 << 10;

/// CPU numbers are below this, as in the kernel (`NR_CPUS`): it bounds the memory of a walk.
pub(crate) const CPUS: u16 = 8192;

/// In a head byte: CPU or task differ from those of the previous event, and follow.
const ELSEWHERE: u8 = 0x20;
/// In a head byte: two flags whose meaning depends on the kind.
const FLAG: u8 = 0x40;
const OTHER_FLAG: u8 = 0x80;

/// The low five bits of a head byte. Numbers are permanent: a kind that is no longer written keeps its number.
mod tag {
    pub(super) const FORK: u8 = 0;
    pub(super) const EXEC: u8 = 1;
    pub(super) const COMM: u8 = 2;
    pub(super) const EXIT: u8 = 3;
    pub(super) const ON: u8 = 4;
    pub(super) const OFF: u8 = 5;
    pub(super) const WAKE: u8 = 6;
    pub(super) const SYSCALL: u8 = 7;
    pub(super) const BACK: u8 = 8;
    pub(super) const FAULT: u8 = 9;
    pub(super) const FAULT_END: u8 = 10;
    pub(super) const TIMER: u8 = 11;
    pub(super) const TIMER_END: u8 = 12;
    pub(super) const SAMPLE: u8 = 13;
    pub(super) const SITE: u8 = 14;
    pub(super) const MAP: u8 = 15;
    pub(super) const FD: u8 = 16;
    pub(super) const MAIN: u8 = 17;
    pub(super) const PROBE: u8 = 18;
    pub(super) const LOST: u8 = 19;
    pub(super) const PAGE: u8 = 20;
    pub(super) const CALLS: u8 = 21;
    pub(super) const REGISTERS: u8 = 22;
}

const OFFS: [Off; 5] = [Off::Blocked, Off::Preempted, Off::Yielded, Off::Stopped, Off::Dead];

/// Events in order of time, encoded.
#[derive(Clone, Debug, Default)]
pub struct Events {
    closed: Vec<Block>,
    open: Block,
    context: Context,
    count: usize,
}

/// Encoded events that can be decoded without any others.
#[derive(Clone, Debug, Default)]
pub struct Block {
    pub(crate) bytes: Vec<u8>,
    pub(crate) count: u32,
    /// Time of the first event.
    pub(crate) first: Ns,
}

/// The state that the next event of a block is encoded against.
#[derive(Clone, Debug, Default)]
struct Context {
    at: u64,
    cpu: Cpu,
    /// By CPU number.
    on: Vec<Latest>,
}

/// The latest task and call of a CPU within the block.
#[derive(Copy, Clone, Debug, Default)]
struct Latest {
    task: Tid,
    call: (u16, [u64; 4]),
    registers: Registers,
}

impl Context {
    fn latest(&mut self, cpu: Cpu) -> &mut Latest {
        let at = usize::from(cpu.0);
        if at >= self.on.len() {
            self.on.resize(at + 1, Latest::default());
        }
        &mut self.on[at]
    }

    fn restart(&mut self, at: Ns) {
        self.at = at.0;
        self.cpu = Cpu(0);
        self.on.clear();
    }
}

impl Events {
    /// Appends an event. An event earlier than the previous one gets the time of the previous one.
    pub fn push(&mut self, event: Event) {
        if self.open.count == 0 {
            let at = event.at.max(Ns(self.context.at));
            self.open.first = at;
            self.context.restart(at);
        }
        encode(&mut self.open.bytes, &mut self.context, &event);
        self.open.count += 1;
        self.count += 1;
        if self.open.bytes.len() >= BLOCK {
            self.close();
        }
    }

    /// Closes the open block, so that it can be written.
    pub fn close(&mut self) {
        if self.open.count > 0 {
            // The capacity grew by doubling: keep only what is used.
            self.open.bytes.shrink_to_fit();
            self.closed.push(std::mem::take(&mut self.open));
        }
    }

    /// Appends a whole block. Its events must not be earlier than those before.
    pub(crate) fn push_block(&mut self, block: Block) {
        self.close();
        self.count += block.count as usize;
        self.closed.push(block);
    }

    /// The closed blocks.
    #[must_use]
    pub fn closed(&self) -> &[Block] {
        &self.closed
    }

    /// Takes the closed blocks out: the events that remain are later ones.
    pub fn take_closed(&mut self) -> Vec<Block> {
        let taken = std::mem::take(&mut self.closed);
        self.count -= taken.iter().map(|b| b.count as usize).sum::<usize>();
        taken
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Bytes that the events take.
    #[must_use]
    pub fn size(&self) -> usize {
        self.closed.iter().map(|b| b.bytes.len()).sum::<usize>() + self.open.bytes.len()
    }

    /// The events in order.
    pub fn iter(&self) -> impl Iterator<Item = Event> + Clone {
        self.closed.iter().chain([&self.open]).flat_map(Block::iter)
    }
}

impl Extend<Event> for Events {
    fn extend<I: IntoIterator<Item = Event>>(&mut self, events: I) {
        events.into_iter().for_each(|e| self.push(e));
    }
}

impl FromIterator<Event> for Events {
    fn from_iter<I: IntoIterator<Item = Event>>(iter: I) -> Self {
        let mut events = Self::default();
        events.extend(iter);
        events
    }
}

impl Block {
    /// The events in order. Ends early at bytes that are not valid.
    #[must_use]
    pub fn iter(&self) -> Walk<'_> {
        Walk::new(&self.bytes, self.count, self.first)
    }
}

/// A walk over the events of a block.
#[derive(Clone, Debug)]
pub struct Walk<'a> {
    bytes: Bytes<'a>,
    left: u32,
    context: Context,
}

impl<'a> Walk<'a> {
    pub(crate) fn new(bytes: &'a [u8], count: u32, first: Ns) -> Self {
        let mut context = Context::default();
        context.restart(first);
        Self { bytes: Bytes(bytes), left: count, context }
    }

    /// Whether all events were read and nothing is left over.
    pub(crate) fn is_done(&self) -> bool {
        self.left == 0 && self.bytes.is_empty()
    }
}

impl Iterator for Walk<'_> {
    type Item = Event;

    #[inline]
    fn next(&mut self) -> Option<Event> {
        if self.left == 0 {
            return None;
        }
        let event = decode(&mut self.bytes, &mut self.context);
        match event {
            Some(_) => self.left -= 1,
            // Invalid bytes end the walk; `left` stays above 0.
            None => self.bytes = Bytes(&[]),
        }
        event
    }
}

fn encode(out: &mut Vec<u8>, context: &mut Context, event: &Event) {
    let Event { at, cpu, task, kind } = *event;
    let mut head = head(&kind);
    let here = cpu == context.cpu && context.latest(cpu).task == task;
    if !here {
        head |= ELSEWHERE;
    }
    if let Kind::Syscall { nr, args } | Kind::Calls { nr, args, .. } = kind
        && context.latest(cpu).call == (nr, args)
    {
        head |= FLAG;
    }
    out.push(head);
    put(out, at.0.saturating_sub(context.at));
    context.at = context.at.max(at.0);
    if !here {
        let latest = context.latest(cpu);
        let same_task = latest.task == task;
        put(out, u64::from(cpu.0) << 1 | u64::from(same_task));
        if !same_task {
            put(out, task.0.into());
        }
        latest.task = task;
        context.cpu = cpu;
    }
    if head & FLAG == 0 || head & 0x1f != tag::SYSCALL {
        encode_rest(out, context.latest(cpu), task, head & FLAG != 0, &kind);
    }
}

/// The tag of a kind with the flags that are part of it.
fn head(kind: &Kind) -> u8 {
    let flag = |on: bool| if on { FLAG } else { 0 };
    match *kind {
        Kind::Fork { .. } => tag::FORK,
        Kind::Exec { .. } => tag::EXEC,
        Kind::Comm(_) => tag::COMM,
        Kind::Exit => tag::EXIT,
        Kind::On => tag::ON,
        Kind::Off { .. } => tag::OFF,
        Kind::Wake { irq, inferred, .. } => {
            tag::WAKE | flag(irq) | if inferred { OTHER_FLAG } else { 0 }
        }
        Kind::Syscall { .. } => tag::SYSCALL,
        Kind::Back { .. } => tag::BACK,
        Kind::Calls { .. } => tag::CALLS,
        Kind::Fault { kernel, .. } => tag::FAULT | flag(kernel),
        Kind::FaultEnd { major } => tag::FAULT_END | flag(major),
        Kind::Timer => tag::TIMER,
        Kind::TimerEnd => tag::TIMER_END,
        // A kernel stack implies that it was in the kernel.
        Kind::Sample { kernel, kernel_stack, .. } => {
            tag::SAMPLE | flag(kernel || kernel_stack != StackId(0))
        }
        Kind::Registers { .. } => tag::REGISTERS,
        Kind::Site(_) => tag::SITE,
        Kind::Map { .. } => tag::MAP,
        Kind::Fd { .. } => tag::FD,
        Kind::Main => tag::MAIN,
        Kind::Probe { .. } => tag::PROBE,
        Kind::Lost { .. } => tag::LOST,
        Kind::Page { zero, .. } => tag::PAGE | flag(zero),
    }
}

fn encode_rest(out: &mut Vec<u8>, latest: &mut Latest, task: Tid, flag: bool, kind: &Kind) {
    match *kind {
        Kind::Fork { child, process } => {
            put(out, child.0.into());
            put_signed(out, i64::from(process.0) - i64::from(child.0));
        }
        Kind::Exec { former, path } => {
            put_signed(out, i64::from(former.0) - i64::from(task.0));
            put(out, path.0.into());
        }
        Kind::Comm(name) => put(out, name.0.into()),
        Kind::Off { why, stack } => {
            let at = OFFS.iter().position(|o| *o == why).unwrap_or_default();
            put(out, at as u64);
            put(out, stack.0.into());
        }
        Kind::Wake { waker, stack, .. } => {
            put(out, waker.0.into());
            put(out, stack.0.into());
        }
        Kind::Syscall { nr, args } => encode_call(out, latest, nr, args),
        Kind::Calls { nr, args, ret, count, inside, over } => {
            if !flag {
                encode_call(out, latest, nr, args);
            }
            put_signed(out, ret);
            [count.into(), inside.0, over.0].iter().for_each(|n| put(out, *n));
        }
        Kind::Back { ret } => put_signed(out, ret),
        Kind::Fault { addr, by, .. } => {
            put(out, addr.0);
            put(out, by.0.into());
        }
        Kind::Sample { stack, kernel, kernel_stack } => {
            put(out, stack.0.into());
            if kernel || kernel_stack != StackId(0) {
                put(out, kernel_stack.0.into());
            }
        }
        Kind::Registers { first, values } => latest.registers.put(out, first, values),
        Kind::Site(stack) => put(out, stack.0.into()),
        Kind::Map { start, len, image } => {
            put(out, start.0);
            put(out, len);
            put(out, image.0.into());
        }
        Kind::Fd { fd, what } => {
            put_signed(out, fd.into());
            put(out, what.0.into());
        }
        Kind::Probe { probe, args, stack } => {
            put(out, probe.0.into());
            args.iter().for_each(|a| put_signed(out, a.cast_signed()));
            put(out, stack.0.into());
        }
        Kind::Lost { count } => put(out, count),
        Kind::Page { addr, .. } => put(out, addr.0),
        Kind::Exit
        | Kind::On
        | Kind::FaultEnd { .. }
        | Kind::Timer
        | Kind::TimerEnd
        | Kind::Main => {}
    }
}

fn encode_call(out: &mut Vec<u8>, latest: &mut Latest, nr: u16, args: [u64; 4]) {
    put(out, nr.into());
    let mask = (0..4).filter(|i| args[*i] != 0).fold(0, |mask, i| mask | 1 << i);
    out.push(mask);
    args.iter().filter(|a| **a != 0).for_each(|a| put_signed(out, a.cast_signed()));
    latest.call = (nr, args);
}

#[inline]
fn decode(bytes: &mut Bytes<'_>, context: &mut Context) -> Option<Event> {
    let head = bytes.byte()?;
    context.at = context.at.checked_add(bytes.number()?)?;
    if head & ELSEWHERE != 0 {
        let cpu_and_task = bytes.small::<u32>()?;
        context.cpu = Cpu(u16::try_from(cpu_and_task >> 1).ok().filter(|c| *c < CPUS)?);
        if cpu_and_task & 1 == 0 {
            context.latest(context.cpu).task = Tid(bytes.small()?);
        }
    }
    let cpu = context.cpu;
    let at = Ns(context.at);
    let latest = context.latest(cpu);
    let task = latest.task;
    let kind = decode_kind(bytes, head, latest)?;
    Some(Event { at, cpu, task, kind })
}

#[inline]
fn decode_kind(bytes: &mut Bytes<'_>, head: u8, latest: &mut Latest) -> Option<Kind> {
    let flag = head & FLAG != 0;
    Some(match head & 0x1f {
        tag::FORK => {
            let child: u32 = bytes.small()?;
            Kind::Fork { child: Tid(child), process: near(child, bytes)? }
        }
        tag::EXEC => Kind::Exec { former: near(latest.task.0, bytes)?, path: name(bytes)? },
        tag::COMM => Kind::Comm(name(bytes)?),
        tag::EXIT => Kind::Exit,
        tag::ON => Kind::On,
        tag::OFF => {
            let why = *OFFS.get(bytes.small::<usize>()?)?;
            Kind::Off { why, stack: stack(bytes)? }
        }
        tag::WAKE => {
            let waker = Tid(bytes.small()?);
            let inferred = head & OTHER_FLAG != 0;
            Kind::Wake { waker, irq: flag, stack: stack(bytes)?, inferred }
        }
        tag::SYSCALL => {
            if !flag {
                latest.call = call(bytes)?;
            }
            let (nr, args) = latest.call;
            Kind::Syscall { nr, args }
        }
        tag::BACK => Kind::Back { ret: bytes.signed()? },
        tag::CALLS => calls(bytes, flag, latest)?,
        tag::FAULT => {
            let addr = LiveAddr(bytes.number()?);
            Kind::Fault { addr, by: LocationId(bytes.small()?), kernel: flag }
        }
        tag::FAULT_END => Kind::FaultEnd { major: flag },
        tag::TIMER => Kind::Timer,
        tag::TIMER_END => Kind::TimerEnd,
        tag::SAMPLE => {
            let user = stack(bytes)?;
            let kernel_stack = if flag { stack(bytes)? } else { StackId(0) };
            Kind::Sample { kernel: flag, stack: user, kernel_stack }
        }
        tag::REGISTERS => latest.registers.take(bytes)?,
        tag::SITE => Kind::Site(stack(bytes)?),
        tag::MAP => {
            let start = LiveAddr(bytes.number()?);
            Kind::Map { start, len: bytes.number()?, image: ImageId(bytes.small()?) }
        }
        tag::FD => {
            let fd = i32::try_from(bytes.signed()?).ok()?;
            Kind::Fd { fd, what: name(bytes)? }
        }
        tag::MAIN => Kind::Main,
        tag::PROBE => {
            let probe = name(bytes)?;
            let args = [bytes.signed()?.cast_unsigned(), bytes.signed()?.cast_unsigned()];
            Kind::Probe { probe, args, stack: stack(bytes)? }
        }
        tag::LOST => Kind::Lost { count: bytes.number()? },
        tag::PAGE => Kind::Page { addr: LiveAddr(bytes.number()?), zero: flag },
        _ => return None,
    })
}

fn calls(bytes: &mut Bytes<'_>, flag: bool, latest: &mut Latest) -> Option<Kind> {
    if !flag {
        latest.call = call(bytes)?;
    }
    let (nr, args) = latest.call;
    let (ret, count) = (bytes.signed()?, bytes.small()?);
    let (inside, over) = (Ns(bytes.number()?), Ns(bytes.number()?));
    Some(Kind::Calls { nr, args, ret, count, inside, over })
}

fn call(bytes: &mut Bytes<'_>) -> Option<(u16, [u64; 4])> {
    let nr = bytes.small()?;
    let mask = bytes.byte()?;
    let mut args = [0; 4];
    for (i, arg) in args.iter_mut().enumerate() {
        if mask & 1 << i != 0 {
            *arg = bytes.signed()?.cast_unsigned();
        }
    }
    Some((nr, args))
}

fn near(tid: u32, bytes: &mut Bytes<'_>) -> Option<Tid> {
    let value = i64::from(tid).checked_add(bytes.signed()?)?;
    u32::try_from(value).ok().map(Tid)
}

fn name(bytes: &mut Bytes<'_>) -> Option<NameId> {
    Some(NameId(bytes.small()?))
}

fn stack(bytes: &mut Bytes<'_>) -> Option<StackId> {
    Some(StackId(bytes.small()?))
}
