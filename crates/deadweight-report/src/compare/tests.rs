//! Verdicts on pairs of reports, and their error rates by simulation. Not for single rows; see `rows`.

use super::*;
use crate::report::{CleanRuns, Finding, FunctionWork, Row, Runs};
use crate::stats::median;
use crate::stats::random::Random;

fn report(each: &[u64], rows: &[(&str, u64)]) -> Report {
    let wall_ns = rows.iter().map(|(_, ns)| ns).sum();
    let summary = median::summarise(each);
    let clean = CleanRuns {
        count: u32::try_from(each.len()).unwrap(),
        wall_ns: summary.interval,
        each_ns: each.to_vec(),
        ..CleanRuns::default()
    };
    let ledger = rows
        .iter()
        .map(|(account, ns)| Row {
            account: (*account).into(),
            group: account.replace('-', " "),
            ns: *ns,
            ..Row::default()
        })
        .collect();
    Report { wall_ns, ledger, runs: Runs { clean, ..Runs::default() }, ..Report::default() }
}

fn noisy(base: u64, n: u64) -> Vec<u64> {
    (0..n).map(|i| base + i * 7919 % 13 * base / 1000).collect()
}

#[test]
fn the_rows_add_up_to_the_difference_and_the_largest_is_the_reason() {
    let slow = report(&noisy(2_000, 20), &[("tiny-reads", 1_700), ("net-work", 300)]);
    let fast = report(&noisy(60, 20), &[("net-work", 50), ("start-up", 10)]);
    let found = compare(("slow", &slow), ("fast", &fast), true);
    assert_eq!(found.verdict, Verdict::Faster);
    assert_eq!(found.difference_ns, -1_940);
    assert_eq!(found.rows.iter().map(|r| r.difference_ns).sum::<i64>(), -1_940);
    let reason = found.reason().unwrap();
    assert_eq!((reason.account.as_str(), reason.difference_ns), ("tiny-reads", -1_700));
    assert!(reason.share > 0.87 && found.rows.last().unwrap().share < 0.0);
    let back = compare(("fast", &fast), ("slow", &slow), true);
    assert_eq!(back.verdict, Verdict::Slower);
    assert!((back.ratio.value * found.ratio.value - 1.0).abs() < 1e-9);
}

#[test]
fn a_difference_within_the_noise_is_none_and_has_the_runs_needed() {
    let mut random = Random::new(1);
    let mut draw = || 1_000_000 + (random.number() >> 40) % 300_000;
    let a: Vec<u64> = (0..10).map(|_| draw()).collect();
    let b: Vec<u64> = (0..10).map(|_| draw()).collect();
    let rows = [("net-work", 1_150_000)];
    let found = compare(("a", &report(&a, &rows)), ("b", &report(&b, &rows)), true);
    assert_eq!(found.verdict, Verdict::NoDifference);
    // The estimated difference is 3 %: this many runs would show it, if it is real.
    assert!(found.runs_needed.unwrap() > 50, "{found:?}");
}

#[test]
fn significant_but_tiny_is_no_difference() {
    let a: Vec<u64> = (0..40).map(|i| 1_000_000 + i).collect();
    let b: Vec<u64> = (0..40).map(|i| 1_005_000 + i).collect();
    let rows = [("net-work", 1_000_000)];
    let found = compare(("a", &report(&a, &rows)), ("b", &report(&b, &rows)), true);
    assert!(found.ratio.p < ALPHA);
    assert_eq!((found.verdict, found.runs_needed), (Verdict::NoDifference, None));
}

#[test]
fn one_run_each_cannot_tell() {
    let rows = [("net-work", 100)];
    let found = compare(("a", &report(&[], &rows)), ("b", &report(&[], &rows)), false);
    assert_eq!(found.verdict, Verdict::CannotTell);
    assert!(found.warnings[0].contains("too few"), "{:?}", found.warnings);
}

#[test]
fn the_fewest_runs_are_those_with_which_the_tests_can_be_significant() {
    for (paired, p) in [
        (true, (|n| rank_tests::paired(&vec![1.0; n])) as fn(usize) -> f64),
        (false, |n| rank_tests::independent(&vec![1.0; n], &vec![2.0; n])),
    ] {
        assert!(p(fewest(paired)) < ALPHA && p(fewest(paired) - 1) >= ALPHA, "{paired}");
    }
}

