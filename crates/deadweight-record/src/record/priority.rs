//! The priorities of the recorder's threads: copying rings comes before the program, decoding after it.
//!
//! The program's scheduling is not changed.

use std::sync::atomic::{AtomicBool, Ordering};

/// A thread at idle priority, unless lifted. At the end its scheduling is restored, because programs that it starts
/// later inherit it. If the user may not raise priorities, it is never lowered.
pub(crate) struct Lowered {
    thread: libc::pid_t,
    lifted: AtomicBool,
    before: (i32, i32),
}

impl Lowered {
    /// The calling thread, not lowered yet: threads that it starts until then keep normal scheduling. On a busy
    /// machine a thread at idle priority would let the program wait, and would notice its end late.
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
        set_nice(-20);
    }
}

/// Whether this process may raise the priority of its threads: only then may one be lowered for a while.
fn may_raise() -> bool {
    static MAY: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    *MAY.get_or_init(|| {
        // SAFETY: system calls on the calling thread; the trial is undone.
        unsafe {
            let nice = libc::getpriority(libc::PRIO_PROCESS, 0);
            let may = libc::setpriority(libc::PRIO_PROCESS, 0, nice - 1) == 0;
            libc::setpriority(libc::PRIO_PROCESS, 0, nice);
            may
        }
    })
}

/// Sets the nice value of the calling thread, if that is allowed.
pub(crate) fn set_nice(nice: i32) {
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

/// Sets the scheduling policy of an own thread, 0 being the calling one; false if the kernel refused.
fn set_policy(thread: libc::pid_t, policy: i32, priority: i32) -> bool {
    let parameters = libc::sched_param { sched_priority: priority };
    // SAFETY: the parameters are read only.
    unsafe { libc::sched_setscheduler(thread, policy, &parameters) == 0 }
}
