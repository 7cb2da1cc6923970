//! The system calls that any user may record, the likeliest first, each with arguments with which a child makes it
//! once without effect, to find its tracepoints' numbers (`tracepoint_scan`). For the choice among them see
//! `call_tracepoints`.

/// A call's number and those of its two tracepoints.
pub(super) type Found = (u16, u64, u64);

/// A system call that may be recorded.
#[derive(Debug)]
pub(super) struct Known {
    /// Its name.
    pub(super) name: &'static str,
    /// Arguments with which the kernel refuses it at once, or does nothing.
    pub(super) harmless: [u64; 4],
    /// Whether user stacks are recorded at some of them.
    pub(super) sited: bool,
}

const fn call(name: &'static str, harmless: [u64; 4], sited: bool) -> Known {
    Known { name, harmless, sited }
}

/// An invalid descriptor, process or size.
const NO: u64 = u64::MAX;

/// The likeliest first. Calls that this architecture lacks are skipped.
pub(super) const KNOWN: &[Known] = &[
    call("read", [NO, 0, 0, 0], true),
    call("write", [NO, 0, 0, 0], true),
    call("futex", [0, 129, 0, 0], true),
    call("exit_group", [0; 4], false),
    call("openat", [NO, 0, 0, 0], true),
    call("clock_nanosleep", [99, 0, 0, 0], true),
    call("wait4", [NO, 0, 1 << 30, 0], true),
    call("fsync", [NO, 0, 0, 0], true),
    call("mmap", [0; 4], true),
    call("munmap", [1, 0, 0, 0], true),
    call("close", [NO, 0, 0, 0], false),
    call("execve", [0; 4], false),
    call("poll", [0; 4], true),
    call("newfstatat", [NO, 0, 0, 0], true),
    call("pread64", [NO, 0, 0, 0], true),
    call("pwrite64", [NO, 0, 0, 0], true),
    call("lseek", [NO, 0, 0, 0], true),
    call("madvise", [1, 0, 0, 0], true),
    call("ioctl", [NO, 0, 0, 0], true),
    call("epoll_pwait", [NO, 0, 0, 0], true),
    call("fdatasync", [NO, 0, 0, 0], true),
    call("sched_yield", [0; 4], true),
    call("writev", [NO, 0, 0, 0], true),
    call("nanosleep", [0; 4], true),
    call("brk", [0; 4], false),
    call("pselect6", [NO, 0, 0, 0], true),
    call("recvfrom", [NO, 0, 0, 0], true),
    call("sendto", [NO, 0, 0, 0], true),
    call("clone", [0x800, 0, 0, 0], true),
    call("clone3", [0; 4], true),
    call("stat", [0; 4], true),
    call("fstat", [NO, 0, 0, 0], false),
    call("epoll_wait", [NO, 0, 0, 0], true),
    call("ppoll", [0, NO, 0, 0], true),
    call("statx", [NO, 0, 0, 0], false),
    call("access", [0; 4], false),
    call("readv", [NO, 0, 0, 0], false),
    call("waitid", [99, 0, 0, 0], false),
    call("getdents64", [NO, 0, 0, 0], false),
    call("fcntl", [NO, 0, 0, 0], false),
    call("dup2", [NO, NO, 0, 0], false),
    call("pipe2", [0; 4], false),
    call("pipe", [0; 4], false),
    call("dup3", [NO, NO, 0, 0], false),
    call("recvmsg", [NO, 0, 0, 0], false),
    call("sendmsg", [NO, 0, 0, 0], false),
    call("accept4", [NO, 0, 0, 0], false),
    call("connect", [NO, 0, 0, 0], false),
    call("readlink", [0; 4], false),
    call("lstat", [0; 4], false),
    call("unlink", [0; 4], false),
    call("select", [NO, 0, 0, 0], false),
    call("mremap", [1, 0, 0, 0], false),
    call("msync", [1, 0, 0, 0], false),
    call("getpid", [0; 4], false),
    call("clock_gettime", [99, 0, 0, 0], false),
    call("flock", [NO, 0, 0, 0], false),
    call("rename", [0; 4], false),
];
