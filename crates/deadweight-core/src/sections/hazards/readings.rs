//! The hazard *two readings*: the wall time can be divided in two valid ways that differ much.
//!
//! The ledger follows the path. Where CPUs are short, or wake-ups are a scheduler's hand-overs, the simple
//! projection divides the same run differently; then both are shown. It is not a third ledger.

use crate::facts::Facts;
use crate::path::causes::{Cause, difference};
use crate::path::projection::{TWO_READINGS, simple};
use deadweight_report::report::Hazard;
use deadweight_report::wording::percent;
use deadweight_trace::units::Ns;
use std::collections::BTreeMap;

/// The two readings, if they differ much.
pub(crate) fn two(facts: &Facts<'_>) -> Option<Hazard> {
    let subject = &facts.path.subject;
    // One task has one reading, and the busy tasks of a program that serves are one.
    if subject.tasks() < 2 || subject.service.is_some() {
        return None;
    }
    let along = facts.path.causes(facts.timeline);
    let across = simple(facts.timeline, subject);
    if difference(&along, &across) < TWO_READINGS {
        return None;
    }
    let (along, across) = (in_words(facts, &along), in_words(facts, &across));
    let most = |reading: &BTreeMap<String, Ns>, other: &BTreeMap<String, Ns>| {
        let more = |word: &String, ns: Ns| ns - other.get(word).copied().unwrap_or_default();
        let most = reading.iter().max_by_key(|(word, ns)| more(word, **ns));
        most.map(|(word, ns)| format!("{} {word}", percent(*ns, subject.wall())))
    };
    Some(Hazard {
        id: "two-readings".into(),
        text: format!(
            "This run can be read in two ways, and both are right. Followed along what the end waited for, the wall time \
             is {}: the ledger shows this. Shared among all tasks that were on a CPU, it is {}. Of a finding, use the \
             range.",
            most(&along, &across)?,
            most(&across, &along)?
        ),
    })
}

/// Causes in a few words.
fn in_words(facts: &Facts<'_>, causes: &BTreeMap<Cause, Ns>) -> BTreeMap<String, Ns> {
    let mut words: BTreeMap<String, Ns> = BTreeMap::new();
    for (cause, ns) in causes {
        let word = match cause {
            Cause::Work(name, _) => format!("{} at work", facts.symbols().name(*name)),
            Cause::NoCpu(_) => "without a CPU".to_owned(),
            Cause::Wait(name, ..) => format!("{} waiting", facts.symbols().name(*name)),
            Cause::Unrecorded => "not recorded".to_owned(),
            Cause::Unexplained => "not explained".to_owned(),
        };
        *words.entry(word).or_default() += *ns;
    }
    words
}
