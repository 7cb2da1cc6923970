//! Calibration: what a ptrace stop costs the stopped task, measured on a child just before the run.
//!
//! Only the task's own CPU time. How long it was stopped is known at each stop.

use super::requests::{self, Resume, SyscallStop};
use super::schedstat::Schedstat;
use crate::clock::now;
use crate::error::Error;
use crate::permissions::yama::{self, TraceTarget};
use crate::procfs::affinity::Affinity;

const CALLS: u32 = 100;
/// Pages that are touched to measure one page fault.
const PAGES: usize = 64;
/// Work of the child between two traced calls, in ns. The longer a CPU is idle, the longer its
/// wake-up takes.
const WORK: u64 = 100_000;
/// The two costs are kept apart if resuming a task on another CPU takes this many times as long as on
/// the tracer's.
const DISTINCT_RATIO: u64 = 2;

/// CPU time that stops take from the stopped tasks.
#[derive(Copy, Clone, Debug, Default)]
pub(crate) struct StopCosts {
    /// The tracer sleeps on the same CPU, or does not sleep.
    same_cpu: StopCost,
    /// The tracer sleeps on another CPU and is woken there. On a virtual machine, waking an idle
    /// CPU needs the hypervisor and often takes ten times as long.
    other_cpu: StopCost,
    /// A minor page fault, without any stop.
    pub(crate) page_fault: u64,
}

/// Cost of one stop, in ns.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct StopCost {
    /// Part of the user time before the stop.
    pub(super) user: u64,
    /// Part of the time in the call before the stop.
    pub(super) call: u64,
    /// The tracer's CPU time to resume the task.
    pub(super) resume_time: u64,
}

impl StopCosts {
    /// Cost of the stop of a task whose resuming took this much tracer CPU time. `slept`: the
    /// tracer slept until the stop.
    pub(super) fn of(&self, resume_time: u64, slept: bool) -> StopCost {
        if slept && self.was_on_other_cpu(resume_time) { self.other_cpu } else { self.same_cpu }
    }

    /// Whether the task was on another CPU, judged by the tracer's CPU time to resume it. False if
    /// both costs are alike.
    fn was_on_other_cpu(&self, resume_time: u64) -> bool {
        let [same_cpu, other_cpu] = [self.same_cpu.resume_time.max(1), self.other_cpu.resume_time];
        other_cpu >= DISTINCT_RATIO * same_cpu
            && resume_time.saturating_mul(resume_time) > same_cpu * other_cpu
    }
}

/// Measures the costs. [`Error`] if tracing a child is refused.
pub(crate) fn costs() -> Result<StopCosts, Error> {
    let before = Affinity::of_this_thread();
    let cpus: Vec<usize> = before.cpus().take(2).collect();
    let only_on = |cpu: Option<&usize>| cpu.and_then(|cpu| Affinity::only(*cpu));
    let (first_pinned, second_pinned) = (only_on(cpus.first()), only_on(cpus.last()));
    // If pinning is refused, both are measured on any CPU.
    _ = first_pinned.is_some_and(|cpu| cpu.apply_to(0));
    let both = measure_stops(first_pinned, 0)
        .and_then(|same_cpu| Ok((same_cpu, measure_stops(second_pinned, WORK)?)));
    before.apply_to(0);
    let (same_cpu, mut other_cpu) = both?;
    // How long the child's work takes is not known to the microsecond.
    other_cpu.user = other_cpu.call + same_cpu.user.saturating_sub(same_cpu.call);
    Ok(StopCosts { same_cpu, other_cpu, page_fault: page_fault_cost() })
}

/// Median costs of the stops of a child on that CPU, with `work` ns of work between its calls.
fn measure_stops(cpu: Option<Affinity>, work: u64) -> Result<StopCost, Error> {
    let empty_call_time = empty_call();
    let child = Child::start(work)?;
    let task = child.0;
    _ = cpu.is_some_and(|cpu| cpu.apply_to(task));
    let (mut in_calls, mut in_user_code, mut resume_time) = (Vec::new(), Vec::new(), Vec::new());
    let scheduled = Schedstat::of(task, task);
    let mut before = None;
    let mut in_call = false;
    while child.wait_for_stop() {
        let ran = scheduled.read().map(|counts| counts.cpu_time);
        if let (Some(before), Some(ran)) = (before, ran) {
            let list = if in_call { &mut in_calls } else { &mut in_user_code };
            list.push(ran - before);
        }
        before = ran;
        in_call = matches!(requests::syscall_stop(task), SyscallStop::Entry { .. });
        let start = thread_cpu_time();
        if requests::resume(task, Resume::ToNextCall(0)).is_err() {
            break;
        }
        resume_time.push(thread_cpu_time() - start);
    }
    let [in_calls, in_user_code, resume_time] = [in_calls, in_user_code, resume_time].map(median);
    Ok(StopCost { user: in_user_code, call: in_calls.saturating_sub(empty_call_time), resume_time })
}

