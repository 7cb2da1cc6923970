//! Network turns.
//!
//! # What it is
//! A message is sent in two small parts. TCP holds the second part back until the first one is
//! acknowledged (Nagle's algorithm), and the receiver delays that ACK for 40 ms, because it hopes for
//! data of its own to send with it. So each message takes 40 ms, whatever the network.
//!
//! Or a connection is made for each request, though there was one to the same address before: a handshake, a socket
//! and its buffers at both ends, and the libraries' own work for a new connection.
//!
//! # How deadweight knows
//! The receiver has read a part of a message and waits for the rest, time after time for 40 ms: Linux'
//! delay of an ACK, between 38 and 49 ms, if CPUs are busy now and then up to 60 ms. Or the sender
//! waits as long for the answer, whenever it has sent a message over TCP in two calls or more. Other
//! long waits of the same kind are few. If the sender belongs to the command, the place is where it
//! sends twice without reading between; else it is the receiver's read. Both ends of each wait are
//! exact; that the ACK caused it is an estimate. A server whose answers stall is idle in that time,
//! and its clients wait: this is said in a note, without a saving.
//!
//! The recorder notes a number for the address of each `connect`. A connection is made *again* if one of the same
//! process to the same address had been closed, and no other took its place since. The time is that of the calls that
//! make and end these connections, at both ends if the peer belongs to the command, and of waits in `connect`; it is exact.
//! The upper end has the CPU time of functions that only make or end connections besides, and what a library allocates
//! and starts for each connection elsewhere, by the measure of three pairs of programs. Handshakes of TLS are known by
//! their functions, and count with the connections. So do waits for a name server that is asked for each: datagrams to
//! port 53 of an address of IPv4, in the thread that waits.
//! Without programs in the kernel the addresses are not known, and nothing is said.
//!
//! # What it is mistaken for
//! A peer that needs time: its waits differ in length, come before the first part, or are as long after a
//! message that was sent in one call, with TCP_NODELAY, or as the first of its connection (Linux acknowledges
//! that at once): *wait-input*. A stream of events that nobody asked for. Connections that are open at
//! once, as those of a pool; to different addresses; that carried nothing, as when looking whether a port is open.
//!
//! # What to do
//! Send each message in one call: one buffer, or writev. Or set TCP_NODELAY at the sender. If it cannot be
//! changed, set TCP_QUICKACK at the receiver before each read. Keep connections, and send the next request on them.
//!
//! # Seen in
//! Queries whose 8-byte head was written before the body. HTTP clients without keep-alive: two thirds of the time of a Go
//! program that asked a service on the same machine for prices.
//! In `tests/programs`: `sent_in_parts.c`, `connects_again.c`.

mod delayed_ack;
mod handshakes;
mod names;
mod reconnects;
mod sender;
mod sockets;

use super::{AccountId, Claim, Class, Inspection};
use crate::facts::Facts;
use crate::facts::call_site::sites;
use crate::facts::processes::ProcessId;
use crate::inspect::{Draft, processes_in};
use deadweight_report::report::How;
use deadweight_report::wording::{things, time};
use deadweight_trace::units::Ns;
use delayed_ack::Stalls;
pub(super) use names::Questions;
pub(super) use reconnects::waits_for_peer;
use sender::Sender;

pub(super) const CLASS: Class = Class {
    id: "network-turns",
    source: include_str!("network_turns.rs"),
    // Waits for an ACK are a part of the row of waits for input.
    claim: Claim::Slices(reconnects::claims),
    inspect,
};

/// The time that a process waited for messages that an ACK held back, and for name servers that it asks for each
/// connection that it makes again.
pub(super) fn stalled(found: &Inspection<'_, '_>, process: ProcessId) -> Ns {
    let held_back = Stalls::of(found.facts, process).map_or(Ns::ZERO, |stalls| stalls.ns);
    held_back + reconnects::waited_for_names(found, process).map_or(Ns::ZERO, |(_, ns)| ns)
}

