//! `explain CLASS`: what a cost is, how it is recognised, what it is confused with, what to do.
//!
//! The text is that of the cost class. Does not look into reports.

use super::{page, print};
use crate::cli::Explain;
use crate::failure::Failure;
use crate::render::explanation;
use deadweight_core::cost;

pub(crate) fn explain(options: &Explain) -> Result<u8, Failure> {
    let page = page::page(&std::io::stdout(), &options.style);
    let text = match &options.class {
        None => explanation::list(cost::ids().map(|id| (id, headline(id))), page),
        Some(id) => {
            let markdown = cost::explain(id).ok_or_else(|| unknown(id))?;
            explanation::render(id, &markdown, page)
        }
    };
    print("the explanation", &text)?;
    Ok(0)
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

fn unknown(id: &str) -> Failure {
    let all: Vec<&str> = cost::ids().collect();
    Failure::Unknown(format!("there is no cost called `{id}`; the costs are: {}", all.join(", ")))
}
