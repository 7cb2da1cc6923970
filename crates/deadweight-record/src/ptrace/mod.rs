//! Recording without perf events: the program is stopped at its calls, and while it computes, and
//! looked at. The lowest rung.
//!
//! What comes out are the same raw events as on the others. The time that stops take is in them as
//! a hold of the CPU by us, so that analysis takes it out like any other cost of observing. No
//! seccomp filter is set: its calls would fail if we were killed
//! ([ADR-0011](../../../../docs/adr/0011-without-perf-the-program-is-stopped.md)).

mod attached;
mod backlog;
mod calibrate;
mod clock;
mod dense;
mod fresh;
mod maps;
mod note;
mod requests;
mod rights;
mod schedstat;
mod tracee;
mod tracer;

use crate::clock::now;
use crate::error::Error;
use crate::launch::descriptor_limit;
use crate::launch::signals::Guard;
use crate::launch::{Ended, Request, Waiting, lend};
use crate::launch::{Outcome, Taken};
use crate::procfs;
use crate::procfs::memory::Memory;
use crate::procfs::memory_budget::first_to_go;
pub(crate) use attached::attach;
use backlog::{Backlog, Batches};
pub(crate) use calibrate::{Costs, costs};
use clock::Clock;
use deadweight_trace::Meta;
use deadweight_trace::ids::Tid;
use deadweight_trace::raw::Sink;
use deadweight_trace::units::Ns;
use note::{Note, Order, What};
use std::sync::mpsc::RecvTimeoutError;
use std::thread;

/// How many mappings a list of them has.
pub(crate) fn reads_maps(list: &str) -> usize {
    maps::listed(list).len()
}
use std::time::{Duration, Instant};
use tracer::{Left, Tracer};

/// Between two samples of a task, in ns of CPU time: a stop takes some 20 µs. No part of the kernel's tick, which tells
/// user code from calls: that would find the task where the sample does, time after time.
const PERIOD: u64 = 997_000;
/// The shortest time between two looks from the side; a look may take a twentieth of it.
const LOOK: Duration = Duration::from_millis(25);

/// Whether this rung can be had: a child of ours is traced.
pub(crate) fn tried() -> Result<(), Error> {
    calibrate::Child::start(0).map(drop)
}

/// As [`crate::record_in`].
pub(crate) fn record(
    costs: impl FnOnce() -> Result<Costs, Error>,
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
    record_by(meta, sink, move |to| trace(program, costs, to))
}

/// Records what the tracing thread tells until it is done, and sums the recording up.
fn record_by(
    mut meta: Meta,
    sink: &mut dyn Sink,
    trace: impl FnOnce(Backlog) -> Result<Traced, Error> + Send,
) -> Result<Outcome, Error> {
    meta.zero = now();
    let before = Taken::so_far();
    sink.begin(&meta);
    let (to, notes) = backlog::pair();
    let mut order = Order::new(sink, usize::from(meta.cpus), std::process::id());
    let Traced { ended, left, unwatched, thread } = thread::scope(|scope| {
        let tracer = scope.spawn(move || trace(to));
        put_in_order(&mut order, &notes, meta.root.0);
        tracer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })?;
    meta.recorders.push(Tid(thread));
    meta.start = Ns(ended.start - meta.zero);
    meta.exit = Some(ended.exit);
    // A process that was joined had used some before.
    meta.rusage = (!meta.attached).then_some(ended.usage);
    meta.warnings.extend(left.in_words());
    meta.warnings.extend(not_watched(unwatched));
    before.until(&ended, &mut meta);
    let records = order.count;
    order.finish().finish(meta);
    Ok(Outcome::new(&ended, records, 0, 0))
}

/// What the tracing thread leaves behind.
struct Traced {
    ended: Ended,
    left: Left,
    /// Calls told without a stop at each.
    unwatched: u64,
    /// Its own number.
    thread: u32,
}

