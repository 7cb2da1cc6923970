//! A connection for each request: connections to the same peer made again and again, though one that was closed could
//! have been kept.

use super::{CLASS, Questions, handshakes};
use crate::account::{AccountId, Detail, Entry, IDLE, Slice, What};
use crate::facts::Facts;
use crate::facts::call_groups::CallGroup;
use crate::facts::call_site::{CallSite, Weights, add, is_own, own_frame, sites};
use crate::facts::connections::Connections;
use crate::facts::processes::ProcessId;
use crate::inspect::syscalls::entry_cost::at_least;
use crate::inspect::{Draft, Inspection, Sum, all_calls, in_words};
use crate::timeline::descriptors::{ObjectKind, Origin};
use crate::timeline::kernel_stacks::WaitsFor;
use crate::timeline::transfer::Transfer;
use deadweight_report::report::How;
use deadweight_report::wording::{count, things, time};
use deadweight_trace::syscall;
use deadweight_trace::units::Ns;
use std::collections::BTreeSet;

/// Fewer connections are no repetition.
const MANY: u64 = 20;
/// What a connection costs with all besides, at most, in percent of these calls: waits until the other end takes it,
/// threads and goroutines for it, their stacks, buffers. Of a client and a service in C 54 % was in these calls and 76 %
/// saved; of two in Go, whose library starts three goroutines for each connection, 37 and 22 %, and 65 and 72 % saved.
const BESIDES: u64 = 175;
const BESIDES_IN_GO: u64 = 300;
/// This part of the handshakes is saved at least: a session that is resumed needs less.
const HANDSHAKES: f64 = 0.7;
/// The part of the waits for answers on new connections that the other end, outside of the command, may need for them.
/// Three clients of services on the same machine saved 50 to 58 %, of which 20 to 30 were in their own calls.
const TAKING: f64 = 0.65;
/// If the other end closed more than this part of them first, it must change, too.
const MOST: f64 = 0.5;

/// Which end of a connection a call is made at.
#[derive(Copy, Clone, PartialEq, Eq)]
enum End {
    /// That of the process that made it.
    Made,
    /// That of the process that took it.
    Taken,
}

/// The connections of a process that makes most of them again, to the same peers.
fn made_again<'f>(facts: &'f Facts<'_>, process: ProcessId) -> Option<&'f Connections> {
    let connections = facts.connections.of(process)?;
    let again = connections.again;
    (again >= MANY && again * 2 >= connections.made).then_some(connections)
}

/// Whether a process takes connections that another one of the command, or the same, makes again and again. Those that a
/// program which serves takes come from its clients.
fn takes_them(facts: &Facts<'_>, process: ProcessId) -> bool {
    let taken = facts.connections.of(process).map_or(0, |connections| connections.taken);
    let mut clients = facts.connections.each().filter_map(|(id, _)| made_again(facts, id));
    let serves = facts.path.subject.service.is_some();
    !serves && taken >= MANY && clients.any(|connections| connections.again * 2 >= taken)
}

/// Whether a slice makes or ends such connections: in the kernel, or blocked until the peer agrees.
pub(super) fn claims(facts: &Facts<'_>, slice: &Slice) -> bool {
    match slice.what {
        What::Call(id, _) => {
            let group = facts.call_groups.get(id);
            !slice.starting
                && match end(group) {
                    Some(End::Made) => made_again(facts, group.process).is_some(),
                    Some(End::Taken) => takes_them(facts, group.process),
                    None => false,
                }
        }
        What::Wait(block) => waits_for_peer(facts, block),
        _ => false,
    }
}

/// Whether a wait is for the peer of such a connection, which is being made.
pub(crate) fn waits_for_peer(facts: &Facts<'_>, block: u32) -> bool {
    let Some(block) = facts.timeline.blocks.get(block as usize) else { return false };
    block.waits_for == WaitsFor::SocketData
        && facts.call_of(block) == "connect"
        && made_again(facts, facts.processes.of(block.task)).is_some()
}

/// The end of a connection that these calls make or end, if they do.
fn end(group: &CallGroup) -> Option<End> {
    match (group.name, group.origin) {
        ("socket", _) => Some(End::Made),
        ("accept" | "accept4", _) => Some(End::Taken),
        _ if group.kind != Some(ObjectKind::Socket) => None,
        ("connect", _) | (_, Origin::Connected) => Some(End::Made),
        (_, Origin::Accepted) => Some(End::Taken),
        _ => None,
    }
}

