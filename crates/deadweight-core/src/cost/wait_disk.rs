//! Waiting for the disk.
//!
//! # What it is
//! The program is blocked until storage has read or written something. The most expensive form is a
//! sync per record: each sync waits until the device has stored everything.
//!
//! # How deadweight knows
//! The kernel stack at the switch-out shows block I/O, or the wait happened inside `fsync` or a
//! similar call. Both ends of the wait are exact. The kernel's own work in frequent syncs is
//! counted too: it goes away with the syncs.
//!
//! # What it is mistaken for
//! One sync at the end is the price of durability: a row of the ledger, no finding. Reads from the
//! page cache do not wait; they are system calls.
//!
//! # What to do
//! Sync once per batch, or when the file is complete. Decide what a crash may lose: this is about
//! durability, not only about speed. For reads: read ahead, read large blocks, or keep the data in
//! memory.
//!
//! # Seen in
//! SQLite with one transaction per insert; append-only logs.
//! In `tests/programs`: `synced_rows.rs`.

use super::{AccountId, Claim, Class, Inspection};
use crate::account::{Detail, Slice, What};
use crate::facts::Facts;
use crate::facts::call_groups::READS;
use crate::facts::call_site::{CallSite, Weights, add, sites};
use crate::facts::processes::ProcessId;
use crate::inspect::{Draft, Sum, processes_in};
use crate::timeline::Block;
use crate::timeline::kernel_stacks::WaitsFor;
use deadweight_report::report::How;
use deadweight_report::wording::{count, things, time};
use deadweight_trace::units::Ns;
use std::collections::BTreeSet;

pub(super) const CLASS: Class = Class {
    id: "wait-disk",
    source: include_str!("wait_disk.rs"),
    claim: Claim::Slices(claim),
    inspect,
};

/// Fewer syncs than this are not a sync per record.
const FREQUENT: u64 = 5;
/// Calls that write to files. `sendfile` and `splice` may write to a socket: rather too many bytes per sync than
/// too few.
const WRITES: &[&str] = &[
    "write",
    "pwrite64",
    "writev",
    "pwritev",
    "pwritev2",
    "sendfile",
    "splice",
    "copy_file_range",
];
/// More bytes than this between two syncs are a batch, not a record.
const RECORD: u64 = 65_536;

fn is_sync(name: &str) -> bool {
    matches!(name, "fsync" | "fdatasync" | "sync_file_range" | "msync" | "sync" | "syncfs")
}

fn claim(facts: &Facts<'_>, slice: &Slice) -> bool {
    match slice.what {
        What::Wait(block) => {
            let block = &facts.timeline.blocks[block as usize];
            block.waits_for == WaitsFor::Disk || is_sync(facts.call_of(block))
        }
        What::Call(group, _) => {
            let group = facts.call_groups.get(group);
            is_sync(group.name) && group.calls >= FREQUENT
        }
        _ => false,
    }
}

fn inspect(found: &Inspection<'_, '_>) -> Vec<Draft> {
    let account = AccountId::of_class(CLASS.id);
    processes_in(found.wall.in_account(account))
        .into_iter()
        .flat_map(|process| {
            let [syncs, others] = sums(found, account, process);
            let per_sync = per_sync(found, process, &syncs);
            // If there are only few syncs, they are waits like others.
            let others = if per_sync.is_some() { others } else { joined(syncs, others) };
            per_sync.into_iter().chain(without_syncs(found, process, &others))
        })
        .collect()
}

