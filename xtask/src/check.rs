//! Commands that run other programs: cargo's checks, the live tests, the benchmark, and the scorer of a folder
//! of programs with known hidden costs (the corpus).
//!
//! Each stops at the first failing step and names it. Holds no rules; see `tidy`.

use crate::repository::Repository;
use crate::{bpf, costs, tidy};
use std::path::Path;

/// All checks of a commit. The last step is the slowest.
pub(crate) fn everything(repository: &Repository) -> Result<(), String> {
    step("fmt");
    repository.run("cargo", &["fmt", "--all", "--check"])?;
    step("tidy");
    tidy::run(repository)?;
    step("docs");
    costs::run(repository, &["--check".to_owned()])?;
    step("bpf");
    bpf::run(repository, &["--check".to_owned()])?;
    step("clippy");
    let clippy = ["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];
    repository.run("cargo", &clippy)?;
    step("tests");
    repository.run("cargo", &["test", "--workspace"])
}

/// The live tests, all or those with the argument in their name.
pub(crate) fn live(repository: &Repository, names: &[String]) -> Result<(), String> {
    // With the features of all crates together, as the other tests: else some libraries are built again.
    let mut arguments = vec!["test", "--workspace", "--test", "live", "--"];
    arguments.extend(names.iter().map(String::as_str));
    // One at a time: compiling the next test's program would disturb this measurement.
    arguments.extend(["--nocapture", "--test-threads=1"]);
    repository.run("cargo", &arguments)
}

/// Measures deadweight and other tools: one table.
pub(crate) fn bench(repository: &Repository, arguments: &[String]) -> Result<(), String> {
    repository.run("cargo", &["build", "--release", "-p", "deadweight"])?;
    let mut command = vec!["bench/run.py"];
    command.extend(arguments.iter().map(String::as_str));
    repository.run("python3", &command)
}

/// The score on a folder of programs with known hidden costs. The scorer is beside the corpus
/// (`../tools/grade` from it), because it belongs to the programs.
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
