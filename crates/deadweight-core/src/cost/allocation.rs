//! Allocation.
//!
//! # What it is
//! Time in the allocator: the program takes small pieces of memory and gives them back, for each
//! item of work. The bytes are few but the calls are many. Each call also moves or clears the
//! memory that it hands out, and leaves the caches colder.
//!
//! # How deadweight knows
//! Samples under the allocator's functions: malloc and free, operator new and delete, Rust's and
//! Zig's allocators, Go's mallocgc, the Boehm collector's `GC_malloc`. The row is the time in the
//! allocator itself. With `-r`, one more run counts the allocations: how many, of which size, at
//! which line. The predicted saving adds library functions that spend most of their time in the
//! allocator (a string's constructor, the drop of a vector), because they go away with the
//! allocations, and a part of the remaining time. The saving is an estimate, and usually low: a fix
//! also removes work around the allocations. On four programs that were not used to fit the model,
//! it was 20 percentage points too high once, and 17 to 53 points too low.
//!
//! # What it is mistaken for
//! A program that keeps and uses what it builds: its allocations are its data, and it frees hardly
//! any of them. The growth of one large block is *buffer-copies*. Memory that goes back to the
//! kernel is *memory-churn*. Marking live objects is *gc*.
//!
//! # What to do
//! Borrow instead of owning. Reuse one buffer across iterations. Reserve before filling. Allocate
//! items together (an arena, a slab, values in one array).
//!
//! # Seen in
//! A log query that makes two strings per field and a vector per line.
//! In `tests/programs`: `string_fields.rs`, `node_per_item.cpp`.

use super::{AccountId, Claim, Class, Inspection};
use crate::facts::call_site::{CallSite, is_in_other_library, is_interpreted, is_own};
use crate::facts::processes::{ProcessId, SHELL};
use crate::facts::user_time::UserSample;
use crate::inspect::allocating::{Allocating, joins_texts, waited};
use crate::inspect::growth;
use crate::inspect::shares::Share;
use crate::inspect::{Draft, processes_in};
use deadweight_code::symbol_role::SymbolRole;
use deadweight_report::report::How;
use deadweight_report::wording::{percent, things, time};
use deadweight_trace::units::Ns;

pub(super) const CLASS: Class = Class {
    id: "allocation",
    source: include_str!("allocation.rs"),
    claim: Claim::Samples(claim),
    inspect,
};

/// Below this share of the wall time allocation is the normal cost of having data.
const LARGE: f64 = 0.05;
/// The same of what a library allocates for itself: an import into a database, with nothing to change, had 5 to 8 %.
const LARGE_OF_LIBRARY: f64 = 0.15;

/// The part of the allocator's time that goes away at least: it waits there for memory that the program then waits for
/// itself. Five pairs of programs saved 0.66 of that time (boxes that stay) and more.
const AT_LEAST: f64 = 0.65;

/// From this part on, what a library allocates for itself decides the advice, and no saving is certain.
const BY_LIBRARY: f64 = 0.5;

/// A process that frees its memory spends at least this part of the allocator's time on freeing.
const RELEASED: f64 = 0.08;

fn claim(sample: &UserSample<'_>) -> bool {
    matches!(
        sample.symbol_role(),
        Some(SymbolRole::Allocate | SymbolRole::Grow | SymbolRole::Release)
    )
}

fn inspect(found: &Inspection<'_, '_>) -> Vec<Draft> {
    let account = AccountId::of_class(CLASS.id);
    processes_in(found.wall.in_account(account))
        .into_iter()
        .filter_map(|process| draft(found, process))
        .collect()
}

/// Whether a process without a garbage collector frees hardly any memory: then it keeps what it
/// allocates, and the allocations are its data.
fn keeps(found: &Inspection<'_, '_>, share: &Share, process: ProcessId) -> bool {
    let collected = ["Go", "Crystal"].contains(&&*found.facts.processes.get(process).language);
    // The functions that an allocator runs while it frees memory may have any name.
    let releases = |site: &CallSite| {
        let sample = site.stack().map(|stack| found.facts.sample(stack));
        sample.is_some_and(|s| s.under(SymbolRole::Release) || s.under(SymbolRole::Grow))
    };
    let released = share.places.iter().filter(|(site, _)| releases(site));
    let released: u64 = released.map(|(_, weight)| weight.amount).sum();
    !collected && (released as f64) < RELEASED * share.samples as f64
}

