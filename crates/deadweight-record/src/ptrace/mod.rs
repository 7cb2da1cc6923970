//! Recording without perf events: the program is stopped at its calls, and while it computes, and
//! looked at. The lowest rung.
//!
//! What comes out are the same raw events as on the others. The time that stops take is in them as
//! a hold of the CPU by us, so that analysis takes it out like any other cost of observing. No
//! seccomp filter is set: its calls would fail if we were killed
//! ([ADR-0011](../../../../docs/adr/0011-without-perf-the-program-is-stopped.md)).

mod attach;
mod calibrate;
mod event;
mod event_queue;
mod event_sorter;
mod first_touch;
mod high_rate;
mod maps;
mod privileges;
mod requests;
mod sample_timer;
mod schedstat;
mod tracee;
mod tracer;

use crate::clock::now;
use crate::error::Error;
use crate::launch::descriptor_limit;
use crate::launch::signals::Guard;
use crate::launch::{Ended, Outcome, Request, Taken, Waiting, lend};
use crate::procfs;
use crate::procfs::memory::Memory;
use crate::procfs::memory_budget::first_to_go;
pub(crate) use attach::attach;
pub(crate) use calibrate::{StopCosts, costs};
use deadweight_trace::Meta;
use deadweight_trace::ids::Tid;
use deadweight_trace::raw::Sink;
use deadweight_trace::units::Ns;
use event::{EventKind, TaskEvent};
use event_queue::{EventReceiver, EventSender};
use event_sorter::EventSorter;
use sample_timer::SampleTimer;
use std::sync::mpsc::RecvTimeoutError;
use std::thread;

/// How many mappings a list of them has.
pub(crate) fn count_mappings(list: &str) -> usize {
    maps::parse(list).len()
}
use std::time::{Duration, Instant};
use tracer::{Tracer, Untraced};

/// Between two samples of a task, in ns of CPU time: a stop takes some 20 µs. No part of the kernel's tick, which tells
/// user code from calls: that would find the task where the sample does, time after time.
const PERIOD: u64 = 997_000;
/// The shortest time between two looks from the side; a look may take a twentieth of it.
const POLL_EVERY: Duration = Duration::from_millis(25);

/// Whether this rung can be had: a child of ours is traced.
pub(crate) fn check_available() -> Result<(), Error> {
    calibrate::Child::start(0).map(drop)
}

/// As [`crate::record_in`].
pub(crate) fn record(
    costs: impl FnOnce() -> Result<StopCosts, Error>,
    request: &Request,
    facts: Meta,
    sink: &mut dyn Sink,
) -> Result<Outcome, Error> {
    descriptor_limit::raise();
    first_to_go::volunteer();
    let costs = costs()?;
    let guard = Guard::install();
    let program = lend::behind_barrier(request, &guard)?;
    let root = program.pid().cast_unsigned();
    let meta = Meta {
        command: request.argv.iter().map(|a| a.to_string_lossy().into_owned()).collect(),
        root: Tid(root),
        sample_period: PERIOD,
        recorders: vec![Tid(std::process::id()), program.by],
        ..facts
    };
    record_with(meta, sink, move |to| trace(program, costs, to))
}

/// Records what the tracing thread tells until it is done, and sums the recording up.
fn record_with(
    mut meta: Meta,
    sink: &mut dyn Sink,
    trace: impl FnOnce(EventSender) -> Result<TraceResult, Error> + Send,
) -> Result<Outcome, Error> {
    meta.zero = now();
    let before = Taken::so_far();
    sink.begin(&meta);
    let (to, events) = event_queue::channel();
    let mut sorter = EventSorter::new(sink, usize::from(meta.cpus), std::process::id());
    let TraceResult { ended, untraced, estimated_calls, thread } = thread::scope(|scope| {
        let tracer = scope.spawn(move || trace(to));
        sort_events(&mut sorter, &events, meta.root.0);
        tracer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })?;
    meta.recorders.push(Tid(thread));
    meta.start = Ns(ended.start - meta.zero);
    meta.exit = Some(ended.exit);
    // A process that was joined had used some before.
    meta.rusage = (!meta.attached).then_some(ended.usage);
    meta.warnings.extend(untraced.warnings());
    meta.warnings.extend(estimated_warning(estimated_calls));
    before.until(&ended, &mut meta);
    let records = sorter.count;
    sorter.finish().finish(meta);
    Ok(Outcome::new(&ended, records, 0, 0))
}

