//! Runs a program: starts it behind a barrier, releases it, and waits for its end.
//!
//! - In: a [`Request`].
//! - Out: the program's end, with its times.
//! - Must not know: events or recordings.
//!
//! The program must not notice the recorder: it gets the same process group, environment, signal
//! dispositions and mask, and inherits none of the recorder's descriptors. Privileges stay as they
//! are; `confine` drops those of the recorder afterwards. A run without tracing needs no barrier.

mod call_filter;
mod clean;
mod confine;
pub(crate) mod descriptor_limit;
mod environment;
mod lost_cpu_time;
mod outcome;
mod placement;
mod refusal;
mod request;
mod shared_line;
pub(crate) mod signals;
mod substitute;
mod time_limit;
pub(crate) mod vfork;

use crate::clock::{self, now};
use crate::descriptors::pipe;
use crate::error::Error;
use crate::procfs::memory_budget::oom_score;
pub use call_filter::{CallFilter, FilteredCall};
pub use clean::{CleanRun, run_clean};
pub use confine::{become_user, confine, confine_to};
use deadweight_trace::ids::Tid;
use deadweight_trace::units::Ns;
use deadweight_trace::{Exit, Usage};
pub(crate) use lost_cpu_time::LostCpuTime;
pub use outcome::Outcome;
pub use placement::{Placement, group_without_quota};
use refusal::RequestedProgram;
pub use request::{Argument, Count, Probe, Register, Request, Stream};
use signals::{Guard, Inherited, was_closed};
use std::ffi::{CString, OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::ptr;
use substitute::Prepared;
pub use substitute::Substitute;
use vfork::VforkThread;

/// A child that waits behind the barrier.
pub(crate) struct Waiting {
    pid: i32,
    barrier: File,
    messages: File,
    requested: RequestedProgram,
    vfork_thread: VforkThread,
    /// The thread whose memory the child borrows.
    pub(crate) vfork_tid: Tid,
}

/// A program that was released.
pub(crate) struct Running {
    pid: i32,
    start: u64,
    /// CPU time that the child had used behind the barrier; it belongs to the recorder, not to the program.
    used_before: Ns,
    messages: File,
    requested: RequestedProgram,
    vfork_thread: Option<VforkThread>,
}

/// A program that ended.
pub(crate) struct Ended {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) exit: Exit,
    pub(crate) usage: Usage,
    /// See [`CleanRun`].
    pub(crate) involuntary_switches: u64,
    pub(crate) blocks_read: u64,
}

/// Everything that the child needs. The child itself cannot allocate.
struct Child {
    go: StartWhen,
    messages: RawFd,
    inherited: Inherited,
    descriptors: Option<libc::rlimit>,
    streams: [Option<RawFd>; 3],
    dir: Option<CString>,
    substitute: Option<Prepared>,
    filter: Option<call_filter::Prepared>,
    placement: placement::Prepared,
    candidates: Vec<*const libc::c_char>,
    argv: Vec<*const libc::c_char>,
    /// None for the recorder's own.
    environment: Option<Vec<*const libc::c_char>>,
    /// `sh`, a place for the candidate, the arguments: for a script without an interpreter line.
    script_argv: Vec<*const libc::c_char>,
    /// Owns the strings of `argv` and of the environment; `RequestedProgram` owns the candidates.
    _words: [Vec<CString>; 2],
}

/// When the child becomes the program.
enum StartWhen {
    /// When a byte arrives at `here`. The child closes the other end: otherwise the recorder's death would not open
    /// the barrier.
    Released { here: RawFd, other_end: RawFd },
    /// As soon as it is ready. The child notes the instant, and the CPU time that it had used.
    AtOnce { start: u64, used_before: Ns },
}

/// A message from the child: it is at the barrier (and its process id), or it failed (and the error number and the
/// step).
struct ChildMessage {
    number: i32,
    /// One of the constants below, or the candidate's index.
    at: i32,
}

const AT_DIRECTORY: i32 = -1;
const NOWHERE: i32 = -2;
const AT_SUBSTITUTE: i32 = -3;
const AT_BARRIER: i32 = -4;
const AT_FILTER: i32 = -5;
const AT_PLACEMENT: i32 = -6;

impl ChildMessage {
    fn read(from: &mut File) -> Option<Self> {
        let mut said = [[0; 4]; 2];
        from.read_exact(said.as_flattened_mut()).ok()?;
        let [number, at] = said.map(i32::from_ne_bytes);
        Some(Self { number, at })
    }
}

impl Waiting {
    /// Its process id.
    pub(crate) fn pid(&self) -> i32 {
        self.pid
    }

