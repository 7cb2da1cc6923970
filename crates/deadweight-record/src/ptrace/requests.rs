//! Typed ptrace requests and the results of `wait4` and `waitid`. The only place with the raw
//! calls.
//!
//! Does not decide what happens to a stopped task; see `tracer`.

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
/// Marks system call stops, apart from a real SIGTRAP (`PTRACE_O_TRACESYSGOOD`).
const SYSCALL_STOP: i32 = libc::SIGTRAP | 0x80;
/// The native architecture, as an `AUDIT_ARCH_*` number.
#[cfg(target_arch = "x86_64")]
const NATIVE_ARCH: u32 = 0xC000_003E;
/// The native architecture, as an `AUDIT_ARCH_*` number.
#[cfg(target_arch = "aarch64")]
const NATIVE_ARCH: u32 = 0xC000_00B7;

/// How a stopped task is resumed.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Resume {
    /// `PTRACE_SYSCALL`: until its next call, with this signal (0: none).
    ToNextCall(i32),
    /// `PTRACE_CONT`: without stops at system calls, until another ptrace event.
    Free,
    /// `PTRACE_LISTEN`: its group stays stopped until the program continues it.
    Listen,
}

/// Why a task stopped.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum StopKind {
    /// It enters a call or returns from one.
    Syscall,
    /// A signal is about to be delivered.
    Signal(i32),
    /// Its group is stopped by this signal.
    GroupStop,
    /// After `PTRACE_INTERRUPT`, at its birth, or when its group was continued.
    Interrupted,
    /// It made a child; only `fork`, `vfork` and `clone`.
    Fork,
    /// It executed another program.
    Exec,
    /// It is about to exit.
    Exit,
}

impl StopKind {
    fn of(status: i32) -> Self {
        let signal = libc::WSTOPSIG(status);
        match status >> 16 {
            _ if signal == SYSCALL_STOP => Self::Syscall,
            libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_VFORK | libc::PTRACE_EVENT_CLONE => {
                Self::Fork
            }
            libc::PTRACE_EVENT_EXEC => Self::Exec,
            libc::PTRACE_EVENT_EXIT => Self::Exit,
            EVENT_STOP if signal == libc::SIGTRAP => Self::Interrupted,
            EVENT_STOP => Self::GroupStop,
            _ => Self::Signal(signal),
        }
    }
}

/// What a system call stop is.
#[derive(Copy, Clone, Debug)]
pub(super) enum SyscallStop {
    /// At the entry.
    Entry { nr: u16, args: [u64; 6] },
    /// At the return.
    Exit { ret: i64 },
    /// Not known: the kernel is older than 5.3, or it is another stop.
    Unknown,
}

/// The registers that unwinding starts from.
#[derive(Copy, Clone, Debug, Default)]
pub(super) struct Registers {
    pub(super) ip: u64,
    pub(super) sp: u64,
    pub(super) fp: u64,
    pub(super) lr: u64,
    /// The number of the current or latest call.
    pub(super) nr: u64,
    /// The result of that call.
    pub(super) ret: i64,
}

fn request(request: libc::c_uint, task: u32, addr: usize, data: usize) -> io::Result<i64> {
    // SAFETY: `data` is a number, or points to memory of the caller as large as the request needs.
    let got = unsafe { libc::ptrace(request, task.cast_signed(), addr, data) };
    if got == -1 { Err(io::Error::last_os_error()) } else { Ok(got) }
}

/// This thread traces the task and its descendants from now on. The task does not stop.
pub(super) fn seize(task: u32) -> io::Result<()> {
    let options = libc::PTRACE_O_TRACESYSGOOD
        | libc::PTRACE_O_TRACEFORK
        | libc::PTRACE_O_TRACEVFORK
        | libc::PTRACE_O_TRACECLONE
        | libc::PTRACE_O_TRACEEXEC
        | libc::PTRACE_O_TRACEEXIT;
    request(SEIZE, task, 0, usize::try_from(options).unwrap_or(0)).map(drop)
}

/// Stops a running task. A task that enters a call meanwhile stops at the entry, so this never
/// interrupts a call that has begun.
pub(super) fn interrupt(task: u32) -> io::Result<()> {
    request(INTERRUPT, task, 0, 0).map(drop)
}

/// Resumes a stopped task.
pub(super) fn resume(task: u32, how: Resume) -> io::Result<()> {
    match how {
        Resume::ToNextCall(signal) => {
            request(libc::PTRACE_SYSCALL, task, 0, usize::try_from(signal).unwrap_or(0))
        }
        Resume::Free => request(libc::PTRACE_CONT, task, 0, 0),
        Resume::Listen => request(LISTEN, task, 0, 0),
    }
    .map(drop)
}

