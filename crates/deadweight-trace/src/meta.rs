//! The facts about a recording that are not events: command, machine, bounds, result, what was lacking.
//!
//! Stored as JSON in the trace file: a renamed field keeps its name there. Not for symbols; see `symbols`.

use crate::ids::{Cpu, Tid};
use crate::syscall::Arch;
use crate::units::Ns;
use serde::{Deserialize, Serialize};

/// Everything about a recording that is not an event.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Meta {
    /// Version of deadweight that recorded.
    pub recorder: String,
    /// The command with its arguments.
    pub command: Vec<String>,
    /// Architecture of the machine.
    pub arch: Arch,
    /// CPUs that could run the program.
    pub cpus: u16,
    /// The machine, as far as its settings say.
    #[serde(skip_serializing_if = "Machine::is_unknown")]
    pub machine: Machine,
    /// The clock's reading at the trace's time zero, in ns.
    pub zero: u64,
    /// Task that became the command.
    pub root: Tid,
    /// Whether the recording attached to a running process and detached from it: then start and end are
    /// those of the recording.
    pub attached: bool,
    /// When the command's process was released towards exec; the wall time starts here.
    pub start: Ns,
    /// When the parent learned of the command's end (exit of the root); the wall time ends here.
    pub end: Ns,
    /// How the root ended; none if it was still running or the recording broke off.
    pub exit: Option<Exit>,
    /// The kernel's accounting for the root and the children that it waited for.
    pub rusage: Option<Usage>,
    /// Mean period of the sampling clock in ns of CPU time; 0 without sampling.
    pub sample_period: u64,
    /// What recording costs the program.
    #[serde(rename = "observer")]
    pub overhead: Overhead,
    /// The recorder's own tasks: their CPU time is tracing overhead, not that of another program.
    pub recorders: Vec<Tid>,
    /// The rung of the recording (`root`, ...): how much the recorder was permitted to see; see `deadweight doctor`.
    pub rung: String,
    /// Why it is not a higher rung; empty at the top.
    pub rung_why: String,
    /// What a higher rung would show, in words, most important first.
    pub lacks: Vec<String>,
    /// CPUs whose idle task delivered no tracepoints in the self-test.
    pub blind_cpus: Vec<Cpu>,
    /// CPU time stolen by the hypervisor during the run, all CPUs, in ns.
    pub steal: Ns,
    /// How long the cgroup's CPU quota throttled its tasks during the run, summed over CPUs.
    pub throttled: Ns,
    /// How long a write took beside another CPU's writes to the same cache line, in thousandths of one to a line of its own;
    /// measured after the run, if that used several CPUs. 0 if not measured.
    pub shared_line: u64,
    /// How long a cycle of a CPU takes in ps, measured after the run. 0 if not measured.
    pub cycle: u64,
    /// CPU time of threads whose calls are not known: a running process was joined by stops, and they have not stopped.
    pub unseen: Ns,
    /// System calls that were not recorded, because only 1 in N was recorded: they are taken to be like it.
    #[serde(rename = "thinned")]
    pub decimated: u64,
    /// What the reader must know about this recording, in plain words.
    pub warnings: Vec<String>,
    /// Written last: false if the recording broke off.
    pub complete: bool,
}

/// What kind of machine it was: times of two kinds cannot be compared. Texts are empty where unknown.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Machine {
    /// Model name of the CPU.
    pub cpu: String,
    /// Release of the kernel (`6.1.0-18-amd64`).
    pub kernel: String,
    /// What virtualises it (`kvm`, `vmware`, `container`), or empty.
    pub virtualisation: String,
    /// The policy that sets the CPU's speed (`performance`), or empty.
    pub governor: String,
    /// The setting of transparent huge pages (`madvise`), or empty.
    pub huge_pages: String,
    /// How many CPUs a cgroup grants; 0 without a quota.
    pub cpu_quota: f64,
    /// Bytes of a CPU's data cache, of its second-level cache, and of its third-level cache, which several CPUs may
    /// share; 0 where not known.
    pub caches: [u64; 3],
}

impl Machine {
    /// Whether nothing is known of it: recordings of earlier versions, and those of other tools.
    #[must_use]
    pub fn is_unknown(&self) -> bool {
        *self == Self::default()
    }
}

/// How the command ended.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exit {
    /// Exit code; 0 if a signal ended it.
    pub code: i32,
    /// The signal that ended it.
    pub signal: Option<i32>,
}

/// The kernel's resource count (`getrusage`).
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// CPU time in user mode.
    pub user: Ns,
    /// CPU time in the kernel.
    pub system: Ns,
    /// Largest resident set in bytes.
    pub max_rss: u64,
}

/// The calibrated tracing overhead in ns per event, by where the time appears.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Overhead {
    /// Per system call, in the user time around it.
    pub syscall_user: u64,
    /// Per system call, between its entry and exit records.
    pub syscall_kernel: u64,
    /// Per system call that was counted rather than recorded, in the user time around it. 0 if none was counted.
    #[serde(default)]
    pub counted_user: u64,
    /// Per system call that was counted, between its entry and its return.
    #[serde(default)]
    pub counted_kernel: u64,
    /// Per page fault, in the user time after it.
    pub fault_user: u64,
    /// Per page fault, between its two records.
    pub fault_kernel: u64,
    /// Per switch of a task.
    pub switch: u64,
    /// Per sample.
    pub sample: u64,
    /// Per birth of a task, in the call that starts it: the kernel copies its perf events.
    pub birth: u64,
    /// Per exit of a task: the kernel tears down its perf events.
    pub death: u64,
    /// Per user stack taken at a system call or a page fault, after its first record.
    pub site: u64,
    /// More per recorded call whose path was read, between its records.
    #[serde(default)]
    pub path: u64,
    /// More if the path is relative to a descriptor's folder, which was looked up.
    #[serde(default)]
    pub folder: u64,
    /// How much more calls and page faults cost from a program's exec until its `main` begins, in thousandths: nothing of
    /// the process, and nothing that recording needs, is in the processor's caches then.
    #[serde(default)]
    pub starting: u64,
}

impl Meta {
    /// Whether wake-ups were recorded: the lower rungs record none.
    #[must_use]
    pub fn records_wakers(&self) -> bool {
        !matches!(self.rung.as_str(), "user" | "stops" | "samples")
    }

    /// Whether there are only samples of a clock (imported from another tool): most of the time is not recorded.
    #[must_use]
    pub fn has_only_samples(&self) -> bool {
        self.rung == "samples"
    }

    /// Whether system calls were recorded: what is imported from another tool may have switches without them.
    #[must_use]
    pub fn records_calls(&self) -> bool {
        !matches!(self.rung.as_str(), "switches" | "samples")
    }

    /// Whether page faults were recorded: no other tool's recording has them.
    #[must_use]
    pub fn records_faults(&self) -> bool {
        !matches!(self.rung.as_str(), "perf" | "switches" | "samples")
    }

    /// Whether both ends of each wait and of each system call were recorded. On the rung of ptrace stops they are
    /// inferred from counters between stops; under decimation the unrecorded calls are taken to be like the
    /// recorded ones.
    #[must_use]
    pub fn records_both_ends(&self) -> bool {
        !matches!(self.rung.as_str(), "stops" | "samples") && self.decimated == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn renamed_fields_keep_their_names_in_files() {
        let json = serde_json::to_value(Meta::default()).unwrap();
        let names = ["observer", "thinned"].map(|name| json.get(name).is_some());
        assert_eq!(names, [true, true], "{json}");
        assert!(json.get("overhead").is_none() && json.get("decimated").is_none(), "{json}");
    }
}
