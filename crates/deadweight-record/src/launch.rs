//! Starts a program behind a barrier, lets it go, and waits for its end.
//!
//! The program must not notice us: same process group, environment, signal dispositions and mask;
//! no descriptor of ours is open in it. Clean and traced runs use the same barrier and the same
//! two instants: from just before it is released to just after `wait4` returned.

use crate::counting::Count;
use crate::error::Error;
use crate::limit;
use crate::signals::{Guard, Inherited, was_closed};
use crate::stand_in::{Prepared, StandIn};
use deadweight_core::trace::{Exit, Usage};
use deadweight_core::units::Ns;
use std::ffi::{CString, OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::ptr;
use std::time::Duration;

/// What to run, and how.
#[derive(Debug, Default)]
pub struct Request {
    /// The command and its arguments. Found like `execvp` does: in `PATH` unless it has a slash.
    pub argv: Vec<OsString>,
    /// Its standard input.
    pub stdin: Stream,
    /// Its standard output.
    pub stdout: Stream,
    /// Its standard error.
    pub stderr: Stream,
    /// Where to run it; none for our own directory.
    pub dir: Option<PathBuf>,
    /// Places in binaries to watch, beside what the plan records.
    pub probes: Vec<Probe>,
    /// Places whose hits are counted. That slows the program down.
    pub counts: Vec<Count>,
    /// For how long they are counted if there are hits enough to know proportions; none: 10 s.
    pub counting: Option<Duration>,
    /// A copy that takes a binary's place.
    pub stand_in: Option<StandIn>,
    /// After so long a run without tracing is ended, by force.
    pub limit: Option<Duration>,
}

/// One of the three standard streams of a program.
#[derive(Debug, Default)]
pub enum Stream {
    /// Ours.
    #[default]
    Inherit,
    /// This file, at its present offset.
    File(File),
}

/// A place in a binary that makes a [`RawKind::Probe`](crate::RawKind::Probe) when reached.
#[derive(Clone, Debug)]
pub struct Probe {
    /// What the events are called.
    pub name: String,
    /// The binary.
    pub path: PathBuf,
    /// Offset in the file of an instruction's first byte.
    pub file_offset: u64,
    /// Its address in memory, where that is the same in each run.
    pub fixed: Option<u64>,
    /// What to note.
    pub args: [Register; 2],
    /// Whether to take the user stack too.
    pub stack: bool,
}

/// A register of the probed task.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Register {
    /// None: the argument is 0.
    None,
    /// By its number in the kernel's `perf_regs.h` for this architecture (x86-64: 0 is rax,
    /// 22 is r14).
    Number(u8),
}

/// The clock of every event, in ns.
pub(crate) fn now() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call only writes `time`.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC_RAW, &mut time) };
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
}

/// A forked program that waits behind the barrier.
pub(crate) struct Waiting {
    pid: i32,
    barrier: File,
    failure: File,
    asked: Asked,
}

/// A program that was let go.
pub(crate) struct Running {
    pid: i32,
    start: u64,
    /// CPU time that it had used behind the barrier: ours, not the program's.
    used_before: Ns,
    failure: File,
    asked: Asked,
}

/// What was asked for, to name it if it cannot be had.
struct Asked {
    name: OsString,
    dir: PathBuf,
    candidates: Vec<CString>,
}

/// A program that ended.
pub(crate) struct Ended {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) exit: Exit,
    pub(crate) usage: Usage,
    /// See [`CleanRun`](crate::CleanRun).
    pub(crate) displaced: u64,
    pub(crate) blocks_read: u64,
}

/// Everything that the child needs after fork, when it may not allocate any more.
struct Child {
    barrier: RawFd,
    failure: RawFd,
    /// Our ends: while the child held the barrier's, our death would not open it.
    ours: [RawFd; 2],
    inherited: Inherited,
    descriptors: Option<libc::rlimit>,
    streams: [Option<RawFd>; 3],
    dir: Option<CString>,
    stand_in: Option<Prepared>,
    candidates: Vec<*const libc::c_char>,
    argv: Vec<*const libc::c_char>,
    /// `sh`, a place for the candidate, the arguments: for a script without an interpreter line.
    script_argv: Vec<*const libc::c_char>,
}

/// What the child says when it fails: an error number and where.
const AT_DIRECTORY: i32 = -1;
const NOWHERE: i32 = -2;
const AT_STAND_IN: i32 = -3;

