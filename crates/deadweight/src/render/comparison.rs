//! A comparison for people: whether B is faster, by how much, and which row explains it.
//!
//! Does not measure or judge: everything here is a value in [`Comparison`].

use super::page::{Ink, Line, Page, Sheet, columns, fitted};
use super::quantity::{Scale, percent, time_in};
use crate::cli::TimeUnit;
use deadweight_report::account::row_name;
use deadweight_report::compare::{
    ALPHA, Comparison, MATERIAL, Ratio, RowDifference, SMALLEST_DIFFERENCE, Side, Verdict, fewest,
    side, smallest_p,
};
use deadweight_report::report::Report;

/// The column where rows' names begin, and a column past it where their notes may.
const GROUPS: usize = 34;
const NOTES: usize = GROUPS + 3;
/// Rows that differ by less than this share of the larger wall time are folded into one.
const SMALL: f64 = 0.005;
/// A row with a smaller share of the difference is not the reason.
const NAMED: f64 = 0.2;
/// Above this factor, in both directions, a factor is clearer than per cent.
const TIMES: f64 = 1.5;

/// How times are shown.
#[derive(Copy, Clone, Debug, Default)]
pub struct Shown {
    /// The unit; default: the unit that fits.
    pub unit: Option<TimeUnit>,
    /// Whether the fastest command comes first; default: in the order of the command line.
    pub fastest_first: bool,
}

/// Several commands, each against the first.
#[must_use]
pub fn render(comparisons: &[Comparison], page: Page, shown: Shown) -> String {
    let mut sheet = Sheet::new(page);
    let first = comparisons.first().map(|c| &c.a);
    let mut sides: Vec<(&Side, char)> =
        first.into_iter().chain(comparisons.iter().map(|c| &c.b)).zip('A'..).collect();
    let mut comparisons: Vec<(&Comparison, char)> = comparisons.iter().zip('B'..).collect();
    if shown.fastest_first {
        sides.sort_by_key(|(side, _)| side.wall_ns.median);
        comparisons.sort_by_key(|(comparison, _)| comparison.b.wall_ns.median);
    }
    commands(&mut sheet, &sides, shown.unit);
    for (comparison, letter) in comparisons {
        warnings(&mut sheet, &comparison.unlike);
        headline(&mut sheet, comparison, letter);
        // Rows explain a difference that is shown, or that of two single runs.
        let single = comparison.a.runs.min(comparison.b.runs) == 0;
        let differ = matches!(comparison.verdict, Verdict::Faster | Verdict::Slower);
        if differ || comparison.verdict == Verdict::CannotTell && single {
            rows(&mut sheet, comparison, letter, shown.unit);
        }
        warnings(&mut sheet, &comparison.warnings);
        sheet.gap();
    }
    sheet.into_text()
}

/// One command and its time.
#[must_use]
pub fn alone(name: &str, report: &Report, page: Page, unit: Option<TimeUnit>) -> String {
    let side = side(name, report);
    let mut sheet = Sheet::new(page);
    let mut line = Line::indented(2);
    let took = took(&side, unit);
    line.push(Ink::Strong, &fitted(name, sheet.width().saturating_sub(4 + columns(&took)).max(20)));
    line.right(sheet.width(), Ink::Plain, &took);
    sheet.line(&line);
    let (least, most) =
        (report.runs.clean.each_ns.iter().min(), report.runs.clean.each_ns.iter().max());
    if let (Some(least), Some(most)) = (least, most) {
        let [user, system, least, most] =
            [side.user_ns, side.sys_ns, *least, *most].map(|ns| time_in(unit, ns));
        let text = format!("user {user}, system {system}, from {least} to {most}");
        sheet.paragraph(Line::indented(2), 4, Ink::Faint, &text);
    }
    let said: Vec<String> = report.hazards.iter().map(|hazard| hazard.text.clone()).collect();
    warnings(&mut sheet, &said);
    sheet.into_text()
}

fn warnings(sheet: &mut Sheet, warnings: &[String]) {
    for warning in warnings {
        let mut line = Line::indented(2);
        line.push(Ink::Doubt, "! ");
        sheet.paragraph(line, 4, Ink::Plain, warning);
    }
}

