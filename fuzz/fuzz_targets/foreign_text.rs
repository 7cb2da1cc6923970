//! Text files of the kernel and of cgroups, and programs' lists of generated code (perf maps). Not the trace's text form.
#![no_main]

use deadweight_seal::named_by_perf_map;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let addresses = [0, 0x18, 0x1000, 0x1040, 0x107f, 0x40_1000, u64::MAX - 1, u64::MAX];
    assert!(named_by_perf_map(data, &addresses) <= addresses.len());
    let _ = deadweight_record::read_as_any(&String::from_utf8_lossy(data));
});
