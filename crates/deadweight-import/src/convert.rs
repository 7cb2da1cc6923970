//! Facts of perf.data into raw events.
//!
//! With switches of the whole machine, a task's life is known. With samples alone, it is known to run in the period
//! before each sample, and nothing is known of the rest: there the trace says that records were lost. Does not read the
//! file.

use crate::facts::{Fact, User, What};
use crate::file::{Contents, ImportError, read};
use crate::tracepoints::Tracepoint;
use deadweight_trace::ids::{Cpu, Tid};
use deadweight_trace::raw::{RawEvent, RawKind, Sink, UserState};
use deadweight_trace::syscall::Arch;
use deadweight_trace::units::Ns;
use deadweight_trace::{Exit, Meta, Off};
use std::collections::{BTreeMap, BTreeSet};

/// The rung of a recording with switches, and of one without.
const SWITCHES_AND_CALLS: &str = "perf";
const SWITCHES: &str = "switches";
const SAMPLES: &str = "samples";
/// What `perf record` would have to record.
const MORE: &str = "perf record -a -g -e cpu-clock,sched:sched_switch,sched:sched_waking,raw_syscalls:sys_enter,raw_syscalls:sys_exit";

/// A file that was read.
#[derive(Debug)]
pub struct Import {
    contents: Contents,
    root: Tid,
    attached: bool,
    /// Whether switches of all tasks are in the file.
    switches: bool,
    /// Whether there are samples.
    samples: bool,
    /// Whether kernel stacks were left out.
    foreign_kernel: bool,
}

/// Reads a file of `perf record`.
///
/// # Errors
/// If it is no such file, or has nothing that a trace needs; see [`ImportError`].
pub fn import(bytes: &[u8]) -> Result<Import, ImportError> {
    let contents = read(bytes)?;
    let command = started(&contents.facts, &contents.command);
    let Some(root) = command.or_else(|| busiest(&contents.facts)) else {
        return Err(ImportError::NoSamples);
    };
    let switches = of_whole_machine(&contents.facts, root);
    let mut contents = contents;
    let foreign_kernel = contents.kernel.is_some() && contents.kernel != kernel_text();
    if foreign_kernel {
        contents.facts.iter_mut().for_each(Fact::forget_kernel);
    }
    let sampled = contents.facts.iter().any(|fact| matches!(fact.what, What::Sample { .. }));
    if !sampled && !switches {
        return Err(ImportError::NoSamples);
    }
    let attached = command.is_none();
    Ok(Import { contents, root, attached, switches, samples: sampled, foreign_kernel })
}

/// Where the code of the running kernel begins; none where its addresses are hidden.
fn kernel_text() -> Option<u64> {
    let symbols = std::fs::read_to_string("/proc/kallsyms").ok()?;
    let text = symbols.lines().find(|line| line.ends_with(" _text"))?;
    u64::from_str_radix(text.split(' ').next()?, 16).ok().filter(|address| *address > 0)
}

impl Fact {
    /// Takes out what only the kernel that ran then could name.
    fn forget_kernel(&mut self) {
        match &mut self.what {
            What::Sample { chain, .. } | What::Switch { chain, .. } | What::Wake { chain, .. } => {
                chain.clear()
            }
            _ => {}
        }
    }
}

/// The task that became the command: perf's child has this name until then. In a recording of the whole machine there may
/// be children of other perfs, too, which execute another program.
fn started(facts: &[Fact], words: &[String]) -> Option<Tid> {
    let named = |fact: &Fact| matches!(&fact.what, What::Comm(name) if name == "perf-exec");
    let children: BTreeSet<Tid> = facts.iter().filter(|f| named(f)).map(|fact| fact.task).collect();
    let executed: Vec<(Tid, &str)> = facts
        .iter()
        .filter_map(|fact| match &fact.what {
            What::Exec { comm, .. } if children.contains(&fact.task) => Some((fact.task, &**comm)),
            _ => None,
        })
        .collect();
    let command = program(words).and_then(|command| command.into_iter().next());
    let wanted = command.as_deref().and_then(|word| word.rsplit('/').next()).unwrap_or_default();
    // The kernel's names have 15 letters at most.
    let own = executed.iter().find(|(_, comm)| !comm.is_empty() && wanted.starts_with(comm));
    own.or(executed.first()).map(|(task, _)| *task)
}

