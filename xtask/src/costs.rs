//! Writes `docs/costs.md` from the `//!` text of the cost classes, or checks that it is fresh.
//!
//! `deadweight explain` prints the same text. Does not check that a class is complete; see
//! `tests/registry.rs` of deadweight-core.

use crate::repository::Repository;

/// The folder of the classes.
pub(crate) const CLASSES: &str = "crates/deadweight-core/src/cost";
const PAGE: &str = "docs/costs.md";

const HEAD: &str = "# Hidden costs

What deadweight knows about each hidden cost. `deadweight explain NAME` prints the same text.
This page is written by `cargo xtask docs` from the files in
[`crates/deadweight-core/src/cost`](../crates/deadweight-core/src/cost): change it there.
";

/// `docs` writes the page; `docs --check` fails if it would change.
pub(crate) fn run(repository: &Repository, arguments: &[String]) -> Result<(), String> {
    let page = page(&classes(repository)?);
    if arguments.first().is_some_and(|a| a == "--check") {
        if repository.read(PAGE).unwrap_or_default() == page {
            return Ok(());
        }
        return Err(format!("{PAGE} is stale: run `cargo xtask docs` and commit it"));
    }
    std::fs::write(repository.path(PAGE), page).map_err(|e| format!("{PAGE}: {e}"))
}

/// The classes' files as (id, text), in the order of the list in `mod.rs`, which is precedence.
fn classes(repository: &Repository) -> Result<Vec<(String, String)>, String> {
    let list = repository.read(&format!("{CLASSES}/mod.rs"))?;
    let modules = list.lines().filter_map(|line| line.trim().strip_suffix("::CLASS,"));
    modules
        .map(|module| {
            let text = repository.read(&format!("{CLASSES}/{module}.rs"))?;
            Ok((module.replace('_', "-"), text))
        })
        .collect()
}

/// The page for these classes.
fn page(classes: &[(String, String)]) -> String {
    let mut page = HEAD.to_owned();
    for (id, text) in classes {
        page.push_str(&format!("\n## {id}\n\n"));
        for line in text.lines().map_while(|l| l.strip_prefix("//!")) {
            let line = line.strip_prefix(' ').unwrap_or(line);
            // The class's own heads are one level below its name.
            page.push_str(if line.starts_with("# ") { "##" } else { "" });
            page.push_str(line);
            page.push('\n');
        }
    }
    page
}

#[cfg(test)]
mod tests {
    use super::{HEAD, page};

    #[test]
    fn a_class_becomes_a_section_with_its_heads_below_its_name() {
        let text = "//! Many small reads.\n//!\n//! # What it is\n//! Reads.\n\nuse x;\n//! no\n";
        let got = page(&[("tiny-reads".to_owned(), text.to_owned())]);
        let section = "\n## tiny-reads\n\nMany small reads.\n\n### What it is\nReads.\n";
        assert_eq!(got, format!("{HEAD}{section}"));
    }
}
