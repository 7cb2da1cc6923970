//! Other programs on the machine, and quotas: the command had a CPU later than it could have used one.

use super::hazard;
use crate::account::{Attribution, Detail};
use crate::facts::Facts;
use crate::facts::processes::ProcessId;
use crate::path::cpu_holder::CpuHolder;
use crate::timeline::kernel_stacks::WaitsFor;
use crate::timeline::{Block, WokenBy};
use deadweight_report::report::Hazard;
use deadweight_report::wording::{percent, time};
use deadweight_trace::ids::Cpu;
use deadweight_trace::units::Ns;
use std::collections::BTreeMap;

/// Disturbance above this share of the wall time is reported.
const DISTURBED: f64 = 0.05;
/// A program with this part of a CPU during the run leaves the command less than it has alone ...
const NEIGHBOUR: f64 = 0.2;
/// ... if the command had that CPU for this part of the run: otherwise it may not use that CPU.
const SHARED: f64 = 0.005;

/// Other programs had the CPUs that the command waited for.
pub(super) fn disturbed(facts: &Facts<'_>, wall: &Attribution) -> Option<Hazard> {
    let outside = wall.entries.iter().filter_map(|e| match e.detail {
        Detail::Held(CpuHolder::Outside(task)) => Some((e.ns, facts.processes.of(task))),
        _ => None,
    });
    // A task that has the CPU while a quota throttles the command takes nothing from it.
    let total = outside.clone().map(|(ns, _)| ns).sum::<Ns>() - facts.trace.meta.throttled;
    if total.share_of(wall.total) >= DISTURBED {
        // Where wakers are not recorded, other programs have no names either.
        let named = |p: &ProcessId| !facts.processes.get(*p).name.is_empty();
        let worst = most(facts, outside);
        let worst = worst.filter(|(_, p)| facts.trace.meta.records_wakers() && named(p));
        let side = worst.and_then(|(_, p)| Some((is_client(facts, p)?, facts.name(p))));
        let worst = worst.map_or(String::new(), |(_, p)| format!(" (mostly {})", facts.name(p)));
        let advice = match side {
            Some((true, client)) => {
                format!("{client} sends its requests: give it CPUs of its own (taskset)")
            }
            Some((false, server)) => {
                format!(
                    "{server} answers what it asks, and is a part of the same service: more CPUs help both"
                )
            }
            // What is joined or serves cannot be run again.
            None if facts.path.subject.service.is_some() => "Repeat on a quiet machine".to_owned(),
            None => "Repeat on a quiet machine, or with more runs (-r)".to_owned(),
        };
        let text = format!(
            "The command waited {} of the wall time for a CPU that other programs had{worst}. {advice}.",
            percent(total, wall.total),
        );
        return Some(hazard("noisy", text));
    }
    let steal = facts.trace.meta.steal;
    (steal.share_of(wall.total) >= DISTURBED).then(|| {
        let text = format!(
            "The hypervisor took {} of CPU time away during the run. Repeat with more runs (-r).",
            time(steal)
        );
        hazard("noisy", text)
    })
}

/// The program with the most time, and one of its processes: a script's short commands are one program.
fn most(facts: &Facts<'_>, held: impl Iterator<Item = (Ns, ProcessId)>) -> Option<(Ns, ProcessId)> {
    let mut by_name: BTreeMap<String, (Ns, ProcessId)> = BTreeMap::new();
    for (ns, process) in held {
        by_name.entry(facts.name(process)).or_insert((Ns::ZERO, process)).0 += ns;
    }
    by_name.into_values().max()
}

/// Another program had a CPU while the command's own tasks waited for each other on the rest.
pub(super) fn crowded(facts: &Facts<'_>, wall: &Attribution) -> Option<Hazard> {
    let own = wall.entries.iter().filter(|e| matches!(e.detail, Detail::Held(CpuHolder::Own(_))));
    let waited: Ns = own.map(|e| e.ns).sum();
    if waited.share_of(wall.total) < DISTURBED {
        return None;
    }
    let cpus = (0..facts.trace.meta.cpus.max(1)).map(Cpu);
    let (had, process) = cpus.filter_map(|cpu| neighbour(facts, cpu)).max()?;
    let run = facts.path.subject.end - facts.path.subject.start;
    let named = !facts.processes.get(process).name.is_empty();
    (named && had.share_of(run) >= NEIGHBOUR && is_client(facts, process).is_none()).then(|| {
        let text = format!(
            "{} had a CPU for {} of the run, and the command's own tasks waited {} of the wall time for \
             each other on the rest: alone it takes less time than is said here. Repeat on a quiet machine.",
            facts.name(process),
            percent(had, run),
            percent(waited, wall.total),
        );
        hazard("noisy", text)
    })
}

/// The process outside the command that had a CPU longest during the run, if the command had that CPU, too.
fn neighbour(facts: &Facts<'_>, cpu: Cpu) -> Option<(Ns, ProcessId)> {
    let subject = &facts.path.subject;
    let (mut own, mut others) = (Ns::ZERO, BTreeMap::<ProcessId, Ns>::new());
    for (from, to, who) in facts.timeline.holders(cpu, subject.start, subject.end) {
        match who {
            Some(task) if subject.owns(task) => own += to - from,
            Some(task) if !facts.timeline.task(task).recorder => {
                *others.entry(facts.processes.of(task)).or_default() += to - from;
            }
            _ => {}
        }
    }
    let most = others.into_iter().map(|(process, ns)| (ns, process)).max();
    most.filter(|_| own.share_of(subject.end - subject.start) >= SHARED)
}

