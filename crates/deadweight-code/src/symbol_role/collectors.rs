//! Garbage collectors of languages' runtimes, by the names of their functions.
//!
//! A collector's inner functions have short names that a program may use too (`evacuate`, `gc_mark`): they count only in
//! an image that holds that runtime. What a collector's function calls is found by the stack, so callees with common
//! names (`dict_traverse`) are left out here. Go's and Boehm's collectors have unique names and are in `symbol_role`.

/// Whether a function collects garbage. `language` is that of its image: the seal knows runtimes by the symbols that
/// they export.
pub(super) fn collects(name: &str, language: &str) -> bool {
    // `gc_collect_main.constprop.0` is a clone that the compiler made.
    let plain = if language == "Java" { name } else { name.split('.').next().unwrap_or(name) };
    match language {
        "Python" => PYTHON.contains(&plain),
        "Ruby" => begins(plain, RUBY) || RUBY_EXACT.contains(&plain),
        "Haskell" => begins(plain, HASKELL) || HASKELL_EXACT.contains(&plain),
        "OCaml" => begins(plain, OCAML),
        "Java" => begins(without_result(name), JAVA),
        _ => v8(name),
    }
}

/// The class of V8 that a function belongs to. The name space is V8's own in any program.
fn v8(name: &str) -> bool {
    let inner = name.split_once("v8::internal::").map(|(_, inner)| inner);
    inner.is_some_and(|inner| begins(inner, V8))
}

fn begins(name: &str, prefixes: &[&str]) -> bool {
    prefixes.iter().any(|prefix| name.starts_with(prefix))
}

/// A function template has its result type before the name: `void PSParallelCompact::...`.
fn without_result(name: &str) -> &str {
    name.strip_prefix("void ").or_else(|| name.strip_prefix("bool ")).unwrap_or(name)
}

/// CPython 2.7 to 3.14: the functions that a collection begins with.
const PYTHON: &[&str] = &[
    "gc_collect_main",
    "gc_collect_internal",
    "gc_collect_with_callback",
    "gc_collect_generations",
    "gc_collect_young",
    "gc_collect_increment",
    "gc_collect_full",
    "gc_collect_region",
    "collect",
    "collect_with_callback",
    "collect_generations",
    "PyGC_Collect",
    "_PyGC_Collect",
    "_PyGC_CollectNoFail",
    "_Py_RunGC",
];

/// Ruby 2.5 to 3.4.
const RUBY: &[&str] = &[
    "gc_mark",
    "gc_sweep",
    "gc_start",
    "gc_rest",
    "gc_compact",
    "gc_continue",
    "gc_writebarrier",
    "garbage_collect",
    "rb_gc_mark",
    "rb_gc_start",
    "rb_gc_writebarrier",
    "rb_gc_impl_mark",
    "rb_gc_impl_start",
    "rb_gc_impl_writebarrier",
];
const RUBY_EXACT: &[&str] = &["rb_gc"];

/// GHC's runtime: copying, compacting and non-moving collector.
const HASKELL: &[&str] = &[
    "scavenge_",
    "evacuate",
    "copy_tag",
    "alloc_for_copy",
    "alloc_todo_block",
    "nonmovingMark",
    "nonmovingSweep",
    "gcWorker",
];
const HASKELL_EXACT: &[&str] = &["GarbageCollect", "scheduleDoGC", "performGC", "performMajorGC"];

/// OCaml 4 and 5: minor and major collections. `caml_page_table_lookup` serves comparisons, too.
const OCAML: &[&str] = &[
    "caml_call_gc",
    "caml_gc_dispatch",
    "caml_check_urgent_gc",
    "caml_empty_minor_heap",
    "caml_minor_collection",
    "caml_oldify",
    "oldify_",
    "caml_major_collection_slice",
    "caml_finish_major_cycle",
    "major_collection_slice",
    "mark_slice",
    "sweep_slice",
    "pool_sweep",
    "caml_darken",
    "caml_compact_heap",
];

/// V8 9 to 13, below `v8::internal::`. Allocation (`Heap::AllocateRaw`) is left out.
#[rustfmt::skip]
const V8: &[&str] = &[
    "Heap::CollectGarbage", "Heap::CollectAllGarbage", "Heap::PerformGarbageCollection", "Heap::Scavenge",
    "Heap::MarkCompact", "Heap::MinorMarkCompact", "Heap::MinorMarkSweep", "Scaveng", "IterateAndScavenge",
    "MarkCompactCollector", "MinorMarkCompactCollector", "MinorMarkSweepCollector", "MainMarkingVisitor",
    "MarkingVisitor", "ConcurrentMarking", "IncrementalMarking", "Sweeper", "Evacuator", "PageEvacuationJob",
    "FullEvacuator", "PointersUpdatingJob", "ArrayBufferSweeper", "WeakObjects",
];

