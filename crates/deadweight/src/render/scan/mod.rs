//! Candidates of a scan as text for a terminal.
//!
//! Candidates are no accusations: the first line says so.

pub mod json;

use super::page::{Ink, Line, Page, Sheet, columns, fitted};
use super::quantity::count;
use crate::scan::difference::{Change, Difference};
use crate::scan::kind::Kind;
use crate::scan::{Candidates, Place};
use deadweight_report::wording::{bytes, things};

/// How many places of a kind are shown.
const FEW: usize = 5;
/// Columns of the loop depth.
const LOOPS: usize = 7;
/// The widest column of what happens, and of the source line.
const WIDEST: [usize; 2] = [34, 28];
/// What every table of candidates begins with.
const CLAIM: &str = "what the machine code shows; whether it costs anything, a run shows";

/// The best few candidates of each kind, or `all`.
#[must_use]
pub fn candidates(found: &Candidates, all: bool, page: Page) -> String {
    let mut sheet = Sheet::new(page);
    head(&mut sheet, &format!("{}: {CLAIM}", found.path));
    faint(&mut sheet, 2, &facts(found));
    for (kind, places) in &found.kinds {
        sheet.gap();
        title(&mut sheet, kind, places.len());
        let shown = if all { places.len() } else { places.len().min(FEW) };
        table(&mut sheet, kind, &places[..shown]);
        more(&mut sheet, places.len() - shown);
    }
    sheet.gap();
    if found.kinds.is_empty() {
        faint(&mut sheet, 2, "no candidates: what may cost time here, only a run shows");
    }
    notes(&mut sheet, found);
    sheet.into_text()
}

/// What came and what went.
#[must_use]
pub fn difference(
    first: &Candidates,
    second: &Candidates,
    difference: &Difference,
    all: bool,
    page: Page,
) -> String {
    let mut sheet = Sheet::new(page);
    head(&mut sheet, &format!("{} → {}: {CLAIM}", first.path, second.path));
    let [before, after] = [first, second].map(|found| {
        let sites = found.places().map(|(_, place)| u64::from(place.sites)).sum();
        things(sites, "candidate")
    });
    let same = things(difference.same as u64, "function");
    let text = format!("{before} → {after}; {same} with as many of a kind and depth in both");
    faint(&mut sheet, 2, &text);
    for (name, changes) in [("came", &difference.came), ("went", &difference.went)] {
        sheet.gap();
        let mut line = Line::indented(2);
        line.push(Ink::Strong, name).push(Ink::Plain, &format!(": {}", changes.len()));
        sheet.line(&line);
        let shown = if all { changes.len() } else { changes.len().min(4 * FEW) };
        changed(&mut sheet, &changes[..shown]);
        more(&mut sheet, changes.len() - shown);
    }
    sheet.gap();
    if difference.unnamed != (0, 0) {
        let (before, after) = difference.unnamed;
        let text = format!(
            "note: functions without a name are not compared: {before} candidates before, {after} after"
        );
        faint(&mut sheet, 2, &text);
    }
    notes(&mut sheet, first);
    notes(&mut sheet, second);
    sheet.into_text()
}

/// A candidate in one sentence.
#[must_use]
pub fn sentence(kind: &Kind, place: &Place) -> String {
    let text = place.text(kind);
    let loops = match place.depth {
        0 => String::new(),
        depth => format!(", in {}", things(u64::from(depth), "loop")),
    };
    let why = match place.why.as_str() {
        "" => String::new(),
        why => format!(" Go says: {why}."),
    };
    format!(
        "{}: {text}{loops}.{why} A candidate: whether it costs anything, a run shows.",
        kind.title
    )
}

fn head(sheet: &mut Sheet, text: &str) {
    sheet.paragraph(Line::indented(2), 2, Ink::Strong, text);
}

fn faint(sheet: &mut Sheet, indent: usize, text: &str) {
    sheet.paragraph(Line::indented(indent), indent + 2, Ink::Faint, text);
}

