//! One recorded run, from start to the last record.
//!
//! Comes in: a request or a process, and a plan. Goes out: raw events to a [`Sink`], and an outcome. Four threads:
//! one starts the program and waits for it, as in a clean run. One, at high priority, only copies the ring buffers.
//! One samples descriptors and long waits from `/proc`. The caller's thread decodes, at the lowest priority while the
//! program runs, so that it takes no CPU from the program.

mod attached;
mod fork_burst;
mod priority;
mod proc_sampler;
mod series;
mod shared;
mod wake;

use crate::bpf::in_initial_pid_namespace;
use crate::clock::now;
use crate::error::Error;
use crate::follow::merge::Merge;
use crate::follow::{Follow, RecordingStats, Start};
use crate::launch::descriptor_limit;
use crate::launch::signals::Guard;
use crate::launch::{Ended, LostCpuTime, Outcome, Request, Waiting, vfork};
use crate::perf::deferred_close::{self, DeferredClose};
use crate::perf::ring::Ring;
use crate::perf::schema::Schema;
use crate::plan::Plan;
use crate::plan::rung::Level;
use crate::procfs::memory_budget::oom_score;
use crate::procfs::{self, ProcSample};
use crate::ptrace;
use crate::session::counting::Reading;
use crate::session::decimate::{Decimation, DecimationStart};
use crate::session::probes;
use crate::session::self_test;
use crate::session::{Breakpoints, RetiredEvents, Session, UserAccess};
use deadweight_trace::Meta;
use deadweight_trace::ids::Tid;
use deadweight_trace::raw::Sink;
use deadweight_trace::units::Ns;
use priority::Lowered;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;

pub use attached::{AttachRequest, attach};
use proc_sampler::sample_proc;
pub use series::{RecordingSeries, record};
use shared::Shared;
use wake::Wake;

/// How often the drain checks whether a ring fills up or system calls come at a high rate: some hundred in that time.
const POLL_MS: i32 = 1;
/// How often it copies the rings in any case, in ns.
const COPY_NS: u64 = 50_000_000;
/// If decoding is this many ns behind, on a machine whose CPUs are all busy, it gets normal priority: undecoded
/// records are lost if the recorder is killed.
const LAG: u64 = 500_000_000;

/// Records one run of a series and passes its events to `sink`.
///
/// # Errors
/// If this machine does not allow recording ([`Error::NotAllowed`]), the program cannot be started, or the kernel
/// refuses an event. The sink's `finish` is called only on success.
pub fn record_in(
    series: &mut RecordingSeries,
    request: &Request,
    plan: &Plan,
    sink: &mut dyn Sink,
) -> Result<Outcome, Error> {
    plan.allows_recording()?;
    if plan.rung.level == Level::Stops {
        return ptrace::record(|| series.stop_costs(), request, plan.facts(), sink);
    }
    oom_score::raise();
    let guard = Guard::install();
    let waiting = vfork::behind_barrier(request, &guard)?;
    match Recording::prepare(request, plan, waiting.pid(), series) {
        Ok(recording) => recording.run(waiting, series, sink),
        Err(error) => Err(waiting.cancel(error)),
    }
}

/// Everything is open and ready; the program is still behind its barrier.
struct Recording {
    /// Outlives the session: its end closes the events finally.
    deferred_close: DeferredClose,
    /// Open while no other process may close tracepoints.
    closing_lock: Option<File>,
    session: Session,
    root: u32,
    probes: Vec<crate::Probe>,
    counts: Vec<Reading>,
    main_is_probed: bool,
    meta: Meta,
}

/// The receivers of the drain's messages.
struct DrainOutput {
    decoder: Sender<Drained>,
    retired: Sender<RetiredEvents>,
}

/// From the drain to the decoder.
enum Drained {
    /// The content of one ring.
    Chunk(Vec<u8>),
    /// This CPU's ring was full and nothing followed: no record reports the loss.
    Full(u32),
    /// Nothing older than this will follow.
    Horizon(u64),
    /// There are new events.
    Schema(Box<Schema>),
    /// From now on, 1 in N of a task's call is recorded.
    DecimationStart(DecimationStart),
}

