//! Judges proofs (`--prove`), which compare runs with a cost and without it: the saving was measured, the code
//! is needed, or neither was shown.
//!
//! A [`Removal`] is what runs can leave out; the caller runs the command and returns a [`Trial`].
//! `findings::removals` chooses what to leave out.

mod words;

use crate::findings;
use deadweight_report::compare::{self, Verdict};
use deadweight_report::report::{
    CheckOutcome, Finding, How, Means, Outcome, Proof, Removal, Report,
};
use deadweight_report::wording::things;
use deadweight_trace::units::Ns;
use std::collections::BTreeSet;
use words::{also, besides, leaving_out, left_over, number};

/// A cost of at most this share of the wall time is no finding.
const WORTH: f64 = 0.02;
/// A finding is withdrawn if at least this share of it was tried without effect.
const MOST_OF_IT: f64 = 0.5;
/// The class whose removal leaves instructions that do nothing in the hot loop itself.
const CHECKS: &str = "bounds-checks";

/// The result of running the command with and without something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trial {
    /// Runs in pairs: unchanged, and without.
    pub pairs: Vec<(Timed, Timed)>,
    /// The outcome of the runs without it.
    pub ended: Ended,
}

/// What one run took.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Timed {
    /// Wall time.
    pub wall: Ns,
    /// CPU time, in user mode and in the kernel.
    pub cpu: Ns,
    /// Largest resident set, in bytes.
    pub max_rss: u64,
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

/// What was the same with and without what is left out.
fn same(ended: &Ended, means: Option<Means>) -> &'static str {
    match ended {
        Ended::Silent => "no output to compare, but the same exit status",
        // What it does not clear or copy may be in a file.
        _ if means == Some(Means::PatchedCopy) => {
            "same standard output (files that it writes are not compared)"
        }
        _ => "same output",
    }
}

/// The judgement of a trial of `removal`, of a finding of `class`.
#[must_use]
pub fn judge(class: &str, removal: &Removal, trial: &Trial) -> Proof {
    let what = &removal.what;
    let means = removal.change.as_ref().ok().map(|change| change.means());
    let mut proof = Proof { removed: what.clone(), means, ..Proof::default() };
    match &trial.ended {
        Ended::Untold(why) => {
            proof.text = format!("not proved by {} {what}: {why}", leaving_out(means));
            return proof;
        }
        Ended::Otherwise(did) if means == Some(Means::PatchedCopy) => {
            proof.outcome = Outcome::Needed;
            proof.text = format!("without {what} the program {did}: it does needed work");
            return proof;
        }
        Ended::Otherwise(did) => {
            let leaving = leaving_out(means);
            proof.text = format!("not proved by {leaving} {what}: the program then {did}");
            return proof;
        }
        Ended::Alike | Ended::Silent => {}
    }
    let same = same(&trial.ended, means);
    let series = |of: fn(&(Timed, Timed)) -> Ns| -> Vec<f64> {
        trial.pairs.iter().map(|pair| of(pair).0.max(1) as f64).collect()
    };
    let walls = [series(|p| p.0.wall), series(|p| p.1.wall)];
    let (ratio, verdict) = compare::judge(&walls, true, 1, 1);
    proof.pairs = u32::try_from(trial.pairs.len()).unwrap_or(u32::MAX);
    let added = means == Some(Means::Twice);
    (proof.saving, proof.low, proof.high) = match added {
        // What takes all of the time takes a little more than that the second time.
        true => [ratio.value, ratio.low, ratio.high].map(|twice| (twice - 1.0).min(1.0)).into(),
        false => (1.0 - ratio.value, 1.0 - ratio.high, 1.0 - ratio.low),
    };
    proof.also = also(&trial.pairs);
    let pairs = things(proof.pairs.into(), "pair");
    let range = format!("{} to {}", number(proof.low), number(proof.high));
    let leaving = leaving_out(means);
    let said =
        format!("{pairs} of runs, {same}{}{}", besides(&proof.also), left_over(class, means));
    (proof.outcome, proof.text) = match verdict {
        Verdict::Slower if added => (
            Outcome::Measured,
            format!(
                "measured, at least: {leaving} {what} takes {} % more time ({range}), {said}: as much goes away with them",
                number(proof.saving)
            ),
        ),
        Verdict::Faster if added => {
            (Outcome::NoSaving, format!("no saving shown by {leaving} {what}: {range} %, {said}"))
        }
        Verdict::Faster => (
            Outcome::Measured,
            format!(
                "{}: {leaving} {what} saves {} % ({range}), {said}",
                if is_least(class, means) { "measured, at least" } else { "measured" },
                number(proof.saving)
            ),
        ),
        Verdict::CannotTell => (
            Outcome::NotTried,
            format!("not proved by {leaving} {what}: {pairs} of runs are too few for a result"),
        ),
        Verdict::Slower | Verdict::NoDifference => {
            (Outcome::NoSaving, format!("no saving shown by {leaving} {what}: {range} %, {said}"))
        }
    };
    proof
}

