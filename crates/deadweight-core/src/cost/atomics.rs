//! Atomic operations.
//!
//! # What it is
//! Memory is read, changed and written in one step on which all processors agree. This takes about
//! twenty times as long as an addition, and the code after it waits. If several threads change the
//! same place, each must fetch its cache line from the other. Mostly it is a reference count that
//! goes up and down again: a shared pointer passed by value.
//!
//! # How deadweight knows
//! The machine code of the functions that samples hit (`lock` prefixes, exclusive loads and
//! stores), and the inlined functions there, which show what is counted. For reference counts the
//! saving is an estimate. With one thread it was 0.4 to 1.3 times their share of the time, because
//! other work can run in parallel with the operations. With two threads that share the counts it
//! was 0.7 to 1.7 times their share, depending on the processor. Other atomic operations are a
//! candidate: only the program's author knows whether they are needed. If only one thread works,
//! `--prove` runs a copy without the `lock` prefixes. Not counting at all saves at least what that
//! copy saves, and often more.
//!
//! # What it is mistaken for
//! Counters and queues that threads must share; locks, whose waiting is *wait-lock*; atomic
//! operations of the language's runtime.
//!
//! # What to do
//! Borrow what another owner keeps alive. Move instead of copying. Keep one count per thread and
//! add them up at the end.
//!
//! # Seen in
//! Quotes that each held a counted pointer to their instrument, from two threads.
//! In `tests/programs`: `shared_by_value.cpp`, `arc_clones.rs`.

use super::{AccountId, Claim, Class, Inspection, false_sharing};
use crate::facts::call_site::CallSite;
use crate::facts::processes::ProcessId;
use crate::facts::user_time::UserSample;
use crate::inspect::Draft;
use crate::inspect::hot_code::hot_code;
use crate::inspect::shares::Share;
use deadweight_code::Role;
use deadweight_report::report::How;
use deadweight_report::wording::{percent, time};
use deadweight_trace::units::Ns;
use std::collections::BTreeMap;

pub(super) const CLASS: Class = Class {
    id: "atomics",
    source: include_str!("atomics.rs"),
    claim: Claim::Samples(claim),
    inspect,
};

/// Below this share of the wall time atomic operations are cheap.
const LARGE: f64 = 0.04;
/// Which part of the remaining time, per share of the operations, may wait for them if several
/// threads change the same counts: the most that was measured. On other processors no part of it
/// waited.
const WAITING: f64 = 1.2;
/// The smallest part of the share that was saved, in a loop whose division ran in parallel with the
/// operations.
const LEAST: f64 = 0.4;

/// What an atomic operation is for.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Purpose {
    /// The reference count of `std::shared_ptr`, `Arc`, or another counted pointer.
    Shared,
    /// A lock word.
    Lock,
    /// Any other operation of the program.
    Other,
}

fn claim(sample: &UserSample<'_>) -> bool {
    let inside = sample.own == Some(sample.waited.at);
    sample.waited.role == Role::Atomic
        && sample.own.is_some()
        && (inside || purpose(sample) == Purpose::Shared)
}

/// Judged by the functions from the operation to the program's own innermost function.
fn purpose(sample: &UserSample<'_>) -> Purpose {
    const SHARED: [&str; 8] = [
        "sync::Arc<",
        "_Sp_counted_",
        "shared_ptr",
        "__shared_count",
        "__shared_weak_count",
        "intrusive_ptr",
        "refcount",
        "RefCount",
    ];
    const LOCK: [&str; 5] = ["Mutex", "mutex", "RwLock", "Spinlock", "spin_lock"];
    // Go's inlined lock has a line of its file, and the name of the function around it.
    const LOCK_FILES: [&str; 2] = ["sync/mutex.go", "sync/rwmutex.go"];
    let frames = || sample.frames().take(sample.symbol_roles.len() + 1).map(|(_, frame)| frame);
    let names: Vec<&str> = frames().map(|frame| sample.symbols.name(frame.function)).collect();
    let named = |marks: &[&str]| names.iter().any(|n| marks.iter().any(|mark| n.contains(mark)));
    let mut files = frames().map(|frame| sample.symbols.name(frame.file));
    if named(&SHARED) {
        Purpose::Shared
    } else if named(&LOCK) || files.any(|file| LOCK_FILES.iter().any(|l| file.ends_with(l))) {
        Purpose::Lock
    } else {
        Purpose::Other
    }
}

fn inspect(found: &Inspection<'_, '_>) -> Vec<Draft> {
    found.drafts(CLASS.id, draft)
}

/// The purpose of most of the share's samples.
fn main_purpose(found: &Inspection<'_, '_>, share: &Share) -> Purpose {
    let mut purposes: BTreeMap<Purpose, u64> = BTreeMap::new();
    for (site, weight) in &share.places {
        if let Some(stack) = site.stack() {
            *purposes.entry(purpose(&found.facts.sample(stack))).or_default() += weight.amount;
        }
    }
    purposes.into_iter().max_by_key(|(_, n)| *n).map_or(Purpose::Other, |(purpose, _)| purpose)
}

/// Whether more than one thread of a process spends a tenth of its samples in the account.
fn is_shared(found: &Inspection<'_, '_>, account: AccountId, process: ProcessId) -> bool {
    let facts = found.facts;
    let tasks = facts.processes.get(process).tasks.iter();
    let busy = tasks.filter(|task| {
        let own = || facts.timeline.task(**task).samples.iter().filter(|s| !s.kernel);
        let claimed =
            own().filter(|s| facts.account_of_sample(CallSite::Stack(s.stack)) == account).count();
        claimed > 0 && claimed * 10 >= own().count()
    });
    busy.count() > 1
}

