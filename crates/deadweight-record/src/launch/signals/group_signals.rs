//! Decides whether a signal was sent to the whole process group. If so, the program got it already and must not get
//! it again.
//!
//! The kernel reports who sent a signal, but not to which other processes: `kill 0`, `timeout` and test runners send
//! to groups. A helper process in the same group does nothing else than note which signals it got, and when.

use super::{FORWARDED, set, with_signals_blocked};
use crate::clock::now;
use crate::descriptors::{close_all_but, pipe};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, IntoRawFd, RawFd};
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};

/// Bytes of the helper's stack: many times what its calls and its handler need.
const STACK: usize = 64 << 10;
/// How long to wait for the helper to note a signal, in ns, and how often to check. The kernel sends to one process after
/// the other, and a virtual CPU may stand still between two of them.
const SHORTEST_WAIT: u64 = 50_000_000;
const POLL_NS: u64 = 100_000;
/// A helper that got a signal is awake, but may wait for a CPU: on a machine with four times as many busy tasks as CPUs
/// for longer than 50 ms. The recorder waits so long for it at most, in ns.
const LONGEST_WAIT: u64 = 5_000_000_000;
/// The helper may have got the same signal this much earlier, in ns: the recorder may have waited as long for a CPU.
const SAME_SENDING: u64 = 500_000_000;

/// When the helper got each of [`FORWARDED`]; 0 after this was read.
static RECEIVED: [AtomicU64; FORWARDED.len()] = [const { AtomicU64::new(0) }; FORWARDED.len()];
/// The helper's process id; 0 for none.
static HELPER: AtomicI32 = AtomicI32::new(0);
/// Whether the helper's handlers are set.
static READY: AtomicBool = AtomicBool::new(false);
/// The helper's `/proc/PID/stat`; -1 if it cannot be opened.
static STAT: AtomicI32 = AtomicI32::new(-1);

/// Starts the helper, once per process. Without a helper each signal counts as sent to the recorder alone.
pub(super) fn start_once() {
    /// The end of a pipe that closes with the recorder's end, however that comes; then the helper exits.
    static ALIVE: OnceLock<Option<File>> = OnceLock::new();
    ALIVE.get_or_init(|| {
        let (here, alive) = pipe().ok()?;
        let ends = [here.as_raw_fd(), alive.as_raw_fd()];
        with_signals_blocked(|| start(&ends)).ok()?;
        // SAFETY: a function that is safe at exit: plain system calls.
        unsafe { libc::atexit(stop) };
        Some(alive)
    });
}

/// Whether the group got this signal, which the recorder has just got. Async-signal-safe.
pub(super) fn was_sent_to_group(signal: i32) -> bool {
    let Some(index) = FORWARDED.iter().position(|known| *known == signal) else { return false };
    if !READY.load(Ordering::SeqCst) {
        return false;
    }
    let since = now();
    let pause = libc::timespec { tv_sec: 0, tv_nsec: POLL_NS.cast_signed() };
    while now() - since < LONGEST_WAIT {
        // Read before the time: a helper that sleeps again has noted what it got.
        let asleep = is_asleep();
        let at = RECEIVED[index].swap(0, Ordering::SeqCst);
        if at + SAME_SENDING > since {
            return true;
        }
        if asleep && now() - since > SHORTEST_WAIT {
            return false;
        }
        // SAFETY: sleeps; the remaining time does not matter.
        unsafe { libc::nanosleep(&pause, ptr::null_mut()) };
    }
    false
}

/// Whether the helper sleeps in its `read`, by the state in `/proc/PID/stat` (proc_pid_stat(5)); yes too if that cannot be
/// read. Async-signal-safe.
fn is_asleep() -> bool {
    let mut stat = [0_u8; 64];
    // SAFETY: reads no more than fits; -1 is no descriptor, and an error for the kernel.
    let length = unsafe {
        libc::pread(STAT.load(Ordering::SeqCst), stat.as_mut_ptr().cast(), stat.len(), 0)
    };
    let stat = &stat[..usize::try_from(length).unwrap_or(0)];
    // The name before it is in parentheses, and may hold some.
    let state = stat.iter().rposition(|byte| *byte == b')').and_then(|end| stat.get(end + 2));
    state.is_none_or(|state| *state == b'S')
}

/// The helper shares the recorder's memory, but has its own descriptors and dispositions. Call this with all signals
/// blocked.
fn start(ends: &[RawFd; 2]) -> io::Result<()> {
    // The helper's stack as long as it lives.
    let stack = Vec::leak(vec![0_u128; STACK / size_of::<u128>()]);
    // No SIGCHLD at its end: the recorder waits for the program's.
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
    // Until it is ready, the helper writes to this thread's `errno`.
    while !READY.load(Ordering::SeqCst) {
        // SAFETY: checks whether the own child has ended: a seccomp filter may have killed it.
        if unsafe { libc::waitpid(pid, ptr::null_mut(), libc::__WALL | libc::WNOHANG) } == pid {
            HELPER.store(0, Ordering::SeqCst);
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        std::thread::yield_now();
    }
    if let Ok(stat) = File::open(format!("/proc/{pid}/stat")) {
        STAT.store(stat.into_raw_fd(), Ordering::SeqCst);
    }
    Ok(())
}

/// The helper's main function: runs until the other end of the pipe closes.
extern "C" fn helper_main(ends: *mut libc::c_void) -> i32 {
    // SAFETY: plain system calls. The descriptors and dispositions are its own. Of the shared memory it writes to
    // statics of this file, and to the `errno` of a thread that waits for it. `ends` stays valid until it is ready.
    unsafe {
        let [here, alive] = *ends.cast::<[RawFd; 2]>();
        libc::close(alive);
        close_all_but(&[here]);
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

/// Ends the helper together with the recorder.
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
