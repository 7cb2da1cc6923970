//! What a history says, on terminals of two kinds.

use super::*;
use crate::render::page::columns;
use deadweight_report::history::{Run, history};

fn commits(count: u32) -> Vec<String> {
    let name = |i: u32| format!("{:08x}{i:032x}", (i + 1).wrapping_mul(0x9e37_79b1));
    (0..count).map(name).collect()
}

/// 24 commits of one day each; from the 13th on, `allocation` takes `more` ns, of which `less` come from `net-work`.
fn planted(commits: &[String], more: u64, less: u64) -> History {
    let run = |(i, commit)| {
        let (i, noise): (u64, u64) = (i, i * 7 % 5);
        let (more, less) = if i < 12 { (0, 0) } else { (more, less) };
        let rows = vec![
            ("net-work", 800_000 - less + noise * 300),
            ("allocation", 150_000 + more + noise * 90),
        ];
        let ns: u64 = rows.iter().map(|(_, ns)| ns).sum();
        let time = 1_790_000_000 + i64::try_from(i).unwrap() * 86_400;
        Run {
            commit,
            commit_time: time,
            time,
            machine: "x86_64 | AMD EPYC | CPUs 2",
            method: 3,
            ns: ns as f64,
            clean_runs: 10,
            interval: ((ns - 2000) as f64, (ns + 2000) as f64),
            rows,
            ..Run::default()
        }
    };
    let runs: Vec<Run<'_>> = (0..).zip(commits.iter().map(String::as_str)).map(run).collect();
    history("sort big.txt", &runs, 1).unwrap()
}

const PAGE: Page = Page { width: 80, colour: false, unicode: true };

#[test]
fn a_slowdown_is_said_with_its_row() {
    let names = commits(24);
    let found = planted(&names, 50_000, 0);
    let text = render(&found, Shown { last: 4, ..Shown::default() }, PAGE);
    let said: Vec<&str> = text.lines().collect();
    assert_eq!(said[0], "sort big.txt: 24 commits in 24 runs, 2026-09-21 to 2026-10-14");
    assert_eq!(
        said[3], "total                 ▁▁▁▁▁▁▁▁▁▁▁▁████████████  950 µs to 1.00 ms",
        "{text}"
    );
    assert!(text.contains("20 commits earlier: --last N"), "{text}");
    let event = text.split("\nat ").nth(1).unwrap();
    assert_eq!(
        event.split_whitespace().collect::<Vec<_>>().join(" ").split(" to find").next().unwrap(),
        format!(
            "{} (2026-10-03): 5.3 % slower, mostly allocation (+50.0 µs of +50.1 µs)",
            &names[12][..10]
        )
    );
    let all = render(&found, Shown::default(), PAGE);
    assert!(all.contains("+5.3 %  ← 5.3 % slower"), "{all}");
    let ascii = render(&found, Shown::default(), Page { unicode: false, ..PAGE });
    assert!(ascii.is_ascii() && ascii.contains("_#") && !ascii.contains('?'), "{ascii}");
    let row = render(&found, Shown { row: Some("allocation"), last: 0 }, PAGE);
    assert!(
        row.contains("150 µs") && row.contains("← +50.0 µs") && !row.contains("total  "),
        "{row}"
    );
}

#[test]
fn time_that_moved_and_rows_alone_are_no_slowdown() {
    let names = commits(24);
    let found = planted(&names, 50_000, 50_000);
    let text = sentence(&found.events[0]);
    assert_eq!(text, "moved: 50.0 µs from net work to allocation; the total shows no change");
    let found = planted(&names, 6_000, 0);
    let text = sentence(&found.events[0]);
    assert_eq!(text, "allocation +4.0 % (+6.02 µs); the total shows no change");
    let all = render(&found, Shown::default(), PAGE);
    assert!(!all.contains("--bisect"), "{all}");
}

#[test]
fn few_commits_and_odd_points_are_said() {
    let names = commits(4);
    let mut found = planted(&names, 0, 0);
    found.points[3].dirty = true;
    found.points[2].dirty_runs = vec![Dirty { ns: 990_000.0, clean_runs: 0, ..Dirty::default() }];
    found.points[1].rows_ns.clear();
    let text = render(&found, Shown::default(), PAGE);
    assert!(text.contains("too few commits to find changes: 4 where 6 are needed"), "{text}");
    assert!(text.contains("+: 990 µs traced, not counted"), "{text}");
    assert!(text.contains("+  ") && text.contains("changes that are in no commit"), "{text}");
    let row = render(&found, Shown { row: Some("net-work"), last: 0 }, PAGE);
    assert!(row.contains("no ledger"), "{row}");
}

#[test]
fn a_list_names_each_workload_once() {
    let names = commits(24);
    let of = |count, more| planted(&names[..count], more, 0).summary();
    let workloads = [of(24, 50_000), of(8, 0), of(4, 0)];
    let text = list(&workloads, PAGE);
    let said: Vec<&str> = text.lines().collect();
    assert!(
        said[0].starts_with("sort big.txt  24 runs  ") && said[0].ends_with("1 change"),
        "{text}"
    );
    assert!(said[2].ends_with("too few"), "{text}");
    assert!(
        said[1].ends_with("no change") && said.iter().all(|line| columns(line) <= 80),
        "{text}"
    );
}

#[test]
fn names_in_a_page_are_text() {
    let names = commits(24);
    let mut found = planted(&names, 50_000, 0);
    let bad = "</script><script>alert(1)</script>\u{1b}[31m";
    for text in [&mut found.workload, &mut found.points[1].commit, &mut found.rows[0].name] {
        *text = bad.into();
    }
    found.machines[0].fingerprint = bad.into();
    found.events[0].event.rows[0].row = bad.into();
    let page = crate::render::html::history::render(&found);
    assert!(!page.contains("<script>alert") && !page.contains('\u{1b}'), "{page}");
    assert_eq!(page.matches("<tr data-ns").count(), 24);
    let text = render(&found, Shown::default(), PAGE);
    assert!(text.contains("\\u{1b}") && !text.contains('\u{1b}'), "{text}");
}
