//! The files that the program's processes were executed from, opened while they exist.
//!
//! Runners like `go test` delete the binary that they built as soon as it has run: on a busy machine
//! before its first record is read. Libraries stay and are not opened here.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

/// The most files that are opened.
const MOST: usize = 64;

/// The known files, by device and inode.
#[derive(Default)]
pub(crate) struct Executables(BTreeSet<(u64, u64)>);

impl Executables {
    /// The new files among those of these processes.
    pub(crate) fn open_new(&mut self, processes: &[u32]) -> Vec<(PathBuf, File)> {
        processes.iter().filter_map(|process| self.open(*process)).collect()
    }

    fn open(&mut self, process: u32) -> Option<(PathBuf, File)> {
        let link = format!("/proc/{process}/exe");
        let metadata = fs::metadata(&link).ok()?;
        let new = self.0.len() < MOST && self.0.insert((metadata.dev(), metadata.ino()));
        if !new {
            return None;
        }
        let path = fs::read_link(&link).ok()?.into_os_string().into_string().ok()?;
        let path = path.strip_suffix(" (deleted)").unwrap_or(&path);
        Some((PathBuf::from(path), File::open(&link).ok()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_opened_once() {
        let mut known = Executables::default();
        let us = std::process::id();
        let found = known.open_new(&[us, us, u32::MAX]);
        assert_eq!(found.len(), 1);
        assert_eq!(Some(&found[0].0), std::env::current_exe().ok().as_ref());
        assert!(known.open_new(&[us]).is_empty());
    }
}
