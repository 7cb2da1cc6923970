//! Truths about work that a library does in an expensive way: exceptions, hashes, text. Each program has one planted
//! cost; the bounds are the measured saving of removing it, widened.

use crate::truth::Truth;

const LINE: &str = "the line to name";

/// Costs that none of these programs has.
const OTHERS: &[&str] =
    &["zeroing", "buffer-copies", "struct-copies", "atomics", "unoptimised-build"];

#[test]
fn an_exception_per_second_line_is_exceptions() {
    Truth::of("@thrown_per_line")
        .first_finding(&["exceptions"])
        .found_at("exceptions", "price", "thrown_per_line.cpp", LINE)
        .saves("exceptions", 0.7..=1.0)
        .never(OTHERS)
        .check();
}

#[test]
fn the_default_hasher_for_numbers_is_hashing() {
    Truth::of("@default_hasher")
        .first_finding(&["hashing"])
        .found_at("hashing", "count", "default_hasher.rs", LINE)
        .saves("hashing", 0.4..=0.95)
        .never(OTHERS)
        .check();
}

#[test]
fn appending_by_strcat_is_rescans() {
    Truth::of("@appended_by_strcat")
        .first_finding(&["rescans"])
        .found_at("rescans", "append", "appended_by_strcat.c", LINE)
        .saves("rescans", 0.6..=1.0)
        .never(OTHERS)
        .check();
}

#[test]
fn sscanf_over_the_rest_of_a_long_text_is_rescans() {
    Truth::of("@scanned_rest")
        .first_finding(&["rescans"])
        .found_at("rescans", "main", "scanned_rest.c", LINE)
        .saves("rescans", 0.6..=1.0)
        .never(OTHERS)
        .check();
}

#[test]
fn a_stream_per_number_is_text_conversion() {
    Truth::of("@stream_per_number")
        .first_finding(&["text-conversion"])
        .found_at("text-conversion", "decimal", "stream_per_number.cpp", "or this one")
        .saves("text-conversion", 0.5..=0.95)
        .never(OTHERS)
        .check();
}

#[test]
fn formatted_keys_are_text_conversion() {
    Truth::of("@formatted_keys")
        .first_finding(&["text-conversion"])
        .found_at("text-conversion", "main.main", "formatted_keys.go", LINE)
        .saves("text-conversion", 0.2..=0.9)
        .never(OTHERS)
        .check();
}

#[test]
fn a_program_that_prints_numbers_has_a_row_and_no_finding() {
    Truth::shell("@prints_numbers > /dev/null")
        .rows(&["text-conversion"], 0.3..=1.0)
        .never(&["text-conversion", "rescans", "hashing", "exceptions"])
        .check();
}