/// The letters with their commands and times.
fn commands(sheet: &mut Sheet, sides: &[(&Side, char)], unit: Option<TimeUnit>) {
    for (side, letter) in sides {
        let took = took(side, unit);
        let mut line = Line::indented(2);
        line.push(Ink::Strong, &letter.to_string()).push(Ink::Plain, "  ");
        let room = sheet.width().saturating_sub(line.columns() + 2 + columns(&took));
        line.push(Ink::Strong, &fitted(&side.name, room.max(20)));
        line.right(sheet.width(), Ink::Plain, &took);
        sheet.line(&line);
    }
    sheet.gap();
}

fn took(side: &Side, unit: Option<TimeUnit>) -> String {
    let median = time_in(unit, side.wall_ns.median);
    match side.runs {
        0 => format!("{median}, one traced run"),
        1 => format!("{median}, 1 run"),
        n => {
            let scale = Scale::of(unit, side.wall_ns.high);
            let digits = |ns| scale.digits(scale.steps(ns));
            let (median, low, high) = (side.wall_ns.median, side.wall_ns.low, side.wall_ns.high);
            let ends = format!("{} to {}", digits(low), digits(high));
            format!("median {} {} ({ends}), {n} runs", digits(median), scale.unit())
        }
    }
}

/// What few runs show if all of them agree: `B was 13.9 × faster than A in all 5 pairs of runs, but ...`.
fn always(comparison: &Comparison, letter: char) -> Option<String> {
    let Comparison { ratio, a, b, .. } = comparison;
    let differs = (ratio.value - 1.0).abs() >= MATERIAL;
    (comparison.unanimous && differs).then(|| {
        let how = if ratio.value < 1.0 { faster(ratio.value) } else { slower(ratio.value) };
        let runs = a.runs.min(b.runs);
        let all = if ratio.paired {
            format!("in all {runs} pairs of runs")
        } else {
            format!("in all runs ({} and {})", a.runs, b.runs)
        };
        let least = smallest_p(runs, ratio.paired);
        let enough = fewest(ratio.paired);
        format!(
            "cannot tell for certain: {letter} was {how} than A {all}, but p cannot be below \
             {least:.2} with {runs}; -r {enough} settles it"
        )
    })
}

/// `B is 34.9 × faster than A  (95 % CI 34.1 to 35.6 ×, p < 0.001, runs alternate)`.
fn headline(sheet: &mut Sheet, comparison: &Comparison, letter: char) {
    let Comparison { ratio, verdict, .. } = comparison;
    let (ink, said) = match verdict {
        Verdict::Faster => (Ink::Strong, format!("{letter} is {} than A", faster(ratio.value))),
        Verdict::Slower => (Ink::Cost, format!("{letter} is {} than A", slower(ratio.value))),
        Verdict::NoDifference => {
            (Ink::Strong, format!("~ no significant difference between {letter} and A"))
        }
        Verdict::CannotTell => (Ink::Doubt, format!("cannot tell whether {letter} differs from A")),
    };
    let mut line = Line::indented(2);
    line.push(ink, &said);
    if *verdict == Verdict::CannotTell {
        if let Some(always) = always(comparison, letter) {
            sheet.paragraph(Line::indented(2), 4, Ink::Doubt, &always);
        } else {
            sheet.line(&line);
        }
        return;
    }
    if let Some(reason) = reason(comparison) {
        sheet.paragraph(line, 4, ink, &reason);
        line = Line::indented(4);
    } else {
        line.push(Ink::Plain, "  ");
    }
    let mut text = format!("({}, {}{})", interval(ratio), chance(ratio.p), turns(ratio));
    if *verdict == Verdict::NoDifference && ratio.p < 0.05 && ratio.p >= ALPHA {
        text.push_str(&format!(" A difference is reported from p < {ALPHA} on."));
    }
    if let Some(runs) = comparison.runs_needed {
        let shown = percent((ratio.value - 1.0).abs().max(SMALLEST_DIFFERENCE));
        text.push_str(&format!(
            " About {runs} runs of each would show a difference of {shown}: `-r {runs}`."
        ));
    }
    sheet.paragraph(line, 4, Ink::Faint, &text);
}

