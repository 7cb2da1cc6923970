//! Taking hold of tasks that run already, and leaving them as if nobody had been there.
//!
//! A task that is seized stops at its calls only after it has stopped once. Interrupting one that waits
//! in a call is harmless where the kernel goes on with the call by itself. Calls that would fail with EINTR or
//! come back with less than they would are not interrupted, for if we were killed just then, nobody could
//! mend it: until such a task runs for some time, it is told by the scheduler's counts.

use super::Tracer;
use crate::clock::now;
use crate::error::Error;
use crate::permissions::yama::cannot_trace;
use crate::procfs::snapshot::{self, Present, Process, Target, Thread};
use crate::ptrace::note::{Mapping, What};
use crate::ptrace::requests::{self, Told, Waited};
use crate::ptrace::tracee::{Doing, Tracee};
use deadweight_trace::syscall::{self, Arch};
use std::collections::HashSet;
use std::fs;

/// How often tasks are listed again to find those that were born meanwhile.
const ROUNDS: usize = 64;
/// Who has run for so many ns without waiting is out of a call that it waited in: it may be interrupted.
const AT_LEAST: u64 = 300_000;
/// So long we wait in the end for whom we have asked to stop, in ns: they do so at once.
const LAST_STOPS: u64 = 200_000_000;
/// What a call returns that the kernel goes on with by itself, as it says among its own.
const GOES_ON: [i64; 4] = [-512, -513, -514, -516];

/// Calls that the kernel goes on with after an interruption, with what is left of their time. Not those that
/// may wait at a socket: one with a time-out of its own (`SO_RCVTIMEO`) fails with `EINTR`.
const PATIENT: [&str; 10] = [
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

/// What is known of a joined task that does not stop at its calls yet.
#[derive(Debug, Default)]
pub(super) struct Unheld {
    /// Turns on a CPU until the latest look.
    turns: u64,
    /// If it ran then: for how long in all when it was first seen so, and how often it had waited.
    runs: Option<(u64, Option<u64>)>,
}

/// Whether a task that waits in this call can be interrupted without the program's noticing.
fn is_patient(nr: u16, args: &[u64; 6]) -> bool {
    let name = syscall::name(Arch::HOST, nr).unwrap_or("");
    let plain_wait =
        [libc::FUTEX_WAIT, libc::FUTEX_WAIT_BITSET].map(|op| u64::from(op.cast_unsigned()));
    let partly = name == "futex" && !plain_wait.contains(&(args[1] & 0x7f));
    PATIENT.contains(&name) && !partly
}

impl Tracer {
    /// Seizes all tasks of the process and its descendants, and tells how they stand. Told until then
    /// is nothing; after `limit` ns from now, none without an end, nothing is.
    pub(in crate::ptrace) fn join(
        &mut self,
        target: &Target,
        limit: Option<u64>,
    ) -> Result<u64, Error> {
        let mut seized = HashSet::new();
        for _ in 0..ROUNDS {
            let new: Vec<u32> =
                target.tasks().into_iter().filter(|task| !seized.contains(task)).collect();
            if new.is_empty() {
                break;
            }
            for task in new {
                match requests::seize(task) {
                    // It is ours already if its parent was when it was born.
                    Ok(()) => _ = seized.insert(task),
                    Err(_) if is_ours(task) => _ = seized.insert(task),
                    Err(error) if task == target.pid => return Err(cannot_trace(target, &error)),
                    Err(_) => _ = seized.insert(task),
                }
            }
        }
        let present = Present::look(target)?;
        self.until = limit.map_or(u64::MAX, |limit| present.at.saturating_add(limit));
        for process in &present.processes {
            self.join_process(present.at, process);
        }
        let threads =
            || present.processes.iter().flat_map(|p| p.threads.iter().map(move |t| (p, t)));
        for waits in [true, false] {
            for (process, thread) in threads().filter(|(_, t)| call_of(t).is_some() == waits) {
                self.join_thread(present.at, process, thread);
            }
        }
        self.take_hold();
        Ok(present.at)
    }

    fn join_process(&mut self, at: u64, process: &Process) {
        let Some(first) = process.threads.first() else { return };
        let pid = process.pid;
        if pid != self.root {
            let birth = What::Fork { child: pid, process: pid };
            let mut parent = Tracee::new(process.parent, process.parent, at);
            parent.note(at, birth, &mut self.notes);
        }
        let mut tracee = Tracee::new(pid, pid, at);
        tracee.join(None, &mut self.notes);
        let mut note = |what| tracee.note(at, what, &mut self.notes);
        note(What::Exec { former: pid, path: process.path.clone() });
        note(What::Comm(first.name.clone()));
        note(What::Main);
        for map in &process.mappings {
            let snapshot::Mapping { start, len, offset, inode, ref path } = *map;
            let path = path.clone();
            note(What::Map(Mapping { start, len, offset, inode, path, executable: true }));
        }
        for (fd, what) in &process.descriptors {
            note(What::Fd { fd: *fd, what: what.clone() });
        }
        for thread in &process.threads[1..] {
            note(What::Fork { child: thread.tid, process: pid });
        }
        tracee.put_off(&mut self.notes);
        for thread in &process.threads[1..] {
            let mut tracee = Tracee::new(pid, thread.tid, at);
            tracee.note(at, What::Comm(thread.name.clone()), &mut self.notes);
        }
    }

    fn join_thread(&mut self, at: u64, process: &Process, thread: &Thread) {
        let mut tracee = Tracee::new(process.pid, thread.tid, at);
        tracee.forget_the_past(at);
        tracee.join(call_of(thread), &mut self.notes);
        self.tasks.insert(thread.tid, tracee);
        if is_ours(thread.tid) {
            self.unheld.insert(thread.tid, Unheld::default());
        }
    }

    /// Asks those to stop for the first time that can be.
    pub(super) fn take_hold(&mut self) {
        let at = now();
        for (task, unheld) in &mut self.unheld {
            let Some(tracee) = self.tasks.get_mut(task).filter(|t| !t.asked && !t.stopped) else {
                continue;
            };
            let counts = tracee.counts();
            let moved = std::mem::replace(&mut unheld.turns, counts.turns) != counts.turns;
            let runs = unheld.runs.take();
            let ready = match snapshot::doing_of(tracee.process, *task) {
                Some(snapshot::Doing::Running) => {
                    let waits = tracee.waits();
                    let since = runs.filter(|(_, before)| *before == waits).map(|(ran, _)| ran);
                    unheld.runs = Some((since.unwrap_or(counts.ran), waits));
                    since.is_some_and(|since| counts.ran.saturating_sub(since) > AT_LEAST)
                }
                Some(snapshot::Doing::Waiting(Some((nr, args)))) if is_patient(nr, &args) => true,
                Some(snapshot::Doing::Waiting(Some((nr, args)))) if moved => {
                    tracee.waits_again(Doing::Call { nr, args }, at, &mut self.notes);
                    false
                }
                _ => false,
            };
            tracee.asked = ready && requests::interrupt(*task).is_ok();
        }
    }

    /// A joined task stands stopped for the first time; from now on it stops at its calls.
    pub(super) fn first_stop(&mut self, task: u32, told: Told) {
        let Some(tracee) = self.tasks.get_mut(&task) else { return };
        if let Doing::Call { .. } = tracee.doing {
            let ret = if told == Told::Interrupted { goes_on(task) } else { Ok(-4) };
            match ret {
                Err(GoesOn) => tracee.resumes = Some(tracee.doing),
                Ok(ret) => {
                    tracee.doing = Doing::User;
                    tracee.pending.push(What::Back(ret));
                }
            }
        } else if told == Told::Interrupted {
            // Between our look and its stop it may have begun to wait.
            _ = goes_on(task);
        }
        self.strict(task, told, None);
    }

    /// Leaves everybody. Who runs or waits is left by the kernel itself when this thread ends, and is not
    /// even interrupted for that; whom we have asked to stop may need help to go on.
    pub(in crate::ptrace) fn leave_all(&mut self) {
        let deadline = now() + LAST_STOPS;
        while self.tasks.values().any(|tracee| tracee.asked && !tracee.stopped) && now() < deadline
        {
            match requests::wait() {
                Waited::Task(task, told) => {
                    if let Some(tracee) = self.tasks.get_mut(&task) {
                        (tracee.asked, tracee.stopped) = (false, true);
                    }
                    if self.unheld.contains_key(&task) && told == Told::Interrupted {
                        _ = goes_on(task);
                    }
                    let signal = if let Told::Signal(signal) = told { signal } else { 0 };
                    _ = requests::detach(task, signal);
                }
                Waited::Gone { task, .. } => _ = self.tasks.remove(&task),
                Waited::Tick => {}
                Waited::Nobody => break,
            }
        }
    }
}

/// The call goes on when its task does.
struct GoesOn;

/// What the call returned that a task was interrupted in, unless it goes on; 0 if it is in none. One that failed
/// because of us is begun again.
fn goes_on(task: u32) -> Result<i64, GoesOn> {
    const INTERRUPTED: i64 = -(libc::EINTR as i64);
    let Some(registers) = requests::registers(task) else { return Ok(0) };
    if requests::interrupted_call(task, &registers).is_none() {
        return Ok(0);
    }
    if GOES_ON.contains(&registers.ret) {
        return Err(GoesOn);
    }
    if registers.ret == INTERRUPTED && !has_signal(task) && requests::repeat_call(task).is_ok() {
        return Err(GoesOn);
    }
    Ok(registers.ret)
}

/// Whether a signal waits to be delivered to it.
fn has_signal(task: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{task}/status")).unwrap_or_default();
    let set = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|text| u64::from_str_radix(text.trim(), 16).ok()).unwrap_or(0)
    };
    (set("SigPnd:") | set("ShdPnd:")) & !set("SigBlk:") != 0
}

