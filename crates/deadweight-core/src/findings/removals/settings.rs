//! Variables of the environment by which a runtime or library leaves a cost out: known for each language.
//!
//! They are no advice: a program without a collector may need all memory.

use crate::facts::processes::ProcessId;
use crate::inspect::Inspection;
use deadweight_report::report::{Change, HALF_OF_MEMORY, Removal};

/// Go's collector runs only when memory gets short.
const GO: &[(&str, &str)] = &[("GOGC", "off"), ("GOMEMLIMIT", HALF_OF_MEMORY)];
/// The Boehm collector, which Crystal uses.
const BOEHM: &[(&str, &str)] = &[("GC_DONT_GC", "1"), ("GC_MAXIMUM_HEAP_SIZE", HALF_OF_MEMORY)];
/// glibc maps no block by itself and gives no memory back.
const KEPT: &[(&str, &str)] = &[(
    "GLIBC_TUNABLES",
    "glibc.malloc.mmap_max=0:glibc.malloc.trim_threshold=1099511627776:glibc.malloc.top_pad=67108864",
)];
/// glibc asks for huge pages in its heap (since 2.35).
const HUGE: &[(&str, &str)] = &[("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1")];

/// No collections.
pub(super) fn collections(found: &Inspection<'_, '_>, process: ProcessId) -> Vec<Removal> {
    match language(found, process) {
        "Go" => vec![removal("the collections (GOGC=off)", GO)],
        "Crystal" => vec![removal("the collections (GC_DONT_GC=1)", BOEHM)],
        _ => Vec::new(),
    }
}

/// Memory that is kept and not given back.
pub(super) fn kept_memory(found: &Inspection<'_, '_>, process: ProcessId) -> Vec<Removal> {
    match language(found, process) {
        "C" | "C++" | "Rust" => {
            vec![removal("giving memory back (glibc.malloc.trim_threshold, mmap_max)", KEPT)]
        }
        _ => Vec::new(),
    }
}

/// Memory in huge pages: one fault where there were up to 512.
pub(super) fn huge_pages(found: &Inspection<'_, '_>, process: ProcessId) -> Vec<Removal> {
    match language(found, process) {
        "C" | "C++" | "Rust" => {
            vec![removal("most page faults (glibc.malloc.hugetlb=1)", HUGE)]
        }
        _ => Vec::new(),
    }
}

fn language<'f>(found: &Inspection<'f, '_>, process: ProcessId) -> &'f str {
    &found.facts.processes.get(process).language
}

fn removal(what: &str, variables: &[(&str, &str)]) -> Removal {
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    let variables = variables.iter().map(owned).collect();
    Removal { what: what.to_owned(), share: 1.0, change: Ok(Change::Environment(variables)) }
}