fn draft(found: &Inspection<'_, '_>, process: ProcessId) -> Option<Draft> {
    let facts = found.facts;
    let net = found.wall.net();
    if growth::saved_with_growth(found, process).is_some() {
        return None;
    }
    // A script has no line that allocates: its interpreter does.
    if facts.processes.get(process).language == SHELL {
        return None;
    }
    let allocating = Allocating::of(found, process)?;
    let Allocating { share, beside } = &allocating;
    // The collector's work depends on the allocations; one of the two findings covers both.
    let gc = AccountId::of_class("gc");
    let on_path = Share::of(found.wall, gc, process).map_or(Ns::ZERO, |gc| gc.ns);
    let covers_both = !super::gc::reports_both(on_path, share.ns);
    let collected =
        Share::of(found.cpu, gc, process).map_or(Ns::ZERO, |_| on_path + waited(found, process));
    if keeps(found, share, process) {
        return None;
    }
    let with_it = if covers_both { collected } else { Ns::ZERO };
    let by_library = by_library(found, share, process) >= BY_LIBRARY;
    let large = if by_library { LARGE_OF_LIBRARY } else { LARGE };
    if (share.ns + *beside + with_it).share_of(net) < large {
        return None;
    }
    let saving = allocating.saving(with_it);
    // What a library allocates for itself may be all that its work needs.
    let least = if by_library { 0.0 } else { AT_LEAST };
    let (low, _) = share.interval(share.ns.part(least));
    let (_, high) = share.interval(saving);
    let name = facts.name(process);
    let mut evidence = vec![format!(
        "{} in the allocator; the saving may exceed their time: in test programs the code around allocations \
         became faster, too",
        things(share.samples, "sample")
    )];
    if *beside > Ns::ZERO {
        evidence.push(format!(
            "{} more in library functions that mostly allocate: copies into the new memory, and \
             destructors",
            time(*beside)
        ));
    }
    if covers_both && collected > Ns::ZERO {
        evidence.push(format!(
            "{} more in the garbage collector, and in waits and system calls of allocator and \
             collector: this goes away too",
            time(collected)
        ));
    }
    Some(Draft {
        class: CLASS.id,
        moves: true,
        process,
        title: "memory allocated and freed over and over".into(),
        text: format!(
            "{name} spent {} of its {} in the allocator ({}).",
            time(share.ns),
            time(net),
            percent(share.ns, net),
        ),
        amount: share.ns,
        saving,
        range: (low, high),
        how: How::Estimate,
        sites: share.sites(facts.symbols()),
        evidence,
        remedy: advice(found, process, by_library).into(),
    })
}

/// The part of a program's allocations, in 0..=1, that libraries make for themselves: Go's, and shared ones. Functions that only
/// make what the caller gets (text, slices, maps) are as the language's own.
fn by_library(found: &Inspection<'_, '_>, share: &Share, process: ProcessId) -> f64 {
    const LANGUAGE: [&str; 8] =
        ["runtime", "internal", "strings", "bytes", "slices", "maps", "sort", "strconv"];
    let symbols = found.facts.symbols();
    let language = found.facts.processes.get(process).language.as_str();
    let in_go = language == "Go";
    if is_interpreted(language) {
        return 0.0;
    }
    let of_library = |site: &CallSite| {
        let mut above = site.frames(symbols).take_while(|(at, f)| !is_own(symbols, at, f));
        above.any(|(at, frame)| {
            let name = symbols.name(frame.function);
            let package = name.split(['.', '/']).next().unwrap_or_default();
            match in_go {
                true => name.contains('.') && !LANGUAGE.contains(&package),
                false => is_in_other_library(symbols, at),
            }
        })
    };
    let inside = share.places.iter().filter(|(site, _)| of_library(site));
    let inside: u64 = inside.map(|(_, weight)| weight.amount).sum();
    inside as f64 / share.samples.max(1) as f64
}

/// What to do about those.
const IN_LIBRARY: &str = "Most of it is allocated inside of library functions that these lines call. Keep what they need from one call to \
    the next (an encoder, a client, a statement, a buffer), use their forms that write into memory of yours, or call them less \
    often, with more at once.";

