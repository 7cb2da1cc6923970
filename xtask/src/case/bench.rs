//! `cargo xtask bench cases`: measures the cases and their alternatives; each result is stored with its case.
//!
//! Takes minutes to an hour, because the alternatives are built. Checks no conditions; see `cargo xtask cases`.

use super::server::Server;
use super::{Case, Shell, build_and_serve, folders};
use crate::repository::Repository;
use std::fmt::Write;
use std::process::Command;

/// Runs the benchmarks of these cases, or of all, and writes each case's `RESULTS.md`.
pub(crate) fn run(repository: &Repository, names: &[String]) -> Result<(), String> {
    let all = folders(repository)?;
    if let Some(unknown) = names.iter().find(|name| !all.contains(name)) {
        return Err(format!("no case `{unknown}`; there are: {}", all.join(", ")));
    }
    for name in all.iter().filter(|name| names.is_empty() || names.contains(name)) {
        let folder = repository.path("cases").join(name);
        let case = Case::read(&folder.join("case.toml"))?;
        if case.bench.is_empty() {
            continue;
        }
        eprintln!("── bench of {name}");
        let out = repository.target().join("cases").join(name);
        let mut shell = Shell { folder: &folder, out: &out, port: None };
        let server: Option<Server> = build_and_serve(&mut shell, &case)?;
        let text = results(name, &case, &shell)?;
        drop(server);
        let path = folder.join("RESULTS.md");
        std::fs::write(&path, text).map_err(|e| format!("{}: {e}", path.display()))?;
    }
    Ok(())
}

/// The page of one case: the commands and their output.
fn results(name: &str, case: &Case, shell: &Shell<'_>) -> Result<String, String> {
    let mut page = format!(
        "# {name}: measured\n\nWritten by `cargo xtask bench cases {name}`. {}\n",
        machine(shell)?
    );
    for step in &case.bench {
        eprintln!("   {step}");
        let printed = shell.printed(step)?;
        eprintln!("{printed}");
        write!(page, "\n```console\n$ {step}\n{}\n```\n", printed.trim_end())
            .map_err(|e| e.to_string())?;
    }
    Ok(page)
}

/// The machine and its load.
fn machine(shell: &Shell<'_>) -> Result<String, String> {
    shell.printed(
        "printf '%s, %s CPUs, Linux %s; load before: %s.' \
         \"$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)\" \"$(nproc)\" \
         \"$(uname -r | cut -d - -f 1)\" \"$(cut -d ' ' -f 1 /proc/loadavg)\"",
    )
}

impl Shell<'_> {
    /// The output of a command.
    fn printed(&self, command: &str) -> Result<String, String> {
        let output = Command::new("/bin/sh")
            .args(["-e", "-c", command])
            .env("OUT", self.out)
            .env("PORT", self.port.map(|port| port.to_string()).unwrap_or_default())
            .current_dir(self.folder)
            .stderr(std::process::Stdio::inherit())
            .output()
            .map_err(|e| format!("/bin/sh: {e}"))?;
        if !output.status.success() {
            return Err(format!("`{command}`: {}", output.status));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}
