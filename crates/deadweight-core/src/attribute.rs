//! Charges every slice of the wall time to exactly one account.
//!
//! A slice is what lies in one piece of the path and in one span: the smallest thing that can be
//! charged. Slices are summed as they come and never stored, so that ten million events take
//! bounded memory. What it cost to observe is taken out of the span in which it shows.
//!
//! Not for judging: which account a slice belongs to is the cost classes' knowledge (`cost`).

pub(crate) mod inside;
mod taken_out;
mod user;
mod waits;

use crate::calls::FamilyId;
use crate::case::Case;
use crate::cost::{self, AccountId};
use crate::effort;
use crate::holding::Holder;
use crate::kernel::WaitsFor;
use crate::observed;
use crate::path::Piece;
use crate::place::{Spot, Weight, Weights};
use crate::processes::ProcessId;
use crate::timeline::{Run, Sample, Task, Within};
use deadweight_trace::ids::{CallId, StackId, TaskId};
use deadweight_trace::units::Ns;
use std::collections::BTreeMap;

/// The smallest thing that can be charged.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Slice {
    /// Who.
    pub(crate) task: TaskId,
    /// Its process.
    pub(crate) process: ProcessId,
    /// From when ...
    pub(crate) start: Ns,
    /// ... until when.
    pub(crate) end: Ns,
    /// What went on.
    pub(crate) what: What,
    /// Whether its process was on the way from birth to main.
    pub(crate) starting: bool,
}

/// What went on in a slice.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// The program's own code.
    User,
    /// The kernel worked in a system call.
    Call(FamilyId, CallId),
    /// A page fault was served.
    Fault(u32),
    /// The timer interrupt.
    Interrupt,
    /// Nothing of the program was there yet.
    Starting,
    /// Nothing of the program was left.
    Exiting,
    /// Blocked, or woken on an idle CPU and not yet running.
    Wait(u32),
    /// Runnable, without a CPU, because of this holder.
    Ready(Holder),
    /// Records were lost.
    Unrecorded,
    /// The path has no explanation.
    Unexplained,
}

/// What the slices of an entry have in common besides account and process.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Detail {
    /// Nothing.
    Plain,
    /// Calls of one family.
    Calls(FamilyId),
    /// Waits of one kind, ended by this process.
    Waits(WaitsFor, Option<ProcessId>),
    /// The holder of the CPU.
    Held(Holder),
    /// Page faults.
    Faults,
}

/// Slices with the same account, process and detail.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// Where it is charged.
    pub(crate) account: AccountId,
    /// Whose it is.
    pub(crate) process: ProcessId,
    /// What else they have in common.
    pub(crate) detail: Detail,
    /// Their time.
    pub(crate) ns: Ns,
    /// Without the part of waits during which another task of the subject was on a CPU.
    pub(crate) alone: Ns,
    /// How many began in it.
    pub(crate) count: u64,
    /// Time by stacks that were taken at calls, faults and waits.
    pub(crate) sites: Weights,
    /// Samples by user stack.
    pub(crate) samples: Weights,
    /// Samples, and how many of them hit what the kernel does for recording.
    recording: (u64, u64),
    /// Of the samples those in a kernel that shows nothing of itself.
    in_kernel: u64,
    /// What observing took of its slices.
    observed: Ns,
}

/// All time, charged.
#[derive(Clone, Debug, Default)]
pub(crate) struct Attribution {
    /// The time that was divided; the entries add up to it.
    pub(crate) total: Ns,
    /// In order of account, process and detail.
    pub(crate) entries: Vec<Entry>,
    /// By process: its entries.
    in_process: Vec<Vec<u32>>,
    /// See [`Attribution::disturbed`]; asked for once per process, of which there may be many.
    disturbed: Ns,
}

impl Attribution {
    /// Time in an account.
    pub(crate) fn of(&self, account: AccountId) -> Ns {
        self.in_account(account).map(|e| e.ns).sum()
    }

    /// The entries of an account.
    pub(crate) fn in_account(&self, account: AccountId) -> impl Iterator<Item = &Entry> {
        self.range((account, ProcessId(0)), (account, ProcessId(u32::MAX))).iter()
    }

