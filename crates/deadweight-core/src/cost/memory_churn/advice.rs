//! What to do about memory that is given back and taken again. Not for whether there is such memory.

use super::{is_of_heap, maps_itself};
use crate::facts::Facts;
use crate::facts::processes::ProcessId;

/// For the heap of glibc's `malloc`, in any program: it then grows in larger steps and keeps what is free.
const FOR_HEAP: &str = "Start it with MALLOC_TOP_PAD_=67108864 MALLOC_TRIM_THRESHOLD_=536870912 MALLOC_MMAP_THRESHOLD_=33554432 in the \
    environment: malloc then takes its heap in larger steps, and keeps what is free until the end.";

/// What to do where the program gives the free heap back itself.
const TRIMMED: &str = "Don't call malloc_trim for each item: it walks the whole heap and gives back what is taken again at once. Call it \
    when much was freed for good, or not at all.";

/// Whether a call of `malloc_trim` gives the memory back: `free` may give back a part before it, and `malloc` takes it again.
pub(super) fn trims(facts: &Facts<'_>, process: ProcessId) -> bool {
    let (mut trimmed, mut all) = (0, 0);
    for (_, group) in facts.call_groups.of_process(process).filter(|(_, group)| group.churns) {
        for (stack, calls) in &group.sites {
            let mut below = facts.symbols().functions(*stack).take(8);
            all += calls;
            trimmed += if below.any(|name| name.ends_with("malloc_trim")) { *calls } else { 0 };
        }
    }
    trimmed * 4 > all
}

/// What to do where the program maps memory itself: no setting of `malloc` keeps that.
const MAPPED: &str = "Keep the mapping and use it again: madvise(MADV_DONTNEED) or clearing it gives zeros, too, if it must be empty.";

pub(super) fn remedy(facts: &Facts<'_>, process: ProcessId) -> String {
    if trims(facts, process) {
        return TRIMMED.into();
    }
    if maps_itself(facts, process) > 0.5 {
        return MAPPED.into();
    }
    let of_process = facts.processes.get(process);
    let image = of_process.image.and_then(|image| facts.symbols().images.get(image.index()));
    let in_source = in_source(&of_process.language);
    match is_of_heap(facts, process) {
        true if image.is_none_or(|image| image.has_lines) => format!("{in_source} {FOR_HEAP}"),
        true => FOR_HEAP.into(),
        false => in_source.into(),
    }
}

fn in_source(language: &str) -> &'static str {
    match language {
        "C" | "C++" => {
            "Allocate the buffers once before the loop and reuse them. Without a change of code: \
             mallopt(M_MMAP_THRESHOLD, 1 << 30) and mallopt(M_TRIM_THRESHOLD, 1 << 30), or the \
             environment's GLIBC_TUNABLES; the process then keeps its peak memory."
        }
        "Rust" => {
            "Keep the Vec across iterations and clear() it instead of making a new one; or use an \
             allocator that keeps large blocks."
        }
        "Go" => "Keep the slice across iterations (buf = buf[:0]), or use sync.Pool.",
        "Zig" => {
            "Allocate once outside the loop; page_allocator maps and unmaps on every call, so put \
             an arena or a general purpose allocator on top of it."
        }
        "Crystal" => "Keep the buffer across iterations and #clear it.",
        _ => "Allocate the buffers once before the loop and reuse them.",
    }
}

#[cfg(test)]
mod tests {
    use crate::cost::tests::{repeat, weighed};

    /// The heap grows by `brk` for each item, ten pages are touched, and it shrinks: called by this function of the C library.
    fn advice(gives: &str) -> (String, u32) {
        let item = |at: u64| {
            let faults = repeat(10, at + 200, 50, |t| {
                let page = 0x1040_0000 + (t - at - 200) / 50 * 4096;
                format!(
                    "{t} fault {page:#x} from add (a.c:5) <- main (a.c:20)\n{} fault-end\n",
                    t + 30
                )
            });
            format!(
                "{at} syscall brk 0x1040a000 from malloc @libc.so.6 <- add (a.c:4) <- main (a.c:20)
                 {} back 0x1040a000\n{faults}{} syscall brk 0x10400000 from {gives} <- done (a.c:9) <- main (a.c:21)
                 {} back 0x10400000\n",
                at + 20,
                at + 800,
                at + 900
            )
        };
        let report = weighed(&format!(
            "image app path /bin/app language C\nimage libc.so.6 path /lib/libc.so.6\ntask 1 app\n0 on\n0 exec /bin/app\n0 main\n\
             {}20000 exit\n20000 off dead",
            repeat(20, 0, 1000, item)
        ));
        let finding = &report.findings[0];
        assert_eq!(finding.class, "memory-churn");
        (finding.remedy.clone(), finding.sites[0].line)
    }

    #[test]
    fn a_heap_trimmed_for_each_item_is_found_at_the_trim_and_one_that_free_trims_is_not() {
        let (remedy, line) = advice(
            "brk @libc.so.6 <- sbrk @libc.so.6 <- __default_morecore @libc.so.6 <- systrim @libc.so.6 <- malloc_trim @libc.so.6",
        );
        assert!(remedy.starts_with("Don't call malloc_trim") && line == 9, "{line}: {remedy}");
        let (remedy, line) = advice("free @libc.so.6");
        assert!(remedy.contains("mallopt") && line == 4, "{line}: {remedy}");
    }
}