/// Whether switches of other programs are there too: without them it is not known when a task got its CPU.
fn of_whole_machine(facts: &[Fact], root: Tid) -> bool {
    let mut own = BTreeSet::from([root]);
    facts.iter().any(|fact| match fact.what {
        What::Fork { child, .. } if own.contains(&fact.task) => {
            own.insert(child);
            false
        }
        What::Switch { .. } => !own.contains(&fact.task) && fact.process != root,
        _ => false,
    })
}

/// The process with most samples.
fn busiest(facts: &[Fact]) -> Option<Tid> {
    let mut counts: BTreeMap<Tid, u64> = BTreeMap::new();
    for fact in facts.iter().filter(|fact| fact.process != Tid(0)) {
        if let What::Sample { .. } = fact.what {
            *counts.entry(fact.process).or_default() += 1;
        }
    }
    counts.into_iter().max_by_key(|(_, count)| *count).map(|(process, _)| process)
}

impl Import {
    /// Passes everything on. Times are the file's own.
    pub fn pass_to(self, sink: &mut dyn Sink) {
        let meta = self.meta();
        let spare = Cpu(self.contents.cpus);
        let own = BTreeSet::from([self.root]);
        let mut out = Out { sink, spare, own, samples: self.samples, busy: BTreeMap::new() };
        out.sink.begin(&meta);
        if self.attached {
            out.threads(&self.contents.facts, self.root, meta.zero);
        }
        for fact in &self.contents.facts {
            if self.switches { out.recorded(fact) } else { out.sampled(fact) }
        }
        out.sink.finish(meta);
    }

    /// The program that the first task executed.
    fn executed(&self) -> Vec<String> {
        let program = self.contents.facts.iter().find_map(|fact| match &fact.what {
            What::Exec { comm, path } if fact.task == self.root => {
                Some(if path.is_empty() { comm } else { path })
            }
            _ => None,
        });
        program.into_iter().cloned().collect()
    }

    fn meta(&self) -> Meta {
        let Contents { facts, command, cpus, has, broken, .. } = &self.contents;
        let first = |fact: &&Fact| fact.task == self.root && matches!(fact.what, What::Exec { .. });
        let start = facts.iter().find(first).or(facts.first()).map_or(0, |fact| fact.at);
        let ends = |fact: &&Fact| matches!(fact.what, What::Exit) && fact.task == self.root;
        let end = facts.iter().rev().find(ends).or(facts.last()).map_or(start, |fact| fact.at);
        let periods = facts.iter().filter_map(|fact| match fact.what {
            What::Sample { period, .. } => Some(period),
            _ => None,
        });
        let calls = has.contains(&Tracepoint::Enter) && has.contains(&Tracepoint::Leave);
        let mut lacks = Vec::new();
        if !self.switches {
            lacks.push("when tasks waited, for what, and who woke them".to_owned());
        }
        if !self.switches || !calls {
            lacks.push("system calls".to_owned());
        }
        if !self.samples {
            lacks.push("what ran on a CPU".to_owned());
        }
        lacks.push("page faults".to_owned());
        let mut warnings = Vec::new();
        if !self.switches || !self.samples || !calls {
            warnings
                .push(format!("imported from perf.data, which lacks a part: `{MORE}` records it"));
        }
        if self.foreign_kernel {
            let why = "kernel stacks were left out: the kernel that they are of does not run here now, \
                       or its addresses are hidden; import as root, on the machine that recorded";
            warnings.push(why.to_owned());
        }
        if let Some(broken) = broken {
            warnings.push(format!("the file breaks off: {broken}"));
        }
        Meta {
            recorder: env!("CARGO_PKG_VERSION").to_owned(),
            command: program(command).unwrap_or_else(|| self.executed()),
            arch: Arch::HOST,
            cpus: *cpus,
            zero: start,
            root: self.root,
            attached: self.attached,
            start: Ns::ZERO,
            end: Ns(end.saturating_sub(start)),
            exit: (!self.attached).then(Exit::default),
            sample_period: periods.max().unwrap_or(0),
            rung: match (self.switches, calls) {
                (true, true) => SWITCHES_AND_CALLS,
                (true, false) => SWITCHES,
                (false, _) => SAMPLES,
            }
            .to_owned(),
            rung_why: "perf recorded it".to_owned(),
            lacks,
            warnings,
            complete: broken.is_none(),
            ..Meta::default()
        }
    }
}

