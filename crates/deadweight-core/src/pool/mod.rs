//! Pools several traced runs of one command, and its clean runs, into one report.
//!
//! Clean runs give the time, traced runs the shares: each run's rows become shares of its net time, without
//! tracing overhead and the time of other programs; the shares are averaged and scaled to the clean median
//! by largest remainder, so that the rows still add up exactly. What clean runs waited for CPUs that other programs had is a row
//! of its own. A single run is judged elsewhere.

mod other_programs;
mod shorter;

use crate::facts::clean_run::CleanRun;
use crate::sections::hazards;
use crate::sections::work;
use deadweight_report::report::{
    CheckOutcome, CleanRuns, Count, Finding, Hazard, Inside, Interval, Report, Row, TracedRuns,
};
use deadweight_report::stats::apportion::apportion;
use deadweight_report::stats::median::summarise;
use deadweight_report::wording::time;
use deadweight_trace::units::Ns;
use std::collections::BTreeMap;

/// If the times of traced and clean runs differ by more than this factor, a sentence says which is which.
const APART: f64 = 1.05;
/// Shares become whole numbers of this unit for apportioning.
const PARTS: f64 = 1e12;
const OBSERVER: &str = "observer";
/// The account of waits for a CPU, whichever task held it.
const WAIT_CPU: &str = "wait-cpu";

/// The report of one traced run.
pub(crate) struct TracedRun {
    /// Its own report.
    pub(crate) report: Report,
    /// The time other programs held the CPU in this run: other runs do not share it.
    pub(crate) disturbed_ns: u64,
    /// The part of the whole command's wall and CPU time that its ledgers divide: all, except for one
    /// process (`--of`) or function (`--in`) of it.
    pub(crate) part: (f64, f64),
}

/// One report from the reports of single traced runs, at least one. Of `in_all` runs the others had nothing
/// of what is divided.
pub(crate) fn pool(traced: Vec<TracedRun>, clean: &[CleanRun], in_all: usize) -> Report {
    let mut runs: Vec<Report> = Vec::with_capacity(traced.len());
    let count = in_all.max(traced.len()).max(1) as f64;
    let part = traced
        .iter()
        .fold((0.0, 0.0), |sum, run| (sum.0 + run.part.0 / count, sum.1 + run.part.1 / count));
    let alone = traced.len() == 1 && clean.is_empty();
    for mut run in traced {
        if !alone {
            undisturb(&mut run.report.ledger, run.disturbed_ns);
        }
        runs.push(run.report);
    }
    runs.sort_by_key(|run| run.wall_ns);
    let middle = runs.len() / 2;
    let mut report = runs[middle].clone();
    report.runs.clean = clean_runs(clean);
    report.runs.traced = traced_runs(&runs, &report.runs.clean, part.0);
    if runs.len() > 1 || !clean.is_empty() {
        scale(&mut report, &runs, clean, part, in_all);
    }
    report.counts = pooled_counts(&runs);
    report.hazards = merged(runs.iter().flat_map(|r| &r.hazards));
    report.hazards.extend(hazards::of_series(clean));
    report.warnings = clocks(&report, &runs, clean).into_iter().collect();
    report.warnings.extend(warnings(runs.iter().flat_map(|run| &run.warnings)));
    report.remarks = warnings(runs.iter().flat_map(|run| &run.remarks));
    report
}

