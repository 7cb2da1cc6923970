//! The exchanges of a program that serves with its clients, and the CPU time of one.
//!
//! An exchange is data that was received on a socket, and data that was sent there after it: a request and its answer, or
//! several that came together. Where calls were counted together, as many answers as requests are taken. Only where the peer asks: on a connection that the
//! program made itself, an answer comes before the next question, too.

use crate::account::{AccountId, Attribution, Detail, OBSERVER};
use crate::facts::Facts;
use crate::timeline::descriptors::ObjectKind;
use crate::timeline::transfer::Transfer;
use deadweight_report::report::{RequestPart, ServiceInfo};
use deadweight_report::wording::things;
use deadweight_trace::ids::CallId;
use deadweight_trace::units::Ns;
use std::collections::BTreeMap;

/// A part of a request below this share is left out.
const SMALL: f64 = 0.05;
/// So few exchanges say nothing about a request.
const FEW: u64 = 10;
/// If more than this part of them may be the program's own questions, there is no number.
const UNKNOWN: f64 = 0.05;

/// The exchanges of the subject, if it serves.
pub(crate) fn service(facts: &Facts<'_>, cpu: &Attribution) -> Option<ServiceInfo> {
    let service = facts.path.subject.service.as_ref()?;
    let mut requests = 0;
    let (mut unknown, mut connections) = (0, 0);
    for (object, turns) in exchanges(facts) {
        match service.is_asked(object) {
            Some(true) => requests += turns,
            Some(false) => {}
            None => {
                unknown += turns;
                connections += u64::from(turns > 0);
            }
        }
    }
    let is_known = unknown as f64 <= (requests + unknown) as f64 * UNKNOWN;
    requests = if is_known { requests } else { 0 };
    let (parts, whole) = parts(facts, cpu);
    let per_request = |ns: Ns| if requests < FEW { 0.0 } else { ns.0 as f64 / requests as f64 };
    Some(ServiceInfo {
        requests,
        cpu_ns_per_request: per_request(whole),
        parts: parts
            .into_iter()
            .filter(|(_, ns)| requests >= FEW && ns.share_of(whole) >= SMALL)
            .map(|(name, ns)| RequestPart { name, ns: per_request(ns) })
            .collect(),
        uncounted: if is_known {
            String::new()
        } else {
            format!(
                "exchanges are not counted: {} began before the recording, which does not show who asks there",
                things(connections, "connection")
            )
        },
    })
}

/// CPU time by system call and account, largest first, and its sum: without start and tracing.
fn parts(facts: &Facts<'_>, cpu: &Attribution) -> (Vec<(String, Ns)>, Ns) {
    let start = AccountId::of_class("start-up");
    let counts = |account| account != OBSERVER && account != start;
    let mut parts: BTreeMap<&str, Ns> = BTreeMap::new();
    for entry in cpu.entries.iter().filter(|entry| counts(entry.account)) {
        let name = match entry.detail {
            Detail::Calls(group) => facts.call_groups.get(group).name,
            _ => entry.account.group(),
        };
        *parts.entry(name).or_default() += entry.ns;
    }
    let whole = parts.values().copied().sum();
    let mut parts: Vec<_> = parts.into_iter().map(|(name, ns)| (name.to_owned(), ns)).collect();
    parts.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    (parts, whole)
}

/// How often data was sent on each socket after data had been received there.
fn exchanges(facts: &Facts<'_>) -> impl Iterator<Item = (u32, u64)> {
    let subject = &facts.path.subject;
    let mut sockets: BTreeMap<u32, Exchanges> = BTreeMap::new();
    let calls = (0..).map(CallId::at).zip(&facts.timeline.calls);
    for (id, call) in calls.filter(|(_, call)| subject.owns(call.task)) {
        let Some(object) = call.object() else { continue };
        let Some(group) = facts.call_groups.id(id).map(|id| facts.call_groups.get(id)) else {
            continue;
        };
        let messages = group.kind == Some(ObjectKind::Datagrams);
        let is_socket = messages || group.kind == Some(ObjectKind::Socket);
        let direction = match group.transfer {
            Some(Transfer::Takes) => 0,
            Some(Transfer::Gives) => 1,
            _ => continue,
        };
        let Some(ret) = call.ret().and_then(|ret| u64::try_from(ret).ok()) else { continue };
        if !is_socket || ret == 0 {
            continue;
        }
        let exchanges = sockets.entry(object).or_default();
        match group.name {
            "recvmmsg" | "sendmmsg" => exchanges.turns[direction] += ret * call.times(),
            // Each message is a question or an answer of its own.
            _ if messages => exchanges.turns[direction] += call.times(),
            _ => exchanges.add(direction, call.times()),
        }
    }
    let fewer = |socket: Exchanges| socket.turns[0].min(socket.turns[1]);
    sockets.into_iter().map(move |(object, socket)| (object, fewer(socket)))
}

/// What came and went on one socket.
#[derive(Default)]
struct Exchanges {
    /// Turns of the peer and of the program: calls of one direction in a row are one turn.
    turns: [u64; 2],
    latest: Option<usize>,
}

