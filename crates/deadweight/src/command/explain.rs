//! `explain CLASS`: what a cost is, how it is known, what it is mistaken for, what to do.

use super::{page, print};
use crate::cli::Explain;
use crate::failure::Failure;
use crate::render::article;
use deadweight_core::cost;

pub(crate) fn explain(options: &Explain) -> Result<u8, Failure> {
    let page = page::page(&std::io::stdout(), &options.style);
    let text = match &options.class {
        None => article::list(cost::ids().map(|id| (id, headline(id))), page),
        Some(id) => {
            let markdown = cost::explain(id).ok_or_else(|| unknown(id))?;
            article::render(id, &markdown, page)
        }
    };
    print("the explanation", &text)?;
    Ok(0)
}

/// The first sentence under `What it is`: what a list of names needs beside them.
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
    Failure::Unknown(format!("there is no cost called `{id}`; there are: {}", all.join(", ")))
}
