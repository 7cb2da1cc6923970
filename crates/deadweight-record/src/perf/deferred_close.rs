//! Closes perf events behind our back, because that is slow: for each tracepoint the kernel waits
//! some 40 ms until no CPU can be in it any more.
//!
//! A child of ours holds a copy of every event, so that our own close is never the last one. It
//! waits for a socket to close, which happens however we end, and lets go at once of what it is socket there. Then it closes first what slows
//! others down: a tracepoint of system calls does so for every call of the machine, a place for
//! every program that passes it. A clean run waits for that, also if another deadweight left it.
//! The other tracepoints cost next to nothing while nobody listens: they stay for a moment longer,
//! and a recording that follows soon neither opens them anew nor waits for their closing.

use crate::clock::now;
use crate::error::Error;
use crate::perf::private_dir::Folder;
use crate::perf::tracefs::Tracefs;
use crate::procfs::memory_budget::trim_heap;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, RawFd};
use std::sync::OnceLock;

/// How long tracepoints that slow nobody down stay open, in seconds.
const LINGER: u32 = 1;
/// The longest that a clean run waits for others to close theirs, in ns. It takes 100 ms on the root rung, and 40 ms
/// for each recorded system call on the user rung.
const LONGEST_WAIT_FOR_CLEAN_RUN: u64 = 5_000_000_000;
/// How often it looks, in µs.
const POLL_US: u32 = 1_000;

/// What those lock who close a tracepoint, and those whom that would disturb: any user may open it.
const CLOSE_LOCK: &str = "/sys/bus/event_source/devices/tracepoint/type";
/// How often a child looks whether it is its close_lock, and how long it leaves the lock alone then, in µs: who wants room
/// looks more often, so that it does not wait until all is closed.
pub(crate) const PAUSE: u32 = 2_000;
/// A closing that takes longer, in ns, is a tracepoint's last.
const LONG: u64 = 1_000_000;
/// The longest that a child waits for its turns, in ns, and a recording until nobody closes one: others may have
/// the lock for as long as they like.
const LONGEST_WAIT: u64 = 10_000_000_000;
const LONGEST_WAIT_FOR_ROOM: u64 = 2_000_000_000;

/// Descriptors that the child is socket of at a time.
const BATCH: usize = 1024;
/// The longest that we wait for it to let go of them, in ms.
const CLOSE_TIMEOUT_MS: i32 = 2000;

/// While this lives, the child waits.
pub(crate) struct DeferredClose {
    alive: File,
    /// Locked while something is open that slows others down. The lock belongs to the child too,
    /// and goes when both have closed the file. Every deadweight opens the same one.
    mark: File,
}

/// What has to be closed.
pub(crate) struct EventFiles {
    /// What slows others down, in the order in which it is to be closed.
    pub(crate) slowing: Vec<RawFd>,
    /// What does not.
    pub(crate) harmless: Vec<RawFd>,
}

impl DeferredClose {
    /// Hands copies of these descriptors to a child.
    pub(crate) fn start(opened: &EventFiles) -> Result<Self, Error> {
        let mark = mark()?;
        let close_lock = close_lock();
        let mut ends = [0; 2];
        let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC;
        // SAFETY: on success both ends are ours.
        if unsafe { libc::socketpair(libc::AF_UNIX, kind, 0, ends.as_mut_ptr()) } != 0 {
            return Err(Error::last("cannot make a pair of sockets"));
        }
        // SAFETY: a descriptor that was just made.
        let alive = unsafe { File::from_raw_fd(ends[1]) };
        let mut keep = [&opened.slowing[..], &opened.harmless].concat();
        keep.extend([ends[0], mark.as_raw_fd()]);
        keep.extend(close_lock.as_ref().map(AsRawFd::as_raw_fd));
        keep.sort_unstable();
        // What is free inside of us would be the child's for as long as it lives.
        trim_heap();
        // SAFETY: the child makes plain system calls on memory that was prepared before.
        let child = unsafe { libc::fork() };
        if child == 0 {
            // Its own child does the work: nobody waits for that one, however long we live.
            // SAFETY: as above.
            if unsafe { libc::fork() } != 0 {
                // SAFETY: ends the process.
                unsafe { libc::_exit(0) };
            }
            let marks =
                [Some(&mark), close_lock.as_ref()].map(|f| f.map_or(-1, AsRawFd::as_raw_fd));
            wait_and_close(&keep, ends[0], opened, marks);
        }
        // SAFETY: our copy of the child's end.
        unsafe { libc::close(ends[0]) };
        if child < 0 {
            return Err(Error::last("cannot fork"));
        }
        // SAFETY: waits for our own child, which has just ended.
        unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
        Ok(Self { alive, mark })
    }

