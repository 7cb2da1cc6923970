//! The working tree: its files, as git lists them, and tools that run in it.
//!
//! Does not check files; see `tidy`.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The repository that this xtask was compiled in.
pub(crate) struct Repository {
    root: PathBuf,
}

impl Repository {
    /// The repository around this crate.
    pub(crate) fn here() -> Self {
        let xtask = Path::new(env!("CARGO_MANIFEST_DIR"));
        Self { root: xtask.parent().unwrap_or(xtask).to_path_buf() }
    }

    /// The absolute path of `relative`.
    pub(crate) fn path(&self, relative: &str) -> PathBuf {
        self.root.join(relative)
    }

    /// The folder that cargo builds in.
    pub(crate) fn target(&self) -> PathBuf {
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| self.path("target"), PathBuf::from)
    }

    /// The text of a file of the tree.
    pub(crate) fn read(&self, relative: &str) -> Result<String, String> {
        std::fs::read_to_string(self.path(relative)).map_err(|e| format!("{relative}: {e}"))
    }

    /// Every file that git tracks or would track, in order, as paths from the root.
    pub(crate) fn files(&self) -> Result<Vec<String>, String> {
        let out = Command::new("git")
            .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
            .current_dir(&self.root)
            .output()
            .map_err(|e| format!("git ls-files: {e}"))?;
        if !out.status.success() {
            return Err(format!("git ls-files: {}", String::from_utf8_lossy(&out.stderr)));
        }
        let listed = String::from_utf8_lossy(&out.stdout).into_owned();
        let mut files: Vec<String> = listed
            .split('\0')
            .filter(|f| !f.is_empty() && self.path(f).is_file())
            .map(str::to_owned)
            .collect();
        files.sort();
        files.dedup();
        Ok(files)
    }

    /// Runs `program` in the root with our own standard streams; fails if it fails.
    pub(crate) fn run(&self, program: &str, arguments: &[&str]) -> Result<(), String> {
        let status = Command::new(program)
            .args(arguments)
            .current_dir(&self.root)
            .status()
            .map_err(|e| format!("{program}: {e}"))?;
        if status.success() {
            return Ok(());
        }
        Err(format!("`{program} {}` failed ({status})", arguments.join(" ")))
    }
}
