//! Attaching to running tasks, and detaching without a trace.
//!
//! A seized task stops at its calls only after a first stop. Interrupting a blocked task is
//! harmless if the kernel restarts its call. Calls that would fail with `EINTR` or return less are
//! not interrupted: if the recorder were killed just then, nothing could restart them. Until such a
//! task runs for some time, its events come from the scheduler's counts.

use super::Tracer;
use crate::clock::now;
use crate::error::Error;
use crate::permissions::yama::cannot_trace;
use crate::procfs::own_tid;
use crate::procfs::snapshot::{self, Process, Snapshot, Target, Thread};
use crate::procfs::status::Status;
use crate::ptrace::event::{EventKind, Mapping};
use crate::ptrace::requests::{self, StopKind, WaitResult};
use crate::ptrace::tracee::{Activity, Tracee};
use deadweight_trace::syscall::{self, Arch};
use std::collections::HashSet;

/// How often tasks are listed again, to find those born meanwhile.
const LIST_ROUNDS: usize = 64;
/// A task that ran for this long (in ns) without blocking has left the call that it was blocked in:
/// it may be interrupted.
const MIN_RUN: u64 = 300_000;
/// How long to wait at the end for tasks with a sent interrupt, in ns. They stop at once.
const STOP_TIMEOUT: u64 = 200_000_000;
/// Internal results of calls that the kernel restarts: `ERESTARTSYS` and the like.
const RESTART_CODES: [i64; 4] = [-512, -513, -514, -516];

/// Calls that the kernel restarts after an interruption, with the rest of their time. Not those
/// that may wait at a socket: with a time-out (`SO_RCVTIMEO`) they fail with `EINTR`.
const RESTARTABLE_WAITS: [&str; 10] = [
    "clock_nanosleep",
    "futex",
    "nanosleep",
    "pause",
    "poll",
    "ppoll",
    "pselect6",
    "select",
    "wait4",
    "waitid",
];

/// A task that is attached to, but does not stop at its calls yet.
#[derive(Debug, Default)]
pub(super) struct PendingAttach {
    /// Time slices at the latest check.
    timeslices: u64,
    /// If it was running then: its CPU time when it was first seen so, and how often it had
    /// blocked.
    running_since: Option<(u64, Option<u64>)>,
}

/// Whether a task that is blocked in this call can be interrupted without an effect on the program.
fn is_restartable(nr: u16, args: &[u64; 6]) -> bool {
    let name = syscall::name(Arch::HOST, nr).unwrap_or("");
    let plain_wait =
        [libc::FUTEX_WAIT, libc::FUTEX_WAIT_BITSET].map(|op| u64::from(op.cast_unsigned()));
    let partly = name == "futex" && !plain_wait.contains(&(args[1] & 0x7f));
    RESTARTABLE_WAITS.contains(&name) && !partly
}

impl Tracer {
    /// Seizes all tasks of the process and its descendants, and reports their state. Nothing before
    /// that is reported, and nothing after `limit` ns from then. Returns when the recording began.
    pub(in crate::ptrace) fn attach(
        &mut self,
        target: &Target,
        limit: Option<u64>,
    ) -> Result<u64, Error> {
        let mut seized = HashSet::new();
        for _ in 0..LIST_ROUNDS {
            let new: Vec<u32> =
                target.tasks().into_iter().filter(|task| !seized.contains(task)).collect();
            if new.is_empty() {
                break;
            }
            for task in new {
                match requests::seize(task) {
                    // Its parent was traced when it was born, so it is, too.
                    Ok(()) => _ = seized.insert(task),
                    Err(_) if is_traced_by_us(task) => _ = seized.insert(task),
                    Err(error) if task == target.pid => return Err(cannot_trace(target, &error)),
                    Err(_) => _ = seized.insert(task),
                }
            }
        }
        let snapshot = Snapshot::take(target)?;
        self.record_until = limit.map_or(u64::MAX, |limit| snapshot.at.saturating_add(limit));
        for process in &snapshot.processes {
            self.attach_process(snapshot.at, process);
        }
        let threads =
            || snapshot.processes.iter().flat_map(|p| p.threads.iter().map(move |t| (p, t)));
        for waiting in [true, false] {
            for (process, thread) in
                threads().filter(|(_, t)| blocking_call(t).is_some() == waiting)
            {
                self.attach_thread(snapshot.at, process, thread);
            }
        }
        self.interrupt_pending();
        Ok(snapshot.at)
    }

