//! The calls around syncs with which a transaction begins and ends: a database locks its file, writes a journal, and removes
//! it. One transaction for many records makes them once, too.

use super::calls::{CHANGES_FILES, is_write};
use crate::account::{AccountId, Detail};
use crate::cost::Inspection;
use crate::facts::call_groups::CallGroup;
use crate::facts::processes::ProcessId;
use deadweight_trace::units::Ns;

/// Calls that lock a file or make a journal. Those that end one: [`CHANGES_FILES`].
const BEGINS: &[&str] = &["fcntl", "flock", "openat", "open"];
/// Calls that come with these.
const BESIDE: &[&str] =
    &["fstat", "newfstatat", "stat", "lstat", "close", "access", "faccessat2", "lseek", "pread64"];
/// A transaction has at most so many syncs: of the journal, its header, the folder and the database, in two files.
const SYNCS: u64 = 8;

/// Their time on the path, if there are as many as transactions. None where every record is only written and synced.
pub(super) fn around(found: &Inspection<'_, '_>, process: ProcessId, syncs: u64) -> Ns {
    let disk = AccountId::of_class(super::CLASS.id);
    let calls: Vec<(&CallGroup, Ns)> = found
        .wall
        .in_process(process)
        .filter(|entry| entry.account != disk)
        .filter_map(|entry| match entry.detail {
            Detail::Calls(group) => Some((found.facts.call_groups.get(group), entry.ns)),
            _ => None,
        })
        .filter(|(group, _)| !group.starting && group.calls.saturating_mul(SYNCS) >= syncs)
        .collect();
    let bounds = |name| BEGINS.contains(&name) || CHANGES_FILES.contains(&name);
    if !calls.iter().any(|(group, _)| bounds(group.name)) {
        return Ns::ZERO;
    }
    let belongs = |name| bounds(name) || BESIDE.contains(&name) || is_write(name);
    calls.iter().filter(|(group, _)| belongs(group.name)).map(|(_, ns)| *ns).sum()
}

#[cfg(test)]
mod tests {
    use crate::cost::tests::{found, repeat};
    use expect_test::expect;

    /// Records with a journal that is made and removed, or with a look at the clock.
    #[test]
    fn what_a_transaction_does_besides_is_at_the_upper_end() {
        let with = |call: &str| {
            let put = |at: u64| {
                format!(
                    "{at} syscall {call}\n{} back 0\n{} syscall fdatasync 3
                     {} off blocked : submit_bio_wait from put (vault.rs:35) <- main
                     {} on woken-by interrupt : blk_done_softirq < common_interrupt\n{} back 0\n",
                    at + 40,
                    at + 50,
                    at + 51,
                    at + 180,
                    at + 190
                )
            };
            found(&format!(
                "task 1 vault\n0 on\n{}4400 exit\n4400 off dead",
                repeat(20, 0, 200, put)
            ))
        };
        expect![[r#"
            wait-disk 60 % (54..82) @ put:35: vault called fdatasync 20 times and waited for the disk, 140 ns per call.
        "#]]
        .assert_eq(&with("unlink 1"));
        expect![[r#"
            wait-disk 60 % (60..60) @ put:35: vault called fdatasync 20 times and waited for the disk, 140 ns per call.
        "#]]
        .assert_eq(&with("getrandom 1 8"));
    }
}
