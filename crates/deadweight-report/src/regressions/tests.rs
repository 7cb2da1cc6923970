//! Judgements on made-up measurements: each kind of change, and what must stay green.

use super::*;
use crate::report::{AllocationSite, Allocations, CleanRuns, Count, Interval, Row, TracedRuns};
use crate::stats::random::Random;

const TODAY: &str = "2026-11-26";

/// Twenty clean runs of about `ms`, and ten traced runs of rows that vary by 1 %.
fn side(random: &mut Random, ms: f64, rows: &[(&str, f64)]) -> Side {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "some milliseconds in ns"
    )]
    let mut noisy = |ms: f64, part: f64| {
        (ms * 1e6 * (1.0 + part * (random.number() as f64 / u64::MAX as f64 - 0.5))) as u64
    };
    let each: Vec<u64> = (0..20).map(|_| noisy(ms, 0.02)).collect();
    let median = crate::stats::median::summarise(&each).interval;
    let ledger = rows.iter().map(|(account, part)| {
        let each_ns: Vec<u64> = (0..10).map(|_| noisy(*part, 0.01)).collect();
        Row {
            account: (*account).into(),
            group: (*account).into(),
            ns: noisy(*part, 0.0),
            each_ns,
            ..Row::default()
        }
    });
    let report = Report {
        wall_ns: median.median,
        ledger: ledger.collect(),
        runs: crate::report::Runs {
            clean: CleanRuns { count: 20, wall_ns: median, each_ns: each, ..CleanRuns::default() },
            traced: TracedRuns { count: 10, ..TracedRuns::default() },
        },
        counts: vec![count("calls", 1000), count("calls/read", 900), count("page-faults", 400)],
        ..Report::default()
    };
    let cpu = report.runs.clean.each_ns.iter().map(|ns| *ns as f64).collect();
    Side { report, cpu, allocations: vec![[500, 64_000]; 2], ..Side::default() }
}

fn count(name: &str, value: u64) -> Count {
    Count { name: name.into(), value, low: value, high: value, exact: true }
}

const ROWS: [(&str, f64); 2] = [("net-work", 80.0), ("allocation", 20.0)];

fn measured(head: f64, rows: &[(&str, f64)]) -> Measurement {
    let mut random = Random::new(7);
    Measurement { base: side(&mut random, 100.0, &ROWS), head: side(&mut random, head, rows) }
}

fn judged(first: &Measurement, second: Option<&Measurement>) -> Judgement {
    let policy = Policy::default();
    let case = Case { workload: "w", policy: &policy, today: TODAY, layout: None };
    let judgement = judge(&case, first);
    match second {
        None => judgement,
        Some(second) => {
            assert!(judgement.is_suspect(), "{judgement:?}");
            judgement.confirmed_by(&case, second)
        }
    }
}

#[test]
fn the_same_is_green_and_five_percent_more_is_red_with_its_row() {
    let same = judged(&measured(100.0, &ROWS), None);
    assert_eq!(same.state, State::Unchanged, "{same:?}");
    let slow = measured(105.0, &[("net-work", 80.0), ("allocation", 25.0)]);
    let red = judged(&slow, Some(&slow));
    assert_eq!(
        (red.state, red.changes[0].row.as_str()),
        (State::Regressed, "allocation"),
        "{red:?}"
    );
    let chance = judged(&slow, Some(&measured(100.0, &ROWS)));
    assert_eq!(chance.state, State::Unchanged, "a second measurement must show it too: {chance:?}");
    assert!(chance.notes[0].contains("a second measurement does not show it"));
}

