//! The folder that debuginfod's clients share: `CACHE/BUILD-ID/debuginfo`.
//!
//! A file appears there complete, by a rename. An empty file says that no server had it when it was made. What is old
//! is removed by elfutils' clients, which also write the folder's settings.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// How long a failure is remembered, where the folder's setting (`cache_miss_s`) does not say otherwise.
const MISS: Duration = Duration::from_secs(600);

/// The name of a debug file in its folder.
const NAME: &str = "debuginfo";

/// The cache.
#[derive(Clone, Debug)]
pub(crate) struct Cache {
    folder: PathBuf,
}

/// What the cache has of a build-id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kept {
    /// A file.
    File(PathBuf),
    /// No server had it a short time ago.
    Missing,
    /// Nothing.
    Nothing,
}

impl Cache {
    /// The cache in this folder, which need not exist.
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    fn of(&self, id: &str) -> PathBuf {
        self.folder.join(id)
    }

    /// What there is of this build-id. A failure that is too old is forgotten.
    pub(crate) fn find(&self, id: &str) -> Kept {
        let path = self.of(id).join(NAME);
        let Ok(there) = fs::metadata(&path) else { return Kept::Nothing };
        if !there.is_file() {
            return Kept::Nothing;
        }
        if there.len() > 0 {
            return Kept::File(path);
        }
        let age = there.modified().ok().and_then(|at| SystemTime::now().duration_since(at).ok());
        if age.unwrap_or_default() <= self.miss() {
            return Kept::Missing;
        }
        // If this fails, a new answer cannot be kept either, and the server is asked again.
        _ = fs::remove_file(path);
        Kept::Nothing
    }

    fn miss(&self) -> Duration {
        let given = fs::read_to_string(self.folder.join("cache_miss_s")).ok();
        given.and_then(|text| text.trim().parse().ok()).map_or(MISS, Duration::from_secs)
    }

    /// A new file for this build-id, which is not in its place yet.
    ///
    /// # Errors
    /// If the cache cannot be written.
    pub(crate) fn begin(&self, id: &str) -> io::Result<Partial> {
        let folder = self.of(id);
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
        let part = folder.join(format!("{NAME}.{:x}", std::process::id()));
        // What a killed process with this id left.
        _ = fs::remove_file(&part);
        let file = File::options().write(true).create_new(true).mode(0o400).open(&part)?;
        Ok(Partial { file, part, place: folder.join(NAME), is_kept: false })
    }

    /// Remembers that no server has this build-id.
    ///
    /// # Errors
    /// If the cache cannot be written.
    pub(crate) fn remember_missing(&self, id: &str) -> io::Result<()> {
        self.begin(id)?.keep().map(|_| ())
    }
}

/// A file that is being fetched; it is removed unless it is kept.
#[derive(Debug)]
pub(crate) struct Partial {
    file: File,
    part: PathBuf,
    place: PathBuf,
    is_kept: bool,
}

impl Partial {
    /// Where it is for now.
    pub(crate) fn path(&self) -> &Path {
        &self.part
    }

    /// Puts it into its place and returns that.
    ///
    /// # Errors
    /// If it cannot be renamed.
    pub(crate) fn keep(mut self) -> io::Result<PathBuf> {
        fs::rename(&self.part, &self.place)?;
        self.is_kept = true;
        Ok(self.place.clone())
    }
}

impl Write for Partial {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        if !self.is_kept {
            _ = fs::remove_file(&self.part);
            if let Some(folder) = self.part.parent() {
                // Only if it is empty.
                _ = fs::remove_dir(folder);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A cache that is removed at the end.
    struct Own(Cache);

    impl Own {
        fn new(name: &str) -> Self {
            let name = format!("deadweight-cache-{name}-{}", std::process::id());
            Self(Cache::new(std::env::temp_dir().join(name)))
        }
    }

    impl Drop for Own {
        fn drop(&mut self) {
            _ = fs::remove_dir_all(&self.0.folder);
        }
    }

    #[test]
    fn a_file_appears_complete_and_one_that_is_not_kept_leaves_nothing() {
        let own = Own::new("file");
        let mut partial = own.0.begin("00ff").unwrap();
        partial.write_all(b"bytes").unwrap();
        assert_eq!(own.0.find("00ff"), Kept::Nothing);
        let place = partial.keep().unwrap();
        assert_eq!(place, own.0.folder.join("00ff/debuginfo"));
        assert_eq!(own.0.find("00ff"), Kept::File(place));
        drop(own.0.begin("0aaa").unwrap());
        assert_eq!(own.0.find("0aaa"), Kept::Nothing);
        assert!(!own.0.folder.join("0aaa").exists());
    }

    #[test]
    fn a_failure_is_remembered_for_as_long_as_the_folder_says() {
        let own = Own::new("miss");
        own.0.remember_missing("00ff").unwrap();
        assert_eq!(own.0.find("00ff"), Kept::Missing);
        let file = File::open(own.0.folder.join("00ff/debuginfo")).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(100)).unwrap();
        assert_eq!(own.0.find("00ff"), Kept::Missing);
        fs::write(own.0.folder.join("cache_miss_s"), "60\n").unwrap();
        assert_eq!(own.0.find("00ff"), Kept::Nothing);
        assert!(!own.0.folder.join("00ff/debuginfo").exists());
    }
}
