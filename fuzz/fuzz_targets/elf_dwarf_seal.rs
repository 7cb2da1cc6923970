//! ELF and DWARF readers of sealing and of `scan`: with any bytes as a binary, all addresses get an answer. Not the
//! recording of a binary.
#![no_main]

use deadweight_seal::{Binary, Detail, Files, called_names, resolve, unwind_rules, value_types};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let addresses = [0, 1, 0x1000, 0x1139, 0x40_1000, u64::MAX];
    let resolved = resolve(Files::of(data), &addresses, Detail::Lines);
    assert_eq!(resolved.frames.len(), addresses.len());
    let _ = unwind_rules(data, &addresses);
    let _ = called_names(data, &addresses.map(|at| (at, 200)));
    let _ = value_types(Files::of(data), &addresses);
    let _ = Binary::from_bytes(data.to_vec()).and_then(|binary| binary.scan());
});
