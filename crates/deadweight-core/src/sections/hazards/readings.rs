//! The hazard *two readings*: the wall time can be divided in two valid ways that differ much.
//!
//! The ledger follows the path. Where CPUs are short, or wake-ups are a scheduler's hand-overs, the simple
//! projection divides the same run differently; then both are shown. It is not a third ledger.

use crate::path::Path;
use crate::path::causes::{Cause, difference};
use crate::path::projection::{TWO_READINGS, simple};
use crate::timeline::Timeline;
use deadweight_report::report::Hazard;
use deadweight_report::wording::percent;
use deadweight_trace::symbols::Symbols;
use deadweight_trace::units::Ns;
use std::collections::BTreeMap;

/// The two readings, if they differ much.
pub(crate) fn two(symbols: &Symbols, timeline: &Timeline, path: &Path) -> Option<Hazard> {
    let subject = &path.subject;
    // One task has one reading, and the busy tasks of a program that serves are one.
    if subject.tasks() < 2 || subject.service.is_some() {
        return None;
    }
    let along = path.causes(timeline);
    let across = simple(timeline, subject);
    if difference(&along, &across) < TWO_READINGS {
        return None;
    }
    let (along, across) = (in_words(symbols, &along), in_words(symbols, &across));
    let of = |reading: &BTreeMap<String, Ns>, word: &String| {
        reading.get(word).copied().unwrap_or_default()
    };
    let more = |word: &String| of(&along, word) - of(&across, word);
    // The cause that the ledger shows larger, with its size in both.
    let cause = along.keys().max_by_key(|word| more(word))?;
    let [along, across] =
        [&along, &across].map(|reading| percent(of(reading, cause), subject.wall()));
    // Moments that neither explains may be all that differs.
    if along == across {
        return None;
    }
    Some(Hazard {
        id: "two-readings".into(),
        text: format!(
            "There are two ways to divide this run. Along the waits that led to its end, as in the ledger, {along} of the \
             time with tracing is {cause}; by what ran at each moment it is {across}. What can be saved there may be \
             anything in between."
        ),
    })
}

/// Causes in a few words.
fn in_words(symbols: &Symbols, causes: &BTreeMap<Cause, Ns>) -> BTreeMap<String, Ns> {
    let mut words: BTreeMap<String, Ns> = BTreeMap::new();
    for (cause, ns) in causes {
        let word = match cause {
            Cause::Work(name, _) => format!("{} at work", symbols.name(*name)),
            Cause::NoCpu(_) => "waiting for a CPU".to_owned(),
            Cause::Wait(name, ..) => format!("{} waiting", symbols.name(*name)),
            Cause::Unrecorded => "not recorded".to_owned(),
            Cause::Unexplained => "not explained".to_owned(),
        };
        *words.entry(word).or_default() += *ns;
    }
    words
}
