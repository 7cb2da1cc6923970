//! What is told of a task, from made-up clocks and counts.

use super::{Counts, Doing, Tracee};
use crate::ptrace::calibrate::Stop;
use crate::ptrace::dense::Watched;
use crate::ptrace::note::{Note, What};

/// Nobody has this number, so that only what is made up is known of it.
const NOBODY: u32 = u32::MAX - 7;

/// What a task is told to have done that was let go at 1 ms and stopped at `at`.
fn told(doing: Doing, at: u64, ran: u64, waited: u64, turns: u64) -> Vec<String> {
    let mut notes = Vec::new();
    stop(let_go(doing), at, Counts { ran, waited, turns }, &mut notes);
    words(&notes)
}

fn let_go(doing: Doing) -> Tracee {
    Tracee { doing, ..Tracee::new(NOBODY, NOBODY, 1_000_000) }
}

fn stop(mut tracee: Tracee, at: u64, counts: Counts, notes: &mut Vec<Note>) {
    let cost = Stop { user: 1_000, call: 2_000, letting_go: 0 };
    tracee.tell(at, Some(counts), cost, notes);
    tracee.hold(notes);
}

fn words(notes: &[Note]) -> Vec<String> {
    let word = |note: &Note| match &note.what {
        What::On => "on".to_owned(),
        What::Held => "held".to_owned(),
        What::Displaced => "displaced".to_owned(),
        other => format!("{other:?}"),
    };
    notes.iter().map(|note| format!("{} {}", note.at - 1_000_000, word(note))).collect()
}

const READ: Doing = Doing::Call { nr: 0, args: [0; 6] };

#[test]
fn a_quick_call_is_on_a_cpu_and_then_held() {
    // It waited 4 us for the CPU because we had it; 2 us of what it ran are the stop's.
    assert_eq!(told(READ, 1_030_000, 12_000, 4_000, 1), ["4000 on", "14000 held"]);
}

#[test]
fn a_stop_that_cost_less_than_usual_leaves_the_call_a_moment() {
    assert_eq!(told(READ, 1_030_000, 1_500, 0, 1), ["0 on", "50 held"]);
}

#[test]
fn a_call_that_blocks_does_so_in_its_middle() {
    let told = told(READ, 6_000_000, 42_000, 0, 2);
    assert_eq!(told, ["0 on", "20000 Off(Blocked)", "4974000 on", "4994000 held"]);
}

#[test]
fn who_runs_past_calls_blocked_before_each_of_its_turns_but_the_first() {
    let mut tracee = let_go(Doing::User);
    let read = Watched { nr: 0, args: [0; 6], ret: 1 };
    tracee.dense.watch(read);
    tracee.dense.begin(1_000_000, None, None);
    let mut notes = Vec::new();
    stop(tracee, 2_001_000, Counts { ran: 401_000, waited: 0, turns: 4 }, &mut notes);
    notes.retain(|note| matches!(note.what, What::On | What::Off(_) | What::Held));
    let told = words(&notes);
    let expected = [
        "0 on",
        "100001 Off(Blocked)",
        "300334 on",
        "400336 Off(Blocked)",
        "600669 on",
        "700671 Off(Blocked)",
        "901004 on",
        "1001000 held",
    ];
    assert_eq!(told, expected);
}

#[test]
fn who_waited_longer_for_a_cpu_than_because_of_us_was_displaced() {
    let told = told(Doing::User, 2_611_000, 501_000, 1_100_000, 2);
    assert_eq!(told.len(), 4, "{told:?}");
    assert!(told[1].ends_with("displaced") && told[3].ends_with("held"), "{told:?}");
}

#[test]
fn what_was_told_of_it_from_the_side_leaves_its_wait_for_a_cpu_as_long_as_it_was() {
    let mut tracee = let_go(Doing::User);
    let mut notes = Vec::new();
    tracee.begin(1_100_000, &mut notes);
    tracee.reach(9_100_000);
    let counts = Counts { ran: 10_001_000, waited: 58_999_000, turns: 900 };
    stop(tracee, 70_000_000, counts, &mut notes);
    let told = words(&notes);
    assert_eq!(told, ["100000 on", "8100000 displaced", "66999000 on", "68999000 held"]);
}
