//! Tiny writes.
//!
//! # What it is
//! The program writes its output in many small pieces. Each piece is a system call, and each one
//! wakes the reader of a pipe.
//!
//! # How deadweight knows
//! The trace has every call with its size and its object. Calls can be joined only if they follow
//! each other on one object, with no read from it, no wait and no poll between. Of frequent calls,
//! which the kernel counts, one in 29 is timed; else the time inside is exact, except for the cost of
//! entering and leaving the kernel: this is calibrated, to about 30 ns per call. Small reads at a pipe's other end are counted too if the reader belongs to
//! the command.
//! What library functions do on the way to the calls (locks, the runtime's states) goes away with them.
//! In a script, what CPython, Perl, PHP or Node does around the calls belongs to the upper end.
//!
//! # What it is mistaken for
//! Output to a terminal, for which a person waits; answers to requests, to one peer or to many:
//! each is waited for, and what goes to separate sockets is never one write; large blocks written
//! by `writev`; datagrams, which must stay apart; a few small writes. Writes that each wait until their data
//! is stored (`O_SYNC`) take their time for that: *wait-disk*.
//!
//! # What to do
//! Collect output in a buffer of 64 KiB and flush it at the end. A crash loses what is still in the
//! buffer: keep error messages unbuffered.
//!
//! # Seen in
//! `println!` per row into a pipe: one write of 40 bytes for each of 300 000 rows.
//! In `tests/programs`: `unbuffered.go`.

mod remedy;

use super::tiny_reads::{MANY, PER_OBJECT, TINY, can_be_joined, is_stream};
use super::{AccountId, Claim, Class, Inspection};
use crate::account::{Detail, Entry, Slice, What};
use crate::facts::Facts;
use crate::facts::call_groups::CallGroup;
use crate::facts::processes::ProcessId;
use crate::inspect::syscalls::entry_cost::{at_least, with_syscall_entry};
use crate::inspect::syscalls::interpreter;
use crate::inspect::syscalls::small_calls::SmallCalls;
use crate::inspect::{Draft, processes_in};
use crate::path::cpu_holder::CpuHolder;
use crate::timeline::descriptors::ObjectKind;
use deadweight_report::wording::time;
use deadweight_trace::units::Ns;
use std::collections::{BTreeMap, BTreeSet};

pub(super) const CLASS: Class = Class {
    id: "tiny-writes",
    source: include_str!("tiny_writes.rs"),
    claim: Claim::Slices(claim),
    inspect,
};

fn claim(facts: &Facts<'_>, slice: &Slice) -> bool {
    let What::Call(group, _) = slice.what else { return false };
    let group = facts.call_groups.get(group);
    is_tiny(group) || is_fed_by_tiny_writes(facts, group)
}

fn is_tiny(group: &CallGroup) -> bool {
    let writes = matches!(
        group.name,
        "write" | "pwrite64" | "sendto" | "sendmsg" | "writev" | "pwritev" | "pwritev2"
    );
    writes
        && is_stream(group)
        && !group.starting
        && !group.durable
        && group.calls >= MANY
        && group.per_object() >= PER_OBJECT
        && group.sizes.is_some()
        && group.mean_asked().max(group.bytes / group.calls) <= TINY
        && group.failed * 2 < group.calls
        && can_be_joined(group)
}

/// Small reads of a pipe that is written in small pieces, although the reader asks for much.
fn is_fed_by_tiny_writes(facts: &Facts<'_>, group: &CallGroup) -> bool {
    group.name == "read"
        && group.kind == Some(ObjectKind::Pipe)
        && group.calls >= MANY
        && group.bytes / group.calls <= TINY
        && group.mean_asked() > TINY
        && facts.call_groups.writing(group).any(|w| w.name == "write" && is_tiny(w))
}

