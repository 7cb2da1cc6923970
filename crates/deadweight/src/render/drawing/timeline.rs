//! The timeline: a lane per task, states by colour, height and pattern, the path drawn through the lanes, and arrows
//! from waits on the path to who ended them.
//!
//! The page's script draws a part of it larger, by the same rules and from the same data.

use super::{Drawing, WIDTH, fitted, n, ticks};
use crate::render::picture::{Cell, Lane, Picture, State};
use crate::render::quantity::time;
use maud::{Markup, html};

/// Where times begin.
pub(crate) const LEFT: f64 = 190.0;
/// Where the first lane begins.
pub(crate) const TOP: f64 = 26.0;
/// From lane to lane.
pub(crate) const PITCH: f64 = 28.0;
/// The width of the wall time.
pub(crate) const SPAN: f64 = WIDTH - LEFT - 12.0;
/// Narrower states are drawn with the next one.
const NARROW: f64 = 0.7;
/// Waits that are narrower have no arrow until the reader zooms in.
const SEEN: f64 = 4.0;

/// The drawing of a run's tasks.
#[must_use]
pub fn drawing(picture: &Picture) -> Drawing {
    let height = TOP + picture.lanes.len() as f64 * PITCH + 10.0;
    let (legend, lines) = legend(picture, height);
    let body = html! {
        (patterns())
        g.axis-lines { (axis(picture, height)) }
        @for (at, lane) in picture.lanes.iter().enumerate() {
            text.end x=(n(LEFT - 8.0)) y=(n(y(at) + 15.0)) { (fitted(&label(lane), LEFT - 12.0)) }
        }
        g.cells { @for (at, lane) in picture.lanes.iter().enumerate() { (cells(picture, lane, y(at))) } }
        g.the-path {
            @let (along, between) = way(picture);
            path.between d=(between) {}
            path.way d=(along) {}
        }
        g.arrows { (arrows(picture)) }
        (legend)
    };
    let on_path = picture.waits.len() + picture.more_waits.0;
    Drawing {
        id: "timeline-drawing".to_owned(),
        height: height + lines * 20.0 + 8.0,
        title: "Timeline of processes and threads".to_owned(),
        text: format!(
            "{} tasks over {}; the thick line is the path that the wall time consisted of. It has {on_path} waits: the \
             longest are in the table below.",
            picture.lanes.len(),
            time(picture.wall_ns)
        ),
        body,
    }
}

fn label(lane: &Lane) -> String {
    if lane.pid == lane.tid {
        format!("{} {}", lane.name, lane.tid)
    } else {
        format!("{} thread {}", lane.name, lane.tid)
    }
}

fn y(lane: usize) -> f64 {
    TOP + lane as f64 * PITCH
}

fn x(picture: &Picture, ns: u64) -> f64 {
    LEFT + ns as f64 / picture.wall_ns.max(1) as f64 * SPAN
}

fn axis(picture: &Picture, height: f64) -> Markup {
    html! {
        @for (at, label) in ticks(picture.wall_ns) {
            path.axis d={ "M" (n(x(picture, at))) " 20V" (n(height)) } {}
            text.faint.middle x=(n(x(picture, at).clamp(LEFT + 4.0, WIDTH - 24.0))) y="14" { (label) }
        }
    }
}

/// The upper edge and the height of a state in its lane.
fn extent(state: State) -> (f64, f64) {
    if state.blocked() { (8.0, 6.0) } else { (2.0, 17.0) }
}

/// The states of a lane: one path element for each kind.
fn cells(picture: &Picture, lane: &Lane, y: f64) -> Markup {
    let mut paths: Vec<String> = vec![String::new(); State::ALL.len()];
    for (from, to, state) in merged(picture, &lane.cells) {
        let (above, height) = extent(state);
        let d = &mut paths[state.number()];
        d.push_str(&format!(
            "M{} {}h{}v{}h-{}z",
            n(from),
            n(y + above),
            n(to - from),
            n(height),
            n(to - from)
        ));
    }
    html! {
        @for (state, d) in State::ALL.into_iter().zip(paths) {
            @if !d.is_empty() { path class={ "s-" (state.class()) } d=(d) {} }
        }
    }
}

