//! The cost classes: one file each, in one table, in order of precedence.
//!
//! A class knows how to claim slices for its account, what it is mistaken for, and what to do
//! about it. The first class that claims a slice has it; what none claims goes to a fixed
//! account. A class never looks at the trace itself, only at what `case` gathered.

mod allocation;
mod atomics;
mod bounds_checks;
mod buffer_copies;
mod first_touch;
mod gc;
mod growth;
mod memory_churn;
mod missed_inlining;
mod repeated_syscalls;
mod start_up;
mod struct_copies;
mod tiny_reads;
mod tiny_writes;
mod unoptimised_build;
mod wait_child;
mod wait_cpu;
mod wait_disk;
mod wait_input;
mod wait_lock;
mod wait_output;
mod wait_sleep;
mod zeroing;

use crate::attribute::{Attribution, Slice, What};
use crate::case::Case;
use crate::findings::Draft;
use crate::user_time::UserSample;

pub(crate) use bounds_checks::checked_loops;
pub(crate) use growth::GROWTH;
pub(crate) use missed_inlining::called as called_small;
pub(crate) use wait_input::{is_idleness, is_server};

/// The knowledge about one hidden cost.
pub(crate) struct Class {
    /// Its name for users, and its account's.
    pub(crate) id: &'static str,
    /// The word shown in the ledger.
    pub(crate) group: &'static str,
    /// The source file, whose head is the explanation.
    pub(crate) source: &'static str,
    /// What is this cost.
    pub(crate) claim: Claim,
    /// The findings.
    pub(crate) inspect: fn(&Inspection<'_, '_>) -> Vec<Draft>,
}