impl Exchanges {
    /// So many calls in this direction; several were counted together, and each is a turn.
    fn add(&mut self, direction: usize, times: u64) {
        let continued = times == 1 && self.latest == Some(direction);
        self.turns[direction] += if continued { 0 } else { times };
        self.latest = Some(direction);
    }
}

#[cfg(test)]
mod tests {
    use crate::cost::tests::weighed;

    /// A joined program that answers `count` requests, of two reads and two writes each.
    fn server(count: u64, first: &str) -> (u64, f64) {
        let request = |at: u64| {
            format!(
                "{} syscall recvfrom 5 64 0\n{} back 64\n{} syscall recvfrom 5 64 0\n{} back 8
                 {} syscall sendto 5 100 0\n{} back 100\n{} syscall sendto 5 10 0\n{} back 10\n",
                at,
                at + 5,
                at + 10,
                at + 15,
                at + 20,
                at + 30,
                at + 40,
                at + 45
            )
        };
        let calls: String = (0..count).map(|i| request(100 + i * 100)).collect();
        let end = 200 + count * 100;
        let text = format!("attached\ntask 1 server\n0 on\n{first}\n{calls}{end} sample work");
        let service = weighed(&text).service.unwrap();
        (service.requests, service.cpu_ns_per_request)
    }

    const ACCEPT: &str = "10 syscall accept4 3\n20 back 5";

    #[test]
    fn an_answer_after_a_request_is_one_whatever_the_number_of_calls() {
        let (requests, each) = server(20, ACCEPT);
        assert_eq!(requests, 20);
        assert!((each - 110.0).abs() < 2.0, "{each}");
    }

    #[test]
    fn each_datagram_is_a_request_or_an_answer_and_a_call_may_move_several() {
        assert_eq!(server(20, "10 fd 5 socket:[9]:datagram").0, 40);
        assert_eq!(server(20, "10 fd 5 socket:[9]").0, 20);
    }

    #[test]
    fn what_the_program_asks_itself_is_no_request() {
        let connect = "10 syscall socket 2 1 0\n20 back 5\n30 syscall connect 5\n40 back 0";
        assert_eq!(server(20, connect).0, 0);
        assert_eq!(server(20, "10 syscall openat 3\n20 back 5").0, 0);
    }

    /// A proxy: on 5 its client asks, and on 6 it asks another server, 20 times. It was joined in the middle of a request
    /// or before it.
    fn proxy(first: &str, in_the_middle: bool) -> (u64, String) {
        let calls = ["recvfrom 5", "sendto 6", "recvfrom 6", "sendto 5"];
        let calls = calls.iter().cycle().skip(if in_the_middle { 2 } else { 0 }).take(80);
        let line = |(i, call): (u64, &&str)| {
            format!("{} syscall {call} 64 0\n{} back 64\n", 100 + i * 10, 105 + i * 10)
        };
        let calls: String = (0..).zip(calls).map(line).collect();
        let text = format!("attached\ntask 1 proxy\n0 on\n{first}\n{calls}2000 sample work");
        let service = weighed(&text).service.unwrap();
        (service.requests, service.uncounted)
    }

    #[test]
    fn an_answer_from_the_server_behind_is_no_request() {
        const ACCEPT: &str = "10 syscall accept4 3\n20 back 5";
        const CONNECT: &str = "30 syscall socket 2 1 0\n40 back 6\n50 syscall connect 6\n60 back 0";
        let counted = (20, String::new());
        assert_eq!(proxy(&format!("{ACCEPT}\n{CONNECT}"), false), counted);
        for (in_the_middle, behind) in
            [(false, "connected"), (true, "connected"), (false, "unnamed"), (true, "unnamed")]
        {
            let named = format!("0 fd 5 socket:[5]:accepted\n0 fd 6 socket:[6]:{behind}");
            assert_eq!(proxy(&named, in_the_middle), counted, "{behind}");
        }
    }

    #[test]
    fn where_either_side_may_be_the_client_nothing_is_counted() {
        let old = "0 fd 5 socket:[5]\n0 fd 6 socket:[6]";
        for in_the_middle in [false, true] {
            let (requests, why) = proxy(old, in_the_middle);
            assert_eq!(requests, 0);
            assert!(why.starts_with("exchanges are not counted: 2 connections began"), "{why}");
        }
        // A server that answers each time before it looks for more asks nobody.
        let (direct, why) = server(20, "0 fd 5 socket:[9]\n10 syscall sendto 5 8 0\n20 back 8");
        assert_eq!(direct, 20, "{why}");
        let accepted = "10 syscall accept4 3\n20 back 5\n30 fd 6 socket:[6]";
        assert_eq!(proxy(accepted, false).0, 0, "the answer to a client may be first, too");
    }

    #[test]
    fn a_few_exchanges_give_no_mean() {
        let (requests, each) = server(3, ACCEPT);
        assert_eq!((requests, each), (3, 0.0));
    }
}
