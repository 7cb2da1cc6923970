//! Waiting for input.
//!
//! # What it is
//! The program is blocked on an empty pipe, socket or terminal, because its producer is slower than
//! it is. A timer inside the program counts this time as if it were the program's own.
//!
//! # How deadweight knows
//! The kernel stack at the switch-out shows a read that found no data. The wake-up record names the
//! process that ended the wait. Both ends of the wait are exact.
//!
//! # What it is mistaken for
//! A server that idles until the next request, or until a signal stops it: deadweight shows it as
//! idle and makes no finding. A token of a job server is a turn among equals: nobody computes it. A
//! poll that timed out is *wait-sleep*. Replies that arrive in two parts, 40 ms apart, are held back
//! by a delayed ACK (Nagle's algorithm): *network-turns*. If the producer belongs to the measured command, the
//! producer's own work fills the wait and is shown instead.
//!
//! # What to do
//! If it sends questions and waits for the answers: send several before waiting. How much that saves depends on whether one
//! question needs the answer to another, so the range begins at 0. If it asks a name server for names that it knows: keep
//! their addresses, or the connections. Else changing the waiting program does not help. Make the producer faster, or read from a file that
//! was made beforehand. To time the program alone, feed it from a file.
//!
//! # Seen in
//! Zig EVM: 94 % of a timed read was the wait for `xxd`.
//! In `tests/programs`: `produce.c` feeding `consume.c`.

use super::{AccountId, Claim, Class, Inspection, network_turns};
use crate::account::{Detail, Entry, Slice, What};
use crate::facts::Facts;
use crate::facts::call_groups::CallGroup;
use crate::facts::call_site::sites;
use crate::facts::processes::ProcessId;
use crate::inspect::{Draft, Sum, processes_in};
use crate::path::TAKES_CONNECTIONS;
use crate::timeline::descriptors::ObjectKind;
use crate::timeline::kernel_stacks::{Interrupt, WaitsFor};
use crate::timeline::transfer::Transfer;
use crate::timeline::{Block, WokenBy};
use deadweight_report::report::How;
use deadweight_report::wording::things;
use deadweight_trace::units::Ns;

pub(super) const CLASS: Class = Class {
    id: "wait-input",
    source: include_str!("wait_input.rs"),
    claim: Claim::Slices(claim),
    inspect,
};

/// Up to this part of the waits may lie on the path as a whole, where the others are hand-overs.
const WHOLE: f64 = 0.05;
/// If this part of the time is replies that stall, the peer is not slow.
const STALLED: f64 = 0.5;
/// From this part of its waits on, a process waits for name servers.
const MOST: f64 = 0.5;

fn claim(facts: &Facts<'_>, slice: &Slice) -> bool {
    let What::Wait(block) = slice.what else { return false };
    if network_turns::waits_for_peer(facts, block) {
        return false;
    }
    let block = &facts.timeline.blocks[block as usize];
    let timed_out =
        block.woken_by == WokenBy::Interrupt(Interrupt::Timer) && !facts.awaits_answer(block);
    match block.waits_for {
        WaitsFor::PipeData | WaitsFor::Terminal => true,
        WaitsFor::SocketData | WaitsFor::Poll => !timed_out,
        _ => false,
    }
}

/// Whether the process takes connections, or is a worker that such a process forked: its waits for input
/// are idleness.
pub(crate) fn is_server(facts: &Facts<'_>, process: ProcessId) -> bool {
    let takes = |process| {
        let mut groups = facts.call_groups.of_process(process);
        groups.any(|(_, f)| TAKES_CONNECTIONS.contains(&f.name) && f.calls > f.failed)
    };
    let forked_by = |process: &ProcessId| {
        let process = facts.processes.get(*process);
        process.parent.filter(|_| !process.executed())
    };
    std::iter::successors(Some(process), forked_by).any(takes)
}

/// Whether another process stopped this one with a signal while it waited for events: it waits for them
/// until a signal ends it.
pub(crate) fn is_stopped_by_signal(facts: &Facts<'_>, process: ProcessId) -> bool {
    let below = facts.processes.below(&[process]);
    let is_foreign = |task| below.binary_search(&facts.processes.of(task)).is_err();
    let tasks = facts.processes.get(process).tasks.iter().map(|task| facts.timeline.task(*task));
    let killed = tasks.filter_map(|task| task.killed).any(|(_, by)| is_foreign(by));
    let signalled = |block: &Block| {
        let for_events = matches!(block.waits_for, WaitsFor::Poll | WaitsFor::Futex);
        let for_data = block.waits_for == WaitsFor::SocketData;
        block.by_signal
            && (for_events || for_data)
            && matches!(block.woken_by, WokenBy::Task(by) if is_foreign(by))
    };
    killed || facts.waits_of(process).any(signalled)
}

