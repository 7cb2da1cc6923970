//! What inlining changed beside the calls: the compiler sees the caller and the small function together,
//! and the work of both becomes less.
//!
//! The ledger of the side that calls has the calls in one row and that work in another. Only beside
//! the other side does it show which part of the work was for the calls' sake. It is told only where
//! nothing else about the program's code differs. Not for a single ledger: there it is a prediction.

use crate::report::{FunctionWork, Report};
use std::collections::BTreeSet;

/// The row of calls.
pub(super) const CALLS: &str = "missed-inlining";
/// The row of the program's own work.
pub(super) const WORK: &str = "net-work";
/// Functions with less than this part of the work that was there before are too small to matter.
const SMALL: f64 = 0.02;
/// What differs in other functions must be below this part of what is told.
const ELSEWHERE: f64 = 0.2;

/// Work that is less because small functions are not called any more.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct InliningEffect {
    /// How much less.
    pub(super) ns: u64,
    /// Which functions, and where they went.
    pub(super) text: String,
}

/// Of `calling`, which calls small functions, and `inlined`, which does not; none where anything else
/// may be the reason.
pub(super) fn inlining_effect(calling: &Report, inlined: &Report) -> Option<InliningEffect> {
    let callees: BTreeSet<&str> = names(calling.work.iter().flat_map(|work| &work.calls));
    let finding = calling.findings.iter().find(|finding| finding.class == CALLS)?;
    let there = |name: &str| inlined.work.iter().any(|work| work.function == name);
    let still_called = |name: &&str| inlined.work.iter().any(|work| calls(work, name));
    if callees.is_empty() || callees.iter().any(|name| there(name) || still_called(name)) {
        return None;
    }
    let whole: u64 = calling.work.iter().map(|work| work.ns).sum();
    let matters = |work: &&FunctionWork| work.ns as f64 >= SMALL * whole as f64;
    let is_caller = |name: &str| {
        calling.work.iter().any(|work| work.function == name && !work.calls.is_empty())
    };
    // Callers, and what stands in the place of one that is gone.
    let before = |name: &str| calling.work.iter().any(|work| work.function == name);
    let new: Vec<&FunctionWork> =
        inlined.work.iter().filter(|work| !before(&work.function)).filter(matters).collect();
    let gone: Vec<&FunctionWork> = calling
        .work
        .iter()
        .filter(|work| !there(&work.function) && !callees.contains(work.function.as_str()))
        .filter(matters)
        .collect();
    let replaced = gone.iter().all(|work| is_caller(&work.function))
        && new.len() <= gone.len()
        && new.iter().all(|work| !work.inlined.is_empty());
    if !replaced {
        return None;
    }
    let concerned = |work: &&FunctionWork| {
        let name = work.function.as_str();
        callees.contains(name) || is_caller(name) || new.iter().any(|work| work.function == name)
    };
    let of =
        |report: &Report| report.work.iter().filter(concerned).map(|work| work.ns).sum::<u64>();
    let ns = of(calling).checked_sub(of(inlined))?;
    let other = |work: &&FunctionWork| !concerned(work);
    let elsewhere: u64 = calling
        .work
        .iter()
        .chain(&inlined.work)
        .filter(other)
        .map(|work| work.function.as_str())
        .collect::<BTreeSet<_>>()
        .into_iter()
        .map(|name| in_function(calling, name).abs_diff(in_function(inlined, name)))
        .sum();
    let row = |report: &Report| row(report, CALLS);
    let promised = finding.high * calling.wall_ns as f64;
    let in_all = ns.saturating_add(row(calling).saturating_sub(row(inlined)));
    let alike = elsewhere as f64 <= ELSEWHERE * ns as f64 && in_all as f64 <= promised;
    (alike && ns > 0).then(|| InliningEffect { ns, text: text(&callees, inlined, &new) })
}

fn row(report: &Report, account: &str) -> u64 {
    report.ledger.iter().find(|row| row.account == account).map_or(0, |row| row.ns)
}

fn in_function(report: &Report, name: &str) -> u64 {
    report.work.iter().filter(|work| work.function == name).map(|work| work.ns).sum()
}

fn calls(work: &FunctionWork, name: &str) -> bool {
    work.calls.iter().any(|callee| callee == name)
}

fn names<'s>(all: impl Iterator<Item = &'s String>) -> BTreeSet<&'s str> {
    all.map(String::as_str).collect()
}

/// A caller may have another name on the other side.
fn text(callees: &BTreeSet<&str>, inlined: &Report, new: &[&FunctionWork]) -> String {
    let called = listed(callees);
    let inside = names(inlined.work.iter().flat_map(|work| &work.inlined));
    if callees.is_subset(&inside) {
        return format!("{called} is called on one side and inlined on the other");
    }
    let places: BTreeSet<&str> = new.iter().map(|work| work.function.as_str()).collect();
    match places.is_empty() {
        true => format!("{called} is called on one side only"),
        false => format!(
            "{called} is called on one side; on the other {} has all inlined",
            listed(&places)
        ),
    }
}

fn listed(names: &BTreeSet<&str>) -> String {
    let short = names.iter().map(|name| name.rsplit('/').next().unwrap_or(name));
    let mut short: Vec<&str> = short.collect();
    let more = short.len() > 2;
    short.truncate(2);
    short.join(", ") + if more { ", ..." } else { "" }
}