    /// The entries of an account that belong to a process.
    pub(crate) fn of_process(
        &self,
        account: AccountId,
        process: ProcessId,
    ) -> impl Iterator<Item = &Entry> {
        self.range((account, process), (account, process)).iter()
    }

    /// The entries of a process, in all accounts.
    pub(crate) fn in_process(&self, process: ProcessId) -> impl Iterator<Item = &Entry> {
        let entries = self.in_process.get(process.0 as usize).map_or(&[][..], Vec::as_slice);
        effort::look(entries.len());
        entries.iter().filter_map(|at| self.entries.get(*at as usize))
    }

    fn range(&self, from: (AccountId, ProcessId), to: (AccountId, ProcessId)) -> &[Entry] {
        let start = self.entries.partition_point(|e| (e.account, e.process) < from);
        let length = self.entries[start..].partition_point(|e| (e.account, e.process) <= to);
        effort::look(length);
        &self.entries[start..start + length]
    }

    /// The entries of the program's own time, whatever class claims it.
    pub(crate) fn user_time(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(|e| e.is_sampled())
    }

    /// The entries of a process' own time, whatever class claims it.
    pub(crate) fn user_time_of(&self, process: ProcessId) -> impl Iterator<Item = &Entry> {
        self.in_process(process).filter(|e| e.is_sampled())
    }

    /// The part during which other programs held the CPU: a disturbance, not the program's.
    pub(crate) fn disturbed(&self) -> Ns {
        self.disturbed
    }

    /// The time divided, without what observing it cost and other programs took.
    pub(crate) fn net(&self) -> Ns {
        self.total - self.of(cost::OBSERVER) - self.disturbed()
    }
}

/// Charges the path.
pub(crate) fn along_path(case: &Case<'_>) -> Attribution {
    let mut charge = Charge::new(case, false);
    for piece in &case.path.pieces {
        charge.piece(piece);
    }
    charge.finish()
}

/// Charges all CPU time of the subject's tasks while the wall time ran.
pub(crate) fn cpu_time(case: &Case<'_>) -> Attribution {
    let mut charge = Charge::new(case, true);
    let subject = &case.path.subject;
    for (index, task) in case.timeline.tasks.iter().enumerate() {
        let start = task.birth.max(subject.start);
        let end = task.end.min(subject.end);
        if subject.own.get(index).copied().unwrap_or(false) && start < end {
            let task = TaskId::at(index);
            charge.piece(&Piece { start, end, task, unexplained: false });
        }
    }
    charge.finish()
}

/// The account of a whole span; none where the span has no single one (a wait for a CPU).
pub(crate) fn account_of_span(case: &Case<'_>, task: TaskId, index: usize) -> Option<AccountId> {
    let in_task = case.timeline.task(task);
    let span = in_task.spans.get(index)?;
    let what = match span.run {
        Run::OnCpu(_) => doing(case, span.within),
        Run::Blocked(block) => What::Wait(block),
        Run::Runnable | Run::Unrecorded => return None,
    };
    let process = case.processes.of(task);
    let starting = case.processes.get(process).starting(span.start);
    let (start, end) = (span.start, in_task.span_end(index));
    Some(cost::account(case, &Slice { task, process, start, end, what, starting }))
}

/// What a task on a CPU does.
fn doing(case: &Case<'_>, within: Within) -> What {
    match within {
        Within::User => What::User,
        Within::Syscall(call) => match case.families.id(call) {
            Some(family) => What::Call(family, call),
            None => What::Unexplained,
        },
        Within::Fault(fault) => What::Fault(fault),
        Within::Interrupt => What::Interrupt,
        Within::Starting => What::Starting,
        Within::Exiting => What::Exiting,
    }
}

/// By process: the places of its entries.
fn in_process(entries: &[Entry], processes: usize) -> Vec<Vec<u32>> {
    let mut places = vec![Vec::new(); processes];
    for (at, entry) in (0_u32..).zip(entries) {
        if let Some(entries) = places.get_mut(entry.process.0 as usize) {
            entries.push(at);
        }
    }
    places
}

type Key = (AccountId, ProcessId, Detail);