/// Replaces the median run's amounts by the mean shares of all, of the time that counts: of the clean runs'
/// time, the `part` that the ledgers divide.
fn scale(
    report: &mut Report,
    runs: &[Report],
    clean: &[CleanRun],
    (part, cpu_part): (f64, f64),
    in_all: usize,
) {
    let keep_overhead = clean.is_empty();
    report.part = (!keep_overhead && part < 1.0).then_some(part);
    let count = in_all.max(runs.len()).max(1) as f64;
    let mean = |share: fn(&Inside) -> f64| {
        runs.iter().map(|run| run.inside.as_ref().map_or(1.0, share)).sum::<f64>() / count
    };
    if let Some(inside) = &mut report.inside {
        inside.share = mean(|inside| inside.share);
        inside.cpu_share = mean(|inside| inside.cpu_share);
    }
    let clean_wall = of_whole(part, report.runs.clean.wall_ns.median);
    let target = if keep_overhead { report.wall_ns } else { clean_wall };
    let cpus: Vec<u64> = clean.iter().map(|run| (run.user + run.system).0).collect();
    let clean_cpu = of_whole(cpu_part, summarise(&cpus).interval.median);
    let cpu_target = if keep_overhead { report.cpu_ns } else { clean_cpu };
    let waited = other_programs::waited(runs, clean, (target, clean_cpu));
    let whole = target;
    let target = whole - waited.as_ref().map_or(0, |row| row.ns);
    let walls: Vec<&[Row]> = runs.iter().map(|r| r.ledger.as_slice()).collect();
    let cpu: Vec<&[Row]> = runs.iter().map(|r| r.cpu_ledger.as_slice()).collect();
    report.ledger = pooled_rows(&walls, target, keep_overhead);
    report.cpu_ledger = pooled_rows(&cpu, cpu_target, keep_overhead);
    // Comparisons test wall times.
    report.cpu_ledger.iter_mut().for_each(|row| row.each_ns.clear());
    report.cpu_ns = report.cpu_ledger.iter().map(|r| r.ns).sum();
    report.findings = pooled_findings(runs, target);
    if !keep_overhead {
        shorter::widen(&mut report.findings, runs, target);
    }
    for check in &mut report.checks {
        if report.findings.iter().any(|finding| finding.class == check.class) {
            (check.outcome, check.why) = (CheckOutcome::Found, String::new());
        } else if check.outcome == CheckOutcome::Found {
            check.outcome = CheckOutcome::Needed;
        }
    }
    let before = net(&runs[runs.len() / 2].ledger).max(1) as f64;
    for top in &mut report.top {
        top.ns = of_whole(top.ns as f64 / before, target);
        top.share = top.ns as f64 / target.max(1) as f64;
    }
    report.work = work::pooled(runs, |run| net(&run.ledger), target);
    report.wall_ns = whole;
    report.net_ns = net(&report.ledger);
    if let Some(waited) = waited {
        other_programs::add(&mut report.ledger, waited, whole);
    }
}

/// Takes out the time of other programs.
fn undisturb(rows: &mut [Row], disturbed: u64) {
    if let Some(row) = rows.iter_mut().find(|row| row.account == WAIT_CPU) {
        row.ns = row.ns.saturating_sub(disturbed);
    }
}

/// Time without tracing overhead.
fn net(rows: &[Row]) -> u64 {
    rows.iter().filter(|r| r.account != OBSERVER).map(|r| r.ns).sum()
}

/// `share` of `whole`; shares are at most about 1.
fn of_whole(share: f64, whole: u64) -> u64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
    let part = (share.clamp(0.0, 1.0) * whole as f64).round() as u64;
    part
}

