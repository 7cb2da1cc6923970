//! Whether a change of 5 % is found at its commit, and how often one is found where there is none: simulated histories.
//! `cargo run --release -p deadweight-report --example planted_changes` prints the tables.
//!
//! Not for equality with Otava: see `change_points`.

#[path = "../examples/planted_changes/histories.rs"]
mod histories;

use histories::{
    Found, NOISES, OTAVA, QUIET, REFINED, false_points, found, several, with_known_levels,
};

#[test]
fn a_change_of_5_percent_is_found_at_its_commit() {
    for noise in &NOISES[..4] {
        let Found { exactly, within_one, .. } = found(noise, REFINED, 1000);
        assert!(exactly >= 950 && within_one >= 980, "{}: {exactly}, {within_one}", noise.name);
    }
    // Where noise is larger, the place is lost whatever the method.
    for noise in &NOISES[4..] {
        let Found { exactly, .. } = found(noise, REFINED, 400);
        let possible = with_known_levels(noise, 400);
        assert!(exactly * 100 >= possible * 80, "{}: {exactly} of {possible}", noise.name);
    }
}

#[test]
fn series_without_a_change_have_less_than_one_point_in_1_000_commits() {
    for noise in &NOISES[..6] {
        for (series, length) in [(10, 1000), (200, 50)] {
            let found = false_points(noise, REFINED, series, length);
            assert!(found <= 1.0, "{}, {length} commits: {found}", noise.name);
        }
    }
    let wandering = false_points(&NOISES[6], REFINED, 20, 1000);
    assert!(wandering <= 2.0, "{wandering}");
}

#[test]
fn the_plain_algorithm_has_more_points_without_a_change() {
    let [plain, refined] = [OTAVA, REFINED].map(|method| false_points(&QUIET, method, 20, 1000));
    assert!(plain > refined, "{plain}, {refined}");
}

#[test]
fn frequent_changes_are_found() {
    let [changes, exact, elsewhere] = several(&QUIET, REFINED, 20.0);
    assert!(exact * 100 >= changes * 90 && elsewhere * 100 <= changes * 5, "{exact} {elsewhere}");
}
