//! Raw events in, a sealed trace out: stacks unwound, images named, functions and lines resolved.
//!
//! The only crate that reads ELF and DWARF files. It draws no conclusions (`deadweight-core`) and records
//! nothing (`deadweight-record`). A *call* is a call of a function here; a
//! *call chain* is a function and its callers.
//!
//! A tour, each part using only those before it:
//!
//! | module | what it does |
//! |---|---|
//! | `host` | services that the caller provides: giving up privileges, asking how much memory is left |
//! | `frame` | one source-level frame |
//! | `elf` | the bytes of a file, its segments and sections, its separate debug files |
//! | `cfi` | call frame information: how to get from an address to its caller |
//! | `names` | symbol tables, Go's function table, demangling |
//! | `dwarf` | lines, inlined functions and types of values |
//! | `images` | which file each mapping is, opened while it is there |
//! | `unwind` | registers and stack of a task into a call chain |
//! | `resolve` | addresses of one file into frames, in one call |
//! | `code` | machine code of the functions that samples hit; where functions begin |
//! | `scan` | what the code of a whole binary shows before it runs |
//! | `memory_budget` | whether there is memory for more events |
//! | `symbolize` | the end of sealing: every address that was hit gets its frames |
//! | `sealer` | the [`Sink`](deadweight_trace::raw::Sink) that puts all of it together, and the trace file |

#![forbid(unsafe_code)]

mod cfi;
mod code;
mod dwarf;
mod elf;
mod frame;
mod host;
mod images;
mod memory_budget;
mod names;
mod resolve;
mod scan;
mod sealer;
mod symbolize;
mod unwind;

pub use cfi::unwind_rules;
pub use code::{Entries, called_names, referenced_addresses};
pub use dwarf::value_types;
pub use elf::Files;
pub use frame::Frame;
pub use host::Host;
pub use images::named_by_perf_map;
pub use resolve::{
    BinaryInfo, Detail, Resolved, is_build, missing_supplement, resolve, resolve_fetched,
};
pub use scan::{Binary, Scan, Site};
pub use sealer::Sealer;