/// Detaches from a stopped task, with this signal (0: none).
pub(super) fn detach(task: u32, signal: i32) -> io::Result<()> {
    request(libc::PTRACE_DETACH, task, 0, usize::try_from(signal).unwrap_or(0)).map(drop)
}

/// The message of the event that a task is stopped at: the child's id, or the former id.
pub(super) fn event_message(task: u32) -> Option<u32> {
    let mut event_message: libc::c_ulong = 0;
    let to = (&raw mut event_message).addr();
    request(libc::PTRACE_GETEVENTMSG, task, 0, to).ok()?;
    u32::try_from(event_message).ok()
}

/// The system call stop that a task is in.
pub(super) fn syscall_stop(task: u32) -> SyscallStop {
    // The kernel's `struct ptrace_syscall_info`: op, arch, ip, sp, and then by op.
    let mut words = [0_u64; 11];
    let size = size_of_val(&words);
    if request(GET_SYSCALL_INFO, task, size, words.as_mut_ptr().addr()).is_err() {
        return SyscallStop::Unknown;
    }
    let [op, arch] = [words[0] & 0xff, words[0] >> 32];
    match op {
        1 => {
            // Another architecture has other call numbers.
            let nr =
                if arch == u64::from(NATIVE_ARCH) { words[3] & !0x4000_0000 } else { u64::MAX };
            let args = std::array::from_fn(|i| words[4 + i]);
            SyscallStop::Entry { nr: u16::try_from(nr).unwrap_or(u16::MAX), args }
        }
        2 => SyscallStop::Exit { ret: words[3].cast_signed() },
        _ => SyscallStop::Unknown,
    }
}

/// Reads or writes the general registers of a stopped task.
fn general_registers(
    access: libc::c_uint,
    task: u32,
    all: &mut MaybeUninit<libc::user_regs_struct>,
) -> io::Result<()> {
    let mut vector = libc::iovec { iov_base: all.as_mut_ptr().cast(), iov_len: size_of_val(all) };
    request(access, task, NT_PRSTATUS, (&raw mut vector).addr()).map(drop)
}

/// Registers of a stopped task.
pub(super) fn registers(task: u32) -> Option<Registers> {
    let mut all = MaybeUninit::zeroed();
    general_registers(libc::PTRACE_GETREGSET, task, &mut all).ok()?;
    // SAFETY: plain numbers, zeroed and then filled in by the kernel as far as it has them.
    let all = unsafe { all.assume_init() };
    Some(unwind_registers(&all))
}

