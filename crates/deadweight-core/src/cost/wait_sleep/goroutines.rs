//! Sleeps of goroutines, where a probe at `time.Sleep` records them: which waits for the clock are such, and how long each
//! was to last.

use crate::facts::Facts;
use crate::facts::call_site::CallSite;
use crate::facts::processes::ProcessId;
use crate::inspect::Sum;
use crate::timeline::purposes::GO_SLEEP;
use deadweight_trace::ids::StackId;
use deadweight_trace::units::Ns;
use std::collections::BTreeSet;

/// Fewer sleeps show nothing.
const FEW: usize = 8;

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

/// Whether most of these sleeps of a process, each with its start and when it was due, were to last for a time of their own,
/// until something is due. A loop that polls, or waits, asks for the same time again and again.
pub(super) fn last_until(facts: &Facts<'_>, process: ProcessId, sleeps: &[(Ns, Ns)]) -> bool {
    let different: BTreeSet<Ns> = sleeps.iter().map(|(start, due)| *due - *start).collect();
    is_go(facts, process) && sleeps.len() >= FEW && different.len() * 2 > sleeps.len()
}

/// What a process slept, where its places have the numbers of sleeps, rather than of the threads' waits for them.
pub(super) fn counted(
    facts: &Facts<'_>,
    process: ProcessId,
    sleeps: &BTreeSet<(Ns, Ns, StackId)>,
    mut sum: Sum,
) -> Sum {
    if !is_go(facts, process) {
        return sum;
    }
    let at = |site| sleeps.iter().filter(|(.., stack)| CallSite::Stack(*stack) == site).count();
    for (site, weight) in &mut sum.places {
        weight.count = at(*site) as u64;
    }
    sum.count = sleeps.len() as u64;
    sum
}

#[cfg(test)]
mod tests {
    use crate::cost::tests::{found, weighed};
    use std::fmt::Write;

    const MS: u64 = 1_000_000;

    /// A goroutine that waits 20 times for 9 ms, after `before` at that instant, in the poll of Go's scheduler.
    fn waits(before: impl Fn(u64, u64) -> String) -> String {
        waits_after(|_| 10, before)
    }

    /// The same where its thread looks for other work first, for so long.
    fn waits_after(looks: impl Fn(u64) -> u64, before: impl Fn(u64, u64) -> String) -> String {
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
                at + looks(turn),
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
        // It may keep a pace: which goroutine has work after each does not show.
        assert!(said.contains(" (0..") && said.contains("does not show"), "{said}");
    }

    #[test]
    fn sleeps_of_one_length_are_found_however_long_their_thread_waits() {
        let looks = |turn: u64| turn * 7 % 10 * 400_000 + 10;
        let said = found(&waits_after(looks, |_, at| sleep(at, 9 * MS)));
        assert!(said.contains("slept 20 times, typically for 9.00 ms"), "{said}");
    }

    #[test]
    fn two_waits_for_one_sleep_are_counted_once() {
        let mut turns = String::new();
        for turn in 0..20 {
            // Go's scheduler waits for whole milliseconds first, and then for the rest.
            let at = turn * 12_370_000 + MS;
            turns += &sleep(at, 9 * MS);
            for (from, to) in [(10, 8_300_000), (8_300_100, 9_060_000)] {
                writeln!(
                    turns,
                    "{} off blocked epoll_wait 4 from runtime.netpoll <- runtime.findRunnable
                     {} on woken-by interrupt : hrtimer_wakeup < asm_sysvec_apic_timer_interrupt
                     {} back 0",
                    at + from,
                    at + to,
                    at + to + 10
                )
                .unwrap();
            }
        }
        let end = 250 * MS;
        let report = weighed(&format!(
            "image app path /bin/app language Go\ntask 1 app\n0 on\n0 exec /bin/app\n0 main\n\
             {turns}{end} exit\n{end} off dead"
        ));
        let finding = &report.findings[0];
        assert!(finding.text.contains("slept 20 times, typically for 9.00 ms"), "{}", finding.text);
        assert_eq!(finding.sites[0].count, 20);
    }

    #[test]
    fn tickers_and_sleeps_until_something_is_due_are_refused() {
        assert_eq!(found(&waits(|_, _| String::new())), "");
        assert_eq!(found(&waits(|turn, at| sleep(at, 9 * MS - 1000 - turn * 17))), "");
    }
}