fn draft(found: &Inspection<'_, '_>, account: AccountId, process: ProcessId) -> Option<Draft> {
    let facts = found.facts;
    let net = found.wall.net();
    let share = Share::of(found.wall, account, process)?;
    if share.ns.share_of(net) < LARGE || false_sharing::explains(facts, process, account) {
        return None;
    }
    let purpose = main_purpose(found, &share);
    let shared = is_shared(found, account, process);
    let waiting = if shared { WAITING } else { 0.0 };
    let waits =
        |ns: Ns| ns + (share.whole.0 - ns).part((ns.share_of(share.whole.0) * waiting).min(1.0));
    let (low, high) = share.interval(share.ns);
    let counts = purpose == Purpose::Shared;
    let mut evidence = vec![format!(
        "{} of {} samples are in atomic operations{}",
        share.samples,
        share.whole.1,
        if shared {
            ", in several threads: if they work on one cache line, each must fetch what another one changed"
        } else {
            ""
        }
    )];
    evidence.extend(hot_code(facts, &share.places));
    Some(Draft {
        class: CLASS.id,
        moves: true,
        process,
        title: if counts { "counted references copied" } else { "atomic operations" }.into(),
        text: format!(
            "{} spent {} of its {} in atomic operations ({}){}.",
            facts.name(process),
            time(share.ns),
            time(net),
            percent(share.ns, net),
            match purpose {
                Purpose::Shared => ": reference counts go up and down again",
                Purpose::Lock => ", on the words of locks",
                Purpose::Other => ". Only the author of the program knows whether they are needed",
            },
        ),
        amount: share.ns,
        saving: share.ns,
        range: if counts { (low.part(LEAST), waits(high)) } else { (Ns::ZERO, waits(high)) },
        how: if counts { How::Estimate } else { How::Candidate },
        sites: share.sites(facts.symbols()),
        evidence,
        remedy: remedy(&facts.processes.get(process).language, purpose).into(),
    })
}

fn remedy(language: &str, purpose: Purpose) -> &'static str {
    match (language, purpose) {
        ("Rust", Purpose::Shared) => {
            "Borrow it: return &T or &Arc<T> instead of Arc<T>, and let the holder keep the Arc; \
             clone once per thread, not once per item; use Rc where only one thread has it."
        }
        ("C++", Purpose::Shared) => {
            "Pass const T & or const std::shared_ptr<T> &, and std::move the last copy; keep the \
             shared_ptr with the owner and hand out plain pointers."
        }
        (_, Purpose::Shared) => {
            "Borrow what another owner keeps alive instead of counting references."
        }
        (_, Purpose::Lock) => {
            "Take the lock once per batch instead of once per item, or give each thread data of \
             its own."
        }
        ("Go", Purpose::Other) => {
            "Count in a local variable and add it up at the end, or use one counter per goroutine, \
             each on a cache line of its own."
        }
        (_, Purpose::Other) => {
            "Count in a local variable and add it up at the end, or use one counter per thread, \
             each on a cache line of its own; relaxed loads and stores where no addition is needed."
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{coded, found};
    use expect_test::expect;

    // void count(long *n) { __atomic_fetch_add(n, 1, __ATOMIC_SEQ_CST); }
    const COUNT: &str = "count @0x1460 f048830701 c3";

    #[test]
    fn a_clone_per_item_is_found() {
        let text = coded(
            "Rust",
            COUNT,
            &[
                (
                    40,
                    "\"<alloc::sync::Arc<T> as core::clone::Clone>::clone\" (/rustc/1/library/alloc/src/sync.rs:24) in lookup (t.rs:26) in work (t.rs:77) @0x1465 <- main (t.rs:90)",
                ),
                (60, "work (t.rs:78) <- main (t.rs:90)"),
            ],
        );
        expect![[r#"
            atomics 40 % (11..57) @ lookup:26: app spent 39.8 µs of its 100 µs in atomic operations (40 %): reference counts go up and down again.
        "#]].assert_eq(&found(&text));
    }

    #[test]
    fn the_programs_own_atomics_are_found_as_candidates() {
        let text = coded(
            "C",
            COUNT,
            &[(40, "count (a.c:2) @0x1465 <- main (a.c:9)"), (60, "work (a.c:5) <- main (a.c:9)")],
        );
        expect![[r#"
            atomics 40 % (0..57) @ count:2: app spent 39.8 µs of its 100 µs in atomic operations (40 %). Only the author of the program knows whether they are needed.
        "#]].assert_eq(&found(&text));
    }

    #[test]
    fn an_inlined_lock_is_found_as_a_lock_and_refused_as_a_counter() {
        let said = |file: &str| {
            let inside = format!("token.unpack ({file}:63) @0x1465 <- main.main (a.go:9)");
            found(&coded("Go", COUNT, &[(40, &inside), (60, "main.work (a.go:5) <- main.main")]))
        };
        let lock = said("internal/sync/mutex.go");
        assert!(lock.contains("(40 %), on the words of locks."), "{lock}");
        let counter = said("token/mutex_count.go");
        assert!(counter.contains("(40 %). Only the author"), "{counter}");
    }

    #[test]
    fn a_runtimes_own_atomics_and_a_small_share_are_refused() {
        let lock = "runtime.lock2 @0x1465 <- runtime.chansend <- main.send (a.go:2) <- main.main";
        let text = coded("Go", COUNT, &[(60, lock), (40, "main.work (a.go:5) <- main.main")]);
        assert_eq!(found(&text), "");
        let few = "count (a.c:2) @0x1465 <- main (a.c:9)";
        let text = coded("C", COUNT, &[(3, few), (97, "work (a.c:5) <- main (a.c:9)")]);
        assert_eq!(found(&text), "");
    }
}
