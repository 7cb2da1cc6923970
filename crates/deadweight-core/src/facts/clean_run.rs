//! A run that was not recorded: its times, and the kernel's counters of it.
//!
//! Data only. `overhead` fits its costs to such runs, `pool` takes the wall time from them.

use deadweight_trace::Exit;
use deadweight_trace::units::Ns;

/// A run without tracing, as the kernel's own counters saw it.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct CleanRun {
    /// From release to the end of the command.
    pub wall: Ns,
    /// CPU time in user mode, with the children that were waited for.
    pub user: Ns,
    /// CPU time in the kernel.
    pub system: Ns,
    /// Largest resident set in bytes.
    pub max_rss: u64,
    /// How it ended.
    pub exit: Exit,
    /// What it had to do with the rest of the machine, where that is known.
    pub counters: RunCounters,
}

/// What a run met with, by the kernel's counts: what tells why one took longer than its like.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct RunCounters {
    /// How often another task was given its CPU while it could have gone on.
    pub displaced: u64,
    /// Blocks of 512 bytes that had to be read from storage.
    pub blocks_read: u64,
    /// How long a CPU quota of the cgroup kept tasks from running, summed over CPUs.
    pub throttled: Ns,
}
