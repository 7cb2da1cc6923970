//! Everything that is known about one run, gathered before time is charged.
//!
//! - In: a recording, its timeline and its path.
//! - Out: [`Facts`], from which cost classes judge.
//! - Must not know: the classes. The caller passes in the judgement of each stack, which is kept here. Results are
//!   in `account::Attribution` and in drafts.

pub(crate) mod builds;
pub(crate) mod call_groups;
pub(crate) mod call_site;
pub(crate) mod churn;
pub(crate) mod clean_run;
pub(crate) mod connections;
pub(crate) mod durable;
pub(crate) mod growing;
pub(crate) mod hot_loops;
pub(crate) mod initialisers;
pub(crate) mod locks;
pub(crate) mod mergeable;
pub(crate) mod overhead;
pub(crate) mod path_sample;
pub(crate) mod processes;
pub(crate) mod user_time;
pub(crate) mod zeroed;

use crate::path::Path;
use crate::timeline::kernel_stacks::{WaitsFor, is_for_recording};
use crate::timeline::near::last_started;
use crate::timeline::{Block, Fault, Registers, Run, Timeline, WokenBy};
use builds::{Build, Builds};
use call_groups::{CallGroup, CallGroupId, CallGroups, READS, WRITES};
use call_site::{CallSite, own_frame};
use churn::Churn;
use clean_run::CleanRun;
use connections::AllConnections;
use deadweight_code::machine_code::MachineCode;
use deadweight_code::symbol_role::SymbolRole;
use deadweight_report::account::{AccountId, NET_WORK};
use deadweight_report::stats::median::summarise;
use deadweight_trace::ids::{ImageId, NameId, StackId};
use deadweight_trace::symbols::Symbols;
use deadweight_trace::units::Ns;
use deadweight_trace::{Overhead, Trace};
use hot_loops::HotLoop;
use locks::Locks;
use processes::{ProcessId, Processes};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;
use user_time::{Roles, UserSample};
use zeroed::{Fate, Zeroed};

/// One traced run with all that was gathered about it.
pub(crate) struct Facts<'a> {
    /// The recording.
    pub(crate) trace: &'a Trace,
    /// Every task's life.
    pub(crate) timeline: &'a Timeline,
    /// The critical path.
    pub(crate) path: &'a Path,
    /// The processes.
    pub(crate) processes: Processes,
    /// System calls in groups.
    pub(crate) call_groups: CallGroups,
    /// Memory that was given back and taken again.
    pub(crate) churn: Churn,
    /// Connections that processes made and took.
    pub(crate) connections: AllConnections,
    /// Proven locks.
    pub(crate) locks: Locks,
    /// When any task of the subject was on a CPU.
    pub(crate) busy: Busy,
    /// Tracing overhead per event.
    pub(crate) overhead: Overhead,
    /// The median wall time, and CPU time in user code, of runs without recording, if there were any.
    pub(crate) clean_wall: Option<Ns>,
    pub(crate) clean_user: Option<Ns>,
    /// Code that samples hit.
    pub(crate) machine: MachineCode<'a>,
    writers: BTreeMap<u32, ProcessId>,
    readers: BTreeMap<u32, ProcessId>,
    verdicts: Vec<OnceLock<AccountId>>,
    roles: Roles,
    builds: Builds,
    allocating: OnceLock<BTreeSet<NameId>>,
    zeroed: OnceLock<Zeroed>,
    of_stack: Vec<OnceLock<AccountId>>,
    /// By call group.
    only_places: Vec<OnceLock<Option<StackId>>>,
    hot_loops: Vec<OnceLock<Vec<HotLoop>>>,
    /// By process: which of the timeline's registers are its.
    registers: OnceLock<Vec<Vec<u32>>>,
    recording: Vec<bool>,
    judge: Judge,
}

