//! Allocations by the line of the program that requests them, and the finding that they belong to.
//!
//! What allocation is and costs: `cost/allocation.rs`.

use super::tally::{Sum, Tally};
use crate::facts::call_site::{CallSite, own_frame};
use deadweight_report::report::{AllocationSite, Allocations, CountBasis, Finding, Site};
use deadweight_report::wording::{bytes, things, time};
use deadweight_trace::units::Ns;
use std::collections::BTreeMap;

/// How many lines are shown.
const SITES: usize = 10;
/// How many of those a finding names.
const NAMED: usize = 3;
/// A line with a smaller share of all allocations is not shown.
const FEW: f64 = 0.01;
/// If the allocator's CPU time in all threads is this many times its time on the path, other threads
/// allocate beside it: then counts and times are of different work.
const BESIDE: f64 = 1.1;

/// The lines that request memory, most often first.
pub(super) fn sites(tally: &Tally<'_>) -> Vec<AllocationSite> {
    let symbols = tally.symbols();
    let mut lines: BTreeMap<(&str, &str, u32), Sum> = BTreeMap::new();
    for (stack, sum) in tally.allocations.by_stack() {
        let Some((_, frame)) = own_frame(symbols, CallSite::Stack(stack)) else { continue };
        let line = (symbols.name(frame.function), symbols.name(frame.file), frame.line);
        *lines.entry(line).or_default() += sum;
    }
    let mut found: Vec<_> = lines
        .into_iter()
        .map(|((function, file, line), sum)| AllocationSite {
            function: function.to_owned(),
            file: file.to_owned(),
            line,
            count: sum.count,
            bytes: sum.bytes,
            least: sum.range.map_or(0, |(least, _)| least),
            most: sum.range.map_or(0, |(_, most)| most),
        })
        .collect();
    found.sort_by_key(|site| std::cmp::Reverse(site.count));
    found.truncate(SITES);
    found
}

/// Adds to a finding how often its lines request memory. `cpu` is the allocator's time in all threads.
pub(super) fn add_to(finding: &mut Finding, found: &Allocations, cpu: Ns) {
    let one_thread = is_one_thread(finding, cpu);
    let mut lines = Vec::new();
    let worth = |site: &&AllocationSite| {
        let blamed =
            finding.class == "allocation" || finding.sites.iter().any(|named| is_same(named, site));
        blamed && site.count as f64 >= FEW * found.count as f64
    };
    let worthy: Vec<&AllocationSite> = found.sites.iter().filter(worth).take(NAMED).collect();
    for site in worthy {
        let named = finding.sites.iter_mut().find(|named| is_same(named, site));
        let each = named.filter(|_| one_thread).map(|named| {
            named.count = site.count;
            Ns(finding.amount_ns).part(named.share).0 / site.count.max(1)
        });
        lines.push(sentence(site, found.basis, each));
    }
    if !lines.is_empty() {
        let about = about(found.basis);
        let mut all = format!(
            "{about}{} of {} in all",
            things(found.count, "allocation"),
            bytes(found.bytes)
        );
        if !found.remark.is_empty() {
            all = format!("{all}; {}", found.remark);
        }
        lines.push(all);
    }
    finding.evidence.splice(0..0, lines);
}

/// Whether the time of a finding is nearly all of its class: `cpu` is that of all threads. Then it can be divided by counts
/// of all threads.
pub(super) fn is_one_thread(finding: &Finding, cpu: Ns) -> bool {
    cpu.0 as f64 <= BESIDE * finding.amount_ns as f64
}

fn is_same(named: &Site, site: &AllocationSite) -> bool {
    named.function == site.function && named.file == site.file && named.line == site.line
}

pub(super) fn about(basis: CountBasis) -> &'static str {
    match basis {
        CountBasis::Exact => "",
        CountBasis::AtLeast => "at least ",
        CountBasis::Estimate => "about ",
    }
}

/// `1 000 000 allocations of 24 bytes at parse (x.c:12), 83 ns each`.
fn sentence(site: &AllocationSite, basis: CountBasis, each: Option<u64>) -> String {
    let about = about(basis);
    let average = if site.least == site.most { "" } else { " on average" };
    let size = if site.least == site.most { site.least } else { site.bytes / site.count.max(1) };
    let base = site.file.rsplit('/').next().unwrap_or_default();
    let line = if site.line > 0 { format!(" ({base}:{})", site.line) } else { String::new() };
    let most = match basis {
        CountBasis::Exact => "",
        CountBasis::AtLeast => "at most ",
        CountBasis::Estimate => "about ",
    };
    let each = each.map_or(String::new(), |ns| format!(", {most}{} each", time(Ns(ns))));
    format!(
        "{about}{} of {}{average} at {}{line}{each}",
        things(site.count, "allocation"),
        bytes(size),
        site.function
    )
}
