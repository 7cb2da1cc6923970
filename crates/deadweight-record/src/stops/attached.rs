//! Recording a process that runs already, by stops: from seizing it to leaving it. Not for what is done
//! with each of its tasks: that is `tracer::joined`.

use super::clock::Clock;
use super::note::Order;
use super::tracer::{Batch, Left, Tracer};
use super::{Costs, PERIOD, calibrate, not_watched, put_in_order};
use crate::error::Error;
use crate::launch::{Ended, now};
use crate::limit;
use crate::plan::Plan;
use crate::present::Target;
use crate::proc;
use crate::raw::Sink;
use crate::record::{Outcome, Taken};
use crate::signals::Interrupts;
use deadweight_core::ids::Tid;
use deadweight_core::trace::syscall::Arch;
use deadweight_core::trace::{Exit, Meta, Usage};
use deadweight_core::units::Ns;
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::Duration;

/// As [`crate::attach`].
pub(crate) fn attach(
    target: &Target,
    time: Option<Duration>,
    plan: &Plan,
    sink: &mut dyn Sink,
) -> Result<Outcome, Error> {
    limit::raise();
    let costs = calibrate::costs()?;
    let interrupts = Interrupts::note();
    let mut meta = Meta {
        recorder: env!("CARGO_PKG_VERSION").into(),
        command: target.command(),
        arch: Arch::HOST,
        cpus: u16::try_from(proc::allowed_cpus()).unwrap_or(u16::MAX),
        root: Tid(target.pid),
        attached: true,
        sample_period: PERIOD,
        rung: plan.rung.level.name().into(),
        rung_why: plan.rung.why.clone(),
        lacks: plan.rung.lacks_in_words(),
        warnings: plan.warnings.clone(),
        recorders: vec![Tid(std::process::id())],
        zero: now(),
        ..Meta::default()
    };
    let before = Taken::so_far();
    sink.begin(&meta);
    let (to, notes) = mpsc::channel();
    let mut order = Order::new(sink, usize::from(meta.cpus), std::process::id());
    let done = thread::scope(|scope| {
        let tracer = scope.spawn(|| trace(target, time, costs, to, &interrupts));
        put_in_order(&mut order, &notes, target.pid);
        tracer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })?;
    meta.recorders.push(Tid(done.thread));
    meta.start = Ns(done.start - meta.zero);
    meta.exit = Some(Exit::default());
    meta.warnings.extend(done.left.in_words());
    meta.warnings.extend(not_watched(done.unwatched));
    let (exit, usage) = (Exit::default(), Usage::default());
    let (start, end) = (done.start, done.end);
    let ended = Ended { start, end, exit, usage, blocks_read: 0, displaced: 0 };
    before.until(&ended, &mut meta);
    let records = order.count;
    order.finish().finish(meta);
    Ok(Outcome::new(&ended, records, 0, 0))
}

/// What the tracing thread leaves behind.
struct Done {
    start: u64,
    end: u64,
    left: Left,
    unwatched: u64,
    /// Its own number.
    thread: u32,
}

/// The tracing thread's work. Its end lets everybody go who was not let go before.
fn trace(
    target: &Target,
    time: Option<Duration>,
    costs: Costs,
    to: Sender<Batch>,
    interrupts: &Interrupts,
) -> Result<Done, Error> {
    let limit = time.map(|time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
    let mut tracer = Tracer::new(target.pid, PERIOD, costs, to);
    let clock = Clock::start(PERIOD)?;
    let start = tracer.join(target, limit)?;
    let until = limit.map_or(u64::MAX, |limit| start.saturating_add(limit));
    let over =
        |gone: bool| interrupts.seen().is_some() || now() >= until || gone && target.has_ended();
    let end = tracer.run(&clock, &over).map_or_else(now, |end| end.at).min(until);
    tracer.leave_all();
    drop(clock);
    // SAFETY: asks for a number.
    let thread = unsafe { libc::gettid() }.cast_unsigned();
    Ok(Done { start, end, left: tracer.left, unwatched: tracer.unwatched, thread })
}