fn advice(found: &Inspection<'_, '_>, process: ProcessId, by_library: bool) -> &'static str {
    joins_texts(found, process)
        .or(by_library.then_some(IN_LIBRARY))
        .unwrap_or_else(|| remedy(&found.facts.processes.get(process).language))
}

fn remedy(language: &str) -> &'static str {
    match language {
        "Rust" => {
            "Borrow instead of owning: &'t str for String, Cow where the text is sometimes changed. Or \
             reuse: keep one Vec or String outside the loop and clear() it; \
             Vec::with_capacity(n) where the size is known."
        }
        "C++" => {
            "Take std::string_view and std::span instead of making strings and vectors; keep one \
             buffer outside the loop and clear() it; reserve(n); hold items by value in a vector, \
             or give the container a std::pmr::monotonic_buffer_resource."
        }
        "Go" => {
            "Keep values instead of pointers (map[K]V, []T), reuse slices (buf = buf[:0]), \
             make([]T, 0, n), strings.Builder, sync.Pool. `go build -gcflags=-m` shows which \
             values escape to the heap and why."
        }
        "Zig" => {
            "Allocate once and reuse (clearRetainingCapacity, reset(.retain_capacity) of an \
             ArenaAllocator), or use a std.heap.FixedBufferAllocator for memory of one iteration."
        }
        "Crystal" => {
            "Use structs and StaticArray for small values, String.build or IO::Memory instead of \
             `+`, Array.new(capacity), and reuse buffers with #clear."
        }
        _ => {
            "Allocate once before the loop and reuse; take items from one block (an array, an \
             arena that is freed as a whole) instead of one malloc each."
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{computing, found, rows, weighed};
    use super::CLASS;
    use expect_test::expect;

    #[test]
    fn the_code_of_an_installed_package_is_refused() {
        let stacks = [
            (30, "malloc @libc.so.6 <- read_list <- main"),
            (30, "free @libc.so.6 <- drop_list <- main"),
            (40, "work <- main"),
        ];
        let lines = computing("C", &stacks).replace("/bin/app", "/usr/bin/app");
        assert!(found(&lines).contains("allocation"), "it was built with -g");
        let installed =
            lines.replace("/usr/bin/app language C", "/usr/bin/app language C no-lines");
        assert_eq!(found(&installed), "");
        let own = installed.replace("/usr/bin/app", "/srv/app");
        assert!(found(&own).contains("allocation"));
    }

    #[test]
    fn what_a_library_of_go_allocates_for_itself_has_no_least_saving() {
        let said = |by: &str| {
            let allocates =
                format!("runtime.mallocgc <- {by} <- main.serve (main.go:9) <- main.main");
            let rest = (60, "main.serve (main.go:10) <- main.main");
            let report = weighed(&computing("Go", &[(40, &allocates), rest]));
            let of_it = report.findings.into_iter().find(|f| f.class == CLASS.id).unwrap();
            (of_it.low, of_it.remedy)
        };
        let (low, remedy) =
            said("runtime.newobject <- net/http.(*Client).do <- net/http.(*Client).Do");
        assert!(
            low == 0.0 && remedy.starts_with("Most of it is allocated inside"),
            "{low} {remedy}"
        );
        for own in ["runtime.newobject", "runtime.makeslice <- strings.genSplit <- strings.Split"] {
            let (low, remedy) = said(own);
            assert!(low > 0.0 && remedy.starts_with("Keep values"), "{own}: {low} {remedy}");
        }
    }

    #[test]
    fn a_shell_that_allocates_for_its_script_is_refused() {
        let stacks = [
            (30, "malloc @libc.so.6 <- read_builtin (read.c:7) <- main (shell.c:3)"),
            (30, "free @libc.so.6 <- read_builtin (read.c:9) <- main (shell.c:3)"),
            (40, "read_builtin (read.c:8) <- main (shell.c:3)"),
        ];
        let own = computing("C", &stacks);
        assert!(found(&own).contains("allocation"));
        assert_eq!(found(&own.replace("/bin/app", "/bin/bash")), "");
    }

    #[test]
    fn what_a_shared_library_allocates_for_itself_has_no_least_saving() {
        let of = |library: &str| {
            let stack = format!(
                "_int_malloc @libc.so.6 <- malloc @libc.so.6 <- step @{library} <- import (i.c:8) <- main (i.c:20)"
            );
            let freed = stack.replace("_int_malloc", "_int_free").replace("malloc @", "free @");
            let text = computing("C", &[(40, &stack), (20, &freed), (40, "main (i.c:21)")]);
            found(&text.replacen(
                "task 1 app",
                &format!("image {library} path /usr/lib/{library}\ntask 1 app"),
                1,
            ))
        };
        let said = of("libsqlite3.so.0");
        assert!(said.starts_with("allocation") && said.contains("(0.."), "{said}");
        // A collector allocates for the program.
        assert!(!of("libgc.so.1").contains("(0.."), "{}", of("libgc.so.1"));
    }

    #[test]
    fn strings_made_per_field_are_found_with_their_library_code() {
        let text = computing(
            "Rust",
            &[
                (
                    20,
                    "_int_malloc @libc.so.6 <- malloc @libc.so.6 <- alloc::str::to_owned (/rustc/1/library/alloc/src/str.rs:9) in query::parse (query.rs:18) <- query::main (q.rs:1)",
                ),
                (
                    10,
                    "memcpy @libc.so.6 <- alloc::str::to_owned (/rustc/1/library/alloc/src/str.rs:10) in query::parse (query.rs:18) <- query::main (q.rs:1)",
                ),
                (
                    15,
                    "free @libc.so.6 <- core::ptr::drop_in_place (/rustc/1/library/core/src/ptr.rs:1) in query::run (query.rs:58) <- query::main (q.rs:1)",
                ),
                (
                    5,
                    "core::ptr::drop_in_place (/rustc/1/library/core/src/ptr.rs:1) in query::run (query.rs:58) <- query::main (q.rs:1)",
                ),
                (
                    50,
                    "core::str::find (/rustc/1/library/core/src/str.rs:1) in query::parse (query.rs:17) <- query::main (q.rs:1)",
                ),
            ],
        );
        expect![[r#"
            allocation 58 % (14..72) @ query::parse:18: app spent 34.8 µs of its 100 µs in the allocator (35 %).
        "#]].assert_eq(&found(&text));
        expect![[r#"
            net-work 54725
            allocation 34825
            buffer-copies 9950
            start-up 500 exec, linking and initialising
        "#]]
        .assert_eq(&rows(&text, 4));
    }

    #[test]
    fn frees_in_zigs_allocators_are_known_by_the_method_called() {
        let at = |asked: &str, line: u32| {
            format!(
                "heap.SmpAllocator.Thread.lock (/zig/lib/std/heap.zig:77) in heap.SmpAllocator.{asked} (/zig/lib/std/heap.zig:9) <- app.list (a.zig:{line}) <- app.main (a.zig:30)"
            )
        };
        let (taken, given) = (at("alloc", 4), at("free", 9));
        let text = computing("Zig", &[(40, &taken), (30, &given), (30, "app.main (a.zig:31)")]);
        expect![[r#"
            allocation 77 % (32..86) @ app.list:4: app spent 69.7 µs of its 100 µs in the allocator (70 %).
        "#]].assert_eq(&found(&text));
        let text = computing("Zig", &[(70, &taken), (30, "app.main (a.zig:31)")]);
        assert_eq!(found(&text), "");
    }

    #[test]
    fn memory_that_is_kept_is_refused() {
        let text = computing(
            "C",
            &[
                (40, "malloc @libc.so.6 <- tree_add (tree.c:9) <- main (tree.c:30)"),
                (60, "tree_find (tree.c:20) <- main (tree.c:31)"),
            ],
        );
        assert_eq!(found(&text), "");
    }

    #[test]
    fn a_little_allocation_and_a_library_that_also_works_are_refused() {
        let text = computing(
            "C++",
            &[
                (
                    3,
                    "malloc @libc.so.6 <- \"operator new(unsigned long)\" @libstdc++.so.6 <- table::insert (/usr/include/c++/12/t.h:1) in load (a.cc:3) <- main (a.cc:9)",
                ),
                (97, "table::insert (/usr/include/c++/12/t.h:1) in load (a.cc:3) <- main (a.cc:9)"),
            ],
        );
        assert_eq!(found(&text), "");
    }
}
