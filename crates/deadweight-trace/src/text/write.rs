//! A trace as text: one stream in order of time, each line naming its task if there are several.
//!
//! Leaves out what the reader fills in. Not for choosing or sorting events.

use super::TextOptions;
use super::defaults::Defaults;
use super::header;
use super::stack::{Frames, Mode};
use super::word::{Enclosed, Name, Value};
use crate::ids::{NameId, StackId, Tid};
use crate::syscall::{self, Arch};
use crate::{Event, Kind, Off, Trace};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write};
use std::iter::Peekable;

/// Writes the part of `trace` that `part` asks for.
pub(super) fn write(trace: &Trace, part: TextOptions, out: &mut dyn Write) -> fmt::Result {
    let events = || trace.events().filter(|e| part.keep(e));
    let opening = Opening::of(events(), trace);
    let frames = Frames::new(&trace.symbols, part.addresses);
    let first = opening.headed.first().map(|(tid, _)| *tid).or(opening.first);
    header::write(out, &trace.meta, first, events())?;
    let program = opening.headed.first().map_or("", |(_, name)| trace.symbols.name(*name));
    header::write_images(out, &trace.symbols, &frames, program)?;
    for (tid, name) in &opening.headed {
        writeln!(out, "task {} {}", tid.0, Name(trace.symbols.name(*name)))?;
    }
    if let (Some(only), true) = (opening.only, opening.headed.is_empty()) {
        writeln!(out, "task {}", only.0)?;
    }
    if part.addresses {
        super::code::write(out, &trace.symbols, &frames)?;
    }
    let width = trace.meta.end.0.to_string().len().max(6);
    let mut writer = Writer {
        trace,
        frames,
        defaults: Defaults::new(trace.meta.arch),
        names: BTreeMap::new(),
        tagged: opening.only.is_none(),
        headed: opening.headed.iter().map(|(tid, _)| *tid).collect(),
        width,
    };
    let mut events = events().peekable();
    while let Some(event) = events.next() {
        writer.event(out, event, &mut events)?;
    }
    Ok(())
}

/// The lines above the events.
struct Opening {
    /// The task of the first event.
    first: Option<Tid>,
    /// The task, if all events are of one.
    only: Option<Tid>,
    /// Tasks whose `comm` event is written as their `task` line, with the name.
    headed: Vec<(Tid, NameId)>,
}

impl Opening {
    /// A task's `comm` event is written as its `task` line if a reader would restore it at the same place: it is the
    /// task's first event, and another event of the task follows at once.
    fn of(events: impl Iterator<Item = Event>, trace: &Trace) -> Self {
        let mut met = BTreeSet::new();
        let mut opening = Self { first: None, only: None, headed: Vec::new() };
        let mut events = events.peekable();
        while let Some(event) = events.next() {
            opening.first.get_or_insert(event.task);
            let is_first = met.insert(event.task);
            let (Kind::Comm(name), true) = (event.kind, is_first) else {
                continue;
            };
            // The default CPU of a wake-up is the waker's: the `comm` event would get another CPU.
            let same = |n: &&Event| (n.task, n.at, n.cpu) == (event.task, event.at, event.cpu);
            let next = events.peek().filter(same).map(|n| n.kind);
            let named = !trace.symbols.name(name).is_empty();
            if named && next.is_some_and(|kind| !matches!(kind, Kind::Wake { .. })) {
                opening.headed.push((event.task, name));
            }
        }
        opening.only = opening.first.filter(|_| met.len() == 1);
        opening
    }
}

struct Writer<'a> {
    trace: &'a Trace,
    frames: Frames<'a>,
    defaults: Defaults,
    /// The current name of each task.
    names: BTreeMap<Tid, NameId>,
    /// Whether lines name their task.
    tagged: bool,
    headed: BTreeSet<Tid>,
    width: usize,
}

