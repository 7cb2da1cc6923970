//! Charges every slice of the wall time to exactly one account.
//!
//! - In: the facts of a run, with its path.
//! - Out: an [`Attribution`]. Slices are summed immediately and never stored, so that ten million events take
//!   bounded memory. Tracing overhead is subtracted from the span in which it shows; what only samples show of it
//!   in `corrections`, and the recorder's time on a CPU that a task waited for in `waits`.
//! - Must not know: which account a slice belongs to; see `cost`.

mod corrections;
mod user;
mod waits;

use crate::account::{AccountId, Attribution, Detail, Entry, OBSERVER, Slice, What};
use crate::cost;
use crate::facts::Facts;
use crate::facts::call_site::{CallSite, Weight};
use crate::facts::overhead;
use crate::facts::processes::ProcessId;
use crate::path::Piece;
use crate::path::cpu_holder::{CpuHolder, CpuHolders};
use crate::timeline::{Run, Sample, Task, Within};
use deadweight_trace::ids::{StackId, TaskId};
use deadweight_trace::units::Ns;
use std::collections::BTreeMap;

/// Which time is charged.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// The path: the wall time.
    Path,
    /// All CPU time of the subject's tasks while the wall time ran.
    Cpu,
    /// All their other time while the wall time ran: blocked, or ready without a CPU.
    OffCpu,
}

/// The entries of one task before corrections, and before samples divide its own time.
pub(crate) struct OfTask {
    /// The task.
    pub(crate) task: TaskId,
    /// One of its entries.
    pub(crate) entry: Entry,
}

/// Charges the path.
pub(crate) fn along_path(facts: &Facts<'_>) -> Attribution {
    charged(facts, Scope::Path)
}

/// Charges all CPU time of the subject's tasks while the wall time ran.
pub(crate) fn cpu_time(facts: &Facts<'_>) -> Attribution {
    charged(facts, Scope::Cpu)
}

/// Charges the time of this scope.
pub(crate) fn charged(facts: &Facts<'_>, scope: Scope) -> Attribution {
    let mut charge = Charge::new(facts, scope);
    pieces(facts, scope).for_each(|piece| charge.piece(&piece));
    charge.finish()
}

/// The same, task by task: the weights by which the charged time is divided further.
pub(crate) fn by_task(facts: &Facts<'_>, scope: Scope) -> Vec<OfTask> {
    let mut charge = Charge::new(facts, scope);
    for piece in pieces(facts, scope) {
        charge.lane = Some(piece.task);
        charge.piece(&piece);
    }
    let entries = charge.entries;
    let lanes = charge.index.into_iter().filter_map(|((_, lane), at)| Some((lane?, at)));
    lanes.map(|(task, at)| OfTask { task, entry: entries[at].clone() }).collect()
}

fn pieces<'f>(facts: &'f Facts<'_>, scope: Scope) -> Box<dyn Iterator<Item = Piece> + 'f> {
    if scope == Scope::Path {
        return Box::new(facts.path.pieces.iter().copied());
    }
    let subject = &facts.path.subject;
    let tasks = facts.timeline.tasks.iter().enumerate();
    Box::new(tasks.filter_map(|(index, of)| {
        let (start, end) = (of.birth.max(subject.start), of.end.min(subject.end));
        let task = TaskId::at(index);
        (subject.owns(task) && start < end).then_some(Piece {
            start,
            end,
            task,
            unexplained: false,
        })
    }))
}

/// The account of a whole span; none where the span has several (a wait for a CPU).
pub(crate) fn account_of_span(facts: &Facts<'_>, task: TaskId, index: usize) -> Option<AccountId> {
    let in_task = facts.timeline.task(task);
    let span = in_task.spans.get(index)?;
    let what = match span.run() {
        Run::OnCpu(_) => doing(facts, span.within()),
        Run::Blocked(block) => What::Wait(block),
        Run::Runnable | Run::Unrecorded => return None,
    };
    let process = facts.processes.of(task);
    let starting = facts.processes.get(process).starting(span.start);
    let (start, end) = (span.start, in_task.span_end(index));
    Some(cost::account(facts, &Slice { task, process, start, end, what, starting }))
}

/// What a task on a CPU does.
fn doing(facts: &Facts<'_>, within: Within) -> What {
    match within {
        Within::User => What::User,
        Within::Syscall(call) => match facts.call_groups.id(call) {
            Some(group) => What::Call(group, call),
            None => What::Unexplained,
        },
        Within::Fault(fault) => What::Fault(fault),
        Within::Interrupt => What::Interrupt,
        Within::Starting => What::Starting,
        Within::Exiting => What::Exiting,
    }
}

type Key = (AccountId, ProcessId, Detail);
/// With the task, where each has entries of its own.
type KeyOfTask = (Key, Option<TaskId>);

