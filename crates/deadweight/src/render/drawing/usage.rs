//! CPU use over time, stacked by row, with the CPUs there were.

use super::ledger::class;
use super::{Drawing, WIDTH, n, ticks};
use crate::render::picture::Picture;
use crate::render::quantity::{percent, time};
use deadweight_report::account::row_name;
use maud::{Markup, html};

const LEFT: f64 = 60.0;
const TOP: f64 = 14.0;
const PLOT: f64 = 190.0;
const LINE: f64 = 20.0;
const COLUMNS: usize = 4;
/// Rows with less than this share of the CPU time are drawn together.
const SMALL: f64 = 0.01;

/// A row: its class, its name and its times.
struct Row {
    class: String,
    name: String,
    times: Vec<u64>,
}

impl Row {
    fn total(&self) -> u64 {
        self.times.iter().sum()
    }
}

/// The scales of a drawing: those of another can be given, to compare.
#[derive(Copy, Clone, Debug)]
pub struct Scales {
    /// The time at the right end.
    pub wall_ns: u64,
    /// The CPUs at the top.
    pub cpus: f64,
}

impl Scales {
    /// The scales that one drawing needs.
    #[must_use]
    pub fn of(picture: &Picture) -> Self {
        Self { wall_ns: picture.wall_ns.max(1), cpus: f64::from(picture.cpus.max(1)) }
    }

    /// The scales that both need.
    #[must_use]
    pub fn both(self, other: Self) -> Self {
        Self { wall_ns: self.wall_ns.max(other.wall_ns), cpus: self.cpus.max(other.cpus) }
    }
}

/// The drawing of a run's CPU use.
#[must_use]
pub fn drawing(picture: &Picture, id: &str, scales: Scales) -> Drawing {
    let rows = rows(picture);
    let all: u64 = rows.iter().map(Row::total).sum();
    let height = |ns: f64| ns / picture.usage.interval_ns.max(1) as f64 / scales.cpus * PLOT;
    let mut base = vec![0.0; rows.first().map_or(0, |row| row.times.len())];
    let mut areas: Vec<(&Row, String)> = Vec::new();
    for row in &rows {
        let lower = base.clone();
        for (sum, ns) in base.iter_mut().zip(&row.times) {
            *sum += *ns as f64;
        }
        areas.push((row, area(picture, scales, &lower, &base, height)));
    }
    let used = all as f64 / picture.wall_ns.max(1) as f64;
    let lines = rows.len().div_ceil(COLUMNS) as f64;
    let body = html! {
        (axes(scales, picture.cpus))
        @for (row, area) in &areas { path class={ "a-" (row.class) } d=(area) {} }
        (legend(&rows, all))
    };
    let parts: Vec<String> =
        rows.iter().map(|row| format!("{} {}", row.name, time(row.total()))).collect();
    Drawing {
        id: id.to_owned(),
        height: TOP + PLOT + 34.0 + lines * LINE,
        title: "CPU use over time, by row".to_owned(),
        text: format!(
            "{} of CPU time in {} wall time: on average {used:.2} of {} CPUs. {}",
            time(all),
            time(picture.wall_ns),
            picture.cpus,
            parts.join(", ")
        ),
        body,
    }
}

/// The rows, largest first; small ones together.
fn rows(picture: &Picture) -> Vec<Row> {
    let all: u64 = picture.usage.rows.iter().flat_map(|(_, times)| times).sum();
    let mut rows: Vec<Row> = Vec::new();
    let mut other: Option<Row> = None;
    for (account, times) in &picture.usage.rows {
        let sum: u64 = times.iter().sum();
        if sum as f64 >= SMALL * all as f64 {
            let name = row_name(account, account).to_owned();
            rows.push(Row { class: class(account), name, times: times.clone() });
            continue;
        }
        let into = other.get_or_insert_with(|| Row {
            class: "other".to_owned(),
            name: "other".to_owned(),
            times: vec![0; times.len()],
        });
        into.times.iter_mut().zip(times).for_each(|(sum, ns)| *sum += ns);
    }
    rows.extend(other);
    rows
}

/// The outline between two sums, in steps.
fn area(
    picture: &Picture,
    scales: Scales,
    lower: &[f64],
    upper: &[f64],
    height: impl Fn(f64) -> f64,
) -> String {
    let bottom = TOP + PLOT;
    let x = |at: usize| {
        let ns = (at as u64 * picture.usage.interval_ns).min(picture.wall_ns);
        LEFT + ns as f64 / scales.wall_ns as f64 * (WIDTH - LEFT - 10.0)
    };
    let mut d = format!("M{} {}", n(x(0)), n(bottom - lower.first().map_or(0.0, |ns| height(*ns))));
    for (at, sum) in upper.iter().enumerate() {
        d.push_str(&format!("V{}H{}", n(bottom - height(*sum)), n(x(at + 1))));
    }
    for (at, sum) in lower.iter().enumerate().rev() {
        d.push_str(&format!("V{}H{}", n(bottom - height(*sum)), n(x(at))));
    }
    d.push('Z');
    d
}

fn axes(scales: Scales, cpus: u16) -> Markup {
    let bottom = TOP + PLOT;
    let x = |ns: u64| LEFT + ns as f64 / scales.wall_ns as f64 * (WIDTH - LEFT - 10.0);
    let top = bottom - f64::from(cpus) / scales.cpus * PLOT;
    html! {
        @for (at, label) in ticks(scales.wall_ns) {
            path.axis d={ "M" (n(x(at))) " " (n(TOP)) "V" (n(bottom + 5.0)) } {}
            text.faint.middle x=(n(x(at).clamp(LEFT + 6.0, WIDTH - 24.0))) y=(n(bottom + 19.0)) { (label) }
        }
        path.axis d={ "M" (n(LEFT)) " " (n(bottom)) "H" (n(WIDTH - 10.0)) } {}
        path.capacity d={ "M" (n(LEFT)) " " (n(top)) "H" (n(WIDTH - 10.0)) } {}
        text.end x=(n(LEFT - 6.0)) y=(n(top + 8.0)) { (cpus) @if cpus == 1 { " CPU" } @else { " CPUs" } }
        text.faint.end x=(n(LEFT - 6.0)) y=(n(bottom)) { "0" }
    }
}

fn legend(rows: &[Row], all: u64) -> Markup {
    html! {
        @for (at, row) in rows.iter().enumerate() {
            @let x = LEFT + (at % COLUMNS) as f64 * (WIDTH - LEFT) / COLUMNS as f64;
            @let y = TOP + PLOT + 30.0 + (at / COLUMNS) as f64 * LINE;
            rect class={ "a-" (row.class) } x=(n(x)) y=(n(y)) width="12" height="12" {}
            text x=(n(x + 18.0)) y=(n(y + 11.0)) {
                (row.name) " " (time(row.total())) " (" (percent(row.total() as f64 / all.max(1) as f64)) ")"
            }
        }
    }
}
