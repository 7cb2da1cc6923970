//! A periodic POSIX timer whose signal interrupts the calling thread's waits.
//!
//! Does not take samples; see `tracer::sampling_cpu`.

use crate::error::Error;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

/// A running timer. It is deleted on drop.
pub(super) struct SampleTimer {
    timer: libc::timer_t,
    before: libc::sigaction,
}

/// The C library reserves the real-time signals below this one.
fn signal() -> i32 {
    libc::SIGRTMIN() + 6
}

/// The timer expired since the last check.
static TICKED: AtomicBool = AtomicBool::new(false);

extern "C" fn tick(_: i32) {
    TICKED.store(true, Ordering::Relaxed);
}

impl SampleTimer {
    /// Starts it for this thread, with this period in ns.
    pub(super) fn start(period: u64) -> Result<Self, Error> {
        let mut before = MaybeUninit::<libc::sigaction>::zeroed();
        let mut action = MaybeUninit::<libc::sigaction>::zeroed();
        let mut event = MaybeUninit::<libc::sigevent>::zeroed();
        let mut timer = ptr::null_mut();
        // SAFETY: all-zero is a valid sigaction and sigevent, of which the fields that count are
        // set; the handler only sets a flag, and without SA_RESTART it ends a wait.
        unsafe {
            (*action.as_mut_ptr()).sa_sigaction = tick as *const () as usize;
            libc::sigaction(signal(), action.as_ptr(), before.as_mut_ptr());
            let event = event.assume_init_mut();
            event.sigev_notify = libc::SIGEV_THREAD_ID;
            event.sigev_signo = signal();
            event.sigev_notify_thread_id = libc::gettid();
            if libc::timer_create(libc::CLOCK_MONOTONIC, event, &mut timer) != 0 {
                return Err(Error::last("cannot create a timer"));
            }
            let timer = Self { timer, before: before.assume_init() };
            timer.set_period(period);
            Ok(timer)
        }
    }

    /// Whether it expired since the last check, also if no wait was interrupted.
    pub(super) fn take_tick(&self) -> bool {
        TICKED.swap(false, Ordering::Relaxed)
    }

    /// Sets another period.
    pub(super) fn set_period(&self, period: u64) {
        self.set_first(period, period);
    }

    /// It expires after `first` ns, and from then on with this period.
    pub(super) fn set_first(&self, first: u64, period: u64) {
        let spec = |time: u64| libc::timespec {
            tv_sec: (time / 1_000_000_000).cast_signed(),
            tv_nsec: (time % 1_000_000_000).cast_signed(),
        };
        let times = libc::itimerspec { it_interval: spec(period), it_value: spec(first) };
        // SAFETY: our own timer and plain numbers.
        unsafe { libc::timer_settime(self.timer, 0, &times, ptr::null_mut()) };
    }
}

impl Drop for SampleTimer {
    fn drop(&mut self) {
        // SAFETY: our own timer, and the action that the kernel reported earlier.
        unsafe {
            libc::timer_delete(self.timer);
            libc::sigaction(signal(), &self.before, ptr::null_mut());
        }
    }
}
