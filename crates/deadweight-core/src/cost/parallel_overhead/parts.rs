//! The time of a process by what it is for: sharing out work and meeting, or anything else.
//!
//! - In: the time of a process, along the critical path or of all CPUs.
//! - Out: its sums.
//! - Must not know: savings.

use crate::account::{Attribution, Detail, Entry, IDLE, OBSERVER};
use crate::facts::Facts;
use crate::facts::call_site::team_code::{
    is_in_go_scheduler, is_in_team_code, is_under_channel, is_under_condition, is_under_lock,
    is_under_team_code,
};
use crate::facts::call_site::{CallSite, Weights, add, amount, is_own, own_frame};
use crate::facts::processes::ProcessId;
use crate::path::cpu_holder::CpuHolder;
use crate::timeline::kernel_stacks::WaitsFor;
use deadweight_trace::ids::NameId;
use deadweight_trace::symbols::Symbols;
use deadweight_trace::units::Ns;
use std::collections::BTreeSet;

/// Calls by which threads wait for each other and wake each other.
const MEETING: [&str; 3] = ["futex", "sched_yield", "nanosleep"];

/// How the threads of a process share out work.
pub(super) struct Team<'f> {
    symbols: &'f Symbols,
    go: bool,
    /// The program's own functions that tell other threads by a condition variable that something is there: their locks
    /// belong to that.
    queues: BTreeSet<NameId>,
}

impl<'f> Team<'f> {
    pub(super) fn of(facts: &Facts<'f>, attribution: &Attribution, process: ProcessId) -> Self {
        let symbols = facts.symbols();
        let places = attribution.in_process(process).flat_map(|entry| entry.places().keys());
        let notifies = places.filter(|site| is_under_condition(symbols, **site));
        let queues = notifies.filter_map(|site| own_function(symbols, *site)).collect();
        Self { symbols, go: facts.processes.get(process).language == "Go", queues }
    }

    /// Whether the code at a site shares out work, or waits for those who do. A sample is in the innermost code; a call or
    /// a wait below it.
    fn meets(&self, site: CallSite, sampled: bool) -> bool {
        match sampled {
            _ if self.go => is_in_go_scheduler(self.symbols, site),
            true => is_in_team_code(self.symbols, site),
            false => is_under_team_code(self.symbols, site),
        }
    }

    /// Whether the code at a site hands something to another thread, or takes it: in a channel or a queue.
    fn hands(&self, site: CallSite) -> bool {
        self.go && is_in_go_scheduler(self.symbols, site)
            || is_under_channel(self.symbols, site)
            || self.is_in_queue(site)
    }

    fn is_in_queue(&self, site: CallSite) -> bool {
        !self.queues.is_empty()
            && own_function(self.symbols, site).is_some_and(|own| self.queues.contains(&own))
            && (is_under_condition(self.symbols, site) || is_under_lock(self.symbols, site))
    }

    /// Whether this is a site of the team, on a CPU.
    fn holds(&self, site: CallSite, sampled: bool) -> bool {
        self.meets(site, sampled) || self.is_in_queue(site)
    }

    /// Whether most of these places are channels or queues.
    pub(super) fn is_mostly_handing(&self, places: &Weights) -> bool {
        let hands = places.iter().filter(|(site, _)| self.hands(**site));
        hands.map(|(_, weight)| weight.amount).sum::<u64>() * 2 > amount(places)
    }
}

/// The program's own innermost function at a site.
fn own_function(symbols: &Symbols, site: CallSite) -> Option<NameId> {
    let (location, frame) = own_frame(symbols, site)?;
    is_own(symbols, location, frame).then_some(frame.function)
}

/// The time of a process by what it is for.
#[derive(Default)]
pub(super) struct Parts {
    /// Sharing out work, meeting, and waking each other.
    pub(super) team: Ns,
    /// Of this, what is not done while waiting: on a CPU in channels, in queues or in Go's scheduler.
    pub(super) handing: Ns,
    /// Its own threads had the CPU, or it was just being given.
    ready: Ns,
    /// Anything else on a CPU.
    pub(super) work: Ns,
    /// Waits for something else than the team.
    pub(super) waits: Ns,
    /// Where the program asks for the team's work.
    pub(super) places: Weights,
}

impl Parts {
    pub(super) fn of(
        facts: &Facts<'_>,
        attribution: &Attribution,
        process: ProcessId,
        team: &Team<'_>,
    ) -> Self {
        let mut parts = Self::default();
        for entry in attribution.in_process(process) {
            if entry.account != OBSERVER && entry.account != IDLE && !entry.is_disturbance() {
                parts.add(facts, entry, team);
            }
        }
        parts
    }

    fn add(&mut self, facts: &Facts<'_>, entry: &Entry, team: &Team<'_>) {
        let sampled = entry.is_sampled();
        let of = |is_there: &dyn Fn(CallSite) -> bool| -> Weights {
            let places = entry.places().iter().filter(|(site, _)| is_there(**site));
            places.map(|(site, weight)| (*site, *weight)).collect()
        };
        let places = match entry.detail {
            Detail::Plain if sampled => of(&|site| team.holds(site, true)),
            Detail::Calls(group) if MEETING.contains(&facts.call_groups.get(group).name) => {
                of(&|site| team.holds(site, false))
            }
            // Goroutines may wait for anything while their threads wait for goroutines, and so may threads that wait for what
            // others send. Go's scheduler itself only sleeps before it takes goroutines from another thread.
            Detail::Waits(on, _) if !team.go || on == WaitsFor::Sleep => {
                of(&|site| team.meets(site, false) && (team.go || !team.hands(site)))
            }
            Detail::Held(CpuHolder::Own(_) | CpuHolder::Nobody) => {
                self.ready += entry.ns;
                return;
            }
            _ => Weights::new(),
        };
        let part = |of: u64, all: &Weights| of as f64 / amount(all).max(1) as f64;
        let in_team = entry.ns.part(part(amount(&places), entry.places()));
        self.team += in_team;
        if matches!(entry.detail, Detail::Waits(..)) {
            self.waits += entry.ns - in_team;
        } else {
            self.work += entry.ns - in_team;
            let handing = places.iter().filter(|(site, _)| team.hands(**site));
            let handing = handing.map(|(_, weight)| weight.amount).sum();
            self.handing += in_team.part(part(handing, &places));
        }
        if sampled {
            add(&mut self.places, &places);
        }
    }

    /// All of it.
    pub(super) fn all(&self) -> Ns {
        self.team + self.ready + self.work + self.waits
    }
}
