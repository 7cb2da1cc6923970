//! System calls that ask without waiting, and got nothing: a loop of these waits busily in the kernel.

use crate::facts::Facts;
use crate::facts::call_site::{CallSite, Weights};
use crate::timeline::{Call, Run, Within};
use deadweight_trace::ids::{CallId, StackId, TaskId};
use deadweight_trace::units::Ns;
use std::collections::BTreeSet;

/// `EAGAIN`: nothing is there now.
const AGAIN: i64 = -11;

/// What a task asked in vain.
#[derive(Debug, Default)]
pub(super) struct Asking {
    /// Its time on a CPU in such calls.
    pub(super) ns: Ns,
    /// From where, as far as known.
    pub(super) places: Weights,
}

impl Asking {
    /// What this task asked in vain, with its yields or without. A call that slept before it found nothing is no such call.
    pub(super) fn of(facts: &Facts<'_>, task: TaskId, with_yields: bool) -> Self {
        let task = facts.timeline.task(task);
        let slept: BTreeSet<CallId> = task
            .spans
            .iter()
            .filter_map(|span| match (span.run(), span.within()) {
                (Run::Blocked(_), Within::Syscall(call)) => Some(call),
                _ => None,
            })
            .collect();
        let mut found = Self::default();
        for (index, span) in task.spans.iter().enumerate() {
            let (Run::OnCpu(_), Within::Syscall(id)) = (span.run(), span.within()) else {
                continue;
            };
            if slept.contains(&id) || !is_in_vain(facts, id, with_yields) {
                continue;
            }
            let (ns, site) = (task.span_end(index) - span.start, call(facts, id).site);
            found.ns += ns;
            if site != StackId(0) {
                found.places.entry(CallSite::Stack(site)).or_default().amount += ns.0;
            }
        }
        found
    }
}

fn call<'f>(facts: &'f Facts<'_>, id: CallId) -> &'f Call {
    &facts.timeline.calls[id.index()]
}

fn is_in_vain(facts: &Facts<'_>, id: CallId, with_yields: bool) -> bool {
    let Some(group) = facts.call_groups.id(id) else { return false };
    let got = call(facts, id).ret();
    match facts.call_groups.get(group).name {
        "sched_yield" => with_yields,
        "read" | "recvfrom" | "recvmsg" | "accept" | "accept4" | "io_getevents" => {
            got == Some(AGAIN)
        }
        "poll" | "ppoll" | "select" | "pselect6" | "epoll_wait" | "epoll_pwait" => got == Some(0),
        _ => false,
    }
}
