//! Truths about Crystal programs, optimised as they are shipped: names as in the source, and the costs
//! that occur there, each at its line. Stripped libraries around them (the collector) have roles, too.

use crate::truth::Truth;

#[test]
fn a_struct_that_its_constructor_returns_is_copied() {
    Truth::of("@costs_in_crystal boards 6000000")
        .first_finding(&["struct-copies", "zeroing"])
        .found_at("struct-copies", "boards", "costs_in_crystal.cr", "the board to name")
        .saves("struct-copies", 0.25..=0.9)
        .check();
}

#[test]
fn objects_beside_many_live_ones_are_the_collectors_time() {
    Truth::of("@costs_in_crystal nodes 3000000")
        .rows(&["gc", "allocation"], 0.25..=0.95)
        .first_finding(&["gc"])
        .found_at("gc", "new", "costs_in_crystal.cr", "the node to name")
        .never(&["repeated-syscalls"])
        .check();
}

#[test]
fn strings_per_word_are_allocation_and_no_system_calls() {
    Truth::of("@costs_in_crystal words 700000")
        .rows(&["gc", "allocation"], 0.4..=0.95)
        .first_finding(&["allocation", "gc"])
        .found_at("allocation", "words", "costs_in_crystal.cr", "the word to name")
        .never(&["repeated-syscalls"])
        .check();
}

#[test]
fn checked_indexes_are_candidates() {
    Truth::of("@costs_in_crystal cells 1200")
        .first_finding(&["bounds-checks"])
        .found_at("bounds-checks", "step", "costs_in_crystal.cr", "the cell to name")
        .check();
}

#[test]
fn a_small_function_that_is_called_is_missed_inlining() {
    Truth::of("@costs_in_crystal pixels 60000")
        .first_finding(&["missed-inlining"])
        .found_at("missed-inlining", "pixels", "costs_in_crystal.cr", "the pixel to name")
        .check();
}

#[test]
fn a_line_cleared_whole_is_zeroing() {
    Truth::of("@costs_in_crystal lines 200000")
        .first_finding(&["zeroing"])
        .found_at("zeroing", "lines", "costs_in_crystal.cr", "the line to clear")
        .saves("zeroing", 0.4..=1.0)
        .check();
}

#[test]
fn the_rest_of_a_queue_moved_down_is_buffer_copies() {
    Truth::of("@costs_in_crystal turns 200000")
        .first_finding(&["buffer-copies"])
        .found_at("buffer-copies", "turns", "costs_in_crystal.cr", "the rest to move")
        .saves("buffer-copies", 0.6..=1.0)
        .check();
}