/// The finding of the process that makes most of them.
pub(super) fn inspect(found: &Inspection<'_, '_>) -> Option<Draft> {
    let facts = found.facts;
    let account = AccountId::of_class(CLASS.id);
    let entries = || found.wall.in_account(account);
    let clients = facts.connections.each().map(|(process, _)| process);
    let clients = clients.filter_map(|process| Some((process, made_again(facts, process)?)));
    let (process, connections) = clients.max_by_key(|(_, connections)| connections.again)?;
    let sum = Sum::of(entries());
    if sum.ns == Ns::ZERO {
        return None;
    }
    let name = facts.name(process);
    let [calls, other] = [End::Made, End::Taken].map(|at| calls_at(facts, entries(), at));
    let other = if other.is_empty() { other } else { format!("; at the other end {other}") };
    // A part of the connections is needed.
    let part = connections.again as f64 / connections.made.max(1) as f64;
    let low = at_least(found, sum.ns, sum.count).part(part);
    // Where several threads and processes share the work, its part of all CPU time says more than the path.
    let around = around(found, process);
    let of_cpu = (found.cpu.of(account) + around).share_of(found.cpu.net());
    let waits = found.wall.entries.iter().filter(|e| matches!(e.detail, Detail::Waits(..)));
    let waits: Ns = waits.filter(|e| e.account != IDLE && e.account != account).map(|e| e.ns).sum();
    let known = sum.ns.max((found.wall.net() - waits).part(of_cpu)).part(part);
    let both = !other.is_empty() && facts.path.subject.service.is_none();
    let besides = match &*facts.processes.get(process).language {
        // The other ends are elsewhere, and functions that make connections are known.
        _ if !both => 100,
        "Go" => BESIDES_IN_GO,
        _ => BESIDES,
    };
    // The same of the handshakes, which both ends compute.
    let shakes = |id| id == process || takes_them(facts, id);
    let handshakes = handshakes::cpu_time(found, shakes).part(part);
    let handshakes = (found.wall.net() - waits).part(handshakes.share_of(found.cpu.net()));
    let names = waited_for_names(found, process);
    let asking = names.map_or(Ns::ZERO, |(_, ns)| ns).part(part);
    let low = low + handshakes.part(HANDSHAKES) + asking;
    // Of the waits for answers, some are turns of handshakes, or until the other end has taken the connection.
    let turns = match handshakes > Ns::ZERO {
        true => input(found, process),
        false if both => Ns::ZERO,
        false => (input(found, process) - asking).part(TAKING),
    };
    let high = (known.scaled(besides, 100) + handshakes + asking).min(found.wall.net());
    let most = if both { high.max(needless(found).part(part)) } else { high };
    let most = (most + turns).min(found.wall.net());
    let by_peer = connections.ended_by_peer as f64 > connections.made as f64 * MOST;
    Some(Draft {
        class: CLASS.id,
        moves: false,
        process,
        title: "a new connection to the same peer again and again".into(),
        text: format!(
            "{name} made {} of its {} to {} when an earlier one to the same address had been closed: {calls}{other}.",
            count(connections.again),
            things(connections.made, "connection"),
            peers(connections),
        ),
        amount: sum.ns,
        saving: Ns(low.0.midpoint(high.0.midpoint(most.0))),
        range: (low, most),
        how: How::Estimate,
        sites: sites(facts.symbols(), &places(found, process, entries()), connections.made),
        evidence: evidence(by_peer.then_some(connections.ended_by_peer), around, handshakes, names),
        remedy: remedy(&facts.processes.get(process).language, by_peer),
    })
}

/// The calls of these entries that make or end this end of connections, in words; those beside the path, too.
fn calls_at<'e>(facts: &Facts<'_>, entries: impl Iterator<Item = &'e Entry>, at: End) -> String {
    let at = |entry: &&Entry| {
        let Detail::Calls(group) = entry.detail else { return false };
        end(facts.call_groups.get(group)) == Some(at)
    };
    let calls = in_words(all_calls(facts, entries.filter(at)), 4);
    calls.into_iter().map(|(_, said)| said).collect::<Vec<_>>().join(", ")
}

/// How often a process that makes most of its connections again asks name servers, and how long it waits for them.
pub(super) fn waited_for_names(
    found: &Inspection<'_, '_>,
    process: ProcessId,
) -> Option<(u64, Ns)> {
    made_again(found.facts, process)?;
    let questions = Questions::of(found.facts, process)?;
    let waited = questions.waited(found, process);
    (waited > Ns::ZERO).then_some((questions.count, waited))
}

/// Waits of a process for input: of each new connection, some are turns of the handshake.
fn input(found: &Inspection<'_, '_>, process: ProcessId) -> Ns {
    found.wall.of_process(AccountId::of_class("wait-input"), process).map(|e| e.ns).sum()
}

