//! One recorded run in more detail than its report: for profiles, pictures and files that other tools open.
//!
//! The same stages as a report of this run alone, so their sums are equal. Not for several runs.

use super::{WeighError, prepared};
use crate::account::AccountId;
use crate::attribute::{self, Scope};
use crate::cost;
use crate::facts::Facts;
use crate::facts::call_groups::CallGroup;
use crate::facts::call_site::CallSite;
use crate::facts::overhead;
use crate::path::Path;
use crate::sections::stacks::{self, StackTime};
use crate::timeline::descriptors::ObjectKind;
use crate::timeline::{Block, Run, Timeline};
use deadweight_report::account::{UNEXPLAINED, UNRECORDED};
use deadweight_trace::Trace;
use deadweight_trace::ids::{ImageId, StackId, TaskId};
use deadweight_trace::symbols::Symbols;
use deadweight_trace::units::Ns;
use std::collections::BTreeMap;

/// One run, analysed.
pub struct OneRun<'a, 't> {
    facts: &'a Facts<'t>,
}

/// A part of the path: an interval of the wall time that one task's span fills.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct PathSlice {
    /// From when.
    pub start: Ns,
    /// Until when.
    pub end: Ns,
    /// The task.
    pub task: TaskId,
    /// Its account. None while the task was ready without a CPU: such time may have several. A program's own time is *net
    /// work* here: samples divide it only in sums.
    pub account: Option<AccountId>,
}

/// The same system call of a process on the same kind of object, summed up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallTotal {
    /// The name of the process, as the report shows it.
    pub process: String,
    /// Name of the call.
    pub name: &'static str,
    /// What its descriptors referred to, where there is one.
    pub object: Option<ObjectKind>,
    /// How many there were.
    pub calls: u64,
    /// Bytes transferred, if the call transfers bytes.
    pub bytes: Option<u64>,
    /// Time inside, waits included.
    pub time: Ns,
    /// Time inside without waits.
    pub busy: Ns,
}

/// Analyses the run of a trace and passes it to `read`. With `of` (`NAME` or `NAME:2`), the wall time is that process's.
///
/// # Errors
/// As [`super::weigh`].
pub fn one_run<R>(
    trace: &Trace,
    of: Option<&str>,
    read: impl FnOnce(&OneRun<'_, '_>) -> R,
) -> Result<R, WeighError> {
    let (timeline, subject) = prepared(trace, of)?;
    let path = Path::walk(&timeline, &subject);
    let overhead = overhead::fitted(trace, &timeline, &[]);
    let facts = Facts::gather(trace, &timeline, &path, overhead, &[], cost::account_of_sample);
    Ok(read(&OneRun { facts: &facts }))
}

impl OneRun<'_, '_> {
    /// The recording.
    #[must_use]
    pub fn trace(&self) -> &Trace {
        self.facts.trace
    }

    /// The symbol tables.
    #[must_use]
    pub fn symbols(&self) -> &Symbols {
        self.facts.symbols()
    }

    /// Every task's life.
    #[must_use]
    pub fn timeline(&self) -> &Timeline {
        self.facts.timeline
    }

