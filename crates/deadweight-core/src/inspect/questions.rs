//! Questions to the kernel: system calls that change nothing and move no data, and whether a group of them
//! asks about the same thing again and again.
//!
//! A call that changes something (`setsockopt`, `epoll_ctl`, `rt_sigaction`) is no question, and an answer can
//! only be kept if the next question is about the same object. Not for files by path.

use crate::facts::Facts;
use crate::facts::call_groups::CallGroup;
use crate::facts::processes::ProcessId;

/// Fewer calls of one kind are no repetition.
pub(crate) const MANY: u64 = 200;
/// Nor are fewer calls per object.
pub(crate) const SAME: u64 = 40;

/// About the clock, the process and the machine.
const OF_PROCESS: &[&str] = &[
    "clock_gettime",
    "gettimeofday",
    "time",
    "clock_getres",
    "getpid",
    "gettid",
    "getppid",
    "getuid",
    "geteuid",
    "getgid",
    "getegid",
    "uname",
    "sysinfo",
    "getrlimit",
    "prlimit64",
    "getrusage",
    "times",
    "getcpu",
    "getcwd",
    "sched_getaffinity",
    "sched_getparam",
];

/// About what a descriptor refers to.
const OF_DESCRIPTOR: &[&str] =
    &["fcntl", "ioctl", "lseek", "getsockopt", "getsockname", "getpeername", "fstatfs"];

/// Calls whose result is a new descriptor, or two.
const BIRTHS: &[&str] = &[
    "open",
    "openat",
    "openat2",
    "creat",
    "memfd_create",
    "socket",
    "socketpair",
    "accept",
    "accept4",
    "dup",
    "dup2",
    "dup3",
    "pipe",
    "pipe2",
    "epoll_create",
    "epoll_create1",
    "eventfd",
    "eventfd2",
    "timerfd_create",
    "signalfd",
    "signalfd4",
    "inotify_init",
    "inotify_init1",
    "pidfd_open",
];

/// Whether all calls of the group ask the same question, each about few objects.
pub(crate) fn repeats_question(facts: &Facts<'_>, group: &CallGroup) -> bool {
    OF_PROCESS.contains(&group.name)
        && !group.questions.iter().any(|args| is_of_cpu_time(group.name, args))
        || OF_DESCRIPTOR.contains(&group.name)
            && group.questions.iter().all(|args| only_asks(group.name, args))
            && group.calls / objects_at_most(facts, group) >= SAME
}

/// Whether a call asks for CPU time, which is another one each time: CLOCK_PROCESS_CPUTIME_ID, CLOCK_THREAD_CPUTIME_ID, and
/// the clocks of other processes, which are negative (clock_getcpuclockid(3)).
pub(crate) fn is_of_cpu_time(name: &str, args: &[u64; 4]) -> bool {
    let clock = args[0] & 0xffff_ffff;
    name == "clock_gettime" && (matches!(clock, 2 | 3) || clock >= 1 << 31)
}

/// Whether a call with these arguments changes nothing.
fn only_asks(name: &str, args: &[u64; 4]) -> bool {
    let operation = args[1] & 0xffff_ffff;
    match name {
        // F_GETFD, F_GETFL, F_GETOWN, F_GETPIPE_SZ, F_GET_SEALS.
        "fcntl" => matches!(operation, 1 | 3 | 9 | 1032 | 1034),
        // TCGETS, TIOCGPGRP, TIOCGWINSZ, TIOCGSID; others say by their direction that they only read.
        "ioctl" => matches!(operation, 0x5401 | 0x540f | 0x5413 | 0x5429) || operation >> 30 == 2,
        // The position, or the size of the file.
        "lseek" => operation == 0 && matches!(args[2], 1 | 2),
        // SO_ERROR, which it clears; TCP_INFO, which is news.
        "getsockopt" => !matches!((operation, args[2]), (1, 4) | (6, 11)),
        _ => true,
    }
}

/// How many objects the calls of a group are about at most. A descriptor's number says nothing: it is given
/// again as soon as it is free.
fn objects_at_most(facts: &Facts<'_>, group: &CallGroup) -> u64 {
    let births = Births::of(facts, group.process);
    // Calls that were counted together don't show which descriptors were opened and closed among them.
    let unsure = group.kind.is_none() || group.counted > 0 || births.counted;
    let known = group.things.max(1);
    if unsure { known.max(births.all) } else { known }
}

/// The descriptors that a process got after its start.
pub(crate) struct Births {
    /// How many.
    pub(crate) all: u64,
    /// How many by opening a file by its path.
    pub(crate) by_path: u64,
    /// Whether some were counted together.
    counted: bool,
}

impl Births {
    pub(crate) fn of(facts: &Facts<'_>, process: ProcessId) -> Self {
        let mut births = Self { all: 0, by_path: 0, counted: false };
        for (_, group) in facts.call_groups.of_process(process) {
            // `F_DUPFD` and `F_DUPFD_CLOEXEC`.
            let copies = |args: &[u64; 4]| matches!(args[1], 0 | 1030);
            if BIRTHS.contains(&group.name)
                || group.name == "fcntl" && group.questions.iter().any(copies)
            {
                let made = group.calls - group.failed.min(group.calls);
                births.all += made;
                births.by_path += if group.name.starts_with("open") { made } else { 0 };
                births.counted |= group.counted > 0;
            }
        }
        births
    }
}

#[cfg(test)]
mod tests {
    use super::{is_of_cpu_time, only_asks};

    #[test]
    fn what_is_another_answer_each_time_is_no_question() {
        let clock =
            |id: i32| is_of_cpu_time("clock_gettime", &[u64::from(id.cast_unsigned()), 0, 0, 0]);
        assert!(clock(2) && clock(3) && clock(-6));
        assert!(!clock(0) && !clock(1) && !is_of_cpu_time("getpid", &[3, 0, 0, 0]));
        let asks = |level, option| only_asks("getsockopt", &[5, level, option, 0]);
        // SO_ERROR and TCP_INFO beside SO_RCVBUF and TCP_NODELAY.
        assert_eq!([asks(1, 4), asks(6, 11), asks(1, 8), asks(6, 1)], [false, false, true, true]);
    }
}
