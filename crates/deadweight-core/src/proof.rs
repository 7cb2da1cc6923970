//! Judges proofs (`--prove`), which compare runs with a cost and without it: the saving was measured, the code
//! is needed, or neither was shown.
//!
//! A [`Removal`] is what may be removed from a binary; the caller runs it and returns a [`Trial`].
//! `findings` chooses what to remove, `deadweight_code::removal` makes the bytes.

use crate::findings;
use deadweight_report::compare::{self, Verdict};
use deadweight_report::report::{Finding, How, Outcome, Proof, Removal, Report};
use deadweight_report::wording::things;
use deadweight_trace::units::Ns;

/// A cost of at most this share of the wall time is no finding.
const WORTH: f64 = 0.02;
/// A finding is withdrawn if at least this share of it was tried without effect.
const MOST_OF_IT: f64 = 0.5;
/// The class whose removal leaves instructions that do nothing in the hot loop itself.
const CHECKS: &str = "bounds-checks";

/// The result of running a binary with and without something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trial {
    /// Wall times in pairs: unchanged, and without.
    pub pairs: Vec<(Ns, Ns)>,
    /// The outcome of the runs without it.
    pub ended: Ended,
}

/// The outcome of runs without something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// They wrote the same and ended alike.
    Alike,
    /// They ended alike, and neither wrote anything that could be compared.
    Silent,
    /// The difference, as `wrote something else to standard output`.
    Otherwise(String),
    /// Why that is unknown, as a sentence without its end.
    Untold(String),
}

/// The fewest pairs of runs that give a result.
#[must_use]
pub fn fewest() -> usize {
    compare::fewest(true)
}

/// The judgement of a trial of `removal`, of a finding of `class`.
#[must_use]
pub fn judge(class: &str, removal: &Removal, trial: &Trial) -> Proof {
    let what = &removal.what;
    let mut proof = Proof { removed: what.clone(), ..Proof::default() };
    match &trial.ended {
        Ended::Untold(why) => {
            proof.text = format!("not proved by removing {what}: {why}");
            return proof;
        }
        Ended::Otherwise(did) => {
            proof.outcome = Outcome::Needed;
            proof.text = format!("without {what} the program {did}: it does needed work");
            return proof;
        }
        Ended::Alike | Ended::Silent => {}
    }
    let same = match trial.ended {
        Ended::Silent => "no output to compare, but the same exit status",
        _ => "same output",
    };
    let series = |of: fn(&(Ns, Ns)) -> Ns| -> Vec<f64> {
        trial.pairs.iter().map(|pair| of(pair).0.max(1) as f64).collect()
    };
    let (ratio, verdict) = compare::judge(&[series(|p| p.0), series(|p| p.1)], true, 1, 1);
    proof.pairs = u32::try_from(trial.pairs.len()).unwrap_or(u32::MAX);
    (proof.saving, proof.low, proof.high) = (1.0 - ratio.value, 1.0 - ratio.high, 1.0 - ratio.low);
    let pairs = things(proof.pairs.into(), "pair");
    let range = format!("{} to {}", number(proof.low), number(proof.high));
    let left = left_over(class);
    (proof.outcome, proof.text) = match verdict {
        Verdict::Faster => (
            Outcome::Measured,
            format!(
                "measured: removing {what} saves {} % ({range}), {pairs} of runs, {same}{left}",
                number(proof.saving)
            ),
        ),
        Verdict::CannotTell => (
            Outcome::NotTried,
            format!("not proved by removing {what}: {pairs} of runs are too few for a result"),
        ),
        Verdict::Slower | Verdict::NoDifference => (
            Outcome::NoSaving,
            format!("no saving shown by removing {what}: {range} %, {pairs} of runs, {same}{left}"),
        ),
    };
    proof
}

/// The part of the cost that the patched copy still has.
fn left_over(class: &str) -> &'static str {
    match class {
        CHECKS => {
            "; the instructions in place of the checks do nothing but take time: code without them may save more"
        }
        "atomics" => {
            "; they still count, without the lock prefix: not counting at all may save more"
        }
        _ => "",
    }
}

/// A removal that could not be tried.
#[must_use]
pub fn not_tried(removal: &Removal, why: &str) -> Proof {
    judge("", removal, &Trial { pairs: Vec::new(), ended: Ended::Untold(why.to_owned()) })
}

/// Puts the proofs of findings, each with its index, into the report. `scale` converts the proofs' shares
/// into shares of the report's time.
pub fn settle(report: &mut Report, proofs: Vec<(usize, Proof)>, scale: f64) {
    for (index, proof) in proofs {
        if let Some(finding) = report.findings.get_mut(index) {
            finding.proofs.push(proof);
        }
    }
    let net = report.net_ns;
    let (refuted, mut kept): (Vec<Finding>, Vec<Finding>) =
        report.findings.drain(..).partition(is_refuted);
    for finding in &mut kept {
        let said: Vec<String> = finding.proofs.iter().map(|proof| proof.text.clone()).collect();
        finding.evidence.splice(0..0, said);
        let measured = finding.proofs.iter().filter(|p| p.outcome == Outcome::Measured);
        let Some(best) = measured.max_by(|a, b| a.saving.total_cmp(&b.saving)) else { continue };
        let share = |saving: f64| (saving * scale).clamp(0.0, 1.0);
        finding.how = How::Measured;
        (finding.saving_share, finding.low, finding.high) =
            (share(best.saving), share(best.low), share(best.high));
        finding.saving_ns = Ns(net).part(finding.saving_share).0;
    }
    findings::sort(&mut kept);
    report.findings = kept;
    report.withdrawn.extend(refuted);
}

