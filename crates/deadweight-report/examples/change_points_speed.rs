//! How long it takes to find the change points of long series: 100 000 values.
//! `cargo run --release -p deadweight-report --example change_points_speed`.
//!
//! Not a test: times depend on the machine.
#![expect(clippy::print_stdout, reason = "a measurement for people")]
#![expect(clippy::disallowed_types, reason = "it measures time; the crate itself has no clock")]

use deadweight_report::change_points::{ChangePoint, Options, find, find_refined};
use std::time::Instant;

type Find = fn(&[f64], &Options) -> Vec<ChangePoint>;

const VALUES: u64 = 100_000;

/// Noise of about 2 %, and a step of 10 % up or down after each `steps` values.
fn series(steps: u64) -> Vec<f64> {
    let mut state = 1_u64;
    let mut uniform = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040);
        (state >> 11) as f64 / (1_u64 << 53) as f64
    };
    (0..VALUES)
        .map(|i| {
            let noise: f64 = (0..6).map(|_| uniform() - 0.5).sum();
            (1000.0 + 100.0 * (i / steps % 2) as f64) * (1.0 + 0.028 * noise)
        })
        .collect()
}

fn main() {
    for (steps, what) in [(VALUES, "no step"), (500, "a step each 500"), (10, "a step each 10")] {
        let series = series(steps);
        let ways = [
            ("Otava's", find as Find, Options::default()),
            ("refined", find_refined, Options::refined()),
        ];
        for (name, find, options) in ways {
            let since = Instant::now();
            let found = find(&series, &options).len();
            let took = since.elapsed().as_secs_f64() * 1e3;
            println!("{what}, {name}: {found} points in {took:.0} ms");
        }
    }
}
