//! Signals while a program runs: it must get them as if we were not there, and we must outlive it.
//!
//! A terminal's Ctrl-C reaches the whole group, so the program has it already: we only take note.
//! A signal sent to us alone (`kill PID`, a supervisor's time-out) is handed on, one that a process sent to
//! our whole group is not.

mod group_signals;

use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Noted, and handed on to the program unless its group has it already.
const FORWARDED: [i32; 4] = [libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGHUP];
/// Everything whose disposition we change, or Rust's runtime did, and the program must get back.
const CHANGED: [i32; 6] =
    [libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGHUP, libc::SIGCHLD, libc::SIGPIPE];

/// The process that [`forward`] sends to; 0 for none.
static PROGRAM: AtomicI32 = AtomicI32::new(0);
/// SIGPIPE's disposition before Rust's runtime set it to "ignore".
static PIPE_AT_START: AtomicUsize = AtomicUsize::new(libc::SIG_DFL);
/// Which of descriptors 0 to 2 were closed before Rust's runtime put `/dev/null` there, as bits.
static CLOSED_AT_START: AtomicUsize = AtomicUsize::new(0);

/// Which of [`LIBC_SIGNALS`] were ignored before the C library's first thread made them its own, as bits.
static IGNORED_AT_START: AtomicUsize = AtomicUsize::new(0);
/// Signals that the C library keeps for its threads, and that its own calls refuse. Who starts a
/// program by `posix_spawn` leaves them ignored.
const LIBC_SIGNALS: [i32; 2] = [32, 33];

/// A disposition as the kernel has it.
#[repr(C)]
#[derive(Default)]
struct KernelAction {
    action: usize,
    flags: usize,
    restorer: usize,
    mask: u64,
}

/// `rt_sigaction` itself. Async-signal-safe.
///
/// # Safety
/// `new` must be null or what the kernel can do with this signal.
unsafe fn rt_sigaction(signal: i32, new: *const KernelAction, old: *mut KernelAction) {
    // SAFETY: the caller's; the kernel fills in no more than `old`.
    unsafe { libc::syscall(libc::SYS_rt_sigaction, signal, new, old, size_of::<u64>()) };
}

/// Runs before Rust's runtime, which changes SIGPIPE and opens missing standard descriptors, and
/// leaves no trace of what was. A program run under `nohup`-like wrappers may have SIGPIPE ignored
/// or input closed on purpose, and must still see that.
extern "C" fn remember_start() {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: sigaction only reads the disposition into `action`, which is large enough; fcntl only
    // asks for flags.
    unsafe {
        if libc::sigaction(libc::SIGPIPE, ptr::null(), action.as_mut_ptr()) == 0 {
            PIPE_AT_START.store(action.assume_init().sa_sigaction, Ordering::Relaxed);
        }
        let closed = (0..3).filter(|fd| libc::fcntl(*fd, libc::F_GETFD) == -1);
        CLOSED_AT_START.store(closed.fold(0, |bits, fd| bits | 1 << fd), Ordering::Relaxed);
        let ignored = LIBC_SIGNALS.map(|signal| {
            let mut old = KernelAction::default();
            rt_sigaction(signal, ptr::null(), &mut old);
            old.action == libc::SIG_IGN
        });
        let bits = usize::from(ignored[0]) | usize::from(ignored[1]) << 1;
        IGNORED_AT_START.store(bits, Ordering::Relaxed);
    }
}

/// Whether this standard descriptor was closed when we were started. Async-signal-safe.
pub(crate) fn was_closed(fd: i32) -> bool {
    CLOSED_AT_START.load(Ordering::Relaxed) & 1 << fd != 0
}

// SAFETY: the loader calls functions of this section with C's calling convention, once.
#[used]
#[unsafe(link_section = ".init_array")]
static REMEMBER_START: extern "C" fn() = remember_start;

/// Which of [`FORWARDED`] came last; 0 for none.
static NOTED: AtomicI32 = AtomicI32::new(0);

/// While this lives, Ctrl-C and its like do not end us but are noted: there is something to clear
/// away first. Programs that run meanwhile get them as ever.
pub struct Interrupts {
    before: Vec<(i32, libc::sigaction)>,
}

impl Interrupts {
    /// Notes them from now on; those that were ignored stay so.
    #[must_use]
    pub fn note() -> Self {
        NOTED.store(0, Ordering::SeqCst);
        let mut before = Vec::new();
        for signal in FORWARDED {
            let mut action = MaybeUninit::<libc::sigaction>::zeroed();
            // SAFETY: all-zero is a valid sigaction; the call only fills it in.
            let action = unsafe {
                libc::sigaction(signal, ptr::null(), action.as_mut_ptr());
                action.assume_init()
            };
            if action.sa_sigaction != libc::SIG_IGN {
                set(signal, note as *const () as usize);
                before.push((signal, action));
            }
        }
        Self { before }
    }

    /// The signal that was noted last, if one was.
    #[must_use]
    pub fn seen(&self) -> Option<i32> {
        Some(NOTED.load(Ordering::SeqCst)).filter(|signal| *signal != 0)
    }
}

impl std::fmt::Debug for Interrupts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Interrupts").field("seen", &self.seen()).finish()
    }
}

impl Drop for Interrupts {
    fn drop(&mut self) {
        for (signal, action) in &self.before {
            // SAFETY: `action` is what the kernel told us earlier.
            unsafe { libc::sigaction(*signal, action, ptr::null_mut()) };
        }
    }
}

