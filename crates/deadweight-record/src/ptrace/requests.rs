//! `ptrace` as this rung needs it: typed requests, and what a wait told.
//!
//! The only place with the raw calls. Not for what is done with a stopped task: that is `tracer`.

use std::io;
use std::mem::MaybeUninit;
use std::ptr;

const SEIZE: libc::c_uint = 0x4206;
const INTERRUPT: libc::c_uint = 0x4207;
const LISTEN: libc::c_uint = 0x4208;
const GET_SYSCALL_INFO: libc::c_uint = 0x420e;
const NT_PRSTATUS: usize = 1;
/// `PTRACE_EVENT_STOP`.
const EVENT_STOP: i32 = 128;
/// What marks stops at system calls apart from a real SIGTRAP.
const AT_CALL: i32 = libc::SIGTRAP | 0x80;
/// The program's own architecture, as the kernel's audit names it.
#[cfg(target_arch = "x86_64")]
const OURS: u32 = 0xC000_003E;
/// The program's own architecture, as the kernel's audit names it.
#[cfg(target_arch = "aarch64")]
const OURS: u32 = 0xC000_00B7;

/// How a stopped task goes on.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Go {
    /// Until its next call, with this signal (0: none).
    On(i32),
    /// Past its calls, until something else happens to it.
    Loose,
    /// It stays stopped, as its whole group, until the program itself continues it.
    Listening,
}

/// What a wait told of a task.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// It enters or leaves a call.
    AtCall,
    /// A signal is about to be delivered to it.
    Signal(i32),
    /// Its group is stopped by this signal.
    GroupStop,
    /// We interrupted it, it was born, or its group went on.
    Interrupted,
    /// It gave birth; only forks and their like.
    Birth,
    /// It became another program.
    Exec,
    /// It is about to die.
    Exiting,
}

impl Told {
    fn of(status: i32) -> Self {
        let signal = libc::WSTOPSIG(status);
        match status >> 16 {
            _ if signal == AT_CALL => Self::AtCall,
            libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_VFORK | libc::PTRACE_EVENT_CLONE => {
                Self::Birth
            }
            libc::PTRACE_EVENT_EXEC => Self::Exec,
            libc::PTRACE_EVENT_EXIT => Self::Exiting,
            EVENT_STOP if signal == libc::SIGTRAP => Self::Interrupted,
            EVENT_STOP => Self::GroupStop,
            _ => Self::Signal(signal),
        }
    }
}

/// What a stop at a call told.
#[derive(Copy, Clone, Debug)]
pub(super) enum AtCall {
    /// Entering.
    Entry { nr: u16, args: [u64; 6] },
    /// Leaving.
    Exit { ret: i64 },
    /// Neither: the kernel is older than 5.3, or it is another stop.
    Neither,
}

/// The registers that unwinding begins with.
#[derive(Copy, Clone, Debug, Default)]
pub(super) struct Registers {
    pub(super) ip: u64,
    pub(super) sp: u64,
    pub(super) fp: u64,
    pub(super) lr: u64,
    /// The number of the call that it is in or was in last.
    pub(super) nr: u64,
    /// What that returned.
    pub(super) ret: i64,
}

fn request(request: libc::c_uint, task: u32, addr: usize, data: usize) -> io::Result<i64> {
    // SAFETY: `data` is a number, or points to memory of the caller as large as the request needs.
    let got = unsafe { libc::ptrace(request, task.cast_signed(), addr, data) };
    if got == -1 { Err(io::Error::last_os_error()) } else { Ok(got) }
}

/// From now on this thread gets to know what the task and its descendants do. It is not stopped.
pub(super) fn seize(task: u32) -> io::Result<()> {
    let options = libc::PTRACE_O_TRACESYSGOOD
        | libc::PTRACE_O_TRACEFORK
        | libc::PTRACE_O_TRACEVFORK
        | libc::PTRACE_O_TRACECLONE
        | libc::PTRACE_O_TRACEEXEC
        | libc::PTRACE_O_TRACEEXIT;
    request(SEIZE, task, 0, usize::try_from(options).unwrap_or(0)).map(drop)
}

/// Stops a task that runs. One that enters a call meanwhile stops there instead, so that no call
/// is ever interrupted by this.
pub(super) fn interrupt(task: u32) -> io::Result<()> {
    request(INTERRUPT, task, 0, 0).map(drop)
}