/// Whether this process sends requests to the subject, which serves, or else answers its questions; none if neither is
/// known.
fn is_client(facts: &Facts<'_>, process: ProcessId) -> Option<bool> {
    let ended = |block: &Block| {
        matches!(block.waits_for, WaitsFor::SocketData | WaitsFor::Poll)
            && matches!(block.woken_by, WokenBy::Task(by) if facts.processes.of(by) == process)
    };
    let service = facts.path.subject.service.as_ref()?;
    let is_client = service.is_client(facts.processes.get(process).pid)?;
    facts.timeline.blocks.iter().any(ended).then_some(is_client)
}

/// A quota kept the command from running: neither another program nor an idle machine did.
pub(super) fn throttled(facts: &Facts<'_>, wall: &Attribution) -> Option<Hazard> {
    let throttled = facts.trace.meta.throttled;
    (throttled.share_of(wall.total) >= DISTURBED).then(|| {
        hazard(
            "throttled",
            format!(
                "A CPU quota of the cgroup (a container's limit) kept its tasks from running for \
                 {}, summed over CPUs: that time has its own row, and no other program caused it. \
                 Raise the quota (cpu.max, --cpus), or use no more threads than it allows.",
                time(throttled)
            ),
        )
    })
}

#[cfg(test)]
mod tests {
    use crate::cost::tests::{repeat, weighed};

    /// Two threads of a command in turn on CPU 1, for 100 ms. Another program has CPU 0 from `taken`
    /// ms on.
    fn beside(taken: u64) -> Vec<String> {
        const MS: u64 = 1_000_000;
        let turns = |first: u64| {
            repeat(49, first * MS, 2 * MS, |at| {
                format!("{at} cpu1 on\n{} off preempted\n", at + MS)
            })
        };
        let text = format!(
            "cpus 2
             task 1 app\n0 cpu0 on\n1000 fork 2 thread\n{MS} off preempted\n{}{} cpu1 on
             {} syscall exit_group\n{} exit\n{} off dead
             task 2 app\n{}
             task 9 sha256sum\n{} cpu0 on\n{} off preempted",
            turns(2),
            100 * MS,
            101 * MS,
            101 * MS + 10,
            101 * MS + 20,
            turns(1),
            taken * MS,
            101 * MS,
        );
        weighed(&text).hazards.into_iter().filter(|h| h.id == "noisy").map(|h| h.text).collect()
    }

    #[test]
    fn a_neighbour_that_leaves_one_cpu_to_the_command_is_named() {
        let said = beside(2);
        assert!(said[0].starts_with("sha256sum had a CPU for 98 % of the run"), "{said:?}");
    }

    /// What is said of another program that has the CPU for half of the time, and ends the waits of a server that then
    /// takes something on one socket and sends something on another, or the same.
    fn of_peer(takes: u32, gives: u32, fds: &str) -> String {
        let turn = |at: u64| {
            format!(
                "{at} off blocked epoll_wait 4 : ep_poll
                 {} cpu0 woken-by 9 : ep_poll_callback < sock_def_readable
                 {} cpu0 on
                 {} syscall recvfrom {takes} 64 0
                 {} back 64
                 {} syscall sendto {gives} 64 0
                 {} back 64\n",
                at + 100,
                at + 600,
                at + 610,
                at + 620,
                at + 630,
                at + 640
            )
        };
        let peer = |at: u64| format!("{} cpu0 on\n{} off preempted\n", at + 50, at + 600);
        let text = format!(
            "attached\ncpus 1\ntask 1 proxy\n0 cpu0 on\n{fds}\n{}100000 sample work\ntask 9 backend outside\n{}",
            repeat(50, 1000, 1000, turn),
            repeat(50, 1000, 1000, peer)
        );
        let noisy = weighed(&text).hazards.into_iter().find(|h| h.id == "noisy");
        noisy.map_or(String::new(), |hazard| hazard.text)
    }

    #[test]
    fn a_client_and_the_server_behind_are_distinguished() {
        const BOTH: &str = "0 fd 5 socket:[5]:accepted\n0 fd 6 socket:[6]:connected";
        let client = of_peer(5, 5, BOTH);
        assert!(client.contains("backend sends its requests: give it CPUs"), "{client}");
        let only = of_peer(6, 6, "0 fd 6 socket:[6]");
        assert!(only.contains("backend sends its requests"), "{only}");
        let either = "0 fd 5 socket:[5]\n0 fd 6 socket:[6]";
        let accepts =
            "0 fd 6 socket:[6]\n1 syscall accept4 3\n2 back 5\n3 syscall sendto 6 8 0\n4 back 8";
        for (takes, gives, fds, advice) in [
            (
                6,
                6,
                BOTH,
                "backend answers what it asks, and is a part of the same service: more CPUs help both.",
            ),
            (
                6,
                5,
                BOTH,
                "backend answers what it asks, and is a part of the same service: more CPUs help both.",
            ),
            (6, 5, either, "Repeat on a quiet machine."),
            (6, 5, accepts, "Repeat on a quiet machine."),
        ] {
            let said = of_peer(takes, gives, fds);
            assert!(said.ends_with(&format!("(mostly backend). {advice}")), "{said}");
        }
    }

    #[test]
    fn a_short_visit_is_refused() {
        assert_eq!(beside(90), [""; 0]);
    }
}
