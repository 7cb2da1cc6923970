//! The accounts of a ledger: one table with the name, the group and the kind of each.
//!
//! Not for what an account holds: the cost classes of `deadweight-core` decide it. Their list has the same order.

/// An account: a row of the ledger. The accounts of cost classes come first, then the fixed ones.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AccountId(u8);

/// How time is charged to an account: as whole slices, or by samples.
#[derive(Copy, Clone, PartialEq, Eq)]
enum ChargedBy {
    /// As whole slices, with both ends in the recording.
    Slices,
    /// The program's own time, divided by samples.
    Samples,
}
use ChargedBy::{Samples, Slices};

/// How many accounts belong to cost classes. They come first, in the order of precedence.
const OF_CLASSES: u8 = 37;

/// Of each account: its name, its group (the word that its row begins with; several rows may have the same), and
/// how it is charged.
const ACCOUNTS: [(&str, &str, ChargedBy); 46] = [
    ("wait-input", "waiting", Slices),
    ("wait-output", "waiting", Slices),
    ("wait-lock", "waiting", Slices),
    ("wait-disk", "waiting", Slices),
    ("wait-sleep", "waiting", Slices),
    ("wait-child", "waiting", Slices),
    ("throttled", "waiting", Slices),
    ("wait-cpu", "waiting", Slices),
    ("network-turns", "network turns", Slices),
    ("thread-churn", "threads", Slices),
    ("imbalance", "waiting", Slices),
    ("false-sharing", "memory", Slices),
    ("cache-misses", "memory", Slices),
    ("small-pages", "memory", Slices),
    ("branch-misses", "branches", Slices),
    ("slow-instructions", "instructions", Slices),
    ("start-up", "start-up", Slices),
    ("tiny-reads", "system calls", Slices),
    ("tiny-writes", "system calls", Slices),
    ("repeated-syscalls", "system calls", Slices),
    ("memory-churn", "page faults", Slices),
    ("first-touch", "page faults", Slices),
    ("exceptions", "exceptions", Samples),
    ("text-conversion", "text conversion", Samples),
    ("gc", "garbage collection", Samples),
    ("parallel-overhead", "parallel overhead", Samples),
    ("busy-waiting", "busy waiting", Samples),
    ("zeroing", "zeroing", Samples),
    ("struct-copies", "struct copies", Samples),
    ("buffer-copies", "buffer copies", Samples),
    ("allocation", "allocation", Samples),
    ("rescans", "text searches", Samples),
    ("hashing", "hashing", Samples),
    ("atomics", "atomics", Samples),
    ("bounds-checks", "bounds checks", Samples),
    ("missed-inlining", "small calls", Samples),
    ("unoptimised-build", "unoptimised code", Samples),
    ("net-work", "net work", Samples),
    ("system-calls", "system calls", Slices),
    ("page-faults", "page faults", Slices),
    ("kernel-other", "kernel, other", Slices),
    ("exit", "exit", Slices),
    ("observer", "tracing", Slices),
    ("unrecorded", "not recorded", Slices),
    ("unexplained", "not explained", Slices),
    ("idle", "idle", Slices),
];

/// The program's own code.
pub const NET_WORK: AccountId = AccountId(OF_CLASSES);
/// System calls that no class claims.
pub const SYSTEM_CALLS: AccountId = AccountId(OF_CLASSES + 1);
/// Page faults that no class claims.
pub const PAGE_FAULTS: AccountId = AccountId(OF_CLASSES + 2);
/// Kernel work that is not divided further.
pub const KERNEL_OTHER: AccountId = AccountId(OF_CLASSES + 3);
/// Exit of processes.
pub const EXIT: AccountId = AccountId(OF_CLASSES + 4);
/// The cost of recording.
pub const OBSERVER: AccountId = AccountId(OF_CLASSES + 5);
/// Time whose records were lost.
pub const UNRECORDED: AccountId = AccountId(OF_CLASSES + 6);
/// Time without an explanation.
pub const UNEXPLAINED: AccountId = AccountId(OF_CLASSES + 7);
/// Waits of a program that serves, for its next piece of work.
pub const IDLE: AccountId = AccountId(OF_CLASSES + 8);

impl AccountId {
    /// All accounts, in order.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..).zip(&ACCOUNTS).map(|(index, _)| Self(index))
    }

    /// The accounts of the cost classes, in order of precedence.
    pub fn of_classes() -> impl Iterator<Item = Self> {
        (0..OF_CLASSES).map(Self)
    }

    /// The account with this name; [`UNEXPLAINED`] for an unknown one.
    #[must_use]
    pub fn of_class(id: &str) -> Self {
        Self::all().find(|account| account.id() == id).unwrap_or(UNEXPLAINED)
    }

    /// Its position in the order of all.
    #[must_use]
    pub fn position(self) -> usize {
        self.0.into()
    }

    /// Its name, as in JSON.
    #[must_use]
    pub fn id(self) -> &'static str {
        ACCOUNTS[usize::from(self.0)].0
    }

    /// The word that its row in the ledger begins with; several rows may have the same.
    #[must_use]
    pub fn group(self) -> &'static str {
        ACCOUNTS[usize::from(self.0)].1
    }

    /// What a reader sees: the group, or what distinguishes it from others of its group. No two are the same.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self.id() {
            "wait-input" => "waiting: input",
            "wait-output" => "waiting: output",
            "wait-lock" => "waiting: lock",
            "wait-disk" => "waiting: disk",
            "wait-sleep" => "waiting: sleep",
            "wait-child" => "waiting: child",
            "throttled" => "waiting: quota",
            "wait-cpu" => "waiting: CPU",
            "network-turns" => "network turns",
            "imbalance" => "imbalance",
            "false-sharing" => "false sharing",
            "cache-misses" => "cache misses",
            "small-pages" => "small pages",
            "tiny-reads" => "tiny reads",
            "tiny-writes" => "tiny writes",
            "repeated-syscalls" => "repeated calls",
            "memory-churn" => "memory churn",
            "first-touch" => "first touch",
            _ => self.group(),
        }
    }

    /// Whether it holds the program's own time, divided by samples.
    #[must_use]
    pub fn is_sampled(self) -> bool {
        ACCOUNTS[usize::from(self.0)].2 == Samples
    }
}

/// What a reader sees of a row: the name of its account, or its group if this version does not know the account.
#[must_use]
pub fn row_name<'r>(account: &str, group: &'r str) -> &'r str {
    let known = AccountId::of_class(account);
    if known.id() == account { known.name() } else { group }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_have_names_of_their_own() {
        let mut names: Vec<_> = AccountId::all().map(AccountId::id).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), ACCOUNTS.len());
        let shown: std::collections::BTreeSet<&str> =
            AccountId::all().map(AccountId::name).collect();
        assert_eq!(shown.len(), ACCOUNTS.len());
    }

    #[test]
    fn the_fixed_accounts_have_their_names() {
        for (account, id) in [
            (NET_WORK, "net-work"),
            (SYSTEM_CALLS, "system-calls"),
            (PAGE_FAULTS, "page-faults"),
            (KERNEL_OTHER, "kernel-other"),
            (EXIT, "exit"),
            (OBSERVER, "observer"),
            (UNRECORDED, "unrecorded"),
            (UNEXPLAINED, "unexplained"),
            (IDLE, "idle"),
        ] {
            assert_eq!((account.id(), AccountId::of_class(id)), (id, account));
        }
    }
}
