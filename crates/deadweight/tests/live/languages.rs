//! Truths about costs in the languages that other files here do not have them in, so that each cost
//! is found wherever it occurs. Bounds are wide: what is told here is class and line.

use crate::truth::Truth;

#[test]
fn a_table_cleared_and_filled_in_c_is_zeroing() {
    Truth::of("@costs_in_c windows 300000")
        .first_finding(&["zeroing"])
        .found_at("zeroing", "window", "costs_in_c.c", "the table to name")
        .saves("zeroing", 0.3..=1.0)
        .check();
}

#[test]
fn a_struct_by_value_in_c_is_struct_copies() {
    Truth::of("@costs_in_c probes 30000000")
        .first_finding(&["struct-copies"])
        .found_at("struct-copies", "probes", "costs_in_c.c", "the probe to name")
        .saves("struct-copies", 0.4..=1.0)
        .check();
}

#[test]
fn an_item_at_a_time_in_c_is_allocation() {
    Truth::of("@costs_in_c items 2500000")
        .first_finding(&["allocation"])
        .found_at("allocation", "item", "costs_in_c.c", "the item to name")
        .saves("allocation", 0.4..=1.0)
        .check();
}

#[test]
fn a_line_cleared_whole_in_rust_is_zeroing() {
    Truth::of("@costs_in_rust lines 700000")
        .first_finding(&["zeroing"])
        .found_at("zeroing", "line", "costs_in_rust.rs", "the line to clear")
        .saves("zeroing", 0.4..=1.0)
        .check();
}

#[test]
fn a_job_moved_through_its_queue_in_rust_is_struct_copies() {
    Truth::of("@costs_in_rust jobs 12000000")
        .first_finding(&["struct-copies"])
        .found_at("struct-copies", "jobs", "costs_in_rust.rs", "the job to name")
        .saves("struct-copies", 0.3..=1.0)
        .check();
}

#[test]
fn the_rest_of_a_text_moved_down_in_rust_is_buffer_copies() {
    Truth::of("@costs_in_rust words 60")
        .first_finding(&["buffer-copies"])
        .found_at("buffer-copies", "words", "costs_in_rust.rs", "the rest to move")
        .saves("buffer-copies", 0.4..=1.0)
        .check();
}

#[test]
fn a_buffer_per_frame_in_go_is_zeroing() {
    Truth::of("@costs_in_go frames 250000")
        .found_at("zeroing", "main.frame", "costs_in_go.go", "the buffer to name")
        .saves("zeroing", 0.1..=1.0)
        .never(&["bounds-checks", "missed-inlining", "struct-copies"])
        .check();
}

#[test]
fn a_slice_that_grows_in_go_is_buffer_copies() {
    Truth::of("@costs_in_go points 6000")
        .first_finding(&["buffer-copies"])
        .found_at("buffer-copies", "main.within", "costs_in_go.go", "the growth to name")
        .saves("buffer-copies", 0.2..=1.0)
        .check();
}

#[test]
fn an_object_per_visit_in_go_is_allocation_and_the_collectors_time() {
    Truth::of("@costs_in_go tallies 16000")
        .first_finding(&["gc", "allocation"])
        .found_at("allocation", "main.tallies", "costs_in_go.go", "the tally to name")
        .check();
}

#[test]
fn a_small_virtual_method_in_cpp_is_missed_inlining() {
    Truth::of("@shapes 6000")
        .first_finding(&["missed-inlining"])
        .found_at("missed-inlining", "trace", "shapes.cpp", "the line to name")
        .saves("missed-inlining", 0.2..=1.0)
        .check();
}
