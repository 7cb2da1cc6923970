//! Questions to name servers: how often a process asks one, and which of its waits are for the answers.
//!
//! A question is a datagram to port 53 of an address that the socket was connected to, as the C library does it. What it
//! asks for is not known. Sockets that stay open, and addresses of IPv6, are not recognised.

use crate::account::AccountId;
use crate::facts::Facts;
use crate::facts::call_site::CallSite;
use crate::facts::processes::ProcessId;
use crate::inspect::Inspection;
use crate::timeline::Call;
use crate::timeline::descriptors::ObjectKind;
use crate::timeline::transfer::Transfer;
use deadweight_trace::ids::{StackId, TaskId};
use deadweight_trace::syscall;
use deadweight_trace::units::Ns;
use std::collections::{BTreeMap, BTreeSet};

/// The port of name servers (RFC 1035).
const NAMES: u16 = 53;

/// What a process asked name servers.
#[derive(Debug, Default)]
pub(crate) struct Questions {
    /// How many questions it sent.
    pub(crate) count: u64,
    /// Where its threads wait for answers.
    sites: BTreeSet<StackId>,
}

/// When a thread asked, and when it had its answer or gave up.
type Asked = (TaskId, Ns, Ns);

impl Questions {
    /// Those of a process; none if it asked none.
    pub(crate) fn of(facts: &Facts<'_>, process: ProcessId) -> Option<Self> {
        let mut groups = facts.call_groups.of_process(process).map(|(_, group)| group);
        let asks = |name: &str, kind| name == "connect" && kind == Some(ObjectKind::Datagrams);
        if !groups.any(|group| asks(group.name, group.kind)) {
            return None;
        }
        let (count, asked) = walk(facts, process);
        let waits = facts.waits_of(process).filter(|block| {
            let first = asked
                .partition_point(|(task, start, _)| (*task, *start) <= (block.task, block.start));
            let before = first.checked_sub(1).map(|at| asked[at]);
            before.is_some_and(|(task, _, end)| task == block.task && block.start <= end)
        });
        let sites = waits.map(|block| facts.site_of(block)).filter(|site| *site != StackId(0));
        Some(Self { count, sites: sites.collect() }).filter(|questions| questions.count > 0)
    }

    /// The time on the path that the process waited for answers.
    pub(crate) fn waited(&self, found: &Inspection<'_, '_>, process: ProcessId) -> Ns {
        let is_here =
            |site: CallSite| site.stack().is_some_and(|stack| self.sites.contains(&stack));
        let entries = found.wall.of_process(AccountId::of_class("wait-input"), process);
        entries.map(|entry| entry.time_at(is_here)).sum()
    }
}

/// The number of questions, and when which thread waited for an answer, by thread and time.
fn walk(facts: &Facts<'_>, process: ProcessId) -> (u64, Vec<Asked>) {
    let arch = facts.trace.meta.arch;
    let [connect, close] = ["connect", "close"].map(|name| syscall::number(arch, name));
    // Sockets of name servers, each with the latest question.
    let mut open: BTreeMap<u32, Option<Asked>> = BTreeMap::new();
    let (mut count, mut asked) = (0, Vec::new());
    for call in facts.timeline.calls.iter().filter(|c| facts.processes.of(c.task) == process) {
        let Some(object) = call.object() else { continue };
        let nr = Some(call.nr);
        if nr == connect {
            match is_of_names(facts, call) {
                true => open.insert(object, None),
                false => open.remove(&object),
            };
        } else if nr == close {
            asked.extend(open.remove(&object).flatten());
        } else if let Some(latest) = open.get_mut(&object) {
            match syscall::name(arch, call.nr).and_then(Transfer::of) {
                Some(Transfer::Gives) => {
                    count += call.times();
                    *latest = latest.or(Some((call.task, call.start, call.end)));
                }
                Some(Transfer::Takes) => {
                    if let Some((.., end)) = latest {
                        *end = call.end;
                    }
                }
                _ => {}
            }
        }
    }
    asked.extend(open.into_values().flatten());
    asked.sort_unstable();
    (count, asked)
}

