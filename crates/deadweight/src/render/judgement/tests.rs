//! What people and GitHub read of judgements.

use super::*;
use expect_test::expect;

fn red() -> Judgement {
    let site = Site {
        function: "parse<T>".into(),
        file: "/w/src/parse.rs".into(),
        line: 41,
        count: 10,
        ..Site::default()
    };
    let change = Change {
        kind: Kind::Count,
        name: "allocations".into(),
        row: "allocation".into(),
        base: 500.0,
        head: 510.0,
        growth: 0.02,
        interval: [0.02, 0.02],
        limit: 0.005,
        state: State::Regressed,
        sites: vec![site],
        ..Change::default()
    };
    let time = Change {
        name: "wall".into(),
        base: 12.1e6,
        head: 12.2e6,
        growth: 0.008,
        interval: [-0.002, 0.018],
        limit: 0.02,
        ..Change::default()
    };
    Judgement {
        workload: "js|on".into(),
        state: State::Regressed,
        changes: vec![change, time],
        confirmed: true,
        precision: 0.004,
        ..Judgement::default()
    }
}

const PAGE: Page = Page { width: 100, colour: false, unicode: true };

#[test]
fn a_regression_is_one_sentence_its_numbers_its_line_and_what_to_do() {
    let ok = Judgement { workload: "other".into(), precision: 0.004, ..Judgement::default() };
    expect![[r#"
        WORSE  js|on: allocations grew by 2.0 %; a second measurement shows it too
            allocations           500 → 510               +2.0 %    limit 0.5 %, row allocation
              parse<T> at /w/src/parse.rs:41, 10 more
            To accept it, say why and until when in deadweight.toml:
              [[accepted]]
              workload = "js|on"
              count = "allocations"
              up-to = "3 %"
              reason = "..."
              until = 20YY-MM-DD
        ok  other: nothing grew beyond its limit; the time's growth is known to ± 0.4 %
    "#]]
    .assert_eq(&terminal(&[&red(), &ok], PAGE, "deadweight.toml"));
}

#[test]
fn an_improvement_is_reported_whatever_else_did_not_change() {
    let mut better = red();
    better.state = State::Improved;
    let [fewer, _] = better.changes.as_mut_slice() else { panic!("two changes") };
    (fewer.head, fewer.growth, fewer.state) = (400.0, -0.2, State::Improved);
    better.changes.reverse();
    let text = terminal(&[&better], PAGE, "deadweight.toml");
    assert!(text.starts_with("better  js|on: allocations fell by 20 %"), "{text}");
}

#[test]
fn github_gets_the_line_and_names_cannot_end_a_command() {
    let mut judgement = red();
    judgement.workload = "a,b:c\n::error::x".into();
    let text = annotations::commands(&[&judgement], "/w");
    assert_eq!(text.lines().count(), 1, "{text}");
    assert!(text.starts_with("::error file=src/parse.rs,line=41,title=a%2Cb%3Ac"), "{text}");
}

#[test]
fn a_comment_escapes_names_and_is_never_too_long() {
    let mut judgement = red();
    judgement.changes[0].sites[0].function = "<script>@root".into();
    let text = markdown::comment(&[&judgement], "deadweight.toml");
    assert!(text.starts_with(markdown::MARK) && text.contains("js\\|on"), "{text}");
    assert!(!text.contains("<script>") && !text.contains("@root"), "{text}");
    assert!(text.contains("| 🔴 | js\\|on | allocations | 500 → 510 | +2.0 % |"), "{text}");
    let many: Vec<Judgement> = (0..900).map(|_| judgement.clone()).collect();
    let text = markdown::comment(&many.iter().collect::<Vec<_>>(), "deadweight.toml");
    assert!(
        text.chars().count() < 60_000 && text.trim_end().ends_with("</details>"),
        "{}",
        text.len()
    );
}

/// Of two runs, the median of a count may be a half.
#[test]
fn large_counts_are_whole_and_stay_in_their_column() {
    let mut judgement = red();
    let change = &mut judgement.changes[0];
    (change.base, change.head, change.growth) = (72_672_605.0, 140_136_926.5, 0.93);
    assert_eq!(values(change), "72 672 605 → 140 136 927");
    let text = terminal(&[&judgement], PAGE, "deadweight.toml");
    assert!(text.contains("140 136 927 +93 %"), "{text}");
    let change = &mut judgement.changes[0];
    (change.base, change.head) = (1.5, 99.25);
    assert_eq!(values(change), "1.50 → 99.25");
}

#[test]
fn a_heading_without_a_verdict_says_why() {
    let unsure = |missing: &[&str]| Judgement {
        workload: "parse".into(),
        state: State::Inconclusive,
        precision: 0.1,
        missing: missing.iter().map(|name| (*name).to_owned()).collect(),
        ..Judgement::default()
    };
    let heading = |of: &Judgement| {
        markdown::comment(&[of], "deadweight.toml")
            .lines()
            .find(|line| line.contains("no verdict"))
            .unwrap_or_default()
            .to_owned()
    };
    assert!(heading(&unsure(&["Join"])).contains("the head printed no result of Join"));
    assert!(heading(&unsure(&[])).contains("the times vary too much"));
}