/// The command in the words of `perf record OPTIONS -- COMMAND`; all words where there is no `--`. None where perf wrote
/// its own name only, as perf 7 does.
fn program(words: &[String]) -> Option<Vec<String>> {
    let after = words.iter().position(|word| word == "--").map_or(0, |at| at + 1);
    (words.len() > 1).then(|| words[after..].to_vec())
}

struct Out<'s> {
    sink: &'s mut dyn Sink,
    /// A CPU that no task has, for what does not show that a task ran on.
    spare: Cpu,
    /// Tasks of the command.
    own: BTreeSet<Tid>,
    /// Whether there are samples, which say what a task does on a CPU.
    samples: bool,
    /// Until when each task and each CPU was busy.
    busy: BTreeMap<(bool, u32), u64>,
}

impl Out<'_> {
    fn event(&mut self, (at, cpu): (u64, Cpu), fact: &Fact, kind: RawKind<'_>) {
        let Fact { process, task, .. } = *fact;
        self.sink.event(&RawEvent { at, cpu, process, task, kind });
    }

    /// The threads of a process that ran already.
    fn threads(&mut self, facts: &[Fact], root: Tid, at: u64) {
        let of = facts.iter().filter(|fact| fact.process == root).map(|fact| fact.task);
        for child in of.collect::<BTreeSet<_>>() {
            if self.own.insert(child) {
                let kind = RawKind::Fork { child, process: root };
                let (cpu, process, task) = (self.spare, root, root);
                self.sink.event(&RawEvent { at, cpu, process, task, kind });
            }
        }
    }

    /// What all recordings have: births, programs, names, mappings, ends. True if the fact was one of these.
    fn life(&mut self, fact: &Fact, cpu: Cpu) -> bool {
        let at = (fact.at, cpu);
        let own = self.own.contains(&fact.task);
        match &fact.what {
            What::Fork { child, process } if own => {
                self.own.insert(*child);
                self.event(at, fact, RawKind::Fork { child: *child, process: *process });
            }
            What::Exec { comm, path } if own => {
                self.event(at, fact, RawKind::Exec { former: fact.task, path });
                self.event(at, fact, RawKind::Comm(comm));
            }
            What::Comm(name) => self.event(at, fact, RawKind::Comm(name)),
            What::Map { start, len, offset, inode, path, executable } if own => {
                let (start, len, offset, inode) = (*start, *len, *offset, *inode);
                let executable = *executable;
                self.event(at, fact, RawKind::Map { start, len, offset, inode, path, executable });
            }
            What::Exit if own => self.event(at, fact, RawKind::Exit),
            _ => return false,
        }
        true
    }

    /// A fact of a recording with samples alone.
    fn sampled(&mut self, fact: &Fact) {
        if self.life(fact, self.spare) {
            let at = (fact.at, self.spare);
            if let What::Exit = fact.what {
                self.event(at, fact, RawKind::Off { why: Off::Dead, chain: &[] });
            }
            // It was alive at this instant; no more is known.
            self.event(at, fact, RawKind::Lost { count: 1 });
            return;
        }
        let What::Sample { period, kernel, user, .. } = &fact.what else { return };
        if !self.own.contains(&fact.task) || *period == 0 {
            return;
        }
        let keys = [(true, fact.task.0), (false, u32::from(fact.cpu))];
        let busy = keys.iter().filter_map(|key| self.busy.get(key)).max().copied().unwrap_or(0);
        let start = fact.at.saturating_sub(*period).max(busy);
        if start + 1 >= fact.at {
            return;
        }
        self.busy.extend(keys.map(|key| (key, fact.at)));
        let cpu = Cpu(fact.cpu);
        self.event((start, cpu), fact, RawKind::On);
        let state = state(user);
        // Without the kernel's stack its part of the time is the kernel's own work.
        let sample = RawKind::Sample { kernel: *kernel, user: Some(state), chain: &[] };
        self.event((fact.at - 1, cpu), fact, sample);
        self.event((fact.at, cpu), fact, RawKind::Timer);
        self.event((fact.at, cpu), fact, RawKind::TimerEnd);
        self.event((fact.at, cpu), fact, RawKind::Lost { count: 1 });
    }

    /// A fact of a recording of the whole machine with switches.
    fn recorded(&mut self, fact: &Fact) {
        let cpu = Cpu(fact.cpu);
        let at = (fact.at, cpu);
        let own = self.own.contains(&fact.task);
        if self.life(fact, cpu) {
            if own && !self.samples && !matches!(fact.what, What::Exit) {
                self.event(at, fact, RawKind::Lost { count: 1 });
            }
            return;
        }
        match &fact.what {
            What::Switch { state, next, chain } => {
                if fact.task != Tid(0) {
                    self.event(at, fact, RawKind::Off { why: why(*state), chain });
                }
                let task = *next;
                let process = Tid(0);
                let event = |kind| RawEvent { at: fact.at, cpu, process, task, kind };
                self.sink.event(&event(RawKind::On));
                if !self.samples && self.own.contains(&task) {
                    // It is on the CPU from here on; what it does there is not known.
                    self.sink.event(&event(RawKind::Lost { count: 1 }));
                }
            }
            What::Wake { wakee, chain } if self.own.contains(wakee) => {
                let (waker, task, process) = (fact.task, *wakee, Tid(0));
                let kind = RawKind::Wake { waker, irq: false, chain, inferred: false };
                self.sink.event(&RawEvent { at: fact.at, cpu, process, task, kind });
            }
            What::Enter { nr, args } if own => {
                self.event(at, fact, RawKind::Syscall { nr: *nr, args: *args });
            }
            What::Leave { ret } if own => self.event(at, fact, RawKind::Back { ret: *ret }),
            What::Sample { kernel, user, chain, .. } if own => {
                let user = Some(state(user));
                self.event(at, fact, RawKind::Sample { kernel: *kernel, user, chain });
            }
            What::Lost(count) => self.event(at, fact, RawKind::Lost { count: *count }),
            _ => {}
        }
    }
}

