//! System calls that return success and do nothing. The recorder's filter does it (`deadweight_record::CallFilter`).

use super::{About, Sides};
use crate::running::series::{RunChanges, RunOptions};
use deadweight_record::{CallFilter, FilteredCall};
use deadweight_report::report::{Means, SkippedCall};

pub(super) const ABOUT: About = About {
    means: Means::SkippedCalls,
    classes: &["wait-disk", "wait-sleep"],
    how: "a seccomp filter answers fsync and similar calls, and sleeps, with success; the other side has the same filter, which lets \
          them pass; static and Go programs too",
    besides: "files are not durable during those runs; a loop that sleeps spins; programs with other rights (sudo) lose them where \
              deadweight does not run as root",
    noticed: "output, exit status, CPU time; a program that no longer ends is killed",
};

/// What a user should know before syncs are skipped.
pub(super) const DURABILITY: &str = "without syncs, files that these runs write may be lost if the machine stops meanwhile; the last \
                                     run is the program as it is, with its syncs";

/// The sides: the filter lets the calls pass, or skips them.
pub(super) fn sides(calls: &[SkippedCall], options: &RunOptions) -> Sides {
    let filtered =
        |call: &SkippedCall| FilteredCall { name: call.name.to_owned(), only: call.only };
    let side = |skips| {
        let filter = Some(CallFilter { calls: calls.iter().map(filtered).collect(), skips });
        let changes = RunChanges { filter, ..options.changes.clone() };
        RunOptions { changes, ..options.clone() }
    };
    Sides::new(side(false), side(true))
}