impl Recording {
    fn prepare(
        request: &Request,
        plan: &Plan,
        pid: i32,
        series: &mut RecordingSeries,
    ) -> Result<Self, Error> {
        let root = pid.cast_unsigned();
        descriptor_limit::raise();
        let entries = probes::entries(request);
        let mut probes = request.probes.clone();
        probes.extend(probes::of_language(request));
        let level = plan.rung.level;
        let without_events = series.without_events()?;
        let closing_lock = (level < Level::Root).then(deferred_close::hold_off_closing).flatten();
        let cpus = procfs::online_cpus();
        let programs = (level == Level::Root).then(|| series.programs(&cpus)).flatten();
        let user_access =
            (level == Level::User).then(|| UserAccess::find(cpus.len())).transpose()?;
        let mut session = Session::open(pid, &cpus, &entries, &probes, programs, user_access)?;
        if level == Level::Root {
            let blind_cpus = self_test::blind_cpus(&mut session)?;
            session.open_switches(&blind_cpus)?;
        }
        let mut overhead = series.overhead(&mut session, without_events.as_ref())?;
        if level == Level::Root {
            // There samples show what the kernel did for recording.
            overhead.death = 0;
        }
        let sample_period = session.open_clock(pid, overhead.sample)?;
        let deferred_close = DeferredClose::start(&session.event_files())?;
        session.open_counts(pid, &request.counts, request.counting)?;
        let mut facts = plan.facts();
        facts.warnings.append(&mut session.warnings);
        let meta = Meta {
            command: request.argv.iter().map(|a| a.to_string_lossy().into_owned()).collect(),
            root: Tid(root),
            sample_period,
            overhead,
            ..facts
        };
        let counts = request.counts.iter().map(Reading::of).collect();
        let main_is_probed = entries.iter().any(|e| !e.common);
        Ok(Self {
            deferred_close,
            closing_lock,
            session,
            root,
            probes,
            counts,
            main_is_probed,
            meta,
        })
    }

    fn run(
        self,
        program: Waiting,
        series: &mut RecordingSeries,
        sink: &mut dyn Sink,
    ) -> Result<Outcome, Error> {
        let Self {
            deferred_close,
            closing_lock,
            session,
            root,
            probes,
            counts,
            main_is_probed,
            mut meta,
        } = self;
        let descriptors = procfs::inherited_descriptors(root);
        let user_view = session
            .user_access
            .as_ref()
            .map(|m| m.view(meta.sample_period, meta.overhead.syscall_kernel));
        let single_calls = session.single_calls();
        let in_pid_namespace = !in_initial_pid_namespace();
        let start = Start {
            root,
            descriptors,
            main_is_probed,
            counts,
            user_view,
            single_calls,
            in_pid_namespace,
        };
        let before = LostCpuTime::so_far();
        let mut merge = Merge::new(session.schema.clone());
        meta.zero = now();
        merge.zero = meta.zero;
        sink.begin(&meta);
        let shared = Shared::new();
        session.enable()?;
        let cpus = 1 + session.cpus.iter().max().map_or(0, |cpu| cpu.cast_unsigned() as usize);
        let mut follow = Follow::new(sink, session.schema.offsets, &probes, start, cpus);
        shared.records(program.by);
        let queued = OnceLock::new();
        let until = || {
            let running = program.release()?;
            let queued_for = user_view
                .is_some_and(|view| !view.everyone)
                .then(|| procfs::queued_until_death(root));
            _ = queued.set(queued_for.flatten());
            running.wait()
        };
        let ended = {
            let session = (session, &deferred_close);
            run_threads(session, until, root, &shared, &mut merge, &mut follow, |_| {})?
        };
        series.keep(deferred_close);
        drop(closing_lock);
        let used = (ended.usage.user + ended.usage.system).0;
        follow.last_steps(used, queued.into_inner().flatten(), ended.end);
        meta.start = Ns(ended.start - meta.zero);
        meta.exit = Some(ended.exit);
        meta.rusage = Some(ended.usage);
        meta.blind_cpus = follow.blind_cpus();
        let stats = std::mem::take(&mut follow.stats);
        Ok(conclude(sink, meta, &ended, shared, stats, &before))
    }
}