/// CPU time of the calling thread, in ns.
pub(super) fn thread_cpu_time() -> u64 {
    time(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// CPU time of all threads of this process, in ns.
pub(super) fn process_cpu_time() -> u64 {
    time(libc::CLOCK_PROCESS_CPUTIME_ID)
}

fn time(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call only writes `time`.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
}

/// Time of an empty call, in ns.
fn empty_call() -> u64 {
    let start = now();
    for _ in 0..CALLS {
        // SAFETY: asks for a number.
        unsafe { libc::getppid() };
    }
    (now() - start) / u64::from(CALLS)
}

fn median(mut all: Vec<u64>) -> u64 {
    all.sort_unstable();
    all.get(all.len() / 2).copied().unwrap_or(0)
}

/// Time of the first touch of a page, in ns: the kernel zeroes and maps it.
fn page_fault_cost() -> u64 {
    (0..3).filter_map(|_| touch_pages()).min().unwrap_or(500)
}

fn touch_pages() -> Option<u64> {
    const PAGE: usize = 4096;
    let len = PAGES * PAGE;
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: new memory, written to within its length and given back.
    unsafe {
        let memory = libc::mmap(std::ptr::null_mut(), len, access, kind, -1, 0);
        if memory == libc::MAP_FAILED {
            return None;
        }
        libc::madvise(memory, len, libc::MADV_NOHUGEPAGE);
        let start = now();
        for page in 0..PAGES {
            memory.cast::<u8>().add(page * PAGE).write_volatile(1);
        }
        let took = now() - start;
        libc::munmap(memory, len);
        Some(took / PAGES as u64)
    }
}

/// A child that makes calls. It is killed on drop.
pub(super) struct Child(u32);

impl Child {
    /// The child is stopped, traced by this thread, and will do `work` ns of work before each call.
    pub(super) fn start(work: u64) -> Result<Self, Error> {
        // SAFETY: asks for a number.
        let us = unsafe { libc::getpid() };
        // SAFETY: the child makes plain system calls only.
        let child = match unsafe { libc::fork() } {
            -1 => return Err(Error::last("cannot fork")),
            // SAFETY: this is the child. Its parent has stopped it before it is measured.
            0 => unsafe {
                // If the parent is killed, nothing else would resume or end the child.
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                if libc::getppid() != us {
                    libc::_exit(0);
                }
                libc::raise(libc::SIGSTOP);
                for _ in 0..CALLS {
                    let until = now() + work;
                    while work > 0 && now() < until {}
                    libc::getppid();
                }
                libc::_exit(0)
            },
            child => Self(child.cast_unsigned()),
        };
        let mut status = 0;
        // SAFETY: waits for our own child, which stops itself.
        unsafe { libc::waitpid(child.0.cast_signed(), &mut status, libc::WUNTRACED) };
        requests::seize(child.0).map_err(|source| {
            let known = yama::refusal(TraceTarget::Child).map(|(why, _)| why);
            let why = known.unwrap_or("refused, or strace or a debugger does already".into());
            Error::System { what: format!("cannot trace a child process ({why})"), source }
        })?;
        // SAFETY: our own child.
        unsafe { libc::kill(child.0.cast_signed(), libc::SIGCONT) };
        Ok(child)
    }

    /// Waits for the next stop. False at the child's end.
    fn wait_for_stop(&self) -> bool {
        let mut status = 0;
        // SAFETY: waits for our own child.
        let got = unsafe { libc::waitpid(self.0.cast_signed(), &mut status, libc::__WALL) };
        got > 0 && libc::WIFSTOPPED(status)
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let mut status = 0;
        // SAFETY: our own child, killed and reaped, unless it has ended already.
        unsafe {
            libc::kill(self.0.cast_signed(), libc::SIGKILL);
            libc::waitpid(self.0.cast_signed(), &mut status, libc::__WALL);
        }
    }
}
