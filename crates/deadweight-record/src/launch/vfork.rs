//! A child that borrows the recorder's memory until exec, as with `posix_spawn` or `vfork`.
//!
//! A forked child would have a copy of the recorder's page tables. The kernel frees that copy during exec: in the
//! program's time, for as long as a small program takes to start. The parent thread is suspended until exec, so a
//! program that has to wait behind a barrier is started by a thread of its own.

use super::signals::{self, Guard};
use super::{
    AT_BARRIER, Child, ChildMessage, Request, Running, StartWhen, Waiting, ended_by, no_pipe,
};
use crate::clock::now;
use crate::descriptors::pipe;
use crate::error::Error;
use deadweight_trace::ids::Tid;
use deadweight_trace::units::Ns;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::ptr;
use std::thread::{self, JoinHandle};

/// Bytes of the child's stack: many times what its calls need.
const STACK: usize = 64 << 10;

/// Starts a program without a barrier. Its time counts from just before exec.
pub(crate) fn start(request: &Request, guard: &Guard) -> Result<Running, Error> {
    let go = StartWhen::AtOnce { start: now(), used_before: Ns(0) };
    let (mut child, requested, (messages, child_end)) = Child::prepare(request, guard, go)?;
    let pid = signals::with_signals_blocked(|| {
        let pid = child.spawn()?;
        guard.forward_to(pid);
        Ok(pid)
    });
    let pid = pid.map_err(cannot_start)?;
    drop(child_end);
    let StartWhen::AtOnce { start, used_before } = child.go else { unreachable!("said above") };
    Ok(Running { pid, start, used_before, messages, requested, vfork_thread: None })
}

/// Starts a program up to its barrier.
pub(crate) fn behind_barrier(request: &Request, guard: &Guard) -> Result<Waiting, Error> {
    let (here, barrier) = pipe().map_err(no_pipe)?;
    let go = StartWhen::Released { here: here.as_raw_fd(), other_end: barrier.as_raw_fd() };
    let (child, requested, (mut messages, child_end)) = Child::prepare(request, guard, go)?;
    let vfork_thread = VforkThread::start(child, [here, child_end]).map_err(cannot_start)?;
    let mut tid = [0; 4];
    let _ = messages.read_exact(&mut tid);
    match ChildMessage::read(&mut messages) {
        Some(ChildMessage { number: pid, at: AT_BARRIER }) => {
            guard.forward_to(pid);
            let vfork_tid = Tid(u32::from_ne_bytes(tid));
            Ok(Waiting { pid, barrier, messages, requested, vfork_thread, vfork_tid })
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

/// A thread that is suspended until its child has called exec or ended.
pub(crate) struct VforkThread(JoinHandle<io::Result<i32>>);

/// A child that another thread than the preparing one starts.
struct SharedChild(Child);

// SAFETY: its pointers lead to memory that it owns, or that is not freed before the thread's end.
unsafe impl Send for SharedChild {}

impl VforkThread {
    /// The thread sends its id, then the child sends its own. The thread keeps the child's ends of the pipes.
    fn start(child: Child, ends: [File; 2]) -> io::Result<Self> {
        let mut shared_child = SharedChild(child);
        let spawn = move || {
            let [_, mut messages] = ends;
            // SAFETY: asks for a number.
            messages.write_all(&unsafe { libc::gettid() }.to_ne_bytes())?;
            let shared_child = &mut shared_child;
            signals::with_signals_blocked(|| shared_child.0.spawn())
        };
        thread::Builder::new().spawn(spawn).map(Self)
    }

    /// The child's process id. Call it when the child has called exec or ended.
    pub(super) fn end(self) -> io::Result<i32> {
        self.0.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

impl Child {
    /// Returns the child's process id. All signals must be blocked: a handler in the child would run on the
    /// recorder's memory.
    fn spawn(&mut self) -> io::Result<i32> {
        let mut stack = Vec::<u128>::with_capacity(STACK / size_of::<u128>());
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
        // SAFETY: the child has a stack of its own, this thread is suspended until the child has called exec or
        // ended, and the child only does what is safe after a fork. Of the shared memory it writes to `self`, which
        // only it uses meanwhile, and to this thread's `errno`.
        let pid = unsafe {
            let top = stack.as_mut_ptr().add(stack.capacity());
            libc::clone(child_main, top.cast(), flags, ptr::from_mut(self).cast())
        };
        if pid == -1 { Err(io::Error::last_os_error()) } else { Ok(pid) }
    }
}

/// The child's main function.
extern "C" fn child_main(child: *mut libc::c_void) -> i32 {
    // SAFETY: what `spawn` passes, and waits for.
    unsafe { &mut *child.cast::<Child>() }.run()
}
