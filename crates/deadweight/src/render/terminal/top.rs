//! The functions with the most CPU time on the path (`--top`). Counts no samples.

use super::Shown;
use crate::render::page::{Ink, Line, Sheet, fitted, fitted_path, from_here};
use crate::render::quantity::Scale;
use deadweight_report::report::{Report, TopFunction};

pub(super) fn write(sheet: &mut Sheet, report: &Report, shown: &Shown) {
    let functions: Vec<&TopFunction> = report.top.iter().take(shown.top).collect();
    if functions.is_empty() {
        return;
    }
    let scale = Scale::for_largest(report.wall_ns);
    let mut head = Line::indented(2);
    head.push(Ink::Faint, "on a CPU, by samples").pad_to(24).push(Ink::Faint, "function");
    sheet.line(&head);
    for function in functions {
        let mut line = Line::default();
        let time = format!("{} {}", scale.digits(scale.steps(function.ns)), scale.unit());
        line.right(11, Ink::Plain, &time);
        line.right(20, Ink::Plain, &format!("{:.1} %", function.share * 100.0)).pad_to(24);
        let room = sheet.width().saturating_sub(24);
        line.push(Ink::Strong, &fitted(&function.function, (room * 3 / 5).max(16)));
        let left = sheet.width().saturating_sub(line.columns() + 2);
        let place = place(function);
        let place = from_here(&place, &shown.here);
        if left >= 8 && !place.is_empty() {
            line.push(Ink::Plain, "  ").push(Ink::Place, &fitted_path(place, left));
        }
        sheet.line(&line);
    }
    sheet.gap();
}

/// The place of the function, unless its name already contains it (`libz.so+0xaa60`).
fn place(function: &TopFunction) -> String {
    let image = function.image.rsplit('/').next().unwrap_or_default();
    match (function.file.as_str(), function.line) {
        ("", _) if function.function.starts_with(image) => String::new(),
        ("", _) => function.image.clone(),
        (file, 0) => file.to_owned(),
        (file, line) => format!("{file}:{line}"),
    }
}
