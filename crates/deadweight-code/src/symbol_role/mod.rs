//! The role of library and runtime functions, by their names.
//!
//! - In: the name of a function, and where it helps the language of its image.
//! - Out: its role, or none for a name outside the table.
//! - Must not know: what is a cost; the cost classes decide that.
//!
//! One table for all languages, because one program may hold several.

mod collectors;
mod work;

use std::collections::BTreeSet;
use std::sync::LazyLock;

/// What a function of a library or runtime does for the program.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SymbolRole {
    /// Allocates memory.
    Allocate,
    /// Frees memory.
    Release,
    /// Grows a container: allocates, and moves the elements.
    Grow,
    /// Garbage collection, with write barriers and assists of the program.
    Collect,
    /// Copies bytes.
    Copy,
    /// Sets bytes.
    Fill,
    /// Copies between the program's memory and a stream's buffer: copying is its work.
    Stream,
    /// Sorts: moving elements is its work.
    Sort,
    /// Raises or catches an exception or a panic.
    Throw,
    /// Tries without waiting.
    Try,
    /// Looks for the end of a text.
    Scan,
    /// Computes the hash of a map's key.
    Hash,
    /// Makes text of values or values of text.
    Convert,
    /// Anything else that is not the program's own.
    Library,
}

/// The role of a function in an image of this language; none if its name is not known there.
pub fn in_image(name: &str, language: &str) -> Option<SymbolRole> {
    let known = of_name(name);
    known.or_else(|| collectors::collects(name, language).then_some(SymbolRole::Collect))
}

/// The role of a function by its name alone; none if that is not known.
pub fn of_name(name: &str) -> Option<SymbolRole> {
    let plain = name.trim_start_matches('_');
    let plain = without_variant(plain);
    if let Some(role) = work::of_name(name, plain) {
        return Some(role);
    }
    if let Some(go) = name.strip_prefix("runtime.") {
        return of_go(go);
    }
    if let Some(symbol_role) = of_rust(name) {
        return Some(symbol_role);
    }
    let exact =
        EXACT.iter().find(|(_, names)| names.contains(&plain)).map(|(symbol_role, _)| *symbol_role);
    exact
        .or_else(|| {
            PREFIXES.iter().find(|(p, _)| plain.starts_with(p)).map(|(_, symbol_role)| *symbol_role)
        })
        .or_else(|| of_collector(plain))
        .or_else(|| of_generic(plain))
        .or_else(|| sorts(plain).then_some(SymbolRole::Sort))
}

/// Whether a function that a binary has without lines is the C library's or C++'s runtime, linked into it: its name is one of
/// theirs, and it calls none of the program's code.
pub fn is_linked_in(name: &str) -> bool {
    // Most functions are the program's, and names of other languages have types and modules.
    if name.contains([':', '.', '<', '#']) {
        return false;
    }
    static NAMES: LazyLock<BTreeSet<&str>> = LazyLock::new(|| {
        let exact = EXACT.iter().filter(|(role, _)| *role != SymbolRole::Stream);
        exact.flat_map(|(_, names)| *names).chain(work::of_c()).copied().collect()
    });
    NAMES.contains(without_variant(name.trim_start_matches('_')))
}

/// Whether a standard library's function sorts.
fn sorts(name: &str) -> bool {
    #[rustfmt::skip]
    const EXACT: &[&str] = &["qsort", "qsort_r", "msort_with_tmp", "heapsort_r"];
    #[rustfmt::skip]
    const PARTS: &[&str] = &[
        // C++; a function template has its result type before the name.
        "std::sort<", "std::stable_sort<", "std::partial_sort<", "std::nth_element<", "std::__sort",
        "std::__introsort", "std::__stable_sort", "std::__inplace_stable_sort", "std::__merge_",
        "std::__move_merge", "std::__insertion_sort", "std::__chunk_insertion_sort",
        "std::__unguarded_linear_insert", "std::__adjust_heap", "std::__heap_select",
        // Rust
        "core::slice::sort::", "alloc::slice::stable_sort", "<impl [T]>::sort",
        // Crystal
        "#sort", "sort!<", "sort_by!<",
    ];
    const GO_AND_ZIG: &[&str] = &[
        "sort.",
        "slices.Sort",
        "slices.pdqsort",
        "slices.stable",
        "slices.insertionSort",
        "slices.heapSort",
        "slices.symMerge",
    ];
    EXACT.contains(&name)
        || PARTS.iter().any(|part| name.contains(part))
        || GO_AND_ZIG.iter().any(|start| name.starts_with(start))
}

