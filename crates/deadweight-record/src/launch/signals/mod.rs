//! Signals while a program runs: the program gets them as if it ran alone, and the recorder outlives it.
//!
//! A terminal's Ctrl-C reaches the whole group, so the program has it already: the recorder only notes it. A signal
//! sent to the recorder alone (`kill PID`, a supervisor's time-out) is forwarded; one that a process sent to the
//! whole group is not. `launch::run` calls `Inherited::restore_in_child` between fork and exec, so that the program
//! begins with the signals that deadweight inherited.

mod group_signals;

use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Noted, and forwarded to the program unless its group has the signal already.
const FORWARDED: [i32; 4] = [libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGHUP];
/// All signals whose disposition the recorder or Rust's runtime changes, and that the program must get back.
const CHANGED: [i32; 6] =
    [libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGHUP, libc::SIGCHLD, libc::SIGPIPE];

/// The process that [`forward`] sends to; 0 for none.
static PROGRAM: AtomicI32 = AtomicI32::new(0);
/// The recorder's own process id. Processes that it forks have its handlers too, and must not forward.
static RECORDER: AtomicI32 = AtomicI32::new(0);
/// SIGPIPE's disposition before Rust's runtime set it to "ignore".
static PIPE_AT_START: AtomicUsize = AtomicUsize::new(libc::SIG_DFL);
/// Which of descriptors 0 to 2 were closed before Rust's runtime put `/dev/null` there, as bits.
static CLOSED_AT_START: AtomicUsize = AtomicUsize::new(0);

/// Which of [`LIBC_SIGNALS`] were ignored before the C library's first thread made them its own, as bits.
static IGNORED_AT_START: AtomicUsize = AtomicUsize::new(0);
/// Signals that the C library reserves for its threads; its own functions refuse them. A parent that uses
/// `posix_spawn` leaves them ignored.
const LIBC_SIGNALS: [i32; 2] = [32, 33];

/// A signal action in the kernel's layout.
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

/// Runs before Rust's runtime, which changes SIGPIPE and opens missing standard descriptors without a trace. A
/// program under a wrapper like `nohup` may have SIGPIPE ignored or its input closed on purpose, and must still see
/// that.
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

/// Whether this standard descriptor was closed when the recorder was started. Async-signal-safe.
pub(crate) fn was_closed(fd: i32) -> bool {
    CLOSED_AT_START.load(Ordering::Relaxed) & 1 << fd != 0
}

// SAFETY: the loader calls functions of this section with C's calling convention, once.
#[used]
#[unsafe(link_section = ".init_array")]
static REMEMBER_START: extern "C" fn() = remember_start;

/// The one of [`FORWARDED`] that came last; 0 for none.
static NOTED: AtomicI32 = AtomicI32::new(0);

/// While this lives, Ctrl-C and similar signals do not end the recorder but are noted, because it has to clean up
/// first. Programs that run meanwhile get them as usual.
pub struct Interrupts {
    before: Vec<(i32, libc::sigaction)>,
}

impl Interrupts {
    /// Notes signals from now on; ignored ones stay ignored.
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
            // SAFETY: `action` is what the kernel returned earlier.
            unsafe { libc::sigaction(*signal, action, ptr::null_mut()) };
        }
    }
}

extern "C" fn note(signal: i32) {
    NOTED.store(signal, Ordering::SeqCst);
}

/// Dispositions and mask before the recorder changed them: the program must start with these.
#[derive(Clone, Copy)]
pub(crate) struct Inherited {
    actions: [libc::sigaction; CHANGED.len()],
    mask: libc::sigset_t,
}

/// While this lives, signals are forwarded to the program. Dropping it restores the recorder's dispositions.
pub(crate) struct Guard {
    before: Inherited,
    _one: MutexGuard<'static, ()>,
}

/// Dispositions belong to the whole process: one program at a time.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

impl Guard {
    /// Saves the dispositions and sets handlers for signals that must not kill the recorder. Call it before the
    /// program is started, so that no instant is uncovered.
    pub(crate) fn install() -> Self {
        let one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        PROGRAM.store(0, Ordering::SeqCst);
        RECORDER.store(std::process::id().cast_signed(), Ordering::SeqCst);
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

    /// The dispositions and mask that the program must start with.
    pub(crate) fn inherited(&self) -> Inherited {
        self.before
    }

    /// From now on, signals sent to the recorder go to this process.
    pub(crate) fn forward_to(&self, program: i32) {
        PROGRAM.store(program, Ordering::SeqCst);
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        PROGRAM.store(0, Ordering::SeqCst);
        for (signal, action) in CHANGED.into_iter().zip(&self.before.actions) {
            // SAFETY: `action` is what the kernel returned earlier.
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

    /// Restores them, in the child. Async-signal-safe.
    pub(crate) fn restore_in_child(&self) {
        for (signal, action) in CHANGED.into_iter().zip(&self.actions) {
            let mut action = *action;
            if signal == libc::SIGPIPE {
                action.sa_sigaction = PIPE_AT_START.load(Ordering::Relaxed);
            }
            // A handler does not survive exec: the kernel replaces it by the default. SAFETY: plain system calls on
            // values from the kernel.
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

/// Does `act` with all signals blocked for this thread; pending ones are delivered afterwards.
pub(crate) fn with_signals_blocked<T>(act: impl FnOnce() -> T) -> T {
    // SAFETY: all-zero is a valid set; the calls fill in and read sets of the recorder.
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

/// Whether the user asked for an end (Ctrl-C, `kill`) while a program ran, even if the program ignored it: no further
/// run is wanted.
#[must_use]
pub fn interrupted() -> bool {
    interrupted_by().is_some()
}

/// The signal by which the user asked for that, if so.
#[must_use]
pub fn interrupted_by() -> Option<i32> {
    Some(NOTED.load(Ordering::SeqCst)).filter(|signal| *signal != 0)
}

/// Forwards a signal, unless the program's group got it already, as it does if the kernel itself sent it. A forked process
/// has a copy of the memory, in which nobody notes what the group got.
extern "C" fn forward(signal: i32, details: *mut libc::siginfo_t, _: *mut libc::c_void) {
    NOTED.store(signal, Ordering::SeqCst);
    let program = PROGRAM.load(Ordering::SeqCst);
    // SAFETY: with SA_SIGINFO the kernel passes a valid siginfo; kill is async-signal-safe. The interrupted code may be
    // about to read its `errno`.
    unsafe {
        let errno = *libc::__errno_location();
        let is_recorder = libc::getpid() == RECORDER.load(Ordering::SeqCst);
        let from_a_process = program > 0 && (*details).si_code <= 0;
        if is_recorder && from_a_process && !group_signals::was_sent_to_group(signal) {
            libc::kill(program, signal);
        }
        *libc::__errno_location() = errno;
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
