//! What to do about memory churn: in the source, or by settings of `malloc` in the environment.

use crate::facts::Facts;
use crate::facts::call_groups::CallGroup;
use crate::facts::call_site::{CallSite, image_path, is_interpreted};
use crate::facts::processes::ProcessId;
use deadweight_trace::ids::StackId;
use deadweight_trace::symbols::is_c_library;

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

/// Whether it is mostly the heap of glibc's `malloc`, which takes and gives back by `brk`.
fn is_of_heap(facts: &Facts<'_>, process: ProcessId) -> bool {
    let symbols = facts.symbols();
    // The C library's own function calls `brk`: other allocators have theirs.
    let by_glibc = |stack: &StackId| {
        let mut frames = CallSite::Stack(*stack).frames(symbols).map(|(at, _)| at.image);
        let image = frames.next().and_then(|image| symbols.images.get(image.index()));
        image.is_some_and(|image| symbols.name(image.path).ends_with("/libc.so.6"))
    };
    let groups = facts.call_groups.of_process(process).map(|(_, group)| group);
    let (heap, all) = groups.filter(|group| group.churns).fold((0, 0), |(heap, all), group| {
        let of_heap = group.name == "brk" && group.sites.keys().any(by_glibc);
        (heap + if of_heap { group.calls } else { 0 }, all + group.calls)
    });
    heap > 0 && heap * 2 >= all
}

/// The part of the churning calls, in 0..=1, that the program makes itself: right above the C library's function.
pub(crate) fn maps_itself(facts: &Facts<'_>, process: ProcessId) -> f64 {
    let symbols = facts.symbols();
    let maps = |name: &str| name.contains("map") || name.contains("madvise");
    let is_own = |stack: &StackId| {
        let frames = CallSite::Stack(*stack).frames(symbols);
        let mut frames =
            frames.map(|(at, frame)| (image_path(symbols, at), symbols.name(frame.function)));
        frames.next().is_some_and(|(path, name)| is_c_library(path) && maps(name))
            && frames.next().is_some_and(|(path, _)| !is_c_library(path))
    };
    let (mut own, mut all) = (0, 0);
    let groups = facts.call_groups.of_process(process).map(|(_, group)| group);
    let maps = |group: &&CallGroup| group.churns && group.name != "brk";
    for (stack, calls) in groups.filter(maps).flat_map(|group| &group.sites) {
        all += calls;
        own += if is_own(stack) { *calls } else { 0 };
    }
    own as f64 / all.max(1) as f64
}

/// What to do where the program maps memory itself: no setting of `malloc` keeps that.
const MAPPED: &str = "Keep the mapping and use it again: madvise(MADV_DONTNEED) or clearing it gives zeros, too, if it must be empty.";

/// What to do in an interpreter that maps the memory of its objects itself.
const OBJECTS: &str = "The interpreter maps and unmaps the memory of the program's objects: keep large buffers and containers, \
    and fill them again, instead of making new ones.";

/// The part of the churning calls, in 0..=1, that glibc's `malloc` makes for blocks above its threshold: they begin and end
/// in the C library.
fn mapped_by_malloc(facts: &Facts<'_>, process: ProcessId) -> f64 {
    let symbols = facts.symbols();
    let by_malloc = |stack: &StackId| {
        let mut paths =
            CallSite::Stack(*stack).frames(symbols).map(|(at, _)| image_path(symbols, at));
        let mut glibc = || paths.next().is_some_and(|path| path.ends_with("/libc.so.6"));
        glibc() && glibc()
    };
    let (mut of_malloc, mut all) = (0, 0);
    let groups = facts.call_groups.of_process(process).map(|(_, group)| group);
    for group in groups.filter(|group| group.churns) {
        for (stack, calls) in &group.sites {
            all += calls;
            of_malloc += if group.name != "brk" && by_malloc(stack) { *calls } else { 0 };
        }
    }
    of_malloc as f64 / all.max(1) as f64
}

/// Whether settings of `malloc` in the environment help, without a change of the code. For an interpreter also where
/// `malloc` maps single blocks: there is no other way to keep them.
pub(crate) fn helps_by_environment(facts: &Facts<'_>, process: ProcessId) -> bool {
    is_of_heap(facts, process)
        || is_interpreted(&facts.processes.get(process).language)
            && mapped_by_malloc(facts, process) > 0.5
}

pub(super) fn remedy(facts: &Facts<'_>, process: ProcessId) -> String {
    if trims(facts, process) {
        return TRIMMED.into();
    }
    let of_process = facts.processes.get(process);
    let interpreted = is_interpreted(&of_process.language);
    if maps_itself(facts, process) > 0.5 {
        return if interpreted { OBJECTS } else { MAPPED }.into();
    }
    let image = of_process.image.and_then(|image| facts.symbols().images.get(image.index()));
    let in_source = if interpreted { OBJECTS } else { in_source(&of_process.language) };
    match helps_by_environment(facts, process) {
        true if !interpreted && image.is_none_or(|image| image.has_lines) => {
            format!("{in_source} {FOR_HEAP}")
        }
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