#[test]
fn a_second_growth_below_the_limit_counts_with_the_first() {
    let first = measured(104.0, &[("net-work", 80.0), ("allocation", 24.0)]);
    let small = measured(101.5, &[("net-work", 80.0), ("allocation", 21.5)]);
    let alone = judged(&small, None);
    assert_eq!(alone.state, State::Unchanged, "1.5 % are below the limit of 2 %: {alone:?}");
    assert_eq!(judged(&first, Some(&small)).state, State::Regressed, "2.75 % in the mean");
    let tiny = measured(102.2, &[("net-work", 80.0), ("allocation", 22.2)]);
    let less = judged(&tiny, Some(&small));
    assert_eq!(less.state, State::Unchanged, "1.85 % in the mean: {less:?}");
    let mut vague = small.clone();
    for (at, ns) in vague.head.report.runs.clean.each_ns.iter_mut().enumerate() {
        *ns = if at % 2 == 0 { *ns * 12 / 10 } else { *ns * 9 / 10 };
        vague.head.cpu[at] = *ns as f64;
    }
    let open = judged(&first, Some(&vague));
    assert_eq!(open.state, State::Inconclusive, "{open:?}");
    assert!(
        open.notes[0].contains("a second measurement is too imprecise to tell (+"),
        "{:?}",
        open.notes
    );
    let chance = judged(&first, Some(&measured(100.0, &ROWS)));
    assert_eq!(chance.state, State::Unchanged, "a second measurement must itself find a growth");
}

#[test]
fn one_more_of_a_steady_count_is_red_and_of_a_varying_one_is_not() {
    let mut more = measured(100.0, &ROWS);
    let site = |count| AllocationSite {
        function: "parse".into(),
        line: 4,
        count,
        ..AllocationSite::default()
    };
    more.head.allocations = vec![[510, 64_640]; 2];
    for (side, count) in [(&mut more.base, 100), (&mut more.head, 110)] {
        let allocations = Allocations { sites: vec![site(count)], ..Allocations::default() };
        side.report.allocations = Some(allocations);
    }
    let red = judged(&more, Some(&more));
    let change = &red.changes[0];
    assert_eq!(
        (change.name.as_str(), change.row.as_str(), change.state),
        ("allocations", "allocation", State::Regressed)
    );
    assert_eq!((change.sites[0].line, change.sites[0].count), (4, 10));
    let mut renamed = more.clone();
    renamed.head.allocations = renamed.base.allocations.clone();
    let renamed = judged(&renamed, None);
    let same = renamed.changes.iter().find(|change| change.name == "allocations").unwrap();
    assert!(same.sites.is_empty(), "as many as before: {same:?}");
    let mut varies = more.clone();
    varies.base.allocations = vec![[480, 61_000], [520, 66_000]];
    assert_eq!(judged(&varies, None).state, State::Unchanged);
    let mut sampled = more.clone();
    sampled.head.allocations.clear();
    assert_eq!(judged(&sampled, None).state, State::Unchanged, "a count of one side only");
}

#[test]
fn more_calls_are_explained_by_the_call_that_grew() {
    let mut more = measured(100.0, &ROWS);
    more.head.report.counts =
        vec![count("calls", 1100), count("calls/read", 1000), count("page-faults", 400)];
    let red = judged(&more, Some(&more));
    assert_eq!((red.state, red.changes[0].why.as_str()), (State::Regressed, "read: 100 more"));
    // Worth it: the program is faster by it.
    let mut worth = measured(90.0, &ROWS);
    worth.head.report.counts = more.head.report.counts.clone();
    assert_eq!(judged(&worth, None).state, State::Moved);
    assert_eq!(judged(&worth, Some(&worth)).state, State::Moved);
    // The time fell in one of two measurements: the count grew in both.
    assert_eq!(judged(&worth, Some(&more)).state, State::Regressed);
    assert_eq!(judged(&more, Some(&worth)).state, State::Regressed);
    let none = measured(90.0, &ROWS);
    assert_eq!(judged(&worth, Some(&none)).state, State::Improved);
    // Not by a time that may have fallen by chance.
    let mut chance = measured(97.7, &ROWS);
    let changes = judged(&chance, None).changes;
    let faster = changes.iter().find(|change| change.kind == Kind::Time).unwrap();
    assert!(faster.state == State::Improved && faster.interval[1] > -faster.limit, "{faster:?}");
    chance.head.report.counts = more.head.report.counts.clone();
    assert_eq!(judged(&chance, Some(&chance)).state, State::Regressed);
    let mut unsure = more.clone();
    unsure.head.report.counts[0].exact = false;
    assert_eq!(judged(&unsure, None).state, State::Unchanged, "some calls were not recorded");
}

