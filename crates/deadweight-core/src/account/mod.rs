//! The wall time, charged: slices, accounts, and sums of slices with queries for findings and sections.
//!
//! - In: slices with their accounts, from `attribute`.
//! - Out: entries by account, process and detail, and the part of them under one function ([`inside`]).
//! - Must not know: which account a slice belongs to; see `cost`.

pub(crate) mod inside;

use crate::facts::call_groups::CallGroupId;
use crate::facts::call_site::{self, CallSite, Weight, Weights};
use crate::facts::processes::ProcessId;
use crate::path::cpu_holder::CpuHolder;
use crate::timeline::kernel_stacks::WaitsFor;
use crate::visit_count;
pub(crate) use deadweight_report::account::{
    AccountId, EXIT, IDLE, KERNEL_OTHER, NET_WORK, OBSERVER,
};
use deadweight_report::stats::apportion::apportion;
use deadweight_trace::ids::{CallId, TaskId};
use deadweight_trace::units::Ns;
use std::borrow::Cow;

/// The smallest thing that can be charged.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Slice {
    /// The task.
    pub(crate) task: TaskId,
    /// Its process.
    pub(crate) process: ProcessId,
    /// Its start.
    pub(crate) start: Ns,
    /// Its end.
    pub(crate) end: Ns,
    /// What happened in it.
    pub(crate) what: What,
    /// Whether its process was between birth and main.
    pub(crate) starting: bool,
}

/// What happened in a slice.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// The program's own code.
    User,
    /// The kernel worked in a system call.
    Call(CallGroupId, CallId),
    /// A page fault was served.
    Fault(u32),
    /// The timer interrupt.
    Interrupt,
    /// The program had not started yet.
    Starting,
    /// The program had ended already.
    Exiting,
    /// Blocked, or woken on an idle CPU and not yet running.
    Wait(u32),
    /// Runnable, without a CPU, because of this holder.
    Ready(CpuHolder),
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
    /// Calls of one group.
    Calls(CallGroupId),
    /// Waits of one kind, ended by this process.
    Waits(WaitsFor, Option<ProcessId>),
    /// The holder of the CPU.
    Held(CpuHolder),
    /// Page faults.
    Faults,
}

/// Slices with the same account, process and detail.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// The account.
    pub(crate) account: AccountId,
    /// The process.
    pub(crate) process: ProcessId,
    /// What else they have in common.
    pub(crate) detail: Detail,
    /// Their time.
    pub(crate) ns: Ns,
    /// Without the part of waits during which another task of the subject was on a CPU.
    pub(crate) alone: Ns,
    /// How many slices it has.
    pub(crate) slices: u64,
    /// How many calls, faults or waits began in it.
    pub(crate) count: u64,
    /// Time by stacks that were taken at calls, faults and waits.
    pub(crate) sites: Weights,
    /// A task's calls since the last one of which a stack was taken, with their time.
    pub(crate) unplaced: (TaskId, Weight),
    /// Samples by user stack.
    pub(crate) samples: Weights,
    /// Samples, and how many of them hit the kernel's work for recording.
    pub(crate) recording: (u64, u64),
    /// Samples in a kernel that shows none of its symbols.
    pub(crate) in_kernel: u64,
    /// Tracing overhead taken out of its slices.
    pub(crate) overhead: Ns,
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
    /// See [`Attribution::disturbed`] and [`Attribution::net`]: computed once, because they are read for each of many processes.
    disturbed: Ns,
    net: Ns,
}

impl Attribution {
    /// The sum of these entries of a run with so many processes.
    pub(crate) fn new(mut entries: Vec<Entry>, processes: usize) -> Self {
        entries.sort_by_key(|e| (e.account, e.process, e.detail));
        let in_process = in_process(&entries, processes);
        let disturbed = entries.iter().filter(|e| e.is_disturbance()).map(|e| e.ns).sum();
        Self::of_entries(entries, in_process, disturbed)
    }

