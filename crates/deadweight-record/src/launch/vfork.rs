//! A child that borrows our memory until it becomes the program, as `posix_spawn`'s does.
//!
//! A forked child has a copy of our page tables. The kernel takes it down during exec: in the program's
//! time, and for as long as a small program takes to start. Whoever lends stands still meanwhile, so
//! a program that has to wait for something is started by a thread of its own.

use super::signals::{self, Guard};
use super::{AT_BARRIER, Child, ChildMessage, Go, Request, Running, Waiting, ended_by, pipe};
use crate::clock::now;
use crate::error::Error;
use deadweight_trace::ids::Tid;
use deadweight_trace::units::Ns;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::ptr;
use std::thread::{self, JoinHandle};

/// What the child's calls need of a stack, many times over.
const STACK: usize = 64 << 10;

/// Starts a program without a barrier. Its time counts from just before exec.
pub(crate) fn start(request: &Request, guard: &Guard) -> Result<Running, Error> {
    let go = Go::AtOnce { start: now(), used_before: Ns(0) };
    let (mut child, requested, (messages, child_end)) = Child::prepare(request, guard, go)?;
    let pid = signals::with_signals_blocked(|| {
        let pid = child.lend()?;
        guard.forward_to(pid);
        Ok(pid)
    });
    let pid = pid.map_err(cannot_start)?;
    drop(child_end);
    let Go::AtOnce { start, used_before } = child.go else { unreachable!("said above") };
    Ok(Running { pid, start, used_before, messages, requested, vfork_thread: None })
}

/// Brings a program up to its barrier.
pub(crate) fn behind_barrier(request: &Request, guard: &Guard) -> Result<Waiting, Error> {
    let (here, barrier) = pipe()?;
    let go = Go::Released { here: here.as_raw_fd(), other_end: barrier.as_raw_fd() };
    let (child, requested, (mut messages, child_end)) = Child::prepare(request, guard, go)?;
    let vfork_thread = VforkThread::start(child, [here, child_end]).map_err(cannot_start)?;
    let mut by = [0; 4];
    let _ = messages.read_exact(&mut by);
    match ChildMessage::read(&mut messages) {
        Some(ChildMessage { number: pid, at: AT_BARRIER }) => {
            guard.forward_to(pid);
            let by = Tid(u32::from_ne_bytes(by));
            Ok(Waiting { pid, barrier, messages, requested, vfork_thread, by })
        }
        said => {
            let signal = ended_by(vfork_thread.end().map_err(cannot_start)?);
            Err(match (said, signal) {
                (Some(said), _) => requested.refused(said),
                (None, Some(signal)) => Error::Interrupted(signal),
                (None, None) => cannot_start(io::ErrorKind::UnexpectedEof.into()),
            })
        }
    }
}

fn cannot_start(source: io::Error) -> Error {
    Error::System { what: "cannot start a process".into(), source }
}

/// A thread that stands still until its child has become the program or ended.
pub(crate) struct VforkThread(JoinHandle<io::Result<i32>>);

/// A child that is lent to by another thread than the one that made it ready.
struct SharedChild(Child);

// SAFETY: its pointers lead to memory that it owns, or that nobody frees before the thread's end.
unsafe impl Send for SharedChild {}

impl VforkThread {
    /// The thread messages its id, and the child then its own. It keeps the child's ends of the pipes.
    fn start(child: Child, ends: [File; 2]) -> io::Result<Self> {
        let mut lent = SharedChild(child);
        let lend = move || {
            let [_, mut tell] = ends;
            // SAFETY: asks for a number.
            tell.write_all(&unsafe { libc::gettid() }.to_ne_bytes())?;
            let lent = &mut lent;
            signals::with_signals_blocked(|| lent.0.lend())
        };
        thread::Builder::new().spawn(lend).map(Self)
    }

    /// The child's process id. To be called when that has become the program or ended.
    pub(super) fn end(self) -> io::Result<i32> {
        self.0.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

impl Child {
    /// The process that it became. No handler of ours may run in it: that would run on our memory.
    fn lend(&mut self) -> io::Result<i32> {
        let mut stack = Vec::<u128>::with_capacity(STACK / size_of::<u128>());
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
        // SAFETY: the child has a stack of its own, this thread stands still until the child has
        // become the program or ended, and what it does until then is safe after any fork. Of our
        // memory it writes to `self`, which only it uses meanwhile, and to this thread's `errno`.
        let pid = unsafe {
            let top = stack.as_mut_ptr().add(stack.capacity());
            libc::clone(live, top.cast(), flags, ptr::from_mut(self).cast())
        };
        if pid == -1 { Err(io::Error::last_os_error()) } else { Ok(pid) }
    }
}

/// The child's life.
extern "C" fn live(child: *mut libc::c_void) -> i32 {
    // SAFETY: what `lend` hands over, and waits for.
    unsafe { &mut *child.cast::<Child>() }.run()
}
