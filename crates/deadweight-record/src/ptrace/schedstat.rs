//! What the kernel counts of a task, from `/proc/PID/task/TID`: CPU time, run delay, time slices,
//! context switches, faults and I/O calls.
//!
//! Exact for a task that is stopped or blocked. Of a running task the counts are up to the latest
//! tick. Does not interpret them; see `tracee`.

use crate::procfs::own_tid;
use crate::procfs::status::Status;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;

/// The unit of CPU times in `/proc`, in ns: a hundredth of a second on every machine.
pub(super) const CPU_TIME_UNIT: u64 = 10_000_000;

/// The scheduler's counts since the task's birth.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SchedCounts {
    /// Time on a CPU, in ns.
    pub(super) cpu_time: u64,
    /// Time runnable without a CPU, in ns.
    pub(super) run_delay: u64,
    /// How often it got a CPU.
    pub(super) timeslices: u64,
}

/// The state of a task.
#[derive(Copy, Clone, Debug)]
pub(super) struct TaskState {
    /// Whether it is running or runnable.
    pub(super) runs: bool,
    /// Its user time so far, in ns, as the kernel's tick found it: precise to [`CPU_TIME_UNIT`].
    pub(super) user_time: u64,
    /// Its current or latest CPU, or the one that it waits for.
    pub(super) cpu: usize,
}

/// The files of one task.
#[derive(Debug)]
pub(super) struct Schedstat {
    folder: String,
    file: Option<File>,
}

impl Schedstat {
    pub(super) fn of(process: u32, task: u32) -> Self {
        let folder = format!("/proc/{process}/task/{task}");
        let file = File::open(format!("{folder}/schedstat")).ok();
        Self { folder, file }
    }

    pub(super) fn of_this_thread() -> Self {
        Self::of(std::process::id(), own_tid())
    }

    /// The current counts. None if the task has ended or this kernel does not count.
    pub(super) fn read(&self) -> Option<SchedCounts> {
        let mut bytes = [0; 80];
        let len = match &self.file {
            Some(file) => file.read_at(&mut bytes, 0).ok()?,
            // There are more tasks than descriptors.
            None => {
                let file = File::open(format!("{}/schedstat", self.folder)).ok()?;
                file.read_at(&mut bytes, 0).ok()?
            }
        };
        let mut words = bytes.get(..len)?.split(u8::is_ascii_whitespace).map(number);
        let mut next = || words.next().flatten();
        Some(SchedCounts { cpu_time: next()?, run_delay: next()?, timeslices: next()? })
    }

    /// How often it was preempted.
    pub(super) fn involuntary_switches(&self) -> Option<u64> {
        self.switches("nonvoluntary_ctxt_switches:")
    }

    /// How often it blocked.
    pub(super) fn voluntary_switches(&self) -> Option<u64> {
        self.switches("voluntary_ctxt_switches:")
    }

    fn switches(&self, name: &str) -> Option<u64> {
        Status::of(&self.folder)?.field(name).parse().ok()
    }

    /// Calls that read and calls that wrote so far.
    pub(super) fn io_calls(&self) -> Option<[u64; 2]> {
        let io = fs::read_to_string(format!("{}/io", self.folder)).ok()?;
        let count = |name| io.lines().find_map(|l| l.strip_prefix(name))?.trim().parse().ok();
        Some([count("syscr:")?, count("syscw:")?])
    }

    /// Minor page faults so far.
    pub(super) fn minor_faults(&self) -> Option<u64> {
        self.stat_fields([7])?[0].parse().ok()
    }

    /// Whether it is running or runnable.
    pub(super) fn runs(&self) -> bool {
        self.stat_fields([0]).is_some_and(|[letter]| letter == "R")
    }

    /// Its current state.
    pub(super) fn state(&self) -> Option<TaskState> {
        let [letter, ticks, cpu] = self.stat_fields([0, 11, 36])?;
        let user_time = ticks.parse::<u64>().ok()? * CPU_TIME_UNIT;
        Some(TaskState { runs: letter == "R", user_time, cpu: cpu.parse().ok()? })
    }

    /// Fields of `stat`, counted from the state: the name before it may hold anything.
    fn stat_fields<const N: usize>(&self, numbers: [usize; N]) -> Option<[String; N]> {
        let stat = fs::read(format!("{}/stat", self.folder)).ok()?;
        let name = stat.iter().rposition(|byte| *byte == b')')?;
        let after = String::from_utf8_lossy(stat.get(name + 1..)?);
        let words: Vec<&str> = after.split_whitespace().collect();
        let found: Vec<_> =
            numbers.iter().map_while(|n| words.get(*n)).map(|w| (*w).to_owned()).collect();
        found.try_into().ok()
    }
}

fn number(digits: &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for digit in digits {
        let digit = digit.checked_sub(b'0').filter(|d| *d < 10)?;
        value = value.checked_mul(10)?.checked_add(u64::from(digit))?;
    }
    (!digits.is_empty()).then_some(value)
}

impl SchedCounts {
    /// What was added since `before`.
    pub(super) fn since(self, before: Self) -> Self {
        Self {
            cpu_time: self.cpu_time.saturating_sub(before.cpu_time),
            run_delay: self.run_delay.saturating_sub(before.run_delay),
            timeslices: self.timeslices.saturating_sub(before.timeslices),
        }
    }
}