/// Whether most of a finding was tried, and no trial supports it.
fn is_refuted(finding: &Finding) -> bool {
    let in_vain = |proof: &&Proof| match proof.outcome {
        Outcome::Needed => true,
        // Instructions left in the loop hide what a compiler would gain.
        Outcome::NoSaving => finding.class != CHECKS && proof.high < WORTH,
        _ => false,
    };
    let share = |proof: &Proof| {
        let removals = finding.removals.iter();
        removals.filter(|r| r.what == proof.removed).map(|r| r.share).sum::<f64>()
    };
    let tried: f64 = finding.proofs.iter().filter(in_vain).map(share).sum();
    tried >= MOST_OF_IT && !finding.proofs.iter().any(|p| p.outcome == Outcome::Measured)
}

/// A share in percent, to the measurable precision.
fn number(share: f64) -> String {
    let percent = share * 100.0;
    let text = if percent.abs() < 9.95 { format!("{percent:.1}") } else { format!("{percent:.0}") };
    if text == "-0.0" { "0.0".to_owned() } else { text.replace('-', "−") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    fn removal(what: &str, share: f64) -> Removal {
        Removal { what: what.into(), image: "/app".into(), share, patches: Ok(Vec::new()) }
    }

    fn trial(pairs: u64, with: u64, without: u64) -> Trial {
        let pair = |i| (Ns(with + i * 37 % 11), Ns(without + i * 53 % 11));
        Trial { pairs: (0..pairs).map(pair).collect(), ended: Ended::Alike }
    }

    fn text(class: &str, trial: &Trial) -> String {
        judge(class, &removal("the call of memset at a.c:3", 1.0), trial).text
    }

    #[test]
    fn the_result_of_pairs_is_one_line() {
        expect!["measured: removing the call of memset at a.c:3 saves 48 % (47 to 48), 9 pairs of runs, same output"].assert_eq(&text("zeroing", &trial(9, 1000, 520)));
        expect!["no saving shown by removing the call of memset at a.c:3: −0.4 to 0.4 %, 9 pairs of runs, same output"].assert_eq(&text("zeroing", &trial(9, 1000, 1000)));
        expect!["no saving shown by removing the call of memset at a.c:3: −5.4 to −4.6 %, 9 pairs of runs, same output; the instructions in place of the checks do nothing but take time: code without them may save more"].assert_eq(&text("bounds-checks", &trial(9, 1000, 1050)));
        expect!["not proved by removing the call of memset at a.c:3: 7 pairs of runs are too few for a result"].assert_eq(&text("zeroing", &trial(7, 1000, 520)));
        let ended = Ended::Otherwise("wrote something else to standard output".into());
        expect!["without the call of memset at a.c:3 the program wrote something else to standard output: it does needed work"].assert_eq(&text("zeroing", &Trial { ended, ..trial(9, 1000, 520) }));
    }

    fn report(class: &str, removals: &[Removal]) -> Report {
        let finding = Finding {
            class: class.into(),
            saving_share: 0.4,
            low: 0.1,
            high: 0.8,
            removals: removals.to_vec(),
            ..Finding::default()
        };
        Report { net_ns: 1000, findings: vec![finding], ..Report::default() }
    }

    fn settled(class: &str, trials: &[(f64, Trial)]) -> Report {
        let removals: Vec<Removal> = { trials.iter().enumerate() }
            .map(|(i, (share, _))| removal(&i.to_string(), *share))
            .collect();
        let mut report = report(class, &removals);
        let proofs = removals.iter().zip(trials).map(|(r, (_, t))| (0, judge(class, r, t)));
        settle(&mut report, proofs.collect(), 1.0);
        report
    }

    fn needed() -> Trial {
        Trial { pairs: Vec::new(), ended: Ended::Otherwise("was ended by signal 11".into()) }
    }

    #[test]
    fn a_measured_finding_has_the_measured_saving() {
        let report = settled("zeroing", &[(0.4, needed()), (0.6, trial(9, 1000, 520))]);
        let finding = &report.findings[0];
        assert_eq!(finding.how, How::Measured);
        assert!((470..=490).contains(&finding.saving_ns), "{finding:?}");
        assert!(finding.low > 0.47 && finding.high < 0.5, "{finding:?}");
        assert_eq!(finding.evidence.len(), 2);
        assert!(report.withdrawn.is_empty());
    }

    #[test]
    fn a_finding_is_withdrawn_if_what_it_names_is_needed_or_costs_nothing() {
        let withdrawn = |class, trial| settled(class, &[(0.6, trial)]).withdrawn.len();
        assert_eq!(withdrawn("zeroing", needed()), 1);
        assert_eq!(withdrawn("zeroing", trial(9, 1000, 1000)), 1);
        // Instructions left of a check hide its cost.
        assert_eq!(withdrawn("bounds-checks", trial(9, 1000, 1000)), 0);
        assert_eq!(withdrawn("bounds-checks", needed()), 1);
        // A small part of the finding does not represent the rest.
        assert!(settled("zeroing", &[(0.2, needed())]).withdrawn.is_empty());
        // An interval that still includes a worthwhile saving.
        let noisy = Trial {
            pairs: (0..9).map(|i| (Ns(1000), Ns(900 + 25 * i))).collect(),
            ended: Ended::Alike,
        };
        let kept = settled("zeroing", &[(1.0, noisy)]);
        assert_eq!((kept.findings[0].how, kept.findings[0].saving_share), (How::Estimate, 0.4));
        assert!(kept.findings[0].evidence[0].starts_with("no saving shown"));
    }
}