fn evidence(
    ended_by_peer: Option<u64>,
    around: Ns,
    handshakes: Ns,
    names: Option<(u64, Ns)>,
) -> Vec<String> {
    let by_peer =
        ended_by_peer.map(|ended| format!("the peer closed {} of them first", count(ended)));
    let around = (around > Ns::ZERO).then(|| {
        format!("{} of CPU time more in functions that only make or end connections", time(around))
    });
    let handshakes = (handshakes > Ns::ZERO).then(|| {
        format!("{} in handshakes of TLS, which each new connection needs", time(handshakes))
    });
    let names = names.map(|(questions, ns)| {
        format!(
            "{} until a name server answered, {}: a kept connection asks none",
            time(ns),
            things(questions, "question")
        )
    });
    by_peer.into_iter().chain(around).chain(handshakes).chain(names).collect()
}

/// Time of a command with both ends, without the program's own code and the transfers: at most so much goes with the
/// connections. Both schedulers, their timers and wake-ups, and the memory of each connection are in it.
fn needless(found: &Inspection<'_, '_>) -> Ns {
    let facts = found.facts;
    let account = AccountId::of_class(CLASS.id);
    let needed = found.wall.entries.iter().map(|entry| match entry.detail {
        Detail::Waits(..) if entry.account != account && entry.account != IDLE => entry.ns,
        Detail::Calls(group) => match facts.call_groups.get(group).transfer {
            Some(Transfer::Takes | Transfer::Gives) => entry.ns,
            _ => Ns::ZERO,
        },
        _ => entry.sampled_at(|site| is_own_place(facts, site)),
    });
    found.wall.net() - needed.sum()
}

/// CPU time of a process in functions that its calls for connections were made in, but none that sends or receives.
fn around(found: &Inspection<'_, '_>, process: ProcessId) -> Ns {
    let facts = found.facts;
    let symbols = facts.symbols();
    let (mut makes, mut uses) = (BTreeSet::new(), BTreeSet::new());
    for (_, group) in facts.call_groups.of_process(process) {
        let functions = match (end(group), group.transfer) {
            (Some(End::Made), _) => &mut makes,
            (Some(End::Taken), _) if takes_them(facts, process) => &mut makes,
            (Some(End::Taken), _) | (_, Some(Transfer::Takes | Transfer::Gives)) => &mut uses,
            _ => continue,
        };
        let places = group.all_places();
        functions.extend(
            places.keys().flat_map(|site| site.frames(symbols)).map(|(_, frame)| frame.function),
        );
    }
    let only: BTreeSet<_> = makes.difference(&uses).collect();
    let in_them =
        |site: CallSite| site.frames(symbols).any(|(_, frame)| only.contains(&frame.function));
    found.cpu.user_time_of(process).map(|entry| entry.sampled_at(in_them)).sum()
}

/// Where the connections are made; else where the library is called that makes them elsewhere; else where the calls are
/// that go with it.
fn places<'e>(
    found: &Inspection<'_, '_>,
    process: ProcessId,
    entries: impl Iterator<Item = &'e Entry>,
) -> Weights {
    let facts = found.facts;
    let is_known = |places: &Weights| {
        let amount = |own: bool| -> u64 {
            let these = places.iter().filter(|(site, _)| !own || is_own_place(facts, **site));
            these.map(|(_, weight)| weight.amount).sum()
        };
        amount(true) > 0 && amount(true) * 2 >= amount(false)
    };
    let (mut makes, mut all) = (Weights::new(), Weights::new());
    for entry in entries.filter(|entry| entry.process == process) {
        let Detail::Calls(group) = entry.detail else { continue };
        if facts.call_groups.get(group).name == "connect" {
            add(&mut makes, entry.places());
        }
        add(&mut all, entry.places());
    }
    let asks = if is_known(&makes) { Weights::new() } else { asks_library(found, process, &makes) };
    [makes, asks].into_iter().find(is_known).unwrap_or(all)
}

fn is_own_place(facts: &Facts<'_>, site: CallSite) -> bool {
    own_frame(facts.symbols(), site).is_some_and(|(at, frame)| is_own(facts.symbols(), at, frame))
}

