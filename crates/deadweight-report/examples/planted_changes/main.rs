//! How often a change of 5 % is found at its commit, and how often one is found where there is none: the tables.
//! `cargo run --release -p deadweight-report --example planted_changes`.
//!
//! Not a test: `tests/planted_changes.rs` has the bounds.
#![expect(clippy::print_stdout, reason = "a measurement for people")]

mod histories;

use histories::{Found, NOISES, OTAVA, REFINED, false_points, found, several, with_known_levels};

fn main() {
    for noise in &NOISES {
        println!("{}: {} with known levels", noise.name, with_known_levels(noise, 1000));
        for (name, method) in [("Otava", OTAVA), ("refined", REFINED)] {
            let Found { exactly, within_one, in_span, elsewhere } = found(noise, method, 1000);
            let [long, short] =
                [(200, 1000), (5000, 40)].map(|(n, length)| false_points(noise, method, n, length));
            println!(
                "  {name:7} of 1000: {exactly} exact, {within_one} within 1, {in_span} in span, \
                 {elsewhere} elsewhere; in 1000 without change: {long:.2}, of 40 each {short:.2}"
            );
            for every in [12.0, 20.0, 40.0] {
                println!("    one in {every}: {:?}", several(noise, method, every));
            }
        }
    }
}