#[test]
fn alike_commands_raise_few_alarms_and_two_percent_is_seen() {
    let mut random = Random::new(99);
    let mut draw = || random.uniform();
    // A run: a base, skewed noise of 1 %, and now and then a disturbance of 10 %.
    let mut run = |factor: f64| {
        let noise = 0.01 * -draw().ln() + if draw() < 0.05 { 0.1 } else { 0.0 };
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive")]
        let ns = (1e6 * factor * (1.0 + noise)) as u64;
        ns
    };
    let rows = [("net-work", 1_000_000)];
    let (mut alarms, mut seen) = (0, 0);
    for _ in 0..1000 {
        let a: Vec<u64> = (0..40).map(|_| run(1.0)).collect();
        let b: Vec<u64> = (0..40).map(|_| run(1.0)).collect();
        let c: Vec<u64> = (0..40).map(|_| run(1.02)).collect();
        let [a, b, c] = [a, b, c].map(|each| report(&each, &rows));
        let alike = compare(("a", &a), ("b", &b), true).verdict;
        alarms += i32::from(alike != Verdict::NoDifference);
        seen += i32::from(compare(("a", &a), ("c", &c), true).verdict == Verdict::Slower);
    }
    assert!(alarms <= 10, "{alarms} false alarms in 1000");
    assert!(seen >= 950, "{seen} of 1000 seen");
}

/// A machine whose runs are noisy: each run's own noise, with a long tail upwards, on top of a
/// slowly varying disturbance that neighbouring runs share.
struct Machine {
    random: Random,
    disturbance: f64,
}

impl Machine {
    fn run(&mut self, work_ns: f64) -> u64 {
        self.disturbance = 0.9 * self.disturbance + 0.02 * self.random.uniform();
        let middling = (0..4).map(|_| self.random.uniform()).sum::<f64>() - 2.0;
        let tail =
            if self.random.uniform() < 0.05 { -0.1 * self.random.uniform().ln() } else { 0.0 };
        let slower = 1.0 + self.disturbance + 0.015 * middling + tail;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a time")]
        let wall = (work_ns * slower) as u64;
        wall
    }

    /// Alternates runs until the factor is precise, as `compare` does without `-r`.
    fn compare(&mut self, factor: f64) -> (Comparison, usize) {
        let (mut a, mut b): (Vec<u64>, Vec<u64>) = (Vec::new(), Vec::new());
        loop {
            a.push(self.run(1e7));
            b.push(self.run(1e7 * factor));
            let walls = |each: &[u64]| each.iter().map(|ns| *ns as f64).collect::<Vec<_>>();
            let enough = a.len() >= FEWEST_PAIRS && is_precise(&walls(&a), &walls(&b));
            if enough || a.len() >= 1000 {
                break;
            }
        }
        let [x, y] = [&a, &b].map(|each| report(each, &[("net-work", each[0])]));
        (compare(("A", &x), ("B", &y), true), a.len())
    }
}

#[test]
fn a_thousand_pairs_of_the_same_program_raise_no_alarms() {
    let mut machine = Machine { random: Random::new(23), disturbance: 0.0 };
    let alarms =
        (0..1000).filter(|_| !matches!(machine.compare(1.0).0.verdict, Verdict::NoDifference));
    let alarms = alarms.count();
    assert!(alarms <= 10, "{alarms} of 1000");
}

#[test]
fn two_per_cent_are_found_at_the_number_of_runs_that_is_chosen() {
    let mut machine = Machine { random: Random::new(29), disturbance: 0.0 };
    let (mut found, mut rounds) = (0, 0);
    for _ in 0..300 {
        let (comparison, runs) = machine.compare(1.02);
        found += usize::from(comparison.verdict == Verdict::Slower);
        rounds += runs;
        assert!(comparison.verdict != Verdict::Faster, "{:?}", comparison.ratio);
    }
    assert!(found * 100 >= 300 * 95, "{found} of 300");
    assert!((20 * 300..200 * 300).contains(&rounds), "{} rounds on average", rounds / 300);
}

/// Functions with their work, the functions inlined into them, and their callees.
fn with_work(mut report: Report, work: &[(&str, u64, &str, &str)], high: f64) -> Report {
    let list = |text: &str| text.split_whitespace().map(str::to_owned).collect();
    let one = |(function, ns, inlined, calls): &(&str, u64, &str, &str)| FunctionWork {
        function: (*function).into(),
        ns: *ns,
        inlined: list(inlined),
        calls: list(calls),
    };
    report.work = work.iter().map(one).collect();
    if high > 0.0 {
        let class = "missed-inlining".into();
        report.findings = vec![Finding { class, high, ..Finding::default() }];
    }
    report
}

