//! Writes the file of a new cost class: it compiles, and fails its registry test until filled in.
//!
//! The author fills in what the class knows. The list in `cost/mod.rs` is edited by hand, because
//! its order is precedence and only the author knows it.

use crate::costs::CLASSES;
use crate::repository::Repository;

/// Where each account has its row: its group, word and title.
const ROWS: &str = "crates/deadweight-report/src/account.rs";

/// `new-cost NAME`.
pub(crate) fn run(repository: &Repository, arguments: &[String]) -> Result<(), String> {
    let [name] = arguments else {
        return Err("new-cost: how is it called? `cargo xtask new-cost lock-convoys`".to_owned());
    };
    let legal = |c: char| c.is_ascii_lowercase() || c == '-';
    if name.is_empty() || !name.chars().all(legal) || name.starts_with('-') || name.ends_with('-') {
        return Err(format!(
            "new-cost: `{name}` is no class name: lower case, words joined by `-`"
        ));
    }
    let module = name.replace('-', "_");
    let file = format!("{CLASSES}/{module}.rs");
    if repository.path(&file).exists() {
        return Err(format!("new-cost: there is {file} already"));
    }
    std::fs::write(repository.path(&file), text(name)).map_err(|e| format!("{file}: {e}"))?;
    eprintln!(
        "wrote {file}\nnow add `mod {module};` and its place in the list in {CLASSES}/mod.rs, \
         and its row in {ROWS}"
    );
    Ok(())
}

fn text(name: &str) -> String {
    include_str!("new_cost.template")
        .replace("NAME", name)
        .replace("MODULE", &name.replace('-', "_"))
}