fn state(user: &User) -> UserState<'_> {
    let User { chain, ip, sp, fp, stack } = user;
    UserState { ip: *ip, sp: *sp, fp: *fp, lr: 0, stack, chain, general: &[] }
}

/// Why a task lost its CPU, by the state that the kernel prints.
fn why(state: u64) -> Off {
    const BLOCKED: u64 = 1 | 2 | 0x40 | 0x80;
    const STOPPED: u64 = 4 | 8;
    const DEAD: u64 = 0x10 | 0x20;
    match state {
        state if state & DEAD != 0 => Off::Dead,
        state if state & STOPPED != 0 => Off::Stopped,
        state if state & BLOCKED != 0 => Off::Blocked,
        _ => Off::Preempted,
    }
}

#[cfg(test)]
mod tests {
    use super::{import, program, why};
    use crate::facts::What;
    use crate::file::ImportError;
    use crate::tracepoints::Tracepoint;
    use deadweight_trace::Off;

    #[test]
    fn other_files_are_refused() {
        for bytes in [&b""[..], b"hello", b"PERFILE2", &[0xff; 200]] {
            let refused = import(bytes);
            assert!(matches!(refused, Err(ImportError::NotPerf(_))), "{bytes:?}");
        }
    }

    #[test]
    fn a_switch_says_which_task_comes_and_why_the_other_goes() {
        let mut bytes = [0; 64];
        (bytes[32], bytes[56]) = (1, 7);
        let read = Tracepoint::Switch.read(&bytes, Vec::new());
        assert!(
            matches!(read, Some(What::Switch { state: 1, next, .. }) if next.0 == 7),
            "{read:?}"
        );
        assert!(Tracepoint::Switch.read(&bytes[..50], Vec::new()).is_none(), "cut off");
        let states = [0, 1, 2, 4, 0x10, 0x20, 0x100];
        let whys = [
            Off::Preempted,
            Off::Blocked,
            Off::Blocked,
            Off::Stopped,
            Off::Dead,
            Off::Dead,
            Off::Preempted,
        ];
        assert_eq!(states.map(why), whys);
    }

    #[test]
    fn the_command_is_behind_two_dashes() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(program(&words("perf record -g -- ls -l")), Some(words("ls -l")));
        assert_eq!(program(&words("perf record ls")), Some(words("perf record ls")));
        assert_eq!(program(&words("/usr/bin/perf")), None);
    }
}