/// Where states are drawn: what is narrower than can be seen is drawn as the longest of its neighbours.
fn merged(picture: &Picture, cells: &[Cell]) -> Vec<(f64, f64, State)> {
    let mut drawn: Vec<(f64, f64, State)> = Vec::new();
    let mut open: Option<(f64, f64, State, u64)> = None;
    for Cell(start, length, state, _) in cells {
        let (from, to) = (x(picture, *start), x(picture, start + length));
        open = match open {
            Some((first, last, kind, most))
                if to - first < NARROW || kind == *state && (from - last).abs() < 0.1 =>
            {
                let longer = *length > most;
                Some((first, to, if longer { *state } else { kind }, most.max(*length)))
            }
            Some((first, last, kind, _)) => {
                drawn.push((first, last, kind));
                Some((from, to, *state, *length))
            }
            None => Some((from, to, *state, *length)),
        };
    }
    drawn.extend(open.map(|(from, to, kind, _)| (from, to.max(from + 0.2), kind)));
    drawn
}

/// The path through the lanes: along each lane, below its states; and between lanes.
fn way(picture: &Picture) -> (String, String) {
    let (mut along, mut between) = (String::new(), String::new());
    let mut last: Option<f64> = None;
    for step in &picture.path {
        let Some(lane) = step.2 else {
            last = None;
            continue;
        };
        let level = y(lane) + 22.0;
        let (from, to) = (n(x(picture, step.0)), n(x(picture, step.1)));
        along.push_str(&format!("M{from} {}H{to}", n(level)));
        if let Some(before) = last.filter(|before| (before - level).abs() > 0.1) {
            between.push_str(&format!("M{from} {}V{}", n(before), n(level)));
        }
        last = Some(level);
    }
    (along, between)
}

/// From the end of each wait to the lane of the task that ended it.
fn arrows(picture: &Picture) -> Markup {
    html! {
        @for wait in picture.waits.iter().filter(|wait| x(picture, wait.end) - x(picture, wait.start) >= SEEN) {
            @if let (Some(lane), Some(waker)) = (wait.lane, wait.waker_lane) {
                @let at = x(picture, wait.end);
                @let (from, to) = (y(lane) + 11.0, y(waker) + 11.0);
                @if lane != waker {
                    g data-waiter=(wait.tid) data-waker=[wait.waker] data-end=(wait.end) {
                        path.arrow d={ "M" (n(at)) " " (n(from)) "Q" (n(at - 9.0)) " " (n(f64::midpoint(from, to))) " " (n(at)) " " (n(to)) } {}
                        (head(at, to, if to > from { -6.0 } else { 6.0 }))
                    }
                }
            }
        }
    }
}

fn head(x: f64, y: f64, back: f64) -> Markup {
    html! { path.head d={ "M" (n(x)) " " (n(y)) "l-4 " (n(back)) "h7z" } {} }
}

/// Patterns, so that colour is not the only difference.
fn patterns() -> Markup {
    let pattern = |id: &str, colour: &str, lines: &str| {
        html! {
            pattern #(id) width="6" height="6" patternUnits="userSpaceOnUse" {
                rect width="6" height="6" fill=(colour) {}
                path d=(lines) stroke="#101214" stroke-width="1" fill="none" {}
            }
        }
    };
    html! {
        defs {
            (pattern("p-ready", "#e0c65a", "M-1 1l2-2M0 6l6-6M5 7l2-2"))
            (pattern("p-output", "#b58fe0", "M1.5 0v6"))
            (pattern("p-disk", "#8c86d9", "M1 1h1M4 4h1"))
            (pattern("p-child", "#bd83c4", "M0 3h3"))
            (pattern("p-other", "#c2c8ce", "M3 0v3"))
            (pattern("p-unrecorded", "#d5dade", "M0 0l6 6M6 0l-6 6"))
        }
    }
}

fn legend(picture: &Picture, top: f64) -> (Markup, f64) {
    let mut seen = [false; State::ALL.len()];
    for cell in picture.lanes.iter().flat_map(|lane| &lane.cells) {
        seen[cell.2.number()] = true;
    }
    let kinds: Vec<State> = State::ALL.into_iter().filter(|state| seen[state.number()]).collect();
    let lines = kinds.len().div_ceil(5) as f64;
    let legend = html! {
        @for (at, state) in kinds.into_iter().enumerate() {
            @let (x, y) = ((at % 5) as f64 * 238.0 + 8.0, top + 6.0 + (at / 5) as f64 * 20.0);
            @let (above, height) = extent(state);
            rect class={ "s-" (state.class()) } x=(n(x)) y=(n(y - 2.0 + above)) width="22" height=(n(height.min(14.0))) {}
            text x=(n(x + 28.0)) y=(n(y + 12.0)) { (state.name()) }
        }
    };
    (legend, lines)
}
