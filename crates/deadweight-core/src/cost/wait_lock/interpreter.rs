//! Threads of an interpreter that take turns: who wants one waits with a timeout (CPython: 5 ms), and then asks the thread that
//! runs to give it up. Such a wait ends by the clock, but it is one for a lock.

use super::advice::{FOR_INTERPRETERS, ONE_AT_A_TIME};
use super::{CLASS, part};
use crate::account::{Detail, Entry};
use crate::facts::Facts;
use crate::facts::call_site::is_interpreted;
use crate::facts::processes::{Process, ProcessId};
use crate::inspect::{Draft, Inspection, processes_in};
use crate::timeline::Block;
use crate::timeline::kernel_stacks::WaitsFor;
use deadweight_report::report::How;
use deadweight_report::wording::{percent, things, time};
use deadweight_trace::ids::Cpu;
use deadweight_trace::units::Ns;

/// Below this share of the wall time, turns do not matter.
const LARGE: f64 = 0.1;
/// A thread that works has this part of its process' CPU time.
const WORKS: f64 = 0.1;
/// So much of what processes could do at once is saved: starting them, and what they tell each other, takes the rest.
const TYPICAL: f64 = 0.7;

/// Whether another thread of the waiter's interpreter was on a CPU when a wait with a timeout ended by the clock.
pub(super) fn is_turn(facts: &Facts<'_>, block: &Block) -> bool {
    /// Before its end; the next one may begin at once.
    const BEFORE: Ns = Ns(1_000);
    let of = facts.processes.of(block.task);
    let process = facts.processes.get(of);
    if !is_interpreted(&process.language) || process.tasks.len() < 2 {
        return false;
    }
    let (from, to) = (block.end - BEFORE.min(block.end), block.end);
    let own = |task| task != block.task && facts.processes.of(task) == of;
    let cpus = (0..facts.timeline.held.len()).filter_map(|cpu| u16::try_from(cpu).ok());
    let mut held = cpus.flat_map(|cpu| facts.timeline.holders(Cpu(cpu), from, to));
    held.any(|(.., task)| task.is_some_and(own))
}

pub(super) fn drafts(found: &Inspection<'_, '_>) -> Vec<Draft> {
    let turns = found.wall.entries.iter().filter(|entry| is_wait(entry));
    processes_in(turns).into_iter().filter_map(|process| draft(found, process)).collect()
}

/// Waits for locks that no task ended.
fn is_wait(entry: &Entry) -> bool {
    entry.account.id() == CLASS.id
        && matches!(entry.detail, Detail::Waits(WaitsFor::Futex | WaitsFor::Tick, None))
}

fn draft(found: &Inspection<'_, '_>, process: ProcessId) -> Option<Draft> {
    let facts = found.facts;
    let of = facts.processes.get(process);
    let net = found.wall.net();
    let waited: Ns = found.wall.in_process(process).filter(|e| is_wait(e)).map(|e| e.ns).sum();
    let (working, worked) = working(facts, of);
    let at_once = (working as u64).min(u64::from(facts.trace.meta.cpus.max(1)));
    if !is_interpreted(&of.language) || at_once < 2 || waited.share_of(net) < LARGE {
        return None;
    }
    let wall = facts.path.subject.end - facts.path.subject.start;
    let most = part(net.min(worked), 1.0 - 1.0 / at_once as f64);
    Some(Draft {
        class: CLASS.id,
        moves: false,
        process,
        title: ONE_AT_A_TIME.into(),
        text: format!(
            "{} of {} worked for {} in {}, one at a time: {} of the wall time passed while one of them waited for its turn.",
            things(working as u64, "thread"),
            facts.name(process),
            time(worked),
            time(wall),
            percent(waited, found.wall.total),
        ),
        amount: waited,
        saving: part(most, TYPICAL),
        range: (Ns::ZERO, most),
        how: How::Estimate,
        sites: Vec::new(),
        evidence: vec![format!(
            "its waits end by the clock while another of its threads is on a CPU; up to {at_once} processes could work at once"
        )],
        remedy: FOR_INTERPRETERS.into(),
    })
}

/// How many threads of a process work, and the CPU time of all of them.
fn working(facts: &Facts<'_>, process: &Process) -> (usize, Ns) {
    let each: Vec<Ns> =
        process.tasks.iter().map(|task| facts.timeline.task(*task).on_cpu()).collect();
    let all: Ns = each.iter().copied().sum();
    (each.iter().filter(|ns| ns.share_of(all) >= WORKS).count(), all)
}

#[cfg(test)]
mod tests {
    use crate::cost::tests::{found, rows};
    use std::fmt::Write;

    /// Two threads on two CPUs for 40 ms, of which one works at a time for 5 ms while the other waits with a timeout.
    fn in_turns(language: &str) -> String {
        const TURN: u64 = 5_000_000;
        let [mut one, mut two] = [String::new(), String::new()];
        for i in 0..8 {
            let at = 1_000_000 + i * TURN;
            let (waits, cpu) = if i % 2 == 0 { (&mut two, 1) } else { (&mut one, 0) };
            write!(
                waits,
                "{} syscall futex 4096 137 0 0\n{} off blocked : futex_do_wait\n{} cpu{cpu} on woken-by interrupt : hrtimer_wakeup < asm_sysvec_apic_timer_interrupt\n{} back -110\n",
                at + 100,
                at + 200,
                at + TURN - 1000,
                at + TURN - 900
            )
            .unwrap();
        }
        format!(
            "cpus 2\nimage app path /bin/app language {language}\n\
             task 1 app\n0 cpu0 on\n0 exec /bin/app\n0 main\n100 fork 2 thread\n{one}42000000 exit\n42000010 off dead\n\
             task 2 app\n120 cpu1 on\n{two}41500000 exit\n41500010 off dead"
        )
    }

    #[test]
    fn threads_of_an_interpreter_that_take_turns_are_found() {
        let text = in_turns("Python");
        assert!(rows(&text, 9).contains("wait-lock"), "{}", rows(&text, 9));
        let said = found(&text);
        assert!(said.starts_with("wait-lock") && said.contains("one at a time"), "{said}");
    }

    #[test]
    fn other_languages_and_timeouts_while_nobody_works_are_refused() {
        assert!(!found(&in_turns("C")).contains("one at a time"));
        let waits = |n: u64| {
            let at = 1_000_000 + n * 5_000_000;
            format!(
                "{} syscall futex 4096 137 0 0\n{} off blocked : futex_do_wait\n\
                 {} cpu1 on woken-by interrupt : hrtimer_wakeup < asm_sysvec_apic_timer_interrupt\n{} back -110\n",
                at + 100,
                at + 200,
                at + 4_990_000,
                at + 4_990_100
            )
        };
        let polls: String = (0..8).map(waits).collect();
        let text = format!(
            "cpus 2\nimage app path /bin/app language Python\n\
             task 1 app\n0 cpu0 on\n0 exec /bin/app\n0 main\n100 fork 2 thread\n200 off blocked futex 9 0 7 : futex_do_wait\n\
             41600000 cpu0 on woken-by 2\n42000000 exit\n42000010 off dead\n\
             task 2 app\n120 cpu1 on\n{polls}41500000 exit\n41700010 off dead"
        );
        assert!(!rows(&text, 1).contains("wait-lock"), "{}", rows(&text, 9));
        assert!(!found(&text).contains("one at a time"));
    }
}
