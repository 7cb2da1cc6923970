//! The events of the user rung: what the kernel reports to any user about the user's own programs.
//!
//! Switches, forks, execs, mappings and exits of the program's own tasks, chosen system calls, page faults of user
//! code, and samples. Where kernel events are allowed too (`kernel.perf_event_paranoid` 1 or less, CAP_PERFMON),
//! samples include the kernel. Where whole CPUs may be recorded (0 or less), switches are those of all tasks.
//! `session` opens them.

use super::breakpoints;
use super::uprobes::probe_event;
use super::{Entry, SITES_PER_SECOND, Session};
use crate::error::Error;
use crate::launch::Probe;
use crate::perf::call_tracepoints::{self, Pair};
use crate::perf::schema::{Role, fields};
use crate::perf::sys::{Event, Every, Open, Scope, Source};
use perf_event_open_sys::bindings as abi;

/// User stacks per second, task and CPU, of each call: there are twenty calls.
const SITES_OF_CALL: u64 = 100;

/// Breakpoints of a CPU.
const BREAKPOINTS: usize = 4;

/// Breakpoints in place of uprobes, which only root may set: at addresses that are the same in each run, first those
/// of `probes`, then the program's main if one is left.
fn places(entries: &[Entry], probes: &[Probe]) -> Vec<(Role, Event)> {
    let own = |event| Event { no_kernel: true, ..event };
    let probes = (0..).zip(probes).filter_map(|(number, probe)| {
        Some((Role::Probe(number), own(probe_event(probe, Source::Breakpoint(probe.fixed?)))))
    });
    let mains = entries.iter().filter(|entry| !entry.common).filter_map(|entry| {
        Some((Role::Main, own(Event::of_each(Source::Breakpoint(entry.fixed?), fields::BASE))))
    });
    probes.chain(mains).take(BREAKPOINTS).collect()
}

/// Breakpoints that are set, on each CPU.
#[derive(Debug, Default)]
pub(crate) struct BreakpointSet {
    set: Vec<(Role, Open)>,
    /// How many times as long some stores take while one is armed, where that is so.
    pub(crate) slowdown: Option<f64>,
}

impl BreakpointSet {
    /// All of them.
    pub(super) fn all(&self) -> impl Iterator<Item = &Open> {
        self.set.iter().map(|(_, open)| open)
    }

    /// Those at the start of main.
    pub(crate) fn main(&self) -> impl Iterator<Item = &Open> {
        self.set.iter().filter(|(role, _)| *role == Role::Main).map(|(_, open)| open)
    }

    /// Those at probes.
    pub(crate) fn wait_breakpoints(&self) -> impl Iterator<Item = &Open> {
        self.set.iter().filter(|(role, _)| *role != Role::Main).map(|(_, open)| open)
    }
}

impl Session {
    /// Sets as many breakpoints as are free: a debugger of the program may use all of them.
    pub(super) fn set_breakpoints(&mut self, program: i32, entries: &[Entry], probes: &[Probe]) {
        for (role, event) in places(entries, probes) {
            let opened = self.open_everywhere(role, Ok(&event), Scope::FromExec(program));
            self.breakpoints
                .set
                .extend(opened.unwrap_or_default().into_iter().map(|open| (role, open)));
        }
        if !self.breakpoints.set.is_empty() {
            // This address is data and never executed.
            let data = &raw const NOT_CODE as u64;
            let event =
                Event { no_kernel: true, ..Event::of_each(Source::Breakpoint(data), fields::BASE) };
            let never_met = event.open(Scope::OneTask(0), -1).ok();
            self.breakpoints.slowdown = never_met.and_then(|open| breakpoints::slowdown(&open));
        }
    }
}

/// An address at which a breakpoint is never hit.
static NOT_CODE: u64 = 0;