/// What the tracing thread leaves behind.
struct TraceResult {
    ended: Ended,
    untraced: Untraced,
    /// Calls told without a stop at each.
    estimated_calls: u64,
    /// Its own number.
    thread: u32,
}

/// The tracing thread's work, from the barrier to the program's end.
fn trace(program: Waiting, costs: StopCosts, to: EventSender) -> Result<TraceResult, Error> {
    let root = program.pid().cast_unsigned();
    let mut tracer = Tracer::new(root, PERIOD, costs, to);
    let timer = match seize_root(root).and_then(|()| SampleTimer::start(PERIOD)) {
        Ok(timer) => timer,
        Err(error) => return Err(program.cancel(error)),
    };
    tracer.begin();
    let running = program.release()?;
    tracer.released(running.start());
    let end = tracer.run(&timer, &|_| false);
    drop(timer);
    let ended = match end {
        Some(end) => running.reaped(end.status, &end.usage, end.at)?,
        None => running.wait()?,
    };
    Ok(TraceResult::new(ended, &tracer))
}

impl TraceResult {
    /// Asked by the tracing thread itself.
    fn new(ended: Ended, tracer: &Tracer) -> Self {
        // SAFETY: asks for a number.
        let thread = unsafe { libc::gettid() }.cast_unsigned();
        Self { ended, untraced: tracer.untraced, estimated_calls: tracer.estimated_calls, thread }
    }
}

/// The root becomes a traced task that stops at its calls.
fn seize_root(root: u32) -> Result<(), Error> {
    let failed = |what: &str| {
        let what = what.into();
        move |source| Error::System { what, source }
    };
    requests::seize(root).map_err(failed("cannot trace the program"))?;
    requests::interrupt(root).map_err(failed("cannot stop the program"))?;
    match requests::wait() {
        requests::WaitResult::Stopped(..) => {
            requests::resume(root, requests::Resume::ToNextCall(0))
                .map_err(failed("cannot let the program go on"))
        }
        _ => Err(Error::last("the program ended before it began")),
    }
}

/// What the reader must know of calls that were told without a stop at each.
fn estimated_warning(count: u64) -> Option<String> {
    (count > 0).then(|| {
        format!(
            "calls came too densely to stop at each: {count} of them are told by the kernel's counts, by \
             samples and by the calls that were watched before them"
        )
    })
}

/// Hands the notes on in order of time until there are no more, and looks from the side meanwhile.
fn sort_events(sorter: &mut EventSorter<'_>, events: &EventReceiver, root: u32) {
    let mut memory = Memory::default();
    let mut descriptors = procfs::Descriptors::default();
    let mut next = Instant::now() + POLL_EVERY;
    loop {
        match events.batches.recv_timeout(next.saturating_duration_since(Instant::now())) {
            Ok(batch) => {
                let (bytes, watermark) = (batch.bytes(), batch.watermark);
                sorter.add(batch.events);
                sorter.emit_until(watermark);
                events.release(bytes);
                if watermark == u64::MAX {
                    return;
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        if Instant::now() >= next {
            let start = Instant::now();
            sorter.add(poll_proc(&mut memory, &mut descriptors, root));
            next = Instant::now() + POLL_EVERY.max(20 * start.elapsed());
        }
    }
}

/// What descriptors refer to, and pages of memory.
fn poll_proc(
    memory: &mut Memory,
    descriptors: &mut procfs::Descriptors,
    root: u32,
) -> Vec<TaskEvent> {
    let processes = procfs::tree(root);
    let at = now();
    let new = descriptors.look(&processes).into_iter().map(|(process, fd, target)| TaskEvent {
        at,
        process,
        task: process,
        kind: EventKind::Fd { fd, target },
    });
    let pages = memory.look(&processes).into_iter().map(|page| TaskEvent {
        at: page.at,
        process: page.process,
        task: page.process,
        kind: EventKind::Page { addr: page.addr, zero: page.zero },
    });
    new.chain(pages).collect()
}

impl Untraced {
    fn warnings(self) -> Vec<String> {
        let mut warnings = Vec::new();
        if self.privileges > 0 {
            warnings.push(format!(
                "programs with more rights than their user (set-user-id or the like), {} of them: \
                 tracing would take these rights away, so their time is not recorded",
                self.privileges
            ));
        }
        if self.traced > 0 {
            warnings.push(format!(
                "the program traces processes itself, {} of them: nobody can be traced twice, so \
                 they were left alone from there",
                self.traced
            ));
        }
        warnings
    }
}
