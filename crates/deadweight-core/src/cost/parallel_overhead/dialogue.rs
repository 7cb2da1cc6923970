//! Processes of the command that hand each other one piece of work at a time, through pipes or sockets: each piece costs both of
//! them calls, a switch and a wake-up.
//!
//! Whether the next piece could have been sent before the answer came, nothing shows: so the range begins at 0.

use super::CLASS;
use crate::account::{Detail, Entry};
use crate::facts::call_groups::{CallGroup, CallGroups};
use crate::facts::mergeable::Turns;
use crate::facts::processes::ProcessId;
use crate::inspect::shares::sampled_sites;
use crate::inspect::{Draft, Inspection, Sum};
use crate::path::cpu_holder::CpuHolder;
use crate::timeline::kernel_stacks::WaitsFor;
use crate::timeline::transfer::Transfer;
use deadweight_report::account::{EXIT, KERNEL_OTHER, NET_WORK};
use deadweight_report::report::How;
use deadweight_report::wording::{bytes, count, things, time};
use deadweight_trace::units::Ns;
use std::collections::BTreeSet;

/// Fewer messages are no dialogue ...
const MESSAGES: u64 = 2_000;
/// ... and larger ones are blocks.
const SMALL: u64 = 1024;
/// Below this share of the wall time larger pieces save little.
const LARGE: f64 = 0.25;
/// With more work for each message than this, a batch saves little.
const WORK: Ns = Ns(50_000);
/// The part of the calls and switches that batches save.
const SAVED: f64 = 0.9;

pub(super) fn drafts(found: &Inspection<'_, '_>) -> Vec<Draft> {
    let turns = &found.facts.call_groups.turns;
    let mut left = turns.processes();
    let mut drafts = Vec::new();
    while let Some(first) = left.pop_first() {
        let talkers = talkers(turns, first);
        left.retain(|process| !talkers.contains(process));
        drafts.extend(draft(found, &talkers));
    }
    drafts
}

/// The processes that take turns with `first`, directly or through others.
fn talkers(turns: &Turns, first: ProcessId) -> BTreeSet<ProcessId> {
    let (mut talkers, mut open) = (BTreeSet::from([first]), vec![first]);
    while let Some(one) = open.pop() {
        open.extend(turns.others(one).filter(|other| talkers.insert(*other)));
    }
    talkers
}

/// Whether a group's calls move bytes between processes that take turns.
fn is_of_turns(groups: &CallGroups, group: &CallGroup) -> bool {
    let in_turns = |object: &u32| !groups.turns.with(group.process, *object).is_empty();
    group.objects.iter().any(in_turns)
}

fn draft(found: &Inspection<'_, '_>, talkers: &BTreeSet<ProcessId>) -> Option<Draft> {
    let (facts, net) = (found.facts, found.wall.net());
    let groups = &facts.call_groups;
    let of_talkers = talkers.iter().flat_map(|process| groups.of_process(*process));
    let gives = of_talkers
        .map(|(_, group)| group)
        .filter(|group| group.transfer == Some(Transfer::Gives) && is_of_turns(groups, group));
    let (messages, moved) = gives.fold((0, 0), |(n, all), g| (n + g.calls, all + g.bytes));
    if messages < MESSAGES || moved / messages > SMALL {
        return None;
    }
    let entries = || found.wall.entries.iter().filter(|entry| talkers.contains(&entry.process));
    let calls = Sum::of(entries().filter(|entry| is_call(groups, entry)));
    let changes = |entry: &&Entry| match entry.detail {
        Detail::Held(CpuHolder::Own(task)) => talkers.contains(&facts.processes.of(task)),
        Detail::Waits(
            WaitsFor::PipeData | WaitsFor::SocketData | WaitsFor::Poll,
            Some(process),
        ) => talkers.contains(&process),
        _ => entry.account == KERNEL_OTHER,
    };
    let changes: Ns = entries().filter(changes).map(|entry| entry.ns).sum();
    let work = |entry: &&Entry| [NET_WORK, EXIT].contains(&entry.account);
    let work: Ns = entries().filter(work).map(|entry| entry.ns).sum();
    let spent = calls.ns + changes;
    if spent.share_of(net) < LARGE || work.0 / messages > WORK.0 {
        return None;
    }
    let all: Ns = entries().map(|entry| entry.ns).sum();
    let most = (all - work.min(all)).min(net).max(spent);
    let process = most_written(groups, talkers)?;
    let language = facts.processes.get(process).language.as_str();
    Some(Draft {
        class: CLASS.id,
        moves: false,
        process,
        title: "processes hand each other one piece of work at a time".into(),
        text: format!(
            "{} of the command wrote {} messages of {} in the mean to each other, and took turns.",
            things(talkers.len() as u64, "process"),
            count(messages),
            bytes((moved / messages).max(1)),
        ),
        amount: spent,
        saving: spent.part(SAVED),
        range: (Ns::ZERO, most),
        how: How::Estimate,
        // Switches and wake-ups come with the calls: the places give shares of both.
        sites: sampled_sites(facts.symbols(), &calls.places),
        evidence: vec![
            format!(
                "{} in their calls, {} in switches and wake-ups",
                time(calls.ns),
                time(changes)
            ),
            "where each answer decides what is asked next, nothing of it can be saved in this way"
                .into(),
        ],
        remedy: remedy(language).into(),
    })
}