/// Slots for the latest entries; a power of two.
const RECENT: usize = 64;

/// Where an entry is among the latest.
fn slot((account, process, detail): &Key) -> usize {
    let detail = match detail {
        Detail::Plain | Detail::Held(_) => 0,
        Detail::Calls(group) => group.0 as usize,
        Detail::Waits(of, _) => *of as usize,
        Detail::Faults => 1,
    };
    (account.position() + 7 * process.0 as usize + 11 * detail) & (RECENT - 1)
}

struct Charge<'a, 't> {
    facts: &'a Facts<'t>,
    scope: Scope,
    /// The task that is charged, where each has entries of its own.
    lane: Option<TaskId>,
    index: BTreeMap<KeyOfTask, usize>,
    /// Entries charged lately, by [`slot`]: loops alternate between a few.
    latest: [Option<(KeyOfTask, usize)>; RECENT],
    entries: Vec<Entry>,
    /// By task: its span and sample charged last. Pieces are in order of time.
    reached: Vec<(usize, usize)>,
    holders: CpuHolders<'a>,
    /// The parts of a wait for a CPU: memory that is used again.
    parts: Vec<(Ns, CpuHolder)>,
    /// The interval of `Busy` that was found last.
    near: usize,
}

impl<'a, 't> Charge<'a, 't> {
    fn new(facts: &'a Facts<'t>, scope: Scope) -> Self {
        let (index, entries) = (BTreeMap::new(), Vec::new());
        let reached = vec![(0, 0); facts.timeline.tasks.len()];
        let (holders, parts) = (CpuHolders::new(facts.timeline, &facts.path.subject), Vec::new());
        let latest = [None; RECENT];
        Self { facts, scope, lane: None, index, latest, entries, reached, holders, parts, near: 0 }
    }

    fn finish(mut self) -> Attribution {
        self.take_out_recording();
        self.take_out_kernel();
        self.divide_user_time();
        Attribution::new(self.entries, self.facts.processes.all.len())
    }