    /// The sum of these entries, in order.
    fn of_entries(entries: Vec<Entry>, in_process: Vec<Vec<u32>>, disturbed: Ns) -> Self {
        let total = entries.iter().map(|e| e.ns).sum();
        let mut all = Self { total, entries, in_process, disturbed, net: total };
        all.net = total - all.of(OBSERVER) - all.of(IDLE) - disturbed;
        all
    }

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
        visit_count::visit(entries.len());
        entries.iter().filter_map(|at| self.entries.get(*at as usize))
    }

    fn range(&self, from: (AccountId, ProcessId), to: (AccountId, ProcessId)) -> &[Entry] {
        let start = self.entries.partition_point(|e| (e.account, e.process) < from);
        let length = self.entries[start..].partition_point(|e| (e.account, e.process) <= to);
        visit_count::visit(length);
        &self.entries[start..start + length]
    }

    /// The entries of the program's own time, whichever class claims it.
    pub(crate) fn user_time(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(|e| e.is_sampled())
    }

    /// The entries of a process' own time, whichever class claims it.
    pub(crate) fn user_time_of(&self, process: ProcessId) -> impl Iterator<Item = &Entry> {
        self.in_process(process).filter(|e| e.is_sampled())
    }

    /// The time during which other programs held the CPU: a disturbance, not the program's.
    pub(crate) fn disturbed(&self) -> Ns {
        self.disturbed
    }

    /// The time divided, without tracing overhead, the time of other programs, and idle time.
    pub(crate) fn net(&self) -> Ns {
        self.net
    }
}

/// By process: the indices of its entries.
fn in_process(entries: &[Entry], processes: usize) -> Vec<Vec<u32>> {
    let mut places = vec![Vec::new(); processes];
    for (at, entry) in (0_u32..).zip(entries) {
        if let Some(entries) = places.get_mut(entry.process.0 as usize) {
            entries.push(at);
        }
    }
    places
}

impl Entry {
    /// An entry without time yet.
    pub(crate) fn new(account: AccountId, process: ProcessId, detail: Detail) -> Self {
        Self {
            account,
            process,
            detail,
            ns: Ns::ZERO,
            alone: Ns::ZERO,
            slices: 0,
            count: 0,
            sites: Weights::new(),
            unplaced: (TaskId(0), Weight::default()),
            samples: Weights::new(),
            recording: (0, 0),
            in_kernel: 0,
            overhead: Ns::ZERO,
        }
    }

    /// Samples of the program's own time, with or without a stack.
    pub(crate) fn sampled(&self) -> u64 {
        self.recording.0
    }

    /// The part of its time at the samples that meet a condition.
    pub(crate) fn sampled_at(&self, meets: impl Fn(CallSite) -> bool) -> Ns {
        let samples = self.samples.iter().filter(|(site, _)| meets(**site));
        let samples: u64 = samples.map(|(_, weight)| weight.amount).sum();
        self.ns.part(samples as f64 / self.sampled().max(1) as f64)
    }

    /// The part of its time at the places that meet a condition.
    pub(crate) fn time_at(&self, meets: impl Fn(CallSite) -> bool) -> Ns {
        let amount = |all: bool| -> u64 {
            let places = self.places().iter().filter(|(site, _)| all || meets(**site));
            places.map(|(_, weight)| weight.amount).sum()
        };
        self.ns.part(amount(false) as f64 / amount(true).max(1) as f64)
    }

    /// Whether another program held the CPU.
    pub(crate) fn is_disturbance(&self) -> bool {
        matches!(self.detail, Detail::Held(CpuHolder::Outside(_)))
    }

    /// Where its time was spent: by stacks taken at its events, else by samples.
    pub(crate) fn places(&self) -> &Weights {
        if self.sites.is_empty() { &self.samples } else { &self.sites }
    }

    /// The same, where stacks were taken at some of its events only: these stand for all of them, and for its time.
    pub(crate) fn all_places(&self) -> Cow<'_, Weights> {
        let seen: u64 = self.sites.values().map(|weight| weight.count).sum();
        if seen == 0 || seen >= self.count {
            return Cow::Borrowed(self.places());
        }
        let amount = call_site::amount(&self.sites);
        let counts: Vec<u64> = self.sites.values().map(|weight| weight.count).collect();
        let counts = apportion(self.count, &counts);
        let all = |((site, weight), count): ((&CallSite, &Weight), u64)| {
            let time = self.ns.part(weight.amount as f64 / amount.max(1) as f64);
            (*site, Weight { count, amount: time.0 })
        };
        Cow::Owned(self.sites.iter().zip(counts).map(all).collect())
    }

    /// Whether it is the program's own time, divided by samples.
    pub(crate) fn is_sampled(&self) -> bool {
        self.account.is_sampled() && self.detail == Detail::Plain
    }
}
