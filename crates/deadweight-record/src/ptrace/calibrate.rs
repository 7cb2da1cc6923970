//! What a stop costs the stopped task, measured on a child of ours just before the run.
//!
//! Of what the task itself uses of a CPU; for how long it is stopped is told at every stop.

use super::requests::{self, Resume, SyscallStop};
use super::schedstat::Schedstat;
use crate::clock::now;
use crate::error::Error;
use crate::permissions::yama::{self, Whose};
use crate::procfs::affinity::Affinity;

const CALLS: u32 = 100;
/// Pages that are touched to know what one costs.
const PAGES: usize = 64;
/// What a program does between two calls that are both watched, in ns: the longer a CPU is idle, the more it takes to
/// wake it.
const WORK: u64 = 100_000;
/// Where it takes so many times as long to let a task go on another CPU as on ours, the two are told apart.
const DISTINCT_RATIO: u64 = 2;

/// What stops take of the stopped tasks' own time.
#[derive(Copy, Clone, Debug, Default)]
pub(crate) struct StopCosts {
    /// Where the tracer sleeps on the same CPU, or does not sleep.
    same_cpu: StopCost,
    /// Where it sleeps on another one and is woken there: on a virtual machine that takes its host, and often ten times
    /// as long.
    other_cpu: StopCost,
    /// A page fault that is served from memory, without any stop.
    pub(crate) page_fault: u64,
}

/// What a stop takes, in ns.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct StopCost {
    /// Of the time in the task's own code before it.
    pub(super) user: u64,
    /// Of the time in the call that it stops after.
    pub(super) call: u64,
    /// The tracer's CPU time to let it go.
    pub(super) resume_time: u64,
}

impl StopCosts {
    /// Of a stop of a task that was let go in so much of our CPU time, if we slept until it stopped.
    pub(super) fn of(&self, resume_time: u64, slept: bool) -> StopCost {
        if slept && self.was_on_other_cpu(resume_time) { self.other_cpu } else { self.same_cpu }
    }

    /// Whether a task that was let go in so much of our CPU time was on another CPU, if that makes a difference.
    fn was_on_other_cpu(&self, resume_time: u64) -> bool {
        let [same_cpu, other_cpu] = [self.same_cpu.resume_time.max(1), self.other_cpu.resume_time];
        other_cpu >= DISTINCT_RATIO * same_cpu
            && resume_time.saturating_mul(resume_time) > same_cpu * other_cpu
    }
}

/// Measures them. [`Error`] if tracing a child of ours is refused.
pub(crate) fn costs() -> Result<StopCosts, Error> {
    let before = Affinity::of_this_thread();
    let cpus: Vec<usize> = before.cpus().take(2).collect();
    let only_on = |cpu: Option<&usize>| cpu.and_then(|cpu| Affinity::only(*cpu));
    let (first_pinned, second_pinned) = (only_on(cpus.first()), only_on(cpus.last()));
    // Where this is refused, both are measured wherever we are.
    _ = first_pinned.is_some_and(|cpu| cpu.apply_to(0));
    let both = measure_stops(first_pinned, 0)
        .and_then(|same_cpu| Ok((same_cpu, measure_stops(second_pinned, WORK)?)));
    before.apply_to(0);
    let (same_cpu, mut other_cpu) = both?;
    // Of what it does between its calls nobody knows to the microsecond how long it takes.
    other_cpu.user = other_cpu.call + same_cpu.user.saturating_sub(same_cpu.call);
    Ok(StopCosts { same_cpu, other_cpu, page_fault: page_fault_cost() })
}

/// The stops of a child on that CPU, in the median, which does `work` ns of work between its calls.
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

/// CPU time of all our threads, in ns.
pub(super) fn process_cpu_time() -> u64 {
    time(libc::CLOCK_PROCESS_CPUTIME_ID)
}

fn time(timer: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call only writes `time`.
    unsafe { libc::clock_gettime(timer, &raw mut time) };
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
}

/// An empty call, in ns.
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

/// What the first touch of a page takes, in ns: the kernel zeroes and maps it.
fn page_fault_cost() -> u64 {
    (0..3).filter_map(|_| touch_pages()).min().unwrap_or(500)
}

fn touch_pages() -> Option<u64> {
    const PAGE: usize = 4096;
    let len = PAGES * PAGE;
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: new memory of ours, written to within its length and given back.
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

/// A child that makes calls; gone with the value.
pub(super) struct Child(u32);

impl Child {
    /// It stands stopped, traced by this thread, and will do `work` ns of work before each call.
    pub(super) fn start(work: u64) -> Result<Self, Error> {
        // SAFETY: asks for a number.
        let us = unsafe { libc::getpid() };
        // SAFETY: the child makes plain system calls only.
        let child = match unsafe { libc::fork() } {
            -1 => return Err(Error::last("cannot fork")),
            // SAFETY: we are that child. Whoever starts us has stopped us by the time that this counts.
            0 => unsafe {
                // If we are killed nobody else would let it go on, or end it.
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
            let known = yama::by_yama(Whose::Ours).map(|(why, _)| why);
            let why = known.unwrap_or("refused, or strace or a debugger does already".into());
            Error::System { what: format!("cannot trace a child of ours ({why})"), source }
        })?;
        // SAFETY: our own child.
        unsafe { libc::kill(child.0.cast_signed(), libc::SIGCONT) };
        Ok(child)
    }

    /// Waits for its next stop; false at its end.
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
        // SAFETY: our own child, killed and reaped, unless it is gone already.
        unsafe {
            libc::kill(self.0.cast_signed(), libc::SIGKILL);
            libc::waitpid(self.0.cast_signed(), &mut status, libc::__WALL);
        }
    }
}
