//! The work that inlining saves beyond the calls: the compiler optimises the caller and the callee together.
//!
//! The ledger of the calling side has the calls in one row and this work in another. Only the comparison with the inlined
//! side shows how much of the work the calls caused. It is reported only if nothing else in the program's code differs.
//! Not for a single ledger: there it is a prediction.

use crate::report::{FunctionWork, Report};
use std::collections::BTreeSet;

/// The row of calls.
pub(super) const CALLS: &str = "missed-inlining";
/// The row of the program's own work.
pub(super) const WORK: &str = "net-work";
/// Functions with less than this part of the calling side's work are ignored.
const SMALL: f64 = 0.02;
/// Differences in other functions must be below this part of the saving.
const ELSEWHERE: f64 = 0.2;

/// Work that is saved because small functions are no longer called.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct InliningEffect {
    /// How much is saved.
    pub(super) ns: u64,
    /// Which functions, and where they are inlined.
    pub(super) text: String,
}

/// The work that `inlined` saves compared with `calling`, which calls small functions; none if there may be another
/// reason.
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
    // Callers, and functions that replace a caller.
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
    let predicted = finding.high * calling.wall_ns as f64;
    let in_all = ns.saturating_add(row(calling).saturating_sub(row(inlined)));
    let alike = elsewhere as f64 <= ELSEWHERE * ns as f64 && in_all as f64 <= predicted;
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

/// A sentence for the moved work. A caller may have another name on the other side.
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
