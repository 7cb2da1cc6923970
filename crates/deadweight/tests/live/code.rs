//! Truths from machine code: copies of values, checks, atomic operations, calls. Each program
//! has one planted cost; the bounds are the measured saving of
//! removing it, widened.

use crate::truth::Truth;

const LINE: &str = "the line to name";

/// The finding of struct copies names the moved type.
fn moving(truth: Truth, name: &'static str) -> Truth {
    truth.expect(format!("what is moved is a {name}"), move |report| {
        let name = format!(" of {name} ");
        report.findings.iter().any(|f| f.class == "struct-copies" && f.text.contains(&name))
    })
}

/// Costs that none of these programs has.
const OTHERS: &[&str] = &["allocation", "gc", "zeroing", "buffer-copies", "unoptimised-build"];

#[test]
fn a_large_struct_by_value_is_struct_copies() {
    moving(Truth::of("@by_value 6000000"), "Params")
        .first_finding(&["struct-copies"])
        .found_at("struct-copies", "main", "by_value.cpp", LINE)
        .saves("struct-copies", 0.8..=1.0)
        .never(OTHERS)
        .check();
}

#[test]
fn a_loop_variable_that_is_a_copy_is_struct_copies() {
    moving(Truth::of("@range_copy"), "main.vehicle")
        .first_finding(&["struct-copies"])
        .found_at("struct-copies", "main.nearest", "range_copy.go", LINE)
        .saves("struct-copies", 0.5..=0.9)
        .never(OTHERS)
        .check();
}

#[test]
fn a_copy_of_a_table_in_zig_is_struct_copies() {
    moving(Truth::of("@table_copy"), "table_copy.Table")
        .first_finding(&["struct-copies"])
        .found_at("struct-copies", "lookUp", "table_copy.zig", LINE)
        .saves("struct-copies", 0.7..=1.0)
        .never(OTHERS)
        .check();
}

#[test]
fn checks_by_at_are_a_candidate() {
    Truth::of("@checked_at")
        .first_finding(&["bounds-checks"])
        .found_at("bounds-checks", "smooth", "checked_at.cpp", LINE)
        .never(OTHERS)
        .check();
}

#[test]
fn checks_that_keep_a_loop_from_being_vectorised_are_a_candidate() {
    Truth::of("@checked_rows 3000")
        .first_finding(&["bounds-checks"])
        .found_at("bounds-checks", "smooth", "checked_rows.rs", "self.rows[y][x - 1]")
        .never(OTHERS)
        .check();
}

#[test]
fn checks_of_a_flat_field_in_go_are_a_candidate() {
    Truth::of("@stencil")
        .first_finding(&["bounds-checks"])
        .found_at("bounds-checks", "main.step", "stencil.go", LINE)
        .never(OTHERS)
        .check();
}

#[test]
fn a_chase_through_memory_is_not_the_checks_fault() {
    Truth::of("@chase 12000000").never(&["bounds-checks"]).never(OTHERS).check();
}

#[test]
fn a_shared_pointer_by_value_is_atomics() {
    Truth::of("@shared_by_value 60000")
        .first_finding(&["atomics"])
        .found_at("atomics", "main", "shared_by_value.cpp", "or this one")
        .saves("atomics", 0.5..=0.95)
        .never(OTHERS)
        .check();
}

#[test]
fn a_clone_per_look_up_is_atomics() {
    Truth::of("@arc_clones 30000000")
        .first_finding(&["atomics"])
        .found_at("atomics", "of", "arc_clones.rs", LINE)
        .saves("atomics", 0.6..=0.95)
        .never(OTHERS)
        .check();
}

#[test]
fn a_getter_in_another_library_is_missed_inlining() {
    Truth::of("@far_getter 900")
        .first_finding(&["missed-inlining"])
        .found_at("missed-inlining", "blur", "far_getter.c", "sum += cell(from, x - 1, y)")
        .saves("missed-inlining", 0.5..=0.8)
        .never(OTHERS)
        .check();
}

#[test]
fn a_method_beyond_the_inliners_budget_is_missed_inlining() {
    Truth::of("@over_budget")
        .first_finding(&["missed-inlining"])
        .found_at("missed-inlining", "main.follow", "over_budget.go", LINE)
        .saves("missed-inlining", 0.4..=0.8)
        .never(OTHERS)
        .check();
}