/// The account's time in a process: in syncs, and in other waits for the disk.
fn sums(found: &Inspection<'_, '_>, account: AccountId, process: ProcessId) -> [Sum; 2] {
    let facts = found.facts;
    let in_sync = |block: &&Block| is_sync(facts.call_of(block));
    let stacks: BTreeSet<CallSite> =
        facts.waits_of(process).filter(in_sync).map(|block| CallSite::Stack(block.site)).collect();
    let mut sums = [Sum::default(), Sum::default()];
    for entry in found.wall.of_process(account, process) {
        let calls = matches!(entry.detail, Detail::Calls(_));
        let (syncs, others): (Weights, Weights) =
            entry.places().iter().partition(|(site, _)| calls || stacks.contains(site));
        let amount = |places: &Weights| Ns(places.values().map(|w| w.amount).sum());
        let all = amount(&syncs) + amount(&others);
        let part = if calls { 1.0 } else { amount(&syncs).share_of(all) };
        let (ns, alone) = (entry.ns.part(part), entry.alone.part(part));
        let parts = [(ns, alone, syncs), (entry.ns - ns, entry.alone - alone, others)];
        for (sum, (ns, alone, places)) in sums.iter_mut().zip(parts) {
            sum.ns += ns;
            sum.alone += alone;
            sum.count += places.values().map(|w| w.count).sum::<u64>();
            add(&mut sum.places, &places);
        }
    }
    sums
}

fn joined(mut sum: Sum, more: Sum) -> Sum {
    sum.ns += more.ns;
    sum.alone += more.alone;
    sum.count += more.count;
    add(&mut sum.places, &more.places);
    sum
}

/// The finding about many syncs.
fn per_sync(found: &Inspection<'_, '_>, process: ProcessId, sum: &Sum) -> Option<Draft> {
    let facts = found.facts;
    let call_groups = || facts.call_groups.of_process(process).map(|(_, group)| group);
    let syncs = || call_groups().filter(|f| is_sync(f.name));
    let calls: u64 = syncs().map(|f| f.calls).sum();
    let call = syncs().max_by_key(|f| f.calls).map_or("fsync", |f| f.name);
    if calls < FREQUENT || sum.ns == Ns::ZERO {
        return None;
    }
    let bytes: u64 = call_groups().filter(|f| WRITES.contains(&f.name)).map(|f| f.bytes).sum();
    let small = bytes / calls < RECORD;
    // The last sync must remain.
    let saving = Ns(sum.ns.0 - sum.ns.0 / calls);
    Some(Draft {
        class: CLASS.id,
        moves: true,
        process,
        title: if small {
            format!("{call} after every record")
        } else {
            format!("{call} {}", things(calls, "time"))
        },
        text: format!(
            "{} called {call} {} and waited for the disk each time, {} on average.",
            facts.name(process),
            things(calls, "time"),
            time(Ns(sum.ns.0 / calls)),
        ),
        amount: sum.ns,
        saving,
        range: (saving - (sum.ns - sum.alone), saving),
        how: How::Exact,
        sites: sites(facts.symbols(), &sum.places, calls),
        evidence: vec![format!("{} bytes written per {call}", count(bytes / calls))],
        remedy: format!(
            "Call {call} once per batch or when the file is complete; a crash then loses the \
             records since the last {call}. If each record must be durable, several writers can \
             share one {call} (group commit)."
        ),
    })
}

/// The finding about other waits for storage.
fn without_syncs(found: &Inspection<'_, '_>, process: ProcessId, sum: &Sum) -> Option<Draft> {
    let facts = found.facts;
    let name = facts.name(process);
    let cold = reading(facts, process).share_of(sum.ns) > 0.5;
    (sum.count >= FREQUENT).then(|| Draft {
        class: CLASS.id,
        moves: true,
        process,
        title: if cold {
            "files are read for the first time".into()
        } else {
            "waits for the disk".into()
        },
        text: format!(
            "{name} was blocked {} until storage answered{}.",
            things(sum.count, "time"),
            if cold {
                ", mostly for files that were not in memory yet (a cold page cache)"
            } else {
                ""
            }
        ),
        amount: sum.ns,
        saving: sum.alone,
        range: (Ns::ZERO, sum.ns),
        how: How::Exact,
        sites: sites(facts.symbols(), &sum.places, sum.count),
        evidence: vec![format!("{} per wait on average", time(Ns(sum.ns.0 / sum.count.max(1))))],
        remedy: if cold { COLD } else { REMEDY }.into(),
    })
}