    fn piece(&mut self, piece: &Piece) {
        let timeline = self.facts.timeline;
        let task = &timeline.tasks[piece.task.index()];
        let process = self.facts.processes.of(piece.task);
        let slice = |start, end, what| Slice {
            task: piece.task,
            process,
            start,
            end,
            what,
            starting: false,
        };
        let alive = task.spans.first().is_some_and(|span| span.start <= piece.start);
        if piece.unexplained || !alive || piece.start >= task.end {
            self.add(&slice(piece.start, piece.end, What::Unexplained), Ns::ZERO, &[]);
            return;
        }
        let (near, sampled) = self.reached[piece.task.index()];
        let first = task.span_after(near, piece.start);
        let later = task.samples.get(sampled..).unwrap_or_default();
        let mut sampled = sampled + later.partition_point(|s| s.at < piece.start);
        // Samples are taken in the timer's interrupt: they show what it interrupted.
        let mut shown = sampled;
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
                let taken = sampled - from;
                let from = shown;
                if span.within() != Within::Interrupt {
                    shown = sampled;
                }
                let samples = &task.samples[from..shown];
                self.span(task, index, slice(start, end, What::User), samples, taken);
            }
        }
        self.reached[piece.task.index()] = (first, sampled);
        // A piece may be longer than its task's life: nothing explains the rest.
        if task.end < piece.end {
            let start = task.end.max(piece.start);
            self.add(&slice(start, piece.end, What::Unexplained), Ns::ZERO, &[]);
        }
    }

    /// `samples` show what the span did, and so many were `taken` in it.
    fn span(
        &mut self,
        task: &Task,
        index: usize,
        mut slice: Slice,
        samples: &[Sample],
        taken: usize,
    ) {
        let span = task.spans[index];
        let on_cpu = matches!(span.run(), Run::OnCpu(_));
        match self.scope {
            Scope::Cpu if !on_cpu => return,
            Scope::OffCpu if on_cpu => return,
            _ => {}
        }
        let processes = &self.facts.processes;
        slice.starting = processes.get(slice.process).starting(slice.start);
        match span.run() {
            Run::Runnable => self.ready(task, index, slice),
            Run::Unrecorded => self.add(&Slice { what: What::Unrecorded, ..slice }, Ns::ZERO, &[]),
            Run::Blocked(block) => {
                let overhead = self.held_up(block, &slice);
                self.add(&Slice { what: What::Wait(block), ..slice }, overhead, &[]);
            }
            Run::OnCpu(_) => {
                slice.what = doing(self.facts, span.within());
                let overhead = self.overhead_in(task, index, &slice, taken);
                self.add(&slice, overhead, samples);
            }
        }
    }

    /// Tracing overhead within the slice: the events at its span's start, and its samples.
    fn overhead_in(&self, task: &Task, index: usize, slice: &Slice, samples: usize) -> Ns {
        let cost = &self.facts.overhead;
        if task.spans[index].start != slice.start {
            return overhead::sampling(cost, samples);
        }
        overhead::in_span(self.facts.timeline, cost, task, index, samples)
    }

    /// Charges a slice; `overhead` of it is tracing overhead.
    fn add(&mut self, slice: &Slice, overhead: Ns, samples: &[Sample]) {
        let length = slice.end - slice.start;
        let overhead = overhead.min(length);
        if overhead > Ns::ZERO {
            let key = (OBSERVER, slice.process, Detail::Plain);
            let entry = self.entry(key);
            entry.ns += overhead;
            entry.count += 1;
        }
        let account = cost::account(self.facts, slice);
        let ns = length - overhead;
        let alone = match slice.what {
            What::Wait(_) | What::Ready(_) => {
                ns - self.facts.busy.within(&mut self.near, slice.start, slice.end)
            }
            _ => ns,
        };
        let (site, began) = self.site(slice);
        let detail = self.detail(slice);
        let is_ours = |s: &Sample| self.facts.is_recording(s.kernel_stack);
        let is_hidden =
            |s: &Sample| s.kernel && s.kernel_stack == StackId(0) && s.at >= slice.start;
        // The kernel's work around the program's own code is not the program's.
        let is_own = |s: &Sample| slice.what != What::User || !s.kernel || is_hidden(s);
        let count = |is: &dyn Fn(&Sample) -> bool| samples.iter().filter(|s| is(s)).count() as u64;
        let (ours, hidden) = (count(&is_ours), count(&is_hidden));
        let all = count(&|s| is_own(s) || is_ours(s));
        let entry = self.entry((account, slice.process, detail));
        entry.ns += ns;
        entry.alone += alone;
        entry.slices += 1;
        entry.count += began;
        let mut here = Weight { count: began, amount: ns.0 };
        if matches!(detail, Detail::Calls(_)) {
            // Stacks are taken of some calls only, at most so many in a time: one stands for the calls before it.
            let (of_task, before) = entry.unplaced;
            if of_task == slice.task {
                here.count += before.count;
                here.amount += before.amount;
            }
            entry.unplaced = (slice.task, if site.is_known() { Weight::default() } else { here });
        }
        if site.is_known() {
            let weight = entry.sites.entry(site).or_default();
            weight.count += here.count;
            weight.amount += here.amount;
        }
        entry.recording = (entry.recording.0 + all, entry.recording.1 + ours);
        entry.in_kernel += hidden;
        entry.overhead += overhead;
        for sample in samples.iter().filter(|s| s.stack != StackId(0) && is_own(s)) {
            let weight = entry.samples.entry(CallSite::Stack(sample.stack)).or_default();
            *weight = Weight { count: weight.count + 1, amount: weight.amount + 1 };
        }
    }

    fn entry(&mut self, key: Key) -> &mut Entry {
        let of = (key, self.lane);
        let recent = &mut self.latest[slot(&key)];
        let at = match recent {
            Some((known, at)) if *known == of => *at,
            _ => {
                let entries = &mut self.entries;
                let at = *self.index.entry(of).or_insert_with(|| {
                    entries.push(Entry::new(key.0, key.1, key.2));
                    entries.len() - 1
                });
                *recent = Some((of, at));
                at
            }
        };
        &mut self.entries[at]
    }

    /// The call site of a slice's event, and how many such events begin in it.
    fn site(&self, slice: &Slice) -> (CallSite, u64) {
        let timeline = self.facts.timeline;
        match slice.what {
            What::Call(_, call) => {
                let call = &timeline.calls[call.index()];
                (CallSite::Stack(call.site), u64::from(call.start == slice.start) * call.times())
            }
            What::Fault(fault) => {
                let fault = &timeline.faults[fault as usize];
                // The instruction is known of each fault, the stack of some.
                let user = fault.site == StackId(0) && !fault.kernel;
                (if user { CallSite::At(fault.by) } else { CallSite::Stack(fault.site) }, 1)
            }
            What::Wait(block) => {
                let block = &timeline.blocks[block as usize];
                (CallSite::Stack(self.facts.site_of(block)), u64::from(block.start == slice.start))
            }
            _ => (CallSite::default(), 1),
        }
    }

    fn detail(&self, slice: &Slice) -> Detail {
        match slice.what {
            What::Call(group, _) => Detail::Calls(group),
            What::Fault(_) => Detail::Faults,
            What::Ready(holder) => Detail::Held(holder),
            What::Wait(block) => {
                let block = &self.facts.timeline.blocks[block as usize];
                Detail::Waits(block.purpose(), self.facts.peer(block))
            }
            _ => Detail::Plain,
        }
    }
}