/// Whether a function of Go's or Boehm's collector follows pointers to live objects. Go 1.20 to 1.26.
pub fn marks(name: &str) -> bool {
    const MARKS: &[&str] = &[
        "runtime.scanobject",
        "runtime.scanObject",
        "runtime.scanblock",
        "runtime.greyobject",
        "runtime.tryDeferToSpanScan",
        "runtime.findObject",
        "runtime.typePointers",
        "internal/runtime/gc/scan.",
        "GC_mark",
    ];
    MARKS.iter().any(|start| name.starts_with(start))
}

/// Whether a function reallocates a block for its caller, in a language where that frees the old block.
pub fn is_realloc(name: &str) -> bool {
    ["realloc", "reallocarray", "libc_realloc", "rallocx"].contains(&name.trim_start_matches('_'))
        || name.starts_with("mem.Allocator.realloc")
}

/// `memmove_avx_unaligned_erms` is a variant of the C library's `memmove`.
fn without_variant(name: &str) -> &str {
    const MARKS: [&str; 6] = ["avx", "sse", "evex", "erms", "ssse3", "generic"];
    let marks = |at: &usize| MARKS.iter().any(|mark| name[at + 1..].starts_with(mark));
    let end = name.match_indices('_').map(|(at, _)| at).find(marks).unwrap_or(name.len());
    name[..end].trim_end_matches("_chk").trim_end_matches('_')
}

/// Names of the C library, of allocators that replace its own, and of compilers' runtimes,
/// without leading underscores.
#[rustfmt::skip]
const EXACT: &[(SymbolRole, &[&str])] = &[
    (SymbolRole::Allocate, &[
        "malloc", "calloc", "memalign", "aligned_alloc", "posix_memalign",
        "valloc", "pvalloc", "malloc_consolidate", "int_malloc", "int_memalign", "libc_malloc",
        "libc_calloc", "libc_memalign", "unlink_chunk", "sysmalloc", "tcache_init", "mallocx",
        "rust_alloc", "rust_alloc_zeroed", "crystal_malloc", "crystal_malloc64",
        "crystal_malloc_atomic", "crystal_malloc_atomic64", "malloc_usable_size",
    ]),
    (SymbolRole::Release, &[
        "free", "cfree", "int_free", "int_free_chunk", "int_free_merge_chunk",
        "int_free_create_chunk", "int_free_maybe_consolidate", "libc_free", "systrim",
        "malloc_trim", "free_sized", "sdallocx", "dallocx", "rust_dealloc",
    ]),
    (SymbolRole::Grow, &[
        "realloc", "reallocarray", "int_realloc", "libc_realloc", "rust_realloc", "rallocx",
        "crystal_realloc", "crystal_realloc64",
    ]),
    (SymbolRole::Copy, &["memcpy", "memmove", "mempcpy", "bcopy", "memccpy", "wmemcpy", "wmemmove"]),
    (SymbolRole::Fill, &["memset", "bzero", "explicit_bzero", "wmemset"]),
    (SymbolRole::Stream, &[
        "fread", "fwrite", "fgets", "fputs", "fgetc", "getc", "fputc", "putc", "getline",
        "getdelim", "fread_unlocked", "fwrite_unlocked", "fgets_unlocked", "getchar", "putchar", "puts",
        "fflush", "read", "write",
    ]),
];