fn is_of_names(facts: &Facts<'_>, call: &Call) -> bool {
    let kind = call.object().and_then(|object| facts.timeline.objects.get(object)).map(|o| o.kind);
    let peer = syscall::peer(&facts.timeline.args(call)).and_then(syscall::ipv4_peer);
    kind == Some(ObjectKind::Datagrams) && peer.is_some_and(|peer| peer.port() == NAMES)
}

#[cfg(test)]
mod tests {
    use crate::cost::tests::{found, repeat, weighed};
    use std::fmt::Write;

    /// 127.0.0.1 with port 53, with port 123, and 127.0.0.1:8099, as the recorder writes them.
    const SERVER: &str = "0xc0000100007f3500";
    const CLOCK: &str = "0xc0000100007f7b00";
    const SERVICE: &str = "0xc0000100007fa31f";

    /// Calls that begin a microsecond after each other.
    fn calls(at: u64, calls: &[&str]) -> String {
        let mut text = String::new();
        for (number, call) in (0..).zip(calls) {
            let (call, result) = call.split_once(" = ").unwrap();
            let at = at + 1000 * number;
            writeln!(text, "{at} syscall {call} from ask (a.c:6) <- main (a.c:9)").unwrap();
            writeln!(text, "{} back {result}", at + 500).unwrap();
        }
        text
    }

    /// A program that asks 40 times, with a socket of its own for each, and waits for 0.9 ms; `then`: calls behind that.
    fn asks(server: &str, then: &[&str]) -> String {
        let connect = format!("connect 3 {server} 16 = 0");
        let question = |at: u64| {
            format!(
                "{}{} off blocked poll 0 1 : do_sys_poll from poll @libc.so.6 <- ask (a.c:6) <- main (a.c:9)\n\
                 {} on woken-by interrupt\n{} back 1\n{}{}",
                calls(at, &["socket 2 2 0 = 3", &connect, "sendto 3 37 0 = 37"]),
                at + 4000,
                at + 904_000,
                at + 905_000,
                calls(at + 906_000, &["recvfrom 3 1024 0 = 53", "close 3 = 0"]),
                calls(at + 910_000, then)
            )
        };
        format!(
            "task 1 app\n0 on\n0 main\n{}40_000_000 exit\n40_000_000 off dead",
            repeat(40, 1_000, 1_000_000, question)
        )
    }

    #[test]
    fn waits_for_a_name_server_are_found_by_that_name() {
        let said = found(&asks(SERVER, &[]));
        assert!(said.contains("wait-input 45 % (0..92) @ ask:6"), "{said}");
        assert!(said.contains("until a name server answered"), "{said}");
    }

    #[test]
    fn datagrams_to_another_port_are_refused() {
        let said = found(&asks(CLOCK, &[]));
        assert!(
            said.contains("app was blocked 40 times") && !said.contains("name server"),
            "{said}"
        );
    }

    /// What a kept connection saves; the names that are asked for, for connections that are made once, stay.
    #[test]
    fn questions_for_connections_that_are_made_again_are_found_with_them() {
        let connect = format!("connect 3 {SERVICE} 16 = 0");
        let again = [
            "socket 2 1 0 = 3",
            &connect,
            "write 3 8 = 8",
            "read 3 4 = 4",
            "shutdown 3 1 = 0",
            "close 3 = 0",
        ];
        let report = weighed(&asks(SERVER, &again));
        let [only] = &report.findings[..] else { panic!("{:?}", report.findings) };
        assert_eq!(only.class, "network-turns");
        assert!(only.saving_share > 0.85, "{only:?}");
        assert!(only.evidence.iter().any(|said| said.contains("40 questions")), "{only:?}");
    }
}
