//! Garbage collection.
//!
//! # What it is
//! The collector's work on the program's time: marking what is alive, sweeping what is not, the
//! help that allocating code must give to it, and the barriers around written pointers. Its price
//! grows with the pointers that are alive and with how fast memory is asked for.
//!
//! # How deadweight knows
//! Samples under the collector's functions: Go's mark workers, assists, sweeping and write barriers,
//! the Boehm collector's mark and reclaim (Crystal). What background threads do at the same time
//! is told beside it: it slows the rest only as far as CPUs are short. An estimate; turning the
//! collector off entirely leaves the allocations, so the two findings belong together.
//!
//! # What it is mistaken for
//! A program that must build one big graph pays for marking it: fewer pointers is then the only
//! remedy. Handing memory out is *allocation*, which also remains when collections are rare.
//!
//! # What to do
//! Fewer pointers (values instead of pointers, indexes instead of strings), fewer allocations, or
//! rarer collections against more memory (`GOGC`, `GOMEMLIMIT`).
//!
//! # Seen in
//! A session window with a heap object per event: a million pointers marked again and again.
//! In `tests/programs`: `live_pointers.go`.

use super::allocation::Allocating;
use super::{AccountId, Claim, Class, Inspection};
use crate::attribute::Detail;
use crate::duty::Duty;
use crate::findings::{Draft, parts_of_tasks, processes_in};
use crate::holding::Holder;
use crate::place::{Weights, add};
use crate::processes::ProcessId;
use crate::report::How;
use crate::shares::{Share, sampled_sites};
use crate::units::Ns;
use crate::user_time::UserSample;
use crate::wording::{percent, time};

pub(super) const CLASS: Class = Class {
    id: "gc",
    group: "garbage collection",
    source: include_str!("gc.rs"),
    claim: Claim::Samples(claim),
    inspect,
};

/// Below this share of the wall time a collector is a bargain.
const LARGE: f64 = 0.05;

fn claim(sample: &UserSample<'_>) -> bool {
    sample.under(Duty::Collect)
}

fn inspect(found: &Inspection<'_, '_>) -> Vec<Draft> {
    let account = AccountId::of_class(CLASS.id);
    processes_in(found.cpu.in_account(account))
        .into_iter()
        .filter_map(|process| draft(found, account, process))
        .collect()
}

fn draft(found: &Inspection<'_, '_>, account: AccountId, process: ProcessId) -> Option<Draft> {
    let case = found.case;
    let net = found.wall.net();
    let everywhere = Share::of(found.cpu, account, process)?;
    let on_path = Share::of(found.wall, account, process);
    let ns = on_path.as_ref().map_or(Ns::ZERO, |share| share.ns);
    let beside = everywhere.ns - ns;
    if (ns + beside).share_of(net) < LARGE {
        return None;
    }
    // Fewer allocations are what makes for less to collect; the larger of the two tells of both.
    let allocating = Allocating::of(found, process).filter(|a| a.share.ns < ns);
    let with_it = allocating.map_or(Ns::ZERO, |a| a.share.ns + a.beside);
    let held = held(found, process);
    let (low, _) = on_path.as_ref().map_or((ns, ns), |share| share.interval(ns));
    let name = case.name(process);
    let mut evidence = Vec::new();
    if beside > Ns::ZERO {
        evidence.push(format!(
            "{} more of CPU time on other threads meanwhile, {} of all CPU time",
            time(beside),
            percent(everywhere.ns, found.cpu.net()),
        ));
    }
    if held.share_of(net) >= 0.01 {
        evidence.push(format!("{} more without a CPU, because the collector had it", time(held)));
    }
    if with_it > Ns::ZERO {
        evidence.push(format!(
            "{} more in the allocations that feed it: the saving is of both, the collector \
             alone is {}",
            time(with_it),
            percent(ns, net),
        ));
    }
    Some(Draft {
        class: CLASS.id,
        moves: true,
        process,
        title: "the garbage collector works along".into(),
        text: format!(
            "{name} spent {} of its {} in the collector ({}).",
            time(ns),
            time(net),
            percent(ns, net),
        ),
        amount: ns,
        saving: ns + held + with_it,
        range: (low, ns + held + with_it + beside),
        how: How::Estimate,
        sites: sampled_sites(case.symbols(), &lines(found, process)),
        evidence,
        remedy: remedy(&case.processes.get(process).language).into(),
    })
}