/// What a program that serves does to its clients. It is no saving of its own time: it is idle until the next request.
pub(crate) fn of_service(facts: &Facts<'_>) -> Option<String> {
    let subject = &facts.path.subject;
    subject.service.as_ref()?;
    let owned = |process: &ProcessId| {
        facts.processes.get(*process).tasks.iter().any(|task| subject.owns(*task))
    };
    let processes = (0..facts.processes.all.len())
        .filter_map(|at| u32::try_from(at).ok().map(ProcessId))
        .filter(owned);
    let held = processes.filter_map(|process| delayed_ack::held_back_answers(facts, process));
    let sender = held.max_by_key(|sender| sender.messages)?;
    let place = sender.sites(facts.symbols()).into_iter().find(|site| site.line > 0);
    let place =
        place.map(|site| format!(" The place: {}:{} {}.", site.file, site.line, site.function));
    Some(format!(
        "{} sent {} in parts, and the next request on the same connection came 40 ms later or little more: TCP \
         holds the later part back until the client acknowledges the first (Nagle's algorithm), and Linux delays \
         that ACK for 40 ms. This time is idle here, but the clients wait. Send each answer in one call (one \
         buffer, writev), or set TCP_NODELAY.{}",
        facts.name(sender.process),
        things(sender.messages, "answer"),
        place.unwrap_or_default()
    ))
}

fn inspect(found: &Inspection<'_, '_>) -> Vec<Draft> {
    let waiting = found.wall.in_account(AccountId::of_class("wait-input"));
    let processes = processes_in(waiting).into_iter();
    let stalls = processes.filter_map(|id| Some((id, Stalls::of(found.facts, id)?)));
    let stalls = stalls.map(|(process, stalls)| draft(found.facts, process, &stalls));
    stalls.chain(reconnects::inspect(found)).collect()
}