/// Whether the calls of an entry move bytes between talkers, or wait for these.
fn is_call(groups: &CallGroups, entry: &Entry) -> bool {
    let Detail::Calls(group) = entry.detail else { return false };
    let group = groups.get(group);
    group.transfer == Some(Transfer::Asks) || is_of_turns(groups, group)
}

/// The talker that writes most often.
fn most_written(groups: &CallGroups, talkers: &BTreeSet<ProcessId>) -> Option<ProcessId> {
    let written = |process: &ProcessId| -> u64 {
        let groups = groups.of_process(*process).map(|(_, group)| group);
        groups.filter(|g| g.transfer == Some(Transfer::Gives)).map(|g| g.calls).sum()
    };
    talkers.iter().copied().max_by_key(written)
}

fn remedy(language: &str) -> &'static str {
    match language {
        "Python" => {
            "Send many items at once: Pool.map and imap with chunksize=100 or more, lists instead of single values through a \
             Pipe or Queue. Items of so little work are done faster without another process."
        }
        _ => {
            "Send many items before waiting for the answers: so many that the work on them takes much longer than a switch; or \
             keep several on their way. Items of so little work are done faster without another process."
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::cost::tests::{found, repeat};

    /// Two processes on one CPU, each of which answers what the other one wrote: so many times, with messages of so many
    /// bytes, and `work` ns for each.
    fn dialogue(times: u64, size: u64, work: u64) -> String {
        let each = 4_000 + 2 * work;
        let one = repeat(times, 10_000, each, |at| {
            format!(
                "{} syscall write 4 {size} from ask (p.c:7) <- main\n{} back {size}\n\
                 {} off blocked read 5 {size} : pipe_read from ask (p.c:8) <- main\n\
                 {} cpu0 on woken-by 2\n{} back {size}\n",
                at + 100,
                at + 900,
                at + 1000,
                at + 3900 + work,
                at + 3990 + work
            )
        });
        let two = repeat(times, 10_000, each, |at| {
            format!(
                "{} cpu0 on woken-by 1\n{} back {size}\n{} syscall write 6 {size} from answer (p.c:20) <- main\n\
                 {} back {size}\n{} off blocked read 3 {size} : pipe_read from answer (p.c:19) <- main\n",
                at + 1100,
                at + 1200,
                at + 2000 + work,
                at + 2900 + work,
                at + 3000 + work
            )
        });
        let end = 10_000 + times * each + 1000;
        found(&format!(
            "cpus 1\nimage app path /bin/app language C\ntask 1 app\n0 cpu0 on\n0 exec /bin/app\n0 main\n10 fd 4 pipe:[1]\n10 fd 5 pipe:[2]\n\
             20 fork 2\n{one}{end} exit\n{end} off dead\n\
             task 2 app\n30 fd 3 pipe:[1]\n30 fd 6 pipe:[2]\n5000 cpu0 on\n5010 off blocked read 3 {size} : pipe_read\n{two}{} exit\n{} off dead",
            end - 20,
            end - 10
        ))
    }

    #[test]
    fn one_piece_at_a_time_is_found() {
        let said = dialogue(2000, 8, 100);
        assert!(said.contains("4 000 messages of 8 bytes"), "{said}");
    }

    #[test]
    fn a_few_large_ones_and_pieces_with_much_work_are_refused() {
        for (times, size, work) in [(200, 8, 100), (2000, 65_536, 100), (2000, 8, 100_000)] {
            let said = dialogue(times, size, work);
            assert!(!said.contains("parallel-overhead"), "{times} {size} {work}: {said}");
        }
    }
}
