//! Writes the file of a new cost class: it compiles, but its registry test fails until it is filled in.
//!
//! Does not edit the list in `cost/mod.rs`: its order is precedence, which only the author knows.

use crate::costs::CLASSES;
use crate::repository::Repository;

/// Where each account has its row: its id, its word in the ledger, and how it is charged.
const ROWS: &str = "crates/deadweight-report/src/account.rs";

/// `new-cost NAME`.
pub(crate) fn run(repository: &Repository, arguments: &[String]) -> Result<(), String> {
    let [name] = arguments else {
        return Err("new-cost: give a name, as in `cargo xtask new-cost lock-convoys`".to_owned());
    };
    let legal = |c: char| c.is_ascii_lowercase() || c == '-';
    if name.is_empty() || !name.chars().all(legal) || name.starts_with('-') || name.ends_with('-') {
        return Err(format!(
            "new-cost: `{name}` is no class name: use lower-case words joined by `-`"
        ));
    }
    let module = name.replace('-', "_");
    let file = format!("{CLASSES}/{module}.rs");
    if repository.path(&file).exists() {
        return Err(format!("new-cost: {file} already exists"));
    }
    std::fs::write(repository.path(&file), text(name)).map_err(|e| format!("{file}: {e}"))?;
    eprintln!(
        "wrote {file}\nnow add `mod {module};` and its place in the list in {CLASSES}/mod.rs, \
         and its row in {ROWS}, with one more in `OF_CLASSES`"
    );
    Ok(())
}

fn text(name: &str) -> String {
    include_str!("new_cost.template")
        .replace("NAME", name)
        .replace("MODULE", &name.replace('-', "_"))
}
