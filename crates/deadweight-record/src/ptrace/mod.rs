//! Recording by ptrace, without perf events: the lowest rung. The program stops at its system calls
//! and for samples.
//!
//! - In: a program behind its barrier, or a running process.
//! - Out: the same raw events as on the other rungs.
//! - Must not know: perf events, BPF, or how the plan chose this rung.
//!
//! The tracer's own stops appear as a CPU that the recorder holds, so the analysis subtracts them
//! as tracing overhead. It sets no seccomp filter: filtered calls would fail if the recorder were
//! killed ([ADR-0011](../../../../docs/adr/0011-without-perf-the-program-is-stopped.md)).

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
mod untraced;

use crate::clock::now;
use crate::error::Error;
use crate::launch::descriptor_limit;
use crate::launch::signals::Guard;
use crate::launch::{Ended, LostCpuTime, Outcome, Request, Waiting, vfork};
use crate::procfs;
use crate::procfs::memory::Memory;
use crate::procfs::memory_budget::oom_score;
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

use std::time::{Duration, Instant};
use tracer::Tracer;
use untraced::Untraced;

/// CPU time of a task between two samples, in ns: one stop takes some 20 µs. The period is no part
/// of the kernel's tick, which divides user time from system time: both would find the task at the
/// same spots.
const PERIOD: u64 = 997_000;
/// The shortest interval between two polls of `/proc`. A poll may take a twentieth of the interval.
const POLL_EVERY: Duration = Duration::from_millis(25);

/// How many mappings this text in the form of `/proc/PID/maps` has.
pub(crate) fn count_mappings(list: &str) -> usize {
    maps::parse(list).len()
}

/// Whether this rung is available: traces a child.
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
    oom_score::raise();
    let costs = costs()?;
    let guard = Guard::install();
    let program = vfork::behind_barrier(request, &guard)?;
    let root = program.pid().cast_unsigned();
    let meta = Meta {
        command: request.argv.iter().map(|a| a.to_string_lossy().into_owned()).collect(),
        root: Tid(root),
        sample_period: PERIOD,
        recorders: vec![Tid(std::process::id()), program.vfork_tid],
        ..facts
    };
    record_with(meta, sink, move |sender| trace(program, costs, sender))
}

/// Records the tracing thread's events until it ends, and completes the metadata.
fn record_with(
    mut meta: Meta,
    sink: &mut dyn Sink,
    trace: impl FnOnce(EventSender) -> Result<TraceResult, Error> + Send,
) -> Result<Outcome, Error> {
    meta.zero = now();
    let before = LostCpuTime::so_far();
    sink.begin(&meta);
    let (sender, events) = event_queue::channel();
    let mut sorter = EventSorter::new(sink, usize::from(meta.cpus), std::process::id());
    let TraceResult { ended, untraced, estimated_calls, thread } = thread::scope(|scope| {
        let tracer = scope.spawn(move || trace(sender));
        sort_events(&mut sorter, &events, meta.root.0);
        tracer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })?;
    meta.recorders.push(Tid(thread));
    meta.start = Ns(ended.start - meta.zero);
    meta.exit = Some(ended.exit);
    // A process that was attached to has used CPU time before.
    meta.rusage = (!meta.attached).then_some(ended.usage);
    meta.unseen = Ns(untraced.unseen);
    meta.warnings.extend(untraced.warnings());
    meta.warnings.extend(estimated_warning(estimated_calls));
    before.until(&ended, &mut meta);
    let records = sorter.count;
    sorter.finish().finish(meta);
    Ok(Outcome::new(&ended, records, 0, 0))
}

/// Results of the tracing thread.
struct TraceResult {
    ended: Ended,
    untraced: Untraced,
    /// Calls estimated without a stop at each.
    estimated_calls: u64,
    /// The tracing thread's id.
    thread: u32,
}

/// The tracing thread: from the barrier to the program's end.
fn trace(program: Waiting, costs: StopCosts, sender: EventSender) -> Result<TraceResult, Error> {
    let root = program.pid().cast_unsigned();
    let mut tracer = Tracer::new(root, PERIOD, costs, sender);
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
    /// Called on the tracing thread itself.
    fn new(ended: Ended, tracer: &Tracer) -> Self {
        let thread = procfs::own_tid();
        Self { ended, untraced: tracer.untraced, estimated_calls: tracer.estimated_calls, thread }
    }
}

/// Seizes the root task and resumes it until its next call.
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
                .map_err(failed("cannot resume the program"))
        }
        _ => Err(Error::last("the program ended before it started")),
    }
}

/// The warning about calls that were estimated without a stop at each.
fn estimated_warning(count: u64) -> Option<String> {
    (count > 0).then(|| {
        format!(
            "the call rate was too high to stop at each call: {count} calls are estimated from the \
             kernel's counts, from samples and from the calls observed before"
        )
    })
}

/// Passes the events to the sink in order of time until there are no more, and polls `/proc`
/// meanwhile.
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

/// Targets of descriptors, and sampled pages of memory.
fn poll_proc(
    memory: &mut Memory,
    descriptors: &mut procfs::Descriptors,
    root: u32,
) -> Vec<TaskEvent> {
    let processes = procfs::tree(root);
    let at = now();
    let new = descriptors.changes(&processes).into_iter().map(|(process, fd, target)| TaskEvent {
        at,
        process,
        task: process,
        kind: EventKind::Fd { fd, target },
    });
    let pages = memory.sample(&processes).into_iter().map(|page| TaskEvent {
        at: page.at,
        process: page.process,
        task: page.process,
        kind: EventKind::Page { addr: page.addr, zero: page.zero },
    });
    new.chain(pages).collect()
}
