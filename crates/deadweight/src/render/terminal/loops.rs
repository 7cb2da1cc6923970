//! Why hot loops take their time (`--why`). Judges nothing.

use crate::render::page::{Ink, Line, Sheet, columns, fitted, fitted_path, from_here};
use deadweight_report::report::{LoopReading, LoopSign, LoopWait, Loops, Report};
use deadweight_report::wording::things;

/// A sign in fewer samples is none.
const NONE: f64 = 0.01;
/// A place with less room says nothing.
const SHORTEST: usize = 8;
/// A turn that took longer, in ns, was not measured.
const LONGEST: f64 = 1e9;

pub(super) fn write(sheet: &mut Sheet, report: &Report, here: &str) {
    let Some(loops) = &report.loops else { return };
    sheet.gap();
    let mut head = Line::indented(2);
    head.push(Ink::Strong, "why loops take their time");
    if let Some(inside) = &report.inside {
        head.push(Ink::Plain, &format!(", under {}", inside.function));
    }
    sheet.line(&head);
    if !loops.cannot.is_empty() {
        sheet.paragraph(Line::indented(4), 4, Ink::Faint, &loops.cannot);
    }
    for one in &loops.all {
        reading(sheet, loops, one, here);
    }
    sheet.gap();
}

fn reading(sheet: &mut Sheet, loops: &Loops, one: &LoopReading, here: &str) {
    let mut line = Line::indented(4);
    let share = whole(one.samples as f64 / loops.samples.max(1) as f64);
    line.push(Ink::Strong, &fitted(&one.function, sheet.width() / 3));
    let part = format!("  {share} of {}", things(loops.samples, "sample"));
    let taken = line.columns() + 2 + columns(&part);
    place(&mut line, (&one.file, one.line), here, sheet.width().saturating_sub(taken));
    line.push(Ink::Plain, &part);
    sheet.line(&line);
    let ink = if one.class.is_empty() { Ink::Plain } else { Ink::Cost };
    let class = if one.class.is_empty() { String::new() } else { format!(" ({})", one.class) };
    sheet.paragraph(Line::indented(6), 6, ink, &format!("{}{class}", one.reason));
    if let Some(turn) = one.turn_ns.filter(|turn| *turn < LONGEST) {
        let needs = one.least_ns.filter(|least| *least > 0.0).map(|least| {
            format!(": {:.1} times what its instructions need ({least:.1} ns)", turn / least)
        });
        let text = format!(
            "a turn takes {turn:.1} ns, by the registers that count them{}",
            needs.unwrap_or_default()
        );
        sheet.paragraph(Line::indented(6), 6, Ink::Plain, &text);
    }
    for wait in &one.waits {
        waited(sheet, wait, here);
    }
    if !one.signs.is_empty() {
        signs(sheet, &one.signs);
    }
}

/// Which signs of a reason there are, and which are not there.
fn signs(sheet: &mut Sheet, signs: &[LoopSign]) {
    let is_there = |sign: &&LoopSign| sign.share >= NONE;
    let some = signs.iter().filter(is_there);
    let mut text: Vec<String> =
        some.map(|sign| format!("{} {} of the samples", sign.of, whole(sign.share))).collect();
    let none: Vec<&str> = signs.iter().filter(|s| !is_there(s)).map(|s| s.of.as_str()).collect();
    if !none.is_empty() {
        text.push(format!("none of {}", none.join(", ")));
    }
    let mut line = Line::indented(6);
    line.push(Ink::Faint, "signs: ");
    sheet.paragraph(line, 13, Ink::Faint, &text.join("; "));
}

/// An instruction, its place, and what its addresses show.
fn waited(sheet: &mut Sheet, wait: &LoopWait, here: &str) {
    /// Columns where the instruction begins, and where it ends.
    const INSTRUCTION: usize = 12;
    const END: usize = 44;
    let mut line = Line::default();
    line.right(INSTRUCTION - 2, Ink::Plain, &whole(wait.share)).pad_to(INSTRUCTION);
    let room = sheet.width().min(END).saturating_sub(INSTRUCTION);
    line.push(Ink::Plain, &fitted(&wait.instruction, room)).pad_to(END.min(sheet.width()));
    place(&mut line, (&wait.file, wait.line), here, sheet.width().saturating_sub(END + 2));
    sheet.line(&line);
    if !wait.memory.is_empty() {
        sheet.paragraph(Line::indented(INSTRUCTION), INSTRUCTION, Ink::Faint, &wait.memory);
    }
}

fn place(line: &mut Line, (file, number): (&str, u32), here: &str, room: usize) {
    if number > 0 && room >= SHORTEST {
        let place = format!("{file}:{number}");
        line.push(Ink::Plain, "  ").push(Ink::Place, &fitted_path(from_here(&place, here), room));
    }
}

fn whole(share: f64) -> String {
    format!("{:.0} %", share.clamp(0.0, 1.0) * 100.0)
}
