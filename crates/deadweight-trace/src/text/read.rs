//! Lines of text into statements: each line by itself, without regard to any other.
//!
//! Not for defaults; `resolve` fills them in.

use super::TextError;
use super::header::{self, Header};
use super::stack::{Images, Mode, read_location, read_stack};
use super::word::{Words, number};
use crate::encoded::CPUS;
use crate::ids::{Cpu, LocationId, NameId, StackId, Tid};
use crate::symbols::Symbols;
use crate::syscall::{self, Arch};
use crate::units::{LiveAddr, Ns};
use crate::{Kind, Off};
use std::collections::BTreeMap;

/// The parsed lines of a text.
#[derive(Default)]
pub(super) struct Statements {
    pub(super) header: Header,
    pub(super) symbols: Symbols,
    /// In order of writing.
    pub(super) tasks: Vec<Declared>,
    /// In order of writing.
    pub(super) lines: Vec<Line>,
}

/// A `task` line.
#[derive(Clone, Debug, Default)]
pub(super) struct Declared {
    pub(super) line: usize,
    pub(super) tid: Tid,
    pub(super) name: Option<String>,
    pub(super) process: Option<Tid>,
    pub(super) parent: Option<Tid>,
}

/// An event line.
#[derive(Clone, Debug)]
pub(super) struct Line {
    pub(super) number: usize,
    pub(super) at: u64,
    pub(super) task: Tid,
    pub(super) cpu: Option<Cpu>,
    pub(super) what: What,
    /// The user stack after `from`.
    pub(super) site: Option<StackId>,
}

/// What happened, as far as the line states it.
#[derive(Clone, Debug)]
pub(super) enum What {
    /// Exactly this.
    Plain(Kind),
    /// `fork 13`, `fork 13 thread`, `fork 13 in 7`.
    Fork { child: Tid, process: Process },
    /// `exec`, with the task that called it if that is stated.
    Exec { former: Option<Tid>, path: NameId },
    /// `on`, or `on` with the wake-up at the same instant.
    On { woken: Option<Kind> },
    /// `off`, or `off` with the system call that it happens in.
    Off { why: Off, stack: StackId, call: Option<WrittenCall> },
    /// `back`, with or without its result.
    Back { ret: Option<i64> },
}

/// The process that a new task belongs to.
#[derive(Clone, Copy, Debug)]
pub(super) enum Process {
    /// A new one.
    Own,
    /// Its parent's.
    Parents,
    /// This one.
    Given(Tid),
}

/// A system call with the arguments that were written.
#[derive(Clone, Copy, Debug)]
pub(super) struct WrittenCall {
    pub(super) nr: u16,
    pub(super) args: [u64; 4],
    pub(super) given: usize,
}

/// Reads all lines.
pub(super) fn read(text: &str) -> Result<Statements, TextError> {
    let mut reader = Reader::default();
    for (at, line) in text.lines().enumerate() {
        let words = Words::new(line, at + 1);
        if !words.at_end() {
            reader.line(words, at + 1)?;
        }
    }
    reader.done.symbols.code.sort_by_key(|code| (code.image, code.addr));
    Ok(reader.done)
}

#[derive(Default)]
struct Reader {
    done: Statements,
    images: Images,
    section: Option<Tid>,
    latest: BTreeMap<Tid, u64>,
}

impl Reader {
    fn line(&mut self, mut words: Words<'_>, number: usize) -> Result<(), TextError> {
        if words.peek().starts_with(|c: char| c.is_ascii_digit()) {
            let line = self.happening(&mut words, number)?;
            self.done.lines.push(line);
        } else if words.keyword("task") {
            self.task(&mut words, number)?;
        } else {
            let Statements { header, symbols, .. } = &mut self.done;
            header::read_line(&mut words, header, symbols, &mut self.images)?;
        }
        words.finish()
    }

    fn task(&mut self, words: &mut Words<'_>, line: usize) -> Result<(), TextError> {
        let tid = Tid(words.small("a task's number")?);
        let mut said = Declared { line, tid, ..Declared::default() };
        let keyword = matches!(words.peek(), "" | "of" | "child-of" | "outside");
        if !keyword {
            said.name = Some(words.name("the task's name")?);
        }
        loop {
            if words.keyword("of") {
                said.process = Some(Tid(words.small("a process's number")?));
            } else if words.keyword("child-of") {
                said.parent = Some(Tid(words.small("a task's number")?));
            } else if !words.keyword("outside") {
                break;
            }
        }
        said.parent = said.parent.or(said.process);
        self.section = Some(tid);
        match self.done.tasks.iter().find(|t| t.tid == tid) {
            None => {
                if self.images.program.is_empty() {
                    self.images.program = said.name.clone().unwrap_or_default();
                }
                self.done.tasks.push(said);
                Ok(())
            }
            Some(first) => {
                let news = (said.name.is_some() && said.name != first.name)
                    || (said.parent.is_some() && said.parent != first.parent);
                if news { Err(words.expected("what task's first line says")) } else { Ok(()) }
            }
        }
    }