/// The tracing thread's work, from the barrier to the program's end.
fn trace(program: Waiting, costs: Costs, to: Backlog) -> Result<Traced, Error> {
    let root = program.pid().cast_unsigned();
    let mut tracer = Tracer::new(root, PERIOD, costs, to);
    let clock = match traced(root).and_then(|()| Clock::start(PERIOD)) {
        Ok(clock) => clock,
        Err(error) => return Err(program.cancel(error)),
    };
    tracer.begin();
    let running = program.release()?;
    tracer.released(running.start());
    let end = tracer.run(&clock, &|_| false);
    drop(clock);
    let ended = match end {
        Some(end) => running.reaped(end.status, &end.usage, end.at)?,
        None => running.wait()?,
    };
    Ok(Traced::new(ended, &tracer))
}

impl Traced {
    /// Asked by the tracing thread itself.
    fn new(ended: Ended, tracer: &Tracer) -> Self {
        // SAFETY: asks for a number.
        let thread = unsafe { libc::gettid() }.cast_unsigned();
        Self { ended, left: tracer.left, unwatched: tracer.unwatched, thread }
    }
}

/// The root becomes a traced task that stops at its calls.
fn traced(root: u32) -> Result<(), Error> {
    let failed = |what: &str| {
        let what = what.into();
        move |source| Error::System { what, source }
    };
    requests::seize(root).map_err(failed("cannot trace the program"))?;
    requests::interrupt(root).map_err(failed("cannot stop the program"))?;
    match requests::wait() {
        requests::Waited::Task(..) => {
            requests::go(root, requests::Go::On(0)).map_err(failed("cannot let the program go on"))
        }
        _ => Err(Error::last("the program ended before it began")),
    }
}

/// What the reader must know of calls that were told without a stop at each.
fn not_watched(count: u64) -> Option<String> {
    (count > 0).then(|| {
        format!(
            "calls came too densely to stop at each: {count} of them are told by the kernel's counts, by \
             samples and by the calls that were watched before them"
        )
    })
}

/// Hands the notes on in order of time until there are no more, and looks from the side meanwhile.
fn put_in_order(order: &mut Order<'_>, notes: &Batches, root: u32) {
    let mut memory = Memory::default();
    let mut descriptors = procfs::Descriptors::default();
    let mut next = Instant::now() + LOOK;
    loop {
        match notes.from.recv_timeout(next.saturating_duration_since(Instant::now())) {
            Ok(batch) => {
                let (bytes, horizon) = (batch.bytes(), batch.horizon);
                order.add(batch.notes);
                order.hand_on(horizon);
                notes.done(bytes);
                if horizon == u64::MAX {
                    return;
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        if Instant::now() >= next {
            let start = Instant::now();
            order.add(looked(&mut memory, &mut descriptors, root));
            next = Instant::now() + LOOK.max(20 * start.elapsed());
        }
    }
}

/// What descriptors refer to, and pages of memory.
fn looked(memory: &mut Memory, descriptors: &mut procfs::Descriptors, root: u32) -> Vec<Note> {
    let processes = procfs::tree(root);
    let at = now();
    let new = descriptors.look(&processes).into_iter().map(|(process, fd, what)| Note {
        at,
        process,
        task: process,
        what: What::Fd { fd, what },
    });
    let pages = memory.look(&processes).into_iter().map(|page| Note {
        at: page.at,
        process: page.process,
        task: page.process,
        what: What::Page { addr: page.addr, zero: page.zero },
    });
    new.chain(pages).collect()
}

impl Left {
    fn in_words(self) -> Vec<String> {
        let mut words = Vec::new();
        if self.rights > 0 {
            words.push(format!(
                "programs with more rights than their user (set-user-id or the like), {} of them: \
                 tracing would take these rights away, so their time is not recorded",
                self.rights
            ));
        }
        if self.traced > 0 {
            words.push(format!(
                "the program traces processes itself, {} of them: nobody can be traced twice, so \
                 they were left alone from there",
                self.traced
            ));
        }
        words
    }
}
