//! Waiting for the disk.
//!
//! # What it is
//! The program is blocked until storage has read or written something. The most expensive form is a
//! sync per record: each sync waits until the device has stored everything.
//!
//! # How deadweight knows
//! The kernel stack at the switch-out shows block I/O, or the wait happened inside `fsync` or a
//! similar call. Both ends of the wait are exact. The kernel's own work in frequent syncs is
//! counted too: it goes away with the syncs. Files that are opened with O_DSYNC, O_SYNC or O_DIRECT are known by the call
//! that opened them.
//!
//! # What it is mistaken for
//! One sync at the end, or one for each finished file, is the price of durability: a row of the
//! ledger, no finding. Reads from the page cache do not wait; they are system calls. A file that is
//! removed, replaced or cut off waits too: its blocks are freed, and nothing is read.
//!
//! # What to do
//! Sync once per batch, or when the file is complete. Decide what a crash may lose: this is about
//! durability, not only about speed. For reads: read ahead, read large blocks, or keep the data in
//! memory. For files that are replaced over and over: keep one open and overwrite it.
//!
//! # Seen in
//! SQLite with one transaction per insert; append-only logs.
//! In `tests/programs`: `synced_rows.rs`.

mod calls;
mod others;
mod transaction;

use super::{AccountId, Claim, Class, Inspection};
use crate::account::{Detail, Slice, What};
use crate::facts::Facts;
use crate::facts::call_groups::CallGroup;
use crate::facts::call_site::{CallSite, Weights, add, sites};
use crate::facts::processes::ProcessId;
use crate::inspect::{Draft, Sum, processes_in};
use crate::timeline::Block;
use crate::timeline::kernel_stacks::WaitsFor;
use calls::{DiskCalls, OfProcess, SLOW, USUAL};
use deadweight_report::report::How;
use deadweight_report::wording::{count, things, time};
use deadweight_trace::units::Ns;
use std::collections::BTreeMap;

pub(super) const CLASS: Class = Class {
    id: "wait-disk",
    source: include_str!("wait_disk.rs"),
    claim: Claim::Slices(claim),
    inspect,
};

/// Fewer syncs than this are not a sync per record.
const FREQUENT: u64 = 5;
/// More bytes than this between two syncs are a batch, not a record.
const RECORD: u64 = 65_536;

/// Calls that make files durable.
pub(crate) const SYNCS: [&str; 6] =
    ["fdatasync", "fsync", "msync", "sync", "sync_file_range", "syncfs"];

fn is_sync(name: &str) -> bool {
    SYNCS.contains(&name)
}

fn claim(facts: &Facts<'_>, slice: &Slice) -> bool {
    match slice.what {
        What::Wait(block) => {
            let block = &facts.timeline.blocks[block as usize];
            let durable = group_of(facts, block).is_some_and(|group| group.durable);
            block.waits_for == WaitsFor::Disk || is_sync(facts.call_of(block)) || durable
        }
        What::Call(group, _) => {
            let group = facts.call_groups.get(group);
            (is_sync(group.name) || group.durable) && group.calls >= FREQUENT
        }
        _ => false,
    }
}

/// The group of the call that a wait happened in.
fn group_of<'f>(facts: &'f Facts<'_>, block: &Block) -> Option<&'f CallGroup> {
    let group = facts.call_groups.id(block.call?)?;
    Some(facts.call_groups.get(group))
}

fn inspect(found: &Inspection<'_, '_>) -> Vec<Draft> {
    let account = AccountId::of_class(CLASS.id);
    let calls = DiskCalls::gather(found.facts);
    let processes = processes_in(found.wall.in_account(account)).into_iter();
    processes
        .flat_map(|process| {
            let mut sums = sums(found, account, process);
            let mut take = |kind| sums.remove(&kind).unwrap_or_default();
            let [syncs, durable, frees, rest] =
                [Kind::Sync, Kind::Durable, Kind::Free, Kind::Rest].map(&mut take);
            [
                per_sync(found, calls.of(process), process, &syncs, frees.ns),
                others::durable(found, process, &durable),
                others::frees(found, process, &frees),
                others::rest(found, process, &rest),
            ]
        })
        .flatten()
        .collect()
}

/// Why a call waits for the disk.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// It asks for that: `fsync` and its kin.
    Sync,
    /// A write to a file that was opened so that each write waits.
    Durable,
    /// It removes, replaces or cuts off a file.
    Free,
    /// It reads, or another reason.
    Rest,
}