/// Prefixes of names, without leading underscores; the first match counts.
#[rustfmt::skip]
const PREFIXES: &[(&str, SymbolRole)] = &[
    ("operator new", SymbolRole::Allocate), ("operator delete", SymbolRole::Release),
    ("rdl_alloc", SymbolRole::Allocate), ("rdl_dealloc", SymbolRole::Release), ("rdl_realloc", SymbolRole::Grow),
    ("rg_alloc", SymbolRole::Allocate), ("rg_dealloc", SymbolRole::Release), ("rg_realloc", SymbolRole::Grow),
    ("rustc::rust_alloc", SymbolRole::Allocate), ("rustc::__rust_alloc", SymbolRole::Allocate),
    ("rustc::__rust_dealloc", SymbolRole::Release), ("rustc::__rust_realloc", SymbolRole::Grow),
    ("rustc::__rdl_realloc", SymbolRole::Grow), ("rustc::__rdl_dealloc", SymbolRole::Release),
    ("rustc::__rdl_", SymbolRole::Allocate),
    ("std::alloc::", SymbolRole::Allocate), ("<std::alloc::System", SymbolRole::Allocate),
    ("mi_free", SymbolRole::Release), ("je_free", SymbolRole::Release),
    ("rjem_sdallocx", SymbolRole::Release), ("mi_", SymbolRole::Allocate), ("je_", SymbolRole::Allocate), ("rjem_", SymbolRole::Allocate),
    ("tc_malloc", SymbolRole::Allocate), ("tc_free", SymbolRole::Release), ("tc_new", SymbolRole::Allocate),
    ("tc_delete", SymbolRole::Release), ("tcmalloc::", SymbolRole::Allocate),
    ("core::ptr::copy", SymbolRole::Copy), ("core::intrinsics::copy", SymbolRole::Copy),
    ("core::ptr::write_bytes", SymbolRole::Fill), ("core::intrinsics::write_bytes", SymbolRole::Fill),
    ("compiler_rt.memcpy", SymbolRole::Copy), ("compiler_rt.memmove", SymbolRole::Copy),
    ("compiler_rt.memset", SymbolRole::Fill), ("memcpy.", SymbolRole::Copy), ("memmove.", SymbolRole::Copy),
    ("memset.", SymbolRole::Fill), ("compiler_builtins::mem::memcpy", SymbolRole::Copy),
    ("compiler_builtins::mem::memmove", SymbolRole::Copy),
    ("compiler_builtins::mem::memset", SymbolRole::Fill),
    ("IO_", SymbolRole::Stream), ("std::basic_streambuf<", SymbolRole::Stream),
    ("std::basic_filebuf<", SymbolRole::Stream), ("std::basic_istream<", SymbolRole::Stream),
    ("std::basic_ostream<", SymbolRole::Stream), ("std::istream::", SymbolRole::Stream),
    ("std::ostream::", SymbolRole::Stream), ("<std::io::", SymbolRole::Stream), ("std::io::", SymbolRole::Stream),
    ("<std::fs::", SymbolRole::Stream), ("bufio.", SymbolRole::Stream), ("io.", SymbolRole::Stream),
    ("os.", SymbolRole::Stream), ("Io.", SymbolRole::Stream),
    ("IO::", SymbolRole::Stream), ("fs.File.", SymbolRole::Stream),
];

/// A name without a path (debug information with line tables only), without the types behind it: that a map has its memory
/// from `alloc::alloc::Global` does not make its look-up an allocation.
fn without_types(name: &str) -> &str {
    match name.find('<') {
        Some(at) if at > 0 && !name[..at].contains(':') => &name[..at],
        _ => name,
    }
}

/// Rust's allocation and vectors; most of their functions only read.
fn of_rust(name: &str) -> Option<SymbolRole> {
    let name = without_types(name);
    let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
    if !has(&["alloc::raw_vec::", "alloc::alloc::"]) {
        return None;
    }
    if has(&["grow", "reserve", "realloc"]) {
        Some(SymbolRole::Grow)
    } else if has(&["dealloc", "box_free", "Drop>::drop", "Drop::drop"]) {
        Some(SymbolRole::Release)
    } else {
        has(&["alloc::alloc::", "with_capacity", "allocate", "shrink"])
            .then_some(SymbolRole::Allocate)
    }
}