/// Where the program's own code calls methods of the type that makes connections in goroutines of its own, by samples.
fn asks_library(found: &Inspection<'_, '_>, process: ProcessId, makes: &Weights) -> Weights {
    let symbols = found.facts.symbols();
    let names = |site: &CallSite| -> Vec<&str> {
        site.frames(symbols).map(|(_, frame)| symbols.name(frame.function)).collect()
    };
    let outermost = |site: &CallSite| names(site).into_iter().rev().find_map(receiver);
    let types: BTreeSet<&str> = makes.keys().filter_map(outermost).collect();
    let mut asks = Weights::new();
    for entry in found.cpu.user_time_of(process) {
        let calls = |site: &CallSite| {
            is_own_place(found.facts, *site)
                && names(site).into_iter().filter_map(receiver).any(|of| types.contains(of))
        };
        let samples = entry.samples.iter().filter(|(site, _)| calls(site));
        add(&mut asks, &samples.map(|(site, weight)| (*site, *weight)).collect());
    }
    asks
}

/// The type whose method this function of Go is: `net/http.(*Transport)`.
fn receiver(function: &str) -> Option<&str> {
    let end = function.find("(*").and_then(|open| Some(open + function[open..].find(')')?))?;
    Some(&function[..=end])
}

/// The addresses that the connections were made to.
fn peers(connections: &Connections) -> String {
    let most = connections.peers.iter().max_by_key(|(_, times)| **times);
    let address = most.and_then(|(peer, _)| syscall::ipv4_peer(*peer));
    let address = address.map(|address| address.to_string());
    match (connections.peers.len(), address) {
        (0 | 1, Some(address)) => address,
        (0 | 1, None) => "one address".into(),
        (several, Some(address)) => format!("{several} addresses (most: {address})"),
        (several, None) => format!("{several} addresses"),
    }
}

fn remedy(language: &str, by_peer: bool) -> String {
    let keep = match language {
        "Go" => {
            "Use one http.Client, read each body to its end and close it, leave keep-alives on, and set \
             MaxIdleConnsPerHost to the number of requests at once; for a protocol of your own, a pool of net.Conn."
        }
        "Python" => "Keep one session (requests.Session, httpx.Client) or a pool of connections.",
        _ => {
            "Keep the connection and send the next request on it: one client, session or pool for all requests \
             (HTTP keep-alive, a pool of database connections)."
        }
    };
    let both = " The peer must keep it open, too: its keep-alive and idle time-out.";
    format!("{keep}{}", if by_peer { both } else { "" })
}

#[cfg(test)]
mod tests {
    use super::receiver;
    use crate::cost::tests::{found, repeat};

    /// A client that asks a service 100 times: each question has the calls `begin` before it and `end` behind it.
    fn client(begin: &str, end: &str) -> String {
        let lines = |at: u64, calls: &str| -> String {
            let each = calls.split(';').filter(|call| !call.is_empty()).enumerate();
            let call = |(number, call): (usize, &str)| {
                let (call, result) = call.split_once(" = ").unwrap_or((call, "0"));
                let at = at + 1000 * number as u64;
                format!(
                    "{at} syscall {call} from ask (a.c:9) <- main (a.c:20)\n{} back {result}\n",
                    at + 800
                )
            };
            each.map(call).collect()
        };
        let question = |at: u64| {
            let exchange = "write 3 8 = 8;read 3 4 = 4";
            format!("{}{}{}", lines(at, begin), lines(at + 4000, exchange), lines(at + 6000, end))
                .replace("{peer}", &(10 + at / 10_000 % 90).to_string())
        };
        format!(
            "task 1 app\n0 on\n0 main\n{}1100000 exit\n1100000 off dead",
            repeat(100, 10_000, 10_000, question)
        )
    }

    /// The address 127.0.0.1:80 as a number.
    const SERVICE: u64 = 0xc000_0100_007f_5000;
    const SOCKET: &str = "socket 2 1 0 = 3";

    fn connect(peer: u64) -> String {
        format!("{SOCKET};connect 3 {peer} 16")
    }

    /// A service outside of the command takes each new connection before it answers.
    #[test]
    fn waits_for_answers_on_new_connections_are_found_in_the_upper_end_and_others_refused() {
        let waits = |text: String| -> String {
            let line = |line: &str| match line.split_once(" syscall read 3 4") {
                Some((at, _)) => {
                    let at: u64 = at.parse().unwrap();
                    let (off, on) = (at + 10, at + 700);
                    format!(
                        "{line}\n{off} off blocked read 3 4 : sk_wait_data\n{on} on woken-by 9 server\n"
                    )
                }
                None => format!("{line}\n"),
            };
            text.lines().map(line).collect::<String>() + "task 9 server outside\n0 on"
        };
        let high = |text: &str| {
            let found = crate::cost::tests::weighed(text).findings.into_iter();
            found.filter(|f| f.class == "network-turns").map(|f| f.high).sum::<f64>()
        };
        let each = client(&connect(SERVICE), "close 3");
        assert!(high(&waits(each.clone())) > high(&each) && high(&waits(client("", ""))) == 0.0);
    }

