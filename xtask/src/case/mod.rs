//! The cases: real programs, slow and fast, with the findings that deadweight must report.
//!
//! A case is a folder of `cases/` with a `case.toml`. It is built and tested, deadweight measures each of
//! its variants, and `deadweight gate` checks its conditions. Does not measure alternatives; see `bench`.

pub(crate) mod bench;
mod file;
mod server;

use crate::repository::Repository;
use file::Case;
use server::Server;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Conditions are about shares of time, which a busy minute may change: so a case has several attempts.
const TRIES: usize = 2;

/// Checks only what also holds on a busy machine.
const QUICK: &str = "--quick";

/// Builds and checks one case, or all without a name. With `--quick`, conditions that may fail
/// on a busy machine are left out.
pub(crate) fn run(repository: &Repository, words: &[String]) -> Result<(), String> {
    let quick = words.iter().any(|word| word == QUICK);
    let names: Vec<String> = words.iter().filter(|word| *word != QUICK).cloned().collect();
    let all = folders(repository)?;
    let chosen: Vec<&String> =
        all.iter().filter(|name| names.is_empty() || names.contains(name)).collect();
    if let Some(unknown) = names.iter().find(|name| !all.contains(name)) {
        return Err(format!("no case `{unknown}`; there are: {}", all.join(", ")));
    }
    // The debug build gives the same reports, only more slowly; that of the tests is already there.
    let build = if quick {
        ["build", "--workspace", "--bin", "deadweight", "--quiet"].as_slice()
    } else {
        &["build", "-p", "deadweight", "--quiet", "--release"]
    };
    repository.run("cargo", build)?;
    let mut failed = Vec::new();
    for name in chosen {
        eprintln!("── case {name}");
        if let Err(complaint) = check(repository, name, quick) {
            eprintln!("{name}: {complaint}");
            failed.push(name.as_str());
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(format!("failed: {}", failed.join(", "))) }
}

fn folders(repository: &Repository) -> Result<Vec<String>, String> {
    let entries = std::fs::read_dir(repository.path("cases")).map_err(|e| format!("cases: {e}"))?;
    let mut names: Vec<String> = entries
        .flatten()
        .filter(|entry| entry.path().join("case.toml").is_file())
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    Ok(names)
}

fn check(repository: &Repository, name: &str, quick: bool) -> Result<(), String> {
    let folder = repository.path("cases").join(name);
    let out = repository.target().join("cases").join(name);
    let mut case = Case::read(&folder.join("case.toml"))?;
    if !quick {
        case.truths.append(&mut case.quiet);
    }
    let mut shell = Shell { folder: &folder, out: &out, port: None };
    let _server = build_and_serve(&mut shell, &case)?;
    for step in &case.test {
        shell.run(step)?;
    }
    let profile = if quick { "debug" } else { "release" };
    let deadweight = repository.target().join(profile).join("deadweight");
    let mut complaint = String::new();
    for attempt in 1..=TRIES {
        for (variant, command) in &case.variants {
            weigh(&shell, &deadweight, &case, variant, command)?;
        }
        let shown = || {
            let named = |step: &String| step.replace("$DEADWEIGHT", &deadweight.to_string_lossy());
            case.shown.iter().try_for_each(|step| shell.run(&named(step)))
        };
        match truths(&shell, &deadweight, &case).and_then(|()| shown()) {
            Ok(()) => return page(&shell, &deadweight, &case),
            Err(why) => complaint = why,
        }
        eprintln!("{name}: attempt {attempt} of {TRIES}: {complaint}");
    }
    Err(complaint)
}

/// Builds a case, and starts the server that it needs.
fn build_and_serve(shell: &mut Shell<'_>, case: &Case) -> Result<Option<Server>, String> {
    std::fs::create_dir_all(shell.out).map_err(|e| format!("{}: {e}", shell.out.display()))?;
    for tool in &case.needs {
        shell.run(&format!("command -v {tool} >/dev/null")).map_err(|_| {
            format!("it needs {tool}, which is not here: `./setup.sh cases` installs it")
        })?;
    }
    for step in &case.build {
        shell.run(step)?;
    }
    if case.serve.is_empty() {
        return Ok(None);
    }
    let server = Server::start(&case.serve, shell.folder, shell.out)?;
    shell.port = Some(server.port());
    Ok(Some(server))
}

/// Measures one variant, and compares its output with the expected output of the case.
fn weigh(
    shell: &Shell<'_>,
    deadweight: &Path,
    case: &Case,
    variant: &str,
    command: &str,
) -> Result<(), String> {
    let report = shell.report(variant);
    let command = shell.named(command);
    let of = case.of.iter().find(|(name, _)| name == variant);
    let output = Command::new(deadweight)
        .args(["-q", "-r", &case.runs, "--export-json"])
        .arg(&report)
        .arg(format!("--keep={}/{variant}", shell.name()))
        .args(["--archive", &shell.archive()])
        .args(of.iter().flat_map(|(_, process)| ["--of", process.as_str()]))
        .args(&case.options)
        .args(["--", &command])
        .current_dir(shell.folder)
        .output()
        .map_err(|e| format!("deadweight: {e}"))?;
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{variant} ended with {}: {}", output.status, errors.trim()));
    }
    let expected = std::fs::read(shell.folder.join("stdout.txt"));
    match expected {
        Ok(expected) if expected != output.stdout => {
            Err(format!("{variant} does not print what stdout.txt says"))
        }
        _ => Ok(()),
    }
}