fn inspect(found: &Inspection<'_, '_>) -> Vec<Draft> {
    let account = AccountId::of_class(CLASS.id);
    processes_in(found.wall.in_account(account))
        .into_iter()
        .filter(|process| !is_server(found.facts, *process))
        .filter_map(|process| {
            draft(found, account, process, network_turns::stalled(found, process))
        })
        .collect()
}

/// A person at a terminal is slow, and a program that ran before deadweight attached mostly waits
/// for work: both are rows and no findings. Only the other end of a pipe is known to be slow.
fn is_idleness(facts: &Facts<'_>, detail: &Detail) -> bool {
    match detail {
        Detail::Waits(WaitsFor::Terminal, _) => true,
        Detail::Waits(WaitsFor::PipeData, peer) => facts.trace.meta.attached && peer.is_none(),
        Detail::Waits(..) => facts.trace.meta.attached,
        _ => false,
    }
}

/// Whether only the end of the waits lies on the critical path, after the work of another process of the
/// command: this is the time to wake up, and that process is not slow.
fn is_handed_over(facts: &Facts<'_>, entry: &Entry) -> bool {
    let Detail::Waits(_, Some(peer)) = entry.detail else { return false };
    is_ends(entry) && facts.processes.get(peer).own
}

/// Whether of nearly all waits only the end lies on the path. Of a million, chance puts some there as a whole.
fn is_ends(entry: &Entry) -> bool {
    entry.count as f64 <= WHOLE * entry.slices as f64
}

/// Whether the process takes bytes from what can be waited for: else a poll is for something inside of it.
fn takes_input(facts: &Facts<'_>, process: ProcessId) -> bool {
    use ObjectKind::{Anonymous, Device, File};
    let mut groups = facts.call_groups.of_process(process).map(|(_, group)| group);
    groups.any(|group| {
        let inside = matches!(group.kind, Some(File | Anonymous | Device));
        group.transfer == Some(Transfer::Takes) && group.bytes > 0 && !inside
    })
}

/// Whether most of what the process takes, from what can be waited for, comes over sockets.
fn is_over_network(facts: &Facts<'_>, process: ProcessId) -> bool {
    let taken = |of: &dyn Fn(ObjectKind) -> bool| -> u64 {
        let groups = facts.call_groups.of_process(process).map(|(_, group)| group);
        let takes = groups
            .filter(|group| group.transfer == Some(Transfer::Takes) && group.kind.is_some_and(of));
        takes.map(|group| group.bytes).sum()
    };
    taken(&|kind| kind == ObjectKind::Socket) > taken(&|kind| kind == ObjectKind::Pipe)
}

/// Whether the process waits for answers: it sends something for at least each fourth of its waits, on sockets or to the
/// process that it waits for.
fn asks(facts: &Facts<'_>, process: ProcessId, peer: Option<ProcessId>, waits: u64) -> bool {
    let gives = |group: &CallGroup| {
        group.kind == Some(ObjectKind::Socket) && group.transfer == Some(Transfer::Gives)
    };
    let groups = facts.call_groups.of_process(process).map(|(_, group)| group);
    let sent: u64 = groups.filter(|group| gives(group)).map(|group| group.calls).sum();
    sent * 4 >= waits || peer.is_some_and(|peer| facts.call_groups.turns.are_between(process, peer))
}

/// The finding of a producer that is slow, for all but `stalled` of its time.
fn draft(
    found: &Inspection<'_, '_>,
    account: AccountId,
    process: ProcessId,
    stalled: Ns,
) -> Option<Draft> {
    let facts = found.facts;
    let stopped = is_stopped_by_signal(facts, process);
    let delivered = |detail: &Detail| matches!(detail, Detail::Waits(WaitsFor::PipeData, Some(_)));
    let takes = takes_input(facts, process);
    let polls = |detail: &Detail| matches!(detail, Detail::Waits(WaitsFor::Poll, None));
    let entries = || {
        let entries = found.wall.of_process(account, process);
        let entries = entries.filter(|e| takes || !polls(&e.detail));
        let entries =
            entries.filter(|e| !is_idleness(facts, &e.detail) && !is_handed_over(facts, e));
        entries.filter(|e| !stopped || delivered(&e.detail))
    };
    let sum = Sum::of(entries());
    if sum.ns == Ns::ZERO || stalled.share_of(sum.ns) >= STALLED {
        return None;
    }
    let slowest = entries()
        .filter_map(|e| match e.detail {
            Detail::Waits(_, peer) => Some((e.ns, peer)),
            _ => None,
        })
        .max();
    let producer = slowest.and_then(|(_, peer)| peer).map(|p| facts.name(p));
    let network = is_over_network(facts, process);
    let name = facts.name(process);
    let for_names = waits_for_names(found, process, sum.ns);
    let (producer_name, delivered, slow) = words(producer.as_deref(), network, for_names);
    // A wait with only its end on the critical path counts too.
    let times = sum.count.max(1);
    let asks = for_names || asks(facts, process, slowest.and_then(|(_, peer)| peer), times);
    let at_least = if asks { Ns::ZERO } else { sum.alone };
    Some(Draft {
        class: CLASS.id,
        moves: true,
        process,
        title: format!("waits for {producer_name}"),
        text: format!(
            "{name} was blocked {} until {delivered}.{}",
            things(times, "time"),
            if network || for_names {
                String::new()
            } else {
                format!(" A timer inside {name} counts this time.")
            },
        ),
        amount: sum.ns,
        saving: if asks { sum.alone.part(0.5) } else { sum.alone },
        range: (at_least, sum.ns),
        // If wake-ups are not recorded, something else may have ended a wait.
        how: if !asks && (facts.trace.meta.records_wakers() || producer.is_some()) {
            How::Exact
        } else {
            How::Estimate
        },
        sites: sites(facts.symbols(), &sum.places, sum.count),
        evidence: vec![sum.meanwhile()],
        remedy: if for_names { NAMES.into() } else { remedy(asks, network, &name, &slow) },
    })
}

