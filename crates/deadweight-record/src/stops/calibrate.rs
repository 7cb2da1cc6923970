//! What a stop costs the stopped task, measured on a child of ours just before the run.
//!
//! Of what the task itself uses of a CPU; for how long it is stopped is told at every stop.

use super::ptrace::{self, AtCall, Go};
use super::schedstat::Schedstat;
use crate::error::Error;
use crate::launch::now;

const CALLS: u32 = 200;
/// Pages that are touched to know what one costs.
const PAGES: usize = 64;

/// What a stop takes of the stopped task's own time, in ns.
#[derive(Copy, Clone, Debug, Default)]
pub(crate) struct Costs {
    /// Of the time in its own code before it.
    pub(crate) user: u64,
    /// Of the time in the call that it stops after.
    pub(crate) call: u64,
    /// A page fault that is served from memory, without any stop.
    pub(crate) fault: u64,
}

/// Measures them. [`Error`] if tracing a child of ours is refused.
pub(super) fn costs() -> Result<Costs, Error> {
    let alone = undisturbed();
    let child = Child::start()?;
    let task = child.0;
    let mut inside = Vec::new();
    let mut outside = Vec::new();
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
        within = matches!(ptrace::at_call(task), AtCall::Entry { .. });
        if ptrace::go(task, Go::On(0)).is_err() {
            break;
        }
    }
    let [inside, outside] = [median(inside), median(outside)];
    Ok(Costs { user: outside, call: inside.saturating_sub(alone), fault: fault() })
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
    /// It stands stopped, traced by this thread.
    pub(super) fn start() -> Result<Self, Error> {
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
                    libc::getppid();
                }
                libc::_exit(0)
            },
            child => Self(child.cast_unsigned()),
        };
        let mut status = 0;
        // SAFETY: waits for our own child, which stops itself.
        unsafe { libc::waitpid(child.0.cast_signed(), &mut status, libc::WUNTRACED) };
        ptrace::seize(child.0).map_err(|source| Error::System {
            what: "cannot trace a child of ours (refused, or strace or a debugger does already)"
                .into(),
            source,
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
