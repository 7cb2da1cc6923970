//! Variables of the environment by which a runtime or library leaves a cost out: known for each language.
//!
//! They are no advice: with fewer collections a program needs more memory.

use crate::account::AccountId;
use crate::facts::call_site::heaviest;
use crate::facts::call_site::team_code::one_thread_by;
use crate::facts::processes::ProcessId;
use crate::inspect::{Inspection, Sum};
use deadweight_report::report::{Change, HALF_OF_MEMORY, Removal};

/// Go's collector runs a quarter as often, or when memory gets short. Without collections no memory is reused, and the
/// page faults of fresh memory cost more than they did: binary trees took 378 ms as they are, 318 with 400, 416 with `off`.
const GO: &[(&str, &str)] = &[("GOGC", "400"), ("GOMEMLIMIT", HALF_OF_MEMORY)];
/// The Boehm collector, which Crystal uses, lets the heap grow more before it collects (the default is 3). A hash with
/// a heap object took 141 ms as it is, 99 with 1, and 454 without collections (`GC_DONT_GC`).
const BOEHM: &[(&str, &str)] = &[("GC_FREE_SPACE_DIVISOR", "1")];
/// glibc maps no block by itself and gives no memory back.
const KEPT: &[(&str, &str)] = &[(
    "GLIBC_TUNABLES",
    "glibc.malloc.mmap_max=0:glibc.malloc.trim_threshold=1099511627776:glibc.malloc.top_pad=67108864",
)];
/// glibc asks for huge pages in its heap (since 2.35).
const HUGE: &[(&str, &str)] = &[("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1")];

/// Fewer collections.
pub(super) fn collections(found: &Inspection<'_, '_>, process: ProcessId) -> Vec<Removal> {
    match language(found, process) {
        "Go" => vec![removal("most collections (GOGC=400)", GO)],
        "Crystal" => vec![removal("many collections (GC_FREE_SPACE_DIVISOR=1)", BOEHM)],
        _ => Vec::new(),
    }
}

/// One thread does all work of a team.
pub(super) fn one_thread(found: &Inspection<'_, '_>, process: ProcessId) -> Vec<Removal> {
    let account = AccountId::of_class("parallel-overhead");
    let places = Sum::of(found.wall.of_process(account, process)).places;
    let variable = one_thread_by(found.facts.symbols(), heaviest(&places));
    variable
        .map(|name| removal(&format!("the other threads ({name}=1)"), &[(name, "1")]))
        .into_iter()
        .collect()
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

/// Memory in huge pages: one fault, and one entry in the CPU's table of places, where there were up to 512. `what` they
/// leave out.
pub(super) fn huge_pages(
    found: &Inspection<'_, '_>,
    process: ProcessId,
    what: &str,
) -> Vec<Removal> {
    match language(found, process) {
        "C" | "C++" | "Rust" => {
            vec![removal(&format!("{what} (glibc.malloc.hugetlb=1)"), HUGE)]
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