/// What a process waits for, what ended its waits, and what is slow, in words.
fn words(producer: Option<&str>, network: bool, for_names: bool) -> (String, String, String) {
    let words = |what: &str, ended: &str, slow: &str| (what.into(), ended.into(), slow.into());
    match producer {
        _ if for_names => words("a name server", "a name server answered", "the name server"),
        Some(producer) => words(producer, &format!("{producer} delivered input"), producer),
        None if network => words("its input", "data arrived", "the other end of its connections"),
        None => words("its input", "input arrived", "the producer of its input"),
    }
}

/// The advice for waits for name servers.
const NAMES: &str = "If it asks for the same names: keep their addresses, for as long as the answer says (its TTL), or keep \
    the connections that they are for. Or ask a resolver on this machine that does so (systemd-resolved, nscd, dnsmasq).";

/// Whether most of the time that a process waits for input is for answers of name servers.
fn waits_for_names(found: &Inspection<'_, '_>, process: ProcessId, all: Ns) -> bool {
    let questions = network_turns::Questions::of(found.facts, process);
    questions.is_some_and(|questions| questions.waited(found, process).share_of(all) > MOST)
}

/// What `name` can do about its waits for `slow`.
fn remedy(asks: bool, network: bool, name: &str, slow: &str) -> String {
    if asks {
        return format!(
            "If the questions do not depend on each other, send several before waiting for an answer (a batch, \
             pipelining, several connections). Or make {slow} faster."
        );
    }
    if network {
        return format!(
            "Changing {name}'s own code does not help. Make {slow} faster, or let {name} have several requests under \
             way, so that it works on one while it waits for others."
        );
    }
    format!(
        "Changing {name} does not help. Make {slow} faster, or feed {name} from a file that was made beforehand, and \
         time it that way."
    )
}

#[cfg(test)]
mod tests {
    use super::super::tests::{found, repeat, rows};
    use expect_test::expect;

    /// A reader that is measured alone: its producer is outside the command.
    const READER: &str = "task 1 candles
             0 on
           100 off blocked read 0 : anon_pipe_read from fgets <- main (candles.c:77)
           800 on woken-by 9 unpack
          1000 exit
          1000 off dead
        task 9 unpack outside
             0 on";

