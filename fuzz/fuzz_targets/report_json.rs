//! A report as JSON, as `compare` and `gate` read it: any input is compared, tested and rendered, or refused. Not how reports are made.
#![no_main]

use deadweight::render::page::Page;
use deadweight::render::{comparison, json, terminal};
use deadweight_report::compare::compare;
use deadweight_report::gate::{Condition, Reports};
use deadweight_report::report::Report;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let Ok(report) = Report::from_json(text) else { return };
    let written = json::render(&report).expect("what was read can be written");
    let again = Report::from_json(&written).expect("own JSON can be read");
    assert_eq!(again.ledger.len(), report.ledger.len());
    let page = Page { width: 80, colour: false, unicode: true };
    let shown = terminal::Shown { cpu: true, top: 5, here: String::new(), verbose: true };
    let _ = terminal::render(&report, &shown, page);
    for paired in [false, true] {
        let found = compare(("a", &report), ("b", &again), paired);
        let _ = comparison::render(&[found], page, comparison::Shown::default());
    }
    let reports: Reports<'_> = [("a", &report)].into_iter().collect();
    for asked in ["a.wall > 1 ms", "tiny-reads > 60%", "net-work < 5%"] {
        if let Ok(condition) = asked.parse::<Condition>() {
            let _ = condition.evaluate(&reports);
        }
    }
});
