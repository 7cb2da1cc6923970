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
    (ALONE.contains(&ratio) && share >= LARGE).then(|| Row {
        account: WAIT_CPU.into(),
        group: "waiting: CPU".into(),
        ns,
        share,
        basis: Basis::Sampled,
        low_ns: ns - ns / 4,
        high_ns: (ns + ns / 4).min(wall),
        note: "a CPU, held by other programs".into(),
        each_ns: if runs.len() > 1 { vec![ns; runs.len()] } else { Vec::new() },
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
            row.each_ns.iter_mut().for_each(|ns| *ns += waited.ns);
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
    fn what_others_took_of_a_clean_run_is_its_time_beyond_its_cpu_time() {
        assert_eq!(said(300, 300, 40, 440_000), Some(160_000));
        // Quiet; nobody took its CPU: it waited for something else; a sleeper; two CPUs at once.
        assert_eq!(said(300, 300, 40, 285_000), None);
        assert_eq!(said(300, 300, 1, 440_000), None);
        assert_eq!(said(470, 300, 40, 440_000), None);
        assert_eq!(said(150, 300, 40, 280_000), None);
    }
}
