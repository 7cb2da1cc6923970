//! Judgements of `ci` for people: on a terminal here, as a comment in `markdown`, as annotations in `annotations`.
//!
//! Does not judge: see `deadweight_report::regressions`.

pub mod annotations;
pub mod markdown;

use super::page::{Ink, Line, Page, Sheet};
use super::quantity::{self, percent};
use deadweight_report::account::row_name;
use deadweight_report::regressions::{Change, Judgement, Kind, State};
use deadweight_report::report::Site;

/// The judgements as text. `config`: the name of the file of rules.
#[must_use]
pub fn terminal(judgements: &[&Judgement], page: Page, config: &str) -> String {
    let mut sheet = Sheet::new(page);
    for judgement in judgements {
        let ink = ink(judgement.state);
        let mut line = Line::default();
        line.push(ink, word(judgement.state))
            .push(Ink::Strong, &format!("  {}: ", judgement.workload));
        sheet.paragraph(line, 4, Ink::Plain, &sentence(judgement));
        for change in shown(judgement) {
            let mut line = Line::indented(4);
            line.push(self::ink(change.state), &change.label());
            line.pad_to(26).push(Ink::Plain, &values(change)).push(Ink::Plain, " ");
            line.pad_to(50).push(Ink::Strong, &grown(change));
            line.pad_to(60);
            sheet.paragraph(line, 60, Ink::Faint, &aside(change));
            for site in change.sites.iter().take(3) {
                sheet.line(Line::indented(6).push(Ink::Place, &place(site)));
            }
        }
        for note in &judgement.notes {
            sheet.paragraph(Line::indented(4).push(Ink::Doubt, "! ").clone(), 6, Ink::Plain, note);
        }
        if judgement.state.is_red() {
            sheet.paragraph(Line::indented(4), 4, Ink::Faint, &next(config));
            for line in acceptance(judgement).lines() {
                sheet.line(Line::indented(6).push(Ink::Command, line));
            }
        }
    }
    sheet.into_text()
}

/// The changes that are worth a line.
pub(super) fn shown(judgement: &Judgement) -> Vec<&Change> {
    let matters = |change: &&Change| change.state != State::Unchanged || !change.why.is_empty();
    judgement.changes.iter().filter(matters).collect()
}

/// What to do about a regression.
pub(super) fn next(config: &str) -> String {
    format!("To accept it, say why and until when in {config}:")
}

/// The rules that would accept all that is worse.
pub(super) fn acceptance(judgement: &Judgement) -> String {
    let red = judgement.changes.iter().filter(|change| change.state.is_red());
    red.map(|change| rule(judgement, change)).collect::<Vec<_>>().join("\n")
}

fn rule(judgement: &Judgement, change: &Change) -> String {
    let key = match change.kind {
        Kind::Time => "time",
        Kind::Count => "count",
        Kind::Row => "row",
    };
    let most = (change.growth * 110.0).ceil().max(1.0);
    format!(
        "[[accepted]]\nworkload = \"{}\"\n{key} = \"{}\"\nup-to = \"{most:.0} %\"\nreason = \"...\"\nuntil = 20YY-MM-DD\n",
        escaped(&judgement.workload),
        escaped(&change.name)
    )
}

/// As a text in TOML.
fn escaped(text: &str) -> String {
    let escape = |c: char| match c {
        '\\' | '"' => format!("\\{c}"),
        c if c.is_control() => format!("\\u{:04X}", u32::from(c)),
        c => c.to_string(),
    };
    text.chars().map(escape).collect()
}

/// The state in a word.
pub(super) fn word(state: State) -> &'static str {
    match state {
        State::SameProgram => "same",
        State::Improved => "better",
        State::Unchanged => "ok",
        State::Inconclusive => "unsure",
        State::Moved => "moved",
        State::Accepted => "accepted",
        State::Regressed => "WORSE",
    }
}

fn ink(state: State) -> Ink {
    match state {
        State::Regressed => Ink::Cost,
        State::Inconclusive | State::Accepted | State::Moved => Ink::Doubt,
        _ => Ink::Command,
    }
}

