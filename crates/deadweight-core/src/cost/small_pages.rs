//! Small pages.
//!
//! # What it is
//! A loop touches many pages of memory at random, and little of each. The CPU keeps the places of some
//! thousand pages; for each other one it walks through the page table, which takes as long as several cache
//! misses. Pages of 2 MiB need five hundred times fewer entries.
//!
//! # How deadweight knows
//! The registers of samples give the addresses that a loop waits for: in no order, on more pages than the CPU has
//! entries for, with one or two lines of each, so that the lines themselves would fit its caches. The page
//! faults of the run show that these are pages of 4 KiB. The saving is an estimate; on a virtual machine
//! it depends on the host's pages too. `--prove` measures it for programs that use glibc's allocator.
//!
//! # What it is mistaken for
//! Data that is too large for the caches: that is `cache-misses`, and huge pages help a part of it. Memory that has
//! huge pages already.
//!
//! # What to do
//! Put what is used together on the same pages: heads apart from bodies. Or huge pages: `madvise(MADV_HUGEPAGE)` on a
//! block aligned to 2 MiB; `GLIBC_TUNABLES=glibc.malloc.hugetlb=1` tries it without a change.
//!
//! # Seen in
//! A simulation whose 17 000 heads have a page each: 35 % of its time.
//! In `tests/programs`: `a_page_each.c`.

use super::{Claim, Class, Inspection};
use crate::facts::hot_loops::is_of_loops;
use crate::facts::hot_loops::reason::Reason;
use crate::facts::processes::ProcessId;
use crate::inspect::Draft;
use crate::inspect::shares::sampled_sites;
use crate::inspect::slow_loops::{SlowLoops, Waited, turns, waits_behind};
use deadweight_report::report::How;
use deadweight_report::wording::{percent, time};

pub(super) const CLASS: Class = Class {
    id: "small-pages",
    source: include_str!("small_pages.rs"),
    // The time is the loop's work; its row is that of the work.
    claim: Claim::Slices(|_, _| false),
    inspect,
};

/// Below this share of the wall time it does not matter.
const LARGE: f64 = 0.08;
/// The part of the time at these accesses that huge pages save: least, typical, most. Pairs of programs saved 12 to 51 %.
const SAVED: (f64, f64, f64) = (0.1, 0.45, 0.8);

fn inspect(found: &Inspection<'_, '_>) -> Vec<Draft> {
    found.drafts_of_all(draft)
}

fn draft(found: &Inspection<'_, '_>, process: ProcessId) -> Option<Draft> {
    let facts = found.facts;
    let net = found.wall.net();
    let loops = SlowLoops::of(found, process, |why| match why {
        Reason::Pages(reached) => Some(reached),
        _ => None,
    })?;
    let sparse = |by| loops.all.iter().any(|(_, reached)| reached.iter().any(|r| r.by == by));
    let waited = Waited::of(found, process, loops.samples(), is_of_loops, |s| {
        s.access.is_some_and(|a| sparse(a.by))
    })?;
    if waited.ns.share_of(net) < LARGE {
        return None;
    }
    let (hot, reached) = loops.hottest()?;
    let main = reached.first()?;
    let behind = waits_behind(hot, reached);
    let mut evidence = vec![format!("{behind}; its pages of 4 KiB were faulted in one by one")];
    evidence.extend(turns(hot));
    Some(Draft {
        class: CLASS.id,
        moves: false,
        process,
        title: "a loop touches many small pages at random".into(),
        text: format!(
            "{} waited for {} of {} ({}) at memory on {:.0} or more pages, with about {:.1} cache lines \
             of each: more pages than the CPU keeps the places of.",
            loops.name(&facts.name(process)),
            time(waited.ns),
            time(net),
            percent(waited.ns, net),
            main.pages,
            (main.lines / main.pages).max(1.0),
        ),
        amount: waited.ns,
        saving: waited.ns.part(SAVED.1),
        range: (waited.ns.part(SAVED.0), waited.ns.part(SAVED.2)),
        how: How::Estimate,
        sites: sampled_sites(facts.symbols(), &waited.places),
        evidence,
        remedy: "Put what the loop uses on few pages, apart from the rest; or use huge pages: \
                 madvise(MADV_HUGEPAGE) on a block aligned to 2 MiB. GLIBC_TUNABLES=glibc.malloc.hugetlb=1 tries it \
                 without a change."
            .into(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::{found, looping, scattered};
    use std::fmt::Write;

    // 0: add rax, [rdi+8]; 4: mov rdi, [rdi]; 7: test rdi, rdi; a: jne 0; c: ret
    const LIST: &str = "code walk @0x1000 48034708 488b3f 4885ff 75f4 c3";
    const BASE: u64 = 0x7f00_0000_0000;

    /// A list of heads that are `apart` bytes from each other; faulted in by pages of 4 KiB, or in larger steps.
    fn heads(apart: u64, faults_every: u64) -> String {
        let place = |i: u64| BASE + scattered(i, 16_384) * apart;
        let text = looping(LIST, 300, |i| {
            let stack = "walk (s.c:5) @0x1004 <- main (s.c:9) @0x2000";
            (stack.into(), vec![(7, place(i))])
        });
        let mut faults = String::new();
        for i in 0..300 {
            let page = place(i) / faults_every * faults_every;
            writeln!(faults, "{} fault {page:#x}\n{} fault-end", 10 + 2 * i, 11 + 2 * i).unwrap();
        }
        text.replace("0 main\n", &format!("0 main\n{faults}"))
    }

    #[test]
    fn a_page_for_each_head_is_found() {
        let said = found(&heads(4160, 4096));
        assert!(said.starts_with("small-pages") && said.contains("@ walk:5"), "{said}");
    }

    #[test]
    fn huge_pages_and_heads_side_by_side_are_refused() {
        let huge = found(&heads(4160, 1 << 21));
        assert!(!huge.contains("small-pages"), "{huge}");
        let dense = found(&heads(64, 4096));
        assert!(!dense.contains("small-pages"), "{dense}");
    }
}
