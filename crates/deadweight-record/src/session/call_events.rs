//! The events at single system calls that all tasks of a program share on the user rung, and closing some of them
//! while it runs. `follow::fork_burst` decides which.

use super::Session;
use crate::error::Error;
use crate::perf::schema::{Role, fields};
use crate::perf::sys::{Event, Open, Scope, Source};
use std::os::fd::{AsRawFd, RawFd};
use std::thread;

/// The events at the entry or the return of a call, one for each CPU.
#[derive(Debug)]
pub(super) struct CallEvent {
    /// The tracepoint's number.
    tracepoint: u64,
    /// The call's number.
    nr: u16,
    role: Role,
    events: Vec<Open>,
}

/// The events at calls that are no longer recorded.
#[derive(Debug)]
pub(crate) struct RetiredEvents {
    /// The events at entries; they are closed first.
    pub(crate) enters: Vec<Open>,
    /// The events at returns, by the call's number: a call with a recorded entry needs its return too.
    pub(crate) leaves: Vec<(u16, Vec<Open>)>,
}

impl Session {
    /// Opens the program's events at a call, and keeps its tracepoint in use by an event that never counts: closing
    /// the last event of a tracepoint takes the kernel up to 40 ms, in which no task can fork.
    pub(super) fn open_call_event(
        &mut self,
        role: Role,
        (event, tracepoint): (&Event, u64),
        scope: Scope,
    ) -> Result<(), Error> {
        let opened = self.open_everywhere(role, Ok(event), scope);
        let events = self.tolerate(role, opened, false)?;
        let pairs = self.user_access.iter().flat_map(|user_access| &user_access.calls);
        let of = |pair: &&crate::perf::call_tracepoints::Pair| {
            [pair.enter, pair.leave].contains(&tracepoint)
        };
        let Some(nr) = pairs.filter(of).map(|pair| pair.nr).next() else { return Ok(()) };
        self.call_events.push(CallEvent { tracepoint, nr, role, events });
        Ok(())
    }

    /// Keeps the tracepoints of calls in use. Their events belong to a thread that has ended.
    pub(super) fn keep_tracepoints_in_use(&mut self) {
        let call_events = self.call_events.iter().filter(|point| point.role != Role::CallSite);
        let tracepoints: Vec<u64> = call_events.map(|point| point.tracepoint).collect();
        let open = |tracepoint| {
            let source = Source::Tracepoint(tracepoint);
            let event = Event { no_kernel: true, ..super::Event::of_each(source, fields::BASE) };
            event.open(Scope::OneTask(0), -1).ok()
        };
        let opened = thread::spawn(move || tracepoints.into_iter().filter_map(open).collect());
        // If that fails, closing only takes longer.
        self.keep_open = opened.join().unwrap_or_default();
    }

    /// The events at this tracepoint.
    pub(super) fn at(&self, tracepoint: u64) -> impl Iterator<Item = &Open> {
        let at = move |point: &&CallEvent| {
            point.tracepoint == tracepoint && point.role != Role::CallSite
        };
        self.call_events.iter().filter(at).flat_map(|point| &point.events)
    }

    /// All events at single calls, and those that keep their tracepoints in use.
    pub(super) fn events_at_calls(&self) -> impl Iterator<Item = &Open> {
        self.call_events.iter().flat_map(|point| &point.events).chain(&self.keep_open)
    }

    /// The numbers of the calls that have events of their own.
    pub(crate) fn single_calls(&self) -> Vec<u16> {
        let enters = self.call_events.iter().filter(|point| point.role == Role::Enter);
        enters.map(|point| point.nr).collect()
    }

    /// Removes the events at these calls from the session.
    pub(crate) fn retire(&mut self, calls: &[u16]) -> RetiredEvents {
        let mut retired = RetiredEvents { enters: Vec::new(), leaves: Vec::new() };
        for point in self.call_events.extract_if(.., |point| calls.contains(&point.nr)) {
            match point.role {
                Role::Leave => retired.leaves.push((point.nr, point.events)),
                _ => retired.enters.extend(point.events),
            }
        }
        retired
    }
}

impl RetiredEvents {
    /// The descriptors of all of them.
    pub(crate) fn files(&self) -> Vec<RawFd> {
        let leaves = self.leaves.iter().flat_map(|(_, events)| events);
        self.enters.iter().chain(leaves).map(AsRawFd::as_raw_fd).collect()
    }
}
