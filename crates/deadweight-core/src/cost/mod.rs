//! The cost classes: one file each, in one table, in order of precedence.
//!
//! - In: slices, samples, and an inspection.
//! - Out: the account of each slice and sample, and drafts of findings.
//! - Must not know: the trace itself, only the `Facts`.
//!
//! A class knows its slices, what it is mistaken for, and the advice. The first class that claims a slice has it;
//! unclaimed slices go to a fixed account. A new class is a file here, an entry of `CLASSES`, and a row in
//! deadweight-report's `account.rs`.

mod allocation;
mod atomics;
mod bounds_checks;
mod branch_misses;
mod buffer_copies;
mod busy_waiting;
mod cache_misses;
mod exceptions;
mod false_sharing;
mod first_touch;
mod gc;
mod hashing;
mod imbalance;
mod memory_churn;
mod missed_inlining;
mod network_turns;
mod parallel_overhead;
mod repeated_syscalls;
mod rescans;
mod slow_instructions;
mod small_pages;
mod start_up;
mod struct_copies;
mod text_conversion;
mod thread_churn;
mod throttled;
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

use crate::account::{AccountId, EXIT, KERNEL_OTHER, NET_WORK, OBSERVER, Slice, What};
use crate::facts::Facts;
use crate::facts::user_time::UserSample;
use crate::inspect::{Draft, Inspection};
use deadweight_report::account::{IDLE, PAGE_FAULTS, SYSTEM_CALLS, UNEXPLAINED, UNRECORDED};

pub(crate) use bounds_checks::checked_loops;
pub(crate) use false_sharing::part_of as falsely_shared;
pub(crate) use imbalance::chance as uneven_by_chance;
pub(crate) use memory_churn::{helps_by_environment, maps_itself};
pub(crate) use missed_inlining::called as called_small;
pub(crate) use network_turns::of_service as held_back_answers;
pub(crate) use wait_disk::SYNCS;
pub(crate) use wait_input::{is_server, is_stopped_by_signal};

/// One class of hidden cost.
pub(crate) struct Class {
    /// Its name for users, and the id of its account.
    pub(crate) id: &'static str,
    /// The source file, whose head is the explanation of the class.
    pub(crate) source: &'static str,
    /// Which slices or samples are this cost.
    pub(crate) claim: Claim,
    /// Makes the findings of the class.
    pub(crate) inspect: fn(&Inspection<'_, '_>) -> Vec<Draft>,
}