fn pooled_rows(runs: &[&[Row]], target: u64, keep_overhead: bool) -> Vec<Row> {
    // The share of each run, with its interval.
    let mut accounts: BTreeMap<&str, (Row, Vec<[f64; 3]>)> = BTreeMap::new();
    for rows in runs {
        let whole = if keep_overhead { rows.iter().map(|r| r.ns).sum() } else { net(rows) };
        for row in rows.iter().filter(|r| keep_overhead || r.account != OBSERVER) {
            let known = accounts.entry(&row.account).or_insert_with(|| (row.clone(), Vec::new()));
            let share = |ns: u64| ns as f64 / whole.max(1) as f64;
            known.1.push([row.low_ns.min(row.ns), row.ns, row.high_ns.max(row.ns)].map(share));
            if row.ns > known.0.ns {
                known.0 = row.clone();
            }
        }
    }
    let count = runs.len().max(1) as f64;
    let shares: Vec<f64> = accounts.values().map(|(_, s)| mean(s, count)).collect();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most 1e12")]
    let weights: Vec<u64> = shares.iter().map(|s| (s * PARTS).round() as u64).collect();
    let parts = apportion(target, &weights);
    let all_zero = parts.iter().all(|p| *p == 0) && target > 0;
    let mut rows: Vec<Row> = accounts
        .into_values()
        .zip(parts)
        .map(|((row, shares), ns)| {
            let missing = shares.len() < runs.len();
            let low = if missing { 0.0 } else { shares.iter().map(|s| s[0]).fold(1.0, f64::min) };
            let high = shares.iter().map(|s| s[2]).fold(0.0, f64::max);
            let each = shares.iter().map(|s| of_whole(s[1], target));
            let each = each.chain(std::iter::repeat(0)).take(runs.len());
            Row {
                each_ns: if runs.len() > 1 { each.collect() } else { Vec::new() },
                ns,
                share: ns as f64 / target.max(1) as f64,
                low_ns: of_whole(low, target).min(ns),
                high_ns: of_whole(high, target).max(ns),
                ..row
            }
        })
        .filter(|row| row.ns > 0)
        .collect();
    if all_zero {
        rows = vec![Row {
            account: "unexplained".into(),
            group: "not explained".into(),
            ns: target,
            share: 1.0,
            low_ns: target,
            high_ns: target,
            ..Row::default()
        }];
    }
    rows.sort_by_key(|row| std::cmp::Reverse(row.ns));
    assert_eq!(rows.iter().map(|r| r.ns).sum::<u64>(), target, "the ledger must close");
    rows
}

fn mean(shares: &[[f64; 3]], count: f64) -> f64 {
    shares.iter().map(|[_, share, _]| share).sum::<f64>() / count
}

/// Findings that at least half of the runs have, with their mean shares.
fn pooled_findings(runs: &[Report], target: u64) -> Vec<Finding> {
    let mut found: Vec<Finding> = alike(runs)
        .into_iter()
        .filter(|same| same.len() * 2 >= runs.len())
        .filter_map(|same| {
            let count = runs.len().max(1) as f64;
            let mean = |value: fn(&Finding) -> f64| {
                same.iter().map(|(f, _)| value(f)).sum::<f64>() / count
            };
            let saving = mean(|f| f.saving_share);
            let amount =
                same.iter().map(|(f, net)| f.amount_ns as f64 / *net as f64).sum::<f64>() / count;
            let typical = same.iter().min_by(|a, b| {
                let far = |f: &Finding| (f.saving_share - saving).abs();
                let placed = |f: &Finding| f.sites.is_empty();
                placed(a.0).cmp(&placed(b.0)).then(far(a.0).total_cmp(&far(b.0)))
            })?;
            Some(Finding {
                amount_ns: of_whole(amount, target),
                saving_ns: of_whole(saving, target),
                saving_share: saving,
                low: same.iter().map(|(f, _)| f.low).fold(saving, f64::min),
                high: same.iter().map(|(f, _)| f.high).fold(saving, f64::max),
                ..typical.0.clone()
            })
        })
        .collect();
    crate::findings::sort(&mut found);
    found
}

/// The findings of several runs, grouped by cause, each with its run's net time.
///
/// One cause: findings of one class in one process with a place in common; two locks are two causes. The
/// order of places may differ between runs, and a run may have none.
fn alike(runs: &[Report]) -> Vec<Vec<(&Finding, u64)>> {
    let mut causes: Vec<Vec<(&Finding, u64)>> = Vec::new();
    for run in runs {
        let net = net(&run.ledger).max(1);
        let mut taken = vec![false; causes.len()];
        for finding in &run.findings {
            let free = |same: fn(&Finding, &Finding) -> bool| {
                let fits = |i: &usize| causes[*i].iter().any(|(f, _)| same(f, finding));
                (0..taken.len()).find(|i| !taken[*i] && fits(i))
            };
            match free(same_cause).or_else(|| free(may_be_same)) {
                Some(known) => {
                    causes[known].push((finding, net));
                    taken[known] = true;
                }
                None => causes.push(vec![(finding, net)]),
            }
        }
    }
    causes
}