/// How much of the difference is the calls', and why, where `mix` is called in A and B has this work.
fn calls_share(b: &[(&str, u64, &str, &str)], high: f64) -> (i64, String) {
    let slow = report(&noisy(1_000, 20), &[("missed-inlining", 100), ("net-work", 900)]);
    let a = [("mix", 500, "", ""), ("round", 300, "", "mix"), ("state", 100, "", "")];
    let slow = with_work(slow, &a, high);
    let work: u64 = b.iter().map(|(_, ns, ..)| ns).sum();
    let fast = with_work(report(&noisy(work, 20), &[("net-work", work)]), b, 0.0);
    let found = compare(("slow", &slow), ("fast", &fast), true);
    let total: i64 = found.rows.iter().map(|row| row.difference_ns).sum();
    assert_eq!(total, found.difference_ns, "still the whole difference");
    let back = compare(("fast", &fast), ("slow", &slow), true);
    let calls = |found: &Comparison| {
        let row = found.rows.iter().find(|row| row.account == "missed-inlining").unwrap();
        (row.difference_ns, row.moved_for.clone())
    };
    assert_eq!(calls(&found).0, -calls(&back).0, "either way round");
    calls(&found)
}

#[test]
fn work_that_inlining_saves_is_counted_with_the_calls() {
    let inlined = [("round", 300, "mix", ""), ("state", 100, "", "")];
    assert_eq!(
        calls_share(&inlined, 0.7),
        (-600, "mix is called on one side and inlined on the other".into())
    );
    let renamed = [("rounds", 310, "turn", ""), ("state", 95, "", "")];
    let (ns, why) = calls_share(&renamed, 0.7);
    assert_eq!(
        (ns, why.as_str()),
        (-590, "mix is called on one side; on the other rounds has all inlined")
    );
}

#[test]
fn work_that_differs_for_another_reason_is_not_moved() {
    let refused = |b: &[(&str, u64, &str, &str)], high: f64| {
        assert_eq!(calls_share(b, high), (-100, String::new()), "{b:?} {high}");
    };
    let inlined = [("round", 300, "mix", ""), ("state", 100, "", "")];
    refused(&inlined, 0.5); // more than was promised
    refused(&inlined, 0.0); // and where nothing was
    refused(&[("mix", 100, "", ""), ("round", 200, "", ""), ("state", 100, "", "")], 0.7);
    refused(&[("round", 300, "", "mix"), ("state", 100, "", "")], 0.7); // still called
    refused(&[("round", 300, "mix", "")], 0.7); // other work is gone too
    refused(&[("round", 300, "mix", ""), ("state", 250, "", "")], 0.7); // or is more
    refused(&[("round", 200, "mix", ""), ("state", 100, "", ""), ("new", 100, "", "")], 0.7);
    refused(&[("other", 300, "", ""), ("state", 100, "", "")], 0.7); // nothing inlined there
    refused(&[("round", 850, "mix", ""), ("state", 100, "", "")], 0.7); // and it is not less
}

#[test]
fn few_runs_that_all_agree_are_unanimous_and_have_a_least_p() {
    let rows = [("net-work", 100)];
    let of = |each: &[u64]| report(each, &rows);
    let found = |a: &[u64], b: &[u64], paired| compare(("a", &of(a)), ("b", &of(b)), paired);
    let (slow, fast) = ([100, 110, 300, 105, 102], [50, 60, 200, 55, 52]);
    let pairs = found(&slow, &fast, true);
    assert!(pairs.unanimous && pairs.verdict == Verdict::CannotTell, "{pairs:?}");
    assert!(!found(&slow, &fast, false).unanimous, "200 is slower than 100");
    assert!(!found(&slow, &[50, 60, 200, 55, 103], true).unanimous);
    assert!(!found(&[100], &[50], true).unanimous);
    assert_eq!((smallest_p(5, true), smallest_p(3, false)), (2.0 / 32.0, 2.0 / 20.0));
    assert_eq!((smallest_p(8, true) < ALPHA, smallest_p(5, false) < ALPHA), (true, true));
}

#[test]
fn a_part_and_the_whole_are_said_to_be_unlike() {
    let whole = report(&noisy(2_000, 20), &[("net-work", 2_000)]);
    let inside = crate::report::Inside { function: "parse".into(), ..Default::default() };
    let part = Report { inside: Some(inside), ..report(&noisy(500, 20), &[("net-work", 500)]) };
    let unlike = |a: &Report, b: &Report| compare(("a", a), ("b", b), false).unlike;
    let said = [
        "a is about the whole command, and b about what is under parse: they do not do the same work",
    ];
    assert_eq!(unlike(&whole, &part), said);
    assert!(unlike(&part, &part).is_empty() && unlike(&whole, &whole).is_empty());
}
