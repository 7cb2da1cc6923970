//! Truths about costs in languages for which no other file here tests them: each cost must be found in
//! every language in which it occurs. Bounds are wide: the tests check class and line.

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

#[test]
fn locked_additions_of_one_thread_are_atomics_in_every_language() {
    for (command, class_at) in [
        ("@costs_in_c marks 20000000", ("marks", "costs_in_c.c")),
        ("@costs_in_go marks 6000", ("main.marks", "costs_in_go.go")),
        ("@costs_in_zig marks 6000", ("costs_in_zig.marks", "costs_in_zig.zig")),
        ("@costs_in_crystal marks 20000000", ("marks", "costs_in_crystal.cr")),
    ] {
        Truth::of(command)
            .first_finding(&["atomics"])
            .found_at("atomics", class_at.0, class_at.1, "the mark to name")
            .check();
    }
}

#[test]
fn a_method_behind_a_trait_object_is_missed_inlining() {
    Truth::of("@costs_in_rust pixels 20000")
        .first_finding(&["missed-inlining"])
        .found_at("missed-inlining", "pixels", "costs_in_rust.rs", "the pixel to name")
        .check();
}

#[test]
fn a_function_in_the_way_of_every_pixel_in_zig_is_missed_inlining() {
    Truth::of("@costs_in_zig pixels 30000")
        .first_finding(&["missed-inlining"])
        .found_at("missed-inlining", "shade", "costs_in_zig.zig", "return (value")
        .check();
}

#[test]
fn a_node_at_a_time_in_zig_is_allocation() {
    Truth::of("@costs_in_zig lists 150000")
        .first_finding(&["allocation"])
        .found_at("allocation", "list", "costs_in_zig.zig", "the node to name")
        .saves("allocation", 0.4..=1.0)
        .check();
}

#[test]
fn the_rest_of_a_text_moved_down_in_zig_is_buffer_copies() {
    Truth::of("@costs_in_zig words 60")
        .first_finding(&["buffer-copies"])
        .found_at("buffer-copies", "words", "costs_in_zig.zig", "the rest to move")
        .saves("buffer-copies", 0.4..=1.0)
        .check();
}

#[test]
fn checked_indexes_in_zig_are_a_candidate() {
    Truth::of("@costs_in_zig cells 2000")
        .first_finding(&["bounds-checks"])
        .found_at("bounds-checks", "step", "costs_in_zig.zig", "the cell to name")
        .check();
}

#[test]
fn an_unoptimised_build_is_reported_in_every_language() {
    for command in [
        "@far_getter.debug 30",
        "@word_count.debug 10000",
        "@checked_rows.debug 60",
        "@stencil.debug",
        "@costs_in_crystal.debug pixels 4000",
    ] {
        Truth::of(command)
            .first_finding(&["unoptimised-build"])
            .hazard("unoptimised")
            .saves("unoptimised-build", 0.3..=0.98)
            .check();
    }
}

#[test]
fn dicts_that_stay_are_the_collectors_time_in_python() {
    Truth::of("python3 @many_dicts")
        .rows(&["gc"], 0.3..=0.95)
        .first_finding(&["gc"])
        .saves("gc", 0.4..=0.95)
        .check();
    Truth::of("python3 @many_dicts off").never(&["gc", "allocation"]).check();
}
