//! Which runs make a point, in which order, and where a history changes.

use super::*;
use crate::change_points::events::Kind;

const COMMITS: [&str; 40] = {
    const LETTERS: &str = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    let mut commits = [""; 40];
    let mut at = 0;
    while at < 40 {
        commits[at] = LETTERS.split_at(at).1.split_at(1).0;
        at += 1;
    }
    commits
};

fn run(commit: &str, time: i64, ns: u64) -> Run<'_> {
    let ns = ns as f64;
    Run {
        commit,
        commit_time: time,
        time,
        machine: "m",
        method: 1,
        ns,
        clean_runs: 10,
        interval: (ns - 10.0, ns + 10.0),
        ..Run::default()
    }
}

/// Values around `ns` that a generator with a seed makes, of a deviation of 1 %.
fn noisy(seed: &mut u64, ns: f64) -> u64 {
    let mut sum = 0.0;
    for _ in 0..12 {
        *seed =
            seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        sum += (*seed >> 11) as f64 / (1_u64 << 53) as f64 - 0.5;
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small time")]
    let ns = (ns * (1.0 + 0.01 * sum)) as u64;
    ns
}

/// 40 commits; from the 20th on, the row `allocation` takes 5 % of the total more.
fn planted(seed: u64) -> Vec<Run<'static>> {
    let mut seed = seed;
    let run = |(at, commit): (i64, &'static &'static str)| {
        let more = if at < 20 { 0.0 } else { 50_000.0 };
        let work = noisy(&mut seed, 800_000.0);
        let allocation = noisy(&mut seed, 200_000.0 + more);
        let rows = vec![("net-work", work), ("allocation", allocation), ("observer", 70_000)];
        Run { rows, ..run(commit, 1000 + at, work + allocation) }
    };
    (0..).zip(&COMMITS).map(run).collect()
}

fn commits(history: &History) -> Vec<&str> {
    history.points.iter().map(|point| point.commit.as_str()).collect()
}

#[test]
fn a_commits_runs_are_pooled_by_all_of_their_times() {
    let one = Run { clean_each: "[100, 101, 102]", ..run("a", 5, 101) };
    let two = Run { time: 9, clean_each: "[200, 201, 202, 203]", ..run("a", 5, 201) };
    let found = history("w", &[one.clone(), two.clone()], 1).unwrap();
    let point = &found.points[0];
    assert_eq!((point.runs, point.clean_runs, point.ns), (2, 20, 200.0));
    assert_eq!((point.low_ns, point.high_ns, point.measured), (100.0, 203.0, 9));
    // A benchmark of a third of a nanosecond.
    let small = Run { clean_each: "[0.31, 0.33, 0.37]", ns: 0.33, ..run("a", 5, 100) };
    let pooled = history("w", &[small.clone(), small], 1).unwrap();
    assert_eq!((pooled.points[0].ns, pooled.points[0].low_ns), (0.33, 0.31));
    // A list that is missing: the median of their medians.
    let found = history("w", &[one.clone(), Run { clean_each: "", ..two }], 1).unwrap();
    assert_eq!(
        (found.points[0].ns, found.points[0].low_ns, found.points[0].high_ns),
        (151.0, 91.0, 211.0)
    );
    // A traced run beside clean ones has no say about the time, but about the rows.
    let rows = vec![("net-work", 30), ("observer", 50), ("exit", 10)];
    let traced = Run { clean_runs: 0, rows, ..run("a", 5, 999) };
    let found = history("w", &[one, traced], 1).unwrap();
    assert_eq!((found.points[0].ns, found.points[0].clean_runs), (101.0, 10));
    assert_eq!(found.points[0].rows_ns, [76, 25]);
    assert_eq!(found.account("net work"), Some("net-work"));
}

#[test]
fn commits_are_in_order_of_their_times_and_unknown_ones_where_they_were_measured() {
    let later = Run { time: 2, ..run("b", 30, 100) };
    let unknown = Run { commit_time: 0, time: 20, ..run("", 0, 100) };
    // The commit's time is known from one of its runs.
    let bare = Run { commit_time: 0, time: 99, ..run("a", 0, 100) };
    let runs = [later, bare, run("c", 40, 100), unknown.clone(), unknown, run("a", 10, 100)];
    let found = history("w", &runs, 1).unwrap();
    assert_eq!(commits(&found), ["a", "", "", "b", "c"]);
    assert_eq!((found.points[0].runs, found.points[0].moment), (2, 10));
    // Of one second: as git has them, and without git as they were measured.
    let of = |commit, place, time| Run { place, time, ..run(commit, 50, 100) };
    let found = history("w", &[of("x", 2, 60), of("y", 1, 70), of("z", 3, 50)], 1).unwrap();
    assert_eq!(commits(&found), ["y", "x", "z"]);
    let found = history("w", &[of("x", 0, 60), of("y", 0, 70), of("z", 0, 50)], 1).unwrap();
    assert_eq!(commits(&found), ["z", "x", "y"]);
}

