//! Commands that run other programs: cargo's own checks, the live truths, the bench, the corpus.
//!
//! Each stops at the first step that fails and names it. The rules themselves are in `tidy`.

use crate::repository::Repository;
use crate::{costs, tidy};
use std::path::Path;

/// What must hold before a commit. The last step is the slowest.
pub(crate) fn everything(repository: &Repository) -> Result<(), String> {
    step("fmt");
    repository.run("cargo", &["fmt", "--all", "--check"])?;
    step("tidy");
    tidy::run(repository)?;
    step("docs");
    costs::run(repository, &["--check".to_owned()])?;
    step("clippy");
    let clippy = ["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];
    repository.run("cargo", &clippy)?;
    step("tests");
    repository.run("cargo", &["test", "--workspace"])
}

/// The truths of real programs, all or those whose name contains the argument.
pub(crate) fn live(repository: &Repository, names: &[String]) -> Result<(), String> {
    let mut arguments = vec!["test", "-p", "deadweight", "--test", "live", "--"];
    arguments.extend(names.iter().map(String::as_str));
    // One at a time: a compiler at work for the next truth would disturb this one.
    arguments.extend(["--nocapture", "--test-threads=1"]);
    repository.run("cargo", &arguments)
}

/// deadweight beside its peers, one table.
pub(crate) fn bench(repository: &Repository, arguments: &[String]) -> Result<(), String> {
    repository.run("cargo", &["build", "--release", "-p", "deadweight"])?;
    let mut command = vec!["bench/run.py"];
    command.extend(arguments.iter().map(String::as_str));
    repository.run("python3", &command)
}

/// The score on a folder of programs with known hidden costs. The scorer lies beside the corpus
/// (`../tools/grade` from it), because it belongs to the programs and not to deadweight.
pub(crate) fn grade(repository: &Repository, arguments: &[String]) -> Result<(), String> {
    let Some((corpus, rest)) = arguments.split_first() else {
        return Err("grade: which folder? `cargo xtask grade CORPUS [--only ID,ID]`".to_owned());
    };
    let scorer = Path::new(corpus).join("..").join("tools").join("grade");
    let Some(scorer) = scorer.to_str().filter(|_| scorer.is_file()) else {
        return Err(format!("grade: there is no {}", scorer.display()));
    };
    repository.run("cargo", &["build", "--release", "-p", "deadweight"])?;
    let mut command = vec![scorer, corpus, "target/release/deadweight"];
    command.extend(rest.iter().map(String::as_str));
    repository.run("python3", &command)
}

fn step(name: &str) {
    eprintln!("── {name}");
}
