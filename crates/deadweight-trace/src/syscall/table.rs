//! The system calls whose arguments the trace keeps, by name, with the arguments in the order of
//! the kernel's declarations (`/sys/kernel/tracing/events/syscalls`, Linux 6.18).
//!
//! Names are the same on all architectures; aarch64 lacks the older ones (`open`, `stat`, `pipe`).
//! Not for what a call does: the analysis knows that.

/// One system call.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) name: &'static str,
    kept: [usize; 4],
    count: usize,
    /// Among the kept arguments, the descriptor that the call works on.
    pub(super) descriptor: Option<usize>,
    /// Among the kept arguments, the number of bytes requested.
    pub(super) size: Option<usize>,
    /// Among the kept arguments, the path.
    pub(super) path: Option<usize>,
}

impl Row {
    /// Which of the six arguments are kept.
    pub(super) fn kept(&self) -> &[usize] {
        &self.kept[..self.count]
    }
}

/// A row from the names of the arguments: `-` is an argument that is not kept (mostly an output buffer), `fd` the
/// descriptor worked on, `size` the bytes requested. Arguments after the last word are not kept either.
const fn row(name: &'static str, arguments: &'static str) -> Row {
    let mut row = Row { name, kept: [0; 4], count: 0, descriptor: None, size: None, path: None };
    let bytes = arguments.as_bytes();
    let (mut start, mut position) = (0, 0);
    while start < bytes.len() {
        let mut end = start;
        while end < bytes.len() && bytes[end] != b' ' {
            end += 1;
        }
        if !is(bytes, start, end, b"-") {
            if is(bytes, start, end, b"fd") {
                row.descriptor = Some(row.count);
            } else if is(bytes, start, end, b"size") {
                row.size = Some(row.count);
            } else if is(bytes, start, end, b"path") {
                row.path = Some(row.count);
            }
            row.kept[row.count] = position;
            row.count += 1;
        }
        start = end + 1;
        position += 1;
    }
    row
}

/// Whether `bytes[start..end]` is `word`.
const fn is(bytes: &[u8], start: usize, end: usize, word: &[u8]) -> bool {
    let mut at = 0;
    while at < word.len() {
        if start + at >= end || bytes[start + at] != word[at] {
            return false;
        }
        at += 1;
    }
    end - start == word.len()
}

