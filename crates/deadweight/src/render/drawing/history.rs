//! The total of a workload from commit to commit: its interval, its levels between changes, and the changes.
//!
//! The script of the page draws the same of other rows (`html/history.js`).

use super::{Drawing, WIDTH, n};
use crate::render::history::{day, sentence, word};
use crate::render::quantity::fine_time;
use deadweight_report::history::{Change, History, Point};
use maud::{Markup, html};

const LEFT: f64 = 76.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 34.0;
const PLOT: f64 = 280.0;
/// Dates along the axis.
const DATES: usize = 6;
/// More points than this have no dots.
const DOTTED: usize = 240;
/// The least height of a chart, in ns.
const LEAST: f64 = 1e-3;
/// The axis begins at 0 if the smallest value is below this part of the largest.
const FROM_ZERO: f64 = 0.4;

/// The drawing of a history's total.
#[must_use]
pub fn drawing(history: &History) -> Drawing {
    let chart = Chart::of(history);
    let body = html! {
        g.axes { (chart.axes()) }
        g.plot {
            path.interval d=(chart.interval()) {}
            path.value d=(chart.values()) {}
            @if history.points.len() <= DOTTED {
                g.values { @for (x, point) in chart.placed() { circle cx=(n(x)) cy=(n(chart.y(point.ns))) r="2.6" {} } }
            }
            @for (from, to, mean) in chart.levels() {
                path.level d={ "M" (n(from)) " " (n(chart.y(mean))) "H" (n(to)) } {}
            }
        }
        g.cuts { @for series in &history.new_series {
            @let x = chart.x(series.index) - chart.step() / 2.0;
            path.cut d={ "M" (n(x)) " " (n(TOP)) "V" (n(TOP + PLOT)) } {}
            text.faint x=(n(x + 4.0)) y=(n(TOP + PLOT - 6.0)) { "another method" }
        } }
        g.changes { @for (number, change) in (1..).zip(&history.events) { (chart.change(number, change)) } }
        g.pointing {}
    };
    let said: Vec<String> = history.events.iter().map(sentence).collect();
    let all = match said.is_empty() {
        true => "no change found".to_owned(),
        false => said.join(". "),
    };
    Drawing {
        id: "history-drawing".to_owned(),
        height: TOP + PLOT + 30.0,
        title: "The total of each commit".to_owned(),
        text: format!("{} commits, {}", history.points.len(), all),
        body,
    }
}

/// The geometry of a chart.
struct Chart<'h> {
    history: &'h History,
    low: f64,
    high: f64,
}

impl<'h> Chart<'h> {
    fn of(history: &'h History) -> Self {
        let ends = || history.points.iter().map(|p| (p.low_ns.min(p.ns), p.high_ns.max(p.ns)));
        let low = ends().map(|(low, _)| low).reduce(f64::min).unwrap_or(0.0);
        let high = ends().map(|(_, high)| high).reduce(f64::max).unwrap_or(1.0).max(LEAST);
        let low = if low < FROM_ZERO * high { 0.0 } else { low };
        // Noise alone must not fill the chart.
        let margin = ((high - low) * 0.12).max(high * 0.02);
        Self { history, low: (low - margin).max(0.0), high: high + margin }
    }

    fn step(&self) -> f64 {
        (WIDTH - LEFT - RIGHT) / self.history.points.len().max(1) as f64
    }

    fn x(&self, index: usize) -> f64 {
        LEFT + (index as f64 + 0.5) * self.step()
    }

    fn y(&self, ns: f64) -> f64 {
        TOP + PLOT * (1.0 - (ns - self.low) / (self.high - self.low))
    }

    fn placed(&self) -> impl Iterator<Item = (f64, &Point)> {
        self.history.points.iter().enumerate().map(|(index, point)| (self.x(index), point))
    }

    fn values(&self) -> String {
        let mut d = String::new();
        for (index, (x, point)) in self.placed().enumerate() {
            let new = index == 0 || self.history.new_series.iter().any(|s| s.index == index);
            let letter = if new { 'M' } else { 'L' };
            d.push_str(&format!("{letter}{} {}", n(x), n(self.y(point.ns))));
        }
        d
    }

    /// The outline of all intervals.
    fn interval(&self) -> String {
        let mut d = String::new();
        for (x, point) in self.placed() {
            let letter = if d.is_empty() { 'M' } else { 'L' };
            d.push_str(&format!("{letter}{} {}", n(x), n(self.y(point.high_ns))));
        }
        let back: Vec<(f64, &Point)> = self.placed().collect();
        for (x, point) in back.into_iter().rev() {
            d.push_str(&format!("L{} {}", n(x), n(self.y(point.low_ns))));
        }
        if !d.is_empty() {
            d.push('Z');
        }
        d
    }