/// For how long the process had no CPU because its own collector had it.
pub(super) fn held(found: &Inspection<'_, '_>, process: ProcessId) -> Ns {
    let account = AccountId::of_class(CLASS.id);
    let parts = parts_of_tasks(found.case, account, process);
    let entries = found.wall.entries.iter().filter(|e| e.process == process);
    let held = entries.filter_map(|entry| match entry.detail {
        Detail::Held(Holder::Own(task)) => Some(entry.ns.part(*parts.get(&task)?)),
        _ => None,
    });
    held.sum()
}

/// Where the program's own code allocates or helps: those are the lines to change.
fn lines(found: &Inspection<'_, '_>, process: ProcessId) -> Weights {
    let mut places = Weights::new();
    for class in [CLASS.id, super::allocation::CLASS.id] {
        if let Some(share) = Share::of(found.cpu, AccountId::of_class(class), process) {
            add(&mut places, &share.places);
        }
    }
    places
        .retain(|spot, _| spot.stack().is_some_and(|stack| found.case.sample(stack).own.is_some()));
    places
}

fn remedy(language: &str) -> &'static str {
    match language {
        "Go" => {
            "Keep values instead of pointers: []event for []*event, an index for a *string; then \
             there is less to mark and less to allocate. At once, against memory: GOGC=400, or \
             debug.SetGCPercent(400) with GOMEMLIMIT as a bound."
        }
        "Crystal" => {
            "Use structs instead of classes for small values, reuse buffers, and give the \
             collector room: GC_INITIAL_HEAP_SIZE=256M, or GC_FREE_SPACE_DIVISOR=1."
        }
        _ => "Keep fewer pointers alive and allocate less; or collect more rarely.",
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{computing, found, rows, weighed};
    use expect_test::expect;

    const FEED: &str = "main.feed (main.go:70) <- main.main (main.go:87)";

    #[test]
    fn assists_and_barriers_are_found_at_the_lines_that_allocate() {
        let assist = format!(
            "runtime.scanobject <- runtime.gcDrainN <- runtime.gcAssistAlloc1 <- runtime.mallocgc <- {FEED}"
        );
        let barrier = format!("runtime.wbBufFlush1 <- gcWriteBarrier <- {FEED}");
        let alloc =
            format!("runtime.mallocgcTiny <- runtime.mallocgc <- runtime.newobject <- {FEED}");
        let text = computing(
            "Go",
            &[(20, &assist), (10, &barrier), (20, &alloc), (50, "main.main (main.go:80)")],
        );
        expect![[r#"
            gc 50 % (22..50) @ main.feed:70: app spent 29.9 µs of its 100 µs in the collector (30 %).
            allocation 25 % (13..35) @ main.feed:70: app spent 19.9 µs of its 100 µs in the allocator (20 %).
        "#]].assert_eq(&found(&text));
        expect![[r#"
            net-work 49750
            gc 29850
            allocation 19900
            start-up 500 exec, linking and initialising
        "#]]
        .assert_eq(&rows(&text, 4));
    }

    #[test]
    fn background_workers_are_found_in_the_cpu_time_and_told() {
        let text = "image app path /bin/app language Go
            task 1 app
            0 on
            0 exec /bin/app
            0 main
            10 fork 2 thread
            3000 sample main.feed (main.go:70) <- main.main (main.go:87)
            9000 exit
            9000 off dead
            task 2 app
            20 on
            3000 sample runtime.scanobject <- runtime.gcDrain <- runtime.gcBgMarkWorker
            3001 sample runtime.scanobject <- runtime.gcDrain <- runtime.gcBgMarkWorker
            3002 sample runtime.scanobject <- runtime.gcDrain <- runtime.gcBgMarkWorker
            3003 sample runtime.scanobject <- runtime.gcDrain <- runtime.gcBgMarkWorker
            3004 sample runtime.scanobject <- runtime.gcDrain <- runtime.gcBgMarkWorker
            3005 sample runtime.scanobject <- runtime.gcDrain <- runtime.gcBgMarkWorker
            3006 sample runtime.scanobject <- runtime.gcDrain <- runtime.gcBgMarkWorker
            3007 sample runtime.scanobject <- runtime.gcDrain <- runtime.gcBgMarkWorker
            8000 exit
            8000 off dead";
        let report = weighed(text);
        let found = report.findings.iter().find(|f| f.class == "gc").unwrap();
        assert_eq!((found.saving_ns, found.high > 0.7), (0, true));
        expect!["12.4 µs more of CPU time on other threads meanwhile, 73 % of all CPU time"]
            .assert_eq(&found.evidence.join("\n"));
    }

    #[test]
    fn a_rare_collection_is_refused() {
        let mark = "runtime.scanobject <- runtime.gcDrain <- runtime.gcBgMarkWorker";
        assert_eq!(found(&computing("Go", &[(3, mark), (97, FEED)])), "");
    }
}