/// How a class says what is its cost.
#[derive(Copy, Clone)]
pub(crate) enum Claim {
    /// Whether a slice is. Of calls, every slice of a family has the same answer.
    Slices(fn(&Case<'_>, &Slice) -> bool),
    /// Whether a sample of the program's own time is. Every sample of a stack has the same answer.
    Samples(fn(&UserSample<'_>) -> bool),
    /// Both: samples, and page faults that come with them.
    SamplesAndFaults(fn(&UserSample<'_>) -> bool, fn(&Case<'_>, &Slice) -> bool),
}

/// What findings are made from.
#[derive(Copy, Clone)]
pub(crate) struct Inspection<'a, 't> {
    /// What was gathered.
    pub(crate) case: &'a Case<'t>,
    /// The wall time, charged.
    pub(crate) wall: &'a Attribution,
    /// All CPU time, charged.
    pub(crate) cpu: &'a Attribution,
}

/// All classes. The order is precedence.
pub(crate) const CLASSES: &[Class] = &[
    wait_input::CLASS,
    wait_output::CLASS,
    wait_lock::CLASS,
    wait_disk::CLASS,
    wait_sleep::CLASS,
    wait_child::CLASS,
    wait_cpu::CLASS,
    start_up::CLASS,
    tiny_reads::CLASS,
    tiny_writes::CLASS,
    repeated_syscalls::CLASS,
    memory_churn::CLASS,
    first_touch::CLASS,
    gc::CLASS,
    zeroing::CLASS,
    struct_copies::CLASS,
    buffer_copies::CLASS,
    allocation::CLASS,
    atomics::CLASS,
    bounds_checks::CLASS,
    missed_inlining::CLASS,
    unoptimised_build::CLASS,
];

/// An account of the ledger: first the classes', then the fixed ones.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct AccountId(u8);

/// The accounts for what no class claims, with their groups.
const FIXED: [(&str, &str); 8] = [
    ("net-work", "net work"),
    ("system-calls", "system calls"),
    ("page-faults", "page faults"),
    ("kernel-other", "kernel, other"),
    ("exit", "exit"),
    ("observer", "tracing"),
    ("unrecorded", "not recorded"),
    ("unexplained", "not explained"),
];

/// How many accounts belong to classes.
const OF_CLASSES: u8 = 22;
const _: () = assert!(CLASSES.len() == OF_CLASSES as usize, "count the classes");

/// The program's own code.
pub(crate) const NET_WORK: AccountId = AccountId(OF_CLASSES);
const SYSTEM_CALLS: AccountId = AccountId(OF_CLASSES + 1);
const PAGE_FAULTS: AccountId = AccountId(OF_CLASSES + 2);
/// The kernel's work that nothing tells apart.
pub(crate) const KERNEL_OTHER: AccountId = AccountId(OF_CLASSES + 3);
/// Processes being taken down.
pub(crate) const EXIT: AccountId = AccountId(OF_CLASSES + 4);
/// What recording cost.
pub(crate) const OBSERVER: AccountId = AccountId(OF_CLASSES + 5);
const UNRECORDED: AccountId = AccountId(OF_CLASSES + 6);
const UNEXPLAINED: AccountId = AccountId(OF_CLASSES + 7);

impl AccountId {
    /// All accounts, in order.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        (0..OF_CLASSES).map(AccountId).chain((OF_CLASSES..).map(AccountId).take(FIXED.len()))
    }

    /// The account of the class with this id.
    pub(crate) fn of_class(id: &str) -> Self {
        Self::all().find(|a| a.id() == id).unwrap_or(UNEXPLAINED)
    }

    /// Its name.
    pub(crate) fn id(self) -> &'static str {
        match CLASSES.get(usize::from(self.0)) {
            Some(class) => class.id,
            None => FIXED[usize::from(self.0 - OF_CLASSES)].0,
        }
    }

    /// Whether it holds time of the program's own, divided by samples.
    pub(crate) fn is_sampled(self) -> bool {
        let class = CLASSES.get(usize::from(self.0));
        self == NET_WORK || class.is_some_and(|class| !matches!(class.claim, Claim::Slices(_)))
    }

    /// The word shown in the ledger.
    pub(crate) fn group(self) -> &'static str {
        match CLASSES.get(usize::from(self.0)) {
            Some(class) => class.group,
            None => FIXED[usize::from(self.0 - OF_CLASSES)].1,
        }
    }
}

/// The account of a slice.
pub(crate) fn account(case: &Case<'_>, slice: &Slice) -> AccountId {
    match slice.what {
        What::Unrecorded => return UNRECORDED,
        What::Unexplained => return UNEXPLAINED,
        What::Exiting => return EXIT,
        What::Wait(block) if case.waits_for_recording(block) => return OBSERVER,
        // Samples divide it later, see `account_of_sample`: no class claims it as a whole.
        What::User if !slice.starting => {
            debug_assert_eq!(claimed(case, slice), NET_WORK);
            return NET_WORK;
        }
        // Millions of calls, few families: each is judged once.
        What::Call(family, _) => return case.verdict(family, || claimed(case, slice)),
        _ => {}
    }
    claimed(case, slice)
}

fn claimed(case: &Case<'_>, slice: &Slice) -> AccountId {
    let claimed = CLASSES.iter().zip(0u8..).find(|(class, _)| match class.claim {
        Claim::Slices(claims) | Claim::SamplesAndFaults(_, claims) => claims(case, slice),
        Claim::Samples(_) => false,
    });
    match (claimed, slice.what) {
        (Some((_, index)), _) => AccountId(index),
        (None, What::User) => NET_WORK,
        (None, What::Call(..)) => SYSTEM_CALLS,
        (None, What::Fault(_)) => PAGE_FAULTS,
        (None, _) => KERNEL_OTHER,
    }
}

/// The account of the program's own time that a sample stands for.
pub(crate) fn account_of_sample(sample: &UserSample<'_>) -> AccountId {
    let claimed = CLASSES.iter().zip(0u8..).find(|(class, _)| match class.claim {
        Claim::Samples(claims) | Claim::SamplesAndFaults(claims, _) => claims(sample),
        Claim::Slices(_) => false,
    });
    claimed.map_or(NET_WORK, |(_, index)| AccountId(index))
}

/// The ids of all classes, in order of precedence.
pub fn ids() -> impl Iterator<Item = &'static str> {
    CLASSES.iter().map(|class| class.id)
}

/// What a class is, how it is known, what it is mistaken for and what to do: the head of its
/// source file, as Markdown. None for an unknown id.
#[must_use]
pub fn explain(id: &str) -> Option<String> {
    let class = CLASSES.iter().find(|class| class.id == id)?;
    let head = class.source.lines().map_while(|line| line.strip_prefix("//!"));
    Some(head.map(|line| format!("{}\n", line.strip_prefix(' ').unwrap_or(line))).collect())
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod table {
    use super::*;

    #[test]
    fn every_class_explains_itself_under_the_same_heads() {
        for id in ids() {
            let text = explain(id).unwrap();
            let mut at = 0;
            for head in [
                "\n# What it is\n",
                "\n# How deadweight knows\n",
                "\n# What it is mistaken for\n",
                "\n# What to do\n",
                "\n# Seen in\n",
            ] {
                let found = text[at..].find(head);
                assert!(found.is_some(), "{id} lacks `{head}` in its place");
                at += found.unwrap();
            }
        }
        assert_eq!(explain("no-such-cost"), None);
    }

    #[test]
    fn accounts_have_names_of_their_own() {
        let mut names: Vec<_> = AccountId::all().map(AccountId::id).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
        assert_eq!(AccountId::of_class("net-work"), NET_WORK);
        assert_eq!(AccountId::of_class("unexplained"), UNEXPLAINED);
    }
}