fn draft(facts: &Facts<'_>, process: ProcessId, stalls: &Stalls) -> Draft {
    let name = facts.name(process);
    let others = || Sender::of(facts, process, stalls.count);
    let others = if stalls.sender.is_none() { others() } else { None };
    let sender = stalls.sender.as_ref().or(others.as_ref());
    let waits = || sites(facts.symbols(), &stalls.places, stalls.count);
    let sends = sender.map(|sender| sender.sites(facts.symbols()));
    let sites = sends.filter(|sites| !sites.is_empty()).unwrap_or_else(waits);
    let peer = sender.map_or("the peer".to_owned(), |s| facts.name(s.process));
    let each = time(Ns(stalls.ns.0 / stalls.count.max(1)));
    let (until, who, first) = match &stalls.sender {
        Some(_) => {
            ("a message was answered", "it", "each stall follows the last part of a message")
        }
        None => (
            "the rest of a message arrived",
            peer.as_str(),
            "each stall follows a part of the same message",
        ),
    };
    let mut evidence = vec![format!("{first}, {each} on average")];
    if let Some(sender) = sender {
        evidence.push(format!(
            "{peer} sent {} in parts, without a read between them",
            things(sender.messages, "message")
        ));
    }
    Draft {
        class: CLASS.id,
        moves: false,
        process: sender.map_or(process, |sender| sender.process),
        title: "messages stall for 40 ms (Nagle's algorithm and delayed ACKs)".into(),
        text: format!(
            "{name} waited {} for 40 ms or little more until {until}: {who} sends each \
             message in small parts, and TCP holds the later part back until the first is acknowledged. \
             Linux delays that ACK for 40 ms.",
            things(stalls.count, "time"),
        ),
        amount: stalls.ns,
        saving: stalls.ns,
        range: (stalls.ns.part(0.97), stalls.ns),
        how: How::Estimate,
        sites,
        evidence,
        remedy: match sender {
            Some(_) => "Send each message in one call (one buffer, writev), or set TCP_NODELAY.",
            None => {
                "At the peer: send each message in one call (a buffer, writev), or set TCP_NODELAY. If the \
                 peer cannot be changed, set TCP_QUICKACK here before each read."
            }
        }
        .into(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{found, repeat, weighed};

    /// A client that sends `asks` times per reply of two parts; the second part arrives `gap` ms later.
    fn client(asks: bool, gap: u64) -> String {
        let reply = |at: u64| {
            let ask = format!("{at} syscall sendto 3 18 0\n{} back 18\n", at + 5);
            let later = at + gap * 1_000_000;
            format!(
                "{}{} syscall recvfrom 3 65536 0\n{} back 40
                 {} off blocked recvfrom 3 65536 0 : sk_wait_data from fgets <- get (client.c:7)
                 {later} on woken-by 9 server\n{} back 500\n",
                if asks { &ask } else { "" },
                at + 10,
                at + 20,
                at + 30,
                later + 10
            )
        };
        let replies = repeat(10, 100, 60_000_000, reply);
        format!(
            "task 1 client\n0 on\n10 syscall socket 2 1 0\n20 back 3\n30 syscall connect 3\n40 back 0
             {replies}600_000_000 exit\n600_000_000 off dead\ntask 9 server outside\n0 on"
        )
    }

    #[test]
    fn replies_in_two_parts_40_ms_apart_are_found_with_the_delayed_ack() {
        let found = found(&client(true, 42));
        assert!(
            found.starts_with("network-turns 70 % (61..74) @ get:7: client waited 10 times"),
            "{found}"
        );
        assert_eq!(found.lines().count(), 1, "{found}");
    }

    #[test]
    fn parts_that_come_unasked_or_at_other_times_are_refused() {
        let stream = found(&client(false, 42));
        assert!(!stream.contains("ACK") && stream.contains("was blocked 10 times"), "{stream}");
        let slow = found(&client(true, 55));
        assert!(!slow.contains("ACK") && slow.contains("was blocked 10 times"), "{slow}");
    }

    /// A client that sends a query in two parts, and a server of the same command that waits for the second.
    fn both(parts: bool) -> String {
        const EACH: u64 = 45_000_000;
        let ask = |at: u64| {
            let head = format!(
                "{at} syscall write 3 8 from send (a.c:63) <- main (a.c:99)\n{} back 8\n",
                at + 10
            );
            format!(
                "{}{} syscall write 3 40 from send (a.c:64) <- main (a.c:99)\n{} back 40\n\
                 {} off blocked read 3 8 : sk_wait_data\n{} on woken-by 2\n{} back 8\n",
                if parts { &head } else { "" },
                at + 20,
                at + 30,
                at + 40,
                at + 42_000_000,
                at + 42_000_010
            )
        };
        let serve = |at: u64| {
            format!(
                "{} on woken-by 1\n{} back 8\n{} off blocked read 4 40 : sk_wait_data\n\
                 {} on woken-by interrupt\n{} back 40\n{} syscall write 4 8\n{} back 8\n{} off blocked read 4 8 : sk_wait_data\n",
                at + 12,
                at + 14,
                at + 20,
                at + 41_000_000,
                at + 41_000_010,
                at + 41_900_000,
                at + 41_999_000,
                at + 42_000_000,
            )
        };
        format!(
            "task 1 client\n0 on\n0 exec /bin/client\n0 main\n100 syscall socket 2 1 0\n110 back 3\n120 syscall connect 3\n130 back 0\n200 fork 2\n{}\
             900_000_000 exit\n900_000_000 off dead\n\
             task 2 server\n300 on\n310 syscall accept4 3\n320 back 4\n330 off blocked read 4 8 : sk_wait_data\n{}",
            repeat(20, 1_000, EACH, ask),
            repeat(20, 1_000, EACH, serve)
        )
    }

    #[test]
    fn a_message_in_two_writes_is_found_at_the_sender() {
        let said = found(&both(true));
        assert!(said.starts_with("network-turns 8"), "{said}");
        assert!(said.contains("@ send:6") && said.contains("client sends each message"), "{said}");
    }

    /// A client of an outside server that sends a message of 1 or 2 parts on a connection of this set-up, and waits
    /// for `ms` until it is answered: in a read, or in epoll.
    fn asks(setup: &str, parts: u64, ms: u64, epoll: bool) -> String {
        begins(setup, parts, 1, ms, epoll)
    }

    /// The same, where the first answer takes `first` ms.
    fn begins(setup: &str, parts: u64, first: u64, ms: u64, epoll: bool) -> String {
        let ask = |at: u64, ms: u64| {
            let part = |i: u64| {
                let (at, line) = (at + i * 10, 19 + i);
                format!(
                    "{at} syscall sendto 3 4 0 from send (c.rs:{line}) <- main (c.rs:40)\n{} back 4\n",
                    at + 5
                )
            };
            let later = at + ms * 1_000_000;
            let wait = if epoll {
                format!(
                    "{} syscall read 3 4\n{} back -11\n{} off blocked epoll_wait 4 : ep_poll\n\
                     {later} on woken-by interrupt\n{} back 1\n{} syscall read 3 4",
                    at + 40,
                    at + 45,
                    at + 50,
                    later + 10,
                    later + 12
                )
            } else {
                format!(
                    "{} off blocked recvfrom 3 4 0 : sk_wait_data\n{later} on woken-by 9 server",
                    at + 50
                )
            };
            format!("{}{wait}\n{} back 4\n", (0..parts).map(part).collect::<String>(), later + 20)
        };
        format!(
            "task 1 client\n0 on\n10 syscall socket 2 1 0\n20 back 3\n{setup}{}{}\
             600_000_000 exit\n600_000_000 off dead\ntask 9 server outside\n0 on",
            ask(100, first),
            repeat(9, 60_000_100, 60_000_000, |at| ask(at, ms))
        )
    }

    const TCP: &str = "30 syscall connect 3 16\n40 back 0\n";

    #[test]
    fn the_clients_own_two_sends_are_found_before_an_answer_40_ms_later() {
        for epoll in [false, true] {
            let said = found(&asks(TCP, 2, 43, epoll));
            assert!(said.starts_with("network-turns 64 %"), "{said}");
            assert!(said.contains("@ send:19") && said.contains("it sends each message"), "{said}");
            assert_eq!(said.lines().count(), 1, "{said}");
        }
    }

    #[test]
    fn a_server_that_takes_40_ms_after_one_send_is_refused() {
        for epoll in [false, true] {
            let said = found(&asks(TCP, 1, 43, epoll));
            assert!(!said.contains("ACK") && said.contains("was blocked 10 times"), "{said}");
        }
    }

    #[test]
    fn a_server_whose_first_answer_takes_as_long_is_refused() {
        let said = found(&begins(TCP, 2, 43, 43, false));
        assert!(!said.contains("ACK") && said.contains("was blocked 10 times"), "{said}");
    }

    #[test]
    fn two_sends_that_nothing_holds_back_are_refused() {
        let no_delay = format!("{TCP}50 syscall setsockopt 3 6 1\n60 back 0\n");
        let local = "30 syscall connect 3 110\n40 back 0\n";
        for (setup, ms) in [(no_delay.as_str(), 43), (local, 43), (TCP, 20), (TCP, 55)] {
            let said = found(&asks(setup, 2, ms, false));
            assert!(!said.contains("ACK") && said.contains("was blocked 10 times"), "{said}");
        }
    }

    #[test]
    fn no_delay_that_is_set_again_as_go_programs_do_is_found() {
        let off =
            "50 syscall setsockopt 3 6 1\n55 back 0\n60 syscall setsockopt 3 6 1\n65 back 0\n";
        let said = found(&asks(&format!("{TCP}{off}"), 2, 43, true));
        assert!(said.starts_with("network-turns 64 %"), "{said}");
    }

    /// The note about a server that was joined, which answers ten requests in this many parts; the next one comes `ms`
    /// later.
    fn serves(parts: u64, ms: u64) -> Option<String> {
        let request = |at: u64| {
            let part = |i: u64| {
                let (at, line) = (at + 20 + i * 10, 19 + i);
                format!(
                    "{at} syscall write 12 135 from answer (a.c:{line}) <- main\n{} back 135\n",
                    at + 5
                )
            };
            let later = at + ms * 1_000_000;
            format!(
                "{at} syscall read 12 8192\n{} back 106\n{}{} off blocked epoll_wait 4 : ep_poll\n\
                 {later} on woken-by interrupt\n{} back 1\n",
                at + 5,
                (0..parts).map(part).collect::<String>(),
                at + 60,
                later + 10
            )
        };
        let text = format!(
            "attached\ntask 1 server\n0 fd 12 socket:[7]\n0 on\n{}700_000_000 sample work",
            repeat(10, 100, ms * 1_000_000 + 100, request)
        );
        weighed(&text).warnings.into_iter().find(|note| note.contains("ACK"))
    }

    #[test]
    fn a_servers_answers_in_two_writes_are_found_and_said_in_a_note() {
        let note = serves(2, 43).unwrap();
        assert!(note.starts_with("server sent 9 answers in parts"), "{note}");
        assert!(note.ends_with("The place: a.c:19 answer."), "{note}");
    }

    #[test]
    fn a_client_that_asks_40_ms_after_a_whole_answer_or_at_other_times_is_refused() {
        for (parts, ms) in [(1, 43), (2, 20), (2, 57)] {
            assert_eq!(serves(parts, ms), None);
        }
    }
}
