//! A trace file, unchanged and with right checksums: read, written again, weighed. Not the text form: see `trace_text`.
#![no_main]

use deadweight_trace::Trace;
use deadweight_core::{Weighing, weigh};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    read(data);
    read(&framed(data));
});

/// A trace that can be read can be written in both forms and be weighed, and its rows add up.
fn read(bytes: &[u8]) {
    let Ok((trace, _)) = Trace::from_bytes(bytes) else { return };
    if trace.is_empty() {
        return;
    }
    let (again, _) = Trace::from_bytes(&trace.to_bytes()).expect("own bytes can be read");
    assert!(again.events().eq(trace.events()));
    let text = trace.to_text();
    let from_text = Trace::from_text(&text).expect("own text can be read");
    assert_eq!(from_text.len(), trace.len());
    if let Ok(report) = weigh(&Weighing { traces: &[trace], ..Weighing::default() }) {
        let sum: u64 = report.ledger.iter().map(|row| row.ns).sum();
        assert_eq!(sum, report.wall_ns, "{text}");
    }
}

/// The input as a sequence of blocks: kind, 16 bits of length, content.
fn framed(mut data: &[u8]) -> Vec<u8> {
    let mut out = b"\x89dwt\r\n\x1a\n\x01\x00".to_vec();
    while let Some((start, rest)) = data.split_at_checked(3) {
        let len = usize::from(u16::from_le_bytes([start[1], start[2]])).min(rest.len());
        let (content, rest) = rest.split_at(len);
        data = rest;
        let size = u32::try_from(len).expect("16 bits").to_le_bytes();
        let mut sum = crc32fast::Hasher::new();
        sum.update(&start[..1]);
        sum.update(&size);
        sum.update(content);
        out.extend_from_slice(b"\xf0dwb");
        out.push(start[0]);
        out.extend_from_slice(&size);
        out.extend_from_slice(&sum.finalize().to_le_bytes());
        out.extend_from_slice(content);
    }
    out
}