/// Lets a stopped task go on.
pub(super) fn go(task: u32, how: Go) -> io::Result<()> {
    match how {
        Go::On(signal) => {
            request(libc::PTRACE_SYSCALL, task, 0, usize::try_from(signal).unwrap_or(0))
        }
        Go::Loose => request(libc::PTRACE_CONT, task, 0, 0),
        Go::Listening => request(LISTEN, task, 0, 0),
    }
    .map(drop)
}

/// Leaves a stopped task to itself, with this signal (0: none).
pub(super) fn detach(task: u32, signal: i32) -> io::Result<()> {
    request(libc::PTRACE_DETACH, task, 0, usize::try_from(signal).unwrap_or(0)).map(drop)
}

/// What belongs to the event that a task is stopped at: whom it gave birth to, who it was.
pub(super) fn message(task: u32) -> Option<u32> {
    let mut message: libc::c_ulong = 0;
    let to = (&raw mut message).addr();
    request(libc::PTRACE_GETEVENTMSG, task, 0, to).ok()?;
    u32::try_from(message).ok()
}

/// Which call a task is stopped at.
pub(super) fn at_call(task: u32) -> AtCall {
    // As the kernel's `struct ptrace_syscall_info`: op, arch, ip, sp, and then by op.
    let mut words = [0_u64; 11];
    let size = size_of_val(&words);
    if request(GET_SYSCALL_INFO, task, size, words.as_mut_ptr().addr()).is_err() {
        return AtCall::Neither;
    }
    let [op, arch] = [words[0] & 0xff, words[0] >> 32];
    match op {
        1 => {
            // Another architecture's numbers mean other calls.
            let nr = if arch == u64::from(OURS) { words[3] & !0x4000_0000 } else { u64::MAX };
            let args = std::array::from_fn(|i| words[4 + i]);
            AtCall::Entry { nr: u16::try_from(nr).unwrap_or(u16::MAX), args }
        }
        2 => AtCall::Exit { ret: words[3].cast_signed() },
        _ => AtCall::Neither,
    }
}

/// A stopped task's registers.
pub(super) fn registers(task: u32) -> Option<Registers> {
    let mut all = MaybeUninit::<libc::user_regs_struct>::zeroed();
    let mut to = libc::iovec { iov_base: all.as_mut_ptr().cast(), iov_len: size_of_val(&all) };
    let to = (&raw mut to).addr();
    request(libc::PTRACE_GETREGSET, task, NT_PRSTATUS, to).ok()?;
    // SAFETY: plain numbers, zeroed and then filled in by the kernel as far as it has them.
    let all = unsafe { all.assume_init() };
    Some(chosen(&all))
}

#[cfg(target_arch = "x86_64")]
fn chosen(all: &libc::user_regs_struct) -> Registers {
    Registers {
        ip: all.rip,
        sp: all.rsp,
        fp: all.rbp,
        lr: 0,
        nr: all.orig_rax,
        ret: all.rax.cast_signed(),
    }
}

#[cfg(target_arch = "aarch64")]
fn chosen(all: &libc::user_regs_struct) -> Registers {
    let [fp, lr, nr, ret] = [29, 30, 8, 0].map(|number: usize| all.regs[number]);
    Registers { ip: all.pc, sp: all.sp, fp, lr, nr, ret: ret.cast_signed() }
}

/// The instruction that makes a call, as it stands in memory.
#[cfg(target_arch = "x86_64")]
const CALL: [u8; 2] = [0x0f, 0x05];
/// The instruction that makes a call, as it stands in memory.
#[cfg(target_arch = "aarch64")]
const CALL: [u8; 4] = [0x01, 0x00, 0x00, 0xd4];

/// The call that a task has just come out of, if it was interrupted in one.
pub(super) fn interrupted_call(task: u32, registers: &Registers) -> Option<u16> {
    let mut before = [0; CALL.len()];
    let len = memory(task, registers.ip.wrapping_sub(CALL.len() as u64), &mut before);
    let nr = u16::try_from(registers.nr).ok()?;
    (len == before.len() && before == CALL).then_some(nr)
}

