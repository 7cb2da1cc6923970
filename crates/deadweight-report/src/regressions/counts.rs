//! Whether a program does more: counts that are steady from run to run, and so need no statistics.
//!
//! Which counts are steady is seen in the runs of each version beside each other.

use super::policy::Limits;
use super::{Change, Kind, Measurement, Side, State};
use crate::report::{AllocationSite, Site};
use crate::stats::median::median_of;

/// The counts that are judged, each with the account that holds their cost. Others, such as those of single calls,
/// explain these.
const JUDGED: [(&str, &str); 7] = [
    ("calls", "system-calls"),
    ("bytes-read", "system-calls"),
    ("bytes-written", "system-calls"),
    ("page-faults", "page-faults"),
    ("processes", "wait-child"),
    ("threads", "system-calls"),
    ("execs", "start-up"),
];
/// The number of allocations, and their bytes.
pub(super) const ALLOCATIONS: [&str; 2] = ["allocations", "allocated-bytes"];
const ALLOCATION_ROW: &str = "allocation";
/// The units of Go's benchmarks that allocation decides.
const OF_ALLOCATION: [&str; 2] = ["allocs/op", "B/op"];
/// A count is steady if its runs differ by at most this part of it ...
const STEADY: f64 = 0.005;
/// ... or by so many.
const FEW: f64 = 2.0;
/// A growth counts if it is so many times as large as the runs of one version differ.
const BEYOND_SPREAD: f64 = 3.0;

/// A count in the runs of both versions: smallest, median, largest.
struct Both {
    base: [f64; 3],
    head: [f64; 3],
}

/// The changes of counts. `faster`: the time surely fell by more than its limit, so a count that grew was worth it.
pub(super) fn changes(limits: &Limits, measured: &Measurement, faster: bool) -> Vec<Change> {
    let mut found = Vec::new();
    for (name, row) in JUDGED {
        let [base, head] = [&measured.base, &measured.head].map(|side| exact(side, name));
        if let (Some(base), Some(head)) = (base, head) {
            let change = change(name, row, limits, &Both { base, head }, faster);
            found.extend(change.map(|change| Change { sites: Vec::new(), ..change }));
        }
    }
    for (which, name) in ALLOCATIONS.into_iter().enumerate() {
        let [base, head] = [&measured.base, &measured.head].map(|side| allocated(side, which));
        if let (Some(base), Some(head)) = (base, head) {
            let change = change(name, ALLOCATION_ROW, limits, &Both { base, head }, faster);
            // Where the number is the same, a line that was only renamed or moved is none that allocates more.
            let sites = |change: &Change| match change.growth > 0.0 && change.state.is_growth() {
                true => grown_sites(measured, which),
                false => Vec::new(),
            };
            found.extend(change.map(|change| Change { sites: sites(&change), ..change }));
        }
    }
    found.extend(per_operation(limits, measured, faster));
    for change in &mut found {
        if change.name == "calls" && change.growth > 0.0 {
            change.why = most_grown_call(measured).unwrap_or_default();
        }
    }
    found
}

fn change(name: &str, row: &str, limits: &Limits, both: &Both, faster: bool) -> Option<Change> {
    let limit = limits.of_count(name)?;
    let spread = [both.base, both.head].map(|[low, _, high]| high - low);
    let [base, head] = [both.base[1], both.head[1]];
    let steady = |spread: f64, value: f64| spread <= (value * STEADY).max(FEW);
    if !steady(spread[0], base) || !steady(spread[1], head) {
        return None;
    }
    let grown = head - base;
    let growth = grown / base.max(1.0);
    let beyond = grown.abs() > BEYOND_SPREAD * spread[0].max(spread[1]) && growth.abs() > limit;
    let state = match (beyond, grown > 0.0) {
        (true, true) if faster => State::Moved,
        (true, true) => State::Regressed,
        (true, false) => State::Improved,
        (false, _) => State::Unchanged,
    };
    let ends = [both.head[0] - both.base[2], both.head[2] - both.base[0]];
    Some(Change {
        kind: Kind::Count,
        name: name.to_owned(),
        row: row.to_owned(),
        base,
        head,
        growth,
        interval: ends.map(|end| end / base.max(1.0)),
        limit,
        state,
        why: if state == State::Moved { "the time fell".into() } else { String::new() },
        ..Change::default()
    })
}