/// A removal that could not be tried. Of a finding whose cost is at most this share of the time.
#[must_use]
pub fn not_tried(removal: &Removal, why: &str, at_most: f64) -> Proof {
    if removal.change.is_ok() {
        return judge(
            "",
            removal,
            &Trial { pairs: Vec::new(), ended: Ended::Untold(why.to_owned()) },
        );
    }
    let text = format!(
        "{} cannot be left out here: {why}; it is at most {} % of the time",
        removal.what,
        number(at_most)
    );
    Proof { removed: removal.what.clone(), text, ..Proof::default() }
}

/// Puts proofs into the report, each with the indexes of its findings: runs that leave out a cost of several
/// processes do so in all of them, and each finding has its predicted part of what that saves. `scale` converts the
/// proofs' shares into shares of the report's time.
pub fn settle(report: &mut Report, proofs: Vec<(Vec<usize>, Proof)>, scale: f64) {
    let mut parts: Vec<f64> = vec![1.0; report.findings.len()];
    for (indexes, mut proof) in proofs {
        let together = indexes.len();
        if together > 1 {
            let of = |index: &usize| report.findings.get(*index).map(|found| found.process.clone());
            let processes = indexes.iter().filter_map(of).collect::<BTreeSet<_>>().len();
            let whose = match processes {
                0 | 1 => format!("{together} findings of the process"),
                _ => format!("the findings of {processes} processes"),
            };
            proof.text = format!("{}; {whose} together", proof.text);
        }
        let of = |index: &usize| report.findings.get(*index).map_or(0, |f| f.amount_ns);
        let all = indexes.iter().map(of).sum::<u64>().max(1);
        for (index, amount) in indexes.iter().map(|index| (*index, of(index))).collect::<Vec<_>>() {
            if let Some(finding) = report.findings.get_mut(index) {
                finding.proofs.push(proof.clone());
                parts[index] = if together > 1 { amount as f64 / all as f64 } else { 1.0 };
            }
        }
    }
    let net = report.net_ns;
    for (finding, part) in report.findings.iter_mut().zip(parts) {
        take_over(finding, scale * part, net);
    }
    let (refuted, mut kept): (Vec<Finding>, Vec<Finding>) =
        report.findings.drain(..).partition(is_refuted);
    findings::sort(&mut kept);
    report.findings = kept;
    report.withdrawn.extend(refuted);
    for check in report.checks.iter_mut().filter(|check| check.outcome == CheckOutcome::Found) {
        let of_it = |findings: &[Finding]| findings.iter().any(|f| f.class == check.class);
        if of_it(&report.withdrawn) && !of_it(&report.findings) {
            check.outcome = CheckOutcome::Needed;
        }
    }
}

