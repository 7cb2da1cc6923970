//! Sleeps of a program that serves, between a request and its answer. All other sleeps of such a program are idle time.

use super::CLASS;
use crate::account::AccountId;
use crate::facts::call_site::sites;
use crate::facts::processes::ProcessId;
use crate::inspect::{Draft, Inspection, Sum};
use deadweight_report::report::How;
use deadweight_report::wording::{things, time};
use deadweight_trace::units::Ns;

/// From this many pauses on.
const FEW: u64 = 8;
/// Shorter ones are those of schedulers and spin locks, which sleep for some microseconds.
const SHORT: Ns = Ns(100_000);

/// The finding, if the process is the one that serves.
pub(super) fn draft(
    found: &Inspection<'_, '_>,
    account: AccountId,
    process: ProcessId,
) -> Option<Draft> {
    let facts = found.facts;
    facts.path.subject.service.as_ref()?;
    let sum = Sum::of(found.wall.of_process(account, process));
    let mean = Ns(sum.ns.0 / sum.count.max(1));
    if sum.count < FEW || mean < SHORT {
        return None;
    }
    Some(Draft {
        class: CLASS.id,
        moves: true,
        process,
        title: "asleep while a client waits".to_owned(),
        text: format!(
            "{} slept {} between a request and its answer, for {} each.",
            facts.name(process),
            things(sum.count, "time"),
            time(mean)
        ),
        amount: sum.ns,
        saving: sum.alone,
        range: (sum.alone, sum.ns),
        how: How::Exact,
        sites: sites(facts.symbols(), &sum.places, sum.count),
        evidence: vec![
            "the thread that sleeps had taken the request, and answered after the sleep".to_owned(),
            sum.meanwhile(),
        ],
        remedy: remedy(&facts.processes.get(process).language).to_owned(),
    })
}

fn remedy(language: &str) -> &'static str {
    match language {
        "Python" => {
            "Answer without the pause. If something must pass before the answer, `await` that, or `asyncio.sleep`, so that \
             the thread serves other clients meanwhile."
        }
        "JavaScript" => {
            "Answer without the pause. If something must pass before the answer, give a callback to `setTimeout`, so that the \
             thread serves other clients meanwhile."
        }
        _ => {
            "Answer without the pause. If something must pass before the answer, wait for that event in the event loop, so \
             that the thread serves other clients meanwhile."
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::tests::{found, repeat};

    const MS: u64 = 1_000_000;

    /// A joined program that takes requests and sleeps before it answers, or after.
    fn server(requests: u64, before: bool, pause: u64) -> String {
        let one = |at: u64| {
            let answer = |at: u64| format!("{at} syscall sendto 5 8 0\n{} back 8\n", at + 10);
            let (first, last) = (answer(at + 100), answer(at + pause + 2_000));
            format!(
                "{at} syscall recvfrom 5 64 0\n{} back 64\n{}{} off blocked clock_nanosleep 1 from sleep <- handle (app.c:9) <- main
                 {} on woken-by interrupt : hrtimer_wakeup < asm_sysvec_apic_timer_interrupt\n{} back 0\n{}",
                at + 50,
                if before { "" } else { &first },
                at + 1_000,
                at + pause,
                at + pause + 10,
                if before { &last } else { "" },
            )
        };
        let requests_text = repeat(requests, 1_000, 2 * MS, one);
        let end = requests * 2 * MS + 2_000;
        format!(
            "attached\ntask 1 server\n0 on\n10 syscall accept4 3\n20 back 5\n{requests_text}{end} sample work"
        )
    }

    #[test]
    fn pauses_before_answers_are_found() {
        let text = found(&server(20, true, MS));
        assert!(text.starts_with("wait-sleep "), "{text}");
        assert!(
            text.contains("handle:9: server slept 20 times between a request and its answer"),
            "{text}"
        );
    }

    #[test]
    fn pauses_after_answers_and_short_ones_are_refused() {
        assert_eq!(found(&server(20, false, MS)), "");
        assert_eq!(found(&server(20, true, 50_000)), "");
        assert_eq!(found(&server(3, true, MS)), "");
    }
}