/// The verdict in one sentence.
pub(crate) fn sentence(comparison: &Comparison, letter: char) -> String {
    let Comparison { ratio, verdict, .. } = comparison;
    let why = reason(comparison).unwrap_or_default();
    let known = format!(" ({}, {}{})", interval(ratio), chance(ratio.p), turns(ratio));
    match verdict {
        Verdict::Faster => format!("{letter} is {} than A{why}{known}.", faster(ratio.value)),
        Verdict::Slower => format!("{letter} is {} than A{why}{known}.", slower(ratio.value)),
        Verdict::NoDifference => {
            format!("No significant difference between {letter} and A{known}.")
        }
        Verdict::CannotTell => match always(comparison, letter) {
            Some(always) => format!("Deadweight {always}."),
            None => format!("There are too few runs to tell whether {letter} differs from A."),
        },
    }
}

/// `: 86 % of it in tiny reads`.
fn reason(comparison: &Comparison) -> Option<String> {
    if !matches!(comparison.verdict, Verdict::Faster | Verdict::Slower) {
        return None;
    }
    let row = comparison.reason().filter(|row| row.share >= NAMED)?;
    let part = if row.share > 0.995 { "all".to_owned() } else { percent(row.share) };
    Some(format!(": {part} of it in {}", row_name(&row.account, &row.group)))
}

fn faster(ratio: f64) -> String {
    if ratio <= 1.0 / TIMES {
        format!("{} × faster", digits(1.0 / ratio))
    } else {
        format!("{} faster", percent(1.0 - ratio))
    }
}

fn slower(ratio: f64) -> String {
    if ratio >= TIMES {
        format!("{} × slower", digits(ratio))
    } else {
        format!("{} slower", percent(ratio - 1.0))
    }
}

/// Three significant digits.
fn digits(value: f64) -> String {
    let decimals = match value {
        v if v < 9.995 => 2,
        v if v < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.decimals$}")
}

/// The interval in the unit of the estimate.
fn interval(ratio: &Ratio) -> String {
    if ratio.value <= 1.0 / TIMES {
        return format!("95 % CI {} to {} ×", digits(1.0 / ratio.high), digits(1.0 / ratio.low));
    }
    if ratio.value >= TIMES {
        return format!("95 % CI {} to {} ×", digits(ratio.low), digits(ratio.high));
    }
    let change = |r: f64| format!("{:+.1}", (r - 1.0) * 100.0).replace('-', "−");
    format!("95 % CI {} to {} %", change(ratio.low), change(ratio.high))
}

fn chance(p: f64) -> String {
    if p < 0.001 { "p < 0.001".into() } else { format!("p = {p:.3}") }
}

fn turns(ratio: &Ratio) -> &'static str {
    if ratio.paired { ", runs alternate" } else { "" }
}

/// The rows that make the difference. They add up to it, also as shown.
fn rows(sheet: &mut Sheet, comparison: &Comparison, letter: char, unit: Option<TimeUnit>) {
    let whole = comparison.a.wall_ns.median.max(comparison.b.wall_ns.median).max(1) as f64;
    let (large, small): (Vec<&RowDifference>, Vec<&RowDifference>) = comparison
        .rows
        .iter()
        .filter(|row| row.difference_ns != 0)
        .partition(|row| row.difference_ns.unsigned_abs() as f64 / whole >= SMALL);
    if large.is_empty() {
        return;
    }
    let name = |row: &RowDifference| row_name(&row.account, &row.group).to_owned();
    let group = large.iter().map(|row| columns(&name(row))).chain([5]).max().unwrap_or(5);
    let total = comparison.difference_ns;
    let scale = Scale::of(unit, total.unsigned_abs().max(largest(&large)));
    // Cumulative rounding, so that the shown steps add up.
    let (mut sum, mut shown) = (0_i64, 0_i64);
    let mut steps = |difference: i64| {
        sum = sum.saturating_add(difference);
        let before = std::mem::replace(&mut shown, signed_steps(scale, sum));
        shown - before
    };
    let mut first = true;
    for row in &large {
        let mut line = Line::indented(2);
        let head = if comparison.verdict == Verdict::CannotTell { "here:" } else { "why:" };
        line.push(Ink::Faint, if first { head } else { "" });
        amounts(&mut line, scale, (steps(row.difference_ns), give(scale, row)), row.share);
        line.push(Ink::Doubt, if row.is_chance() { "~ " } else { "" });
        line.push(Ink::Strong, &name(row)).pad_to(NOTES + group);
        sheet.paragraph(line, NOTES + group, Ink::Plain, &change(row, unit));
        first = false;
    }
    let rest: i64 = small.iter().map(|row| row.difference_ns).sum();
    if rest != 0 {
        let mut line = Line::indented(2);
        let share = if total == 0 { 0.0 } else { rest as f64 / total as f64 };
        amounts(&mut line, scale, (steps(rest), None), share);
        line.push(Ink::Plain, "other rows");
        sheet.line(&line);
    }
    let mut line = Line::indented(2);
    let share = if total == 0 { 0.0 } else { 1.0 };
    amounts(&mut line, scale, (signed_steps(scale, total), None), share);
    line.push(Ink::Faint, &format!("wall time of {letter} − A: the sum of all rows"));
    sheet.line(&line);
    trust(sheet, comparison, &large);
}

