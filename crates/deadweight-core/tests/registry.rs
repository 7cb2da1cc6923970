//! Every cost class is complete: it explains itself, has a test in which it claims and one in which it
//! must not, and names a test program.
//!
//! A failure names the file to write. What a class finds is tested in the class.
#![expect(clippy::disallowed_methods, reason = "the list is compared with the files beside it")]

use deadweight_core::cost;
use std::path::{Path, PathBuf};

const HEADS: [&str; 5] = [
    "# What it is",
    "# How deadweight knows",
    "# What it is mistaken for",
    "# What to do",
    "# Seen in",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn module(id: &str) -> String {
    format!("crates/deadweight-core/src/cost/{}.rs", id.replace('-', "_"))
}

/// The names of a file's tests.
fn tests(source: &str) -> impl Iterator<Item = &str> {
    let after = source.split("#[test]\n").skip(1);
    after.filter_map(|text| text.trim_start().strip_prefix("fn ")?.split('(').next())
}

/// What is missing of the class `id`, each with the file to write.
fn missing(id: &str) -> Vec<String> {
    let file = module(id);
    let Ok(source) = std::fs::read_to_string(root().join(&file)) else {
        return vec![format!("{file}: write it (`cargo xtask new-cost {id}`)")];
    };
    let mut missing = Vec::new();
    let text = cost::explain(id).unwrap_or_default();
    for (index, head) in HEADS.iter().enumerate() {
        let after = text.split_once(head).map_or("", |(_, after)| after);
        let end = HEADS.get(index + 1).and_then(|next| after.find(next)).unwrap_or(after.len());
        if after[..end].trim().len() < 20 {
            missing.push(format!("{file}: say something under `{head}`"));
        }
    }
    for (kind, word) in [("hit", "found"), ("near miss", "refused")] {
        if !tests(&source).any(|test| test.split('_').any(|w| w == word)) {
            missing.push(format!("{file}: test a {kind}, with `{word}` in the test's name"));
        }
    }
    let seen_in = text.split_once(HEADS[4]).map_or("", |(_, after)| after);
    let programs: Vec<&str> = seen_in.split('`').skip(1).step_by(2).collect();
    let there = |program: &&&str| root().join("tests/programs").join(program).is_file();
    if !programs.iter().any(|program| there(&program)) {
        missing.push(format!("{file}: name a program of tests/programs/ under `# Seen in`"));
    }
    missing
}

#[test]
fn every_class_is_complete() {
    let missing: Vec<String> = cost::ids().flat_map(missing).collect();
    assert!(missing.is_empty(), "\n{}\n", missing.join("\n"));
}

#[test]
fn every_class_of_the_folder_is_in_the_list() {
    let listed: Vec<String> = cost::ids().map(module).collect();
    let folder = root().join("crates/deadweight-core/src/cost");
    for entry in std::fs::read_dir(folder).expect("the folder is part of the repository") {
        let path = entry.expect("it can be read").path();
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let file = format!("crates/deadweight-core/src/cost/{name}");
        let class = text.contains("const CLASS: Class");
        assert!(!class || listed.contains(&file), "cost/mod.rs: put {name} into the list");
    }
}

#[test]
fn what_is_missing_is_noticed() {
    assert_eq!(missing("no-such-cost").len(), 1);
}
