//! Truths about loops that wait for memory, for branches, for divisions, or for a line that another thread has. Each
//! program has one planted cost; the bounds are the measured saving of removing it, widened. Their fast forms, and
//! loops that only look like that, have no finding.

use crate::truth::Truth;
use deadweight_report::report::Report;

const LINE: &str = "the line to name";

/// The classes that registers show at samples.
const ALL: &[&str] =
    &["cache-misses", "small-pages", "branch-misses", "slow-instructions", "false-sharing"];

#[test]
fn one_field_of_large_records_is_cache_misses() {
    Truth::of("@fields_of_records")
        .first_finding(&["cache-misses"])
        .found_at("cache-misses", "total", "fields_of_records.c", LINE)
        .saves("cache-misses", 0.4..=0.95)
        .never(&ALL[1..])
        .check();
}

/// `--why` reads the same loop under the function that `--in` names.
#[test]
fn why_a_loop_takes_its_time_is_said_when_asked() {
    let is_read = |report: &Report| {
        let Some(loops) = &report.loops else { return false };
        let Some(first) = loops.all.first() else { return false };
        let slow = first.turn_ns > first.least_ns && first.least_ns > Some(0.0);
        let apart = first.waits.iter().any(|wait| wait.memory.starts_with("256 bytes apart"));
        let (function, class) = (first.function.as_str(), first.class.as_str());
        (function, class) == ("total", "cache-misses") && slow && apart
    };
    Truth::of("@fields_of_records")
        .with(&["--in", "total", "--why"])
        .expect("the loop of total waits for memory, 256 bytes apart".into(), is_read)
        .check();
}

#[test]
fn a_list_in_random_order_is_cache_misses() {
    Truth::of("@shuffled_list")
        .first_finding(&["cache-misses"])
        .found_at("cache-misses", "shuffled_list::walk", "shuffled_list.rs", LINE)
        .saves("cache-misses", 0.4..=0.98)
        .never(&ALL[1..])
        .check();
}

#[test]
fn a_page_for_each_head_is_small_pages() {
    Truth::of("@a_page_each")
        .first_finding(&["small-pages", "cache-misses"])
        .found_at("small-pages", "wake_all", "a_page_each.c", LINE)
        .saves("small-pages", 0.1..=0.8)
        .never(&ALL[2..])
        .check();
}

#[test]
fn calls_through_pointers_in_random_order_are_branch_misses() {
    Truth::of("@unsorted_kinds")
        .first_finding(&["branch-misses"])
        .found_at("branch-misses", "main", "unsorted_kinds.cpp", LINE)
        .saves("branch-misses", 0.4..=0.95)
        .never(&["cache-misses", "small-pages", "missed-inlining"])
        .check();
}

#[test]
fn a_remainder_in_a_loop_is_slow_instructions() {
    Truth::of("@divides")
        .first_finding(&["slow-instructions"])
        .found_at("slow-instructions", "spread", "divides.c", LINE)
        .saves("slow-instructions", 0.2..=0.8)
        .never(&ALL[..3])
        .check();
}

#[test]
fn a_remainder_that_the_loop_waits_for_later_is_slow_instructions() {
    Truth::of("@delay_line")
        .first_finding(&["slow-instructions"])
        .found_at("slow-instructions", "delayed", "delay_line.c", LINE)
        .saves("slow-instructions", 0.2..=0.8)
        .never(&ALL[..3])
        .check();
}

#[test]
fn counters_of_two_goroutines_in_one_line_are_false_sharing() {
    Truth::of("@neighbours")
        .first_finding(&["false-sharing"])
        .found_at("false-sharing", "main.count", "neighbours.go", LINE)
        .saves("false-sharing", 0.1..=0.97)
        .never(&ALL[..4])
        .check();
}

#[test]
fn loops_without_such_a_cost_have_no_finding() {
    for command in
        ["@shuffled_list ordered", "@unsorted_kinds sorted", "@neighbours apart", "@streams"]
    {
        Truth::of(command).never(ALL).check();
    }
}
