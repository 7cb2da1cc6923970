//! `explain CLASS`: what a cost is, how it is recognised, what it is confused with, what to do.
//!
//! The text is that of the cost class, or of the kind of candidates. Does not look into reports.

use super::{page, print};
use crate::cli::Explain;
use crate::failure::Failure;
use crate::render::explanation;
use crate::scan::explanation as kinds;
use deadweight_core::cost;
use deadweight_report::account::AccountId;
use deadweight_report::wording::nearest;

/// The rows of a ledger that are no cost.
const ROWS: [(&str, &str); 9] = [
    (
        "net work",
        "The program's own code, without the costs that have a row. Samples divide this time.",
    ),
    (
        "system calls",
        "System calls that no cost claims. The costs tiny-reads, tiny-writes and repeated-syscalls \
                      have rows of their own.",
    ),
    (
        "page faults",
        "The first use of pages of memory, where no cost claims it. The costs memory-churn and \
                     first-touch have rows of their own.",
    ),
    (
        "kernel, other",
        "Work of the kernel that is not divided further, such as interrupts and switches.",
    ),
    ("exit", "The end of processes, in which the kernel frees what they held."),
    ("tracing", "What the recording itself cost, from constants measured at the start."),
    ("not recorded", "Time whose records were lost, or left out."),
    ("not explained", "Time that was recorded, but whose cause is not known."),
    ("idle", "The time in which all tasks of a server wait for work. It is no cost."),
];

pub(crate) fn explain(options: &Explain) -> Result<u8, Failure> {
    let page = page::page(&std::io::stdout(), &options.style);
    let text = match &options.class {
        None => explanation::list(cost::ids().map(|id| (id, headline(id))), page),
        Some(said) => match (cost_called(said), row_called(said)) {
            (Some(id), _) => explanation::render(id, &cost::explain(id).unwrap_or_default(), page),
            (None, Some((row, text))) => {
                explanation::list([(row, text.to_owned())].into_iter(), page)
            }
            (None, None) => match kinds::kinds().find(|kind| *kind == plain(said)) {
                Some(kind) => explanation::render(kind, kinds::of(kind).unwrap_or_default(), page),
                None => return Err(unknown(said)),
            },
        },
    };
    print("the explanation", &text)?;
    Ok(0)
}

/// The cost of this name, title or row.
fn cost_called(said: &str) -> Option<&'static str> {
    let said = plain(said);
    cost::ids().find(|id| {
        said == *id || said == plain(&title(id)) || said == plain(AccountId::of_class(id).name())
    })
}

fn row_called(said: &str) -> Option<(&'static str, &'static str)> {
    let said = plain(said);
    ROWS.into_iter()
        .find(|(row, _)| plain(row) == said || (*row == "kernel, other" && said == "kernel"))
}

/// Small letters, and one `-` for whatever is between words.
fn plain(name: &str) -> String {
    let name = name.to_lowercase();
    let words = name.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join("-")
}

/// The title of a cost's description.
fn title(id: &str) -> String {
    cost::explain(id).unwrap_or_default().lines().next().unwrap_or_default().to_owned()
}

/// The first sentence under `What it is`, for the list of all costs.
fn headline(id: &str) -> String {
    let text = cost::explain(id).unwrap_or_default();
    let after = text.split_once("# What it is").map_or(text.as_str(), |(_, after)| after);
    let words: Vec<&str> = after.split_whitespace().collect();
    let end = words.iter().position(|word| word.ends_with(['.', ':', ';']));
    let first = words.get(..=end.unwrap_or(0)).unwrap_or_default().join(" ");
    format!("{}.", first.trim_end_matches(['.', ':', ';']))
}

fn unknown(said: &str) -> Failure {
    let rows = || ROWS.into_iter().map(|(row, _)| row);
    let known = || cost::ids().chain(rows()).chain(kinds::kinds());
    let hint = match nearest(&plain(said), known()) {
        Some(near) => format!("did you mean: deadweight explain '{near}'"),
        None => format!("the costs are: {}", cost::ids().collect::<Vec<_>>().join(", ")),
    };
    Failure::Unknown(format!("there is no cost or row called `{said}`; {hint}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cost_is_found_by_its_title_and_its_row() {
        for (said, id) in [
            ("tiny-reads", "tiny-reads"),
            ("Tiny reads", "tiny-reads"),
            ("WAIT_LOCK", "wait-lock"),
            ("Waiting for a lock", "wait-lock"),
            ("waiting: lock", "wait-lock"),
            ("garbage collection", "gc"),
            ("unoptimised code", "unoptimised-build"),
        ] {
            assert_eq!(cost_called(said), Some(id), "{said}");
        }
        assert_eq!(cost_called("tiny"), None);
    }

    #[test]
    fn every_row_of_a_ledger_has_an_explanation() {
        for account in AccountId::all() {
            let name = account.name();
            assert!(cost_called(name).is_some() || row_called(name).is_some(), "{name}");
        }
    }
}