struct Charge<'a, 't> {
    case: &'a Case<'t>,
    cpu_only: bool,
    index: BTreeMap<Key, usize>,
    /// The entries charged last: in loops the same few take turns.
    latest: [Option<(Key, usize)>; 4],
    oldest: usize,
    entries: Vec<Entry>,
}

impl<'a, 't> Charge<'a, 't> {
    fn new(case: &'a Case<'t>, cpu_only: bool) -> Self {
        let index = BTreeMap::new();
        Self { case, cpu_only, index, latest: [None; 4], oldest: 0, entries: Vec::new() }
    }

    fn finish(mut self) -> Attribution {
        self.take_out_recording();
        self.take_out_kernel();
        self.open_user_time();
        self.entries.sort_by_key(|e| (e.account, e.process, e.detail));
        let in_process = in_process(&self.entries, self.case.processes.all.len());
        let total = self.entries.iter().map(|e| e.ns).sum();
        let disturbed = self.entries.iter().filter(|e| e.is_disturbance()).map(|e| e.ns).sum();
        Attribution { total, entries: self.entries, in_process, disturbed }
    }

    fn piece(&mut self, piece: &Piece) {
        let timeline = self.case.timeline;
        let task = &timeline.tasks[piece.task.index()];
        let process = self.case.processes.of(piece.task);
        let slice = |start, end, what| Slice {
            task: piece.task,
            process,
            start,
            end,
            what,
            starting: false,
        };
        let first = task.span_at(piece.start).filter(|_| !piece.unexplained);
        let Some(first) = first else {
            self.add(&slice(piece.start, piece.end, What::Unexplained), Ns::ZERO, &[]);
            return;
        };
        let mut sampled = task.samples.partition_point(|s| s.at < piece.start);
        for index in first..task.spans.len() {
            let span = task.spans[index];
            if span.start >= piece.end {
                break;
            }
            let start = span.start.max(piece.start);
            let end = task.span_end(index).min(piece.end);
            let from = sampled;
            while task.samples.get(sampled).is_some_and(|s| s.at < end) {
                sampled += 1;
            }
            if start < end {
                let samples = &task.samples[from..sampled];
                self.span(task, index, slice(start, end, What::User), samples);
            }
        }
        // A piece that outlasts its task is a hole in what is known.
        if task.end < piece.end {
            let start = task.end.max(piece.start);
            self.add(&slice(start, piece.end, What::Unexplained), Ns::ZERO, &[]);
        }
    }

    fn span(&mut self, task: &Task, index: usize, mut slice: Slice, samples: &[Sample]) {
        let span = task.spans[index];
        if self.cpu_only && !matches!(span.run, Run::OnCpu(_)) {
            return;
        }
        let processes = &self.case.processes;
        slice.starting = processes.get(slice.process).starting(slice.start);
        match span.run {
            Run::Runnable => self.ready(task, index, slice),
            Run::Unrecorded => self.add(&Slice { what: What::Unrecorded, ..slice }, Ns::ZERO, &[]),
            Run::Blocked(block) => {
                let observed = self.held_up(block, &slice);
                self.add(&Slice { what: What::Wait(block), ..slice }, observed, &[]);
            }
            Run::OnCpu(_) => {
                slice.what = doing(self.case, span.within);
                let observed = self.observed(task, index, &slice, samples.len());
                self.add(&slice, observed, samples);
            }
        }
    }

    /// What observing cost within the slice: the events at its span's start, and its samples.
    fn observed(&self, task: &Task, index: usize, slice: &Slice, samples: usize) -> Ns {
        let cost = &self.case.observer;
        if task.spans[index].start != slice.start {
            return observed::sampling(cost, samples);
        }
        observed::in_span(self.case.timeline, cost, task, index, samples)
    }