#[test]
fn a_row_that_grew_as_another_shrank_moved() {
    let moved = measured(100.0, &[("net-work", 70.0), ("allocation", 30.0)]);
    let judgement = judged(&moved, None);
    assert_eq!(judgement.state, State::Moved, "{judgement:?}");
    assert_eq!(judgement.changes[0].why, "net work shrank as it grew");
    let policy = Policy::read("[limits.rows]\nallocation = '1 %'").unwrap();
    let case = Case { workload: "w", policy: &policy, today: TODAY, layout: None };
    let grown = measured(100.5, &[("net-work", 80.0), ("allocation", 22.0)]);
    assert_eq!(judge(&case, &grown).state, State::Regressed, "a limit of its own");
}

#[test]
fn a_noisy_measurement_and_layout_noise_do_not_accuse() {
    let mut noisy = measured(100.0, &ROWS);
    for (side, seed) in [(&mut noisy.base, 1), (&mut noisy.head, 2)] {
        let mut random = Random::new(seed);
        let each = &mut side.report.runs.clean.each_ns;
        each.iter_mut().for_each(|ns| *ns += *ns / 2 * (random.number() >> 63));
        let interval = crate::stats::median::summarise(each).interval;
        side.report.runs.clean.wall_ns = Interval { ..interval };
    }
    assert_eq!(judged(&noisy, None).state, State::Unchanged, "the CPU time is certain");
    noisy.base.cpu.clear();
    noisy.head.cpu.clear();
    assert_eq!(judged(&noisy, None).state, State::Inconclusive);
    let slow = measured(105.0, &ROWS);
    let policy = Policy::default();
    let case = Case { workload: "w", policy: &policy, today: TODAY, layout: Some(0.08) };
    assert_eq!(judge(&case, &slow).state, State::Unchanged);
}

#[test]
fn benchmarks_are_judged_by_what_they_print() {
    let bench = |unit: &str, values: &[f64]| Benchmark {
        name: "Join".into(),
        unit: unit.into(),
        values: values.to_vec(),
    };
    let mut random = Random::new(3);
    let mut around = |ns: f64| -> Vec<f64> {
        (0..12).map(|_| ns * (1.0 + 0.01 * (random.number() as f64 / u64::MAX as f64))).collect()
    };
    let mut both = measured(130.0, &ROWS);
    both.base.benchmarks = vec![bench("ns/op", &around(400.0)), bench("allocs/op", &[3.0; 12])];
    both.head.benchmarks = vec![bench("ns/op", &around(401.0)), bench("allocs/op", &[4.0; 12])];
    let red = judged(&both, Some(&both));
    let names: Vec<_> =
        red.changes.iter().filter(|c| c.state.is_red()).map(|c| c.name.as_str()).collect();
    assert_eq!(names, ["Join allocs/op"], "the whole time of a benchmark is not judged");
    assert_eq!(red.changes[0].row, "allocation");
    (both.base.operations, both.head.operations) = (Some(vec![9]), Some(vec![9]));
    let fixed = judged(&both, Some(&both));
    assert!(fixed.changes.iter().any(|c| c.name == "cpu" && c.state.is_red()), "{fixed:?}");
}

#[test]
fn a_growth_that_so_few_runs_cannot_show_is_unsure() {
    let few = |head: f64| {
        let mut few = measured(head, &ROWS);
        for side in [&mut few.base, &mut few.head] {
            side.report.runs.clean.each_ns.truncate(3);
            side.report.runs.clean.count = 3;
            side.cpu.truncate(3);
        }
        judged(&few, None)
    };
    let slow = few(200.0);
    assert!(slow.state == State::Inconclusive && slow.is_short_of_runs(), "{slow:?}");
    let same = few(100.0);
    assert!(!same.is_short_of_runs(), "{same:?}");
}

#[test]
fn a_benchmark_that_the_head_does_not_print_is_not_better() {
    let of =
        |name: &str| Benchmark { name: name.into(), unit: "ns/op".into(), values: vec![400.0; 20] };
    let mut less = measured(50.0, &ROWS);
    less.base.benchmarks = vec![of("A"), of("B")];
    less.head.benchmarks = vec![of("A")];
    let unsure = judged(&less, None);
    assert_eq!((unsure.state, &unsure.missing[..]), (State::Inconclusive, &["B".to_owned()][..]));
    less.head.benchmarks.clear();
    assert_eq!(judged(&less, None).state, State::Inconclusive, "a time that fell says nothing");
    less.base.benchmarks.clear();
    less.head.benchmarks = vec![of("A")];
    assert!(judged(&less, None).missing.is_empty(), "a new one");
}