/// How a class claims its time.
#[derive(Copy, Clone)]
pub(crate) enum Claim {
    /// By slice. All slices of a call group have the same answer.
    Slices(fn(&Facts<'_>, &Slice) -> bool),
    /// By sample of the program's own time. All samples of a stack have the same answer.
    Samples(fn(&UserSample<'_>) -> bool),
    /// Both samples and the page faults that come with them.
    SamplesAndFaults(fn(&UserSample<'_>) -> bool, fn(&Facts<'_>, &Slice) -> bool),
}

/// All classes. The order is precedence.
pub(crate) const CLASSES: &[Class] = &[
    wait_input::CLASS,
    wait_output::CLASS,
    wait_lock::CLASS,
    wait_disk::CLASS,
    wait_sleep::CLASS,
    wait_child::CLASS,
    throttled::CLASS,
    wait_cpu::CLASS,
    network_turns::CLASS,
    thread_churn::CLASS,
    imbalance::CLASS,
    false_sharing::CLASS,
    cache_misses::CLASS,
    small_pages::CLASS,
    branch_misses::CLASS,
    slow_instructions::CLASS,
    start_up::CLASS,
    tiny_reads::CLASS,
    tiny_writes::CLASS,
    repeated_syscalls::CLASS,
    memory_churn::CLASS,
    first_touch::CLASS,
    exceptions::CLASS,
    text_conversion::CLASS,
    gc::CLASS,
    parallel_overhead::CLASS,
    busy_waiting::CLASS,
    zeroing::CLASS,
    struct_copies::CLASS,
    buffer_copies::CLASS,
    allocation::CLASS,
    rescans::CLASS,
    hashing::CLASS,
    atomics::CLASS,
    bounds_checks::CLASS,
    missed_inlining::CLASS,
    unoptimised_build::CLASS,
];

/// Whether the run without recording may take several times as long, because its threads fight more for a lock.
pub(crate) fn is_longer_unrecorded(found: &Inspection<'_, '_>) -> bool {
    wait_lock::threads_fight(found)
}

/// The account of a slice.
pub(crate) fn account(facts: &Facts<'_>, slice: &Slice) -> AccountId {
    match slice.what {
        What::Unrecorded => return UNRECORDED,
        What::Unexplained => return UNEXPLAINED,
        What::Exiting => return EXIT,
        What::Wait(block) if facts.waits_for_recording(block) => return OBSERVER,
        What::Wait(block) if facts.is_idle(block) => return IDLE,
        // Samples divide it later, see `account_of_sample`: no class claims it as a whole.
        What::User if !slice.starting => {
            debug_assert_eq!(claimed(facts, slice), NET_WORK);
            return NET_WORK;
        }
        // Millions of calls, few groups: each is judged once.
        What::Call(group, _) => return facts.verdict(group, || claimed(facts, slice)),
        _ => {}
    }
    claimed(facts, slice)
}

fn claimed(facts: &Facts<'_>, slice: &Slice) -> AccountId {
    let claimed =
        CLASSES.iter().zip(AccountId::of_classes()).find(|(class, _)| match class.claim {
            Claim::Slices(claims) | Claim::SamplesAndFaults(_, claims) => claims(facts, slice),
            Claim::Samples(_) => false,
        });
    match (claimed, slice.what) {
        (Some((_, account)), _) => account,
        (None, What::User) => NET_WORK,
        (None, What::Call(..)) => SYSTEM_CALLS,
        (None, What::Fault(_)) => PAGE_FAULTS,
        // Without the call and the kernel's stack nobody knows what it waited for.
        (None, What::Wait(_)) if !facts.trace.meta.records_calls() => UNRECORDED,
        (None, _) => KERNEL_OTHER,
    }
}

/// The account of the program's own time that a sample stands for.
pub(crate) fn account_of_sample(sample: &UserSample<'_>) -> AccountId {
    let claimed =
        CLASSES.iter().zip(AccountId::of_classes()).find(|(class, _)| match class.claim {
            Claim::Samples(claims) | Claim::SamplesAndFaults(claims, _) => claims(sample),
            Claim::Slices(_) => false,
        });
    claimed.map_or(NET_WORK, |(_, account)| account)
}

/// The ids of all classes, in order of precedence.
pub fn ids() -> impl Iterator<Item = &'static str> {
    CLASSES.iter().map(|class| class.id)
}

/// Whether a class is known by the registers at samples.
pub(crate) fn needs_registers(id: &str) -> bool {
    matches!(
        id,
        "cache-misses" | "small-pages" | "branch-misses" | "slow-instructions" | "false-sharing"
    )
}

/// What a class is, how deadweight knows it, what it is mistaken for and what to do: the head of
/// its source file, as Markdown. None for an unknown id.
#[must_use]
pub fn explain(id: &str) -> Option<String> {
    let class = CLASSES.iter().find(|class| class.id == id)?;
    let head = class.source.lines().map_while(|line| line.strip_prefix("//!"));
    Some(head.map(|line| format!("{}\n", line.strip_prefix(' ').unwrap_or(line))).collect())
}

#[cfg(test)]
pub(crate) mod tests;

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
    fn the_table_of_accounts_has_the_same_classes_in_the_same_order() {
        let accounts: Vec<_> = AccountId::of_classes().map(|a| (a.id(), a.is_sampled())).collect();
        let sampled = |class: &Class| !matches!(class.claim, Claim::Slices(_));
        let classes: Vec<_> = CLASSES.iter().map(|class| (class.id, sampled(class))).collect();
        assert_eq!(accounts, classes, "deadweight-report's account.rs beside cost/mod.rs");
    }
}
