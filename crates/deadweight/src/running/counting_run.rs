//! The counting run: counts calls of the function of `--in`, allocations, and exceptions.
//!
//! It comes after all other runs, and only if the command may be repeated, because a probe slows down what it counts.
//! The other runs show what to count: where samples hit the function, and which allocators the program has. Does not
//! interpret the counts; see `deadweight_core::counts`.

use super::series::RunResults;
use deadweight_core::counts::{self, Counted, ProbeKind, asks_for_memory, throws};
use deadweight_core::runners;
use deadweight_core::{CleanRun, Weighing, weigh};
use deadweight_record::{Argument, Count};
use deadweight_report::report::Report;
use deadweight_seal::Entries;
use deadweight_trace::Trace;
use deadweight_trace::symbols::Symbols;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Counting lasts twice the command's own time, within these limits.
const COUNTING: (Duration, Duration) = (Duration::from_secs(3), Duration::from_secs(10));
/// The most copies of one function that are counted; a generic function may have thousands.
const MOST_COPIES: usize = 64;

/// What a counting run counts, and its result.
#[derive(Debug, Default)]
pub struct CountingRun {
    of: Option<String>,
    inside: Option<String>,
    /// Whether allocations are counted even if no finding needs it.
    always: bool,
    /// Why the function of `inside` cannot be counted.
    uncounted: String,
    function: bool,
    allocators: bool,
    trace: Option<Trace>,
}

impl CountingRun {
    /// How long to count: not ten times as long as a short command takes, unless the user asked for its calls.
    pub(super) fn counting_time(&self, clean: &[CleanRun]) -> Duration {
        if self.inside.is_some() {
            return COUNTING.1;
        }
        let longest = clean.iter().map(|run| run.wall.0).max().unwrap_or(0);
        Duration::from_nanos(longest.saturating_mul(2)).clamp(COUNTING.0, COUNTING.1)
    }

    /// For this process and this function, as in [`Weighing`].
    #[must_use]
    pub fn new(of: Option<String>, inside: Option<String>) -> Self {
        Self { of, inside, ..Self::default() }
    }

    /// For the command itself, and its allocations only, whatever was found.
    #[must_use]
    pub fn of_allocations() -> Self {
        Self { always: true, ..Self::default() }
    }

    /// Where to place counting probes, from the other runs; none if no finding and no option needs counts.
    pub(super) fn probes(&mut self, ran: &RunResults) -> Vec<Count> {
        let Some(trace) = ran.traces.first() else { return Vec::new() };
        self.of = self.of.take().or_else(|| runners::built(trace).map(|built| built.of));
        let (of, inside) = (self.of.as_deref(), self.inside.as_deref());
        let weighing = Weighing {
            traces: &ran.traces[..1],
            clean: &ran.clean,
            of,
            inside,
            ..Weighing::default()
        };
        // The error is reported when all runs are weighed.
        let Ok(report) = weigh(&weighing) else { return Vec::new() };
        let mut probes = Vec::new();
        if let Some(name) = inside {
            match copies(&trace.symbols, name) {
                Ok(copies) => probes.extend(copies),
                Err(reason) => self.uncounted = reason,
            }
            self.function = !probes.is_empty();
        }
        let allocates = self.always || report.findings.iter().any(asks_for_memory);
        if self.function || allocates {
            let before = probes.len();
            probes.extend(allocators(&trace.symbols));
            self.allocators = probes.len() > before;
        }
        if report.findings.iter().any(throws) {
            probes.extend(throwers(&trace.symbols));
        }
        probes
    }

    /// Takes the result of the run.
    pub(super) fn finish(&mut self, run: Result<Trace, String>) {
        match run {
            Ok(trace) => self.trace = Some(trace),
            Err(reason) => self.uncounted = reason,
        }
    }

    /// Adds the counts to the report, or the reason why there are none.
    pub fn add_to_report(&self, report: &mut Report) {
        if let Some(trace) = &self.trace {
            let (of, allocators) = (self.of.as_deref(), self.allocators);
            counts::add_to(report, &Counted { trace, of, allocators, function: self.function });
        }
        if let Some(inside) = report.inside.as_mut().filter(|inside| inside.calls.is_none())
            && inside.uncounted.is_empty()
        {
            inside.uncounted.clone_from(&self.uncounted);
        }
    }
}

/// The copies of a function that samples hit and that can be called, or the reason why there is none.
fn copies(symbols: &Symbols, name: &str) -> Result<Vec<Count>, String> {
    let copies = counts::copies(symbols, name);
    let mut addresses: BTreeMap<_, Vec<u64>> = BTreeMap::new();
    for (image, address) in copies.own {
        addresses.entry(image).or_default().push(address.0);
    }
    let mut found = Vec::new();
    for (image, addresses) in addresses {
        let Some(image) = symbols.images.get(image.index()) else { continue };
        let path = Path::new(symbols.name(image.path));
        let Some(entries) = Entries::open(path, symbols.name(image.build_id)) else { continue };
        found.extend(entries.holding(&addresses).into_iter().map(|file_offset| Count {
            mark: ProbeKind::Call,
            path: path.to_owned(),
            file_offset,
            factors: Vec::new(),
            unless_zero: None,
        }));
    }
    match found.len() {
        0 if copies.inlined => Err(format!(
            "calls of {name} cannot be counted: it was inlined wherever samples hit it"
        )),
        0 => Err(format!(
            "calls of {name} cannot be counted: its start is not known (no symbol, or its file \
             was replaced)"
        )),
        1..=MOST_COPIES => Ok(found),
        many => Err(format!("calls of {name} are not counted: it has {many} copies")),
    }
}