/// What the user rung records of its tasks.
#[derive(Copy, Clone, Debug)]
pub(crate) struct UserView {
    /// Switches of all tasks are recorded.
    pub(crate) everyone: bool,
    /// Period of the sampling clock in ns, if it makes no record in the kernel; else 0.
    pub(crate) period: u64,
    /// What recording a call adds to the time between its entry and its return, in ns.
    pub(crate) recording: u64,
}

/// What an ordinary user may record of a program, found by trying.
#[derive(Clone, Debug)]
pub(crate) struct UserAccess {
    /// The calls that are recorded.
    pub(super) calls: Vec<Pair>,
    /// Kernel events: samples and faults.
    pub(crate) kernel: bool,
    /// Switches of all tasks.
    pub(crate) everyone: bool,
}

impl UserAccess {
    /// Finds out what is allowed.
    pub(crate) fn find(cpus: usize) -> Result<Self, Error> {
        let [kernel, everyone] = Self::tried();
        Ok(Self { calls: call_tracepoints::chosen(cpus)?, kernel, everyone })
    }

    /// Whether kernel events, and switches of all tasks, are allowed.
    pub(crate) fn tried() -> [bool; 2] {
        let clock = Source::Software(abi::PERF_COUNT_SW_CPU_CLOCK);
        let clock = Event { every: Every::Count(1_000_000), ..Event::of_each(clock, fields::BASE) };
        let everyone =
            Event::of_each(Source::TasksAndSwitches, fields::BASE).open(Scope::AllTasks, 0);
        [clock.open(Scope::TaskTree(0), -1).is_ok(), everyone.is_ok()]
    }

    /// What the decoder needs to know of it.
    pub(crate) fn view(&self, period: u64, recording: u64) -> UserView {
        let period = if self.kernel { 0 } else { period };
        UserView { everyone: self.everyone, period, recording }
    }

    /// The events that own the rings, and the tasks that they follow.
    pub(super) fn leader(&self, program: i32) -> (Event, Scope) {
        let lives = Event {
            no_kernel: !self.kernel,
            ..Event::of_each(Source::TasksAndSwitches, fields::BASE)
        };
        (lives, if self.everyone { Scope::AllTasks } else { Scope::TaskTree(program) })
    }

    /// The events of the program.
    pub(super) fn events(&self) -> Vec<(Role, Event)> {
        let raw = fields::BASE | fields::RAW;
        let user = fields::BASE | fields::CHAIN | fields::REGISTERS | fields::STACK;
        let own = |event| Event { no_kernel: !self.kernel, ..event };
        let software = |which, what| own(Event::of_each(Source::Software(which), what));
        let sometimes = |event, rate| Event {
            every: Every::PerSecond(rate),
            no_kernel: true,
            no_kernel_chain: true,
            ..event
        };
        // Opened before the other count of the same faults: the kernel serves the last opened event first, and an
        // event after a record with a stack would get its length.
        let faults = abi::PERF_COUNT_SW_PAGE_FAULTS;
        let mut events = vec![
            (Role::FaultSite, sometimes(software(faults, user), SITES_PER_SECOND)),
            (Role::Fault, software(faults, fields::BASE | fields::IP | fields::ADDR)),
            (Role::MinorEnd, software(abi::PERF_COUNT_SW_PAGE_FAULTS_MIN, fields::BASE)),
            (
                Role::MajorEnd,
                software(abi::PERF_COUNT_SW_PAGE_FAULTS_MAJ, fields::BASE | fields::ADDR),
            ),
        ];
        for pair in &self.calls {
            let tracepoint = |id, what| {
                let event = Event::of_each(Source::Tracepoint(id), what);
                Event { no_kernel: true, ..event }
            };
            if pair.sited {
                events.push((
                    Role::CallSite,
                    sometimes(tracepoint(pair.enter, user | fields::RAW), SITES_OF_CALL),
                ));
            }
            events.push((Role::Enter, tracepoint(pair.enter, raw)));
            events.push((Role::Leave, tracepoint(pair.leave, raw)));
        }
        events
    }
}
