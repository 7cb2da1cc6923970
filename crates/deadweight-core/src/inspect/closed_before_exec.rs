//! Descriptors that children close before they become another program, whether open or not: a call for each number up
//! to the limit.

use super::Inspection;
use crate::account::{AccountId, Detail};
use crate::facts::call_groups::CallGroup;
use crate::facts::call_site::{Weights, add};
use crate::facts::processes::ProcessId;
use deadweight_trace::units::Ns;

/// A child that has that many descriptors open closes them for a reason.
pub(crate) const MANY: u64 = 256;
/// So many of the calls must fail: the number is not open.
pub(crate) const FAIL: f64 = 0.9;
/// The loop around a call and its way into the kernel and back, in ns: 2.4 million of them took 161 ns each, 71 of these
/// in the kernel.
pub(crate) const AROUND: u64 = 80;
/// At most this part of the other time before the program's own code.
const MOST_OF_START: f64 = 0.9;

/// What to do instead.
pub(crate) const CLOSE_ALL: &str = "One close_range(3, ~0U, 0) does the same; or open files with O_CLOEXEC, so that nothing is to be closed; or read \
     /proc/self/fd for the numbers that are open.";

/// Calls of `close` between fork and exec.
#[derive(Default)]
pub(crate) struct Closing {
    /// Their time on the path.
    pub(crate) ns: Ns,
    /// The loop around them, and their ways into the kernel and back.
    pub(crate) around: Ns,
    /// Children that did so.
    pub(crate) children: u64,
    /// Their calls.
    pub(crate) calls: u64,
    /// How many lie on the path.
    pub(crate) on_path: u64,
    /// Where they were made.
    pub(crate) places: Weights,
}

impl Closing {
    /// Those of these children, if they are many and nearly all fail.
    pub(crate) fn of(found: &Inspection<'_, '_>, children: &[ProcessId]) -> Self {
        let facts = found.facts;
        let mut closing = Self::default();
        let (mut failed, mut own) = (0, Ns::ZERO);
        let closes = |group: &CallGroup| group.name == "close" && group.starting;
        for child in children {
            let groups = facts.call_groups.of_start(*child);
            let groups: Vec<&CallGroup> = groups.filter(|group| closes(group)).collect();
            let calls: u64 = groups.iter().map(|group| group.calls).sum();
            if calls < MANY {
                continue;
            }
            closing.children += 1;
            closing.calls += calls;
            failed += groups.iter().map(|group| group.failed).sum::<u64>();
            groups.iter().for_each(|group| add(&mut closing.places, &group.all_places()));
            let entries = found.wall.in_process(*child).filter(|entry| {
                matches!(entry.detail, Detail::Calls(id) if closes(facts.call_groups.get(id)))
            });
            for entry in entries {
                closing.ns += entry.ns;
                closing.on_path += entry.count;
            }
            let start_up = AccountId::of_class("start-up");
            let of_start = found.wall.of_process(start_up, *child);
            own += of_start.filter(|e| e.detail == Detail::Plain).map(|e| e.ns).sum::<Ns>();
        }
        closing.around = Ns(closing.on_path * AROUND).min(own.part(MOST_OF_START));
        if (failed as f64) < FAIL * closing.calls as f64 { Self::default() } else { closing }
    }
}
