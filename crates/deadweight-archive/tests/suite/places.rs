//! Where the tests keep their archives: a folder of their own.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// A place for one archive.
pub(crate) struct Place {
    /// Its address.
    pub(crate) address: String,
    folder: PathBuf,
}

impl Place {
    /// A file of SQLite that does not exist yet.
    pub(crate) fn sqlite() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("deadweight-archive-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        Self { address: format!("sqlite:{}/archive.db", folder.display()), folder }
    }

    /// A file in its folder.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// The archive's file.
    pub(crate) fn file(&self) -> &Path {
        Path::new(self.address.trim_start_matches("sqlite:"))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
