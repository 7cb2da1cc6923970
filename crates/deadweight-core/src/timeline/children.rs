//! Polls that a child's death interrupted: waits for that child.
//!
//! A program that keeps a number of children at work (`make`) waits in one poll for a child's end and for
//! space for more children. A child's death sends a signal, which interrupts the poll. Where switches of
//! dying tasks are not seen, a child's end may be known only from the later call that reaped it. Reads that
//! a signal interrupts are left alone: they waited for data.

use super::inferred_wakers::INTERRUPTED;
use super::{Block, Call, Timeline};
use crate::timeline::kernel_stacks::WaitsFor;
use deadweight_trace::ids::Tid;
use deadweight_trace::syscall::{self, Arch};
use deadweight_trace::units::Ns;
use std::collections::BTreeMap;

/// Deaths that are considered for one wait, back from its end.
const VISITED: usize = 64;

/// A child's last steps.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Death {
    exit: Ns,
    /// When its parent reaped it, if that was seen.
    reaped: Option<Ns>,
}

impl Death {
    /// Whether it may have sent the signal that ended a wait.
    fn interrupted(self, wait: &Block) -> bool {
        self.exit >= wait.start || self.reaped.is_some_and(|at| at >= wait.end)
    }
}

/// Charges polls that a child's death interrupted to that child.
pub(super) fn end_polls(timeline: &mut Timeline, arch: Arch) {
    let deaths = deaths(timeline, arch);
    if deaths.is_empty() {
        return;
    }
    for index in 0..timeline.blocks.len() {
        let block = timeline.blocks[index];
        let Some(call) = block.call.map(|id| timeline.calls[id.index()]) else { continue };
        let interrupted = call.ret().is_some_and(|ret| INTERRUPTED.contains(&ret));
        if block.waits_for != WaitsFor::Poll || !interrupted {
            continue;
        }
        let Some(deaths) = deaths.get(&timeline.task(block.task).process) else { continue };
        // Where the wait's end is inferred it may be too early; the call's end is always seen.
        let before = deaths.partition_point(|death| death.exit <= call.end);
        let mut recent = deaths[..before].iter().rev().take(VISITED);
        if recent.any(|death| death.interrupted(&block)) {
            timeline.blocks[index].waits_for = WaitsFor::Child;
        }
    }
}

/// By the process that gave birth, in order of time.
fn deaths(timeline: &Timeline, arch: Arch) -> BTreeMap<Tid, Vec<Death>> {
    let wait4 = syscall::number(arch, "wait4");
    let reaping = |call: &&Call| Some(call.nr) == wait4 && call.ret().is_some_and(|ret| ret > 0);
    let mut reaped: BTreeMap<u32, Vec<Ns>> = BTreeMap::new();
    for call in timeline.calls.iter().filter(reaping) {
        let child = call.ret().and_then(|ret| u32::try_from(ret).ok());
        reaped.entry(child.unwrap_or(0)).or_default().push(call.end);
    }
    let mut deaths: BTreeMap<Tid, Vec<Death>> = BTreeMap::new();
    for task in timeline.tasks.iter().filter(|task| task.own) {
        let parent = task.parent.map(|parent| timeline.task(parent).process);
        let Some((exit, parent)) = task.exit.zip(parent) else { continue };
        if parent != task.process {
            let asked = reaped.get(&task.tid.0).into_iter().flatten();
            let reaped = asked.copied().filter(|at| *at >= exit).min();
            deaths.entry(parent).or_default().push(Death { exit, reaped });
        }
    }
    deaths.values_mut().for_each(|deaths| deaths.sort_unstable());
    deaths
}

#[cfg(test)]
mod tests {
    use crate::timeline::Timeline;
    use crate::timeline::kernel_stacks::WaitsFor;
    use deadweight_trace::Trace;

    /// What a `pselect` of task 1 from 30 to 90 that returned `ret` waited for. The task has a child that
    /// exits at `exit`, and reaps one at 110.
    fn waits_for(ret: &str, exit: u64, reaped: u32) -> WaitsFor {
        let text = format!(
            "rung user\ntask 1 make\n0 on\n3 fork 2\n25 syscall pselect6 4 0\n30 off blocked\n90 on\n95 back {ret}\n\
             100 syscall wait4 4294967295 1\n110 back {reaped}\n200 exit\ntask 2 cc\n5 on\n{exit} exit\n{} off dead",
            exit + 1
        );
        Timeline::build(&Trace::from_text(&text).unwrap()).blocks[0].waits_for
    }

    #[test]
    fn a_poll_that_a_childs_death_interrupts_is_a_wait_for_it() {
        assert_eq!(waits_for("-514", 60, 2), WaitsFor::Child);
        assert_eq!(waits_for("-514", 60, 0), WaitsFor::Child);
        assert_eq!(waits_for("-514", 93, 2), WaitsFor::Child);
        // It had begun to exit before, and its last steps were not seen.
        assert_eq!(waits_for("-514", 20, 2), WaitsFor::Child);
    }

    #[test]
    fn a_wait_that_no_child_interrupted_is_a_poll() {
        assert_eq!(waits_for("1", 60, 2), WaitsFor::Poll);
        assert_eq!(waits_for("-514", 20, 0), WaitsFor::Poll);
        assert_eq!(waits_for("-514", 97, 2), WaitsFor::Poll);
    }
}
