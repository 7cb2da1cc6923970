//! The two walks through a whole recording, on two threads: the wall time and all CPU time, charged.
//!
//! Not for what the sums say; see `weigh`.

use crate::account::Attribution;
use crate::attribute;
use crate::facts::Facts;
use std::sync::{OnceLock, mpsc};

/// The facts of a run, its wall time and all CPU time charged, and what was found beside.
pub(super) struct Charged<'f, 't, B> {
    pub(super) facts: &'f Facts<'t>,
    pub(super) wall: Attribution,
    pub(super) cpu: Attribution,
    pub(super) beside: B,
}

/// Charges the wall time and all CPU time: two walks through the whole recording, each on its thread. The thread of the
/// CPU time does `beside` while the facts are gathered.
pub(super) fn both_accounts<'f, 't, B: Send>(
    gathered: &'f OnceLock<Facts<'t>>,
    gather: impl FnOnce() -> Facts<'t>,
    beside: impl FnOnce() -> B + Send,
) -> Charged<'f, 't, B> {
    std::thread::scope(|scope| {
        let (hand_over, facts) = mpsc::channel::<&Facts<'t>>();
        let across = scope.spawn(move || {
            let beside = beside();
            // None come if gathering them panicked.
            facts.recv().ok().map(|facts| (attribute::cpu_time(facts), beside))
        });
        let facts = gathered.get_or_init(gather);
        let sent = hand_over.send(facts);
        let wall = attribute::along_path(facts);
        let across = across.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let (cpu, beside) = across.filter(|_| sent.is_ok()).expect("the facts were handed over");
        Charged { facts, wall, cpu, beside }
    })
}
