//! The private folder of proofs: copies of binaries, libraries.
//!
//! It is locked as long as it is used. If a process and its guard (`guard`) were both killed, the next process removes it.

use rustix::fs::{FlockOperation, StatVfsMountFlags, flock, statvfs};
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A folder that is not locked may have been created just now.
const NEW: Duration = Duration::from_secs(60);
/// Its name begins with this.
const PREFIX: &str = "deadweight-prove-";

/// A folder that only this user can read; removed on drop.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    /// Locked as long as the folder is used.
    _lock: File,
}

impl Folder {
    /// Creates one that programs can be executed from.
    ///
    /// # Errors
    /// If no temporary folder allows it.
    pub fn new() -> io::Result<Self> {
        let places = [std::env::temp_dir(), "/var/tmp".into(), "/dev/shm".into()];
        let mut refused = io::Error::other("no temporary folder allows programs to be executed");
        for place in places {
            let executes = |at: &Path| {
                statvfs(at).is_ok_and(|fs| !fs.f_flag.contains(StatVfsMountFlags::NOEXEC))
            };
            if !executes(&place) {
                continue;
            }
            remove_abandoned(&place);
            for _ in 0..100 {
                // Unique: in another container, a process may have the same number.
                let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                let name = format!("{PREFIX}{}-{}", std::process::id(), now.as_nanos());
                let path = place.join(name);
                // Fails if the path exists, even as a link of another user.
                match DirBuilder::new().mode(0o700).create(&path) {
                    Ok(()) => return Self::locked(path),
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                    Err(error) => {
                        refused = error;
                        break;
                    }
                }
            }
        }
        Err(refused)
    }

    /// Its path.
    pub(in crate::running::proof) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a file that programs can load, if it is not there.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(super) fn file(&self, name: &str, bytes: &[u8]) -> io::Result<PathBuf> {
        let path = self.path.join(name);
        if !path.exists() {
            fs::write(&path, bytes)?;
        }
        Ok(path)
    }

    fn locked(path: PathBuf) -> io::Result<Self> {
        let lock = File::open(&path)?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
        Ok(Self { path, _lock: lock })
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // An error leaves it for the next one: see `remove_abandoned`.
        _ = fs::remove_dir_all(&self.path);
    }
}

/// Removes a folder of proofs that nobody uses any more.
pub(in crate::running::proof) fn remove_unused(path: &Path) {
    let is_ours = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(PREFIX));
    let Some(folder) = is_ours.then(|| File::open(path).ok()).flatten() else { return };
    if flock(&folder, FlockOperation::NonBlockingLockExclusive).is_ok() {
        // An error leaves it for the next one: see `remove_abandoned`.
        _ = fs::remove_dir_all(path);
    }
}

/// Removes folders of this user that nobody uses any more.
fn remove_abandoned(place: &Path) {
    let user = rustix::process::geteuid().as_raw();
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        if !entry.file_name().to_string_lossy().starts_with(PREFIX) {
            continue;
        }
        let path = entry.path();
        let is_old = |meta: &fs::Metadata| {
            meta.modified().is_ok_and(|at| at.elapsed().is_ok_and(|age| age > NEW))
        };
        let old = path
            .symlink_metadata()
            .is_ok_and(|meta| meta.is_dir() && meta.uid() == user && is_old(&meta));
        if old {
            remove_unused(&path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_abandoned_folder_is_removed_and_one_in_use_is_not() {
        let used = Folder::new().unwrap();
        let place = used.path().parent().unwrap();
        let abandoned = place.join(format!("{PREFIX}test-{}", std::process::id()));
        fs::create_dir(&abandoned).unwrap();
        fs::write(abandoned.join("copy"), "bytes").unwrap();
        let new = place.join(format!("{PREFIX}new-{}", std::process::id()));
        fs::create_dir(&new).unwrap();
        let past = std::time::SystemTime::now() - 2 * NEW;
        for folder in [&abandoned, &used.path().to_owned()] {
            File::open(folder).unwrap().set_modified(past).unwrap();
        }
        let next = Folder::new().unwrap();
        assert!(!abandoned.exists());
        assert!(new.exists() && used.path().exists() && next.path().exists());
        fs::remove_dir(&new).unwrap();
        // One in use, and one with another name.
        remove_unused(next.path());
        remove_unused(&next.path().join("inner"));
        assert!(next.path().exists());
    }
}