/// An allocator's function: its name, the arguments whose product is the size, and an argument that must not be 0.
type Allocator = (&'static str, &'static [Argument], Option<Argument>);

/// Functions that allocate memory and do not call one another, by linker names. The languages' own allocation functions
/// (`operator new`, `__rust_alloc`) call one of these.
#[rustfmt::skip]
const ALLOCATORS: [Allocator; 27] = {
    use Argument::{C, Go};
    [
        ("malloc", &[C(0)], None),
        ("calloc", &[C(0), C(1)], None),
        ("realloc", &[C(1)], None),
        ("memalign", &[C(1)], None),
        ("aligned_alloc", &[C(1)], None),
        ("posix_memalign", &[C(2)], None),
        ("valloc", &[C(0)], None),
        ("pvalloc", &[C(0)], None),
        ("runtime.mallocgc", &[Go(0)], None),
        ("GC_malloc", &[C(0)], None),
        ("GC_malloc_atomic", &[C(0)], None),
        ("GC_malloc_uncollectable", &[C(0)], None),
        ("GC_realloc", &[C(1)], Some(C(0))),
        ("_rjem_malloc", &[C(0)], None),
        ("_rjem_mallocx", &[C(0)], None),
        ("_rjem_calloc", &[C(0), C(1)], None),
        ("_rjem_realloc", &[C(1)], None),
        ("_rjem_rallocx", &[C(1)], None),
        ("mi_malloc", &[C(0)], None),
        ("mi_malloc_aligned", &[C(0)], None),
        ("mi_calloc", &[C(0), C(1)], None),
        ("mi_zalloc", &[C(0)], None),
        ("mi_zalloc_aligned", &[C(0)], None),
        ("mi_realloc", &[C(1)], None),
        ("mi_realloc_aligned", &[C(1)], None),
        ("tc_malloc", &[C(0)], None),
        ("tc_new", &[C(0)], None),
    ]
};

/// Probes for all allocators that a program had mapped.
fn allocators(symbols: &Symbols) -> Vec<Count> {
    let mut seen: BTreeSet<(PathBuf, u64)> = BTreeSet::new();
    let mut found = Vec::new();
    for image in &symbols.images {
        let path = Path::new(symbols.name(image.path));
        // The dynamic linker's own allocator is only for itself.
        let is_linker = path.file_name().is_some_and(|n| n.as_encoded_bytes().starts_with(b"ld-"));
        if !path.is_absolute() || is_linker {
            continue;
        }
        let Some(entries) = Entries::open(path, symbols.name(image.build_id)) else { continue };
        let mut names: Vec<&str> = ALLOCATORS.iter().map(|(name, ..)| *name).collect();
        names.push("__libc_start_main");
        let offsets = entries.named(&names);
        // The C library's realloc of a null pointer calls malloc, where it is counted.
        let of_libc = offsets.last().is_some_and(Option::is_some);
        for ((name, factors, unless_zero), file_offset) in ALLOCATORS.iter().zip(offsets) {
            let Some(file_offset) = file_offset else { continue };
            // One function may have several names.
            if !seen.insert((path.to_owned(), file_offset)) {
                continue;
            }
            let delegates = of_libc && *name == "realloc";
            found.push(Count {
                mark: ProbeKind::Allocation,
                path: path.to_owned(),
                file_offset,
                factors: factors.to_vec(),
                unless_zero: unless_zero.or(delegates.then_some(Argument::C(0))),
            });
        }
    }
    found
}

/// Functions that are called once for each exception of C++, Rust and Crystal, and for each panic of Go.
const THROWERS: [&str; 2] = ["_Unwind_RaiseException", "runtime.gopanic"];

/// Probes for what throws, in all images that a program had mapped.
fn throwers(symbols: &Symbols) -> Vec<Count> {
    let mut seen: BTreeSet<(PathBuf, u64)> = BTreeSet::new();
    let mut found = Vec::new();
    for image in &symbols.images {
        let path = Path::new(symbols.name(image.path));
        if !path.is_absolute() {
            continue;
        }
        let Some(entries) = Entries::open(path, symbols.name(image.build_id)) else { continue };
        for file_offset in entries.named(&THROWERS).into_iter().flatten() {
            if seen.insert((path.to_owned(), file_offset)) {
                found.push(Count {
                    mark: ProbeKind::Throw,
                    path: path.to_owned(),
                    file_offset,
                    factors: Vec::new(),
                    unless_zero: None,
                });
            }
        }
    }
    found
}
