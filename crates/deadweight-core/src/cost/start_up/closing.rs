//! Children that close all descriptors that they might have, before they become another program.

use super::{CLASS, Inspection};
use crate::facts::call_site::sites;
use crate::facts::processes::ProcessId;
use crate::inspect::Draft;
use crate::inspect::closed_before_exec::{CLOSE_ALL, Closing};
use crate::inspect::syscalls::entry_cost::at_least;
use deadweight_report::report::How;
use deadweight_report::wording::{count, things, time};

/// From this part of the wall time on.
const LARGE: f64 = 0.04;

/// The finding of a process that starts children which do so.
pub(super) fn draft(found: &Inspection<'_, '_>, parent: ProcessId) -> Option<Draft> {
    let facts = found.facts;
    let closing = Closing::of(found, &facts.processes.get(parent).children);
    if closing.ns.share_of(found.wall.net()) < LARGE {
        return None;
    }
    let saving = closing.ns + closing.around;
    let each = closing.calls / closing.children.max(1);
    Some(Draft {
        class: CLASS.id,
        moves: false,
        process: parent,
        title: format!("closes {} descriptors for each program", count(each)),
        text: format!(
            "{} of {} called close {} times each before they became another program: nearly all \
             of these numbers were not open.",
            count(closing.children),
            format_args!("the processes that {} started", facts.name(parent)),
            count(each),
        ),
        amount: closing.ns,
        saving,
        range: (at_least(found, closing.ns, closing.on_path), saving),
        how: How::Estimate,
        sites: sites(facts.symbols(), &closing.places, closing.calls),
        evidence: vec![format!(
            "{} in all, {} in the kernel",
            things(closing.calls, "call"),
            time(closing.ns)
        )],
        remedy: CLOSE_ALL.into(),
    })
}