/// In alphabetical order.
pub(super) static TABLE: [Row; 212] = [
    row("accept", "fd"),
    row("accept4", "fd - - flags"),
    row("access", "path mode"),
    row("arch_prctl", "code address"),
    row("bind", "fd - length"),
    row("brk", "end"),
    row("capget", ""),
    row("chdir", "path"),
    row("chmod", "path mode"),
    row("chown", "path user group"),
    row("clock_getres", "clock"),
    row("clock_gettime", "clock"),
    row("clock_nanosleep", "clock flags"),
    row("clone", "flags"),
    row("clone3", "- length"),
    row("close", "fd"),
    row("close_range", "first last flags"),
    row("connect", "fd peer length"),
    row("copy_file_range", "fd - out - size"),
    row("creat", "path mode"),
    row("dup", "fd"),
    row("dup2", "fd to"),
    row("dup3", "fd to flags"),
    row("epoll_create", "count"),
    row("epoll_create1", "flags"),
    row("epoll_ctl", "fd operation other"),
    row("epoll_pwait", "fd - count timeout"),
    row("epoll_pwait2", "fd - count timeout"),
    row("epoll_wait", "fd - count timeout"),
    row("eventfd", "value"),
    row("eventfd2", "value flags"),
    row("execve", "path"),
    row("execveat", "directory path - - flags"),
    row("exit", "code"),
    row("exit_group", "code"),
    row("faccessat", "directory path mode"),
    row("faccessat2", "directory path mode flags"),
    row("fadvise64", "fd offset length advice"),
    row("fallocate", "fd mode offset length"),
    row("fchdir", "fd"),
    row("fchmod", "fd mode"),
    row("fchmodat", "directory path mode"),
    row("fchown", "fd user group"),
    row("fchownat", "directory path user group"),
    row("fcntl", "fd operation argument"),
    row("fdatasync", "fd"),
    row("fgetxattr", "fd name"),
    row("flock", "fd operation"),
    row("fork", ""),
    row("fstat", "fd"),
    row("fstatfs", "fd"),
    row("fsync", "fd"),
    row("ftruncate", "fd length"),
    row("futex", "word operation value timeout"),
    row("futex_requeue", "words flags wake requeue"),
    row("futex_wait", "word value mask flags"),
    row("futex_waitv", "words count flags"),
    row("futex_wake", "word mask count flags"),
    row("getcpu", ""),
    row("getcwd", ""),
    row("getdents", "fd - size"),
    row("getdents64", "fd - size"),
    row("getegid", ""),
    row("geteuid", ""),
    row("getgid", ""),
    row("getitimer", "which"),
    row("getpeername", "fd"),
    row("getpgid", "process"),
    row("getpgrp", ""),
    row("getpid", ""),
    row("getppid", ""),
    row("getpriority", "which who"),
    row("getrandom", "- size flags"),
    row("getresgid", ""),
    row("getresuid", ""),
    row("getrlimit", "resource"),
    row("getrusage", "who"),
    row("getsid", "process"),
    row("getsockname", "fd"),
    row("getsockopt", "fd level option"),
    row("gettid", ""),
    row("gettimeofday", ""),
    row("getuid", ""),
    row("inotify_add_watch", "fd path mask"),
    row("inotify_init", ""),
    row("inotify_init1", "flags"),
    row("inotify_rm_watch", "fd watch"),
    row("io_getevents", "context least count"),
    row("io_pgetevents", "context least count"),
    row("io_setup", "count"),
    row("io_submit", "context count"),
    row("io_uring_enter", "fd submitted least flags"),
    row("io_uring_register", "fd operation - count"),
    row("io_uring_setup", "entries"),
    row("ioctl", "fd operation argument"),
    row("kill", "process signal"),
    row("linkat", "directory path to other"),
    row("listen", "fd backlog"),
    row("lseek", "fd offset whence"),
    row("lstat", "path"),
    row("madvise", "start length advice"),
    row("membarrier", "command flags"),
    row("memfd_create", "- flags"),
    row("mincore", "start length"),
    row("mkdir", "path mode"),
    row("mkdirat", "directory path mode"),
    row("mlock", "start length"),
    row("mmap", "- length protection flags fd"),
    row("mprotect", "start length protection"),
    row("mremap", "start length new flags"),
    row("msgrcv", "queue - size type flags"),
    row("msgsnd", "queue - size flags"),
    row("msync", "start length flags"),
    row("munmap", "start length"),
    row("nanosleep", ""),
    row("newfstatat", "directory path - flags"),
    row("open", "path flags mode"),
    row("openat", "directory path flags"),
    row("openat2", "directory path - length"),
    row("pause", ""),
    row("perf_event_open", "- process cpu group"),
    row("personality", "value"),
    row("pidfd_getfd", "pidfd target flags"),
    row("pidfd_open", "process flags"),
    row("pidfd_send_signal", "pidfd signal"),
    row("pipe", "fds"),
    row("pipe2", "fds flags"),
    row("poll", "list count timeout"),
    row("ppoll", "list count timeout"),
    row("prctl", "option a b"),
    row("pread64", "fd - size offset"),
    row("preadv", "fd - count offset"),
    row("preadv2", "fd - count offset"),
    row("prlimit64", "process resource"),
    row("process_vm_readv", "process - count"),
    row("pselect6", "count - - - timeout"),
    row("pwrite64", "fd - size offset"),
    row("pwritev", "fd - count offset"),
    row("pwritev2", "fd - count offset"),
    row("read", "fd - size"),
    row("readahead", "fd offset length"),
    row("readlink", "path"),
    row("readlinkat", "directory path"),
    row("readv", "fd - count"),
    row("recvfrom", "fd - size flags"),
    row("recvmmsg", "fd - count flags"),
    row("recvmsg", "fd - flags"),
    row("rename", "path to"),
    row("renameat", "directory path other to"),
    row("renameat2", "directory path other to"),
    row("restart_syscall", ""),
    row("rmdir", "path"),
    row("rseq", ""),
    row("rt_sigaction", "signal"),
    row("rt_sigpending", ""),
    row("rt_sigprocmask", "how"),
    row("rt_sigreturn", ""),
    row("rt_sigsuspend", ""),
    row("rt_sigtimedwait", ""),
    row("sched_getaffinity", "process"),
    row("sched_setaffinity", "process"),
    row("sched_yield", ""),
    row("select", "count - - - timeout"),
    row("semget", "key count flags"),
    row("semop", "set - count"),
    row("semtimedop", "set - count"),
    row("sendfile", "fd in - size"),
    row("sendmmsg", "fd - count flags"),
    row("sendmsg", "fd - flags"),
    row("sendto", "fd - size flags"),
    row("set_robust_list", ""),
    row("set_tid_address", ""),
    row("setitimer", "which"),
    row("setpgid", "process group"),
    row("setsid", ""),
    row("setsockopt", "fd level option"),
    row("shutdown", "fd how"),
    row("sigaltstack", ""),
    row("signalfd", "fd"),
    row("signalfd4", "fd - - flags"),
    row("socket", "domain type protocol"),
    row("socketpair", "domain type protocol"),
    row("splice", "fd - out - size"),
    row("stat", "path"),
    row("statfs", "path"),
    row("statx", "directory path flags mask"),
    row("symlinkat", "path directory to"),
    row("sync", ""),
    row("sync_file_range", "fd offset length flags"),
    row("syncfs", "fd"),
    row("sysinfo", ""),
    row("tee", "fd out size flags"),
    row("tgkill", "process task signal"),
    row("time", ""),
    row("timerfd_create", "clock flags"),
    row("timerfd_gettime", "fd"),
    row("timerfd_settime", "fd flags"),
    row("times", ""),
    row("tkill", "task signal"),
    row("truncate", "path length"),
    row("umask", "mask"),
    row("uname", ""),
    row("unlink", "path"),
    row("unlinkat", "directory path flags"),
    row("userfaultfd", "flags"),
    row("utimensat", "directory path - flags"),
    row("vfork", ""),
    row("vmsplice", "fd - count flags"),
    row("wait4", "process - options"),
    row("waitid", "which process - options"),
    row("write", "fd - size"),
    row("writev", "fd - count"),
];
