//! One run without tracing: its times, and the counters that the kernel keeps for any process.
//!
//! Starting programs is in `launch`, repeating runs in the command.

use super::signals::Guard;
use super::{Request, time_limit, vfork};
use crate::error::Error;
use crate::perf::deferred_close;
use crate::procfs::cgroup;
use deadweight_trace::units::Ns;
use deadweight_trace::{Exit, Usage};

/// A run without tracing.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct CleanRun {
    /// From just before exec to `wait4`'s return.
    pub wall: Ns,
    /// CPU time in user mode.
    pub user: Ns,
    /// CPU time in the kernel.
    pub system: Ns,
    /// Largest resident set in bytes.
    pub max_rss: u64,
    /// How it ended.
    pub exit: Exit,
    /// Involuntary context switches: how often another task got the CPU although the program could have continued.
    pub involuntary_switches: u64,
    /// Blocks of 512 bytes that had to be read from storage.
    pub blocks_read: u64,
    /// How long a CPU quota of the cgroup kept tasks from running, summed over CPUs.
    pub throttled: Ns,
}

/// Runs the program once, untraced.
///
/// # Errors
/// If it cannot be started ([`Error::Exec`], [`Error::Command`], [`Error::Directory`]).
pub fn run_clean(request: &Request) -> Result<CleanRun, Error> {
    deferred_close::wait();
    let _room = deferred_close::hold_off_closing();
    let guard = Guard::install();
    let throttled = cgroup::throttled();
    let running = vfork::start(request, &guard)?;
    let ended = time_limit::within(request.limit, running.pid(), || running.wait())?;
    let Usage { user, system, max_rss } = ended.usage;
    Ok(CleanRun {
        wall: Ns(ended.end - ended.start),
        user,
        system,
        max_rss,
        exit: ended.exit,
        involuntary_switches: ended.involuntary_switches,
        blocks_read: ended.blocks_read,
        throttled: Ns(cgroup::throttled().saturating_sub(throttled)),
    })
}