impl Waiting {
    /// Forks the program up to its barrier.
    pub(crate) fn fork(request: &Request, guard: &Guard) -> Result<Self, Error> {
        let argv = c_strings(&request.argv)?;
        let candidates = candidates(&request.argv)?;
        let dir = request.dir.as_ref().map(|d| c_string(d.as_os_str())).transpose()?;
        let prepare = |s: &StandIn| s.prepare(&candidates, request.dir.as_deref());
        let stand_in = request.stand_in.as_ref().map(prepare).transpose()?;
        let (barrier_read, barrier) = pipe()?;
        let (failure, failure_write) = pipe()?;
        let pointers = |strings: &[CString]| -> Vec<*const libc::c_char> {
            strings.iter().map(|s| s.as_ptr()).chain([ptr::null()]).collect()
        };
        let mut script_argv = vec![c"sh".as_ptr(), ptr::null()];
        script_argv.extend(pointers(&argv[1..]));
        let child = Child {
            barrier: barrier_read.as_raw_fd(),
            failure: failure_write.as_raw_fd(),
            ours: [barrier.as_raw_fd(), failure.as_raw_fd()],
            inherited: guard.inherited(),
            descriptors: limit::of_program(),
            streams: [&request.stdin, &request.stdout, &request.stderr].map(|s| match s {
                Stream::Inherit => None,
                Stream::File(file) => Some(file.as_raw_fd()),
            }),
            dir,
            stand_in,
            candidates: candidates.iter().map(|c| c.as_ptr()).collect(),
            argv: pointers(&argv),
            script_argv,
        };
        // SAFETY: the child runs `Child::run` only, which makes async-signal-safe calls on memory
        // prepared above, and never returns.
        let pid = unsafe { libc::fork() };
        match pid {
            -1 => Err(Error::last("cannot fork")),
            0 => child.run(),
            _ => {
                guard.forward_to(pid);
                let dir = request.dir.clone().unwrap_or_default();
                let asked = Asked { name: request.argv[0].clone(), dir, candidates };
                Ok(Self { pid, barrier, failure, asked })
            }
        }
    }

    /// Its process id.
    pub(crate) fn pid(&self) -> i32 {
        self.pid
    }

    /// Lets it go towards exec.
    pub(crate) fn release(mut self) -> Result<Running, Error> {
        let used_before = cpu_time(self.pid);
        let start = now();
        if let Err(source) = self.barrier.write_all(&[1]) {
            let refused = Error::System { what: "cannot start the program".into(), source };
            return Err(self.cancel(refused));
        }
        let Self { pid, failure, asked, .. } = self;
        Ok(Running { pid, start, used_before, failure, asked })
    }

    /// Gives up for this reason: the program is never run. If a signal ended it before that
    /// (Ctrl-C goes to the whole group), that is why something failed.
    pub(crate) fn cancel(self, why: Error) -> Error {
        let Self { pid, barrier, .. } = self;
        drop(barrier);
        let mut status = 0;
        // SAFETY: waits for our own child, which exits once its barrier is closed.
        let ended = unsafe { libc::waitpid(pid, &mut status, 0) } == pid;
        if ended && libc::WIFSIGNALED(status) {
            return Error::Interrupted(libc::WTERMSIG(status));
        }
        why
    }
}