    fn happening(&mut self, words: &mut Words<'_>, number: usize) -> Result<Line, TextError> {
        let at = words.time()?;
        let task = self.task_of_line(words)?;
        let latest = self.latest.entry(task).or_insert(at);
        if at < *latest {
            let what = format!("a time from {latest} on, as task {} is there already", task.0);
            return Err(words.expected(what));
        }
        *latest = at;
        let cpu = match words.peek().strip_prefix("cpu").and_then(super::word::number) {
            Some(n) => {
                let n = u16::try_from(n).ok().filter(|n| *n < CPUS);
                let cpu = Cpu(n.ok_or_else(|| words.expected("a CPU's number"))?);
                words.word();
                Some(cpu)
            }
            None => None,
        };
        let what = self.what(words)?;
        let site = if words.keyword("from") { Some(self.stack(words, Mode::User)?) } else { None };
        Ok(Line { number, at, task, cpu, what, site })
    }

    /// `[2 xxd]`, or the section's task.
    fn task_of_line(&self, words: &mut Words<'_>) -> Result<Tid, TextError> {
        if !words.take_char('[') {
            return self.section.ok_or_else(|| words.expected("`task TID NAME` above, or [TID]"));
        }
        let digits = words.take_while(|c| c.is_ascii_digit());
        let tid = number(digits).and_then(|n| u32::try_from(n).ok());
        let tid = tid.ok_or_else(|| words.expected("a task's number"))?;
        words.take_while(|c| c == ' ');
        if words.starts_with('"') {
            words.quoted()?;
        } else {
            words.take_while(|c| c != ']');
        }
        if !words.take_char(']') {
            return Err(words.expected("a closing bracket"));
        }
        words.end_word()?;
        Ok(Tid(tid))
    }

    fn arch(&self) -> Arch {
        self.done.header.meta.arch
    }

    fn stack(&mut self, words: &mut Words<'_>, mode: Mode) -> Result<StackId, TextError> {
        read_stack(words, &mut self.done.symbols, &mut self.images, mode)
    }

    /// A kernel stack after a colon, if there is one.
    fn kernel_stack(&mut self, words: &mut Words<'_>) -> Result<StackId, TextError> {
        if words.keyword(":") { self.stack(words, Mode::Kernel) } else { Ok(StackId(0)) }
    }

    fn what(&mut self, words: &mut Words<'_>) -> Result<What, TextError> {
        let verb = words.peek();
        let here = words.clone();
        words.word();
        let kind = match verb {
            "on" => {
                let woken = words.keyword("woken-by");
                let woken = if woken { Some(self.wake(words)?) } else { None };
                return Ok(What::On { woken });
            }
            "off" => return self.off(words),
            "back" => {
                let ret = if words.at_end() { None } else { Some(words.signed("a result")?) };
                return Ok(What::Back { ret });
            }
            "fork" => return fork(words),
            "woken-by" => self.wake(words)?,
            "syscall" => {
                let WrittenCall { nr, args, .. } = call(words, self.arch())?;
                Kind::Syscall { nr, args }
            }
            "calls" => calls(words, self.arch())?,
            "fault" => self.fault(words)?,
            "fault-end" => Kind::FaultEnd { major: words.keyword("major") },
            "sample" => self.sample(words)?,
            "registers" => registers(words)?,
            "site" => Kind::Site(self.stack(words, Mode::User)?),
            "exec" => {
                let path = words.name("a path")?;
                let former = words.keyword("former");
                let former = if former { Some(Tid(words.small("a task's number")?)) } else { None };
                return Ok(What::Exec { former, path: self.done.symbols.intern(&path) });
            }
            "comm" => Kind::Comm(self.intern(words, "a name")?),
            "exit" => Kind::Exit,
            "main" => Kind::Main,
            "timer" => Kind::Timer,
            "timer-end" => Kind::TimerEnd,
            "fd" => Kind::Fd {
                fd: i32::try_from(words.signed("a descriptor")?)
                    .map_err(|_| words.expected("a descriptor"))?,
                what: self.intern(words, "what the descriptor refers to")?,
            },
            "map" => {
                let start = LiveAddr(words.number("an address")?);
                let len = words.number("a length")?;
                let handle = words.name("an image")?;
                let image = self.images.find(&mut self.done.symbols, &handle);
                Kind::Map { start, len, image }
            }
            "probe" => self.probe(words)?,
            "page" => {
                let addr = LiveAddr(words.number("the address of a page")?);
                Kind::Page { addr, zero: words.keyword("zero") }
            }
            "lost" => Kind::Lost { count: words.number("how many records")? },
            _ => return Err(here.expected("what happened (on, off, syscall, back, ...)")),
        };
        Ok(What::Plain(kind))
    }

    fn intern(&mut self, words: &mut Words<'_>, what: &str) -> Result<NameId, TextError> {
        let name = words.name(what)?;
        Ok(self.done.symbols.intern(&name))
    }

