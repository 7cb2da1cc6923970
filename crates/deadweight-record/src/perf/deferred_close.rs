//! Closes perf events in the background, because closing is slow: for each tracepoint the kernel waits some 40 ms
//! until no CPU can be in it any more.
//!
//! A child process holds a copy of every event, so that the recorder's own close is never the last one. The child
//! waits until its socket closes, which happens however the recorder ends. Descriptors that it receives there it
//! closes at once. Then it first closes the events that slow others down: a tracepoint of system calls slows every
//! call of the machine, a uprobe every program that executes it. A clean run waits for that, also if another
//! deadweight left the events open. The other tracepoints cost next to nothing while they are disabled: they stay
//! open for a moment longer, so that a recording that follows soon neither opens them anew nor waits for their close.

use crate::clock::now;
use crate::descriptors::close_all_but;
use crate::error::Error;
use crate::perf::private_dir::Folder;
use crate::perf::tracefs::Tracefs;
use crate::procfs::command_line::{CLOSES_EVENTS, CommandLine};
use crate::procfs::memory_budget::trim_heap;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, RawFd};
use std::sync::OnceLock;

/// How long tracepoints that slow nothing down stay open, in seconds.
const LINGER: u32 = 1;
/// The longest that a clean run waits for others to close their events, in ns. Closing takes 100 ms on the root rung,
/// and 40 ms for each recorded system call on the user rung.
const LONGEST_WAIT_FOR_CLEAN_RUN: u64 = 5_000_000_000;
/// How often a clean run checks, in µs.
const POLL_US: u32 = 1_000;

/// A process locks this file while it closes a tracepoint or while it must not be disturbed by that. Any user may
/// open it.
const CLOSE_LOCK: &str = "/sys/bus/event_source/devices/tracepoint/type";
/// How often a child tries to get the lock, and how long it then leaves the lock to others, in µs. A recording that
/// must not be disturbed tries more often, so that it does not wait until everything is closed.
pub(crate) const PAUSE: u32 = 2_000;
/// A close that takes longer, in ns, was the last one of a tracepoint.
const LAST_CLOSE_NS: u64 = 1_000_000;
/// The longest that a child waits for the lock, in ns, and a recording until no process closes a tracepoint: others
/// may hold the lock for as long as they like.
const LONGEST_WAIT: u64 = 10_000_000_000;
const LONGEST_WAIT_FOR_LOCK: u64 = 2_000_000_000;

/// The most descriptors per message to the child.
const BATCH: usize = 1024;
/// The longest wait for the child to close them, in ms.
const CLOSE_TIMEOUT_MS: i32 = 2000;

/// While this lives, the child waits.
pub(crate) struct DeferredClose {
    alive: File,
    /// Locked while events are open that slow others down. The lock is shared with the child, and is released when
    /// both have closed the file. Every deadweight opens the same file.
    slowing_lock: File,
}

/// The descriptors that must be closed.
pub(crate) struct EventFiles {
    /// Events that slow others down, in the order in which they are to be closed.
    pub(crate) slowing: Vec<RawFd>,
    /// The other events.
    pub(crate) harmless: Vec<RawFd>,
}

impl DeferredClose {
    /// Passes copies of these descriptors to a child.
    pub(crate) fn start(opened: &EventFiles) -> Result<Self, Error> {
        let slowing_lock = open_slowing_lock()?;
        let close_lock = close_lock();
        let mut ends = [0; 2];
        let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC;
        // SAFETY: on success both ends are new and owned here.
        if unsafe { libc::socketpair(libc::AF_UNIX, kind, 0, ends.as_mut_ptr()) } != 0 {
            return Err(Error::last("cannot make a pair of sockets"));
        }
        // SAFETY: a new descriptor.
        let alive = unsafe { File::from_raw_fd(ends[1]) };
        let mut keep = [&opened.slowing[..], &opened.harmless].concat();
        keep.extend([ends[0], slowing_lock.as_raw_fd()]);
        keep.extend(close_lock.as_ref().map(AsRawFd::as_raw_fd));
        keep.sort_unstable();
        // Unused heap memory would be copied to the child for as long as it lives.
        trim_heap();
        let command_line = CommandLine::of_self();
        // SAFETY: the child makes plain system calls on memory that was prepared before.
        let child = unsafe { libc::fork() };
        if child == 0 {
            // A grandchild does the work: init reaps it. SAFETY: as above.
            if unsafe { libc::fork() } != 0 {
                // SAFETY: ends the process.
                unsafe { libc::_exit(0) };
            }
            if let Some(line) = command_line {
                // SAFETY: the child shares no memory, and needs no arguments.
                unsafe { line.replace(CLOSES_EVENTS) };
            }
            let locks = [Some(&slowing_lock), close_lock.as_ref()]
                .map(|f| f.map_or(-1, AsRawFd::as_raw_fd));
            wait_and_close(&keep, ends[0], opened, locks);
        }
        // SAFETY: the parent's copy of the child's end.
        unsafe { libc::close(ends[0]) };
        if child < 0 {
            return Err(Error::last("cannot fork"));
        }
        // SAFETY: waits for the own child, which ends at once.
        unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
        Ok(Self { alive, slowing_lock })
    }

