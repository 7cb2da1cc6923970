//! Pages of stored reports: sums, escaping and sizes.

use super::*;
use deadweight_report::report::Report;

fn report(json: &str) -> Report {
    serde_json::from_str(json).unwrap()
}

fn page(report: &Report) -> String {
    render(report, Beside { explain: &|id| deadweight_core::cost::explain(id), picture: None })
}

fn all() -> [Report; 3] {
    [
        report(include_str!("../../../tests/reports/tiny-reads.json")),
        report(include_str!("../../../tests/reports/pipeline.json")),
        report(include_str!("../../../tests/reports/hostile.json")),
    ]
}

#[test]
fn the_rows_in_the_page_sum_to_the_wall_time() {
    for report in all() {
        let page = page(&report);
        let table = page.split("<table").nth(1).unwrap();
        let total: u64 = number(table.split("data-total=\"").nth(1).unwrap());
        let rows = table.split("</table>").next().unwrap().split("data-ns=\"").skip(1);
        assert_eq!(rows.map(number).sum::<u64>(), total);
        assert_eq!(total, report.wall_ns);
    }
}

fn number(text: &str) -> u64 {
    text.split('"').next().unwrap().parse().unwrap()
}

#[test]
fn foreign_text_is_text() {
    let bad =
        "</script><script>alert(1)</script>\"'><img src=x onerror=alert(1)>\u{202e}\u{1b}[31m";
    let mut report = all()[0].clone();
    report.command = vec![bad.to_owned()];
    report.subject.name = bad.to_owned();
    report.warnings = vec![bad.to_owned()];
    report.findings[0].title = bad.to_owned();
    report.findings[0].class = bad.to_owned();
    report.findings[0].sites[0].function = bad.repeat(60);
    report.findings[0].sites[0].file = String::new();
    report.ledger[0].group = bad.to_owned();
    report.ledger[0].account = bad.to_owned();
    let page = page(&report);
    assert_eq!(page.matches("<script").count(), 2, "only the page's own");
    assert!(!page.contains("<img") && !page.contains('\u{202e}') && !page.contains('\u{1b}'));
    let json = page.split("id=\"report\">").nth(1).unwrap().split("</script>").next().unwrap();
    assert_eq!(serde_json::from_str::<Report>(json).unwrap().warnings, report.warnings);
}

/// A name; browsers do not ask for it.
const NAMESPACE: &str = "http://www.w3.org/2000/svg";

#[test]
fn a_page_asks_for_nothing() {
    for report in all() {
        let page = page(&report).replace(NAMESPACE, "");
        for outside in ["http://", "https://", "@import", "url(h", "<link", " src="] {
            assert!(!page.contains(outside), "{outside}");
        }
    }
}

#[test]
fn an_empty_report_is_a_page_too() {
    assert!(page(&Report::default()).contains("No hidden cost was found"));
}

/// Findings with as many long names as there can be.
#[test]
fn a_page_of_long_names_stays_small() {
    let mut report = all()[0].clone();
    let long = "std::map<std::pair<a,b>>::".repeat(160);
    let finding = &mut report.findings[0];
    finding.sites[0].function = long.clone();
    finding.sites[0].chain = vec![long.clone(); 8];
    finding.sites = vec![finding.sites[0].clone(); 5];
    report.findings = vec![report.findings[0].clone(); 22];
    report.warnings = vec![long; 50];
    let page = page(&report);
    assert!(page.len() < 2_000_000, "{} bytes", page.len());
    assert!(page.contains("\"shortened\":true"));
}

/// The README's first picture, of the same report as its first text.
#[test]
fn the_picture_of_the_documentation_is_what_is_drawn() {
    let report = report(include_str!("../../../../../docs/example/count-bytes.json"));
    let drawn = crate::render::drawing::ledger::drawing(&report).alone();
    expect_test::expect_file!["../../../../../docs/example/count-bytes.svg"].assert_eq(&drawn);
}