/// Puts what proofs say into their finding. `scale` converts their shares into shares of the `net` time.
fn take_over(finding: &mut Finding, scale: f64, net: u64) {
    let said: Vec<String> = finding.proofs.iter().map(|proof| proof.text.clone()).collect();
    finding.evidence.splice(0..0, said);
    let measured = finding.proofs.iter().filter(|p| p.outcome == Outcome::Measured);
    let Some(best) = measured.max_by(|a, b| a.saving.total_cmp(&b.saving)) else { return };
    let share = |saving: f64| (saving * scale).clamp(0.0, 1.0);
    let (saving, low, high) = (share(best.saving), share(best.low), share(best.high));
    if is_least(&finding.class, best.means) {
        finding.saving_share = finding.saving_share.max(saving);
        finding.low = finding.low.max(low).min(finding.saving_share);
        finding.high = finding.high.max(high);
        if finding.how == How::Candidate && low >= WORTH {
            finding.how = How::Estimate;
        }
    } else {
        finding.how = How::Measured;
        (finding.saving_share, finding.low, finding.high) = (saving, low, high);
    }
    finding.saving_ns = Ns(net).part(finding.saving_share).0;
}

/// Whether these means leave a part of the cost: then the saving that they show is the least, and the predicted one stays.
fn is_least(class: &str, means: Option<Means>) -> bool {
    let left_over = !left_over(class, means).is_empty();
    means == Some(Means::Twice)
        || left_over && (means != Some(Means::PatchedCopy) || class == CHECKS)
}

/// Whether most of a finding was tried, and no trial supports it.
fn is_refuted(finding: &Finding) -> bool {
    let in_vain = |proof: &&Proof| match (proof.outcome, proof.means) {
        (Outcome::Needed, _) => true,
        // Instructions left in the loop hide what a compiler would gain; and a setting or library that is not
        // obeyed changes nothing.
        (Outcome::NoSaving, Some(Means::PatchedCopy | Means::SkippedCalls)) => {
            finding.class != CHECKS && proof.high < WORTH
        }
        _ => false,
    };
    let share = |proof: &Proof| {
        let removals = finding.removals.iter();
        removals.filter(|r| r.what == proof.removed).map(|r| r.share).sum::<f64>()
    };
    let tried: f64 = finding.proofs.iter().filter(in_vain).map(share).sum();
    tried >= MOST_OF_IT && !finding.proofs.iter().any(|p| p.outcome == Outcome::Measured)
}

#[cfg(test)]
mod tests {
    use super::*;
    use deadweight_report::report::{Change, Preloaded, SkippedCall};
    use expect_test::expect;

    fn removal(what: &str, share: f64) -> Removal {
        let change = Ok(Change::Patches("/app".into(), Vec::new()));
        Removal { what: what.into(), share, change }
    }

    fn timed(wall: u64) -> Timed {
        Timed { wall: Ns(wall), cpu: Ns(wall), max_rss: 1 << 20 }
    }

    fn trial(pairs: u64, with: u64, without: u64) -> Trial {
        let pair = |i| (timed(with + i * 37 % 11), timed(without + i * 53 % 11));
        Trial { pairs: (0..pairs).map(pair).collect(), ended: Ended::Alike }
    }

    fn text(class: &str, trial: &Trial) -> String {
        judge(class, &removal("the call of memset at a.c:3", 1.0), trial).text
    }