extern "C" fn note(signal: i32) {
    NOTED.store(signal, Ordering::SeqCst);
}

/// Dispositions and mask as they were before us: what the program must start with.
#[derive(Clone, Copy)]
pub(crate) struct Inherited {
    actions: [libc::sigaction; CHANGED.len()],
    mask: libc::sigset_t,
}

/// While this lives, signals are the program's business; dropped, they are ours again.
pub(crate) struct Guard {
    before: Inherited,
    _one: MutexGuard<'static, ()>,
}

/// Dispositions belong to the whole process: one program at a time.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

impl Guard {
    /// Takes note of the dispositions and readies the ones that must not kill us. To be called
    /// before the program is started, so that no instant is left uncovered.
    pub(crate) fn install() -> Self {
        let one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        PROGRAM.store(0, Ordering::SeqCst);
        group_signals::start_once();
        let before = Inherited::read();
        // A parent that ignores SIGCHLD would never get an exit status.
        set(libc::SIGCHLD, libc::SIG_DFL);
        for (signal, was) in CHANGED.into_iter().zip(&before.actions) {
            if FORWARDED.contains(&signal) && was.sa_sigaction != libc::SIG_IGN {
                set(signal, forward as *const () as usize);
            }
        }
        Self { before, _one: one }
    }

    /// What the program must start with.
    pub(crate) fn inherited(&self) -> Inherited {
        self.before
    }

    /// Signals sent to us go to this process from now on.
    pub(crate) fn forward_to(&self, program: i32) {
        PROGRAM.store(program, Ordering::SeqCst);
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        PROGRAM.store(0, Ordering::SeqCst);
        for (signal, action) in CHANGED.into_iter().zip(&self.before.actions) {
            // SAFETY: `action` is what the kernel told us earlier.
            unsafe { libc::sigaction(signal, action, ptr::null_mut()) };
        }
    }
}

impl Inherited {
    fn read() -> Self {
        // SAFETY: all-zero is a valid sigaction and sigset; the calls only fill them in.
        unsafe {
            let mut before: Self = MaybeUninit::zeroed().assume_init();
            for (signal, action) in CHANGED.into_iter().zip(&mut before.actions) {
                libc::sigaction(signal, ptr::null(), action);
            }
            libc::pthread_sigmask(libc::SIG_SETMASK, ptr::null(), &mut before.mask);
            before
        }
    }

    /// Puts them in place, in the child. Async-signal-safe.
    pub(crate) fn restore_in_child(&self) {
        for (signal, action) in CHANGED.into_iter().zip(&self.actions) {
            let mut action = *action;
            if signal == libc::SIGPIPE {
                action.sa_sigaction = PIPE_AT_START.load(Ordering::Relaxed);
            }
            // A function of ours does not survive exec: the kernel makes it the default.
            // SAFETY: plain system calls on values that the kernel gave us.
            unsafe { libc::sigaction(signal, &action, ptr::null_mut()) };
        }
        let ignore = KernelAction { action: libc::SIG_IGN, ..KernelAction::default() };
        for (bit, signal) in LIBC_SIGNALS.into_iter().enumerate() {
            if IGNORED_AT_START.load(Ordering::Relaxed) & 1 << bit != 0 {
                // SAFETY: it was ignored before.
                unsafe { rt_sigaction(signal, &ignore, ptr::null_mut()) };
            }
        }
        // SAFETY: as above.
        unsafe { libc::sigprocmask(libc::SIG_SETMASK, &self.mask, ptr::null_mut()) };
    }
}

/// Does `act` with all signals held back from this thread; they come afterwards.
pub(crate) fn with_signals_blocked<T>(act: impl FnOnce() -> T) -> T {
    // SAFETY: all-zero is a valid set; the calls fill in and read sets of ours.
    unsafe {
        let mut all: libc::sigset_t = MaybeUninit::zeroed().assume_init();
        let mut before = all;
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
        let did = act();
        libc::pthread_sigmask(libc::SIG_SETMASK, &before, ptr::null_mut());
        did
    }
}

/// Whether somebody asked for an end (Ctrl-C, `kill`) while a program ran, also if the program
/// went on or ended as if nothing had been: no further run is wanted.
#[must_use]
pub fn interrupted() -> bool {
    NOTED.load(Ordering::SeqCst) != 0
}

/// Hands a signal on, unless the program's group had it already: as it has what the kernel itself sends.
extern "C" fn forward(signal: i32, details: *mut libc::siginfo_t, _: *mut libc::c_void) {
    NOTED.store(signal, Ordering::SeqCst);
    let program = PROGRAM.load(Ordering::SeqCst);
    // SAFETY: with SA_SIGINFO the kernel passes a valid siginfo; kill is async-signal-safe.
    unsafe {
        if program > 0 && (*details).si_code <= 0 && !group_signals::was_sent_to_group(signal) {
            libc::kill(program, signal);
        }
    }
}

fn set(signal: i32, action: usize) {
    let mut new = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: all-zero is a valid sigaction; `action` is a disposition or a function of this
    // file that touches atomics and calls kill only.
    unsafe {
        let new = new.assume_init_mut();
        new.sa_sigaction = action;
        new.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
        libc::sigaction(signal, new, ptr::null_mut());
    }
}
