//! Truths about where a program's own time goes: each program has one planted cost, and the finding
//! must be its class, at its line. The bounds are the measured saving of removing the
//! cost, widened.

use crate::truth::Truth;

const LINE: &str = "the line to name";

#[test]
fn strings_made_per_cell_are_allocation() {
    Truth::of("@string_fields 600")
        .first_finding(&["allocation"])
        .found_at("allocation", "{{closure}}", "string_fields.rs", LINE)
        .saves("allocation", 0.4..=0.8)
        .check();
}

#[test]
fn a_node_per_word_is_allocation() {
    Truth::of("@node_per_item 800000")
        .first_finding(&["allocation"])
        .found_at("allocation", "split", "node_per_item.cpp", LINE)
        .saves("allocation", 0.5..=0.95)
        .check();
}

#[test]
fn a_vector_cleared_per_frame_is_zeroing() {
    Truth::of("@cleared_frames 300000")
        .first_finding(&["zeroing"])
        .found_at("zeroing", "decode", "cleared_frames.cpp", LINE)
        .saves("zeroing", 0.25..=0.7)
        .check();
}

#[test]
fn a_table_that_is_cleared_to_count_in_it_is_no_zeroing() {
    Truth::of("@cleared_counts 60000").never(&["zeroing"]).check();
}

#[test]
fn objects_cleared_in_vain_are_zeroing_with_their_page_faults() {
    Truth::of("@cleared_lines 160")
        .rows(&["zeroing"], 0.4..=1.0)
        .first_finding(&["zeroing"])
        .found_at("zeroing", "main", "cleared_lines.cpp", LINE)
        .saves("zeroing", 0.5..=1.0)
        .check();
}

#[test]
fn objects_cleared_and_then_filled_keep_their_page_faults() {
    Truth::of("@cleared_lines 8192")
        .rows(&["first-touch", "page-faults"], 0.05..=0.9)
        .rows(&["zeroing"], 0.0..=0.2)
        .check();
}

#[test]
fn a_line_cleared_whole_in_zig_is_zeroing() {
    Truth::of("@cleared_rows")
        .first_finding(&["zeroing"])
        .found_at("zeroing", "decode", "cleared_rows.zig", LINE)
        .saves("zeroing", 0.25..=0.9)
        .check();
}

#[test]
fn the_rest_of_a_buffer_moved_down_is_buffer_copies() {
    Truth::of("@erase_front 200")
        .first_finding(&["buffer-copies"])
        .found_at("buffer-copies", "receive", "erase_front.cpp", LINE)
        .saves("buffer-copies", 0.7..=1.0)
        .check();
}

#[test]
fn a_block_made_larger_for_every_line_is_buffer_copies() {
    Truth::of("@realloc_line 2000")
        .first_finding(&["buffer-copies"])
        .found_at("buffer-copies", "put", "realloc_line.c", LINE)
        .saves("buffer-copies", 0.2..=0.85)
        .never(&["allocation"])
        .check();
}

#[test]
fn live_pointers_are_the_collectors_and_the_allocators_time() {
    Truth::of("@live_pointers")
        .rows(&["gc", "allocation", "zeroing"], 0.2..=0.95)
        .first_finding(&["gc", "allocation"])
        .found_at("gc", "replace", "live_pointers.go", LINE)
        .check();
}

#[test]
fn zigs_default_build_is_unoptimised() {
    Truth::of("@debug_build")
        .first_finding(&["unoptimised-build"])
        .hazard("unoptimised")
        .saves("unoptimised-build", 0.6..=0.98)
        .check();
}