    #[test]
    fn the_result_of_pairs_is_one_line() {
        expect!["measured: removing the call of memset at a.c:3 saves 48 % (47 to 48), 9 pairs of runs, same standard output (files that it writes are not compared)"].assert_eq(&text("zeroing", &trial(9, 1000, 520)));
        expect!["no saving shown by removing the call of memset at a.c:3: −0.4 to 0.4 %, 9 pairs of runs, same standard output (files that it writes are not compared)"].assert_eq(&text("zeroing", &trial(9, 1000, 1000)));
        expect!["no saving shown by removing the call of memset at a.c:3: −5.4 to −4.6 %, 9 pairs of runs, same standard output (files that it writes are not compared); the instructions in place of the checks do nothing but take time: code without them may save more"].assert_eq(&text("bounds-checks", &trial(9, 1000, 1050)));
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
        let proofs = removals.iter().zip(trials).map(|(r, (_, t))| (vec![0], judge(class, r, t)));
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

    /// Two findings of sleeps, the second one of this process, and what came of skipping all sleeps.
    fn of_two_findings(process: &str, trial: &Trial) -> Report {
        let calls = vec![SkippedCall { name: "nanosleep", only: None }];
        let sleeps = Removal {
            what: "the sleeps".into(),
            share: 1.0,
            change: Ok(Change::SkippedCalls(calls)),
        };
        let mut both = report("wait-sleep", std::slice::from_ref(&sleeps));
        both.findings.push(both.findings[0].clone());
        (both.findings[0].amount_ns, both.findings[1].amount_ns) = (300, 100);
        both.findings[1].process = process.into();
        settle(&mut both, vec![(vec![0, 1], judge("wait-sleep", &sleeps, trial))], 1.0);
        both
    }

    #[test]
    fn what_several_processes_save_together_is_divided() {
        let both = of_two_findings("other", &trial(9, 1000, 520));
        let savings = both.findings.iter().map(|finding| finding.saving_ns);
        assert_eq!(savings.collect::<Vec<_>>(), [358, 119]);
        expect!["measured: skipping the sleeps saves 48 % (47 to 48), 9 pairs of runs, same output; the findings of 2 processes together"].assert_eq(&both.findings[0].evidence[0]);
        let one = of_two_findings("", &trial(9, 1000, 520));
        expect!["measured: skipping the sleeps saves 48 % (47 to 48), 9 pairs of runs, same output; 2 findings of the process together"].assert_eq(&one.findings[0].evidence[0]);
    }

    #[test]
    fn a_program_that_needs_its_sleeps_keeps_the_finding() {
        let ended = Ended::Otherwise("wrote something else to standard output".into());
        let both = of_two_findings("other", &Trial { ended, ..trial(9, 1000, 520) });
        assert!(both.withdrawn.is_empty());
        assert_eq!(both.findings[0].how, How::Estimate);
        let said = &both.findings[0].evidence[0];
        assert!(
            said.starts_with("not proved by skipping the sleeps: the program then wrote"),
            "{said}"
        );
        // Sleeps that are skipped and save nothing cost nothing.
        assert_eq!(of_two_findings("other", &trial(9, 1000, 1000)).withdrawn.len(), 2);
    }

    #[test]
    fn what_leaves_a_part_of_the_cost_shows_the_least_saving() {
        let change = Ok(Change::Library(Preloaded::Allocator));
        let removal = Removal { what: "the time in the allocator".into(), share: 1.0, change };
        let settled = |without| {
            let mut report = report("allocation", std::slice::from_ref(&removal));
            let proof = judge("allocation", &removal, &trial(9, 1000, without));
            settle(&mut report, vec![(vec![0], proof)], 1.0);
            report.findings.remove(0)
        };
        let little = settled(850);
        assert_eq!((little.how, little.saving_share, little.high), (How::Estimate, 0.4, 0.8));
        assert!(little.low > 0.14 && little.low < 0.16, "{little:?}");
        assert!(little.evidence[0].starts_with("measured, at least: leaving out the time"));
        let much = settled(500);
        assert!(much.saving_share > 0.49, "{much:?}");
        assert_eq!((much.how, much.high), (How::Estimate, 0.8));
    }

    #[test]
    fn kept_maps_show_the_least_and_a_setting_all() {
        let settled = |change| {
            let removal = Removal { what: "mapping".into(), share: 1.0, change: Ok(change) };
            let mut report = report("memory-churn", std::slice::from_ref(&removal));
            let proof = judge("memory-churn", &removal, &trial(9, 1000, 400));
            settle(&mut report, vec![(vec![0], proof)], 1.0);
            report.findings.remove(0).how
        };
        assert_eq!(settled(Change::Library(Preloaded::Maps)), How::Estimate);
        assert_eq!(settled(Change::Environment(Vec::new())), How::Measured);
    }

    #[test]
    fn what_is_done_twice_shows_the_least_and_withdraws_nothing() {
        let change = Ok(Change::Twice("/app".into(), Vec::new()));
        let removal = Removal { what: "the copies at a.c:3".into(), share: 1.0, change };
        let settled = |twice| {
            let mut report = report("buffer-copies", std::slice::from_ref(&removal));
            let proof = judge("buffer-copies", &removal, &trial(9, 1000, twice));
            settle(&mut report, vec![(vec![0], proof)], 1.0);
            assert!(report.withdrawn.is_empty());
            report.findings.remove(0)
        };
        let more = settled(1500);
        assert!(more.saving_share > 0.49 && more.low > 0.48, "{more:?}");
        assert_eq!((more.how, more.proofs[0].outcome), (How::Estimate, Outcome::Measured));
        expect!["measured, at least: doing twice the copies at a.c:3 takes 50 % more time (49 to 50), 9 pairs of runs, same output: as much goes away with them"].assert_eq(&more.evidence[0]);
        let same = settled(1000);
        assert_eq!((same.saving_share, same.proofs[0].outcome), (0.4, Outcome::NoSaving));
        // Nothing is faster because it is done twice: that is chance.
        assert_eq!(settled(900).proofs[0].outcome, Outcome::NoSaving);
    }

    #[test]
    fn checks_that_become_nothing_show_the_least() {
        let settled = |without| {
            let removals = [removal("the checks of the loop at a.rs:3", 1.0)];
            let mut report = report("bounds-checks", &removals);
            report.findings[0].how = How::Candidate;
            let proof = judge("bounds-checks", &removals[0], &trial(9, 1000, without));
            settle(&mut report, vec![(vec![0], proof)], 1.0);
            let finding = report.findings.remove(0);
            (finding.how, finding.saving_share)
        };
        // Vectors, which a compiler makes of a loop without checks, are not in it.
        assert_eq!(settled(990), (How::Candidate, 0.4));
        assert_eq!(settled(900), (How::Estimate, 0.4));
    }

    #[test]
    fn one_cpu_shows_the_least_and_withdraws_nothing() {
        let change = Ok(Change::OneCpu);
        let removal = Removal { what: "work on several CPUs".into(), share: 1.0, change };
        let settled = |without| {
            let mut report = report("false-sharing", std::slice::from_ref(&removal));
            let proof = judge("false-sharing", &removal, &trial(9, 1000, without));
            settle(&mut report, vec![(vec![0], proof)], 1.0);
            assert!(report.withdrawn.is_empty());
            report.findings.remove(0)
        };
        let least = settled(300);
        assert!(least.saving_share > 0.69 && least.low > 0.69, "{least:?}");
        assert!(least.evidence[0].starts_with("measured, at least: leaving out work on"));
        // Two threads that share nothing take twice as long.
        let apart = settled(2000);
        assert_eq!((apart.how, apart.saving_share, apart.low), (How::Estimate, 0.4, 0.1));
    }

    #[test]
    fn a_setting_that_saves_nothing_withdraws_nothing() {
        let change = Ok(Change::Environment(vec![("GOGC".into(), "off".into())]));
        let removal = Removal { what: "the collections".into(), share: 1.0, change };
        let mut report = report("gc", std::slice::from_ref(&removal));
        let proof = judge("gc", &removal, &trial(9, 1000, 1000));
        settle(&mut report, vec![(vec![0], proof)], 1.0);
        assert!(report.withdrawn.is_empty());
        assert!(
            report.findings[0].evidence[0]
                .starts_with("no saving shown by leaving out the collections")
        );
    }

    #[test]
    fn what_cannot_be_left_out_has_an_upper_bound() {
        let removal = Removal {
            what: "it".into(),
            share: 1.0,
            change: Err("only another build shows it".into()),
        };
        expect!["it cannot be left out here: only another build shows it; it is at most 24 % of the time"].assert_eq(&not_tried(&removal, "only another build shows it", 0.24).text);
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
            pairs: (0..9).map(|i| (timed(1000), timed(900 + 25 * i))).collect(),
            ended: Ended::Alike,
        };
        let kept = settled("zeroing", &[(1.0, noisy)]);
        assert_eq!((kept.findings[0].how, kept.findings[0].saving_share), (How::Estimate, 0.4));
        assert!(kept.findings[0].evidence[0].starts_with("no saving shown"));
    }
}
