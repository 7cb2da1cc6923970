//! Waiting for output.
//!
//! # What it is
//! The program is blocked because the pipe or socket that it writes to is full: the reader is
//! slower than the writer.
//!
//! # How deadweight knows
//! The kernel stack at the switch-out shows a write that found no space. The wake-up record names
//! the reader. Both ends of the wait are exact.
//!
//! # What it is mistaken for
//! Waiting for a disk, which is *wait-disk*. If the reader belongs to the measured command, the
//! reader's own work fills the wait and is shown instead.
//!
//! # What to do
//! Make the reader faster, or write to a file. Writing less, or in larger blocks, helps only if the
//! reader pays per call.
//!
//! # Seen in
//! `producer | sort`, where sort is the slow part.
//! In `tests/programs`: `produce.c` before a slow `consume.c`.

use super::{AccountId, Claim, Class, Inspection};
use crate::account::{Detail, Entry, Slice, What};
use crate::facts::Facts;
use crate::facts::call_site::sites;
use crate::inspect::{Draft, Sum, processes_in};
use crate::timeline::kernel_stacks::WaitsFor;
use deadweight_report::report::How;
use deadweight_report::wording::things;

pub(super) const CLASS: Class = Class {
    id: "wait-output",
    source: include_str!("wait_output.rs"),
    claim: Claim::Slices(claim),
    inspect,
};

/// Waits for a reader of the same command during which no other task of it worked: below this share of the wall time, they
/// are the time to hand over.
const ALONE: f64 = 0.02;

fn claim(facts: &Facts<'_>, slice: &Slice) -> bool {
    let What::Wait(block) = slice.what else { return false };
    let waits_for = facts.timeline.blocks[block as usize].waits_for;
    matches!(waits_for, WaitsFor::PipeRoom | WaitsFor::SocketRoom)
}

fn inspect(found: &Inspection<'_, '_>) -> Vec<Draft> {
    let facts = found.facts;
    let account = AccountId::of_class(CLASS.id);
    let mut drafts = Vec::new();
    for process in processes_in(found.wall.in_account(account)) {
        let entries = || found.wall.of_process(account, process);
        let sum = Sum::of(entries());
        if is_filled(found, entries(), &sum) {
            continue;
        }
        let reader = entries().max_by_key(|e| e.ns).and_then(|e| match e.detail {
            Detail::Waits(_, peer) => peer.map(|p| facts.name(p)),
            _ => None,
        });
        let name = facts.name(process);
        let reader_name = reader.unwrap_or_else(|| "the reader of its output".into());
        drafts.push(Draft {
            class: CLASS.id,
            moves: true,
            process,
            title: format!("waits for {reader_name} to read its output"),
            text: format!(
                "{name} was blocked {} because its output was full, until {reader_name} had read some of it.",
                things(sum.count.max(1), "time")
            ),
            amount: sum.ns,
            saving: sum.alone,
            range: (sum.alone, sum.ns),
            how: How::Exact,
            sites: sites(facts.symbols(), &sum.places, sum.count),
            evidence: Vec::new(),
            remedy: format!("Make {reader_name} faster, or let {name} write to a file."),
        });
    }
    drafts
}

/// Whether the readers belong to the command, and nearly all of these waits passed while they worked: then their work is
/// what takes time.
fn is_filled<'e>(
    found: &Inspection<'_, '_>,
    mut entries: impl Iterator<Item = &'e Entry>,
    sum: &Sum,
) -> bool {
    let own = |entry: &Entry| match entry.detail {
        Detail::Waits(_, Some(peer)) => found.facts.processes.get(peer).own,
        _ => false,
    };
    entries.all(own) && sum.alone.share_of(found.wall.net()) < ALONE
}

#[cfg(test)]
mod tests {
    use super::super::tests::found;
    use expect_test::expect;

    #[test]
    fn the_reader_is_found_by_name_and_a_file_is_refused() {
        let writer = "task 1 unpack
             0 on
           100 off blocked write 1 : anon_pipe_write from emit (u.c:9) <- main
           800 on woken-by 9 candles
          1000 exit
          1000 off dead
        task 9 candles outside
             0 on";
        expect![[r#"
            wait-output 70 % (70..70) @ emit:9: unpack was blocked 1 time because its output was full, until candles had read some of it.
        "#]]
        .assert_eq(&found(writer));
        assert_eq!(found(&writer.replace("anon_pipe_write", "io_schedule")), "");
    }

    #[test]
    fn a_reader_of_the_command_that_works_meanwhile_is_refused() {
        let pipeline = "cpus 2\ntask 1 sh
             0 on
            10 fork 2
            20 fork 3
            30 off blocked wait4 : do_wait
          1000 on woken-by 2
          1010 exit
          1010 off dead
             task 2 encode
            40 cpu1 on
           100 off blocked write 1 : anon_pipe_write from emit (u.c:9) <- main
           800 cpu1 on woken-by 3
           990 exit
           990 off dead
             task 3 decode
            60 cpu0 on
           795 syscall read 0 9
           797 back 9
           900 exit
           900 off dead";
        assert!(!found(pipeline).contains("wait-output"), "{}", found(pipeline));
    }
}