/// The judgement in a sentence.
#[must_use]
pub fn sentence(judgement: &Judgement) -> String {
    let decides = |change: &&Change| change.state == judgement.state;
    let worst = judgement.changes.iter().find(decides).or(judgement.changes.first());
    let known = format!("the time's growth is known to ± {}", percent(judgement.precision));
    let layout = judgement.layout.map_or(String::new(), |part| {
        format!("; the layout in memory alone changes it by up to {}", percent(part))
    });
    match (judgement.state, worst) {
        (State::SameProgram, _) => {
            "the same program with the same input: no verdict can come of this".into()
        }
        (State::Regressed, Some(worst)) => {
            let row = row_name(&worst.row, &worst.row);
            let of = match (worst.kind, row.is_empty()) {
                (Kind::Row | Kind::Count, _) | (_, true) => String::new(),
                _ => format!(", mostly {row}"),
            };
            let twice =
                if judgement.confirmed { "; a second measurement shows it too" } else { "" };
            format!("{} grew{}{of}{twice}", worst.label(), by(worst))
        }
        (State::Improved, Some(worst)) => {
            format!("{} fell by {}", worst.label(), percent(-worst.growth))
        }
        (State::Moved, Some(worst)) => {
            format!("{} grew by {}, but {}", worst.label(), percent(worst.growth), worst.why)
        }
        (State::Accepted, Some(worst)) => {
            format!("{} grew by {}, {}", worst.label(), percent(worst.growth), worst.why)
        }
        (State::Inconclusive, _) if !judgement.missing.is_empty() => format!(
            "the head printed no result of {}: renamed, removed or broken?",
            judgement.missing.join(", ")
        ),
        (State::Inconclusive, _) if judgement.is_short_of_runs() => {
            "the time seems to have grown, but so few runs cannot show it: give -r 8 or more, or no -r".into()
        }
        (State::Inconclusive, _) => format!(
            "the times vary too much: {known} only{layout}; give a longer --budget, or a quieter machine"
        ),
        _ => format!("nothing grew beyond its limit; {known}{layout}"),
    }
}

/// `12.1 ms → 12.8 ms`.
pub(super) fn values(change: &Change) -> String {
    let shown = |value: f64| match change.kind {
        Kind::Count if value.fract() == 0.0 || value >= 100.0 => quantity::count(whole(value)),
        Kind::Count => format!("{value:.2}"),
        Kind::Time | Kind::Row => quantity::time(whole(value)),
    };
    format!("{} → {}", shown(change.base), shown(change.head))
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "times and counts, not negative"
)]
fn whole(value: f64) -> u64 {
    value.max(0.0).round() as u64
}

/// From this growth on, a factor is clearer than per cent.
const TIMES: f64 = 2.0;

/// ` by 5.3 %`, ` 12-fold`, ` from 0`.
fn by(change: &Change) -> String {
    match change.growth {
        _ if change.base <= 0.0 && change.kind == Kind::Count => " from 0".into(),
        growth if growth >= TIMES => format!(" {}-fold", quantity::count(whole(growth + 1.0))),
        growth => format!(" by {}", percent(growth)),
    }
}

/// `+5.3 %`, `× 12`, `from 0`, `new`.
pub(super) fn grown(change: &Change) -> String {
    if change.kind == Kind::Count && change.base <= 0.0 && change.head > 0.0 {
        return "from 0".into();
    }
    // A row's growth is judged as a part of the whole time, and shown as one of itself.
    let growth = match change.kind {
        Kind::Row if change.base <= 0.0 => return "new".into(),
        Kind::Row => change.head / change.base - 1.0,
        _ => change.growth,
    };
    if growth >= TIMES {
        return format!("× {}", quantity::count(whole(growth + 1.0)));
    }
    let sign = if growth < 0.0 { "−" } else { "+" };
    format!("{sign}{}", percent(growth.abs()))
}

/// Interval, limit, row and reason.
pub(super) fn aside(change: &Change) -> String {
    let [low, high] = change.interval;
    let mut parts = Vec::new();
    let of = if change.kind == Kind::Row { " of the time" } else { "" };
    if (high - low).abs() > 1e-9 && change.kind != Kind::Count {
        parts.push(format!("{:+.1} to {:+.1} %", low * 100.0, high * 100.0).replace('-', "−"));
    }
    parts.push(format!("limit {}{of}", percent(change.limit)));
    if change.kind != Kind::Row && !change.row.is_empty() {
        parts.push(format!("row {}", row_name(&change.row, &change.row)));
    }
    if !change.why.is_empty() {
        parts.push(change.why.clone());
    }
    parts.join(", ")
}

/// `parse at src/parse.rs:41, 10 more`.
pub(super) fn place(site: &Site) -> String {
    let file = match site.line {
        _ if site.file.is_empty() => String::new(),
        0 => format!(" at {}", site.file),
        line => format!(" at {}:{line}", site.file),
    };
    let more = if site.count > 0 {
        format!(", {} more", quantity::count(site.count))
    } else {
        String::new()
    };
    format!("{}{file}{more}", site.function)
}

#[cfg(test)]
mod tests;
