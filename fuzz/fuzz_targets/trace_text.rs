//! A trace as text: read, written in both forms, weighed. Not the file form: see `trace_bytes`.
#![no_main]

use deadweight_trace::Trace;
use deadweight_core::{Weighing, weigh};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let Ok(trace) = Trace::from_text(text) else { return };
    let written = trace.to_text();
    let again = Trace::from_text(&written).expect("own text can be read");
    assert_eq!(again.to_text(), written);
    if trace.is_empty() {
        return;
    }
    let (from_bytes, _) = Trace::from_bytes(&trace.to_bytes()).expect("own bytes can be read");
    assert!(from_bytes.events().eq(trace.events()));
    if let Ok(report) = weigh(&Weighing { traces: &[trace], ..Weighing::default() }) {
        let sum: u64 = report.ledger.iter().map(|row| row.ns).sum();
        assert_eq!(sum, report.wall_ns, "{written}");
    }
});