/// HotSpot 8 to 25. Allocation (`G1Allocator`, `MemAllocator`) is left out: a thread that cannot allocate waits there.
#[rustfmt::skip]
const JAVA: &[&str] = &[
    // What the VM's thread does.
    "VM_G1", "VM_GenCollect", "VM_CollectForAllocation", "VM_ParallelGC", "VM_ParallelCollect", "VM_GC_",
    "VM_SerialCollect", "VM_SerialGC", "VM_CollectForMetadata",
    // What the workers do.
    "G1ParScanThreadState", "G1ParEvacuateFollowersClosure", "G1EvacuateRegions", "G1ParTask", "G1ParCopyClosure",
    "G1ParCopyHelper", "G1ConcurrentMark", "G1CM", "G1ConcurrentRefine", "G1FullGC", "G1FullCollector", "G1Rebuild",
    "G1RemSet", "G1PreEvacuate", "G1PostEvacuate", "G1RedirtyCards", "G1ScanHRForRegion", "G1MergeHeapRoots",
    "G1RootProcessor", "G1CollectedHeap::do_collection", "G1CollectedHeap::do_full_collection",
    "G1CollectedHeap::evacuate", "G1YoungCollector", "G1BatchedTask", "G1BatchedGangTask", "G1ServiceThread",
    "PSScavenge", "PSParallelCompact", "PSPromotionManager", "PSMarkSweep", "PSCardTable", "ParCompactionManager",
    "ParallelScavengeHeap::do_full_collection", "ScavengeRootsTask", "MarkFromRootsTask", "UpdateDensePrefix",
    "StealTask", "ThreadRootsTask", "DefNewGeneration::collect", "DefNewGeneration::copy", "GenMarkSweep",
    "SerialFullGC", "MarkSweep", "TenuredGeneration::collect", "GenCollectedHeap::do_collection",
    "GenCollectedHeap::do_full_collection", "SerialHeap::do_", "SerialHeap::collect_",
    "TaskTerminator::", "ParallelTaskTerminator::",
    "ZDriver", "ZMark", "ZRelocate", "ZGeneration", "ShenandoahConcurrent", "ShenandoahMark", "ShenandoahEvacuat",
];

#[cfg(test)]
mod tests {
    use super::super::{SymbolRole, in_image};

    #[test]
    fn collectors_are_known_in_the_image_of_their_runtime() {
        for (language, name) in [
            ("Python", "gc_collect_main"),
            ("Python", "gc_collect_main.constprop.0"),
            ("Ruby", "gc_marks_rest"),
            ("Ruby", "gc_sweep_step"),
            ("Ruby", "rb_gc_mark_movable"),
            ("Haskell", "scavenge_block"),
            ("Haskell", "evacuate1"),
            ("Haskell", "GarbageCollect"),
            ("OCaml", "mark_slice_darken.constprop.0"),
            ("OCaml", "caml_empty_minor_heap"),
            ("Java", "G1ParScanThreadState::trim_queue_to_threshold(unsigned int)"),
            ("Java", "void PSPromotionManager::process_popped_location_depth(ScannerTask)"),
            ("JavaScript", "v8::internal::Scavenger::Process(v8::JobDelegate*)"),
            ("C++", "void v8::internal::ScavengeVisitor::VisitPointersImpl<FullObjectSlot>(int)"),
        ] {
            assert_eq!(in_image(name, language), Some(SymbolRole::Collect), "{name}");
        }
    }

    #[test]
    fn a_programs_own_function_with_a_collectors_name_has_no_role() {
        for name in [
            "gc_collect_main",
            "gc_mark",
            "scavenge_block",
            "sweep_slice",
            "evacuate",
            "GarbageCollect",
            "G1RemSet::add",
            "Scavenger::Process()",
            "game::Sweeper::step()",
        ] {
            for language in ["C", "C++", "Rust", ""] {
                assert_eq!(in_image(name, language), None, "{name}");
            }
        }
    }

    #[test]
    fn other_functions_of_a_runtime_do_not_collect() {
        for (language, name) in [
            ("Python", "gc_alloc"),
            ("Python", "dict_traverse"),
            ("Ruby", "rb_gcd"),
            ("Ruby", "rb_gc_register_address"),
            ("Haskell", "Main_evacuate_info"),
            ("OCaml", "caml_page_table_lookup"),
            ("OCaml", "camlCat__mark_slice_12"),
            ("Java", "G1CollectedHeap::mem_allocate(unsigned long, bool*)"),
            ("JavaScript", "v8::internal::Heap::AllocateRaw(int)"),
        ] {
            assert_eq!(in_image(name, language), None, "{name}");
        }
    }
}