/// Go's runtime, names without `runtime.`. Go 1.20 to 1.26.
fn of_go(name: &str) -> Option<SymbolRole> {
    #[rustfmt::skip]
    const COLLECT: &[&str] = &[
        "gc", "scan", "greyobject", "markroot", "wbBuf", "wbMove", "wbZero", "bgsweep", "sweepone",
        "bgscavenge", "(*gcWork)", "(*sweepLocked)", "(*spanQueue)", "(*spanInlineMarkBits)",
        "tryDeferToSpanScan", "findObject", "typePointers", "(*mspan).typePointersOf",
        "bulkBarrier", "typeBitsBulkBarrier", "(*gcControllerState)", "(*gcCPULimiterState)",
        "(*workType)", "heapBitsSetType", "handoff", "putfull", "trygetfull", "getempty",
        "putempty", "(*lfstack)", "shade", "(*limiterEvent)", "(*mspan).markBits",
        "(*activeSweep)", "(*pageAlloc).scavenge", "spanOf", "(*mspan).heapBits",
        "(*mspan).writeHeapBits",
    ];
    #[rustfmt::skip]
    const ALLOCATE: &[&str] = &[
        "mallocgc", "newobject", "newarray", "makeslice", "makechan", "nextFreeFast", "(*mcache)",
        "(*mcentral)", "(*mheap)", "(*pageAlloc)", "(*mspan)", "rawbyteslice", "rawstring",
        "rawruneslice", "heapSetType", "deductAssistCredit", "publicationBarrier",
        "(*fixalloc)", "persistentalloc", "profilealloc", "deductSweepCredit", "postMallocgc",
        "convT", "stackalloc", "stackcache",
    ];
    const GROW: &[&str] = &["growslice", "moveSlice"];
    const COPY: &[&str] =
        &["memmove", "typedmemmove", "typedslicecopy", "slicecopy", "copystack", "duffcopy"];
    const FILL: &[&str] = &["memclr", "duffzero"];
    let begins = |names: &[&str]| names.iter().any(|n| name.starts_with(n));
    if begins(COLLECT) && !begins(&["gcenable", "gcinit"]) {
        // Setting the pointer bits of a fresh object is part of its allocation.
        let fresh = begins(&["heapBitsSetType", "(*mspan).heapBits", "(*mspan).writeHeapBits"]);
        return Some(if fresh { SymbolRole::Allocate } else { SymbolRole::Collect });
    }
    [
        (GROW, SymbolRole::Grow),
        (COPY, SymbolRole::Copy),
        (FILL, SymbolRole::Fill),
        (ALLOCATE, SymbolRole::Allocate),
    ]
    .into_iter()
    .find(|(names, _)| begins(names))
    .map(|(_, symbol_role)| symbol_role)
}

/// The Boehm collector that Crystal and others use, Crystal's names for it, and Go's write barrier, which has no package.
/// Code of the collector without a name (`libgc.so.1+0x1a2b`) is collection; its fast path of allocation has names.
fn of_collector(name: &str) -> Option<SymbolRole> {
    if name.starts_with("libgc.so") || name.starts_with("libgc-") {
        return Some(SymbolRole::Collect);
    }
    if name.starts_with("gcWriteBarrier") {
        return Some(SymbolRole::Collect);
    }
    let inner = name.strip_prefix("GC_").or_else(|| name.strip_prefix("*GC::"));
    let inner = inner.or_else(|| name.strip_prefix("GC."))?;
    #[rustfmt::skip]
    const ALLOCATE: &[&str] = &[
        "malloc", "generic_malloc", "allocobj", "new", "memalign", "strdup", "calloc",
        "core_malloc", "debug_malloc", "build_fl", "finish_generic",
    ];
    if inner.starts_with("realloc") {
        return Some(SymbolRole::Grow);
    }
    if inner.starts_with("free") {
        return Some(SymbolRole::Release);
    }
    let gives = ALLOCATE.iter().any(|n| inner.starts_with(n));
    Some(if gives { SymbolRole::Allocate } else { SymbolRole::Collect })
}

/// Names that include types or modules: only a part is compared.
fn of_generic(name: &str) -> Option<SymbolRole> {
    #[rustfmt::skip]
    const PARTS: &[(&str, SymbolRole)] = &[
        // Zig
        ("mem.Allocator.free", SymbolRole::Release), ("mem.Allocator.destroy", SymbolRole::Release),
        ("mem.Allocator.realloc", SymbolRole::Grow), ("mem.Allocator.", SymbolRole::Allocate), ("heap.", SymbolRole::Allocate),
        ("mem.copyForwards", SymbolRole::Copy), ("mem.copyBackwards", SymbolRole::Copy),
        (").ensureTotalCapacity", SymbolRole::Grow), (").growCapacity", SymbolRole::Grow),
        // Rust: each element is cloned.
        ("::ConvertVec>::to_vec", SymbolRole::Copy),
        // C++
        // Moves or copies the elements itself.
        ("__do_uninit_copy", SymbolRole::Copy), ("::__uninit_copy", SymbolRole::Copy),
        ("::_M_realloc_insert", SymbolRole::Copy), ("::_M_realloc_append", SymbolRole::Copy),
        (">::allocate(", SymbolRole::Allocate), (">::deallocate(", SymbolRole::Release),
        ("::_M_create(", SymbolRole::Allocate),
    ];
    // A Zig allocator is called through a table; its function that frees is called `free`.
    if name.contains("heap.") && name.ends_with(".free") {
        return Some(SymbolRole::Release);
    }
    PARTS.iter().find(|(part, _)| name.contains(part)).map(|(_, symbol_role)| *symbol_role)
}

