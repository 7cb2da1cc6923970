//! Where a series of measurements changed: the algorithm of Apache Otava 0.8, and a more precise one on top of it.
//!
//! - In: the values of a series, one for each commit or run, in their order; names of machines, methods and rows.
//! - Out: its change points, each with its p value, and the level before and after it. The parts of a history that can
//!   be compared ([`parts`]), and what changed together ([`events`]).
//! - Must not know: reports, how values were measured, or how a change is worded.
//!
//! Otava was called Hunter (Fleming et al. 2023, doi:10.1145/3578244.3583719). It splits overlapping windows of the
//! series (`divisive`), with a p value ten times as high as was asked for. Then it removes the split with the highest p
//! value, and tests its neighbours again with the longer segments, until all that remain are significant (`merging`).
//! [`find`] computes the same as Otava: the crate's tests compare them. [`find_refined`] is more precise where a series
//! has a few dozen noisy values.

mod disturbances;
mod divisive;
pub mod events;
mod islands;
mod merging;
pub mod parts;
mod refined;
mod segment;

use divisive::Divisive;
pub use refined::find_refined;
use segment::Segment;
use serde::{Deserialize, Serialize};

/// What counts as a change point. The defaults are Otava's.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Options {
    /// The number of values that are split at a time, at least 2. Windows overlap by half. Time grows with it, and memory
    /// with its square.
    pub window: usize,
    /// The highest p value of a change point, 0 to 1.
    pub max_p: f64,
    /// The least [`ChangePoint::magnitude`], as a share: 0.05 is 5 %.
    pub min_magnitude: f64,
}

impl Default for Options {
    fn default() -> Self {
        Self { window: 50, max_p: 0.001, min_magnitude: 0.0 }
    }
}

impl Options {
    /// For [`find_refined`]: changes of 2 % at least. Smaller ones are mostly a machine whose speed wanders: with 1 %
    /// such series have ten times as many false points (simulated in `examples/planted_changes`).
    #[must_use]
    pub fn refined() -> Self {
        Self { max_p: 1e-4, min_magnitude: 0.02, ..Self::default() }
    }
}

/// A place where a series changed.
#[derive(Copy, Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChangePoint {
    /// The first value after the change.
    pub index: usize,
    /// The first value that may also be it; `index` itself from [`find`].
    pub earliest: usize,
    /// The last value that may also be it; `index` itself from [`find`]. With a probability of about 95 % the change is
    /// from `earliest` to `latest`.
    pub latest: usize,
    /// The p value of a t test of the values before and after. It is no probability of a false alarm: the place was
    /// chosen where the difference is largest.
    pub p: f64,
    /// The values from the previous change point to this one.
    pub before: Level,
    /// The values from here to the next change point.
    pub after: Level,
}

/// The level of a series between two change points.
#[derive(Copy, Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Level {
    /// Mean of the values, in their unit.
    pub mean: f64,
    /// Standard deviation of the values (divided by n), in their unit.
    pub deviation: f64,
}

impl ChangePoint {
    /// Between two segments.
    fn at(index: usize, p: f64, before: &Segment, after: &Segment) -> Self {
        let [before, after] =
            [before, after].map(|s| Level { mean: s.mean, deviation: s.deviation() });
        Self { index, earliest: index, latest: index, p, before, after }
    }

    /// The mean after the change over the one before, less 1: 0.05 is 5 % more. 0 if the mean before is 0.
    #[must_use]
    pub fn relative_change(&self) -> f64 {
        relative(self.before.mean, self.after.mean)
    }

    /// The size of the change as a share of the smaller mean, so that doubling and halving are alike.
    #[must_use]
    pub fn magnitude(&self) -> f64 {
        let back = relative(self.after.mean, self.before.mean);
        self.relative_change().abs().max(back.abs())
    }

    /// The mean after less the mean before, in the unit of the values.
    #[must_use]
    pub fn difference(&self) -> f64 {
        self.after.mean - self.before.mean
    }
}

fn relative(from: f64, to: f64) -> f64 {
    if from == 0.0 { 0.0 } else { to / from - 1.0 }
}

/// The change points of a series, in order. None if a value is not finite.
#[must_use]
pub fn find(series: &[f64], options: &Options) -> Vec<ChangePoint> {
    if !is_finite(series) {
        return Vec::new();
    }
    let weak = weak_points(series, options, weaker(options.max_p));
    merging::merged(series, &weak, options)
}

fn is_finite(series: &[f64]) -> bool {
    series.iter().all(|value| value.is_finite())
}

/// The p value for the windows: higher, because a split that is weak in its window may be strong in the series.
fn weaker(max_p: f64) -> f64 {
    match max_p {
        p if p < 0.05 => p * 10.0,
        p if p < 0.5 => p * 2.0,
        p => p,
    }
}

/// The splits of all windows, in order. A window begins half a window after the previous one, or at the last split.
fn weak_points(series: &[f64], options: &Options, max_p: f64) -> Vec<usize> {
    let window = options.window.max(2);
    let mut divisive = Divisive::default();
    let mut found = Vec::new();
    let mut start = 0;
    while start < series.len() {
        let end = start.saturating_add(window).min(series.len());
        let splits = divisive.splits(&series[start..end], max_p);
        let last = splits.last().map_or(0, |split| start + split);
        found.extend(splits.iter().map(|split| start + split));
        start = last.max(start + window / 2);
    }
    found.sort_unstable();
    found.dedup();
    found
}
