//! Events of a task, from made-up clocks and counts.

use super::{Activity, SchedCounts, Tracee};
use crate::ptrace::calibrate::StopCost;
use crate::ptrace::event::{EventKind, TaskEvent};
use crate::ptrace::high_rate::ObservedCall;

/// No task has this id, so only the made-up counts apply.
const NO_TASK: u32 = u32::MAX - 7;

/// Events of a task that was resumed at 1 ms and stopped at `at`.
fn account_events(
    activity: Activity,
    at: u64,
    cpu_time: u64,
    run_delay: u64,
    timeslices: u64,
) -> Vec<String> {
    let mut events = Vec::new();
    stop(
        resumed_tracee(activity),
        at,
        SchedCounts { cpu_time, run_delay, timeslices },
        &mut events,
    );
    words(&events)
}

fn resumed_tracee(activity: Activity) -> Tracee {
    Tracee { activity, ..Tracee::new(NO_TASK, NO_TASK, 1_000_000) }
}

fn stop(mut tracee: Tracee, at: u64, counts: SchedCounts, events: &mut Vec<TaskEvent>) {
    let cost = StopCost { user: 1_000, call: 2_000, resume_time: 0 };
    tracee.account(at, Some(counts), cost, events);
    tracee.enter_ptrace_stop(events);
}

fn words(events: &[TaskEvent]) -> Vec<String> {
    let word = |event: &TaskEvent| match &event.kind {
        EventKind::On => "on".to_owned(),
        EventKind::PtraceStop => "stopped".to_owned(),
        EventKind::Preempted => "preempted".to_owned(),
        other => format!("{other:?}"),
    };
    events.iter().map(|event| format!("{} {}", event.at - 1_000_000, word(event))).collect()
}

const READ: Activity = Activity::Call { nr: 0, args: [0; 6] };

#[test]
fn a_short_call_is_on_a_cpu_and_then_in_a_ptrace_stop() {
    // It waited 4 us for the CPU because of the tracer. 2 us of its CPU time are the stop's.
    assert_eq!(account_events(READ, 1_030_000, 12_000, 4_000, 1), ["4000 on", "14000 stopped"]);
}

#[test]
fn a_stop_that_cost_less_than_usual_leaves_the_call_a_moment() {
    assert_eq!(account_events(READ, 1_030_000, 1_500, 0, 1), ["0 on", "50 stopped"]);
}

#[test]
fn a_call_that_blocks_does_so_in_its_middle() {
    let words = account_events(READ, 6_000_000, 42_000, 0, 2);
    assert_eq!(words, ["0 on", "20000 Off(Blocked)", "4974000 on", "4994000 stopped"]);
}

#[test]
fn a_free_run_blocks_before_each_time_slice_but_the_first() {
    let mut tracee = resumed_tracee(Activity::UserCode);
    let read = ObservedCall { nr: 0, args: [0; 6], ret: 1 };
    tracee.high_rate.observe(read);
    tracee.high_rate.start_free_run(1_000_000, None, None);
    let mut events = Vec::new();
    stop(
        tracee,
        2_001_000,
        SchedCounts { cpu_time: 401_000, run_delay: 0, timeslices: 4 },
        &mut events,
    );
    events.retain(|event| {
        matches!(event.kind, EventKind::On | EventKind::Off(_) | EventKind::PtraceStop)
    });
    let words = words(&events);
    let expected = [
        "0 on",
        "100001 Off(Blocked)",
        "300334 on",
        "400336 Off(Blocked)",
        "600669 on",
        "700671 Off(Blocked)",
        "901004 on",
        "1001000 stopped",
    ];
    assert_eq!(words, expected);
}

#[test]
fn run_delay_that_the_tracer_did_not_cause_is_preemption() {
    let words = account_events(Activity::UserCode, 2_611_000, 501_000, 1_100_000, 2);
    assert_eq!(words.len(), 4, "{words:?}");
    assert!(words[1].ends_with("preempted") && words[3].ends_with("stopped"), "{words:?}");
}

#[test]
fn a_poll_does_not_shorten_the_run_delay() {
    let mut tracee = resumed_tracee(Activity::UserCode);
    let mut events = Vec::new();
    tracee.get_cpu(1_100_000, &mut events);
    tracee.advance_to(9_100_000);
    let counts = SchedCounts { cpu_time: 10_001_000, run_delay: 58_999_000, timeslices: 900 };
    stop(tracee, 70_000_000, counts, &mut events);
    let words = words(&events);
    assert_eq!(words, ["100000 on", "8100000 preempted", "66999000 on", "68999000 stopped"]);
}
