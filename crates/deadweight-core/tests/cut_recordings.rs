//! A recording of a real program that was cut at any byte: it opens and can be weighed as far as it
//! goes, or is refused in one sentence.
#![expect(clippy::disallowed_methods, reason = "golden files are read by their test")]

use deadweight_core::trace::Trace;
use deadweight_core::{Weighing, weigh};
use std::path::Path;

#[test]
fn cut_at_every_byte_it_is_weighed_or_refused_in_one_sentence() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/background-ticker.dwt");
    let whole = std::fs::read(file).unwrap();
    assert!(whole.len() > 10_000);
    let mut weighed = None;
    for end in 0..whole.len() {
        let sentence = match Trace::from_bytes(&whole[..end]) {
            Err(error) => error.to_string(),
            // Weighing takes longer: only where more could be read than a byte before.
            Ok((trace, _)) if weighed == Some(trace.len()) => continue,
            Ok((trace, _)) => {
                weighed = Some(trace.len());
                let traces = std::slice::from_ref(&trace);
                match weigh(&Weighing { traces, clean: &[], of: None, inside: None }) {
                    Ok(report) => {
                        let rows: u64 = report.ledger.iter().map(|row| row.ns).sum();
                        assert_eq!(rows, report.wall_ns, "cut at {end}");
                        continue;
                    }
                    Err(error) => error.to_string(),
                }
            }
        };
        assert!(sentence.len() > 10 && !sentence.contains('\n'), "cut at {end}: {sentence}");
    }
    assert!(weighed.is_some_and(|events| events > 0));
}