fn same_cause(a: &Finding, b: &Finding) -> bool {
    let place = |x: &Finding, y: &Finding| {
        let first = y.sites.first();
        first.is_some_and(|s| x.sites.iter().any(|t| t.function == s.function && t.line == s.line))
    };
    a.class == b.class && a.process == b.process && (place(a, b) || place(b, a))
}

/// As far as is known: one of the two runs has no place.
fn may_be_same(a: &Finding, b: &Finding) -> bool {
    a.class == b.class && a.process == b.process && (a.sites.is_empty() || b.sites.is_empty())
}

/// The counts of several runs: of each its median, and how far the runs differ. What a run does not have is 0 there.
fn pooled_counts(runs: &[Report]) -> Vec<Count> {
    let mut values: BTreeMap<&str, (Vec<u64>, bool)> = BTreeMap::new();
    for count in runs.iter().flat_map(|run| &run.counts) {
        let known = values.entry(&count.name).or_insert_with(|| (Vec::new(), true));
        known.0.push(count.value);
        known.1 &= count.exact;
    }
    let pooled = |(name, (mut each, exact)): (&str, (Vec<u64>, bool))| {
        each.resize(runs.len(), 0);
        each.sort_unstable();
        let (low, high) = (each.first().copied(), each.last().copied());
        let value = each.get(each.len() / 2).copied().unwrap_or(0);
        Count { name: name.into(), value, low: low.unwrap_or(0), high: high.unwrap_or(0), exact }
    };
    values.into_iter().map(pooled).collect()
}

pub(crate) fn clean_runs(clean: &[CleanRun]) -> CleanRuns {
    let each: Vec<u64> = clean.iter().map(|run| run.wall.0).collect();
    let median = |of: fn(&CleanRun) -> u64| {
        summarise(&clean.iter().map(of).collect::<Vec<_>>()).interval.median
    };
    CleanRuns {
        count: u32::try_from(clean.len()).unwrap_or(u32::MAX),
        wall_ns: summarise(&each).interval,
        user_ns: median(|run| run.user.0),
        sys_ns: median(|run| run.system.0),
        max_rss: clean.iter().map(|run| run.max_rss).max().unwrap_or(0),
        each_ns: each,
    }
}

/// `part` is the part of the whole command's time that the ledgers divide.
fn traced_runs(runs: &[Report], clean: &CleanRuns, part: f64) -> TracedRuns {
    let walls: Vec<u64> = runs.iter().map(|r| r.wall_ns).collect();
    let Interval { median, .. } = summarise(&walls).interval;
    let observed: u64 = runs
        .iter()
        .flat_map(|r| r.ledger.iter().filter(|row| row.account == OBSERVER))
        .map(|row| row.ns)
        .sum();
    let overhead_share = if clean.count > 0 {
        median as f64 / (clean.wall_ns.median.max(1) as f64 * part.max(f64::EPSILON)) - 1.0
    } else {
        observed as f64 / walls.iter().sum::<u64>().max(1) as f64
    };
    let last = runs.last().map(|r| &r.runs.traced);
    TracedRuns {
        count: u32::try_from(runs.len()).unwrap_or(u32::MAX),
        overhead_share,
        wall_ns: median,
        records: runs.iter().map(|r| r.runs.traced.records).sum(),
        lost: runs.iter().map(|r| r.runs.traced.lost).sum(),
        samples: runs.iter().map(|r| r.runs.traced.samples).sum(),
        on_cpu_ns: last.map_or(0, |t| t.on_cpu_ns),
        switches: last.map_or(0, |t| t.switches),
        rusage_ns: last.map_or(0, |t| t.rusage_ns),
    }
}

/// The warning that the findings' sentences speak of another clock than the rows, if so.
fn clocks(report: &Report, runs: &[Report], clean: &[CleanRun]) -> Option<String> {
    let traced = net(&runs[runs.len() / 2].ledger);
    let apart = traced as f64 / report.net_ns.max(1) as f64;
    let same = (1.0 / APART..=APART).contains(&apart);
    (!clean.is_empty() && !same && !report.findings.is_empty()).then(|| {
        format!(
            "times in the findings' sentences are of a traced run ({} without tracing); the ledger, the places and the \
             savings are scaled to the median of the clean runs",
            time(Ns(traced))
        )
    })
}

