//! Statements into a trace: sorted by time, with defaults filled in.
//!
//! Not for syntax; `read` has checked it.

use super::TextError;
use super::defaults::Defaults;
use super::header;
use super::read::{Declared, Line, Process, Statements, What, WrittenCall};
use crate::ids::{Cpu, Tid};
use crate::symbols::Symbols;
use crate::units::Ns;
use crate::{Event, Kind, Trace, syscall};
use std::collections::{BTreeMap, BTreeSet};

/// Makes the trace.
pub(super) fn resolve(statements: Statements) -> Result<Trace, TextError> {
    let Statements { header, symbols, tasks, mut lines } = statements;
    // Stable: events at one instant keep their order in the text.
    lines.sort_by_key(|l| l.at);
    let first = tasks.first().map(|t| t.tid).or(lines.first().map(|l| l.task)).unwrap_or_default();
    let mut resolver = Resolver::new(header.meta.arch, symbols, tasks, &lines);
    let opening = lines.first().map_or(Ns::ZERO, |l| Ns(l.at));
    for idle in resolver.idle.clone() {
        resolver.introduce(idle, opening, None)?;
    }
    for line in lines {
        resolver.line(line)?;
    }
    let meta = header::fill(header, first, &resolver.events);
    Ok(Trace::new(meta, resolver.symbols, resolver.events))
}

struct Resolver {
    symbols: Symbols,
    declared: BTreeMap<Tid, Declared>,
    /// Declared tasks without a line of their own, in order of writing.
    idle: Vec<Tid>,
    /// Tasks blocked in a call that only their `off` line names: it returns when they get the CPU again.
    blocked_in_call: BTreeSet<Tid>,
    defaults: Defaults,
    events: Vec<Event>,
}

impl Resolver {
    fn new(arch: syscall::Arch, symbols: Symbols, tasks: Vec<Declared>, lines: &[Line]) -> Self {
        let active: BTreeSet<Tid> = lines.iter().map(|l| l.task).collect();
        let idle = tasks.iter().map(|t| t.tid).filter(|t| !active.contains(t)).collect();
        let declared = tasks.into_iter().map(|t| (t.tid, t)).collect();
        let (blocked_in_call, defaults) = (BTreeSet::new(), Defaults::new(arch));
        Self { symbols, declared, idle, blocked_in_call, defaults, events: Vec::new() }
    }

    fn push(&mut self, at: Ns, cpu: Option<Cpu>, task: Tid, kind: Kind) {
        let cpu = cpu.unwrap_or_else(|| self.defaults.cpu(task, &kind));
        let event = Event { at, cpu, task, kind };
        self.defaults.pass(&event);
        self.events.push(event);
    }

    /// Before a task's first event: adds its birth and name from its `task` line.
    fn introduce(&mut self, task: Tid, at: Ns, cpu: Option<Cpu>) -> Result<(), TextError> {
        let Some(declared) = self.declared.remove(&task) else {
            return Ok(());
        };
        if let Some(parent) = declared.parent {
            self.introduce(parent, at, None)?;
            if self
                .events
                .iter()
                .any(|e| matches!(e.kind, Kind::Fork { child, .. } if child == task))
            {
                let expected = "either `child-of` or `of` here or the parent's `fork`, not both";
                return Err(TextError {
                    line: declared.line,
                    expected: expected.to_owned(),
                    found: format!("task {}", task.0),
                });
            }
            let process = declared.process.map_or(task, |p| self.defaults.process(p));
            self.push(at, None, parent, Kind::Fork { child: task, process });
        }
        if let Some(name) = declared.name.filter(|n| !n.is_empty()) {
            let name = self.symbols.intern(&name);
            self.push(at, cpu, task, Kind::Comm(name));
        }
        Ok(())
    }

    fn line(&mut self, line: Line) -> Result<(), TextError> {
        let (at, task) = (Ns(line.at), line.task);
        let first = match &line.what {
            What::On { woken } => woken.unwrap_or(Kind::On),
            What::Plain(kind) => *kind,
            _ => Kind::Exit,
        };
        let cpu = line.cpu.unwrap_or_else(|| self.defaults.cpu(task, &first));
        self.introduce(task, at, Some(cpu))?;
        let cpu = line.cpu;
        match line.what {
            What::Plain(kind) => self.push(at, cpu, task, kind),
            What::Exec { former, path } => {
                let former = former.unwrap_or(task);
                self.push(at, cpu, task, Kind::Exec { former, path });
            }
            What::Fork { child, process } => {
                let process = match process {
                    Process::Own => child,
                    Process::Parents => self.defaults.process(task),
                    Process::Given(process) => process,
                };
                self.push(at, cpu, task, Kind::Fork { child, process });
            }
            What::On { woken } => {
                if let Some(wake) = woken {
                    self.push(at, None, task, wake);
                }
                self.push(at, cpu, task, Kind::On);
                if self.blocked_in_call.remove(&task) {
                    let ret = self.defaults.result(task);
                    self.push(at, cpu, task, Kind::Back { ret });
                }
            }
            What::Off { why, stack, call } => {
                if let Some(call) = call {
                    self.call_of_off(&line, call)?;
                }
                self.push(at, cpu, task, Kind::Off { why, stack });
            }
            What::Back { ret } => {
                let ret = ret.unwrap_or_else(|| self.defaults.result(task));
                self.push(at, cpu, task, Kind::Back { ret });
            }
        }
        if let Some(stack) = line.site {
            self.push(at, cpu, task, Kind::Site(stack));
        }
        Ok(())
    }

    /// Checks the call that an `off` line names against the call that the task is in; if it is in none, it enters it here.
    fn call_of_off(&mut self, line: &Line, call: WrittenCall) -> Result<(), TextError> {
        match self.defaults.call(line.task) {
            None => {
                let WrittenCall { nr, args, .. } = call;
                self.push(Ns(line.at), line.cpu, line.task, Kind::Syscall { nr, args });
                self.blocked_in_call.insert(line.task);
                Ok(())
            }
            Some((nr, args)) if nr == call.nr && args[..call.given] == call.args[..call.given] => {
                Ok(())
            }
            Some((nr, _)) => {
                let arch = self.defaults.arch();
                let word = |nr| syscall::name(arch, nr).map_or(format!("nr{nr}"), str::to_owned);
                Err(TextError {
                    line: line.number,
                    expected: format!("the call that the task is in, {}", word(nr)),
                    found: word(call.nr),
                })
            }
        }
    }
}

/// Whether `kind` is followed by its stack on the same line.
pub(super) fn has_site(kind: &Kind) -> bool {
    matches!(kind, Kind::Syscall { .. } | Kind::Fault { .. } | Kind::Off { .. })
}