/// Whether this thread traces it.
fn is_ours(task: u32) -> bool {
    // SAFETY: asks for a number.
    let we = unsafe { libc::gettid() }.cast_unsigned();
    let status = fs::read_to_string(format!("/proc/{task}/status")).unwrap_or_default();
    let tracer = status.lines().find_map(|line| line.strip_prefix("TracerPid:"));
    // The kernel names the process of a tracer or its thread, depending on its age.
    tracer.is_some_and(|line| [we, std::process::id()].iter().any(|n| line.trim() == n.to_string()))
}

/// The call that a thread waits in.
fn call_of(thread: &Thread) -> Option<Doing> {
    match thread.doing {
        snapshot::Doing::Waiting(Some((nr, args))) => Some(Doing::Call { nr, args }),
        _ => None,
    }
}

#[cfg(test)]
#[cfg(target_arch = "x86_64")]
mod tests {
    use super::*;

    fn patient(name: &str, args: [u64; 6]) -> bool {
        is_patient(syscall::number(Arch::X86_64, name).unwrap(), &args)
    }

    #[test]
    fn only_waits_that_the_kernel_goes_on_with_are_interrupted() {
        assert!(patient("poll", [0; 6]));
        assert!(patient("futex", [0, 128, 0, 0, 0, 0]));
        assert!(!patient("futex", [0, 128 | 11, 0, 0, 0, 0]));
        assert!(!patient("recvfrom", [3, 0, 9, 0, 0, 0]) && !patient("read", [0; 6]));
        assert!(!patient("write", [1; 6]) && !patient("epoll_wait", [3; 6]));
    }
}
