//! How long clean runs waited for a CPU that others had: the kernel counts their CPU time, and traced runs show how much longer
//! than its CPU time the program takes by itself.

use super::{WAIT_CPU, net};
use crate::facts::clean_run::CleanRun;
use deadweight_report::report::{Basis, Report, Row};
use deadweight_report::stats::median::summarise;

/// Only for programs that work on one CPU at a time and hardly wait: their time over their CPU time, without tracing and
/// disturbance.
const ALONE: std::ops::RangeInclusive<f64> = 0.9..=1.1;
/// Others were given its CPU so many times in the median run. Fewer may be the kernel's own tasks.
const DISPLACED: u64 = 5;
/// A smaller part of the time is noise.
const LARGE: f64 = 0.05;

/// The row for it, of the clean runs' median `wall` and CPU time `cpu`, in ns; none if it is small, or cannot be known.
pub(super) fn waited(runs: &[Report], clean: &[CleanRun], (wall, cpu): (u64, u64)) -> Option<Row> {
    let displaced: Vec<u64> = clean.iter().map(|run| run.counters.displaced).collect();
    if clean.is_empty() || summarise(&displaced).interval.median < DISPLACED {
        return None;
    }
    let ratio = |run: &Report| net(&run.ledger) as f64 / net(&run.cpu_ledger).max(1) as f64;
    let mut ratios: Vec<f64> = runs.iter().map(ratio).collect();
    ratios.sort_by(f64::total_cmp);
    let ratio = *ratios.get(ratios.len() / 2)?;
    let alone = super::of_whole(ratio * cpu as f64 / wall.max(1) as f64, wall);
    let ns = wall - alone;
    let share = ns as f64 / wall.max(1) as f64;
    // The same part of each clean run, by its own times.
    let usual = cpu as f64 / wall.max(1) as f64;
    let cpus: Vec<u64> = clean.iter().map(|run| (run.user + run.system).0).collect();
    let walls: Vec<u64> = clean.iter().map(|run| run.wall.0).collect();
    let [median_cpu, median_wall] =
        [&cpus, &walls].map(|all| summarise(all).interval.median as f64);
    let scale = usual / (median_cpu / median_wall.max(1.0)).max(f64::MIN_POSITIVE);
    let part = |(cpu, run): (&u64, &u64)| 1.0 - ratio * scale * *cpu as f64 / (*run).max(1) as f64;
    let mut each: Vec<u64> =
        cpus.iter().zip(&walls).map(|pair| super::of_whole(part(pair), wall)).collect();
    each.sort_unstable();
    (ALONE.contains(&ratio) && share >= LARGE).then(|| Row {
        account: WAIT_CPU.into(),
        group: "waiting: CPU".into(),
        ns,
        share,
        basis: Basis::Sampled,
        low_ns: each.first().map_or(ns, |least| ns.min(*least)),
        high_ns: each.last().map_or(ns, |most| ns.max(*most)),
        note: "a CPU, held by other programs".into(),
        // As different as it was in the clean runs.
        each_ns: match runs.len() {
            1 => Vec::new(),
            count => (0..count).map(|i| each[i * each.len() / count]).collect(),
        },
    })
}

/// Adds it to the rows of the rest, which have `wall` less its time.
pub(super) fn add(rows: &mut Vec<Row>, waited: Row, wall: u64) {
    for row in rows.iter_mut() {
        row.share = row.ns as f64 / wall.max(1) as f64;
    }
    match rows.iter_mut().find(|row| row.account == WAIT_CPU) {
        Some(row) => {
            row.ns += waited.ns;
            row.low_ns += waited.low_ns;
            row.high_ns += waited.high_ns;
            row.share = row.ns as f64 / wall.max(1) as f64;
            row.each_ns.iter_mut().zip(waited.each_ns).for_each(|(ns, more)| *ns += more);
            row.note = format!("{}, or by other programs", row.note);
        }
        None => rows.push(waited),
    }
    rows.sort_by_key(|row| std::cmp::Reverse(row.ns));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::clean_run::RunCounters;
    use deadweight_trace::units::Ns;

    fn said(on_path: u64, on_cpus: u64, displaced: u64, wall: u64) -> Option<u64> {
        let row = |ns| Row { account: "net-work".into(), ns, ..Row::default() };
        let traced = Report {
            ledger: vec![row(on_path)],
            cpu_ledger: vec![row(on_cpus)],
            ..Report::default()
        };
        let counters = RunCounters { displaced, ..RunCounters::default() };
        let clean = CleanRun { wall: Ns(wall), user: Ns(280_000), counters, ..CleanRun::default() };
        waited(&[traced], &[clean], (wall, 280_000)).map(|row| row.ns)
    }

    #[test]
    fn its_interval_is_what_the_clean_runs_differ_by() {
        let row = |ns| Row { account: "net-work".into(), ns, ..Row::default() };
        let traced =
            || Report { ledger: vec![row(300)], cpu_ledger: vec![row(300)], ..Report::default() };
        let counters = RunCounters { displaced: 40, ..RunCounters::default() };
        let run =
            |wall| CleanRun { wall: Ns(wall), user: Ns(300), counters, ..CleanRun::default() };
        let clean = [run(400), run(500), run(600)];
        let found = waited(&[traced(), traced()], &clean, (500, 300)).unwrap();
        // A quarter, two fifths and a half of the time.
        assert_eq!((found.low_ns, found.ns, found.high_ns), (125, 200, 250));
        assert_eq!(found.each_ns, [125, 200]);
    }

    #[test]
    fn what_others_took_of_a_clean_run_is_its_time_beyond_its_cpu_time() {
        assert_eq!(said(300, 300, 40, 440_000), Some(160_000));
        // Quiet; nobody took its CPU: it waited for something else; a sleeper; two CPUs at once.
        assert_eq!(said(300, 300, 40, 285_000), None);
        assert_eq!(said(300, 300, 1, 440_000), None);
        assert_eq!(said(470, 300, 40, 440_000), None);
        assert_eq!(said(150, 300, 40, 280_000), None);
    }
}
