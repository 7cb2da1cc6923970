//! Whether a signal was for our whole process group: then the program had it, and is not to get it again.
//!
//! The kernel tells who sent a signal, but not to whom else: `kill 0`, `timeout` and runners of tests send to groups. A
//! process of ours that does nothing else sits in the same group and says what it got, and when.

use super::{FORWARDED, set, with_signals_blocked};
use crate::clock::now;
use crate::perf::deferred_close::close_range;
use std::fs::File;
use std::io;
use std::os::fd::{FromRawFd, RawFd};
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};

/// What the witness's calls and its handler need of a stack, many times over.
const STACK: usize = 64 << 10;
/// How long we wait for its word, in ns, and how often we look. A process that sleeps is woken in less.
const PATIENCE: u64 = 10_000_000;
const LOOK: u64 = 100_000;
/// How long before us it may have had a signal of the same sending, in ns: as long as we may have waited for a CPU.
const APART: u64 = 100_000_000;

/// When the witness got each of [`FORWARDED`]; 0 once it was asked for that.
static RECEIVED: [AtomicU64; FORWARDED.len()] = [const { AtomicU64::new(0) }; FORWARDED.len()];
/// Its process id; 0 for none.
static HELPER: AtomicI32 = AtomicI32::new(0);
/// Whether it listens.
static READY: AtomicBool = AtomicBool::new(false);

/// Calls a witness, once for our lifetime. Without one each signal counts as sent to us alone.
pub(super) fn start_once() {
    /// The end of a pipe that closes with us, however we end: then the witness leaves.
    static ALIVE: OnceLock<Option<File>> = OnceLock::new();
    ALIVE.get_or_init(|| {
        let mut ends = [0; 2];
        // SAFETY: on success both ends are ours.
        let [_here, alive] = unsafe {
            if libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) != 0 {
                return None;
            }
            ends.map(|end| File::from_raw_fd(end))
        };
        with_signals_blocked(|| start(&ends)).ok()?;
        // SAFETY: a function that is safe at exit: plain system calls.
        unsafe { libc::atexit(stop) };
        Some(alive)
    });
}

/// Whether the group had this signal, which we have just got. Async-signal-safe.
pub(super) fn was_sent_to_group(signal: i32) -> bool {
    let Some(index) = FORWARDED.iter().position(|known| *known == signal) else { return false };
    if !READY.load(Ordering::SeqCst) {
        return false;
    }
    let since = now();
    let pause = libc::timespec { tv_sec: 0, tv_nsec: LOOK.cast_signed() };
    while now() - since < PATIENCE {
        let at = RECEIVED[index].swap(0, Ordering::SeqCst);
        if at + APART > since {
            return true;
        }
        // SAFETY: sleeps; what is left of it does not matter.
        unsafe { libc::nanosleep(&pause, ptr::null_mut()) };
    }
    false
}

/// It shares our memory, and has descriptors and dispositions of its own. To be called with all signals blocked.
fn start(ends: &[RawFd; 2]) -> io::Result<()> {
    // It stands on this for as long as it lives.
    let stack = Vec::leak(vec![0_u128; STACK / size_of::<u128>()]);
    // Nobody is told of its end: a program's end is what others wait for.
    let flags = libc::CLONE_VM;
    // SAFETY: the child has a stack of its own that is never freed, and does what is safe after any fork.
    let pid = unsafe {
        let top = stack.as_mut_ptr_range().end;
        libc::clone(helper_main, top.cast(), flags, ptr::from_ref(ends).cast_mut().cast())
    };
    if pid == -1 {
        return Err(io::Error::last_os_error());
    }
    HELPER.store(pid, Ordering::SeqCst);
    // It writes to this thread's `errno` until it listens, and then no more.
    while !READY.load(Ordering::SeqCst) {
        // SAFETY: asks whether our own child has ended: a filter of system calls may have killed it.
        if unsafe { libc::waitpid(pid, ptr::null_mut(), libc::__WALL | libc::WNOHANG) } == pid {
            HELPER.store(0, Ordering::SeqCst);
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        std::thread::yield_now();
    }
    Ok(())
}

/// The witness's life: until the other end of the pipe closes.
extern "C" fn helper_main(ends: *mut libc::c_void) -> i32 {
    // SAFETY: plain system calls. The descriptors and dispositions are its own; of our memory it writes to statics of
    // this file, and to the `errno` of a thread that waits for it; what it is handed lasts until it listens.
    unsafe {
        let [here, alive] = *ends.cast::<[RawFd; 2]>();
        libc::close(alive);
        close_range(0, here - 1);
        close_range(here + 1, RawFd::MAX);
        let mut was_sent_to_group = std::mem::zeroed();
        libc::sigemptyset(&mut was_sent_to_group);
        for signal in FORWARDED {
            set(signal, on_signal as *const () as usize);
            libc::sigaddset(&mut was_sent_to_group, signal);
        }
        libc::sigprocmask(libc::SIG_UNBLOCK, &was_sent_to_group, ptr::null_mut());
        READY.store(true, Ordering::SeqCst);
        let mut byte = 0_u8;
        libc::read(here, ptr::from_mut(&mut byte).cast(), 1);
        libc::_exit(0)
    }
}

extern "C" fn on_signal(signal: i32, _: *mut libc::siginfo_t, _: *mut libc::c_void) {
    if let Some(index) = FORWARDED.iter().position(|known| *known == signal) {
        RECEIVED[index].store(now(), Ordering::SeqCst);
    }
}

/// Nothing of ours is left when we are gone.
extern "C" fn stop() {
    READY.store(false, Ordering::SeqCst);
    let pid = HELPER.swap(0, Ordering::SeqCst);
    if pid > 0 {
        // SAFETY: ends and reaps a child that does nothing.
        unsafe {
            libc::kill(pid, libc::SIGKILL);
            libc::waitpid(pid, ptr::null_mut(), libc::__WALL);
        }
    }
}
