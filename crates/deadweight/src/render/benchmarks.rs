//! Results of benchmark programs side by side, for people: benchstat's table and deadweight's verdicts.
//!
//! Does no statistics: every number here is a value in [`Tables`].

use super::page::{Ink, Line, Page, Sheet, columns};
use deadweight_report::benchmarks::table::{Cell, Change, Table, Tables, Verdict};
use deadweight_report::benchmarks::units::{Better, Scale, is_time};

/// Blanks before a column's bar, and the bar.
const BAR: &str = " │ ";

/// All tables, a summary and the warnings.
#[must_use]
pub fn render(tables: &Tables, page: Page) -> String {
    let mut sheet = Sheet::new(page);
    let mut before: &[(String, String)] = &[];
    for table in &tables.tables {
        sheet.gap();
        for (key, value) in table.config.iter().filter(|pair| !before.contains(pair)) {
            sheet.line(Line::default().push(Ink::Faint, &format!("{key}: {value}")));
        }
        before = &table.config;
        draw(&mut sheet, table);
    }
    sheet.gap();
    summary(&mut sheet, tables);
    warnings(&mut sheet, tables);
    sheet.into_text()
}

/// Warnings about left-out or odd results.
pub(super) fn warnings(sheet: &mut Sheet, tables: &Tables) {
    for warning in &tables.warnings {
        let mut line = Line::indented(2);
        line.push(Ink::Doubt, "! ");
        sheet.paragraph(line, 4, Ink::Plain, warning);
    }
}

/// The texts of one row in one column.
#[derive(Default)]
struct Texts {
    value: String,
    reach: String,
    notes: String,
    change: String,
    odds: String,
    doubts: String,
}

/// The widest of each.
#[derive(Copy, Clone, Default)]
struct Widths {
    value: usize,
    reach: usize,
    notes: usize,
    change: usize,
    odds: usize,
    doubts: usize,
}

impl Widths {
    fn of<'t>(all: impl Iterator<Item = &'t Texts>) -> Self {
        all.fold(Self::default(), |w, t| Self {
            value: w.value.max(columns(&t.value)),
            reach: w.reach.max(columns(&t.reach)),
            notes: w.notes.max(columns(&t.notes)),
            change: w.change.max(columns(&t.change)),
            odds: w.odds.max(columns(&t.odds)),
            doubts: w.doubts.max(columns(&t.doubts)),
        })
    }

    /// Columns of the measured values.
    fn measured(self) -> usize {
        self.value + self.reach + self.notes
    }

    fn all(self) -> usize {
        let apart = if self.change > 0 { 2 } else { 0 };
        self.measured() + apart + self.change + self.odds + self.doubts
    }
}

fn draw(sheet: &mut Sheet, table: &Table) {
    let mut footnotes = Vec::new();
    let mut lines: Vec<(&str, Vec<Texts>)> = Vec::new();
    for row in &table.rows {
        let scale = Scale::common(row.cells.iter().flatten().map(|c| c.value), &table.unit);
        let texts =
            row.cells.iter().map(|cell| texts(cell.as_ref(), scale, &mut footnotes)).collect();
        lines.push((&row.name, texts));
    }
    if !table.means.is_empty() {
        lines.push(("geomean", means(table, &mut footnotes)));
    }
    let label = lines.iter().map(|(name, _)| columns(name)).max().unwrap_or(0);
    let groups: Vec<(Widths, usize)> = (0..table.columns.len())
        .map(|i| {
            let widths = Widths::of(lines.iter().filter_map(|(_, texts)| texts.get(i)));
            let below = columns(&table.unit).max(widths.measured());
            let below = below + if i > 0 { columns("  vs base") } else { 0 };
            (widths, widths.all().max(below).max(columns(&table.columns[i])))
        })
        .collect();
    header(sheet, table, label, &groups);
    for (at, (name, texts)) in lines.iter().enumerate() {
        let mut line = Line::default();
        let mut start = label;
        line.push(Ink::Plain, name);
        for (texts, (widths, width)) in texts.iter().zip(&groups) {
            start += columns(BAR);
            cell(&mut line, start, texts, *widths);
            start += width;
        }
        if let Some(row) = table.rows.get(at) {
            line.pad_to(start + columns(BAR));
            for change in row.cells.iter().flatten().filter_map(|cell| cell.change.as_ref()) {
                let (ink, word) = word(change.verdict, table);
                line.push(ink, word).push(Ink::Plain, "  ");
            }
        }
        sheet.line(&line);
    }
    for (text, number) in footnotes.iter().zip(1..) {
        sheet.line(Line::default().push(Ink::Faint, &format!("{} {text}", superscript(number))));
    }
}

