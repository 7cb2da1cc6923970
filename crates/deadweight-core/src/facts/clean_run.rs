//! A run that was not recorded: its times, and the kernel's counters of it.
//!
//! Data only. `overhead` fits its costs to such runs, `pool` takes the wall time from them.

use deadweight_trace::Exit;
use deadweight_trace::units::Ns;

/// A run without tracing, by the kernel's own counters.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct CleanRun {
    /// From the release of the command until its end.
    pub wall: Ns,
    /// CPU time in user mode, with the children that were waited for.
    pub user: Ns,
    /// CPU time in the kernel.
    pub system: Ns,
    /// Largest resident set in bytes.
    pub max_rss: u64,
    /// How it ended.
    pub exit: Exit,
    /// The kernel's counters of it, where they are known.
    pub counters: RunCounters,
}

/// Kernel counters of one run: they show why one run took longer than others like it.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct RunCounters {
    /// Involuntary context switches: another task was given its CPU while it could still run.
    pub displaced: u64,
    /// Blocks of 512 bytes that had to be read from storage.
    pub blocks_read: u64,
    /// Throttled time: how long a CPU quota of the cgroup kept tasks from running, summed over CPUs.
    pub throttled: Ns,
}
