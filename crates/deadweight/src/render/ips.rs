//! The benchmarks of one side, for people: operations per second, fastest first.
//!
//! Does no statistics; see `deadweight_report::benchmarks::speed`.

use super::benchmarks::warnings;
use super::page::{Ink, Line, Page, Sheet, columns};
use deadweight_report::benchmarks::speed::{Entry, Ranking, Standing, rank};
use deadweight_report::benchmarks::table::Tables;
use deadweight_report::benchmarks::units::Scale;

/// Every side's ranking.
#[must_use]
pub fn render(tables: &Tables, page: Page) -> String {
    let mut sheet = Sheet::new(page);
    for ranking in rank(tables) {
        sheet.gap();
        sheet.line(Line::indented(2).push(Ink::Strong, ranking.column));
        places(&mut sheet, &ranking);
    }
    sheet.gap();
    warnings(&mut sheet, tables);
    sheet.into_text()
}

fn places(sheet: &mut Sheet, ranking: &Ranking<'_>) {
    let per = if ranking.per.is_empty() { "run" } else { ranking.per };
    let memory = ranking.entries.iter().any(|place| place.bytes.is_some());
    let rows: Vec<[String; 5]> = ranking
        .entries
        .iter()
        .map(|place| {
            [
                place.name.to_owned(),
                format!("{} {per}/s", spaced(place.per_second, "").trim_end()),
                format!("{}s/{per}", spaced(place.time.value, "sec")),
                format!("± {}", place.time.reach.replace('%', " %")),
                bytes(place, memory, per),
            ]
        })
        .collect();
    let width = |i: usize| rows.iter().map(|row| columns(&row[i])).max().unwrap_or(0);
    let widths = [width(0), width(1), width(2), width(3), width(4)];
    for (row, place) in rows.iter().zip(&ranking.entries) {
        let mut line = Line::indented(4);
        let mut end = 4 + widths[0];
        line.push(Ink::Plain, &row[0]).pad_to(end);
        for (text, width) in row.iter().zip(widths).skip(1).filter(|(_, width)| *width > 0) {
            end += 3 + width;
            line.right(end, Ink::Plain, text);
        }
        line.push(Ink::Plain, "   ");
        let (ink, text) = standing(place.standing);
        line.push(ink, &text);
        sheet.line(&line);
    }
}

/// `1.718 µ`: a blank between a number and its prefix.
fn spaced(value: f64, unit: &str) -> String {
    let printed = Scale::common([value], unit).print(value);
    let digits = printed.trim_end_matches(char::is_alphabetic).len();
    let (number, prefix) = printed.split_at(digits);
    format!("{number} {prefix}").trim_end().to_owned() + if prefix.is_empty() { " " } else { "" }
}

fn bytes(place: &Entry<'_>, shown: bool, per: &str) -> String {
    match place.bytes {
        Some(bytes) => format!("{}B/{per}", spaced(bytes, "B")),
        None if shown => "?".into(),
        None => String::new(),
    }
}

fn standing(standing: Standing) -> (Ink, String) {
    match standing {
        Standing::Fastest => (Ink::Strong, "fastest".into()),
        Standing::Slower(factor) => (Ink::Cost, format!("{factor:.2} × slower")),
        Standing::Alike => (Ink::Faint, "~ no significant difference to the fastest".into()),
        Standing::Unknown => (Ink::Doubt, "? too few measurements".into()),
    }
}