    /// Has the child let go of copies of these descriptors: then our own close is the last. False if it was not seen to.
    pub(crate) fn close_copies(&self, files: &[RawFd]) -> bool {
        let fd = self.alive.as_raw_fd();
        files.chunks(BATCH).all(|files| {
            let (mut socket, mut answer) = (&self.alive, [0; 1]);
            // SAFETY: descriptors are plain numbers, and as bytes they are read only.
            let bytes = unsafe {
                std::slice::from_raw_parts(files.as_ptr().cast::<u8>(), size_of_val(files))
            };
            let mut polled = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
            socket.write_all(bytes).is_ok()
                // SAFETY: one descriptor of ours.
                && unsafe { libc::poll(&mut polled, 1, CLOSE_TIMEOUT_MS) } > 0
                && socket.read(&mut answer).is_ok_and(|length| length == 1)
        })
    }
}

impl Drop for DeferredClose {
    fn drop(&mut self) {
        // Before the pipe closes, so that there is no instant at which nobody would wait.
        // SAFETY: a lock on a descriptor of ours. Without it, clean runs are slower for a moment.
        unsafe { libc::flock(self.mark.as_raw_fd(), libc::LOCK_SH) };
    }
}

/// The file that is locked while something slows others down: the kernel's directory of tracepoints,
/// or for who may not open that, one of his own. Who has no folder either (root of a user namespace, whose folders are
/// somebody else's) has one that no other deadweight knows.
fn mark() -> Result<File, Error> {
    Tracefs::open()
        .map(Tracefs::into_directory)
        .ok()
        .or_else(|| Folder::open().and_then(|folder| folder.file("mark")))
        .map_or_else(unnamed, Ok)
}

/// A file without a name.
fn unnamed() -> Result<File, Error> {
    // SAFETY: a name that lives; the descriptor is new and nobody else's.
    unsafe {
        match libc::memfd_create(c"deadweight-mark".as_ptr(), libc::MFD_CLOEXEC) {
            -1 => Err(Error::last("cannot make a file to lock")),
            file => Ok(File::from_raw_fd(file)),
        }
    }
}

/// The file that is locked by who closes a tracepoint.
pub(crate) fn close_lock() -> Option<File> {
    File::open(CLOSE_LOCK).ok().or_else(|| Folder::open()?.lock())
}

/// Locks a file as soon as that can be had, or goes on without it `at_the_latest`. Looks every so many µs.
fn lock(file: RawFd, how: i32, every: u32, at_the_latest: u64) {
    // SAFETY: plain system calls on a descriptor that is ours.
    unsafe {
        while libc::flock(file, how | libc::LOCK_NB) != 0
            && *libc::__errno_location() == libc::EWOULDBLOCK
            && now() < at_the_latest
        {
            libc::usleep(every);
        }
    }
}

/// Holds off those who close tracepoints, whoever they are, for as long as the file is open: each of them keeps
/// everybody from opening one for up to 40 ms, and each task that dies from letting go of its own. Where any tracepoint
/// of a system call is open, all calls of the machine take 50 ns more meanwhile.
pub(crate) fn hold_off_closing() -> Option<File> {
    let close_lock = close_lock()?;
    lock(close_lock.as_raw_fd(), libc::LOCK_SH, PAUSE / 20, now() + LONGEST_WAIT_FOR_ROOM);
    Some(close_lock)
}

/// Waits until nothing is open any more that slows a clean run down, unless it takes too long:
/// then somebody else is at work, and will be for long.
pub(crate) fn wait() {
    static MARK: OnceLock<Option<File>> = OnceLock::new();
    let Some(mark) = MARK.get_or_init(|| mark().ok()) else { return };
    let mark = mark.as_raw_fd();
    lock(mark, libc::LOCK_EX, POLL_US, now() + LONGEST_WAIT_FOR_CLEAN_RUN);
    // SAFETY: a descriptor of ours; the lock is given back at once.
    unsafe { libc::flock(mark, libc::LOCK_UN) };
}

/// The child's life. It keeps nothing but the events open, so that nobody waits for it.
fn wait_and_close(keep: &[RawFd], socket: RawFd, opened: &EventFiles, marks: [RawFd; 2]) -> ! {
    let [mark, close_lock] = marks;
    // SAFETY: plain system calls; ends the process.
    unsafe {
        for signal in [libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGHUP] {
            libc::signal(signal, libc::SIG_IGN);
        }
        libc::chdir(c"/".as_ptr());
        let mut from = 0;
        for fd in keep {
            close_range(from, fd - 1);
            from = fd + 1;
        }
        close_range(from, RawFd::MAX);
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
        libc::close(mark);
        libc::sleep(LINGER);
        close_under_lock(&opened.harmless, close_lock, PAUSE, at_the_latest);
        libc::_exit(0)
    }
}

/// Closes them one after the other, each while nobody is disturbed by that, or when it is that late. Who pauses for
/// longer, in µs, leaves the close_lock to others.
///
/// # Safety
/// Nobody else uses these descriptors.
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
            // What took no time kept nobody waiting: another event of its tracepoint is open yet.
            if now() - begun > LONG {
                libc::usleep(pause);
            }
        }
    }
}

/// Closes all descriptors of this range, if any. Async-signal-safe.
///
/// # Safety
/// For a child only, to which nothing of what is closed belongs.
pub(crate) unsafe fn close_range(from: RawFd, to: RawFd) {
    if from <= to {
        // SAFETY: the caller's.
        unsafe { libc::syscall(libc::SYS_close_range, from, to, 0) };
    }
}