/// `Rust, rustc 1.95.0 · 1 234 functions, 2.1 MiB of code`.
fn facts(found: &Candidates) -> String {
    let info = &found.info;
    let words = [info.language.as_str(), info.producer.as_str()];
    let build: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
    let (functions, size) = found.functions;
    let read = format!("{} functions, {} of code", count(functions as u64), bytes(size));
    let lines = if info.has_lines { "" } else { " · no source lines" };
    if build.is_empty() {
        format!("{read}{lines}")
    } else {
        format!("{} · {read}{lines}", build.join(", "))
    }
}

fn title(sheet: &mut Sheet, kind: &Kind, places: usize) {
    let mut line = Line::indented(2);
    line.push(Ink::Strong, kind.name);
    let text = format!("  {} ({})", kind.title, things(places as u64, "place"));
    sheet.line(line.push(Ink::Plain, &text));
}

/// A row for each place: loops, what happens, source line, function.
fn table(sheet: &mut Sheet, kind: &Kind, places: &[Place]) {
    let text = |place: &Place| place.text(kind);
    let widest = |of: &dyn Fn(&Place) -> String, most: usize| {
        places.iter().map(|place| columns(&of(place))).max().unwrap_or(0).min(most)
    };
    let what = widest(&text, WIDEST[0]);
    let source = widest(&Place::source, WIDEST[1]);
    let mut line = Line::indented(4);
    sheet.line(line.push(Ink::Faint, "loops"));
    for place in places {
        let mut line = Line::indented(4);
        line.right(2 + LOOPS, Ink::Plain, &place.depth.to_string()).pad_to(4 + LOOPS);
        line.push(Ink::Plain, &fitted(&text(place), what)).pad_to(4 + LOOPS + what + 2);
        if source > 0 {
            line.push(Ink::Place, &fitted(&place.source(), source)).pad_to(line_end(what, source));
        }
        let left = sheet.width().saturating_sub(line.columns()).max(12);
        line.push(Ink::Plain, &fitted(&place.function, left));
        sheet.line(&line);
        if !place.why.is_empty() {
            faint(sheet, 4 + LOOPS, &place.why);
        }
    }
}

fn line_end(what: usize, source: usize) -> usize {
    4 + LOOPS + what + 2 + source + 2
}

/// A row for each change: loops, kind, how many before and after, function.
fn changed(sheet: &mut Sheet, changes: &[Change]) {
    let kind = changes.iter().map(|change| columns(change.kind.name)).max().unwrap_or(0);
    if !changes.is_empty() {
        let mut line = Line::indented(4);
        sheet.line(line.push(Ink::Faint, "loops"));
    }
    for change in changes {
        let mut line = Line::indented(4);
        line.right(2 + LOOPS, Ink::Plain, &change.depth.to_string()).pad_to(4 + LOOPS);
        line.push(Ink::Plain, change.kind.name).pad_to(4 + LOOPS + kind + 2);
        let (before, after) = change.sites;
        line.push(Ink::Plain, &format!("{before} → {after}")).pad_to(4 + LOOPS + kind + 14);
        let left = sheet.width().saturating_sub(line.columns()).max(12);
        sheet.line(line.push(Ink::Place, &fitted(&change.function, left)));
    }
}

fn more(sheet: &mut Sheet, rest: usize) {
    if rest > 0 {
        faint(sheet, 4, &format!("… and {} more", count(rest as u64)));
    }
}

/// What is missing.
fn notes(sheet: &mut Sheet, found: &Candidates) {
    if found.left_out > 0 {
        let places = things(found.left_out as u64, "place");
        let text = format!("note: {places} in libraries and runtimes left out (--libraries)");
        faint(sheet, 2, &text);
    }
    for note in &found.notes {
        faint(sheet, 2, &format!("note: {} {note}", found.path));
    }
}

#[cfg(test)]
mod tests;