impl Writer<'_> {
    fn event(
        &mut self,
        out: &mut dyn Write,
        event: Event,
        following: &mut Peekable<impl Iterator<Item = Event>>,
    ) -> fmt::Result {
        if let Kind::Comm(name) = event.kind
            && self.headed.remove(&event.task)
        {
            self.names.insert(event.task, name);
            return Ok(());
        }
        let mut event = event;
        let mut wake = None;
        let default_cpu = self.defaults.cpu(event.task, &event.kind);
        if matches!(event.kind, Kind::Wake { .. }) && event.cpu == default_cpu {
            let on = |n: &Event| n.kind == Kind::On && n.task == event.task && n.at == event.at;
            if let Some(on) = following.next_if(on) {
                self.defaults.pass(&event);
                wake = Some(event.kind);
                event = on;
            }
        }
        self.start(out, &event)?;
        self.kind(out, &event)?;
        if let Some(wake) = wake {
            out.write_char(' ')?;
            self.wake(out, &wake)?;
        }
        if let Kind::Comm(name) = event.kind {
            self.names.insert(event.task, name);
        }
        self.defaults.pass(&event);
        if super::resolve::has_site(&event.kind) {
            let site = |n: &Event| {
                matches!(n.kind, Kind::Site(_))
                    && (n.at, n.task, n.cpu) == (event.at, event.task, event.cpu)
            };
            if let Some(Event { kind: Kind::Site(stack), .. }) = following.next_if(site) {
                out.write_str(" from")?;
                self.stack(out, " ", stack, Mode::User)?;
            }
        }
        out.write_char('\n')
    }

    /// Time, task and CPU, the latter two where needed.
    fn start(&self, out: &mut dyn Write, event: &Event) -> fmt::Result {
        write!(out, "{:>width$} ", event.at.0, width = self.width)?;
        if self.tagged {
            write!(out, "[{}", event.task.0)?;
            self.name_of(out, event.task, &[']'])?;
            out.write_str("] ")?;
        }
        if event.cpu != self.defaults.cpu(event.task, &event.kind) {
            write!(out, "cpu{} ", event.cpu.0)?;
        }
        Ok(())
    }

    /// A blank and the task's current name, if it has one.
    fn name_of(&self, out: &mut dyn Write, task: Tid, closing: &[char]) -> fmt::Result {
        match self.names.get(&task).map_or("", |n| self.name(*n)) {
            "" => Ok(()),
            name => write!(out, " {}", Enclosed(name, closing)),
        }
    }

    fn name(&self, id: NameId) -> &str {
        self.trace.symbols.name(id)
    }

    fn arch(&self) -> Arch {
        self.trace.meta.arch
    }

    /// `before` and the stack; nothing for the empty stack.
    fn stack(&self, out: &mut dyn Write, before: &str, stack: StackId, mode: Mode) -> fmt::Result {
        if stack == StackId(0) {
            return Ok(());
        }
        out.write_str(before)?;
        self.frames.stack(out, stack, mode)
    }

    fn kind(&self, out: &mut dyn Write, event: &Event) -> fmt::Result {
        match event.kind {
            Kind::Fork { child, process } => self.fork(out, event.task, child, process),
            Kind::Exec { former, path } => {
                write!(out, "exec {}", Name(self.name(path)))?;
                if former == event.task {
                    return Ok(());
                }
                write!(out, " former {}", former.0)
            }
            Kind::Comm(name) => write!(out, "comm {}", Name(self.name(name))),
            Kind::Exit => out.write_str("exit"),
            Kind::On => out.write_str("on"),
            Kind::Off { why, stack } => self.off(out, event.task, why, stack),
            Kind::Wake { .. } => self.wake(out, &event.kind),
            Kind::Syscall { nr, args } => {
                out.write_str("syscall ")?;
                self.call(out, nr, &args)
            }
            Kind::Back { ret } if ret == self.defaults.result(event.task) => out.write_str("back"),
            Kind::Back { ret } => write!(out, "back {}", Value(ret.cast_unsigned())),
            Kind::Calls { .. } => self.calls(out, &event.kind),
            Kind::Fault { addr, by, kernel } => {
                write!(out, "fault {:#x}", addr.0)?;
                let mode = if kernel { Mode::Kernel } else { Mode::User };
                out.write_str(if kernel { " kernel" } else { "" })?;
                if !self.frames.is_known(by) {
                    return Ok(());
                }
                out.write_str(" by ")?;
                self.frames.location(out, by, mode)
            }
            Kind::FaultEnd { major: false } => out.write_str("fault-end"),
            Kind::FaultEnd { major: true } => out.write_str("fault-end major"),
            Kind::Timer => out.write_str("timer"),
            Kind::TimerEnd => out.write_str("timer-end"),
            Kind::Sample { kernel, stack, kernel_stack } => {
                out.write_str("sample")?;
                let flag = kernel && kernel_stack == StackId(0);
                out.write_str(if flag { " kernel" } else { "" })?;
                self.stack(out, " ", stack, Mode::User)?;
                self.stack(out, " : ", kernel_stack, Mode::Kernel)
            }
            Kind::Registers { first, values: [a, b, c, d] } => {
                write!(out, "registers {first} {a:#x} {b:#x} {c:#x} {d:#x}")
            }
            Kind::Site(stack) => {
                out.write_str("site")?;
                self.stack(out, " ", stack, Mode::User)
            }
            Kind::Map { start, len, image } => {
                let image = Name(self.frames.handle(image));
                write!(out, "map {:#x} {len:#x} {image}", start.0)
            }
            Kind::Fd { fd, what } => write!(out, "fd {fd} {}", Name(self.name(what))),
            Kind::Main => out.write_str("main"),
            Kind::Probe { probe, args, stack } => {
                write!(
                    out,
                    "probe {} {} {}",
                    Name(self.name(probe)),
                    Value(args[0]),
                    Value(args[1])
                )?;
                self.stack(out, " from ", stack, Mode::User)
            }
            Kind::Lost { count } => write!(out, "lost {count}"),
            Kind::Page { addr, zero } => {
                write!(out, "page {:#x}{}", addr.0, if zero { " zero" } else { "" })
            }
        }
    }

    fn fork(&self, out: &mut dyn Write, task: Tid, child: Tid, process: Tid) -> fmt::Result {
        write!(out, "fork {}", child.0)?;
        if process == child {
            Ok(())
        } else if process == self.defaults.process(task) {
            out.write_str(" thread")
        } else {
            write!(out, " in {}", process.0)
        }
    }

    fn off(&self, out: &mut dyn Write, task: Tid, why: Off, stack: StackId) -> fmt::Result {
        out.write_str(match why {
            Off::Blocked => "off blocked",
            Off::Preempted => "off preempted",
            Off::Yielded => "off yielded",
            Off::Stopped => "off stopped",
            Off::Dead => "off dead",
        })?;
        if let (Off::Blocked, Some((nr, args))) = (why, self.defaults.call(task)) {
            let name = syscall::name(self.arch(), nr);
            let shown = name.and_then(syscall::descriptor).map_or(0, |d| d + 1);
            out.write_char(' ')?;
            self.called(out, nr, args.get(..shown).unwrap_or(&[]))?;
        }
        self.stack(out, " : ", stack, Mode::Kernel)
    }

    /// A call with its kept arguments, and with others that are not 0.
    fn call(&self, out: &mut dyn Write, nr: u16, args: &[u64; 4]) -> fmt::Result {
        let kept = syscall::name(self.arch(), nr).map_or(0, |n| syscall::kept(n).len());
        let used = args.iter().rposition(|a| *a != 0).map_or(0, |at| at + 1);
        self.called(out, nr, &args[..kept.max(used).min(4)])
    }

    fn calls(&self, out: &mut dyn Write, calls: &Kind) -> fmt::Result {
        let Kind::Calls { nr, args, ret, count, inside, over } = *calls else {
            return Ok(());
        };
        write!(out, "calls {count} ")?;
        self.call(out, nr, &args)?;
        let ret = Value(ret.cast_unsigned());
        write!(out, " back {ret} inside {} over {}", Value(inside.0), Value(over.0))
    }

    fn called(&self, out: &mut dyn Write, nr: u16, args: &[u64]) -> fmt::Result {
        match syscall::name(self.arch(), nr) {
            Some(name) => out.write_str(name)?,
            None => write!(out, "nr{nr}")?,
        }
        args.iter().try_for_each(|arg| write!(out, " {}", Value(*arg)))
    }

    fn wake(&self, out: &mut dyn Write, wake: &Kind) -> fmt::Result {
        let Kind::Wake { waker, irq, stack, inferred } = *wake else {
            return Ok(());
        };
        match (waker, irq) {
            (Tid(0), true) => out.write_str("woken-by interrupt")?,
            (Tid(0), false) => out.write_str("woken-by idle")?,
            (waker, irq) => {
                write!(out, "woken-by {}", waker.0)?;
                self.name_of(out, waker, &[])?;
                out.write_str(if irq { " irq" } else { "" })?;
            }
        }
        out.write_str(if inferred { " inferred" } else { "" })?;
        self.stack(out, " : ", stack, Mode::Kernel)
    }
}
