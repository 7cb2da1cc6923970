//! Results of benchmark programs, as text and as JSON: any input is laid out as tables or refused. Not the statistics on them.
#![no_main]

use deadweight_report::benchmarks::table::{Layout, lay_out};
use deadweight_report::benchmarks::{go, json, speed};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    let read = [go::read(&text).ok(), json::read(&text, "name").ok().flatten()];
    for results in read.into_iter().flatten() {
        let sides = [("a".to_owned(), results.clone()), ("b".to_owned(), results)];
        if let Ok(tables) = lay_out(&sides, &Layout::default()) {
            let _ = speed::rank(&tables);
        }
    }
});
