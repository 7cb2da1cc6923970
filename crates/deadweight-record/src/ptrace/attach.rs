//! Attaching to a running process by ptrace: from seizing it to detaching.
//!
//! Does not handle each task; see `tracer::attach`.

use super::event_queue::EventSender;
use super::sample_timer::SampleTimer;
use super::tracer::Tracer;
use super::{PERIOD, StopCosts, TraceResult, calibrate, record_with};
use crate::clock::now;
use crate::error::Error;
use crate::launch::descriptor_limit;
use crate::launch::signals::Interrupts;
use crate::launch::{Ended, Outcome};
use crate::procfs::memory_budget::oom_score;
use crate::procfs::snapshot::Target;
use deadweight_trace::ids::Tid;
use deadweight_trace::raw::Sink;
use deadweight_trace::{Exit, Meta, Usage};
use std::time::Duration;

/// As [`crate::attach`].
pub(crate) fn attach(
    target: &Target,
    time: Option<Duration>,
    facts: Meta,
    sink: &mut dyn Sink,
) -> Result<Outcome, Error> {
    descriptor_limit::raise();
    oom_score::raise();
    let costs = calibrate::costs()?;
    let interrupts = Interrupts::note();
    let meta = Meta {
        command: target.command(),
        root: Tid(target.pid),
        attached: true,
        sample_period: PERIOD,
        recorders: vec![Tid(std::process::id())],
        ..facts
    };
    record_with(meta, sink, |sender| trace(target, time, costs, sender, &interrupts))
}

/// The tracing thread. At its end the kernel detaches all tasks that are still traced.
fn trace(
    target: &Target,
    time: Option<Duration>,
    costs: StopCosts,
    sender: EventSender,
    interrupts: &Interrupts,
) -> Result<TraceResult, Error> {
    let limit = time.map(|time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
    let mut tracer = Tracer::new(target.pid, PERIOD, costs, sender);
    let timer = SampleTimer::start(PERIOD)?;
    let start = tracer.attach(target, limit)?;
    let until = limit.map_or(u64::MAX, |limit| start.saturating_add(limit));
    let over =
        |gone: bool| interrupts.seen().is_some() || now() >= until || gone && target.has_ended();
    let end = tracer.run(&timer, &over).map_or_else(now, |end| end.at).min(until);
    tracer.detach_all();
    drop(timer);
    let (exit, usage) = (Exit::default(), Usage::default());
    let ended = Ended { start, end, exit, usage, blocks_read: 0, involuntary_switches: 0 };
    Ok(TraceResult::new(ended, &tracer))
}
