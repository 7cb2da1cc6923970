//! A recording of a real program, cut at every byte: it opens and can be weighed as far as it goes, or is
//! refused in one sentence. The same for its text, and for a report as JSON.
#![expect(clippy::disallowed_methods, reason = "golden files are read by their test")]

use deadweight_core::{Weighing, weigh};
use deadweight_report::report::Report;
use deadweight_trace::Trace;
use deadweight_trace::units::Ns;
use std::path::Path;

/// A recording of some kB.
fn recording() -> Vec<u8> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/background-ticker.dwt");
    std::fs::read(file).expect("it is in the repository")
}

/// Its report, or why there is none; the rows of a report add up.
fn weighed(trace: &Trace) -> Result<Report, String> {
    let traces = std::slice::from_ref(trace);
    let report = weigh(&Weighing { traces, ..Weighing::default() });
    let report = report.map_err(|error| error.to_string())?;
    let rows: u64 = report.ledger.iter().map(|row| row.ns).sum();
    assert_eq!(rows, report.wall_ns);
    Ok(report)
}

/// Cuts at every byte. Returns how many different results opened, and the size of the last. `read` gives
/// the size of what it read, or the sentence of refusal.
fn cut_everywhere<T>(
    whole: &[u8],
    read: impl Fn(&[u8]) -> Result<(usize, T), String>,
    use_it: impl Fn(T) -> Result<(), String>,
) -> (usize, usize) {
    let (mut latest, mut different) = (None, 0);
    for end in 0..whole.len() {
        let said = match read(&whole[..end]) {
            // Weighing takes longer: only where more could be read than a byte before.
            Ok((size, _)) if latest == Some(size) => continue,
            Ok((size, value)) => {
                (latest, different) = (Some(size), different + 1);
                use_it(value)
            }
            Err(sentence) => Err(sentence),
        };
        if let Err(sentence) = said {
            let one = sentence.len() > 10 && !sentence.contains('\n');
            assert!(one, "cut at {end}: {sentence}");
        }
    }
    (different, latest.unwrap_or(0))
}

#[test]
fn a_recording_is_weighed_or_refused_in_one_sentence() {
    let whole = recording();
    assert!(whole.len() > 10_000);
    let read = |bytes: &[u8]| match Trace::from_bytes(bytes) {
        Ok((trace, _)) => Ok((trace.len(), trace)),
        Err(error) => Err(error.to_string()),
    };
    let (_, events) = cut_everywhere(&whole, read, |trace| weighed(&trace).map(drop));
    assert!(events > 0);
}

#[test]
fn its_text_is_weighed_or_refused_in_one_sentence() {
    let (trace, _) = Trace::from_bytes(&recording()).unwrap();
    let mut text = String::new();
    for ms in 1.. {
        text = trace.cut(Ns(0), Ns(ms * 100_000)).to_text();
        if text.len() > 10_000 {
            break;
        }
    }
    let read = |bytes: &[u8]| match std::str::from_utf8(bytes) {
        // Not text, as the command says.
        Err(error) => Err(error.to_string()),
        Ok(text) => {
            let trace = Trace::from_text(text).map_err(|error| error.to_string())?;
            Ok((trace.len(), trace))
        }
    };
    let whole = &text.as_bytes()[..text.len().min(12_000)];
    let (different, _) = cut_everywhere(whole, read, |trace| weighed(&trace).map(drop));
    assert!(different > 20, "{different}");
}

#[test]
fn a_report_as_json_is_read_whole_or_refused_in_one_sentence() {
    let (trace, _) = Trace::from_bytes(&recording()).unwrap();
    let mut report = weighed(&trace).unwrap();
    let mut whole = serde_json::to_string_pretty(&report).unwrap();
    while whole.len() < 10_000 {
        report.warnings.push("something that could not be had, said in a sentence".into());
        whole = serde_json::to_string_pretty(&report).unwrap();
    }
    let again = Report::from_json(&whole).unwrap();
    assert_eq!(serde_json::to_string_pretty(&again).unwrap(), whole);
    let read = |bytes: &[u8]| {
        let text = std::str::from_utf8(bytes).map_err(|error| error.to_string())?;
        Report::from_json(text).map(|report| (1, report))
    };
    assert_eq!(cut_everywhere(whole.as_bytes(), read, |_| Ok(())), (0, 0), "no part is a report");
    for (of, becomes) in [("\"schema\": 1", "\"schema\": 7"), ("\"wall_ns\": ", "\"wall_ns\": 1")] {
        let changed = whole.replacen(of, becomes, 1);
        assert!(Report::from_json(&changed).is_err_and(|said| said.len() > 10), "{becomes}");
    }
}