/// The names of the columns over their unit.
fn header(sheet: &mut Sheet, table: &Table, label: usize, groups: &[(Widths, usize)]) {
    let (mut names, mut units) = (Line::indented(label), Line::indented(label));
    let mut start = label;
    for (i, (name, (widths, width))) in table.columns.iter().zip(groups).enumerate() {
        names.push(Ink::Faint, BAR).push(Ink::Strong, name);
        units.push(Ink::Faint, BAR).push(Ink::Faint, &table.unit);
        start += columns(BAR);
        if i > 0 {
            let measured = widths.measured().max(columns(&table.unit));
            units.pad_to(start + measured + 2).push(Ink::Faint, "vs base");
        }
        start += width;
        names.pad_to(start);
        units.pad_to(start);
    }
    names.push(Ink::Faint, " │");
    units.push(Ink::Faint, if groups.len() > 1 { " │ shown" } else { " │" });
    sheet.line(&names);
    sheet.line(&units);
}

fn cell(line: &mut Line, start: usize, texts: &Texts, widths: Widths) {
    let mut at = start + widths.value;
    if !texts.value.is_empty() {
        line.right(at, Ink::Plain, &texts.value);
    }
    at += widths.reach;
    if !texts.reach.is_empty() {
        // The sign stays with the value; the number after it stands at the right.
        let number = texts.reach.trim_start_matches(" ± ");
        line.pad_to(start + widths.value).push(Ink::Faint, " ± ").right(at, Ink::Faint, number);
    }
    if !texts.notes.is_empty() {
        line.pad_to(at).push(Ink::Doubt, &texts.notes);
    }
    at += widths.notes + 2 + widths.change;
    if !texts.change.is_empty() {
        line.right(at, Ink::Plain, &texts.change);
    }
    if !texts.odds.is_empty() {
        line.pad_to(at).push(Ink::Faint, &texts.odds);
    }
    if !texts.doubts.is_empty() {
        line.pad_to(at + widths.odds).push(Ink::Doubt, &texts.doubts);
    }
}

fn texts(cell: Option<&Cell>, scale: Scale, footnotes: &mut Vec<String>) -> Texts {
    let Some(cell) = cell else { return Texts::default() };
    let measured = Texts {
        value: scale.print(cell.value),
        reach: format!(" ± {}", cell.reach),
        notes: marks(&cell.notes, footnotes),
        ..Texts::default()
    };
    let Some(change) = &cell.change else { return measured };
    Texts {
        change: change.printed.clone(),
        odds: odds(change),
        doubts: marks(&change.notes, footnotes),
        ..measured
    }
}

/// ` (p=0.008 n=10)`; of exact values without the p.
fn odds(change: &Change) -> String {
    let p = if change.p > 0.0 { format!("p={:.3} ", change.p) } else { String::new() };
    match change.counts {
        (a, b) if a == b => format!(" ({p}n={a})"),
        (a, b) => format!(" ({p}n={a}+{b})"),
    }
}