/// The account of the program's own time that a sample stands for.
pub(crate) type Judge = fn(&UserSample<'_>) -> AccountId;

/// When any task of the subject was on a CPU.
#[derive(Debug, Default)]
pub(crate) struct Busy {
    /// Disjoint, in order; each with the sum of all before.
    intervals: Vec<(Ns, Ns, Ns)>,
}

impl Busy {
    fn gather(timeline: &Timeline, own: &[bool]) -> Self {
        let mut intervals: Vec<(Ns, Ns, Ns)> = Vec::new();
        for held in &timeline.held {
            let first = intervals.len();
            for (i, h) in held.iter().enumerate() {
                let end = held.get(i + 1).map_or(h.start, |next| next.start);
                if !h.task.is_some_and(|t| own.get(t.index()).copied().unwrap_or(false)) {
                    continue;
                }
                match intervals[first..].last_mut() {
                    Some((_, last, _)) if *last == h.start => *last = end,
                    _ => intervals.push((h.start, end, Ns::ZERO)),
                }
            }
        }
        // Each CPU's are in order already: a stable sort finds that.
        intervals.sort();
        intervals.dedup_by(|(start, end, _), (_, last, _)| {
            let joins = *start <= *last;
            *last = if joins { (*last).max(*end) } else { *last };
            joins
        });
        let mut sum = Ns::ZERO;
        for (start, end, before) in &mut intervals {
            *before = sum;
            sum += *end - *start;
        }
        Self { intervals }
    }

    /// How much of `start..end` some own task was on a CPU. Fast if that is soon after interval `near`.
    pub(crate) fn within(&self, near: &mut usize, start: Ns, end: Ns) -> Ns {
        let before = self.until(near, start);
        let mut behind = *near;
        self.until(&mut behind, end) - before
    }

    fn until(&self, near: &mut usize, at: Ns) -> Ns {
        *near = last_started(self.intervals.len(), *near, |i| self.intervals[i].0 <= at);
        let reached = self.intervals.get(*near).filter(|(start, ..)| *start <= at);
        reached.map_or(Ns::ZERO, |(start, end, before)| *before + (at.min(*end) - *start))
    }
}

fn median(clean: &[CleanRun], of: impl Fn(&CleanRun) -> Ns) -> Option<Ns> {
    let each: Vec<u64> = clean.iter().map(|run| of(run).0).collect();
    (!each.is_empty()).then(|| Ns(summarise(&each).interval.median))
}

impl<'a> Facts<'a> {
    /// Gathers what is known.
    pub(crate) fn gather(
        trace: &'a Trace,
        timeline: &'a Timeline,
        path: &'a Path,
        overhead: Overhead,
        clean: &[CleanRun],
        judge: Judge,
    ) -> Self {
        let processes = Processes::gather(timeline, &path.subject, &trace.symbols);
        let churn = Churn::gather(trace, timeline, &processes);
        let call_groups = CallGroups::gather(timeline, &processes, &churn, trace.meta.arch);
        let connections = AllConnections::gather(timeline, &processes, trace.meta.arch);
        let locks = Locks::gather(trace, timeline, &processes);
        let busy = Busy::gather(timeline, &path.subject.own);
        let mut writers = BTreeMap::new();
        let mut readers = BTreeMap::new();
        for group in &call_groups.all {
            let ends = match group.name {
                name if WRITES.contains(&name) => &mut writers,
                name if READS.contains(&name) => &mut readers,
                _ => continue,
            };
            for object in &group.objects {
                ends.entry(*object).or_insert(group.process);
            }
        }
        let recording = (0..trace.symbols.stacks.len())
            .map(|stack| trace.symbols.functions(StackId::at(stack)).any(is_for_recording))
            .collect();
        let verdicts = vec![OnceLock::new(); call_groups.all.len()];
        let roles = Roles::new(&trace.symbols);
        let samples = timeline.user_samples_by_stack(trace.symbols.stacks.len());
        let machine = MachineCode::new(&trace.symbols, trace.meta.arch, samples);
        let builds = Builds::gather(&machine);
        let hot_loops = vec![OnceLock::new(); processes.all.len()];
        let of_stack = vec![OnceLock::new(); trace.symbols.stacks.len()];
        let only_places = vec![OnceLock::new(); call_groups.all.len()];
        Self {
            trace,
            timeline,
            path,
            processes,
            call_groups,
            churn,
            connections,
            locks,
            busy,
            overhead,
            clean_wall: median(clean, |run| run.wall),
            clean_user: median(clean, |run| run.user),
            machine,
            writers,
            readers,
            verdicts,
            roles,
            builds,
            allocating: OnceLock::new(),
            zeroed: OnceLock::new(),
            of_stack,
            only_places,
            hot_loops,
            registers: OnceLock::new(),
            recording,
            judge,
        }
    }

    /// The account of a group's calls: judged at the first request.
    pub(crate) fn verdict(
        &self,
        group: CallGroupId,
        judge: impl FnOnce() -> AccountId,
    ) -> AccountId {
        *self.verdicts[group.0 as usize].get_or_init(judge)
    }

    /// A sample of the program's own time, by its stack.
    pub(crate) fn sample(&self, stack: StackId) -> UserSample<'_> {
        let mut sample = self.roles.sample(&self.machine, stack);
        let leaf = self.trace.symbols.locations.get(sample.waited.at.index());
        let build = leaf.and_then(|leaf| self.builds.of(leaf.image));
        sample.unoptimised = build.is_some_and(|build| build.unoptimised);
        let owner = sample.own_function();
        sample.allocates = owner.is_some_and(|function| self.allocating().contains(&function));
        sample
    }

    /// The program's own functions that allocate, by their samples.
    fn allocating(&self) -> &BTreeSet<NameId> {
        self.allocating.get_or_init(|| {
            let stacks = (0..self.trace.symbols.stacks.len()).map(StackId::at);
            let samples = stacks.map(|stack| self.roles.sample(&self.machine, stack));
            let allocate = samples.filter(|s| {
                matches!(s.symbol_role(), Some(SymbolRole::Allocate | SymbolRole::Grow))
            });
            allocate.filter_map(|sample| sample.own_function()).collect()
        })
    }

    /// The fate of memory that a process zeroed as it first touched it.
    pub(crate) fn zeroed(&self, process: ProcessId) -> Fate {
        let gather = || Zeroed::gather(self.timeline, &self.processes, |fault| self.zeroes(fault));
        self.zeroed.get_or_init(gather).of(process)
    }

    /// Whether a page fault occurred while memory was being zeroed.
    pub(crate) fn zeroes(&self, fault: &Fault) -> bool {
        let symbols = self.symbols();
        let leaf = symbols.stack(fault.site).first().copied().unwrap_or(fault.by);
        !fault.kernel && self.roles.symbol_role(symbols, leaf) == Some(SymbolRole::Fill)
    }

    /// The judgement of how a binary was built.
    pub(crate) fn build(&self, image: ImageId) -> Option<&Build> {
        self.builds.of(image)
    }

    /// The call site that a sample of the program's own time stands for.
    pub(crate) fn site_of_sample(&self, stack: StackId) -> CallSite {
        match self.trace.symbols.stack(stack).first() {
            Some(leaf) => match self.machine.waited(*leaf).at {
                at if at == *leaf => CallSite::Stack(stack),
                at => CallSite::Waited(stack, at),
            },
            None => CallSite::Stack(stack),
        }
    }

    /// The symbol role of the innermost functions at a site, if they have one.
    pub(crate) fn symbol_role_at(&self, site: CallSite) -> Option<SymbolRole> {
        match site {
            CallSite::Stack(stack) | CallSite::Waited(stack, _) | CallSite::Caller(stack) => {
                self.sample(stack).symbol_role()
            }
            CallSite::At(location) => self.roles.symbol_role(&self.trace.symbols, location),
        }
    }

    /// The account of the program's own time that was sampled here.
    pub(crate) fn account_of_sample(&self, site: CallSite) -> AccountId {
        let Some(stack) = site.stack() else { return NET_WORK };
        let judge = || (self.judge)(&self.sample(stack));
        self.of_stack.get(stack.index()).map_or(NET_WORK, |account| *account.get_or_init(judge))
    }

    /// The loops with much of a process's own time, where samples have registers.
    pub(crate) fn hot_loops(&self, process: ProcessId) -> &[HotLoop] {
        let loops = self.hot_loops.get(process.0 as usize);
        loops.map_or(&[], |loops| loops.get_or_init(|| hot_loops::gather(self, process)))
    }

    /// The registers at the samples of a process.
    pub(crate) fn registers_of(&self, process: ProcessId) -> impl Iterator<Item = &Registers> {
        let of_processes = self.registers.get_or_init(|| {
            let mut of_processes = vec![Vec::new(); self.processes.all.len()];
            for (index, registers) in (0..).zip(&self.timeline.registers) {
                if let Some(of) = of_processes.get_mut(self.processes.of(registers.task).0 as usize)
                {
                    of.push(index);
                }
            }
            of_processes
        });
        let of = of_processes.get(process.0 as usize).map_or(&[][..], Vec::as_slice);
        of.iter().filter_map(|index| self.timeline.registers.get(*index as usize))
    }

    /// Whether a kernel stack shows the kernel's work for recording.
    pub(crate) fn is_recording(&self, stack: StackId) -> bool {
        self.recording.get(stack.index()).copied().unwrap_or(false)
    }

    /// Whether a wait was for the kernel's work for recording.
    pub(crate) fn waits_for_recording(&self, block: u32) -> bool {
        self.timeline.blocks[block as usize].waits_for == WaitsFor::Recording
    }

    /// Whether a program that serves waited for its next piece of work.
    pub(crate) fn is_idle(&self, block: u32) -> bool {
        let service = self.path.subject.service.as_ref();
        let block = &self.timeline.blocks[block as usize];
        service.is_some_and(|service| service.is_idle(self.timeline, block))
    }

    /// Whether a program that serves waited for the answer of a server that it asked.
    pub(crate) fn awaits_answer(&self, block: &Block) -> bool {
        let service = self.path.subject.service.as_ref();
        service.is_some_and(|service| service.awaits_answer(self.timeline, block).is_some())
    }

    /// Whether both ends of all waits and calls are in the recording: none was lost, and none is inferred.
    pub(crate) fn is_whole(&self) -> bool {
        let meta = &self.trace.meta;
        meta.records_both_ends() && meta.complete && self.timeline.lost == 0
    }

    /// The symbol tables.
    pub(crate) fn symbols(&self) -> &'a Symbols {
        &self.trace.symbols
    }

    /// The subject's own process.
    pub(crate) fn subject(&self) -> ProcessId {
        self.processes.of(self.path.subject.root)
    }

    /// The waits of a process, task by task, each in order of time.
    pub(crate) fn waits_of(&self, process: ProcessId) -> impl Iterator<Item = &Block> {
        let tasks = self.processes.get(process).tasks.iter();
        let spans = tasks.flat_map(|task| &self.timeline.task(*task).spans);
        spans.filter_map(|span| match span.run() {
            Run::Blocked(block) => self.timeline.blocks.get(block as usize),
            _ => None,
        })
    }

    /// The stack of a wait: its own, else that of the call waited in, else the one site of all such calls.
    pub(crate) fn site_of(&self, block: &Block) -> StackId {
        if block.site != StackId(0) {
            return block.site;
        }
        let Some(call) = block.call else { return StackId(0) };
        let own = self.timeline.calls[call.index()].site;
        if own != StackId(0) {
            return own;
        }
        let Some(id) = self.call_groups.id(call) else { return StackId(0) };
        let find = || self.only_place(self.call_groups.get(id));
        self.only_places[id.0 as usize].get_or_init(find).unwrap_or_default()
    }

    /// A stack of the only own line that makes a group's calls, as far as was recorded.
    fn only_place(&self, group: &CallGroup) -> Option<StackId> {
        /// Fewer stacks may share one line by chance; more than `STACKS` different ones are not compared.
        const SEEN: u64 = 8;
        const STACKS: usize = 8;
        if group.sites.len() > STACKS || group.sites.values().sum::<u64>() < SEEN {
            return None;
        }
        let line = |stack: &StackId| {
            let (_, frame) = own_frame(self.symbols(), CallSite::Stack(*stack))?;
            Some((frame.function, frame.file, frame.line))
        };
        let mut lines = group.sites.keys().map(line);
        let first = lines.next()??;
        let most = group.sites.iter().max_by_key(|(_, count)| **count)?;
        lines.all(|other| other == Some(first)).then_some(*most.0)
    }

    /// Name of the call that a wait happened in, or empty.
    pub(crate) fn call_of(&self, block: &Block) -> &'static str {
        block
            .call
            .and_then(|c| self.call_groups.id(c))
            .map_or("", |group| self.call_groups.get(group).name)
    }

    /// The peer process of a wait: the waker, else the process at the other end of the pipe; of a wait for an answer, who
    /// answered.
    pub(crate) fn peer(&self, block: &Block) -> Option<ProcessId> {
        // A waker that delivers typed input is not a peer, nor is the sender of a signal.
        let expected = matches!(block.waits_for, WaitsFor::Child | WaitsFor::Signal);
        if block.waits_for == WaitsFor::Terminal || block.by_signal && !expected {
            return None;
        }
        // What ended the wait may be something else that came before the answer.
        if let Some(service) = &self.path.subject.service
            && let Some(socket) = service.awaits_answer(self.timeline, block)
            && block.waits_for == WaitsFor::Poll
        {
            return service.answers(socket).map(|task| self.processes.of(task));
        }
        if let WokenBy::Task(task) = block.woken_by {
            let waker = self.processes.of(task);
            // Data that a worker of the kernel hands over comes from another task.
            let hands_over = matches!(block.waits_for, WaitsFor::Poll | WaitsFor::SocketData)
                && self.processes.get(waker).is_kernel_worker();
            return Some(waker).filter(|_| !hands_over);
        }
        let call = &self.timeline.calls[block.call?.index()];
        let object = call.object()?;
        let ends = match self.call_of(block) {
            "read" | "readv" | "recvfrom" | "recvmsg" => &self.writers,
            _ => &self.readers,
        };
        ends.get(&object).copied().filter(|p| *p != self.processes.of(block.task))
    }

    /// Name of a process; if it has none, `pid 7`, or for an outsider `another process`.
    pub(crate) fn name(&self, process: ProcessId) -> String {
        let process = self.processes.get(process);
        match (process.name.is_empty(), process.own) {
            (false, _) => process.name.clone(),
            (true, true) => format!("pid {}", process.pid.0),
            // The pid of a process that has ended means nothing to the reader.
            (true, false) => "another process".to_owned(),
        }
    }
}