/// Each warning once. Warnings that differ only in the number at their beginning become one, with the sum.
fn warnings<'w>(all: impl Iterator<Item = &'w String>) -> Vec<String> {
    let mut found: Vec<(u64, &str, bool)> = Vec::new();
    for warning in all {
        let (number, rest) = match warning.split_once(' ').map(|(n, r)| (n.parse::<u64>(), r)) {
            Some((Ok(number), rest)) => (Some(number), rest),
            _ => (None, warning.as_str()),
        };
        match found.iter_mut().find(|(_, r, counted)| *r == rest && *counted == number.is_some()) {
            Some(known) => known.0 = known.0.saturating_add(number.unwrap_or(0)),
            None => found.push((number.unwrap_or(0), rest, number.is_some())),
        }
    }
    let text =
        |(n, rest, counted)| if counted { format!("{n} {rest}") } else { String::from(rest) };
    found.into_iter().map(text).collect()
}

/// Each hazard once.
fn merged<'h>(hazards: impl Iterator<Item = &'h Hazard>) -> Vec<Hazard> {
    let mut found: Vec<Hazard> = Vec::new();
    for hazard in hazards {
        if !found.iter().any(|f| f.id == hazard.id) {
            found.push(hazard.clone());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use deadweight_report::report::Site;

    fn lock(line: u32, others: &[u32], saving_share: f64) -> Finding {
        let site = |line: &u32| Site { function: "get".into(), line: *line, ..Site::default() };
        let sites = [&[line], others].concat().iter().map(site).collect();
        Finding { class: "wait-lock".into(), saving_share, sites, ..Finding::default() }
    }

    fn pooled(runs: &[Vec<Finding>]) -> Vec<(u32, f64)> {
        let report = |findings: &Vec<Finding>| Report {
            findings: findings.clone(),
            ledger: vec![Row { ns: 100, ..Row::default() }],
            ..Report::default()
        };
        let runs: Vec<Report> = runs.iter().map(report).collect();
        let found = pooled_findings(&runs, 1000);
        found.iter().map(|f| (f.sites[0].line, f.saving_share)).collect()
    }

    #[test]
    fn warnings_that_count_the_same_thing_are_one() {
        let all = ["3 waits ended", "odd", "4 waits ended", "odd", "1 wake-up seen"];
        let all: Vec<String> = all.map(String::from).to_vec();
        assert_eq!(warnings(all.iter()), ["7 waits ended", "odd", "1 wake-up seen"]);
    }

    #[test]
    fn two_causes_of_one_class_stay_two() {
        let run = || vec![lock(10, &[], 0.5), lock(20, &[], 0.25)];
        assert_eq!(pooled(&[run(), run()]), [(10, 0.5), (20, 0.25)]);
    }

    #[test]
    fn one_cause_whose_places_change_their_order_stays_one() {
        let runs = [vec![lock(10, &[11], 0.5)], vec![lock(11, &[10], 0.25)]];
        assert_eq!(pooled(&runs), [(10, 0.375)]);
    }

    #[test]
    fn a_run_without_a_place_has_the_same_cause() {
        let nowhere = || Finding { sites: Vec::new(), ..lock(10, &[], 0.5) };
        for runs in [
            [vec![nowhere()], vec![lock(10, &[], 0.25)]],
            [vec![lock(10, &[], 0.25)], vec![nowhere()]],
        ] {
            assert_eq!(pooled(&runs), [(10, 0.375)]);
        }
        let two = || vec![lock(10, &[], 0.5), lock(20, &[], 0.25)];
        assert_eq!(pooled(&[two(), vec![nowhere()]]), [(10, 0.5), (20, 0.125)]);
    }

    #[test]
    fn a_finding_of_less_than_half_of_the_runs_is_chance() {
        let run = || vec![lock(10, &[], 0.5)];
        assert_eq!(pooled(&[run(), run(), vec![lock(20, &[], 0.4)]]), [(10, 1.0 / 3.0)]);
    }
}