    fn attach_process(&mut self, at: u64, process: &Process) {
        let Some(first) = process.threads.first() else { return };
        let pid = process.pid;
        if pid != self.root {
            let fork = EventKind::Fork { child: pid, process: pid };
            let mut parent = Tracee::new(process.parent, process.parent, at);
            parent.emit(at, fork, &mut self.events);
        }
        let mut tracee = Tracee::new(pid, pid, at);
        tracee.attach(None, &mut self.events);
        let mut emit = |kind| tracee.emit(at, kind, &mut self.events);
        emit(EventKind::Exec { former: pid, path: process.path.clone() });
        emit(EventKind::Comm(first.name.clone()));
        emit(EventKind::Main);
        for map in &process.mappings {
            let snapshot::Mapping { start, len, offset, inode, ref path } = *map;
            let path = path.clone();
            emit(EventKind::Map(Mapping { start, len, offset, inode, path, executable: true }));
        }
        for (fd, target) in &process.descriptors {
            emit(EventKind::Fd { fd: *fd, target: target.clone() });
        }
        for thread in &process.threads[1..] {
            emit(EventKind::Fork { child: thread.tid, process: pid });
        }
        tracee.preempt_at_attach(&mut self.events);
        for thread in &process.threads[1..] {
            let mut tracee = Tracee::new(pid, thread.tid, at);
            tracee.emit(at, EventKind::Comm(thread.name.clone()), &mut self.events);
        }
    }

    fn attach_thread(&mut self, at: u64, process: &Process, thread: &Thread) {
        let mut tracee = Tracee::new(process.pid, thread.tid, at);
        tracee.reset_counters(at);
        tracee.attach(blocking_call(thread), &mut self.events);
        self.tasks.insert(thread.tid, tracee);
        if is_traced_by_us(thread.tid) {
            self.pending_attach.insert(thread.tid, PendingAttach::default());
        }
    }

    /// Interrupts those pending tasks that can be interrupted.
    pub(super) fn interrupt_pending(&mut self) {
        let at = now();
        for (task, pending) in &mut self.pending_attach {
            let Some(tracee) = self.tasks.get_mut(task).filter(|t| !t.interrupt_sent && !t.stopped)
            else {
                continue;
            };
            let counts = tracee.sched_counts();
            let has_run =
                std::mem::replace(&mut pending.timeslices, counts.timeslices) != counts.timeslices;
            let running_since = pending.running_since.take();
            let may_interrupt = match snapshot::doing_of(tracee.process, *task) {
                Some(snapshot::Doing::Running) => {
                    let switches = tracee.voluntary_switches();
                    let since = running_since
                        .filter(|(_, before)| *before == switches)
                        .map(|(cpu_time, _)| cpu_time);
                    pending.running_since = Some((since.unwrap_or(counts.cpu_time), switches));
                    since.is_some_and(|since| counts.cpu_time.saturating_sub(since) > MIN_RUN)
                }
                Some(snapshot::Doing::Waiting(Some((nr, args)))) if is_restartable(nr, &args) => {
                    true
                }
                Some(snapshot::Doing::Waiting(Some((nr, args)))) if has_run => {
                    let call = Activity::Call { nr, args };
                    self.untraced.unseen += tracee.blocks_again(call, at, &mut self.events);
                    false
                }
                _ => false,
            };
            tracee.interrupt_sent = may_interrupt && requests::interrupt(*task).is_ok();
        }
    }