    /// The critical path, with the subject.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.facts.path
    }

    /// The wall time by stack. It adds up to the rows of the ledger.
    #[must_use]
    pub fn path_stacks(&self) -> Vec<StackTime> {
        self.stacks(Scope::Path)
    }

    /// The CPU time of the subject's tasks by stack. It adds up to the rows of the CPU ledger.
    #[must_use]
    pub fn cpu_stacks(&self) -> Vec<StackTime> {
        self.stacks(Scope::Cpu)
    }

    /// The time in which the subject's tasks had no CPU, by stack: all tasks, not only those on the path.
    #[must_use]
    pub fn off_cpu_stacks(&self) -> Vec<StackTime> {
        self.stacks(Scope::OffCpu)
    }

    fn stacks(&self, scope: Scope) -> Vec<StackTime> {
        let charged = attribute::charged(self.facts, scope);
        stacks::stacks(self.facts, &charged, &attribute::by_task(self.facts, scope))
    }

    /// The path in order of time. The slices tile the wall time; neighbours of one task and account are one slice.
    #[must_use]
    pub fn path_slices(&self) -> Vec<PathSlice> {
        let mut slices: Vec<PathSlice> = Vec::new();
        let mut push = |slice: PathSlice| match slices.last_mut() {
            _ if slice.start >= slice.end => {}
            Some(last) if (last.task, last.account) == (slice.task, slice.account) => {
                last.end = slice.end;
            }
            _ => slices.push(slice),
        };
        for piece in &self.facts.path.pieces {
            let (task, mut reached) = (piece.task, piece.start);
            let spans = piece.spans(self.facts.timeline);
            for (start, end, index, span) in spans.filter(|_| !piece.unexplained) {
                let account = match span.run() {
                    Run::Unrecorded => Some(UNRECORDED),
                    Run::Runnable => None,
                    _ => self.account_of_span(task, index),
                };
                push(PathSlice { start, end, task, account });
                reached = end;
            }
            push(PathSlice { start: reached, end: piece.end, task, account: Some(UNEXPLAINED) });
        }
        slices
    }

    /// The account of span `index` of a task, where the span has one: time ready without a CPU may have several.
    #[must_use]
    pub fn account_of_span(&self, task: TaskId, index: usize) -> Option<AccountId> {
        attribute::account_of_span(self.facts, task, index)
    }

    /// The account of the program's own time that was sampled at this stack.
    #[must_use]
    pub fn account_of_sample(&self, stack: StackId) -> AccountId {
        self.facts.account_of_sample(CallSite::Stack(stack))
    }

    /// Tracing overhead in span `index` of a task, with so many samples in it.
    #[must_use]
    pub fn overhead_in_span(&self, task: TaskId, index: usize, samples: usize) -> Ns {
        let (timeline, cost) = (self.facts.timeline, &self.facts.overhead);
        overhead::in_span(timeline, cost, timeline.task(task), index, samples)
    }

    /// The system calls of the subject's processes, those with most time first.
    #[must_use]
    pub fn call_totals(&self) -> Vec<CallTotal> {
        let mut sums: BTreeMap<(String, &'static str, Option<ObjectKind>), CallTotal> =
            BTreeMap::new();
        let own = |group: &&CallGroup| self.facts.processes.get(group.process).own;
        for group in self.facts.call_groups.all.iter().filter(own) {
            let key = (self.facts.name(group.process), group.name, group.kind);
            let total = sums.entry(key.clone()).or_insert_with(|| CallTotal {
                process: key.0,
                name: group.name,
                object: group.kind,
                calls: 0,
                bytes: None,
                time: Ns::ZERO,
                busy: Ns::ZERO,
            });
            total.calls += group.calls;
            if group.returns_bytes {
                total.bytes = Some(total.bytes.unwrap_or(0).saturating_add(group.bytes));
            }
            total.time += group.time;
            total.busy += group.busy;
        }
        let mut totals: Vec<CallTotal> = sums.into_values().collect();
        totals.sort_by_key(|total| std::cmp::Reverse(total.time));
        totals
    }

    /// The name of a task's process, as the report shows it.
    #[must_use]
    pub fn process_name(&self, task: TaskId) -> String {
        self.facts.name(self.facts.processes.of(task))
    }

    /// The binary of the subject's program, if code in it was hit.
    #[must_use]
    pub fn subject_image(&self) -> Option<ImageId> {
        self.facts.processes.get(self.facts.subject()).image
    }

    /// What a wait was for, in words.
    #[must_use]
    pub fn waits_for(&self, block: &Block) -> String {
        crate::sections::ledger::waits_for(self.facts, block)
    }

    /// The stack of a wait: its own, or that of the call waited in; 0 if none was taken.
    #[must_use]
    pub fn stack_of_wait(&self, block: &Block) -> StackId {
        self.facts.site_of(block)
    }
}
