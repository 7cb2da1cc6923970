//! Truths about text, keys and exceptions in the languages in which no other file here tests them. Bounds are wide: the
//! tests check class and line.

use crate::truth::Truth;

#[test]
fn keys_made_as_text_are_text_conversion_in_every_language() {
    for (command, function, file) in [
        ("@formatted_cells 3000000", "cells", "formatted_cells.c"),
        ("@strings_in_rust cells 6000000", "strings_in_rust::cells", "strings_in_rust.rs"),
        ("@strings_in_zig cells 3000000", "strings_in_zig.cells", "strings_in_zig.zig"),
    ] {
        Truth::of(command)
            .first_finding(&["text-conversion"])
            .found_at("text-conversion", function, file, "the key to name")
            .saves("text-conversion", 0.1..=0.95)
            .check();
    }
}

/// Crystal's strings are on the heap: their memory costs more than their making.
#[test]
fn keys_made_as_text_in_crystal_are_named_by_their_line() {
    Truth::of("@strings_in_crystal cells 5000000")
        .first_finding(&["gc", "allocation", "text-conversion"])
        .found_at("gc", "cells", "strings_in_crystal.cr", "the key to name")
        .check();
}

#[test]
fn long_keys_of_a_map_are_hashing_in_cpp_and_go() {
    for (command, function, file) in [
        ("@long_keys 2000000", "visits", "long_keys.cpp"),
        ("@strings_in_go visits 6000000", "main.visits", "strings_in_go.go"),
    ] {
        Truth::of(command)
            .first_finding(&["hashing"])
            .found_at("hashing", function, file, "the visit to name")
            .saves("hashing", 0.2..=0.95)
            .check();
    }
}

#[test]
fn searches_from_the_start_are_rescans_in_every_language() {
    for (command, function, file) in [
        ("@marker_from_start markers 50000", "markers", "marker_from_start.cpp"),
        ("@strings_in_go lines 60000", "main.lines", "strings_in_go.go"),
        ("@strings_in_rust lines 25000", "strings_in_rust::lines", "strings_in_rust.rs"),
        ("@strings_in_zig markers 30000", "strings_in_zig.markers", "strings_in_zig.zig"),
        ("@strings_in_crystal items 50000", "items", "strings_in_crystal.cr"),
    ] {
        Truth::of(command)
            .first_finding(&["rescans"])
            .found_at("rescans", function, file, "the search to name")
            .saves("rescans", 0.6..=1.0)
            .check();
    }
}

#[test]
fn input_in_step_with_c_is_text_conversion_and_with_a_buffer_is_a_row() {
    Truth::of("@numbers_from_cin 2000000")
        .first_finding(&["text-conversion"])
        .found_at("text-conversion", "main", "numbers_from_cin.cpp", "the number to name")
        .saves("text-conversion", 0.2..=0.9)
        .check();
    Truth::of("@numbers_from_cin 2000000 own").never(&["text-conversion"]).check();
}

#[test]
fn lists_that_are_searched_for_one_value_after_the_other_are_rescans() {
    for (command, function, file, line) in [
        ("@list_lookups known 300000", "known", "list_lookups.cpp", "the list to name"),
        ("@list_lookups names 100000", "value_of", "list_lookups.cpp", "the name to look for"),
        ("@strings_in_go known 50000", "main.known", "strings_in_go.go", "the list to name"),
        (
            "@strings_in_rust known 50000",
            "strings_in_rust::known",
            "strings_in_rust.rs",
            "the list to name",
        ),
    ] {
        Truth::of(command)
            .first_finding(&["rescans"])
            .found_at("rescans", function, file, line)
            .saves("rescans", 0.4..=1.0)
            .check();
    }
}

#[test]
fn short_lists_other_lists_each_time_and_searches_that_go_on_are_no_rescans() {
    for command in [
        "@list_lookups rows 100",
        "@list_lookups few 30000000",
        "@list_lookups first 60000000",
        "@list_lookups lines 20000",
        "@list_lookups same 300000",
    ] {
        Truth::of(command).never(&["rescans"]).check();
    }
}

#[test]
fn searches_of_other_texts_and_for_other_words_are_no_rescans() {
    for command in ["@marker_from_start words 60000", "@marker_from_start blocks 20000"] {
        Truth::of(command).never(&["rescans"]).check();
    }
}

#[test]
fn panics_and_exceptions_in_normal_work_are_found_in_every_language() {
    for (command, function, file, line) in [
        (
            "@strings_in_rust accepted 400000",
            "strings_in_rust::checked",
            "strings_in_rust.rs",
            "the panic",
        ),
        ("@strings_in_go accepted 3000000", "main.checked", "strings_in_go.go", "the panic"),
        (
            "@strings_in_crystal accepted 200000",
            "checked",
            "strings_in_crystal.cr",
            "the exception",
        ),
    ] {
        Truth::of(command)
            .first_finding(&["exceptions"])
            .found_at("exceptions", function, file, line)
            .saves("exceptions", 0.2..=1.0)
            .check();
    }
}

#[test]
fn a_character_by_its_number_in_rust_is_rescans() {
    Truth::of("@strings_in_rust letters 20000")
        .first_finding(&["rescans"])
        .found_at(
            "rescans",
            "strings_in_rust::letters",
            "strings_in_rust.rs",
            "the character to name",
        )
        .saves("rescans", 0.6..=1.0)
        .check();
}
