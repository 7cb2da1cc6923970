//! Removes weak change points, the weakest first, until all that remain are significant and large enough.
//!
//! Not for finding them, or for moving them.

use super::segment::Segment;
use super::{ChangePoint, Options};

/// The change points that remain of `weak` splits of a series. These are in order and lie inside the series.
pub(super) fn merged(series: &[f64], weak: &[usize], options: &Options) -> Vec<ChangePoint> {
    let starts = std::iter::once(0).chain(weak.iter().copied());
    let ends = weak.iter().copied().chain(std::iter::once(series.len()));
    let mut segments: Vec<Segment> =
        starts.zip(ends).map(|(start, end)| Segment::of(&series[start..end])).collect();
    let pairs = weak.iter().zip(segments.windows(2));
    let mut points: Vec<ChangePoint> = pairs.map(|(index, pair)| tested(*index, pair)).collect();
    while let Some(at) = weakest(&points, options) {
        points.remove(at);
        let next = segments.remove(at + 1);
        segments[at] = segments[at].joined(&next);
        // The point before the removed one is not tested again, although its segment grew too: Otava tests the two
        // behind it, and so which points it finds depends on that.
        for later in [at, at + 1] {
            if let Some(point) = points.get_mut(later) {
                *point = tested(point.index, &segments[later..]);
            }
        }
    }
    points
}

/// A point between the first two segments.
fn tested(index: usize, segments: &[Segment]) -> ChangePoint {
    let [before, after] = [&segments[0], &segments[1]];
    ChangePoint::at(index, before.p(after), before, after)
}

/// The point to remove next: with the highest p value; if all are significant, with the smallest magnitude.
fn weakest(points: &[ChangePoint], options: &Options) -> Option<usize> {
    let weakest = first_most(points, |point| point.p)?;
    let p = points[weakest].p;
    if p.is_nan() || p >= options.max_p {
        return Some(weakest);
    }
    let smallest = first_most(points, |point| -point.magnitude())?;
    (points[smallest].magnitude() <= options.min_magnitude).then_some(smallest)
}

/// The first point with the largest value. One that is not a number is only taken if it is first, as in Otava.
fn first_most(points: &[ChangePoint], value: impl Fn(&ChangePoint) -> f64) -> Option<usize> {
    let values = points.iter().map(value).enumerate();
    let most = values.reduce(|a, b| if b.1 > a.1 { b } else { a });
    most.map(|(at, _)| at)
}