/// Passes the final facts to the sink, and sums up the recording.
fn conclude(
    sink: &mut dyn Sink,
    mut meta: Meta,
    ended: &Ended,
    shared: Shared,
    stats: RecordingStats,
    before: &LostCpuTime,
) -> Outcome {
    before.until(ended, &mut meta);
    let counted = *lock(&shared.call_cost);
    (meta.overhead.counted_user, meta.overhead.counted_kernel) = (counted.user, counted.kernel);
    meta.recorders = shared.recorders.into_inner().unwrap_or_else(PoisonError::into_inner);
    meta.decimated = stats.decimated;
    stats.scale_overhead(&mut meta.overhead);
    meta.warnings.extend(stats.warnings());
    meta.warnings.extend(shared.warnings.into_inner().unwrap_or_else(PoisonError::into_inner));
    sink.finish(meta);
    Outcome::new(ended, stats.records, stats.lost, shared.bytes.into_inner())
}

fn run_threads(
    (session, deferred_close): (Session, &DeferredClose),
    until: impl FnOnce() -> Result<Ended, Error> + Send,
    root: u32,
    shared: &Shared,
    merge: &mut Merge,
    follow: &mut Follow<'_>,
    begin: impl FnOnce(&mut Follow<'_>),
) -> Result<Ended, Error> {
    let (to_decoder, from_drain) = mpsc::channel();
    let (to_drain, spent) = mpsc::channel();
    // Ready before the program starts. To allocate one the drain might have to wait for the decoder: threads share
    // the lock on the address space, and one at idle priority may hold it for long.
    for ring in session.rings.iter().chain(&session.rings) {
        shared.give_back(ring.buffer(), &to_drain);
    }
    let spare = 2 * session.rings.len();
    let wake = Wake::new()?;
    shared.this_thread_records();
    let priority = &Lowered::new();
    thread::scope(|scope| {
        let wake = &wake;
        let (to_retire, retired) = mpsc::channel();
        if session.user_access.is_some() {
            scope.spawn(move || {
                fork_burst::retire(&retired, &shared.fork_burst, &shared.ended, deferred_close)
            });
        }
        let to = DrainOutput { decoder: to_decoder, retired: to_retire };
        scope.spawn(move || drain(session, shared, wake, priority, &to, &spent));
        let looker = scope.spawn(move || sample_proc(root, shared, priority));
        // The thread that waits for the program also releases it, as in a clean run.
        let waiter = scope.spawn(move || {
            shared.this_thread_records();
            let ended = until();
            shared.end.store(ended.as_ref().map_or(1, |e| e.end), Ordering::SeqCst);
            shared.ended.store(true, Ordering::SeqCst);
            looker.thread().unpark();
            wake.ring();
            ended
        });
        // All other threads run.
        priority.lower();
        begin(follow);
        let spent = |bytes: Vec<u8>| {
            shared.decoded(bytes.len());
            if shared.spare.load(Ordering::Relaxed) < spare {
                shared.give_back(bytes, &to_drain);
            } else {
                // The drain must not wait for the lock on the address space, see above.
                priority.lift();
                drop(bytes);
            }
        };
        decode(&from_drain, &spent, shared, priority, merge, follow);
        priority.lift();
        waiter.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Copies the rings and does nothing else. Ends after the program, and disables the events.
fn drain(
    mut session: Session,
    shared: &Shared,
    wake: &Wake,
    decoder: &Lowered,
    to: &DrainOutput,
    spent: &Receiver<Vec<u8>>,
) {
    shared.this_thread_records();
    priority::raise();
    let mut high_rate = session.high_rate();
    let mut rings = std::mem::take(&mut session.rings);
    let mut decimation = Decimation::new(&session);
    let mut breakpoints = Breakpoints::of(&session, &rings);
    let mut polled = libc::pollfd { fd: wake.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // A record may have its time but no place in the ring yet when a round starts; one round later it is there. So
    // everything older than the previous round can be passed on.
    let mut before = 0;
    let mut known = session.schema.events();
    loop {
        // SAFETY: one open descriptor.
        unsafe { libc::poll(&mut polled, 1, POLL_MS) };
        let ended = shared.ended.load(Ordering::SeqCst);
        if ended {
            // If that fails, events run until they are closed just below.
            _ = session.disable();
        }
        let start = now();
        if session.counting.stop_if_enough() {
            shared.add_proc_samples([ProcSample::CountingStopped(start)]);
        }
        if start.saturating_sub(shared.decoded_until.load(Ordering::Relaxed)) > LAG {
            decoder.lift();
        }
        if !ended && let Some(cost) = high_rate.scan(&rings, &session.schema) {
            *lock(&shared.call_cost) = cost;
        }
        for begun in if ended { Vec::new() } else { decimation.scan(&rings, &mut session) } {
            *lock(&shared.call_cost) = begun.cost;
            _ = to.decoder.send(Drained::DecimationStart(begun));
        }
        if session.schema.events() != known {
            // Send the schema before the records. A decoder that is gone panicked; the caller will see that.
            known = session.schema.events();
            _ = to.decoder.send(Drained::Schema(Box::new(session.schema.clone())));
        }
        if let Some(calls) = shared.fork_burst.take() {
            // The receiver ends after this thread.
            _ = to.retired.send(session.retire(&calls));
        }
        if let Some(breakpoints) = breakpoints.as_mut().filter(|_| !ended) {
            breakpoints.update(&rings, &session);
        }
        let due = start - before > COPY_NS || rings.iter().any(Ring::is_filling);
        if !(ended || due && shared.may_copy()) {
            continue;
        }
        copy_rings(&mut rings, shared, decoder, &to.decoder, spent);
        let full =
            rings.iter().zip(&session.cpus).filter(|(ring, _)| ended && ring.may_have_lost());
        full.for_each(|(_, cpu)| _ = to.decoder.send(Drained::Full(cpu.cast_unsigned())));
        let horizon = if ended { u64::MAX } else { before };
        shared.begin_round();
        if to.decoder.send(Drained::Horizon(horizon)).is_err() || ended {
            break;
        }
        before = start;
    }
    if let Some(warning) = breakpoints.and_then(|breakpoints| breakpoints.warning(&session)) {
        lock(&shared.warnings).push(warning);
    }
}

fn copy_rings(
    rings: &mut [Ring],
    shared: &Shared,
    decoder: &Lowered,
    to_decoder: &Sender<Drained>,
    spent: &Receiver<Vec<u8>>,
) {
    for ring in rings {
        let mut bytes = shared.take_spare(spent);
        bytes.clear();
        if bytes.capacity() < ring.filled() {
            decoder.lift();
        }
        ring.copy_to(&mut bytes);
        shared.copied(bytes.len());
        // A decoder that is gone panicked; the caller will see that.
        _ = to_decoder.send(Drained::Chunk(bytes));
    }
}

fn decode(
    from_drain: &Receiver<Drained>,
    spent: &dyn Fn(Vec<u8>),
    shared: &Shared,
    priority: &Lowered,
    merge: &mut Merge,
    follow: &mut Follow<'_>,
) {
    let mut passed_on = false;
    let mut full = Vec::new();
    while let Ok(drained) = from_drain.recv() {
        if shared.is_far_behind() || shared.ended.load(Ordering::Relaxed) {
            priority.lift();
        } else if shared.has_caught_up() {
            priority.lower();
        }
        match drained {
            Drained::Chunk(bytes) => merge.add(bytes),
            Drained::Schema(schema) => merge.learn(*schema),
            Drained::DecimationStart(begun) => {
                follow.excludes(begun.task, begun.at);
                merge.begin(&begun);
            }
            Drained::Full(cpu) => full.push(cpu),
            Drained::Horizon(horizon) => {
                for (path, file) in shared.take_executables() {
                    follow.sink.executable(path, file);
                }
                shared
                    .take_proc_samples()
                    .into_iter()
                    .for_each(|found| follow.add_proc_sample(found));
                follow.end = match shared.end.load(Ordering::SeqCst) {
                    0 => u64::MAX,
                    end => end,
                };
                merge.hand_on(horizon, follow, spent);
                full.drain(..).for_each(|cpu| follow.lost_to_the_end(cpu));
                follow.flush();
                shared.fork_burst.update(follow, horizon, &mut passed_on);
                shared.end_round();
                shared.decoded_until.store(now(), Ordering::Relaxed);
                if horizon == u64::MAX {
                    break;
                }
            }
        }
    }
}

/// Locks, even if another thread panicked: that panic reaches the caller anyway.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