fn inspect(found: &Inspection<'_, '_>) -> Vec<Draft> {
    let account = AccountId::of_class(CLASS.id);
    let fed = fed_by(found, account);
    let writers = processes_in(found.wall.in_account(account).filter(
        |e| matches!(e.detail, Detail::Calls(f) if found.facts.call_groups.get(f).name != "read"),
    ));
    // A process that passes its input on writes in small pieces because it reads small pieces.
    let passes_on = |process: &ProcessId| {
        fed.values().any(|readers| readers.contains(process))
            && writes_as_it_reads(found, account, *process)
    };
    writers
        .iter()
        .filter(|process| !passes_on(process))
        .filter_map(|process| {
            let readers = fed.get(process).cloned().unwrap_or_default();
            draft(found, account, *process, &readers)
        })
        .collect()
}

/// By writer: the processes that read its tiny writes one by one.
fn fed_by(
    found: &Inspection<'_, '_>,
    account: AccountId,
) -> BTreeMap<ProcessId, BTreeSet<ProcessId>> {
    let facts = found.facts;
    let mut fed: BTreeMap<ProcessId, BTreeSet<ProcessId>> = BTreeMap::new();
    for entry in found.wall.in_account(account) {
        let Detail::Calls(group) = entry.detail else { continue };
        let group = facts.call_groups.get(group);
        if group.name == "read" {
            for writer in facts.call_groups.writing(group).filter(|w| w.process != entry.process) {
                fed.entry(writer.process).or_default().insert(entry.process);
            }
        }
    }
    fed
}

/// Whether a process writes about as often as it reads.
fn writes_as_it_reads(found: &Inspection<'_, '_>, account: AccountId, process: ProcessId) -> bool {
    let (mut reads, mut writes) = (0_u64, 0_u64);
    for entry in found.wall.of_process(account, process) {
        let Detail::Calls(group) = entry.detail else { continue };
        let group = found.facts.call_groups.get(group);
        *(if group.name == "read" { &mut reads } else { &mut writes }) += group.calls;
    }
    writes <= reads + reads / 4
}

/// Time of the readers that tiny writes cause: their small reads, the writes that pass the pieces
/// on, and the waits for a CPU between writer and readers, which wake each other at each piece.
fn of_readers(
    found: &Inspection<'_, '_>,
    account: AccountId,
    writer: ProcessId,
    readers: &BTreeSet<ProcessId>,
) -> (Ns, Ns) {
    let facts = found.facts;
    let calls: Ns =
        readers.iter().flat_map(|r| found.wall.of_process(account, *r)).map(|e| e.ns).sum();
    let wait_cpu = AccountId::of_class("wait-cpu");
    let among = |process: ProcessId| process == writer || readers.contains(&process);
    let waits = readers.iter().chain([&writer]).flat_map(|p| found.wall.of_process(wait_cpu, *p));
    let between = waits.filter(|e| match e.detail {
        Detail::Held(CpuHolder::Own(task)) => {
            let holder = facts.processes.of(task);
            holder != e.process && among(holder)
        }
        _ => false,
    });
    (calls, between.map(|e| e.ns).sum())
}