fn kind(facts: &Facts<'_>, block: &Block) -> Kind {
    let name = facts.call_of(block);
    match block.call {
        _ if is_sync(name) => Kind::Sync,
        _ if group_of(facts, block).is_some_and(|group| group.durable) => Kind::Durable,
        Some(call)
            if calls::frees(name, facts.timeline.args(&facts.timeline.calls[call.index()])) =>
        {
            Kind::Free
        }
        _ => Kind::Rest,
    }
}

/// The account's time in a process by kind.
fn sums(found: &Inspection<'_, '_>, account: AccountId, process: ProcessId) -> BTreeMap<Kind, Sum> {
    let facts = found.facts;
    let mut kinds: BTreeMap<CallSite, Kind> = BTreeMap::new();
    for block in facts.waits_of(process) {
        let kind = kind(facts, block);
        let site = kinds.entry(CallSite::Stack(block.site)).or_insert(kind);
        // Without stacks, calls of several kinds have one site.
        *site = kind.min(*site);
    }
    let mut sums: BTreeMap<Kind, Sum> = BTreeMap::new();
    for entry in found.wall.of_process(account, process) {
        let in_calls = match entry.detail {
            Detail::Calls(group) if facts.call_groups.get(group).durable => Some(Kind::Durable),
            Detail::Calls(_) => Some(Kind::Sync),
            _ => None,
        };
        let mut parts: BTreeMap<Kind, Weights> = BTreeMap::new();
        for (site, weight) in entry.places() {
            let kind = in_calls.or_else(|| kinds.get(site).copied());
            parts.entry(kind.unwrap_or(Kind::Rest)).or_default().insert(*site, *weight);
        }
        if parts.is_empty() {
            parts.insert(in_calls.unwrap_or(Kind::Rest), Weights::new());
        }
        let amount = |places: &Weights| Ns(places.values().map(|w| w.amount).sum());
        let all: Ns = parts.values().map(amount).sum();
        let alone = parts.len() == 1;
        for (kind, places) in parts {
            let part = if alone { 1.0 } else { amount(&places).share_of(all) };
            let sum = sums.entry(kind).or_default();
            sum.ns += entry.ns.part(part);
            sum.alone += entry.alone.part(part);
            sum.count += places.values().map(|w| w.count).sum::<u64>();
            add(&mut sum.places, &places);
        }
    }
    sums
}

