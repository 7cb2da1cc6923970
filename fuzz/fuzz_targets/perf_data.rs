//! A file of `perf record`: imported, its events are passed on in order. Not the trace that is sealed of them.
#![no_main]

use deadweight_trace::Meta;
use deadweight_trace::raw::{RawEvent, Sink};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let Ok(import) = deadweight_import::import(data) {
        import.pass_to(&mut Nowhere);
    }
});

struct Nowhere;

impl Sink for Nowhere {
    fn event(&mut self, _: &RawEvent<'_>) {}
    fn finish(&mut self, _: Meta) {}
}
