//! Files that results go to: opened before the program runs, written after.
//!
//! A place that cannot be written to is found out before an hour of measuring, not after it.
//! Reports and recordings show command lines and paths: only their owner may read them. Where root works for
//! a user by `sudo`, that is the user. A file that was made and got nothing is not left behind.

use crate::failure::Failure;
use std::fs::{File, OpenOptions};
use std::io::{self, Seek, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, fchown};
use std::path::{Path, PathBuf};

/// Where something will be written.
#[derive(Debug)]
pub(crate) struct Destination {
    what: &'static str,
    name: String,
    file: Option<File>,
    made: Made,
}

/// The file's path, if it was made for this.
#[derive(Debug)]
struct Made(Option<PathBuf>);

impl Drop for Made {
    /// Removes it if it is empty and still there.
    fn drop(&mut self) {
        let Some(path) = &self.0 else { return };
        if path.symlink_metadata().is_ok_and(|there| there.is_file() && there.size() == 0) {
            // One that cannot be removed does no harm.
            _ = std::fs::remove_file(path);
        }
    }
}

impl Destination {
    /// A file, made if it is not there, or standard output for `-`. What the file holds is kept
    /// until there is something to write.
    pub(crate) fn open(what: &'static str, path: &Path) -> Result<Self, Failure> {
        if path == Path::new("-") {
            return Ok(Self { what, name: "standard output".into(), file: None, made: Made(None) });
        }
        let name = path.display().to_string();
        let fail = |source| Failure::Write { what, to: name.clone(), source };
        let follow = may_follow(path).map_err(fail)?;
        let mut options = OpenOptions::new();
        options.write(true).mode(0o600);
        let (file, made) = match options.clone().create_new(true).open(path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                options.custom_flags(if follow { 0 } else { libc::O_NOFOLLOW });
                (options.create(true).truncate(false).open(path), None)
            }
            made => (made, Some(path.to_owned())),
        };
        let file = file.map_err(fail)?;
        if made.is_some()
            && let Some((user, group)) = sudo_user()
        {
            // Else it stays root's.
            _ = fchown(&file, Some(user), Some(group));
        }
        Ok(Self { what, name, file: Some(file), made: Made(made) })
    }

    /// The file itself, emptied, for what grows while the program runs. Not a pipe: what was written before is
    /// written anew where there is no room for more.
    pub(crate) fn into_file(self) -> Result<File, Failure> {
        let Self { what, name, file, mut made } = self;
        made.0 = None;
        let opened = match file {
            Some(file) if is_regular(&file) => file.set_len(0).map(|()| file),
            Some(file) => Ok(file),
            None => io::stdout().as_fd().try_clone_to_owned().map(File::from),
        };
        let seekable = opened.and_then(|mut file| match file.stream_position() {
            Err(error) if error.raw_os_error() == Some(libc::ESPIPE) => {
                Err(io::Error::other("a pipe cannot hold it: name a file with -o"))
            }
            _ => Ok(file),
        });
        seekable.map_err(|source| Failure::Write { what, to: name, source })
    }

    /// Whether it is standard output.
    pub(crate) fn is_stdout(&self) -> bool {
        self.file.is_none()
    }

    /// Replaces what is there.
    pub(crate) fn write(self, text: &str) -> Result<(), Failure> {
        let Self { what, name, file, made: _made } = self;
        let written = match file {
            Some(mut file) => {
                // A device or pipe has no length to set; a full disk is told by the write.
                let emptied = if is_regular(&file) { file.set_len(0) } else { Ok(()) };
                emptied.and_then(|()| file.write_all(text.as_bytes()))
            }
            None => {
                let mut out = io::stdout().lock();
                out.write_all(text.as_bytes()).and_then(|()| out.flush())
            }
        };
        written.map_err(|source| Failure::Write { what, to: name, source })
    }
}

fn is_regular(file: &File) -> bool {
    file.metadata().is_ok_and(|meta| meta.is_file())
}

/// Whether there is a link at a path: then it is followed. Root follows none that others laid there, or they would
/// choose what it writes to.
fn may_follow(path: &Path) -> io::Result<bool> {
    let Ok(there) = path.symlink_metadata() else { return Ok(false) };
    let ours = |uid| uid == 0 || sudo_user().is_some_and(|(user, _)| user == uid);
    match there.is_symlink() {
        true if is_root() && !ours(there.uid()) => {
            let uid = there.uid();
            Err(io::Error::other(format!("it is a link of uid {uid}, which root does not follow")))
        }
        is_link => Ok(is_link),
    }
}

/// For whom root works, as `sudo` tells: user and group.
fn sudo_user() -> Option<(u32, u32)> {
    let number = |name| std::env::var(name).ok()?.parse().ok();
    if is_root() { Some((number("SUDO_UID")?, number("SUDO_GID")?)) } else { None }
}

fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|us| us.uid() == 0)
}