/// A task that stands stopped just after a call begins this call again when it goes on, as the kernel
/// itself does it with most of those that are interrupted.
#[cfg(target_arch = "x86_64")]
pub(super) fn repeat_call(task: u32) -> io::Result<()> {
    let mut all = MaybeUninit::<libc::user_regs_struct>::zeroed();
    let size = size_of_val(&all);
    let mut vector = libc::iovec { iov_base: all.as_mut_ptr().cast(), iov_len: size };
    request(libc::PTRACE_GETREGSET, task, NT_PRSTATUS, (&raw mut vector).addr())?;
    // SAFETY: as in `registers`; written through its own pointer, which the kernel reads next.
    unsafe {
        let all = &mut *all.as_mut_ptr();
        all.rax = all.orig_rax;
        all.rip -= CALL.len() as u64;
    }
    request(libc::PTRACE_SETREGSET, task, NT_PRSTATUS, (&raw mut vector).addr()).map(drop)
}
/// What the first argument was is gone here once the call returned.
#[cfg(target_arch = "aarch64")]
pub(super) fn repeat_call(_: u32) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Bytes of a task's memory from `addr` on, as many as can be read.
pub(super) fn memory(task: u32, addr: u64, bytes: &mut [u8]) -> usize {
    let here = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    let there = libc::iovec {
        iov_base: ptr::without_provenance_mut(usize::try_from(addr).unwrap_or(0)),
        iov_len: bytes.len(),
    };
    // SAFETY: writes into `bytes` only; the other side's addresses are checked by the kernel.
    let got = unsafe { libc::process_vm_readv(task.cast_signed(), &here, 1, &there, 1, 0) };
    usize::try_from(got).unwrap_or(0)
}

/// A wait that ended.
pub(super) enum Waited {
    /// Something happened to this task.
    Task(u32, Told),
    /// This one is gone; the kernel's counts of its process and what that waited for.
    Gone { task: u32, status: i32, usage: Box<libc::rusage> },
    /// A signal came: the clock ticked.
    Tick,
    /// There is nobody left.
    Nobody,
}

/// Tasks of this thread's only, and all kinds of them.
const TASKS: i32 = libc::__WALL | libc::__WNOTHREAD;

/// Waits until something happens to a task of this thread's.
pub(super) fn wait() -> Waited {
    reap(-1, true)
}

/// As [`wait`] where they are many. The kernel goes through all of them to find one with news, so those are asked
/// for first that are `likely` to have some. And it adds up what was used over all threads of the process that ends:
/// it is asked for that only at the end of the `one` that it is wanted of.
pub(super) fn wait_among_many(one: u32, mut likely: impl Iterator<Item = u32>) -> Waited {
    let any = TASKS | libc::WEXITED | libc::WSTOPPED | libc::WNOWAIT;
    let has_news =
        |task| look(libc::P_PID, task, any | libc::WNOHANG).filter(|(task, ..)| *task > 0);
    loop {
        let quickly = likely.find_map(has_news);
        let Some((task, code, _)) = quickly.or_else(|| look(libc::P_ALL, 0, any)) else {
            return if interrupted() { Waited::Tick } else { Waited::Nobody };
        };
        if matches!(code, libc::CLD_EXITED | libc::CLD_KILLED | libc::CLD_DUMPED) {
            return reap(task, task.cast_unsigned() == one);
        }
        let stopped = TASKS | libc::WSTOPPED | libc::WNOHANG;
        // None if it was killed since: then its end comes next.
        if let Some((1.., _, status)) = look(libc::P_PID, task.cast_unsigned(), stopped) {
            return Waited::Task(task.cast_unsigned(), Told::of(status << 8 | STOPPED));
        }
    }
}

/// What `wait4` says of a stop, beside its kind.
const STOPPED: i32 = 0x7f;

/// The task to which something happened (0: none), and what, as `waitid` codes it.
fn look(which: libc::idtype_t, task: u32, flags: i32) -> Option<(i32, i32, i32)> {
    let mut told = MaybeUninit::<libc::siginfo_t>::zeroed();
    // SAFETY: the kernel fills it in, with what it tells of children; zeroed, it is nobody's.
    unsafe {
        let got = libc::waitid(which, task, told.as_mut_ptr(), flags);
        let told = told.assume_init();
        (got == 0).then(|| (told.si_pid(), told.si_code, told.si_status()))
    }
}

fn interrupted() -> bool {
    io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
}

fn reap(task: i32, used: bool) -> Waited {
    let mut status = 0;
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    let place = if used { usage.as_mut_ptr() } else { std::ptr::null_mut() };
    // SAFETY: the kernel fills in both, or leaves the second alone.
    match unsafe { libc::wait4(task, &mut status, TASKS, place) } {
        -1 if interrupted() => Waited::Tick,
        -1 => Waited::Nobody,
        task if libc::WIFEXITED(status) || libc::WIFSIGNALED(status) => {
            // SAFETY: zeroed above, and perhaps filled in: plain numbers either way.
            let usage = Box::new(unsafe { usage.assume_init() });
            Waited::Gone { task: task.cast_unsigned(), status, usage }
        }
        task => Waited::Task(task.cast_unsigned(), Told::of(status)),
    }
}
