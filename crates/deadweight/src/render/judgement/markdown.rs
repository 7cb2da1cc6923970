//! Judgements as a comment for a pull request: the verdict and the next step, three rows, the rest folded.
//!
//! Names come from foreign files: everything that Markdown or HTML would read as markup is escaped.

use super::{acceptance, aside, grown, next, place, sentence, shown, values, word};
use crate::render::page::printable;
use deadweight_report::regressions::{Change, Judgement, State};

/// The longest comment: GitHub refuses 65 536 characters.
const MOST: usize = 60_000;
/// Rows above the fold.
const ROWS: usize = 3;
/// By this a later comment finds the earlier one, to replace it.
pub const MARK: &str = "<!-- deadweight ci -->";

/// The comment. `config`: the name of the file of rules.
#[must_use]
pub fn comment(judgements: &[&Judgement], config: &str) -> String {
    let mut text = format!("{MARK}\n## {}\n\n", heading(judgements));
    let mut all: Vec<(&Judgement, &Change)> = judgements
        .iter()
        .flat_map(|judgement| shown(judgement).into_iter().map(move |change| (*judgement, change)))
        .collect();
    all.sort_by_key(|(_, change)| std::cmp::Reverse(change.state));
    if !all.is_empty() {
        text += "| | workload | what | base → head | growth |\n|---|---|---|---|---|\n";
        for (judgement, change) in all.iter().take(ROWS) {
            text += &row(judgement, change);
        }
        text += "\n";
    }
    let worst = judgements.iter().find(|judgement| judgement.state.is_red());
    if let Some(worst) = worst {
        let rule = acceptance(worst).replace("```", "'''");
        text += &format!("{}\n\n```toml\n{rule}```\n\n", cell(&next(config)));
    }
    let mut folded = String::new();
    for judgement in judgements {
        folded += &details(judgement);
    }
    text += "<details><summary>All workloads, limits, and what was compared</summary>\n\n";
    let end = "\n</details>\n";
    let room = MOST.saturating_sub(text.chars().count() + end.len() + 100);
    text += &cut(&folded, room);
    text + end
}

/// The verdict and what to do next.
fn heading(judgements: &[&Judgement]) -> String {
    let state = judgements.iter().map(|one| one.state).max().unwrap_or_default();
    let of = |wanted| judgements.iter().filter(|one| one.state == wanted).collect::<Vec<_>>();
    match state {
        State::Regressed => match of(State::Regressed).as_slice() {
            [one] => format!(
                "🔴 {}: {}. Mend it, or accept it with a reason.",
                cell(&one.workload),
                cell(&sentence(one))
            ),
            many => format!(
                "🔴 {} workloads got worse. Mend them, or accept them with a reason.",
                many.len()
            ),
        },
        State::Inconclusive => match of(State::Inconclusive).as_slice() {
            [one] => format!("🟡 {}: no verdict: {}.", cell(&one.workload), cell(&sentence(one))),
            many => {
                format!("🟡 No verdict on {} workloads: below is why, and what to do.", many.len())
            }
        },
        State::Accepted => "🟢 Nothing got worse beyond what is accepted. Nothing to do.".into(),
        State::Moved => {
            "🟢 Work moved from one row to another; the time did not grow. Nothing to do.".into()
        }
        State::SameProgram => {
            "⚪ The same program: there is nothing to judge. Nothing to do.".into()
        }
        State::Improved => "🟢 Better, and nothing got worse. Nothing to do.".into(),
        State::Unchanged => "🟢 Nothing got worse. Nothing to do.".into(),
    }
}

fn row(judgement: &Judgement, change: &Change) -> String {
    format!(
        "| {} | {} | {} | {} | {} |\n",
        sign(change.state),
        cell(&judgement.workload),
        cell(&change.label()),
        cell(&values(change)),
        cell(&grown(change))
    )
}

fn details(judgement: &Judgement) -> String {
    let mut text = format!(
        "### {} {}: {}\n\n{}\n\n",
        sign(judgement.state),
        cell(&judgement.workload),
        word(judgement.state),
        cell(&sentence(judgement))
    );
    for change in &judgement.changes {
        text += &format!(
            "- {} {}: {} ({}; {})\n",
            sign(change.state),
            cell(&change.label()),
            cell(&values(change)),
            cell(&grown(change)),
            cell(&aside(change))
        );
        for site in change.sites.iter().take(3) {
            text += &format!("  - {}\n", cell(&place(site)));
        }
    }
    for note in &judgement.notes {
        text += &format!("- ⚠ {}\n", cell(note));
    }
    let sides = [&judgement.comparison.a, &judgement.comparison.b];
    let runs: Vec<String> =
        sides.iter().map(|side| format!("{} + {} traced", side.runs, side.traced)).collect();
    if judgement.state != State::SameProgram {
        text += &format!("\nRuns: {} of the base, {} of the head.\n", runs[0], runs[1]);
    }
    text + "\n"
}

fn sign(state: State) -> &'static str {
    match state {
        State::Regressed => "🔴",
        State::Inconclusive => "🟡",
        State::SameProgram => "⚪",
        _ => "🟢",
    }
}

/// Text that shows as it is, in one line of a table.
fn cell(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in printable(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            // A mention would notify a person.
            '@' => out.push_str("&#64;"),
            '\\' | '|' | '*' | '_' | '`' | '[' | ']' | '#' | '~' => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
    }
    out
}

/// At most so many characters, cut at the end of a line.
fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let mut short = String::new();
    let mut used = 0;
    for line in text.lines() {
        used += line.chars().count() + 1;
        if used > most {
            break;
        }
        short.push_str(line);
        short.push('\n');
    }
    short + "\n... the rest is left out: `--export-json` has it all\n"
}