/// What the marks on the rows mean, or why there are no marks.
fn trust(sheet: &mut Sheet, comparison: &Comparison, shown: &[&RowDifference]) {
    let (a, b) = (comparison.a.traced, comparison.b.traced);
    let text = if shown.iter().any(|row| row.is_chance()) {
        format!(
            "~ may be chance (p ≥ 0.01 in {a} + {b} traced runs, corrected for the number of rows)"
        )
    } else if comparison.rows.iter().all(|row| row.p.is_none()) {
        let runs = if a + b == 2 {
            "1 + 1 traced run".to_owned()
        } else {
            format!("{a} + {b} traced runs")
        };
        format!("{runs} are too few to say which rows are beyond chance")
    } else {
        return;
    };
    sheet.paragraph(Line::indented(GROUPS), GROUPS, Ink::Faint, &text);
}

/// Half the width of the row's interval, in steps.
fn give(scale: Scale, row: &RowDifference) -> Option<u64> {
    let [low, high] = row.interval_ns?;
    Some(scale.steps(low.abs_diff(high).div_ceil(2)))
}

fn largest(rows: &[&RowDifference]) -> u64 {
    rows.iter().map(|row| row.difference_ns.unsigned_abs()).max().unwrap_or(0)
}

fn signed_steps(scale: Scale, ns: i64) -> i64 {
    let steps = i64::try_from(scale.steps(ns.unsigned_abs())).unwrap_or(i64::MAX);
    if ns < 0 { -steps } else { steps }
}

/// `−1.69 ms ± 0.04   86 %`.
fn amounts(line: &mut Line, scale: Scale, (steps, give): (i64, Option<u64>), share: f64) {
    let sign = if steps < 0 { '−' } else { '+' };
    let amount = format!("{sign}{} {}", scale.digits(steps.unsigned_abs()), scale.unit());
    let give = give.map_or(String::new(), |give| format!(" ± {}", scale.digits(give)));
    line.right(18, Ink::Plain, &amount);
    line.push(Ink::Faint, &give);
    let share = format!("{:.0} %", share * 100.0).replace('-', "−");
    line.right(GROUPS - 2, Ink::Plain, &share).pad_to(GROUPS);
}

/// The notes of both ledgers: `read ×4 003, 1 byte each → read ×1`.
fn change(row: &RowDifference, unit: Option<TimeUnit>) -> String {
    if !row.moved_for.is_empty() {
        let spared = time_in(unit, row.moved_ns.unsigned_abs());
        return format!(
            "{}: {spared} of this is call overhead that inlining removes",
            row.moved_for
        );
    }
    match (row.a_note.as_str(), row.b_note.as_str()) {
        (a, b) if a == b => a.to_owned(),
        (a, "") if row.b_ns == 0 => format!("{a} → none"),
        ("", b) if row.a_ns == 0 => format!("none → {b}"),
        (a, "") => a.to_owned(),
        ("", b) => b.to_owned(),
        (a, b) => format!("{a} → {b}"),
    }
}