impl Running {
    /// Waits for its end; stops and continues are its own affair.
    pub(crate) fn wait(self) -> Result<Ended, Error> {
        let mut status = 0;
        let mut usage = MaybeUninit::<libc::rusage>::zeroed();
        loop {
            // SAFETY: waits for our own child; the kernel fills `status` and `usage`.
            let got = unsafe { libc::wait4(self.pid, &mut status, 0, usage.as_mut_ptr()) };
            if got == self.pid {
                break;
            }
            if io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
                return Err(Error::last("cannot wait for the program"));
            }
        }
        let end = now();
        // SAFETY: zeroed above and filled by wait4: plain numbers either way.
        let usage = unsafe { usage.assume_init() };
        self.reaped(status, &usage, end)
    }

    /// When it was let go.
    pub(crate) fn start(&self) -> u64 {
        self.start
    }

    /// It ended, as `wait4` told at this instant.
    pub(crate) fn reaped(
        mut self,
        status: i32,
        usage: &libc::rusage,
        end: u64,
    ) -> Result<Ended, Error> {
        self.failed_to_start()?;
        let exit = if libc::WIFSIGNALED(status) {
            Exit { code: 0, signal: Some(libc::WTERMSIG(status)) }
        } else {
            Exit { code: libc::WEXITSTATUS(status), signal: None }
        };
        let (user, system) = (duration(usage.ru_utime), duration(usage.ru_stime));
        let (displaced, blocks_read) =
            (usage.ru_nivcsw.cast_unsigned(), usage.ru_inblock.cast_unsigned());
        let usage = Usage {
            user: user - (self.used_before - system),
            system: system - self.used_before,
            max_rss: usage.ru_maxrss.cast_unsigned() * 1024,
        };
        Ok(Ended { start: self.start, end, exit, usage, displaced, blocks_read })
    }

    /// The child writes into a close-on-exec pipe if it never became the program. It is read only
    /// after the end: reading it earlier would wake us in the middle of the program's start.
    fn failed_to_start(&mut self) -> Result<(), Error> {
        let mut said = [0; 8];
        if self.failure.read_exact(&mut said).is_err() {
            return Ok(());
        }
        let [errno, at] =
            [&said[..4], &said[4..]].map(|b| i32::from_ne_bytes(b.try_into().unwrap_or_default()));
        let source = io::Error::from_raw_os_error(errno);
        let Asked { name, dir, candidates } = &self.asked;
        if at == AT_STAND_IN {
            let what = "cannot put a copy in the binary's place".into();
            return Err(Error::System { what, source });
        }
        if at == AT_DIRECTORY {
            return Err(Error::Directory { path: dir.clone(), source });
        }
        let Some(file) = usize::try_from(at).ok().and_then(|at| candidates.get(at)) else {
            let why = if candidates.len() > 1 { "no such program in PATH" } else { "no such file" };
            return Err(Error::Exec { path: name.into(), errno, why: why.into() });
        };
        let path = PathBuf::from(OsStr::from_bytes(file.to_bytes()));
        let why = refusal(&dir.join(&path), &source);
        Err(Error::Exec { path, errno, why })
    }
}

impl Child {
    /// The child's whole life between fork and exec. Async-signal-safe: no allocation, no locks.
    fn run(mut self) -> ! {
        // SAFETY: plain system calls on descriptors and strings prepared before the fork.
        unsafe {
            self.inherited.restore_in_child();
            if let Some(limit) = &self.descriptors {
                libc::setrlimit(libc::RLIMIT_NOFILE, limit);
            }
            for end in self.ours {
                libc::close(end);
            }
            for (fd, stream) in (0..).zip(self.streams) {
                match stream {
                    Some(file) if file == fd => _ = libc::fcntl(fd, libc::F_SETFD, 0),
                    Some(file) => _ = libc::dup2(file, fd),
                    None if was_closed(fd) => _ = libc::close(fd),
                    None => {}
                }
            }
            if let Some(dir) = &self.dir
                && libc::chdir(dir.as_ptr()) != 0
            {
                self.fail(errno(), AT_DIRECTORY);
            }
            if let Some(stand_in) = &self.stand_in
                && let Err(errno) = stand_in.put(&mut self.candidates)
            {
                self.fail(errno, AT_STAND_IN);
            }
            let mut go = 0_u8;
            if libc::read(self.barrier, (&raw mut go).cast(), 1) != 1 {
                libc::_exit(0);
            }
            self.exec()
        }
    }

    /// Tries each candidate as `execvp` does.
    ///
    /// # Safety
    /// Only in the forked child.
    unsafe fn exec(&mut self) -> ! {
        unsafe extern "C" {
            static environ: *const *const libc::c_char;
        }
        let mut failed = (libc::ENOENT, NOWHERE);
        for (at, path) in (0..).zip(&self.candidates) {
            // SAFETY: pointers into strings that outlive this, in arrays that end with a null.
            unsafe { libc::execve(*path, self.argv.as_ptr(), environ) };
            match errno() {
                // It exists, so what is missing is its interpreter or loader.
                // SAFETY: as above.
                libc::ENOENT if unsafe { libc::access(*path, libc::F_OK) } == 0 => {
                    self.fail(libc::ENOENT, at);
                }
                libc::ENOENT | libc::ENOTDIR => {}
                // Another directory of PATH may hold one that can be executed.
                libc::EACCES => failed = (libc::EACCES, at),
                libc::ENOEXEC => {
                    self.script_argv[1] = *path;
                    // SAFETY: as above.
                    unsafe {
                        libc::execve(c"/bin/sh".as_ptr(), self.script_argv.as_ptr(), environ);
                    }
                    self.fail(errno(), at);
                }
                other => self.fail(other, at),
            }
        }
        self.fail(failed.0, failed.1)
    }