    /// Charges a slice; `observed` of it goes to the observer.
    fn add(&mut self, slice: &Slice, observed: Ns, samples: &[Sample]) {
        let length = slice.end - slice.start;
        let observed = observed.min(length);
        if observed > Ns::ZERO {
            let key = (cost::OBSERVER, slice.process, Detail::Plain);
            let entry = self.entry(key);
            entry.ns += observed;
            entry.count += 1;
        }
        let account = cost::account(self.case, slice);
        let ns = length - observed;
        let alone = match slice.what {
            What::Wait(_) | What::Ready(_) => ns - self.case.busy.within(slice.start, slice.end),
            _ => ns,
        };
        let (site, began) = self.site(slice);
        let detail = self.detail(slice);
        let ours = samples.iter().filter(|s| self.case.is_recording(s.kernel_stack)).count();
        let entry = self.entry((account, slice.process, detail));
        entry.ns += ns;
        entry.alone += alone;
        entry.count += began;
        if site.is_known() {
            let weight = entry.sites.entry(site).or_default();
            weight.count += began;
            weight.amount += ns.0;
        }
        entry.recording.0 += u64::try_from(samples.len()).unwrap_or(0);
        entry.observed += observed;
        let hidden = |s: &&Sample| s.kernel && s.kernel_stack == StackId(0);
        let hidden = samples.iter().filter(hidden).count();
        entry.in_kernel += u64::try_from(hidden).unwrap_or(0);
        entry.recording.1 += u64::try_from(ours).unwrap_or(0);
        for sample in samples.iter().filter(|s| s.stack != StackId(0)) {
            let weight = entry.samples.entry(Spot::Stack(sample.stack)).or_default();
            *weight = Weight { count: weight.count + 1, amount: weight.amount + 1 };
        }
    }

    fn entry(&mut self, key: Key) -> &mut Entry {
        let known = self.latest.iter().flatten().find(|(k, _)| *k == key).map(|(_, at)| *at);
        let at = known.unwrap_or_else(|| {
            let entries = &mut self.entries;
            let at = *self.index.entry(key).or_insert_with(|| {
                entries.push(Entry::new(key));
                entries.len() - 1
            });
            self.latest[self.oldest] = Some((key, at));
            self.oldest = (self.oldest + 1) % self.latest.len();
            at
        });
        &mut self.entries[at]
    }

    /// Where a slice's event was taken, and how many such begin in it.
    fn site(&self, slice: &Slice) -> (Spot, u64) {
        let timeline = self.case.timeline;
        match slice.what {
            What::Call(_, call) => {
                let call = &timeline.calls[call.index()];
                (Spot::Stack(call.site), u64::from(call.start == slice.start) * call.times())
            }
            What::Fault(fault) => {
                let fault = &timeline.faults[fault as usize];
                // Of each fault the instruction is known, of some the stack.
                let user = fault.site == StackId(0) && !fault.kernel;
                (if user { Spot::At(fault.by) } else { Spot::Stack(fault.site) }, 1)
            }
            What::Wait(block) => {
                let block = &timeline.blocks[block as usize];
                (Spot::Stack(self.case.site_of(block)), u64::from(block.start == slice.start))
            }
            _ => (Spot::default(), 1),
        }
    }

    fn detail(&self, slice: &Slice) -> Detail {
        match slice.what {
            What::Call(family, _) => Detail::Calls(family),
            What::Fault(_) => Detail::Faults,
            What::Ready(holder) => Detail::Held(holder),
            What::Wait(block) => {
                let block = &self.case.timeline.blocks[block as usize];
                Detail::Waits(block.waits_for, self.case.partner(block))
            }
            _ => Detail::Plain,
        }
    }
}

impl Entry {
    fn new((account, process, detail): Key) -> Self {
        Self {
            account,
            process,
            detail,
            ns: Ns::ZERO,
            alone: Ns::ZERO,
            count: 0,
            sites: Weights::new(),
            samples: Weights::new(),
            recording: (0, 0),
            in_kernel: 0,
            observed: Ns::ZERO,
        }
    }

    /// Samples of the program's own time, with or without a stack.
    pub(crate) fn sampled(&self) -> u64 {
        self.recording.0
    }

    /// Whether another program held the CPU.
    pub(crate) fn is_disturbance(&self) -> bool {
        matches!(self.detail, Detail::Held(Holder::Outside(_)))
    }

    /// Where its time was spent: by stacks taken at its events, else by samples.
    pub(crate) fn places(&self) -> &Weights {
        if self.sites.is_empty() { &self.samples } else { &self.sites }
    }
}
