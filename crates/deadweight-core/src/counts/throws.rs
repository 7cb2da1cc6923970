//! Exceptions and panics by the line of the program that throws them, and the finding that they belong to.
//!
//! What they are and cost: `cost/exceptions.rs`.

use super::sites::{about, is_one_thread};
use super::tally::Tally;
use crate::facts::call_site::{CallSite, own_frame};
use deadweight_report::report::Finding;
use deadweight_report::wording::{things, time};
use deadweight_trace::units::Ns;
use std::collections::BTreeMap;

/// Adds to a finding how often its lines throw, and what one takes. `cpu` is the time of all threads.
pub(super) fn add_to(finding: &mut Finding, tally: &Tally<'_>, cpu: Ns) {
    let (symbols, all) = (tally.symbols(), tally.throws.all().count);
    if all == 0 {
        return;
    }
    let mut lines: BTreeMap<(&str, &str, u32), u64> = BTreeMap::new();
    for (stack, sum) in tally.throws.by_stack() {
        let Some((_, frame)) = own_frame(symbols, CallSite::Stack(stack)) else { continue };
        let line = (symbols.name(frame.function), symbols.name(frame.file), frame.line);
        *lines.entry(line).or_default() += sum.count;
    }
    let about = about(tally.basis());
    let throws = format!("{about}{}", things(all, "throw"));
    if !is_one_thread(finding, cpu) {
        return finding.evidence.insert(0, throws);
    }
    for site in &mut finding.sites {
        let line = (site.function.as_str(), site.file.as_str(), site.line);
        site.count = lines.get(&line).copied().unwrap_or(0);
    }
    let each = time(Ns(finding.amount_ns / all));
    finding.evidence.insert(0, format!("{throws}, {each} each"));
}