/// Whether a function copies element by element: inlined, it is still that loop. Other inlined copies may move a single
/// word.
pub fn is_copying_loop(name: &str) -> bool {
    COPYING_LOOPS.iter().any(|part| name.contains(part))
}

/// Zig's copies of overlapping memory, and the copies of containers with elements that have copies of their own in Rust
/// and C++.
const COPYING_LOOPS: [&str; 5] = [
    "mem.copyForwards",
    "mem.copyBackwards",
    "::ConvertVec>::to_vec",
    "__do_uninit_copy",
    "::__uninit_copy",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allocators_are_known_in_every_language() {
        for name in [
            "malloc",
            "operator new(unsigned long)",
            "__rust_alloc",
            "runtime.mallocgcSmallScanNoHeader",
            "runtime.(*mcache).nextFree",
            "mem.Allocator.alloc__anon_1234",
            "heap.debug_allocator.DebugAllocator(.{...}).alloc",
            "GC_malloc_kind",
            "__crystal_malloc64",
            "mi_heap_malloc_small",
        ] {
            assert_eq!(of_name(name), Some(SymbolRole::Allocate), "{name}");
        }
    }

    #[test]
    fn freeing_is_distinguished_from_allocating() {
        for name in [
            "free",
            "_int_free",
            "operator delete[](void*)",
            "__rustc::__rust_dealloc",
            "<alloc::alloc::Global as core::alloc::Allocator>::deallocate",
            "mem.Allocator.free__anon_77",
            "heap.SmpAllocator.free",
            "GC_free",
        ] {
            assert_eq!(of_name(name), Some(SymbolRole::Release), "{name}");
        }
    }

    #[test]
    fn one_name_stands_for_all_variants_of_a_routine() {
        for name in [
            "memmove",
            "__memmove_avx_unaligned_erms",
            "__memcpy_chk",
            "runtime.memmove",
            "mem.copyForwards__anon_812",
        ] {
            assert_eq!(of_name(name), Some(SymbolRole::Copy), "{name}");
        }
        for name in ["__memset_avx2_unaligned_erms", "runtime.memclrNoHeapPointers", "bzero"] {
            assert_eq!(of_name(name), Some(SymbolRole::Fill), "{name}");
        }
    }

    #[test]
    fn collection_is_distinguished_from_the_allocation_that_starts_it() {
        for name in [
            "runtime.gcBgMarkWorker",
            "runtime.gcDrain",
            "runtime.gcAssistAlloc1",
            "runtime.scanobject",
            "runtime.(*sweepLocked).sweep",
            "gcWriteBarrier",
            "GC_mark_from",
            "libgc.so.1+0x1a2b",
        ] {
            assert_eq!(of_name(name), Some(SymbolRole::Collect), "{name}");
        }
    }

    #[test]
    fn sorting_is_known_in_every_language() {
        for name in [
            "qsort_r",
            "void std::__introsort_loop<int*, long, __gnu_cxx::__ops::_Iter_less_iter>(int*, int*, long)",
            "core::slice::sort::stable::merge::merge",
            "sort.Stable",
            "slices.pdqsortCmpFunc[go.shape.int]",
            "sort.block.block__anon_12",
            "*Slice(Int32)@Slice(T)#sort!:Slice(Int32)",
        ] {
            assert_eq!(of_name(name), Some(SymbolRole::Sort), "{name}");
        }
    }

    #[test]
    fn a_programs_own_functions_have_no_role() {
        for name in [
            "contains_key<u64, u32, std::hash::random::RandomState, alloc::alloc::Global, u64>",
            "reserve_rows<alloc::raw_vec::RawVec<u8, alloc::alloc::Global>>",
            "main.free",
            "malloc_table_fill",
            "copy",
            "Pool::alloc",
            "memcpy_test",
            "main",
            "sorted_insert",
            "main.sort",
            "resort",
            "quicksort",
        ] {
            assert_eq!(of_name(name), None, "{name}");
        }
    }
}
