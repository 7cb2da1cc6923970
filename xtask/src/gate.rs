//! The project's own gate: does it analyse slower, do more for it, or find less of the known costs than at the commit
//! in `bench/base`?
//!
//! Builds both versions and judges them by `deadweight ci` with the rules in `deadweight.toml`. To accept a growth, name a
//! later commit in `bench/base`, or add an `[[accepted]]` there. `bench/score.py` counts what is found.

use crate::repository::Repository;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The file with the commit that this version is compared with.
const BASE: &str = "bench/base";
/// Where the base is built, and its traces are.
const FOLDER: &str = "target/gate";

/// Judges this version.
pub(crate) fn run(repository: &Repository) -> Result<(), String> {
    let text = repository.read(BASE)?;
    let base = text.split_whitespace().next().ok_or(format!("{BASE} has no commit"))?;
    let folder = repository.path(FOLDER);
    std::fs::create_dir_all(&folder).map_err(|e| format!("{FOLDER}: {e}"))?;
    let mut known = Command::new("git");
    known.args(["cat-file", "-e", &format!("{base}^{{commit}}")]);
    if !ended_well(repository, &mut known)? {
        println!(
            "SKIPPED gate: this clone does not have the commit {base} of {BASE}: fetch the whole history"
        );
        return Ok(());
    }
    build(&repository.path("."), &repository.target(), "this version")?;
    let known = build_base(repository, base, &folder)?;
    let head = repository.target().join("release/deadweight");
    let trace = folder.join("round-trips.dwt");
    record(repository, &head, &folder, &trace)?;
    let judge = Command::new(&head)
        .args(["ci", "--config", "deadweight.toml"])
        .env("DEADWEIGHT_BASE", known)
        .env("DEADWEIGHT_HEAD", repository.target().join("release"))
        .current_dir(repository.path("."))
        .status()
        .map_err(|e| format!("deadweight ci: {e}"))?;
    if judge.success() { Ok(()) } else { Err(format!("deadweight ci ended with {judge}")) }
}

/// Builds a version for release, but for the optimisation of all crates together: both do without it, and it takes
/// minutes.
fn build(source: &Path, target: &Path, version: &str) -> Result<(), String> {
    let status = Command::new("cargo")
        .args(["build", "--release", "--locked", "--quiet", "-p", "deadweight"])
        .env("CARGO_PROFILE_RELEASE_LTO", "off")
        .env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16")
        .env("CARGO_TARGET_DIR", target)
        .current_dir(source)
        .status()
        .map_err(|e| format!("cargo: {e}"))?;
    if status.success() { Ok(()) } else { Err(format!("{version} does not build")) }
}

/// Builds a commit; the folder of its binary. With a target folder of its own: cargo takes the crates of two versions in
/// one folder for the same, and would link the one with the other's. The libraries that both use are copied.
fn build_base(repository: &Repository, commit: &str, folder: &Path) -> Result<PathBuf, String> {
    let (source, built) = (folder.join("source"), folder.join("build"));
    check_out(repository, commit, &source)?;
    if !built.exists() {
        let (from, to) = (repository.target().join("release"), built.display());
        // Without its fingerprint, cargo compiles a crate again.
        let line = format!(
            "mkdir -p '{to}' && cp -a '{}' '{to}' && rm -rf '{to}'/release/.fingerprint/deadweight*",
            from.display()
        );
        repository.run("sh", &["-c", &line])?;
    }
    build(&source, &built, &format!("the base {commit}"))?;
    Ok(built.join("release"))
}

/// The files of a commit in a folder of their own.
fn check_out(repository: &Repository, commit: &str, source: &Path) -> Result<(), String> {
    if source.exists() {
        std::fs::remove_dir_all(source).map_err(|e| format!("{}: {e}", source.display()))?;
    }
    std::fs::create_dir_all(source).map_err(|e| format!("{}: {e}", source.display()))?;
    let line = format!("git archive {commit} | tar -x -C '{}'", source.display());
    repository.run("sh", &["-c", &line])
}

/// A recording of some hundred thousand events, which both versions read.
fn record(repository: &Repository, head: &Path, folder: &Path, trace: &Path) -> Result<(), String> {
    let program = folder.join("workload");
    let words = [&*head.to_string_lossy(), &*trace.to_string_lossy(), &*program.to_string_lossy()]
        .map(str::to_owned);
    repository.run("gcc", &["-O2", "-o", &words[2], "bench/workload.c"])?;
    repository
        .run(&words[0], &["record", "-q", "-o", &words[1], "--", &words[2], "pingpong", "20000"])
}

fn ended_well(repository: &Repository, command: &mut Command) -> Result<bool, String> {
    let output = command.current_dir(repository.path(".")).output();
    output.map(|output| output.status.success()).map_err(|e| format!("git: {e}"))
}