/// A count of which nothing was left out; 0 if the runs were recorded and had none.
fn exact(side: &Side, name: &str) -> Option<[f64; 3]> {
    let counts = &side.report.counts;
    if counts.is_empty() || counts.iter().any(|count| !count.exact) {
        return None;
    }
    let found = counts.iter().find(|count| count.name == name);
    Some(found.map_or([0.0; 3], |count| [count.low, count.value, count.high].map(|n| n as f64)))
}

fn allocated(side: &Side, which: usize) -> Option<[f64; 3]> {
    let mut values: Vec<f64> = side.allocations.iter().map(|of| of[which] as f64).collect();
    values.sort_by(f64::total_cmp);
    Some([*values.first()?, median_of(&values), *values.last()?])
}

/// Counts that a benchmark printed: `allocs/op`, and those of a unit of its own.
fn per_operation<'m>(
    limits: &'m Limits,
    measured: &'m Measurement,
    faster: bool,
) -> impl Iterator<Item = Change> + 'm {
    let counted = measured.base.benchmarks.iter().filter(|of| of.unit.ends_with("/op"));
    counted.filter(|of| of.unit != "ns/op").filter_map(move |base| {
        let same = |of: &&super::Benchmark| of.name == base.name && of.unit == base.unit;
        let head = measured.head.benchmarks.iter().find(same)?;
        let range = |values: &[f64]| {
            let low = values.iter().copied().fold(f64::INFINITY, f64::min);
            let high = values.iter().copied().fold(0.0, f64::max);
            [low, median_of(values), high]
        };
        let both = Both { base: range(&base.values), head: range(&head.values) };
        let row = if OF_ALLOCATION.contains(&&*base.unit) { ALLOCATION_ROW } else { "" };
        let found = change(&base.unit, row, limits, &both, faster)?;
        Some(Change { name: format!("{} {}", base.name, base.unit), ..found })
    })
}

/// The lines that allocate more than before, most first.
fn grown_sites(measured: &Measurement, which: usize) -> Vec<Site> {
    let sites = |side: &Side| {
        side.report.allocations.as_ref().map(|of| of.sites.clone()).unwrap_or_default()
    };
    let (base, head) = (sites(&measured.base), sites(&measured.head));
    let amount = |site: &AllocationSite| if which == 0 { site.count } else { site.bytes };
    // Both versions are often built in folders of their own.
    let name = |site: &AllocationSite| site.file.rsplit('/').next().map(str::to_owned);
    let same_place =
        |a: &AllocationSite, b: &AllocationSite| a.function == b.function && name(a) == name(b);
    let same_line = |a: &AllocationSite, b: &AllocationSite| a.line == b.line && same_place(a, b);
    // A line that is new may have moved within its function: it replaces the lines there that are gone.
    let gone = |of: &&AllocationSite| !head.iter().any(|site| same_line(site, of));
    let before = |site: &AllocationSite| match base.iter().find(|of| same_line(of, site)) {
        Some(of) => amount(of),
        None => base.iter().filter(|of| same_place(of, site)).filter(gone).map(amount).sum(),
    };
    let mut grown: Vec<(u64, &AllocationSite)> = head
        .iter()
        .map(|site| (amount(site).saturating_sub(before(site)), site))
        .filter(|(more, _)| *more > 0)
        .collect();
    grown.sort_by_key(|(more, _)| std::cmp::Reverse(*more));
    let site = |(more, of): (u64, &AllocationSite)| Site {
        function: of.function.clone(),
        file: of.file.clone(),
        line: of.line,
        count: more,
        ..Site::default()
    };
    grown.into_iter().take(3).map(site).collect()
}

/// The system call whose number grew most: `read: 1 000 more`.
fn most_grown_call(measured: &Measurement) -> Option<String> {
    let before = |name: &str| {
        let base = &measured.base.report.counts;
        base.iter().find(|count| count.name == name).map_or(0, |count| count.value)
    };
    let calls = measured.head.report.counts.iter().filter(|of| of.name.starts_with("calls/"));
    let grown = calls.map(|count| (count.value.saturating_sub(before(&count.name)), count));
    let (more, call) = grown.max_by_key(|(more, _)| *more).filter(|(more, _)| *more > 0)?;
    let name = call.name.trim_start_matches("calls/");
    Some(format!("{name}: {} more", crate::wording::count(more)))
}