    fn off(&mut self, words: &mut Words<'_>) -> Result<What, TextError> {
        let why = match words.peek() {
            "blocked" => Off::Blocked,
            "preempted" => Off::Preempted,
            "yielded" => Off::Yielded,
            "stopped" => Off::Stopped,
            "dead" => Off::Dead,
            _ => return Err(words.expected("blocked, preempted, yielded, stopped or dead")),
        };
        words.word();
        let plain = matches!(words.peek(), "" | ":" | "from");
        let call = if plain { None } else { Some(call(words, self.arch())?) };
        Ok(What::Off { why, stack: self.kernel_stack(words)?, call })
    }

    fn wake(&mut self, words: &mut Words<'_>) -> Result<Kind, TextError> {
        let (waker, mut irq) = match words.peek() {
            "interrupt" => (Tid(0), true),
            "idle" => (Tid(0), false),
            word => {
                let tid = number(word).and_then(|n| u32::try_from(n).ok());
                let tid =
                    tid.ok_or_else(|| words.expected("a task's number, idle or interrupt"))?;
                (Tid(tid), false)
            }
        };
        words.word();
        let mut inferred = false;
        loop {
            match words.peek() {
                "irq" => irq = true,
                "inferred" => inferred = true,
                "" | ":" | "from" => break,
                // The waker's name is for people only.
                _ => {
                    words.name("irq, inferred or the waker's name")?;
                    continue;
                }
            }
            words.word();
        }
        Ok(Kind::Wake { waker, irq, stack: self.kernel_stack(words)?, inferred })
    }

    fn fault(&mut self, words: &mut Words<'_>) -> Result<Kind, TextError> {
        let addr = LiveAddr(words.number("the address touched")?);
        let kernel = words.keyword("kernel");
        let by = if words.keyword("by") {
            let mode = if kernel { Mode::Kernel } else { Mode::User };
            read_location(words, &mut self.done.symbols, &mut self.images, mode)?
        } else {
            LocationId(0)
        };
        Ok(Kind::Fault { addr, by, kernel })
    }

    fn sample(&mut self, words: &mut Words<'_>) -> Result<Kind, TextError> {
        let flagged = words.keyword("kernel");
        let stack = self.stack(words, Mode::User)?;
        let kernel = flagged || words.peek() == ":";
        Ok(Kind::Sample { kernel, stack, kernel_stack: self.kernel_stack(words)? })
    }

    fn probe(&mut self, words: &mut Words<'_>) -> Result<Kind, TextError> {
        let probe = self.intern(words, "the probe's name")?;
        let mut args = [0; 2];
        for arg in &mut args {
            if !matches!(words.peek(), "" | "from") {
                *arg = words.number("an argument")?;
            }
        }
        let stack = if words.keyword("from") { self.stack(words, Mode::User)? } else { StackId(0) };
        Ok(Kind::Probe { probe, args, stack })
    }
}

fn registers(words: &mut Words<'_>) -> Result<Kind, TextError> {
    let first = words.small("a register's number")?;
    let mut values = [0; 4];
    for value in &mut values {
        *value = words.number("a register's value")?;
    }
    Ok(Kind::Registers { first, values })
}

fn fork(words: &mut Words<'_>) -> Result<What, TextError> {
    let child = Tid(words.small("the new task's number")?);
    let process = if words.keyword("thread") {
        Process::Parents
    } else if words.keyword("in") {
        Process::Given(Tid(words.small("a process's number")?))
    } else {
        Process::Own
    };
    Ok(What::Fork { child, process })
}

/// Calls that were counted together.
fn calls(words: &mut Words<'_>, arch: Arch) -> Result<Kind, TextError> {
    let count = words.small("how many calls")?;
    let WrittenCall { nr, args, .. } = call(words, arch)?;
    let part = |words: &mut Words<'_>, word: &str| {
        if words.keyword(word) { Ok(()) } else { Err(words.expected(format!("`{word}`"))) }
    };
    part(words, "back")?;
    let ret = words.signed("a result")?;
    part(words, "inside")?;
    let inside = Ns(words.number("the time in all of them")?);
    part(words, "over")?;
    let over = Ns(words.number("the length of the stretch")?);
    Ok(Kind::Calls { nr, args, ret, count, inside, over })
}

/// A system call by name, or by number as `nr452`, with the arguments that the trace keeps.
fn call(words: &mut Words<'_>, arch: Arch) -> Result<WrittenCall, TextError> {
    let name = words.peek();
    let by_number = name.strip_prefix("nr").and_then(|n| n.parse().ok());
    let nr = by_number.or_else(|| syscall::number(arch, name));
    let nr = nr.ok_or_else(|| words.expected("a system call's name"))?;
    words.word();
    let mut called = WrittenCall { nr, args: [0; 4], given: 0 };
    while called.given < 4 && number(words.peek()).is_some() {
        called.args[called.given] = words.number("an argument")?;
        called.given += 1;
    }
    Ok(called)
}