const REMEDY: &str = "Read in larger blocks and ahead of need (posix_fadvise, readahead), or keep \
                      the data in memory; for writes, leave the flushing to the kernel.";
const COLD: &str = "A second run finds the files in memory: measure with -w 1 if that is the usual \
                    facts. If the first run matters, read less, in larger blocks, or ahead of need \
                    (posix_fadvise, readahead).";

/// How long a process waited for storage in order to read.
fn reading(facts: &Facts<'_>, process: ProcessId) -> Ns {
    let reads = |block: &&Block| {
        block.waits_for == WaitsFor::Disk
            && match facts.call_of(block) {
                // A page of a mapped file, or of the program itself.
                "" => true,
                name => READS.contains(&name) || FILE_CALLS.contains(&name),
            }
    };
    facts.waits_of(process).filter(reads).map(|block| block.end - block.start).sum()
}

/// Calls that read a file or its metadata, besides [`READS`].
const FILE_CALLS: &[&str] = &[
    "pread64",
    "preadv",
    "open",
    "openat",
    "stat",
    "lstat",
    "newfstatat",
    "statx",
    "access",
    "faccessat",
    "faccessat2",
    "readlink",
    "readlinkat",
    "getdents64",
    "getdents",
    "execve",
    "mmap",
];

#[cfg(test)]
mod tests {
    use super::super::tests::{found, repeat, weighed};
    use expect_test::expect;

    fn store(puts: u64) -> String {
        let put = |at| {
            format!(
                "{} syscall write 3 600
                 {} back 600
                 {} syscall fdatasync 3
                 {} off blocked : submit_bio_wait from put (vault.rs:35) <- main
                 {} on woken-by interrupt : blk_done_softirq < common_interrupt
                 {} back 0\n",
                at,
                at + 10,
                at + 50,
                at + 50,
                at + 180,
                at + 190
            )
        };
        let end = puts * 200 + 400;
        format!("task 1 vault\n0 on\n{}{end} exit\n{end} off dead", repeat(puts, 0, 200, put))
    }

    #[test]
    fn a_sync_per_record_is_found() {
        expect![[r#"
            wait-disk 60 % (60..60) @ put:35: vault called fdatasync 20 times and waited for the disk each time, 140 ns on average.
        "#]]
        .assert_eq(&found(&store(20)));
    }

    #[test]
    fn bytes_per_sync_are_found_whichever_call_wrote_them() {
        let bytes = |call: &str| {
            let report = weighed(&store(20).replace("syscall write 3 600", call));
            report.findings[0].evidence[0].clone()
        };
        assert_eq!(bytes("syscall write 3 600"), "600 bytes written per fdatasync");
        assert_eq!(bytes("syscall writev 3 2"), "600 bytes written per fdatasync");
        assert_eq!(bytes("syscall pwritev2 3 2"), "600 bytes written per fdatasync");
    }

    #[test]
    fn reading_cold_files_says_so() {
        let read = |at| {
            format!(
                "{} syscall pread64 3 65536
                 {} off blocked : io_schedule < folio_wait_bit from load (pack.c:9) <- main
                 {} on woken-by interrupt : blk_done_softirq < common_interrupt
                 {} back 65536\n",
                at + 10,
                at + 20,
                at + 150,
                at + 190
            )
        };
        let text =
            format!("task 1 git\n0 on\n{}4000 exit\n4000 off dead", repeat(20, 0, 200, read));
        expect![[r#"
            wait-disk 65 % (0..65) @ load:9: git was blocked 20 times until storage answered, mostly for files that were not in memory yet (a cold page cache).
        "#]].assert_eq(&found(&text));
    }

    #[test]
    fn one_sync_at_the_end_is_refused() {
        assert_eq!(found(&store(1)), "");
    }
}
