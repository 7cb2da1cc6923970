//! System calls that ask without waiting, and got nothing: a loop of these waits busily in the kernel.

use crate::facts::Facts;
use crate::facts::call_site::{CallSite, Weights};
use crate::timeline::Call;
use deadweight_trace::ids::{CallId, StackId, TaskId};
use deadweight_trace::units::Ns;
use std::collections::BTreeMap;

/// `EAGAIN`: nothing is there now.
const AGAIN: i64 = -11;

/// What a task asked in vain.
#[derive(Debug, Default)]
pub(super) struct Asking {
    /// Its time in such calls.
    pub(super) ns: Ns,
    /// From where, as far as known.
    pub(super) places: Weights,
}

/// What each task asked in vain.
pub(super) fn asking(facts: &Facts<'_>) -> BTreeMap<TaskId, Asking> {
    let mut found: BTreeMap<TaskId, Asking> = BTreeMap::new();
    for (index, call) in facts.timeline.calls.iter().enumerate() {
        let Some(id) = facts.call_groups.id(CallId::at(index)) else { continue };
        if is_in_vain(facts.call_groups.get(id).name, call) {
            let task = found.entry(call.task).or_default();
            let ns = call.end - call.start;
            task.ns += ns;
            if call.site != StackId(0) {
                let place = task.places.entry(CallSite::Stack(call.site)).or_default();
                (place.count, place.amount) = (place.count + 1, place.amount + ns.0);
            }
        }
    }
    found
}

fn is_in_vain(name: &str, call: &Call) -> bool {
    match name {
        "sched_yield" => true,
        "read" | "recvfrom" | "recvmsg" | "accept" | "accept4" | "io_getevents" => {
            call.ret() == Some(AGAIN)
        }
        "poll" | "ppoll" | "select" | "pselect6" | "epoll_wait" | "epoll_pwait" => {
            call.ret() == Some(0)
        }
        _ => false,
    }
}
