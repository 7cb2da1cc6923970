//! A directory that only this user can write to. It keeps what is found out once per boot, and a lock that recordings
//! of the same user share.
//!
//! Recordings and reports do not go there: everything in it can be found out again.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::PathBuf;

/// Longer files were not written by deadweight.
const MOST: u64 = 1 << 20;

/// The directory, found or created.
pub(crate) struct Folder(PathBuf);

impl Folder {
    /// The user's cache directory, or else one in `/tmp`. None if there is no directory that only this user can write
    /// to.
    pub(crate) fn open() -> Option<Self> {
        // SAFETY: asks for a number.
        let user = unsafe { libc::geteuid() };
        let home = |name: &str| std::env::var_os(name).map(PathBuf::from);
        let cache = home("XDG_CACHE_HOME").or_else(|| Some(home("HOME")?.join(".cache")));
        let temporary = PathBuf::from(format!("/tmp/deadweight-{user}"));
        let places = cache.filter(|c| c.is_absolute()).map(|c| c.join("deadweight"));
        places.into_iter().chain([temporary]).find(|place| is_private(place, user)).map(Self)
    }

    /// The text of a file in it.
    pub(crate) fn read(&self, name: &str) -> Option<String> {
        let mut text = String::new();
        let file = self.options().read(true).open(self.0.join(name)).ok()?;
        file.take(MOST).read_to_string(&mut text).ok()?;
        Some(text)
    }

    /// Writes a file atomically. If that fails, the content is found out again next time.
    pub(crate) fn write(&self, name: &str, text: &str) {
        let draft = self.0.join(format!("{name}.{}", std::process::id()));
        let options = self.options().write(true).create_new(true).to_owned();
        let written = options.open(&draft).and_then(|mut file| file.write_all(text.as_bytes()));
        if written.is_err() || fs::rename(&draft, self.0.join(name)).is_err() {
            _ = fs::remove_file(&draft);
        }
    }

    /// The file that recordings lock.
    pub(crate) fn lock(&self) -> Option<File> {
        self.file("lock")
    }

    /// A file to be locked.
    pub(crate) fn file(&self, name: &str) -> Option<File> {
        self.options().write(true).create(true).open(self.0.join(name)).ok()
    }

    fn options(&self) -> OpenOptions {
        let mut options = OpenOptions::new();
        options.mode(0o600).custom_flags(libc::O_NOFOLLOW | libc::O_CLOEXEC);
        options
    }
}

/// Whether the directory exists or could be created, and only its owner can write to it.
fn is_private(place: &PathBuf, user: u32) -> bool {
    _ = DirBuilder::new().recursive(true).mode(0o700).create(place);
    fs::symlink_metadata(place)
        .is_ok_and(|meta| meta.is_dir() && meta.uid() == user && meta.mode() & 0o022 == 0)
}