/// The finding about many syncs of one thing. Files that are removed wait as long as `frees` until their blocks are
/// free; without syncs most of them, as journals, never get blocks: file systems allocate them when they write.
fn per_sync(
    found: &Inspection<'_, '_>,
    made: Option<&OfProcess>,
    process: ProcessId,
    sum: &Sum,
    frees: Ns,
) -> Option<Draft> {
    let facts = found.facts;
    let made = made.filter(|made| made.is_per_record() && sum.ns > Ns::ZERO)?;
    let calls = made.syncs();
    let (call, full) = made.main_sync()?;
    let small = made.bytes / full < RECORD;
    // The last sync must remain.
    let saving = Ns(sum.ns.0 - sum.ns.0 / calls);
    let around = transaction::around(found, process, calls);
    let beside = frees + around;
    let mut evidence = vec![format!("{} bytes written per {call}", count(made.bytes / full))];
    if around > Ns::ZERO {
        let words = "a transaction for several records would make fewer of them";
        evidence.push(format!("{} in calls that come with the syncs: {words}", time(around)));
    }
    Some(Draft {
        class: CLASS.id,
        moves: true,
        process,
        title: if small {
            format!("frequent {call}")
        } else {
            format!("{call} {}", things(made.by_name[call], "time"))
        },
        text: format!(
            "{} called {} and waited for the disk, {} per call.",
            facts.name(process),
            made.wording(call),
            time(made.each()),
        ),
        amount: sum.ns,
        saving: saving - made.stored_at(USUAL),
        range: (saving - (sum.ns - sum.alone) - made.stored_at(SLOW), saving + beside),
        how: if beside > Ns::ZERO { How::Estimate } else { How::Exact },
        sites: sites(facts.symbols(), &sum.places, calls),
        evidence,
        remedy: calls::remedy(call),
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::{found, repeat};
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
            wait-disk 60 % (60..60) @ put:35: vault called fdatasync 20 times and waited for the disk, 140 ns per call.
        "#]]
        .assert_eq(&found(&store(20)));
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
            wait-disk 65 % (0..70) @ load:9: git was blocked 20 times until storage answered, mostly for files that were not in memory yet (a cold page cache).
        "#]].assert_eq(&found(&text));
    }

    #[test]
    fn files_that_the_program_drops_are_found_as_such_and_other_advice_is_refused() {
        let read = |file: u64, advice: u64| {
            let read = |at| {
                format!(
                    "{} syscall pread64 3 65536
                     {} off blocked : io_schedule < folio_wait_bit from load (pack.c:9) <- main
                     {} on woken-by interrupt : blk_done_softirq < common_interrupt
                     {} back 65536\n{} syscall fadvise64 {file} 0 0 {advice}\n{} back 0\n",
                    at + 10,
                    at + 20,
                    at + 150,
                    at + 170,
                    at + 175,
                    at + 190
                )
            };
            let text = format!(
                "task 1 borg\n0 on\n0 main\n1 syscall openat 4294967196 4096 0\n2 back 3\n\
                 3 syscall openat 4294967196 8192 1\n4 back 4\n{}4000 exit\n4000 off dead",
                repeat(20, 0, 200, read)
            );
            super::super::tests::weighed(&text).findings[0].title.clone()
        };
        assert_eq!(read(3, 4), "files that were dropped from memory are read again");
        assert_eq!(read(3, 2), "files are read for the first time");
        assert_eq!(read(4, 4), "files are read for the first time", "it drops what it writes");
    }

    #[test]
    fn one_sync_at_the_end_is_refused() {
        assert_eq!(found(&store(1)), "");
    }

    #[test]
    fn a_sync_for_each_finished_file_is_refused() {
        let file = |at| {
            format!(
                "{at} syscall openat 4294967196 4096 577\n{} back 3\n{} syscall write 3 32768\n{} back 32768
                 {} syscall fsync 3\n{} off blocked : submit_bio_wait from save (files.c:13) <- main
                 {} on woken-by interrupt : blk_done_softirq < common_interrupt
                 {} back 0\n{} syscall close 3\n{} back 0\n",
                at + 5,
                at + 10,
                at + 20,
                at + 30,
                at + 31,
                at + 170,
                at + 175,
                at + 180,
                at + 185
            )
        };
        let end = "4200 exit\n4200 off dead";
        let each = format!("task 1 pack\n0 on\n{}{end}", repeat(20, 0, 200, file));
        assert_eq!(found(&each), "");
        // The same file, opened once: each record is synced.
        let opened = "1 syscall openat 4294967196 4096 577\n2 back 3\n";
        let same = |at| {
            let lines = file(at);
            let lines = lines.split_once("back 3\n").unwrap().1;
            lines.split_once(&format!("{} syscall close", at + 180)).unwrap().0.to_owned()
        };
        let same = format!("task 1 pack\n0 on\n{opened}{}{end}", repeat(20, 0, 200, same));
        assert!(found(&same).contains("called fsync 20 times"), "{}", found(&same));
    }

    #[test]
    fn another_kind_of_sync_is_found_under_its_own_name() {
        let ranged = store(20).replace("syscall fdatasync 3", "syscall sync_file_range 3 0 0 2");
        let more = store(20).replace("4400", "8400");
        let (first, _) = ranged.split_once("4400").unwrap();
        let shifted: String = more
            .lines()
            .skip(2)
            .map(|line| {
                let line = line.trim();
                let (at, rest) = line.split_once(' ').unwrap();
                let at: u64 = at.parse().unwrap();
                let at = if at < 4400 { at + 4000 } else { at };
                format!("{at} {rest}\n")
            })
            .collect();
        let found = found(&format!("{first}{shifted}"));
        assert!(
            found.contains("called fdatasync 20 times and sync_file_range 20 times"),
            "{found}"
        );
    }

    /// A wait for the disk in this call, 20 times.
    fn waiting(call: &str) -> String {
        let wait = |at| {
            format!(
                "{} syscall {call}
                 {} off blocked : submit_bio_wait < blkdev_issue_discard from save (edit.c:9) <- main
                 {} on woken-by interrupt : blk_done_softirq < common_interrupt
                 {} back 16384\n",
                at + 10,
                at + 20,
                at + 150,
                at + 190
            )
        };
        format!("task 1 edit\n0 on\n{}4000 exit\n4000 off dead", repeat(20, 0, 200, wait))
    }

    fn advice(text: &str) -> String {
        let findings = super::super::tests::weighed(text).findings;
        findings.first().map_or(String::new(), |f| format!("{}: {}", f.title, f.remedy))
    }

    #[test]
    fn freed_blocks_are_found_and_no_reading_is_advised() {
        for (call, name) in [
            ("openat 4294967196 4096 577", "openat"),
            ("unlink 4096", "unlink"),
            ("rename 4096 8192", "rename"),
            ("close 3", "close"),
        ] {
            let text = waiting(call);
            assert!(
                found(&text).contains(&format!("20 times in {name} until")),
                "{}",
                found(&text)
            );
            let advice = advice(&text);
            assert!(advice.starts_with("replacing or removing files"), "{advice}");
            assert!(!advice.contains("ahead of need"), "{advice}");
        }
        assert!(advice(&waiting("openat 4294967196 4096 0")).contains("ahead of need"));
    }

    #[test]
    fn writes_that_wait_by_the_descriptors_flag_are_found() {
        let opened = |flags: u64| {
            let open = format!("0 on\n1 syscall openat 4294967196 4096 {flags}\n2 back 3");
            waiting("write 3 16384").replacen("0 on", &open, 1)
        };
        assert!(advice(&opened(0o10_001)).contains("O_DSYNC"), "{}", advice(&opened(0o10_001)));
        // As `dd` does: the descriptor gets the number of the standard output.
        let renamed = |flags: u64, from: u64| {
            let open = format!(
                "0 on\n1 syscall openat 4294967196 4096 {flags}\n2 back 3\n3 syscall dup2 {from} 1\n4 back 1"
            );
            waiting("write 1 16384").replacen("0 on", &open, 1)
        };
        assert!(advice(&renamed(0o10_001, 3)).contains("O_DSYNC"));
        assert!(!advice(&renamed(0o10_001, 7)).contains("O_DSYNC"), "another file's");
        let plain = advice(&opened(1));
        assert!(!plain.contains("O_DSYNC") && !plain.contains("ahead of need"), "{plain}");
    }

    /// 200 records of 32 bytes to a file that was opened with these flags: 4 µs of kernel, 5 of waiting.
    fn records(flags: u64) -> String {
        let write = |at: u64| {
            format!(
                "{at} syscall write 3 32
                 {} off blocked : submit_bio_wait from Append (journal.go:31) <- main
                 {} on woken-by interrupt : blk_done_softirq < common_interrupt
                 {} back 32\n",
                at + 3_000,
                at + 8_000,
                at + 9_000
            )
        };
        let writes = repeat(200, 1_000, 12_000, write);
        format!(
            "task 1 walog\n0 on\n0 main\n1 syscall openat 4294967196 4096 {flags}\n2 back 3\n{writes}\
             2_500_000 exit\n2_500_000 off dead"
        )
    }

    #[test]
    fn the_whole_time_of_a_synchronous_write_is_found_here() {
        for flags in [0o10_001, 0o4_010_001] {
            let said = found(&records(flags));
            assert!(
                said.starts_with("wait-disk 72 % (72..72) @ Append:31: walog wrote 200"),
                "{said}"
            );
            assert!(!said.contains("tiny-writes"), "{said}");
        }
    }

    #[test]
    fn the_kernels_part_of_other_writes_is_refused() {
        let said = found(&records(1));
        assert!(said.contains("wait-disk 40 %") && !said.contains("O_DSYNC"), "{said}");
    }

    #[test]
    fn what_files_that_are_removed_wait_is_found_in_the_range_of_the_syncs() {
        // Each sync, of 130 ns blocked, is followed by an unlink that waits 60.
        let put = |at: u64| {
            format!(
                "{at} syscall write 3 600\n{} back 600\n{} syscall fdatasync 3
                 {} off blocked : submit_bio_wait from put (db.c:35) <- main
                 {} on woken-by interrupt : blk_done_softirq < common_interrupt\n{} back 0
                 {} syscall unlink 4096
                 {} off blocked : submit_bio_wait < blkdev_issue_discard from commit (db.c:40) <- main
                 {} on woken-by interrupt : blk_done_softirq < common_interrupt\n{} back 0\n",
                at + 10,
                at + 50,
                at + 50,
                at + 180,
                at + 190,
                at + 200,
                at + 210,
                at + 270,
                at + 280
            )
        };
        let text = format!("task 1 db\n0 on\n{}8000 exit\n8000 off dead", repeat(20, 0, 400, put));
        let said = found(&text);
        assert!(said.starts_with("wait-disk 33 % (30..62) @ put:35"), "{said}");
        assert!(said.contains("20 times in unlink"), "{said}");
    }
}