#[cfg(target_arch = "x86_64")]
fn unwind_registers(all: &libc::user_regs_struct) -> Registers {
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
fn unwind_registers(all: &libc::user_regs_struct) -> Registers {
    let [fp, lr, nr, ret] = [29, 30, 8, 0].map(|number: usize| all.regs[number]);
    Registers { ip: all.pc, sp: all.sp, fp, lr, nr, ret: ret.cast_signed() }
}

/// The system call instruction in memory.
#[cfg(target_arch = "x86_64")]
const SYSCALL_INSTRUCTION: [u8; 2] = [0x0f, 0x05];
/// The system call instruction in memory.
#[cfg(target_arch = "aarch64")]
const SYSCALL_INSTRUCTION: [u8; 4] = [0x01, 0x00, 0x00, 0xd4];

/// The call that a task was interrupted in, if it was in one.
pub(super) fn interrupted_call(task: u32, registers: &Registers) -> Option<u16> {
    let mut before = [0; SYSCALL_INSTRUCTION.len()];
    let len =
        read_memory(task, registers.ip.wrapping_sub(SYSCALL_INSTRUCTION.len() as u64), &mut before);
    let nr = u16::try_from(registers.nr).ok()?;
    (len == before.len() && before == SYSCALL_INSTRUCTION).then_some(nr)
}

/// A task that is stopped just after a call restarts this call when it is resumed, as the kernel
/// restarts most interrupted calls.
#[cfg(target_arch = "x86_64")]
pub(super) fn restart_call(task: u32) -> io::Result<()> {
    let mut all = MaybeUninit::zeroed();
    general_registers(libc::PTRACE_GETREGSET, task, &mut all)?;
    // SAFETY: as in `registers`.
    let registers = unsafe { all.assume_init_mut() };
    registers.rax = registers.orig_rax;
    registers.rip -= SYSCALL_INSTRUCTION.len() as u64;
    general_registers(libc::PTRACE_SETREGSET, task, &mut all)
}

/// On this architecture the first argument is lost once the call has returned.
#[cfg(target_arch = "aarch64")]
pub(super) fn restart_call(_: u32) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Bytes of a task's memory from `addr` on, as many as can be read.
pub(super) fn read_memory(task: u32, addr: u64, bytes: &mut [u8]) -> usize {
    let here = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    let there = libc::iovec {
        iov_base: ptr::without_provenance_mut(usize::try_from(addr).unwrap_or(0)),
        iov_len: bytes.len(),
    };
    // SAFETY: writes into `bytes` only; the kernel checks the remote addresses.
    let got = unsafe { libc::process_vm_readv(task.cast_signed(), &here, 1, &there, 1, 0) };
    usize::try_from(got).unwrap_or(0)
}

/// Why a wait ended.
pub(super) enum WaitResult {
    /// This task stopped.
    Stopped(u32, StopKind),
    /// This task ended; resource usage of its process and of the children that it waited for.
    Ended { task: u32, status: i32, usage: Box<libc::rusage> },
    /// A signal interrupted the wait: the timer expired.
    Tick,
    /// No tracee is left.
    NoTracees,
}

/// Only this thread's tracees, of all kinds.
const WAIT_FLAGS: i32 = libc::__WALL | libc::__WNOTHREAD;

/// Waits for an event of one of this thread's tracees.
pub(super) fn wait() -> WaitResult {
    reap(-1, true)
}

/// As [`wait`] with many tracees. The kernel walks all of them to find one with an event, so the
/// `likely` ones are queried first. At the end of a process the kernel sums the usage of all its
/// threads: that is requested only for the task `usage_of`.
pub(super) fn wait_among_many(usage_of: u32, mut likely: impl Iterator<Item = u32>) -> WaitResult {
    let any = WAIT_FLAGS | libc::WEXITED | libc::WSTOPPED | libc::WNOWAIT;
    let has_news =
        |task| waitid(libc::P_PID, task, any | libc::WNOHANG).filter(|(task, ..)| *task > 0);
    loop {
        let likely_one = likely.find_map(has_news);
        let Some((task, code, _)) = likely_one.or_else(|| waitid(libc::P_ALL, 0, any)) else {
            return if interrupted() { WaitResult::Tick } else { WaitResult::NoTracees };
        };
        if matches!(code, libc::CLD_EXITED | libc::CLD_KILLED | libc::CLD_DUMPED) {
            return reap(task, task.cast_unsigned() == usage_of);
        }
        let stopped = WAIT_FLAGS | libc::WSTOPPED | libc::WNOHANG;
        // None if it was killed meanwhile: its end comes next.
        if let Some((1.., _, status)) = waitid(libc::P_PID, task.cast_unsigned(), stopped) {
            return WaitResult::Stopped(
                task.cast_unsigned(),
                StopKind::of(status << 8 | STOPPED_STATUS),
            );
        }
    }
}

/// Low bits of a `wait4` status of a stop.
const STOPPED_STATUS: i32 = 0x7f;

/// The task with an event (0: none), the code and the status, as `waitid` reports them.
fn waitid(which: libc::idtype_t, task: u32, flags: i32) -> Option<(i32, i32, i32)> {
    let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
    // SAFETY: the kernel fills it in with what it reports of children; zeroed, it names none.
    unsafe {
        let got = libc::waitid(which, task, info.as_mut_ptr(), flags);
        let info = info.assume_init();
        (got == 0).then(|| (info.si_pid(), info.si_code, info.si_status()))
    }
}

fn interrupted() -> bool {
    io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
}

fn reap(task: i32, wants_usage: bool) -> WaitResult {
    let mut status = 0;
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    let usage_out = if wants_usage { usage.as_mut_ptr() } else { std::ptr::null_mut() };
    // SAFETY: the kernel fills in both, or does not touch the second.
    match unsafe { libc::wait4(task, &mut status, WAIT_FLAGS, usage_out) } {
        -1 if interrupted() => WaitResult::Tick,
        -1 => WaitResult::NoTracees,
        task if libc::WIFEXITED(status) || libc::WIFSIGNALED(status) => {
            // SAFETY: zeroed above, and perhaps filled in: plain numbers either way.
            let usage = Box::new(unsafe { usage.assume_init() });
            WaitResult::Ended { task: task.cast_unsigned(), status, usage }
        }
        task => WaitResult::Stopped(task.cast_unsigned(), StopKind::of(status)),
    }
}