    /// Makes the child close its copies of these descriptors, so that the own close is the last. False if it did not
    /// confirm.
    pub(crate) fn close_copies(&self, files: &[RawFd]) -> bool {
        let fd = self.alive.as_raw_fd();
        files.chunks(BATCH).all(|files| {
            let (mut socket, mut answer) = (&self.alive, [0; 1]);
            // SAFETY: descriptors are plain numbers, and are only read as bytes.
            let bytes = unsafe {
                std::slice::from_raw_parts(files.as_ptr().cast::<u8>(), size_of_val(files))
            };
            let mut polled = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
            socket.write_all(bytes).is_ok()
                // SAFETY: one open descriptor.
                && unsafe { libc::poll(&mut polled, 1, CLOSE_TIMEOUT_MS) } > 0
                && socket.read(&mut answer).is_ok_and(|length| length == 1)
        })
    }
}

impl Drop for DeferredClose {
    fn drop(&mut self) {
        // Before the socket closes, so that clean runs wait at every instant. SAFETY: a lock on an open descriptor.
        // Without it, clean runs are slower for a moment.
        unsafe { libc::flock(self.slowing_lock.as_raw_fd(), libc::LOCK_SH) };
    }
}

/// The file that is locked while events slow others down: the kernel's directory of tracepoints, or a file in the
/// user's private directory where that is not accessible. Root of a user namespace has neither and gets a file that
/// no other deadweight knows.
fn open_slowing_lock() -> Result<File, Error> {
    Tracefs::open()
        .map(Tracefs::into_directory)
        .ok()
        .or_else(|| Folder::open().and_then(|folder| folder.file("mark")))
        .map_or_else(unnamed, Ok)
}

/// A file without a name.
fn unnamed() -> Result<File, Error> {
    // SAFETY: the name is a constant; the descriptor is new.
    unsafe {
        match libc::memfd_create(c"deadweight-mark".as_ptr(), libc::MFD_CLOEXEC) {
            -1 => Err(Error::last("cannot make a file to lock")),
            file => Ok(File::from_raw_fd(file)),
        }
    }
}

/// Opens the file that is locked during the close of a tracepoint.
pub(crate) fn close_lock() -> Option<File> {
    File::open(CLOSE_LOCK).ok().or_else(|| Folder::open()?.lock())
}

/// Locks a file, or gives up `at_the_latest`. Tries every so many µs.
fn lock(file: RawFd, how: i32, every: u32, at_the_latest: u64) {
    // SAFETY: plain system calls on an open descriptor.
    unsafe {
        while libc::flock(file, how | libc::LOCK_NB) != 0
            && *libc::__errno_location() == libc::EWOULDBLOCK
            && now() < at_the_latest
        {
            libc::usleep(every);
        }
    }
}

/// Holds off all processes that close tracepoints while the returned file is open. Each close keeps every process
/// from opening a tracepoint for up to 40 ms, and each exiting task from closing its events. As long as any
/// tracepoint of a system call is open, all calls of the machine take 50 ns more.
pub(crate) fn hold_off_closing() -> Option<File> {
    let close_lock = close_lock()?;
    lock(close_lock.as_raw_fd(), libc::LOCK_SH, PAUSE / 20, now() + LONGEST_WAIT_FOR_LOCK);
    Some(close_lock)
}

/// Waits until no events are open that slow a clean run down. Gives up after a while: then another recording is
/// running.
pub(crate) fn wait() {
    static SLOWING_LOCK: OnceLock<Option<File>> = OnceLock::new();
    let Some(slowing_lock) = SLOWING_LOCK.get_or_init(|| open_slowing_lock().ok()) else { return };
    let slowing_lock = slowing_lock.as_raw_fd();
    lock(slowing_lock, libc::LOCK_EX, POLL_US, now() + LONGEST_WAIT_FOR_CLEAN_RUN);
    // SAFETY: an open descriptor; the lock is released at once.
    unsafe { libc::flock(slowing_lock, libc::LOCK_UN) };
}

/// The child's main function. It keeps only the events open, so that no process waits for its other descriptors.
fn wait_and_close(keep: &[RawFd], socket: RawFd, opened: &EventFiles, locks: [RawFd; 2]) -> ! {
    let [slowing_lock, close_lock] = locks;
    // SAFETY: plain system calls; ends the process.
    unsafe {
        for signal in [libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGHUP] {
            libc::signal(signal, libc::SIG_IGN);
        }
        libc::chdir(c"/".as_ptr());
        close_all_but(keep);
        let mut files = [0 as RawFd; BATCH];
        loop {
            let length = libc::read(socket, files.as_mut_ptr().cast(), size_of_val(&files));
            let Ok(length @ 1..) = usize::try_from(length) else { break };
            for fd in files.iter().take(length / size_of::<RawFd>()) {
                libc::close(*fd);
            }
            libc::write(socket, [0_u8].as_ptr().cast(), 1);
        }
        let at_the_latest = now() + LONGEST_WAIT;
        close_under_lock(&opened.slowing, close_lock, PAUSE, at_the_latest);
        libc::close(slowing_lock);
        libc::sleep(LINGER);
        close_under_lock(&opened.harmless, close_lock, PAUSE, at_the_latest);
        libc::_exit(0)
    }
}

/// Closes them one after the other, each under the lock, or without it when it is too late. A longer pause, in µs,
/// leaves the lock to others.
///
/// # Safety
/// These descriptors must not be used elsewhere.
pub(crate) unsafe fn close_under_lock(
    files: &[RawFd],
    close_lock: RawFd,
    pause: u32,
    at_the_latest: u64,
) {
    for file in files {
        lock(close_lock, libc::LOCK_EX, pause, at_the_latest);
        let begun = now();
        // SAFETY: as the caller says.
        unsafe {
            libc::close(*file);
            libc::flock(close_lock, libc::LOCK_UN);
            // A quick close disturbed nothing: another event of the same tracepoint is still open.
            if now() - begun > LAST_CLOSE_NS {
                libc::usleep(pause);
            }
        }
    }
}