    fn fail(&self, errno: i32, at: i32) -> ! {
        let mut said = [0_u8; 8];
        said[..4].copy_from_slice(&errno.to_ne_bytes());
        said[4..].copy_from_slice(&at.to_ne_bytes());
        // SAFETY: writes eight bytes of the stack to our own pipe, then ends.
        unsafe {
            libc::write(self.failure, said.as_ptr().cast(), said.len());
            libc::_exit(127)
        }
    }
}

/// The CPU time that a process has used.
fn cpu_time(pid: i32) -> Ns {
    let mut clock = 0;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: both calls only fill in what they are given.
    unsafe {
        if libc::clock_getcpuclockid(pid, &mut clock) == 0 {
            libc::clock_gettime(clock, &mut time);
        }
    }
    Ns(time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned())
}

fn errno() -> i32 {
    // SAFETY: the C library's own thread-local.
    unsafe { *libc::__errno_location() }
}

/// The files that the command may mean, in the order in which they are tried.
fn candidates(argv: &[OsString]) -> Result<Vec<CString>, Error> {
    let name = argv.first().filter(|n| !n.is_empty()).ok_or(Error::Command("it is empty"))?;
    if name.as_bytes().contains(&b'/') {
        return Ok(vec![c_string(name)?]);
    }
    let path = std::env::var_os("PATH").unwrap_or_else(|| "/bin:/usr/bin".into());
    std::env::split_paths(&path).map(|dir| c_string(dir.join(name).as_os_str())).collect()
}

/// The file that would be executed for this command, if one is found.
#[must_use]
pub fn find(argv: &[OsString], dir: Option<&Path>) -> Option<PathBuf> {
    let found = candidates(argv).ok()?.into_iter().find_map(|c| {
        let path = PathBuf::from(OsString::from_vec(c.into_bytes()));
        let path = dir.map_or_else(|| path.clone(), |d| d.join(&path));
        let meta = path.metadata().ok()?;
        (meta.is_file() && meta.permissions().mode() & 0o111 != 0).then_some(path)
    })?;
    std::path::absolute(found).ok()
}

/// Why the kernel refused to execute this file, in words that help.
fn refusal(path: &Path, source: &io::Error) -> String {
    let plain = |text: &str| text.to_owned();
    match (source.raw_os_error(), path.metadata()) {
        (_, Ok(meta)) if meta.is_dir() => plain("it is a directory"),
        (Some(libc::EACCES), Ok(meta)) if meta.permissions().mode() & 0o111 == 0 => {
            plain("it is not executable (chmod +x helps)")
        }
        (Some(libc::ENOENT), Ok(_)) => match interpreter(path) {
            Some(named) => format!("its interpreter {named} does not exist"),
            None => plain("the loader that it names does not exist"),
        },
        _ => source.to_string(),
    }
}

/// The interpreter that a script's first line names.
fn interpreter(path: &Path) -> Option<String> {
    let mut head = [0; 256];
    let read = File::open(path).ok()?.read(&mut head).ok()?;
    let line = head[..read].strip_prefix(b"#!")?.split(|b| *b == b'\n').next()?;
    String::from_utf8_lossy(line).split_whitespace().next().map(str::to_owned)
}

fn c_strings(strings: &[OsString]) -> Result<Vec<CString>, Error> {
    strings.iter().map(|s| c_string(s)).collect()
}

fn c_string(string: &OsStr) -> Result<CString, Error> {
    CString::new(string.as_bytes()).map_err(|_| Error::Command("it contains a zero byte"))
}

/// A pipe whose ends no program of the user's inherits: read end, write end.
fn pipe() -> Result<(File, File), Error> {
    let mut ends = [0; 2];
    // SAFETY: on success both ends are new descriptors that nobody else owns.
    unsafe {
        if libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) != 0 {
            return Err(Error::last("cannot make a pipe"));
        }
        Ok(ends.map(|end| File::from(OwnedFd::from_raw_fd(end))).into())
    }
}

fn duration(time: libc::timeval) -> Ns {
    Ns(time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_usec.cast_unsigned() * 1000)
}
