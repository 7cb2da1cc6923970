//! The tables as a reader sees them.

use super::*;
use crate::scan::difference::between;
use deadweight_code::scan::Pattern;
use deadweight_seal::{Frame, Scan, Site};
use expect_test::expect;

const PAGE: Page = Page { width: 80, colour: false, unicode: true };

fn found(path: &str, sites: &[(Pattern, u32, u32, &str, u32)]) -> Candidates {
    let site = |(pattern, depth, amount, function, line): &(Pattern, u32, u32, &str, u32)| Site {
        pattern: Some(*pattern),
        depth: *depth,
        amount: *amount,
        frames: vec![Frame {
            function: (*function).into(),
            file: "/src/app.c".into(),
            line: *line,
        }],
        callee: (*pattern == Pattern::SmallCall)
            .then(|| Frame { function: "get".into(), ..Frame::default() }),
        ..Site::default()
    };
    let sites = sites.iter().map(site).collect();
    let warnings = vec!["has 1 function of more than 256 KiB".into()];
    let scan = Scan { functions: 12, bytes: 4_000, sites, warnings, ..Scan::default() };
    Candidates::of(path, &scan, false)
}

/// A first line without indentation keeps the text's own from being trimmed.
fn framed(text: &str) -> String {
    format!("page:\n{text}")
}

#[test]
fn each_kind_has_its_best_places() {
    let copies = (1..8).map(|line| (Pattern::Copy, 0, 128 * line, "pass", line));
    let mut sites: Vec<_> = copies.collect();
    sites.push((Pattern::SmallCall, 2, 4, "rows", 90));
    sites.push((Pattern::Division, 1, 1, "a\u{1b}[31m", 91));
    let found = found("./app", &sites);
    expect![[r#"
        page:
          ./app: what the machine code shows; whether it costs anything, a run shows
          12 functions, 4 000 bytes of code · no source lines

          struct-copies  a value of 128 bytes or more is copied (7 places)
            loops
                0  copies 896 bytes  app.c:7  pass
                0  copies 768 bytes  app.c:6  pass
                0  copies 640 bytes  app.c:5  pass
                0  copies 512 bytes  app.c:4  pass
                0  copies 384 bytes  app.c:3  pass
            … and 2 more

          missed-inlining  a small function is called in a loop (1 place)
            loops
                2  calls get, 4 instructions  app.c:90  rows

          division  integers are divided by a variable in a loop (1 place)
            loops
                1  1 division  app.c:91  a\u{1b}[31m

          note: ./app has 1 function of more than 256 KiB
    "#]]
    .assert_eq(&framed(&candidates(&found, false, PAGE)));
    assert!(candidates(&found, true, PAGE).contains("app.c:1 "));
}

#[test]
fn a_difference_has_what_came_and_what_went() {
    let first =
        found("old", &[(Pattern::Copy, 0, 256, "pass", 1), (Pattern::Copy, 0, 256, "stay", 9)]);
    let second =
        found("new", &[(Pattern::Atomic, 2, 1, "count", 4), (Pattern::Copy, 0, 512, "stay", 8)]);
    let text = difference(&first, &second, &between(&first, &second), false, PAGE);
    expect![[r#"
        page:
          old → new: what the machine code shows; whether it costs anything, a run shows
          2 candidates → 2 candidates; 1 function with as many of a kind and depth in
            both

          came: 1
            loops
                2  atomics  0 → 1       count

          went: 1
            loops
                0  struct-copies  1 → 0       pass

          note: old has 1 function of more than 256 KiB
          note: new has 1 function of more than 256 KiB
    "#]]
    .assert_eq(&framed(&text));
}

#[test]
fn the_json_has_every_place() {
    let found = found("./app", &[(Pattern::SmallCall, 2, 4, "rows", 90)]);
    let value: serde_json::Value = serde_json::from_str(&json::candidates(&found)).unwrap();
    let candidate = &value["candidates"][0];
    assert_eq!(candidate["class"], "missed-inlining");
    assert_eq!([&candidate["line"], &candidate["loops"], &candidate["amount"]], [90, 2, 4]);
    assert_eq!(value["binary"]["code_bytes"], 4_000);
}