    #[test]
    fn a_connection_for_each_question_is_found() {
        let said = found(&client(&connect(SERVICE), "close 3"));
        assert!(
            said.starts_with("network-turns 21 % (21..22) @ ask:9: app made 99 of its 100 connections to 127.0.0.1:80"),
            "{said}"
        );
        assert!(said.contains("socket ×100, connect ×100, close ×100"), "{said}");
    }

    #[test]
    fn handshakes_of_tls_go_with_the_connections() {
        let sampled = |function: &str| {
            let sample =
                |at: u64| format!("{at} sample {function} <- ask (a.c:9) <- main (a.c:20)\n");
            let each = repeat(100, 12_900, 10_000, sample);
            let text = client(&connect(SERVICE), "close 3");
            let mut lines: Vec<&str> = text.lines().chain(each.lines()).collect();
            lines[3..].sort_by_key(|line| {
                line.trim().split(' ').next().unwrap().parse::<u64>().unwrap_or(0)
            });
            found(&format!("sample-period 10000\n{}", lines.join("\n")))
        };
        let said = sampled("bn_mul <- SSL_do_handshake");
        assert!(said.starts_with("network-turns 75 % (58..87) @ ask:9"), "{said}");
        let said = sampled("bn_mul <- SSL_read");
        assert!(said.starts_with("network-turns 21 % (21..22) @ ask:9"), "{said}");
    }

    #[test]
    fn a_handshake_that_is_waited_for_goes_with_the_calls() {
        let waits = client(&connect(SERVICE), "close 3");
        let waits = waits.lines().map(|line| match line.split_once(" syscall connect") {
            Some((at, _)) => {
                let at: u64 = at.trim().parse().unwrap();
                let waits = format!("{at} syscall connect 3 {SERVICE} 16 from ask (a.c:9) <- main (a.c:20)\n{} off blocked : inet_wait_for_connect\n{} on woken-by interrupt\n", at + 100, at + 700);
                waits
            }
            None => format!("{line}\n"),
        });
        let said = found(&waits.collect::<String>());
        assert!(said.starts_with("network-turns") && said.contains("99 of its 100"), "{said}");
        assert!(!said.contains("wait-input"), "{said}");
    }

    #[test]
    fn other_peers_unknown_peers_and_connections_without_traffic_are_refused() {
        // With two digits more these are numbers of peers.
        let others = format!("{SOCKET};connect 3 138350580552821637{{peer}} 16");
        let refused = format!("{SOCKET};connect 3 {SERVICE} 16 = -111");
        for begin in [others, connect(0x7fff_0000), refused] {
            let said = found(&client(&begin, "close 3"));
            assert!(!said.contains("network-turns"), "{begin}: {said}");
        }
    }

    #[test]
    fn one_connection_and_connections_that_are_open_at_once_are_refused() {
        assert!(!found(&client("", "")).contains("network-turns"));
        let kept = client(
            &connect(SERVICE).replace("= 3", "= {peer}").replace("connect 3", "connect {peer}"),
            "",
        );
        assert!(!found(&kept).contains("network-turns"), "{}", found(&kept));
    }

    /// The same client takes a connection for each question, and ends it behind the answer.
    fn proxy() -> String {
        let begin = format!("accept4 9 0 = 5;{}", connect(SERVICE));
        client(&begin, "close 3;close 5")
    }

    #[test]
    fn only_the_end_that_makes_them_is_counted_of_a_program_that_serves() {
        let serves = proxy().replace("exit\n1100000 off dead", "sample main");
        let said = found(&format!("attached\n{serves}"));
        assert!(said.contains(": socket ×100, connect ×100, close ×100."), "{said}");
        // These calls take 3 × 800 ns of the 10 µs of a question, and of the 1.1 ms.
        assert!(said.starts_with("network-turns 21 % (21..22) @ ask:9"), "{said}");
    }

    #[test]
    fn of_a_program_with_both_ends_the_other_is_named() {
        let said = found(&proxy());
        let calls =
            ": socket ×100, connect ×100, close ×100; at the other end close ×100, accept4 ×100.";
        assert!(said.contains(calls), "{said}");
    }

    #[test]
    fn the_type_of_a_method_of_go_is_in_its_name() {
        assert_eq!(receiver("net/http.(*Transport).dialConn.func1"), Some("net/http.(*Transport)"));
        assert_eq!(receiver("runtime.goexit"), None);
    }
}
