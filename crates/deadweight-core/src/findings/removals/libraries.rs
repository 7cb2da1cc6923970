//! Costs that a library leaves out which is loaded first: its versions of some functions do less.
//!
//! They reach calls through the C library only. Not for whether the program loads it: the runs show that.

use super::calls::{SMALL, sync_share};
use crate::account::{AccountId, Detail};
use crate::cost::maps_itself;
use crate::facts::processes::ProcessId;
use crate::inspect::Inspection;
use crate::inspect::same_files::BY_PATH;
use crate::timeline::kernel_stacks::WaitsFor;
use deadweight_report::report::{Change, Preloaded, Removal};
use deadweight_trace::units::Ns;

/// From this many yields on they are a loop that waits.
const YIELDS: u64 = 500;

/// A removal of a whole finding.
pub(super) fn library(what: &str, library: Preloaded) -> Removal {
    part(what, library, 1.0)
}

fn part(what: &str, library: Preloaded, share: f64) -> Removal {
    Removal { what: what.to_owned(), share, change: Ok(Change::Library(library)) }
}

/// The share of a process's sleeps that is a wait for one of these.
fn share(found: &Inspection<'_, '_>, process: ProcessId, of: &[WaitsFor]) -> f64 {
    let (mut part, mut all) = (Ns::ZERO, Ns::ZERO);
    for entry in found.wall.of_process(AccountId::of_class("wait-sleep"), process) {
        all += entry.ns;
        if matches!(entry.detail, Detail::Waits(waits_for, _) if of.contains(&waits_for)) {
            part += entry.ns;
        }
    }
    part.share_of(all)
}

/// Waits with a time-out that the clock ended. Go makes its system calls itself.
pub(super) fn time_outs(found: &Inspection<'_, '_>, process: ProcessId) -> Option<Removal> {
    const OVER: [WaitsFor; 3] = [WaitsFor::Poll, WaitsFor::Futex, WaitsFor::Tick];
    let (over, slept) = (share(found, process, &OVER), share(found, process, &[WaitsFor::Sleep]));
    let go = found.facts.processes.get(process).language == "Go";
    let what = "the waits until a time-out, and sleeps";
    (over >= SMALL && !go).then(|| part(what, Preloaded::TimeOuts, over + slept))
}

/// Writes to files that were opened so that each write waits for the disk.
pub(super) fn durable(found: &Inspection<'_, '_>, process: ProcessId) -> Option<Removal> {
    let share = 1.0 - sync_share(found, process)?;
    let what = "the waits of each write (O_SYNC, O_DSYNC)";
    (share >= SMALL).then(|| part(what, Preloaded::Durable, share))
}

/// Memory that the program itself maps and unmaps: a call right above the C library's function.
pub(super) fn mapped(found: &Inspection<'_, '_>, process: ProcessId) -> Option<Removal> {
    let share = maps_itself(found.facts, process);
    let what = "mapping and unmapping memory of the same sizes (it is cleared instead)";
    (share >= SMALL).then(|| part(what, Preloaded::Maps, share))
}

/// Loops of `sched_yield`.
pub(super) fn yields(found: &Inspection<'_, '_>, process: ProcessId) -> Vec<Removal> {
    let mut groups = found.facts.call_groups.of_process(process);
    let loops = groups.any(|(_, group)| group.name == "sched_yield" && group.calls >= YIELDS);
    let what = "yields in a loop (short sleeps instead)";
    loops.then(|| library(what, Preloaded::Yields)).into_iter().collect()
}

/// Questions about paths that were asked before. A question about an open file, the clock or a setting is not answered.
pub(super) fn questions(found: &Inspection<'_, '_>, process: ProcessId) -> Vec<Removal> {
    let (mut by_path, mut all) = (Ns::ZERO, Ns::ZERO);
    for entry in found.wall.of_process(AccountId::of_class("repeated-syscalls"), process) {
        all += entry.ns;
        let Detail::Calls(group) = entry.detail else { continue };
        if BY_PATH.contains(&found.facts.call_groups.get(group).name) {
            by_path += entry.ns;
        }
    }
    let share = by_path.share_of(all);
    let what = "questions about the same paths (stat, access)";
    (share >= SMALL).then(|| part(what, Preloaded::Answers, share)).into_iter().collect()
}
