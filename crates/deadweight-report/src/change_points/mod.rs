//! Where a series of measurements changed: the algorithm of Apache Otava 0.8.
//!
//! - In: the values of a series, one for each commit or run, in their order.
//! - Out: its change points, each with its p value, and the level before and after it.
//! - Must not know: reports, rows, or what a value measures.
//!
//! Otava was called Hunter (Fleming et al. 2023, doi:10.1145/3578244.3583719). It splits overlapping windows of the
//! series (`divisive`), with a p value ten times as high as was asked for. Then it removes the split with the highest p
//! value, and tests its neighbours again with the longer segments, until all that remain are significant (`merging`).
//! [`find`] computes the same as Otava: the crate's tests compare them.

mod divisive;
mod merging;
mod segment;

use divisive::Divisive;
use segment::Segment;

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

/// A place where a series changed.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct ChangePoint {
    /// The first value after the change.
    pub index: usize,
    /// The p value of a t test of the values before and after. It is no probability of a false alarm: the place was
    /// chosen where the difference is largest.
    pub p: f64,
    /// The values from the previous change point to this one.
    pub before: Level,
    /// The values from here to the next change point.
    pub after: Level,
}

/// The level of a series between two change points.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Level {
    /// Mean of the values, in their unit.
    pub mean: f64,
    /// Standard deviation of the values (divided by n), in their unit.
    pub deviation: f64,
}

impl ChangePoint {
    fn new(index: usize, before: &Segment, after: &Segment) -> Self {
        let level = |s: &Segment| Level { mean: s.mean, deviation: s.deviation() };
        Self { index, p: before.p(after), before: level(before), after: level(after) }
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
    if series.iter().any(|value| !value.is_finite()) {
        return Vec::new();
    }
    let weak = weak_points(series, options.window.max(2), weaker(options.max_p));
    merging::merged(series, &weak, options)
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
fn weak_points(series: &[f64], window: usize, max_p: f64) -> Vec<usize> {
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