#[test]
fn a_changed_source_counts_only_where_there_is_no_other() {
    let dirty = |commit, ns| Run { dirty: true, ..run(commit, 7, ns) };
    let found = history("w", &[dirty("a", 500), run("a", 7, 100), dirty("b", 500)], 1).unwrap();
    let [a, b] = &found.points[..] else { panic!("{found:?}") };
    assert_eq!((a.ns, a.dirty, a.runs), (100.0, false, 1));
    assert_eq!(a.dirty_runs.iter().map(|run| run.ns).collect::<Vec<_>>(), [500.0]);
    assert_eq!((b.ns, b.dirty, b.dirty_runs.len()), (500.0, true, 0));
}

#[test]
fn each_machine_has_a_history_of_its_own() {
    // Alternating, the other one 40 % slower and never newer.
    let runs: Vec<Run<'_>> = planted(3)
        .into_iter()
        .flat_map(|run| {
            let other = Run { machine: "n", ns: run.ns * 1.4, time: run.time - 1, ..run.clone() };
            [run, other]
        })
        .collect();
    let found = history("w", &runs, 1).unwrap();
    let names: Vec<&str> = found.machines.iter().map(|m| m.fingerprint.as_str()).collect();
    assert_eq!((names, found.machines[1].runs), (vec!["m", "n"], 40));
    assert_eq!((found.points.len(), found.events.len(), found.new_series.len()), (40, 1, 0));
    assert_eq!(history("w", &runs, 2).unwrap().events[0].commit, COMMITS[20]);
    assert_eq!((history("w", &runs, 3), history("w", &runs, 0)), (None, None));
}

#[test]
fn a_planted_change_of_a_row_is_found_at_its_commit() {
    for seed in [1, 2, 3, 4, 5] {
        let found = history("w", &planted(seed), 1).unwrap();
        let [change] = &found.events[..] else { panic!("{seed}: {:?}", found.events) };
        assert_eq!((change.commit.as_str(), &change.event.kind), (COMMITS[20], &Kind::Slower));
        assert_eq!(change.event.reason.as_ref().unwrap().row, "allocation");
        assert_eq!(change.last_before, COMMITS[change.event.earliest - 1]);
        let total = change.event.total.unwrap();
        assert!((total.relative_change() - 0.05).abs() < 0.01, "{total:?}");
        let later = found.clone().since(10);
        assert_eq!((later.events[0].event.index, later.points.len()), (10, 30));
        assert_eq!(later.events[0].event.rows[0].point.index, 10);
        assert!(found.since(21).events.is_empty());
    }
}

#[test]
fn a_new_method_begins_a_series_and_one_run_of_it_cuts_none() {
    let mut runs = planted(7);
    runs[20..].iter_mut().for_each(|run| run.method = 2);
    let found = history("w", &runs, 1).unwrap();
    assert_eq!(found.new_series, [NewSeries { index: 20, method: 2 }]);
    assert!(found.events.is_empty(), "{:?}", found.events);
    assert_eq!((found.previous(20), found.previous(21)), (None, found.points.get(20)));
    // The commit before the change is measured again with the newer one.
    let mut runs = planted(7);
    runs.push(Run { method: 2, time: 5000, ..runs[10].clone() });
    let found = history("w", &runs, 1).unwrap();
    assert_eq!((found.points[10].method, found.points[10].other_method_runs), (2, 1));
    assert_eq!((found.events.len(), found.events[0].commit.as_str()), (1, COMMITS[20]));
    assert_eq!(found.previous(11), found.points.get(9));
}

#[test]
fn the_end_of_a_very_long_history_is_searched() {
    let commits: Vec<String> = (0..SEARCHED + 1000).map(|i| format!("c{i}")).collect();
    // A change before the part that is searched, and one in it.
    let level = |i| match i {
        0..500 => 100_000,
        500..SEARCHED => 120_000,
        _ => 150_000,
    };
    let run =
        |(i, commit): (usize, &'_ String)| level(i) + i as u64 % 7 * 100 + commit.len() as u64;
    let ns: Vec<u64> = commits.iter().enumerate().map(run).collect();
    let runs: Vec<Run<'_>> =
        (1..).zip(commits.iter().zip(&ns)).map(|(at, (c, ns))| self::run(c, at, *ns)).collect();
    let found = history("w", &runs, 1).unwrap();
    let indices: Vec<usize> = found.events.iter().map(|change| change.event.index).collect();
    assert_eq!((indices, found.points.len()), (vec![SEARCHED], SEARCHED + 1000));
}

#[test]
fn odd_histories_have_no_events() {
    assert_eq!(history("w", &[], 1), None);
    let found = history("w", &[Run::default(), Run::default()], 1).unwrap();
    assert_eq!((found.points.len(), found.events.len()), (2, 0));
    let huge = Run { rows: vec![("gc", u64::MAX)], ..run("a", i64::MAX, u64::MAX - 10) };
    assert!(history("w", &[huge], 1).unwrap().points[0].rows_ns[0] > 0);
}