    #[test]
    fn the_producer_is_found_by_name() {
        expect![[r#"
            wait-input 70 % (70..70) @ main:77: candles was blocked 1 time until unpack delivered input. A timer inside candles counts this time.
        "#]]
        .assert_eq(&found(READER));
        expect![[r#"
            wait-input 700 input from unpack
        "#]]
        .assert_eq(&rows(READER, 1));
    }

    #[test]
    fn a_poll_is_for_input_only_if_some_is_taken_and_is_refused_else() {
        let polls = |read: &str| {
            found(&format!(
                "task 1 app\n0 fd 3 socket:[7]\n0 on\n100 off blocked epoll_wait 4 : ep_poll\n\
                 800 on woken-by interrupt\n810 back 1\n{read}1000 exit\n1000 off dead"
            ))
        };
        assert_eq!(polls(""), "");
        assert!(polls("820 syscall read 3 40\n830 back 40\n").contains("wait-input 70 %"));
    }

    #[test]
    fn what_proc_shows_of_a_long_wait_is_its_place_only_if_nothing_better_is_known() {
        let middle = "           400 site fgets\n           800 on";
        let known = READER.replace("           800 on", middle);
        assert!(found(&known).contains("@ main:77"), "{}", found(&known));
        let bare = known.replace(" from fgets <- main (candles.c:77)", "");
        assert!(found(&bare).contains("@ fgets"), "{}", found(&bare));
    }

    #[test]
    fn a_wait_without_a_stack_is_where_all_such_calls_are_made() {
        let reader = |other: u32| {
            let reads = repeat(9, 0, 10, |t| {
                let line = if t == 40 { other } else { 77 };
                let back = t + 1;
                format!("{t} syscall read 0 from fgets <- main (candles.c:{line})\n{back} back 1\n")
            });
            let first =
                READER.replace("0 on\n           100 off", &format!("0 on\n{reads}\n100 off"));
            found(
                &first.replace(
                    " from fgets <- main (candles.c:77)\n           800",
                    "\n           800",
                ),
            )
        };
        assert!(reader(77).contains("@ main:77: candles was blocked"), "{}", reader(77));
        assert!(reader(80).contains("@ nowhere: candles was blocked"), "{}", reader(80));
    }

    #[test]
    fn a_person_at_a_terminal_is_a_row_and_no_finding() {
        let editor = "task 1 vi
             0 on
           100 off blocked select 1 : do_select
           800 on woken-by 9 kworker : try_to_wake_up < n_tty_receive_buf_common < flush_to_ldisc
          1000 exit
          1000 off dead
        task 9 kworker outside
             0 on";
        assert_eq!(found(editor), "");
        expect![[r#"
            wait-input 700 the terminal
        "#]]
        .assert_eq(&rows(editor, 1));
    }

    #[test]
    fn a_producer_is_found_and_the_kernels_worker_that_hands_over_is_refused() {
        let waits = |waker: &str| {
            found(&format!(
                "task 1 app\n0 fd 3 socket:[7]\n0 on\n100 off blocked epoll_wait 4 : ep_poll\n800 on woken-by 9\n\
                 810 back 1\n820 syscall read 3 40\n830 back 40\n1000 exit\n1000 off dead\n\
                 task 9 {waker} outside\n0 on"
            ))
        };
        assert!(waits("peer").contains("until peer delivered input"), "{}", waits("peer"));
        let handed_over = waits("kworker/u8:0");
        assert!(handed_over.contains("until data arrived"), "{handed_over}");
        assert!(!handed_over.contains("kworker"), "{handed_over}");
    }

    #[test]
    fn one_whole_wait_among_many_hand_overs_makes_no_slow_producer() {
        use super::{AccountId, Detail, Entry, ProcessId, WaitsFor, is_ends};
        let input = AccountId::of_class("wait-input");
        let detail = Detail::Waits(WaitsFor::PipeData, Some(ProcessId(1)));
        let of = |count, slices| Entry { count, slices, ..Entry::new(input, ProcessId(0), detail) };
        assert!(is_ends(&of(0, 1)) && is_ends(&of(1, 900_000)) && is_ends(&of(1, 20)));
        assert!(!is_ends(&of(1, 1)) && !is_ends(&of(2, 20)));
    }

    #[test]
    fn a_program_that_was_attached_to_and_waits_for_work_is_refused() {
        let attached = "attached
        task 1 worker
             0 on
           100 off blocked epoll_wait 4 : ep_poll
           800 on woken-by 9 client : ep_poll_callback
          1000 sample work
        task 9 client outside
             0 on";
        assert_eq!(found(attached), "");
        let fed = attached.replace("epoll_wait 4 : ep_poll\n", "read 0 : anon_pipe_read\n");
        let fed = fed.replace("ep_poll_callback", "anon_pipe_write");
        assert!(found(&fed).contains("until client delivered"), "{}", found(&fed));
    }

    #[test]
    fn a_server_that_idles_is_refused() {
        let server = "task 1 server
             0 on
            10 syscall accept4 3
            20 back 4
           100 off blocked read 4 : sk_wait_data
           800 on woken-by 9 client
          1000 exit
          1000 off dead
        task 9 client outside
             0 on";
        assert_eq!(found(server), "");
    }

    #[test]
    fn a_worker_that_a_server_forked_is_refused() {
        let worker = |exec: &str| {
            format!(
                "task 1 server
                 0 on
                10 syscall listen 3
                20 back 0
                30 fork 2
                40 off blocked wait4 : do_wait
              1000 on woken-by 2
              1010 exit
              1010 off dead
                task 2 server
                50 on
                {exec}
               100 off blocked read 4 : sk_wait_data
               800 on woken-by 9 client
               990 exit
              1000 off dead
                task 9 client outside
                 0 on"
            )
        };
        assert_eq!(found(&worker("")), "");
        let another = found(&worker("60 exec /bin/fetch\n70 main"));
        assert!(another.contains("until client delivered"), "{another}");
    }
}
