//! Runs that recording makes shorter: threads that fight for a lock, or for a cache line, fight less while each of them is
//! slowed. The time that they need more without recording is in no traced run. So the ranges of what they fight for include
//! it.

use super::net;
use deadweight_report::report::{Finding, Report};
use deadweight_report::wording::percent;
use deadweight_trace::units::Ns;

/// What threads fight for.
const FIGHTS: [&str; 5] =
    ["atomics", "busy-waiting", "false-sharing", "parallel-overhead", "wait-lock"];
/// A smaller part may be chance.
const LEAST: f64 = 0.1;

/// Widens the ranges of findings, which are shares of the traced `runs`, where the clean time is longer than theirs.
pub(super) fn widen(findings: &mut [Finding], runs: &[Report], clean: u64) {
    let mut traced: Vec<u64> = runs.iter().map(|run| net(&run.ledger)).collect();
    traced.sort_unstable();
    let traced = traced.get(traced.len() / 2).copied().unwrap_or(clean);
    let missing = 1.0 - traced as f64 / clean.max(1) as f64;
    if missing < LEAST {
        return;
    }
    for finding in findings.iter_mut().filter(|f| FIGHTS.contains(&f.class.as_str())) {
        finding.low *= 1.0 - missing;
        finding.high = (missing + finding.high * (1.0 - missing)).min(1.0);
        finding.evidence.push(format!(
            "runs without recording take {} longer than these: threads may fight more then, and the upper end has all of \
             that",
            percent(Ns(clean - traced.min(clean)), Ns(traced.max(1)))
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use deadweight_report::report::Row;

    fn widened(class: &str, traced: u64) -> Finding {
        let row = Row { account: "net-work".into(), ns: traced, ..Row::default() };
        let run = Report { ledger: vec![row], ..Report::default() };
        let (class, low, high) = (class.into(), 0.1, 0.2);
        let mut findings = [Finding { class, low, high, ..Finding::default() }];
        widen(&mut findings, &[run], 1000);
        let [finding] = findings;
        finding
    }

    #[test]
    fn a_lock_that_is_fought_for_more_without_recording_may_save_that_too() {
        let lock = widened("wait-lock", 400);
        assert!((lock.low - 0.04).abs() < 1e-9 && (lock.high - 0.68).abs() < 1e-9, "{lock:?}");
        assert!(lock.evidence[0].starts_with("runs without recording take 150 % longer"));
    }

    #[test]
    fn other_causes_and_small_differences_change_nothing() {
        for finding in
            [widened("allocation", 400), widened("wait-lock", 950), widened("wait-lock", 1200)]
        {
            assert!(finding.high < 0.21 && finding.evidence.is_empty(), "{finding:?}");
        }
    }
}