    /// The means between the changes of the total: from, to, ns.
    fn levels(&self) -> Vec<(f64, f64, f64)> {
        let changes = self.history.events.iter().filter(|change| change.event.total.is_some());
        let mut edges: Vec<usize> = changes
            .map(|change| change.event.index)
            .chain(self.history.new_series.iter().map(|series| series.index))
            .chain([0, self.history.points.len()])
            .collect();
        edges.sort_unstable();
        edges.dedup();
        let level = |pair: &[usize]| {
            let points = &self.history.points[pair[0]..pair[1]];
            let mean = points.iter().map(|point| point.ns).sum::<f64>() / points.len() as f64;
            (self.x(pair[0]) - self.step() / 2.0, self.x(pair[1]) - self.step() / 2.0, mean)
        };
        edges.windows(2).map(level).collect()
    }

    fn axes(&self) -> Markup {
        let steps = steps(self.low, self.high).into_iter().map(|ns| (ns, self.y(ns)));
        let count = self.history.points.len();
        let dates = (0..DATES.min(count))
            .map(|at| at * (count - 1) / DATES.min(count).max(2).saturating_sub(1));
        let mut last = String::new();
        let dates: Vec<(f64, String)> = dates
            .map(|index| (self.x(index), day(self.history.points[index].moment)))
            .filter(|(_, date)| std::mem::replace(&mut last, date.clone()) != *date)
            .collect();
        html! {
            @for (ns, y) in steps {
                path.axis d={ "M" (n(LEFT)) " " (n(y)) "H" (n(WIDTH - RIGHT)) } {}
                text.faint.end x=(n(LEFT - 8.0)) y=(n(y + 4.0)) { (label(ns)) }
            }
            path.axis d={ "M" (n(LEFT)) " " (n(TOP + PLOT)) "H" (n(WIDTH - RIGHT)) } {}
            @for (x, date) in &dates {
                text.faint.middle x=(n(x.clamp(LEFT + 30.0, WIDTH - 40.0))) y=(n(TOP + PLOT + 20.0)) { (date) }
            }
        }
    }

    /// A change: a line with a number at its top that leads to its text.
    fn change(&self, number: usize, change: &Change) -> Markup {
        let x = self.x(change.event.index) - self.step() / 2.0;
        let word = word(change);
        html! {
            a href={ "#change-" (number) } data-index=(change.event.index) {
                title { (day(change.moment)) ": " (sentence(change)) }
                path class={ "change change-" (word) } d={ "M" (n(x)) " " (n(TOP - 8.0)) "V" (n(TOP + PLOT)) } {}
                circle class={ "mark mark-" (word) } cx=(n(x)) cy=(n(TOP - 18.0)) r="11" {}
                text.on-mark x=(n(x)) y=(n(TOP - 14.0)) { (number) }
            }
        }
    }
}

/// A value of the axis.
fn label(ns: f64) -> String {
    if ns == 0.0 { "0".to_owned() } else { fine_time(ns) }
}

/// Four to eight round values between two.
fn steps(low: f64, high: f64) -> Vec<f64> {
    let rough = ((high - low) / 7.0).max(1e-9);
    let power = 10_f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|f| f * power).find(|step| *step >= rough);
    let step = step.unwrap_or(rough);
    let first = (low / step).ceil();
    (0..).map(|i| (first + f64::from(i)) * step).take_while(|ns| *ns <= high).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_has_few_round_values() {
        assert_eq!(steps(0.0, 7.0), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]);
        assert_eq!(steps(930.0, 1080.0), [950.0, 1000.0, 1050.0]);
        for high in [1.0, 33.0, 1e9, 1.8e19] {
            assert!((2..=9).contains(&steps(high * 0.9, high).len()), "{high}");
        }
    }

    #[test]
    fn odd_histories_are_drawn() {
        assert!(drawing(&History::default()).alone().contains("0 commits"));
        let point = |ns| Point { ns, low_ns: ns, high_ns: ns, ..Point::default() };
        for points in [vec![point(0.0)], vec![point(1.8e19), point(0.0)], vec![point(0.3)]] {
            let text = drawing(&History { points, ..History::default() }).alone();
            assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
        }
    }
}
