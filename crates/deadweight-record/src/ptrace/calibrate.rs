//! What a stop costs the stopped task, measured on a child of ours just before the run.
//!
//! Of what the task itself uses of a CPU; for how long it is stopped is told at every stop.

use super::requests::{self, AtCall, Go};
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
const OWN: u64 = 100_000;
/// Where it takes so many times as long to let a task go on another CPU as on ours, the two are told apart.
const APART: u64 = 2;

/// What stops take of the stopped tasks' own time.
#[derive(Copy, Clone, Debug, Default)]
pub(crate) struct Costs {
    /// Where the tracer sleeps on the same CPU, or does not sleep.
    near: Stop,
    /// Where it sleeps on another one and is woken there: on a virtual machine that takes its host, and often ten times
    /// as long.
    far: Stop,
    /// A page fault that is served from memory, without any stop.
    pub(crate) fault: u64,
}

/// What a stop takes, in ns.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Stop {
    /// Of the time in the task's own code before it.
    pub(super) user: u64,
    /// Of the time in the call that it stops after.
    pub(super) call: u64,
    /// The tracer's CPU time to let it go.
    pub(super) letting_go: u64,
}

impl Costs {
    /// Of a stop of a task that was let go in so much of our CPU time, if we slept until it stopped.
    pub(super) fn of(&self, letting_go: u64, slept: bool) -> Stop {
        if slept && self.is_far(letting_go) { self.far } else { self.near }
    }

    /// Whether a task that was let go in so much of our CPU time was on another CPU, if that makes a difference.
    fn is_far(&self, letting_go: u64) -> bool {
        let [near, far] = [self.near.letting_go.max(1), self.far.letting_go];
        far >= APART * near && letting_go.saturating_mul(letting_go) > near * far
    }
}

/// Measures them. [`Error`] if tracing a child of ours is refused.
pub(crate) fn costs() -> Result<Costs, Error> {
    let before = Affinity::of_this_thread();
    let cpus: Vec<usize> = before.cpus().take(2).collect();
    let pinned = |cpu: Option<&usize>| cpu.and_then(|cpu| Affinity::only(*cpu));
    let (here, there) = (pinned(cpus.first()), pinned(cpus.last()));
    // Where this is refused, both are measured wherever we are.
    _ = here.is_some_and(|cpu| cpu.apply_to(0));
    let both = stops(here, 0).and_then(|near| Ok((near, stops(there, OWN)?)));
    before.apply_to(0);
    let (near, mut far) = both?;
    // Of what it does between its calls nobody knows to the microsecond how long it takes.
    far.user = far.call + near.user.saturating_sub(near.call);
    Ok(Costs { near, far, fault: fault() })
}

/// The stops of a child on that CPU, in the median, which does `own` ns of work between its calls.
fn stops(cpu: Option<Affinity>, own: u64) -> Result<Stop, Error> {
    let alone = undisturbed();
    let child = Child::start(own)?;
    let task = child.0;
    _ = cpu.is_some_and(|cpu| cpu.apply_to(task));
    let (mut inside, mut outside, mut letting_go) = (Vec::new(), Vec::new(), Vec::new());
    let scheduled = Schedstat::of(task, task);
    let mut before = None;
    let mut within = false;
    while child.stops() {
        let ran = scheduled.read().map(|counts| counts.ran);
        if let (Some(before), Some(ran)) = (before, ran) {
            let list = if within { &mut inside } else { &mut outside };
            list.push(ran - before);
        }
        before = ran;
        within = matches!(requests::at_call(task), AtCall::Entry { .. });
        let start = thread_time();
        if requests::go(task, Go::On(0)).is_err() {
            break;
        }
        letting_go.push(thread_time() - start);
    }
    let [inside, outside, letting_go] = [inside, outside, letting_go].map(median);
    Ok(Stop { user: outside, call: inside.saturating_sub(alone), letting_go })
}

/// CPU time of the calling thread, in ns.
pub(super) fn thread_time() -> u64 {
    time(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// CPU time of all our threads, in ns.
pub(super) fn our_time() -> u64 {
    time(libc::CLOCK_PROCESS_CPUTIME_ID)
}

fn time(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call only writes `time`.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
}

/// An empty call, in ns.
fn undisturbed() -> u64 {
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
fn fault() -> u64 {
    (0..3).filter_map(|_| touched()).min().unwrap_or(500)
}

fn touched() -> Option<u64> {
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
    /// It stands stopped, traced by this thread, and will do `own` ns of work before each call.
    pub(super) fn start(own: u64) -> Result<Self, Error> {
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
                    let until = now() + own;
                    while own > 0 && now() < until {}
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
    fn stops(&self) -> bool {
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