fn truths(shell: &Shell<'_>, deadweight: &Path, case: &Case) -> Result<(), String> {
    let reports = case
        .variants
        .iter()
        .map(|(variant, _)| format!("{variant}={}", shell.report(variant).display()));
    let status = Command::new(deadweight)
        .arg("gate")
        .args(reports)
        .args(&case.truths)
        .status()
        .map_err(|e| format!("deadweight: {e}"))?;
    if status.success() { Ok(()) } else { Err("a truth does not hold".to_owned()) }
}

/// Makes the page of the slow and the fast form, compared: `$OUT/compare.html`, which `bench/tour.py` opens.
fn page(shell: &Shell<'_>, deadweight: &Path, case: &Case) -> Result<(), String> {
    let named = |wanted: &str| case.variants.iter().find(|(name, _)| name == wanted);
    let forms = [named("slow").or(case.variants.first()), named("fast").or(case.variants.last())];
    let output = Command::new(deadweight)
        .args(["compare", "-q", "-r", "6", "--html"])
        .arg(shell.out.join("compare.html"))
        .args(forms.into_iter().flatten().map(|(_, command)| shell.named(command)))
        .current_dir(shell.folder)
        .output()
        .map_err(|e| format!("deadweight: {e}"))?;
    // The verdict is another code: 0, 1 or 3.
    if output.status.code().is_some_and(|code| code < 2 || code == 3) {
        return Ok(());
    }
    Err(format!("the page: {}", String::from_utf8_lossy(&output.stderr).trim()))
}

/// The environment of a case's commands.
struct Shell<'a> {
    folder: &'a Path,
    /// The folder for build results; `$OUT` in commands.
    out: &'a Path,
    /// The port of the case's server; `$PORT` in commands.
    port: Option<u16>,
}

impl Shell<'_> {
    fn run(&self, command: &str) -> Result<(), String> {
        let status = Command::new("/bin/sh")
            .args(["-e", "-c", command])
            .env("OUT", self.out)
            .env("PORT", self.port.map(|port| port.to_string()).unwrap_or_default())
            .current_dir(self.folder)
            .status()
            .map_err(|e| format!("/bin/sh: {e}"))?;
        if status.success() { Ok(()) } else { Err(format!("`{command}`: {status}")) }
    }

    /// A command with its variables replaced: deadweight runs it without a shell.
    fn named(&self, command: &str) -> String {
        let port = self.port.map(|port| port.to_string()).unwrap_or_default();
        command.replace("$OUT", &self.out.display().to_string()).replace("$PORT", &port)
    }

    /// The case's name: that of its folder.
    fn name(&self) -> String {
        self.folder.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// Where reports are kept: $DEADWEIGHT_ARCHIVE, else beside the results.
    fn archive(&self) -> String {
        let beside = || format!("sqlite:{}", self.out.with_file_name("archive.db").display());
        std::env::var("DEADWEIGHT_ARCHIVE").unwrap_or_else(|_| beside())
    }

    fn report(&self, variant: &str) -> PathBuf {
        self.out.join(format!("{variant}.json"))
    }
}
