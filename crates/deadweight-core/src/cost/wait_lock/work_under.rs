//! What is done under a lock while others wait for it, by samples.

use crate::facts::Facts;
use crate::facts::call_site::{CallSite, Weights, sites};
use crate::facts::locks::LockWait;
use crate::timeline::Run;
use deadweight_trace::ids::StackId;
use deadweight_trace::units::Ns;

/// What the holders of a lock did while others waited for it during this time.
pub(super) fn said(facts: &Facts<'_>, waits: &[LockWait], during: Ns) -> String {
    /// From this part on.
    const MOSTLY: f64 = 0.5;
    let work = work_under(facts, waits);
    let samples: u64 = work.values().map(|weight| weight.amount).sum();
    let worked = Ns(samples.saturating_mul(facts.trace.meta.sample_period));
    let places = sites(facts.symbols(), &work, 0);
    match places.first() {
        Some(_) if worked > Ns::ZERO && worked.share_of(during) < MOSTLY => {
            "mostly waited itself".into()
        }
        Some(most) => format!("worked, mostly in {}", most.function),
        None => "worked".into(),
    }
}

/// What the holders ran while other tasks waited, by samples.
fn work_under(facts: &Facts<'_>, waits: &[LockWait]) -> Weights {
    let mut weights = Weights::new();
    for wait in waits {
        let task = &facts.timeline.tasks[wait.holder.index()];
        let from = task.samples.partition_point(|s| s.at < wait.start);
        let during = task.samples[from..].iter().take_while(|s| s.at < wait.end);
        for sample in during.filter(|s| s.stack != StackId(0)) {
            let on_cpu = task.span_at(sample.at).map(|i| task.spans[i].run());
            if matches!(on_cpu, Some(Run::OnCpu(_))) {
                weights.entry(CallSite::Stack(sample.stack)).or_default().amount += 1;
            }
        }
    }
    weights
}
