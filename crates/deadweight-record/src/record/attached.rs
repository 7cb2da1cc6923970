//! Recording a running process: from attaching to it to detaching.
//!
//! Root needs nothing of the process: it is not stopped, nothing is injected, and everything in the kernel vanishes
//! with the recorder. Other users attach with ptrace. For the state of the process at that instant see `snapshot`.

use super::{Shared, conclude, run_threads};
use crate::bpf::{Programs, in_initial_pid_namespace};
use crate::clock::now;
use crate::error::Error;
use crate::follow::merge::Merge;
use crate::follow::{Follow, Start};
use crate::launch::descriptor_limit;
use crate::launch::signals::Interrupts;
use crate::launch::{Ended, LostCpuTime, Outcome, Request};
use crate::perf::deferred_close::DeferredClose;
use crate::plan::Plan;
use crate::plan::rung::Level;
use crate::procfs;
use crate::procfs::memory_budget::oom_score;
use crate::procfs::snapshot::{Snapshot, Target};
use crate::ptrace;
use crate::session::known_overhead::{Before, Costs};
use crate::session::probes;
use crate::session::self_test;
use crate::session::{NO_PROGRAM, Session};
use deadweight_trace::ids::Tid;
use deadweight_trace::raw::Sink;
use deadweight_trace::{Exit, Meta, Usage};
use std::collections::HashSet;
use std::time::Duration;

/// How often to check whether a signal or the time limit ends the recording.
const CHECK_INTERVAL: Duration = Duration::from_millis(20);
/// Shorter waits would only keep a CPU busy.
const SHORTEST: Duration = Duration::from_millis(1);
/// How often the threads are listed again to find new ones.
const ROUNDS: usize = 4;

/// A process to attach to.
#[derive(Clone, Debug)]
pub struct AttachRequest {
    /// Its process id.
    pub pid: u32,
    /// How long to record; none: until the process ends or the recorder is interrupted.
    pub limit: Option<Duration>,
}

/// Attaches to the process, passes events to `sink`, and detaches after the requested time, at the process's end, or
/// when the recorder gets a signal to end (Ctrl-C), whichever comes first.
///
/// # Errors
/// If there is no such process, if recording it is not permitted, or if the kernel refuses an event.
pub fn attach(join: &AttachRequest, plan: &Plan, sink: &mut dyn Sink) -> Result<Outcome, Error> {
    let plan = &plan.for_attaching();
    plan.allows_recording()?;
    let target = Target::find(join.pid)?;
    if plan.rung.level == Level::Stops {
        return ptrace::attach(&target, join.limit, plan.facts(), sink);
    }
    let interrupts = Interrupts::note();
    descriptor_limit::raise();
    oom_score::raise();
    let request = Request { argv: vec![target.program().into()], ..Request::default() };
    let (_, probes) = probes::of(&request);
    let cpus = procfs::online_cpus();
    let before_events = Before::events()?;
    let programs = Programs::start(&cpus, |_| ()).ok();
    let programs = programs.map(|(programs, _)| (programs, Vec::new()));
    let mut session = Session::open(NO_PROGRAM, &cpus, &[], &probes, programs, None)?;
    let blind_cpus = self_test::blind_cpus(&mut session)?;
    session.open_switches(&blind_cpus)?;
    let (unrecorded, Costs { overhead, cold }) = before_events.with_events(&mut session)?;
    session.calibrated(unrecorded, &overhead);
    let tasks = open_all(&mut session, &target)?;
    let sample_period = session.open_clock_of(&tasks, overhead.sample)?;
    let deferred_close = DeferredClose::start(&session.event_files())?;
    let mut meta = Meta { sample_period, overhead, ..facts(&target, plan, &mut session) };
    session.enable()?;
    session.enable_tasks();
    let snapshot = Snapshot::take(&target)?;
    let before = LostCpuTime::so_far();
    let mut merge = Merge::new(session.schema.clone());
    (meta.zero, merge.zero) = (snapshot.at, snapshot.at);
    sink.begin(&meta);
    let shared = Shared::new();
    let in_pid_namespace = !in_initial_pid_namespace();
    let by_programs = session.has_programs();
    let start = Start { root: join.pid, in_pid_namespace, by_programs, ..Start::default() };
    let cpus = 1 + cpus.into_iter().max().unwrap_or(0).cast_unsigned() as usize;
    let mut follow = Follow::new(sink, session.schema.offsets, &probes, start, cpus);
    let until = || Ok(wait(&target, join.limit, &interrupts, snapshot.at));
    let ended = {
        // The rings are already being copied: finding names of mappings takes a while.
        let begin = |follow: &mut Follow<'_>| follow.attach(&snapshot);
        run_threads(
            (session, &deferred_close),
            until,
            join.pid,
            &shared,
            &mut merge,
            &mut follow,
            begin,
        )?
    };
    drop(deferred_close);
    meta.blind_cpus = follow.blind_cpus();
    let stats = std::mem::take(&mut follow.stats);
    Ok(conclude(sink, (meta, cold), &ended, shared, stats, &before))
}

/// The facts about the recording that are known before it begins.
fn facts(target: &Target, plan: &Plan, session: &mut Session) -> Meta {
    let mut facts = plan.facts();
    facts.warnings.append(&mut session.warnings);
    Meta { command: target.command(), root: Tid(target.pid), attached: true, ..facts }
}

/// Opens the task events of each thread of the process and its descendants. Later threads inherit them; threads that
/// start meanwhile are found by listing again.
fn open_all(session: &mut Session, target: &Target) -> Result<Vec<i32>, Error> {
    let mut known = HashSet::new();
    let mut tasks = Vec::new();
    for round in 0..ROUNDS {
        let new: Vec<u32> = target.tasks().into_iter().filter(|t| known.insert(*t)).collect();
        // A thread that started after the first round has inherited the events, unless its parent's were not open
        // yet: only threads that existed before are certain to have none. To follow a task twice by programs does no
        // harm.
        if new.is_empty() || round > 0 && !session.has_programs() {
            break;
        }
        if !session.has_descriptors_for(new.len()) {
            session.open_task_events_for_all()?;
            return Ok(new.into_iter().map(u32::cast_signed).collect());
        }
        for task in new.into_iter().map(u32::cast_signed) {
            if session.follow_task(task)? {
                tasks.push(task);
            }
        }
    }
    if tasks.is_empty() { Err(target.gone()) } else { Ok(tasks) }
}

/// Waits for the end of the recording. Only the parent gets the process's exit status.
fn wait(target: &Target, limit: Option<Duration>, interrupts: &Interrupts, start: u64) -> Ended {
    let limit = limit.map_or(u64::MAX, |l| u64::try_from(l.as_nanos()).unwrap_or(u64::MAX));
    let until = start.saturating_add(limit);
    while interrupts.seen().is_none() {
        let left = Duration::from_nanos(until.saturating_sub(now()));
        if left.is_zero() || target.ends_within(left.min(CHECK_INTERVAL).max(SHORTEST)) {
            break;
        }
    }
    // On a busy machine this may be late; later events were not requested.
    let (exit, usage) = (Exit::default(), Usage::default());
    Ended { start, end: now().min(until), exit, usage, blocks_read: 0, involuntary_switches: 0 }
}