    /// The first stop of an attached task. From now on it stops at its calls.
    pub(super) fn first_stop(&mut self, task: u32, kind: StopKind) {
        let Some(tracee) = self.tasks.get_mut(&task) else { return };
        if let Activity::Call { .. } = tracee.activity {
            let ret = if kind == StopKind::Interrupted { restart_result(task) } else { Ok(-4) };
            match ret {
                Err(Restarts) => tracee.resumed_call = Some(tracee.activity),
                Ok(ret) => {
                    tracee.activity = Activity::UserCode;
                    tracee.pending.push(EventKind::CallReturn(ret));
                }
            }
        } else if kind == StopKind::Interrupted {
            // It may have blocked between the check and its stop.
            _ = restart_result(task);
        }
        self.syscall_traced_stop(task, kind, None);
    }

    /// Detaches from all tasks. The kernel itself detaches running and blocked tasks when this
    /// thread ends, without interrupting them. A task with a sent interrupt may need its call
    /// restarted.
    pub(in crate::ptrace) fn detach_all(&mut self) {
        let deadline = now() + STOP_TIMEOUT;
        while self.tasks.values().any(|tracee| tracee.interrupt_sent && !tracee.stopped)
            && now() < deadline
        {
            match requests::wait() {
                WaitResult::Stopped(task, kind) => {
                    if let Some(tracee) = self.tasks.get_mut(&task) {
                        (tracee.interrupt_sent, tracee.stopped) = (false, true);
                    }
                    if self.pending_attach.contains_key(&task) && kind == StopKind::Interrupted {
                        _ = restart_result(task);
                    }
                    let signal = if let StopKind::Signal(signal) = kind { signal } else { 0 };
                    _ = requests::detach(task, signal);
                }
                WaitResult::Ended { task, .. } => _ = self.tasks.remove(&task),
                WaitResult::Tick => {}
                WaitResult::NoTracees => break,
            }
        }
    }
}

/// The call restarts when its task is resumed.
struct Restarts;

/// The result of the call that a task was interrupted in, unless it restarts; 0 if it was in none.
/// A call that failed because of the tracer is restarted.
fn restart_result(task: u32) -> Result<i64, Restarts> {
    const INTERRUPTED: i64 = -(libc::EINTR as i64);
    let Some(registers) = requests::registers(task) else { return Ok(0) };
    if requests::interrupted_call(task, &registers).is_none() {
        return Ok(0);
    }
    if RESTART_CODES.contains(&registers.ret) {
        return Err(Restarts);
    }
    if registers.ret == INTERRUPTED
        && !has_pending_signal(task)
        && requests::restart_call(task).is_ok()
    {
        return Err(Restarts);
    }
    Ok(registers.ret)
}

/// Whether a signal is pending for it.
fn has_pending_signal(task: u32) -> bool {
    Status::of(&format!("/proc/{task}")).is_some_and(|status| {
        (status.bits("SigPnd:") | status.bits("ShdPnd:")) & !status.bits("SigBlk:") != 0
    })
}

/// Whether this thread traces it.
fn is_traced_by_us(task: u32) -> bool {
    // Depending on its version, the kernel names the tracer's process or thread.
    Status::of(&format!("/proc/{task}")).is_some_and(|status| {
        [own_tid(), std::process::id()].iter().any(|n| status.field("TracerPid:") == n.to_string())
    })
}

/// The call that a thread is blocked in.
fn blocking_call(thread: &Thread) -> Option<Activity> {
    match thread.doing {
        snapshot::Doing::Waiting(Some((nr, args))) => Some(Activity::Call { nr, args }),
        _ => None,
    }
}

#[cfg(test)]
#[cfg(target_arch = "x86_64")]
mod tests {
    use super::*;

    fn restartable(name: &str, args: [u64; 6]) -> bool {
        is_restartable(syscall::number(Arch::X86_64, name).unwrap(), &args)
    }

    #[test]
    fn only_waits_that_the_kernel_restarts_are_interrupted() {
        assert!(restartable("poll", [0; 6]));
        assert!(restartable("futex", [0, 128, 0, 0, 0, 0]));
        assert!(!restartable("futex", [0, 128 | 11, 0, 0, 0, 0]));
        assert!(!restartable("recvfrom", [3, 0, 9, 0, 0, 0]) && !restartable("read", [0; 6]));
        assert!(!restartable("write", [1; 6]) && !restartable("epoll_wait", [3; 6]));
    }
}
