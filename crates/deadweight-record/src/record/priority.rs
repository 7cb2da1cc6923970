//! How urgent the recorder's own threads are: copying rings more than the program, decoding less.
//!
//! Not for the program: it is scheduled as it would be without us.

use std::sync::atomic::{AtomicBool, Ordering};

/// A thread that runs only where nothing else would, unless lifted. In the end it is scheduled as
/// before: programs that it starts later inherit that. Who may not lift what he lowered leaves it.
pub(crate) struct Lowered {
    thread: libc::pid_t,
    lifted: AtomicBool,
    before: (i32, i32),
}

impl Lowered {
    /// The calling thread, not lowered yet: threads that it starts until then are scheduled as before. On a busy machine
    /// one that inherited less would let the program wait, and learn late of its end.
    pub(crate) fn new() -> Self {
        // SAFETY: asks for a number.
        let thread = unsafe { libc::gettid() };
        Self { thread, lifted: AtomicBool::new(true), before: policy() }
    }

    pub(crate) fn lower(&self) {
        if !may_raise() {
            return;
        }
        if self.lifted.swap(false, Ordering::SeqCst) {
            set_policy(self.thread, libc::SCHED_IDLE, 0);
        }
    }

    /// Whether it was low.
    pub(crate) fn lift(&self) -> bool {
        let low = !self.lifted.swap(true, Ordering::SeqCst);
        if low {
            set_policy(self.thread, self.before.0, self.before.1);
        }
        low
    }
}

impl Drop for Lowered {
    fn drop(&mut self) {
        self.lift();
    }
}

/// Copying a full ring takes a millisecond and must not wait behind busy programs.
pub(crate) fn raise() {
    if !set_policy(0, libc::SCHED_FIFO, 1) {
        be_nice(-20);
    }
}

/// Whether threads of ours may be given a higher priority than they have: only then may one be
/// lowered for a while.
fn may_raise() -> bool {
    static MAY: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    *MAY.get_or_init(|| {
        // SAFETY: system calls on the calling thread. What is tried is undone.
        unsafe {
            let nice = libc::getpriority(libc::PRIO_PROCESS, 0);
            let may = libc::setpriority(libc::PRIO_PROCESS, 0, nice - 1) == 0;
            libc::setpriority(libc::PRIO_PROCESS, 0, nice);
            may
        }
    })
}

/// Sets how nice the calling thread is to others, if that is allowed.
pub(crate) fn be_nice(nice: i32) {
    // SAFETY: a system call on the calling thread; refusal is harmless.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, nice) };
}

/// The calling thread's scheduling policy and its priority there.
fn policy() -> (i32, i32) {
    let mut parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: 0 is the calling thread; the parameters are written only.
    unsafe {
        let policy = libc::sched_getscheduler(0);
        libc::sched_getparam(0, &mut parameters);
        (policy.max(libc::SCHED_OTHER), parameters.sched_priority)
    }
}

/// Sets the scheduling policy of a thread of ours, 0 being the calling one; false if the kernel
/// refused.
fn set_policy(thread: libc::pid_t, policy: i32, priority: i32) -> bool {
    let parameters = libc::sched_param { sched_priority: priority };
    // SAFETY: the parameters are read only.
    unsafe { libc::sched_setscheduler(thread, policy, &parameters) == 0 }
}