    /// Releases it: it continues to exec.
    pub(crate) fn release(mut self) -> Result<Running, Error> {
        let used_before = cpu_time(self.pid);
        let start = now();
        if let Err(source) = self.barrier.write_all(&[1]) {
            let refused = Error::System { what: "cannot start the program".into(), source };
            return Err(self.cancel(refused));
        }
        let Self { pid, messages, requested, vfork_thread, .. } = self;
        Ok(Running {
            pid,
            start,
            used_before,
            messages,
            requested,
            vfork_thread: Some(vfork_thread),
        })
    }

    /// Gives up for this reason; the program never runs. If a signal ended the child before (Ctrl-C goes to the whole
    /// group), the signal is the reason.
    pub(crate) fn cancel(self, why: Error) -> Error {
        let Self { pid, barrier, vfork_thread, .. } = self;
        drop(barrier);
        let signal = ended_by(pid);
        _ = vfork_thread.end();
        signal.map_or(why, Error::Interrupted)
    }
}

/// Waits for a child that never becomes the program. Returns the signal that ended it, if one did.
fn ended_by(pid: i32) -> Option<i32> {
    let mut status = 0;
    // SAFETY: waits for our own child, which ends by itself or once its barrier is closed.
    let ended = unsafe { libc::waitpid(pid, &mut status, 0) } == pid;
    (ended && libc::WIFSIGNALED(status)).then(|| libc::WTERMSIG(status))
}

impl Running {
    /// Its process id.
    pub(crate) fn pid(&self) -> i32 {
        self.pid
    }

    /// Waits for its end. If the program stops and continues, that changes nothing.
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

    /// The instant of its release.
    pub(crate) fn start(&self) -> u64 {
        self.start
    }

    /// It ended: `wait4` returned this status at this instant.
    pub(crate) fn reaped(
        mut self,
        status: i32,
        usage: &libc::rusage,
        end: u64,
    ) -> Result<Ended, Error> {
        _ = self.vfork_thread.take().map(VforkThread::end);
        // The child writes into a close-on-exec pipe. It is read only now: a reader that waits for it would be woken
        // in the middle of the program's start.
        if let Some(said) = ChildMessage::read(&mut self.messages) {
            return Err(self.requested.refused(said));
        }
        let exit = if libc::WIFSIGNALED(status) {
            Exit { code: 0, signal: Some(libc::WTERMSIG(status)) }
        } else {
            Exit { code: libc::WEXITSTATUS(status), signal: None }
        };
        let (user, system) = (duration(usage.ru_utime), duration(usage.ru_stime));
        let (involuntary_switches, blocks_read) =
            (usage.ru_nivcsw.cast_unsigned(), usage.ru_inblock.cast_unsigned());
        let usage = Usage {
            user: user - (self.used_before - system),
            system: system - self.used_before,
            max_rss: usage.ru_maxrss.cast_unsigned() * 1024,
        };
        Ok(Ended { start: self.start, end, exit, usage, involuntary_switches, blocks_read })
    }
}

impl Child {
    /// Prepares everything that the child needs; the pipe carries its messages.
    fn prepare(
        request: &Request,
        guard: &Guard,
        go: StartWhen,
    ) -> Result<(Self, RequestedProgram, (File, File)), Error> {
        let argv = c_strings(&request.argv)?;
        let environment = environment::changed(&request.environment)?;
        let candidates = candidates(&request.argv)?;
        let dir = request.dir.as_ref().map(|d| c_string(d.as_os_str())).transpose()?;
        let prepare = |s: &Substitute| s.prepare(&candidates, request.dir.as_deref());
        let substitute = request.substitute.as_ref().map(prepare).transpose()?;
        let messages = pipe().map_err(no_pipe)?;
        let pointers = |strings: &[CString]| -> Vec<*const libc::c_char> {
            strings.iter().map(|s| s.as_ptr()).chain([ptr::null()]).collect()
        };
        let mut script_argv = vec![c"sh".as_ptr(), ptr::null()];
        script_argv.extend(pointers(&argv[1..]));
        let child = Self {
            go,
            messages: messages.1.as_raw_fd(),
            inherited: guard.inherited(),
            descriptors: descriptor_limit::of_program(),
            streams: [&request.stdin, &request.stdout, &request.stderr].map(|s| match s {
                Stream::Inherit => None,
                Stream::File(file) => Some(file.as_raw_fd()),
            }),
            dir,
            substitute,
            filter: request.filter.as_ref().map(CallFilter::prepare),
            placement: request.placement.prepare()?,
            candidates: candidates.iter().map(|c| c.as_ptr()).collect(),
            argv: pointers(&argv),
            environment: environment.as_deref().map(pointers),
            script_argv,
            _words: [argv, environment.unwrap_or_default()],
        };
        let dir = request.dir.clone().unwrap_or_default();
        let requested = RequestedProgram { name: request.argv[0].clone(), dir, candidates };
        Ok((child, requested, messages))
    }

