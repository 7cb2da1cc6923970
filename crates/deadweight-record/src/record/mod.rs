//! One recorded run, from start to the last record.
//!
//! - In: a request or a process, and a plan.
//! - Out: raw events to a [`Sink`], and an outcome.
//! - Must not know: symbols, causes or costs.
//!
//! Four threads: one starts the program and waits for it, as in a clean run. One, at high priority,
//! only copies the ring buffers. One samples descriptors and long waits from `/proc`. The caller's
//! thread decodes, at the lowest priority while the program runs, so that it takes no CPU from the
//! program.

mod attached;
mod decoder;
mod drain;
mod fork_burst;
mod priority;
mod proc_sampler;
mod series;
mod shared;
mod wake;

use crate::bpf::{RecordRing, in_initial_pid_namespace};
use crate::clock::now;
use crate::error::Error;
use crate::follow::merge::Merge;
use crate::follow::{Follow, RecordingStats, Start};
use crate::launch::descriptor_limit;
use crate::launch::signals::Guard;
use crate::launch::{Ended, LostCpuTime, Outcome, Request, Waiting, vfork};
use crate::perf::deferred_close::{self, DeferredClose};
use crate::perf::ring::Ring;
use crate::plan::Plan;
use crate::plan::rung::Level;
use crate::procfs;
use crate::procfs::memory_budget::{oom_score, save_addresses};
use crate::ptrace;
use crate::session::calibrate::Cold;
use crate::session::counting::Reading;
use crate::session::known_overhead::Costs;
use crate::session::probes;
use crate::session::self_test;
use crate::session::{Session, UserAccess};
use deadweight_trace::Meta;
use deadweight_trace::ids::Tid;
use deadweight_trace::raw::Sink;
use deadweight_trace::units::Ns;
use priority::Lowered;
use std::fs::File;
use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, Scope, ScopedJoinHandle};

pub use attached::{AttachRequest, attach};
use decoder::decode;
use drain::{DrainOutput, drain};
use proc_sampler::sample_proc;
pub use series::{RecordingSeries, record};
use shared::Shared;
use wake::Wake;

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
    save_addresses();
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
    cold: Cold,
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
        let (entries, of_language) = probes::of(request);
        let probes = [request.probes.clone(), of_language].concat();
        let level = plan.rung.level;
        let before_events = series.before_events()?;
        let closing_lock = (level < Level::Root).then(deferred_close::hold_off_closing).flatten();
        let cpus = procfs::online_cpus();
        let programs = (level == Level::Root).then(|| series.programs(&cpus, &entries)).flatten();
        let user_access =
            (level == Level::User).then(|| UserAccess::find(cpus.len())).transpose()?;
        let mut session = Session::open(pid, &cpus, &entries, &probes, programs, user_access)?;
        if level == Level::Root {
            let blind_cpus = self_test::blind_cpus(&mut session)?;
            session.open_switches(&blind_cpus)?;
        }
        let Costs { mut overhead, cold } = series.costs(&mut session, before_events)?;
        if level == Level::Root {
            // There samples show what the kernel did for recording.
            (overhead.birth, overhead.death) = (0, 0);
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
            cold,
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
            cold,
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
            by_programs: session.has_programs(),
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
        shared.records(program.vfork_tid);
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
        Ok(conclude(sink, (meta, cold), &ended, shared, stats, &before))
    }
}

/// Passes the final facts to the sink, and sums up the recording.
fn conclude(
    sink: &mut dyn Sink,
    (mut meta, cold): (Meta, Cold),
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
    stats.scale_overhead(&mut meta.overhead, cold);
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
    for _ in 0..2 {
        let rings = session.rings.iter().map(Ring::buffer);
        let buffers = rings.chain(session.record_rings.iter().map(RecordRing::buffer));
        buffers.for_each(|buffer| shared.give_back(buffer, &to_drain));
    }
    let spare = 2 * (session.rings.len() + session.record_rings.len());
    let wake = Wake::new()?;
    shared.this_thread_records();
    let priority = &Lowered::new();
    thread::scope(|scope| {
        let wake = &wake;
        let (to_retire, retired) = mpsc::channel();
        if session.user_access.is_some() {
            spawned(scope, move || {
                fork_burst::retire(&retired, &shared.fork_burst, &shared.ended, deferred_close)
            })?;
        }
        let to = DrainOutput { decoder: to_decoder, retired: to_retire };
        spawned(scope, move || drain(session, shared, wake, priority, &to, &spent))?;
        // A thread that cannot be started ends the others, which would wait for the program forever.
        let over = |failed| {
            shared.ended.store(true, Ordering::SeqCst);
            wake.ring();
            failed
        };
        let sampler = spawned(scope, move || sample_proc(root, shared, priority)).map_err(over)?;
        let sampler = sampler.thread().clone();
        let unpark = sampler.clone();
        // The thread that waits for the program also releases it, as in a clean run.
        let waiter = spawned(scope, move || {
            shared.this_thread_records();
            let ended = until();
            shared.end.store(ended.as_ref().map_or(1, |e| e.end), Ordering::SeqCst);
            shared.ended.store(true, Ordering::SeqCst);
            unpark.unpark();
            wake.ring();
            ended
        });
        let waiter = waiter.map_err(over).inspect_err(|_| sampler.unpark())?;
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

/// Starts a thread of the recorder.
fn spawned<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    thread: impl FnOnce() -> T + Send + 'scope,
) -> Result<ScopedJoinHandle<'scope, T>, Error> {
    let cannot =
        |source| Error::System { what: "cannot start a thread of the recorder".into(), source };
    thread::Builder::new().spawn_scoped(scope, thread).map_err(cannot)
}

/// Locks, even if another thread panicked: that panic reaches the caller anyway.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
