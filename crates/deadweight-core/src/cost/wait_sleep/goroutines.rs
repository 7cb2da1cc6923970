//! Sleeps of goroutines, where a probe at `time.Sleep` records them: which waits for the clock are such, and how long each
//! was to last.

use crate::facts::Facts;
use crate::facts::call_site::CallSite;
use crate::facts::processes::ProcessId;
use crate::timeline::purposes::GO_SLEEP;
use crate::timeline::sleepers::PROBE;
use deadweight_trace::Kind;
use deadweight_trace::ids::NameId;
use std::collections::BTreeSet;

/// Fewer sleeps show nothing.
const FEW: u64 = 8;

fn is_go(facts: &Facts<'_>, process: ProcessId) -> bool {
    facts.processes.get(process).language == "Go"
}

/// Whether a wait that the clock ended is for a timer, as far as is known, and no goroutine sleeps: a ticker has a pace,
/// and a time limit is for something else.
pub(super) fn is_timer(facts: &Facts<'_>, process: ProcessId, site: CallSite) -> bool {
    let symbols = facts.symbols();
    let sleeps = || site.frames(symbols).any(|(_, frame)| symbols.name(frame.function) == GO_SLEEP);
    is_go(facts, process) && !sleeps()
}

/// Whether most of a process's sleeps were to last for a time of their own, until something is due. A loop that polls, or
/// waits, asks for the same time again and again.
pub(super) fn last_until(facts: &Facts<'_>, process: ProcessId) -> bool {
    let probe = || facts.symbols().names.iter().position(|name| name == PROBE).map(NameId::at);
    let Some(sleep) = Some(process).filter(|id| is_go(facts, *id)).and_then(|_| probe()) else {
        return false;
    };
    let tasks = facts.processes.get(process).tasks.iter();
    let own: BTreeSet<_> = tasks.map(|task| facts.timeline.task(*task).tid).collect();
    let (mut all, mut different) = (0, BTreeSet::new());
    for event in facts.trace.events() {
        if let Kind::Probe { probe, args: [length, _], .. } = event.kind
            && probe == sleep
            && own.contains(&event.task)
        {
            all += 1;
            different.insert(length);
        }
    }
    all >= FEW && different.len() as u64 * 2 > all
}

#[cfg(test)]
mod tests {
    use crate::cost::tests::found;
    use std::fmt::Write;

    const MS: u64 = 1_000_000;

    /// A goroutine that waits 20 times for 9 ms in the poll of Go's scheduler, after `before` at that instant.
    fn waits(before: impl Fn(u64, u64) -> String) -> String {
        let mut turns = String::new();
        for turn in 0..20 {
            let at = turn * 10_370_000 + MS;
            let woken = at + 9 * MS;
            writeln!(
                turns,
                "{}{} off blocked epoll_wait 4 from runtime.netpoll <- runtime.findRunnable
                 {woken} on woken-by interrupt : hrtimer_wakeup < asm_sysvec_apic_timer_interrupt
                 {} back 0",
                before(turn, at),
                at + 10,
                woken + 10
            )
            .unwrap();
        }
        let end = 209 * MS;
        format!(
            "image app path /bin/app language Go\ntask 1 app\n0 on\n0 exec /bin/app\n0 main\n\
             {turns}{end} exit\n{end} off dead"
        )
    }

    fn sleep(at: u64, length: u64) -> String {
        format!(
            "{at} probe go.sleep {length} 1 from time.Sleep <- main.poll (main.go:7) <- main.main\n"
        )
    }

    #[test]
    fn sleeps_of_one_length_are_found() {
        let said = found(&waits(|_, at| sleep(at, 9 * MS)));
        assert!(said.starts_with("wait-sleep 86 %") && said.contains("main.poll:7"), "{said}");
    }

    #[test]
    fn tickers_and_sleeps_until_something_is_due_are_refused() {
        assert_eq!(found(&waits(|_, _| String::new())), "");
        assert_eq!(found(&waits(|turn, at| sleep(at, 9 * MS - 1000 - turn * 17))), "");
    }
}