fn draft(
    found: &Inspection<'_, '_>,
    account: AccountId,
    process: ProcessId,
    readers: &BTreeSet<ProcessId>,
) -> Option<Draft> {
    let facts = found.facts;
    let writes = |e: &&Entry| matches!(e.detail, Detail::Calls(f) if facts.call_groups.get(f).name != "read");
    let calls = SmallCalls::of(facts, found.wall.of_process(account, process).filter(writes))?;
    let saving = with_syscall_entry(found, process, calls.saved(), calls.on_path, &calls.places);
    let (reads, between) = of_readers(found, account, process, readers);
    let amount = calls.ns + reads + between;
    let saving = saving + reads + between;
    let around = calls.around(found, process);
    let interpreted = calls.interpreted(found, process);
    let mut evidence: Vec<String> = calls.evidence().into_iter().collect();
    if reads + between > Ns::ZERO {
        evidence.push(format!(
            "{} more in the readers, which read piece by piece, and {} in waits for a CPU between \
             writer and readers",
            time(reads),
            time(between)
        ));
    }
    evidence.extend(interpreter::evidence(interpreted));
    Some(Draft {
        class: CLASS.id,
        // The readers' time lies on the critical path too.
        moves: readers.is_empty(),
        process,
        title: "tiny writes".into(),
        text: calls.text(),
        amount,
        saving: saving + around.on_the_way + interpreted.part(0.5),
        range: (
            at_least(found, saving.min(calls.ns), calls.on_path),
            saving + around.all() + interpreted,
        ),
        how: calls.how(),
        sites: calls.sites(facts),
        evidence,
        remedy: remedy::of(facts, process, &calls).into(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::{found, repeat, rows, weighed};
    use expect_test::expect;

    fn writer(calls: u64, size: u64, to: &str) -> String {
        let write = |at| {
            format!(
                "{} syscall write 1 {size} from std::io::write_all <- render (c.rs:68) <- main
                 {} back {size}\n",
                at + 100,
                at + 400
            )
        };
        let end = calls * 400 + 1000;
        let writes = repeat(calls, 0, 400, write);
        format!("task 1 c\n0 fd 1 {to}\n0 on\n0 main\n{writes}{end} exit\n{end} off dead")
    }

    #[test]
    fn a_line_at_a_time_into_a_pipe_is_found() {
        expect![[r#"
            tiny-writes 74 % (60..78) @ render:68: write was called 1 000 times for 40 bytes each; 1 call of up to 64 KiB would do the same.
        "#]]
        .assert_eq(&found(&writer(1000, 40, "pipe:[7]")));
    }

    /// A writer of lines and a reader that reads each line as it comes and may pass it on.
    fn into_a_pipe(passes_on: bool) -> String {
        let write = |at| {
            format!(
                "{} syscall write 1 40 from std::io::write_all <- render (c.rs:68) <- main
                 {} back 40\n",
                at + 100,
                at + 400
            )
        };
        let writes = repeat(1000, 0, 1000, write);
        let read = |at| {
            let on = format!("{} syscall write 1 40\n{} back 40\n", at + 750, at + 850);
            format!(
                "{} cpu1 on woken-by 2 : try_to_wake_up < anon_pipe_write < ksys_write
                 {} back 40\n{}{} syscall read 0 65536\n{} off blocked : anon_pipe_read\n",
                at + 390,
                at + 700,
                if passes_on { on.as_str() } else { "" },
                at + 880,
                at + 890
            )
        };
        let reads = repeat(1000, 0, 1000, read);
        format!(
            "cpus 2\ntask 1 sh\n0 cpu0 on\n0 fd 1 pipe:[9]\n5 fork 2\n6 fork 3
             7 off blocked wait4 : do_wait\n1000930 on woken-by 3\n1000960 exit\n1000970 off dead
             task 2 slow\n10 cpu0 on\n11 exec /bin/slow\n12 fd 1 pipe:[7]\n13 main\n{writes}
             1000100 exit\n1000110 off dead
             task 3 cat\n10 cpu1 on\n11 exec /bin/cat\n12 fd 0 pipe:[7]\n12 fd 1 /dev/null\n13 main
             14 syscall read 0 65536\n20 off blocked : anon_pipe_read\n{reads}
             1000100 cpu1 on woken-by 2\n1000101 back 0\n1000900 exit\n1000940 off dead"
        )
    }

    #[test]
    fn work_of_a_reader_piece_by_piece_counts_with_the_writes() {
        expect![[r#"
            tiny-writes 71 % (23..75) @ render:68: write was called 1 000 times for 40 bytes each; 1 call of up to 64 KiB would do the same.
        "#]].assert_eq(&found(&into_a_pipe(true)));
        expect![[r#"
            tiny-writes 61 % (23..66) @ render:68: write was called 1 000 times for 40 bytes each; 1 call of up to 64 KiB would do the same.
        "#]].assert_eq(&found(&into_a_pipe(false)));
        expect![[r#"
            tiny-writes 710007 write ×2 000, 40 bytes each, read ×1 001
            net-work 290836
            start-up 84 exec, linking and initialising
            exit 40 freeing memory
        "#]]
        .assert_eq(&rows(&into_a_pipe(true), 4));
    }

    /// A writer of lines, and a reader that acknowledges each over another pipe: to the writer, or to another process.
    fn acknowledged(to_writer: bool) -> String {
        let write = |at| {
            format!(
                "{} syscall write 1 40 from std::io::write_all <- render (c.rs:68) <- main
                 {} back 40\n{} syscall read 3 1\n{} back 1\n",
                at + 100,
                at + 400,
                at + 800,
                at + 900
            )
        };
        let read = |at| {
            format!(
                "{} syscall read 0 4096\n{} back 40\n{} syscall write 4 1\n{} back 1\n",
                at + 420,
                at + 500,
                at + 520,
                at + 700
            )
        };
        let back = if to_writer { 8 } else { 9 };
        format!(
            "cpus 2\ntask 1 loop\n0 cpu0 on\n0 fd 1 pipe:[7]\n0 fd 3 pipe:[8]\n0 main\n5 fork 2\n{}
             1000500 exit\n1000510 off dead
             task 2 dog\n10 cpu1 on\n11 exec /bin/dog\n12 fd 0 pipe:[7]\n12 fd 4 pipe:[{back}]\n13 main\n{}\
             1000100 exit\n1000110 off dead",
            repeat(1000, 0, 1000, write),
            repeat(1000, 0, 1000, read)
        )
    }

    #[test]
    fn lines_that_are_answered_over_another_pipe_are_refused() {
        let refused = found(&acknowledged(true));
        assert!(!refused.contains("tiny-writes"), "{refused}");
        assert!(found(&acknowledged(false)).contains("tiny-writes"));
    }

    #[test]
    fn terminals_blocks_and_a_few_lines_are_refused() {
        assert_eq!(found(&writer(1000, 40, "/dev/pts/1")), "");
        assert_eq!(found(&writer(1000, 65_536, "pipe:[7]")), "");
        assert_eq!(found(&writer(30, 40, "pipe:[7]")), "");
    }

    /// A program on so many descriptors from 3 on, which are named sockets. In each round, `step` gives a
    /// descriptor's lines for the instant.
    fn server(clients: u64, rounds: u64, step: impl Fn(u64, u64) -> String) -> String {
        let fds: String = (3..3 + clients).map(|fd| format!("0 fd {fd} socket:[{fd}]\n")).collect();
        let end = rounds * clients * 1000 + 1000;
        let steps = repeat(rounds * clients, 0, 1000, |at| step(at, 3 + at / 1000 % clients));
        format!(
            "task 1 c\n0 on\n{fds}0 fd 2 anon_inode:[eventpoll]\n0 main\n{steps}{end} exit\n{end} off dead"
        )
    }

    /// A write of 9 bytes in two parts, or in one.
    fn reply(at: u64, fd: u64, parts: u64) -> String {
        let part = |at| {
            format!("{at} syscall write {fd} 9 from answer (s.c:27) <- main\n{} back 9\n", at + 90)
        };
        (0..parts).map(|i| part(at + i * 100)).collect()
    }

    #[test]
    fn answers_to_separate_clients_are_refused() {
        // No read waits: the server is busy, or waits in `epoll_wait`.
        let answer = |at, fd| {
            let ask = format!("{} syscall read {fd} 16384\n{} back 9\n", at + 10, at + 100);
            ask + &reply(at + 200, fd, 1)
        };
        assert_eq!(found(&server(20, 100, answer)), "");
        // One client alone, its requests and answers counted together.
        let counted = |at, fd| {
            format!(
                "{at} calls 100 read {fd} 16384 back 9 inside 300 over 900\n\
                 {at} calls 100 write {fd} 9 back 9 inside 300 over 900\n"
            )
        };
        assert_eq!(found(&server(1, 100, counted)), "");
    }

    #[test]
    fn an_answer_in_pieces_is_found() {
        let answer = |at, fd| {
            let ask = format!("{} syscall read {fd} 16384\n{} back 9\n", at + 10, at + 100);
            ask + &reply(at + 200, fd, 4)
        };
        expect![[r#"
            tiny-writes 27 % (13..33) @ answer:27: write was called 800 times for 9 bytes each; 200 calls of up to 64 KiB would do the same.
        "#]].assert_eq(&found(&server(2, 100, answer)));
    }

    #[test]
    fn messages_of_separate_rounds_are_refused() {
        // Nothing is read from where it writes: it passes on what comes from elsewhere.
        let push = |at, fd| {
            let wait = format!("{at} syscall epoll_wait 2 64 100\n{} back 1\n", at + 50);
            wait + &reply(at + 200, fd, 1)
        };
        assert_eq!(found(&server(1, 1000, push)), "");
        let all = server(1, 1000, |at, fd| reply(at + 200, fd, 1));
        assert!(found(&all).starts_with("tiny-writes"), "{}", found(&all));
    }

    #[test]
    fn large_blocks_in_several_parts_are_refused_and_small_ones_found() {
        let vectors = |size: u64| {
            let lines =
                writer(1000, size, "/out.bin").replace("syscall write 1", "syscall writev 1");
            found(&lines)
        };
        assert_eq!(vectors(262_144), "");
        expect![[r#"
            tiny-writes 74 % (60..78) @ render:68: writev was called 1 000 times for 40 bytes each; 1 call of up to 64 KiB would do the same.
        "#]].assert_eq(&vectors(40));
    }

    #[test]
    fn datagrams_are_refused_and_a_stream_is_found() {
        let socket = |kind: u64| {
            let opened =
                format!("0 main\n0 syscall socket 2 {kind} 0\n10 back 3\n20 fd 3 socket:[7]\n");
            let text = writer(1000, 40, "/dev/null").replace("syscall write 1", "syscall sendto 3");
            found(&text.replace("0 main\n", &opened))
        };
        assert!(socket(0o2_000_001).starts_with("tiny-writes"), "{}", socket(0o2_000_001));
        assert_eq!(socket(0o2_000_002), "");
        assert_eq!(socket(5), "");
    }

    #[test]
    fn calls_that_return_a_number_of_messages_are_refused() {
        let text = writer(1000, 40, "socket:[7]").replace("syscall write 1", "syscall sendmmsg 1");
        assert_eq!(found(&text), "");
    }

    #[test]
    fn the_words_are_of_all_connections() {
        let stream = |at, fd| reply(at + 200, fd, 4);
        let report = weighed(&server(3, 400, stream));
        let finding = &report.findings[0];
        expect!["write was called 4 800 times for 9 bytes each; 3 calls of up to 64 KiB would do the same. | 4 800 calls, 42 KiB in all | [4800]"].assert_eq(&format!("{} | {} | {:?}", finding.text, finding.evidence[0], finding.sites.iter().map(|s| s.count).collect::<Vec<_>>()));
    }

    #[test]
    fn writes_of_a_dialogue_are_refused() {
        let talk = |at| {
            format!(
                "{} syscall write 1 40\n{} back 40
                 {} off blocked read 0 100 : anon_pipe_read\n{} on woken-by 9 peer\n{} back 40\n",
                at + 10,
                at + 90,
                at + 100,
                at + 300,
                at + 310
            )
        };
        let talk = repeat(500, 0, 400, talk);
        let text = format!(
            "task 1 c\n0 fd 0 pipe:[6]\n0 fd 1 pipe:[7]\n0 on\n0 main\n{talk}200000 exit
             200000 off dead\ntask 9 peer outside\n0 on"
        );
        assert!(!found(&text).contains("tiny-writes"));
    }
}