    /// The child's whole life until exec. Async-signal-safe: no allocation, no locks.
    fn run(&mut self) -> ! {
        // SAFETY: plain system calls on descriptors and strings made ready before.
        unsafe {
            self.inherited.restore_in_child();
            oom_score::restore();
            if let StartWhen::Released { other_end, .. } = self.go {
                libc::close(other_end);
            }
            if let Some(limit) = &self.descriptors {
                libc::setrlimit(libc::RLIMIT_NOFILE, limit);
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
            if let Some(substitute) = &self.substitute
                && let Err(errno) = substitute.put(&mut self.candidates)
            {
                self.fail(errno, AT_SUBSTITUTE);
            }
            if let Some(filter) = &self.filter
                && let Err(errno) = filter.install()
            {
                self.fail(errno, AT_FILTER);
            }
            if let Err(errno) = self.placement.put() {
                self.fail(errno, AT_PLACEMENT);
            }
            if let StartWhen::Released { .. } = self.go {
                self.send(libc::getpid(), AT_BARRIER);
            }
            match &mut self.go {
                StartWhen::Released { here, .. } => {
                    let mut go = 0_u8;
                    if libc::read(*here, (&raw mut go).cast(), 1) != 1 {
                        libc::_exit(0);
                    }
                }
                StartWhen::AtOnce { start, used_before } => {
                    *used_before = clock::read(libc::CLOCK_PROCESS_CPUTIME_ID);
                    *start = now();
                }
            }
            self.exec()
        }
    }

    /// Tries each candidate as `execvp` does.
    ///
    /// # Safety
    /// Call it only in the child.
    unsafe fn exec(&mut self) -> ! {
        unsafe extern "C" {
            static environ: *const *const libc::c_char;
        }
        // SAFETY: reads the recorder's environment, which nothing changes meanwhile.
        let own = unsafe { environ };
        let environment = self.environment.as_ref().map_or(own, Vec::as_ptr);
        let mut failed = (libc::ENOENT, NOWHERE);
        for (at, path) in (0..).zip(&self.candidates) {
            // SAFETY: pointers into strings that outlive this, in arrays that end with a null.
            unsafe { libc::execve(*path, self.argv.as_ptr(), environment) };
            match errno() {
                // The file exists, so its interpreter or loader is missing. SAFETY: as above.
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
                        libc::execve(c"/bin/sh".as_ptr(), self.script_argv.as_ptr(), environment);
                    }
                    self.fail(errno(), at);
                }
                other => self.fail(other, at),
            }
        }
        self.fail(failed.0, failed.1)
    }

    fn fail(&self, errno: i32, at: i32) -> ! {
        self.send(errno, at);
        // SAFETY: ends the process.
        unsafe { libc::_exit(127) }
    }

    fn send(&self, number: i32, at: i32) {
        let said = [number, at].map(i32::to_ne_bytes);
        let said = said.as_flattened();
        // SAFETY: writes eight bytes of the stack to our own pipe.
        unsafe { libc::write(self.messages, said.as_ptr().cast(), said.len()) };
    }
}

/// The CPU time that a process has used.
fn cpu_time(pid: i32) -> Ns {
    let mut id = 0;
    // SAFETY: the call only fills in `id`.
    let known = unsafe { libc::clock_getcpuclockid(pid, &mut id) } == 0;
    if known { clock::read(id) } else { Ns(0) }
}

fn errno() -> i32 {
    // SAFETY: the C library's own thread-local.
    unsafe { *libc::__errno_location() }
}

/// The files that the command can refer to, in the order in which they are tried.
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

fn c_strings(strings: &[OsString]) -> Result<Vec<CString>, Error> {
    strings.iter().map(|s| c_string(s)).collect()
}

fn c_string(string: &OsStr) -> Result<CString, Error> {
    CString::new(string.as_bytes()).map_err(|_| Error::Command("it contains a zero byte"))
}

fn no_pipe(source: io::Error) -> Error {
    Error::System { what: "cannot make a pipe".into(), source }
}

fn duration(time: libc::timeval) -> Ns {
    Ns(time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_usec.cast_unsigned() * 1000)
}