fn means(table: &Table, footnotes: &mut Vec<String>) -> Vec<Texts> {
    let line = table.means.iter().enumerate().map(|(column, mean)| {
        let value = mean.value.map(|v| Scale::common([v], &table.unit).print(v));
        let ratio = mean.ratio.map(|ratio| format!("{:+.2}%", (ratio - 1.0) * 100.0));
        let change = if column > 0 { ratio.unwrap_or_else(|| "?".into()) } else { String::new() };
        let marks = marks(&mean.notes, footnotes);
        let (notes, doubts) =
            if column > 0 { (String::new(), marks) } else { (marks, String::new()) };
        Texts { value: value.unwrap_or_default(), change, notes, doubts, ..Texts::default() }
    });
    line.collect()
}

/// Superscript numbers of footnotes; new footnotes are added to the list.
fn marks(notes: &[String], footnotes: &mut Vec<String>) -> String {
    let mut marks = String::new();
    for note in notes {
        let at = footnotes.iter().position(|known| known == note).unwrap_or_else(|| {
            footnotes.push(note.clone());
            footnotes.len() - 1
        });
        marks.push(' ');
        marks.push_str(&superscript(at + 1));
    }
    marks
}

fn superscript(number: usize) -> String {
    const DIGITS: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    let digit = |c: char| DIGITS[c.to_digit(10).unwrap_or(0) as usize];
    number.to_string().chars().map(digit).collect()
}

/// The verdict in a word.
fn word(verdict: Verdict, table: &Table) -> (Ink, &'static str) {
    let speed = is_time(&table.unit) || table.unit.ends_with("/s");
    let lower_is_better = table.better == Some(Better::Lower);
    match verdict {
        Verdict::Better if speed => (Ink::Strong, "faster"),
        Verdict::Worse if speed => (Ink::Cost, "slower"),
        Verdict::Better => (Ink::Strong, if lower_is_better { "less" } else { "more" }),
        Verdict::Worse => (Ink::Cost, if lower_is_better { "more" } else { "less" }),
        Verdict::Lower => (Ink::Strong, "lower"),
        Verdict::Higher => (Ink::Strong, "higher"),
        Verdict::NoDifference => (Ink::Faint, "~"),
        Verdict::CannotTell => (Ink::Doubt, "?"),
    }
}

/// How many differences are significant, and how many measurements would show more.
fn summary(sheet: &mut Sheet, tables: &Tables) {
    let all = tables.changes().count();
    if all == 0 {
        return;
    }
    let count = |verdict| tables.changes().filter(|(_, c)| c.verdict == verdict).count();
    let kinds = [
        (Verdict::Better, "better"),
        (Verdict::Worse, "worse"),
        (Verdict::Lower, "lower"),
        (Verdict::Higher, "higher"),
    ];
    let shown: Vec<String> = kinds
        .into_iter()
        .map(|(verdict, name)| (count(verdict), name))
        .filter(|(count, _)| *count > 0)
        .map(|(count, name)| format!("{count} {name}"))
        .collect();
    let unsure = count(Verdict::CannotTell);
    let mut text = match (shown.is_empty(), unsure) {
        (true, n) if n == all => String::new(),
        (true, _) if all == 1 => "~ no significant difference".into(),
        (true, _) => format!("~ no significant difference in {all} comparisons"),
        (false, _) => format!("{} of {all} shown", shown.join(", ")),
    };
    if !text.is_empty() {
        text.push_str(": p < 1 % over all rows of a column, and a change of at least 1 %.");
        sheet.paragraph(Line::indented(2), 2, Ink::Strong, &text);
    }
    if let Some(needed) = tables.measurements_needed() {
        let rows =
            if unsure == 1 { "1 comparison has" } else { &format!("{unsure} comparisons have") };
        let text = format!(
            "cannot tell: {rows} too few measurements to distinguish from chance. Measure each benchmark \
             {needed} times or more (go test -count {needed}, --benchmark_repetitions={needed}, \
             hyperfine -r {needed})."
        );
        sheet.paragraph(Line::indented(2), 2, Ink::Doubt, &text);
    }
}
