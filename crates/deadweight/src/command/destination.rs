//! Output files: opened before the program runs, written after.
//!
//! So a file that cannot be written is reported before an hour of measuring, not after it. Reports and recordings
//! show command lines and paths: only their owner may read them. Under `sudo` the owner is the user who called it. A file
//! that was created and stays empty is removed. Does not format anything.

use crate::failure::Failure;
use std::fs::{File, OpenOptions};
use std::io::{self, Seek, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, fchown};
use std::path::{Path, PathBuf};

/// An output file, or standard output.
#[derive(Debug)]
pub(crate) struct Destination {
    what: &'static str,
    name: String,
    file: Option<File>,
    made: Made,
}

/// The file's path, if it was created here.
#[derive(Debug)]
struct Made(Option<PathBuf>);

impl Drop for Made {
    /// Removes it if it is empty and still there.
    fn drop(&mut self) {
        let Some(path) = &self.0 else { return };
        if path.symlink_metadata().is_ok_and(|there| there.is_file() && there.size() == 0) {
            // An empty file that stays does no harm.
            _ = std::fs::remove_file(path);
        }
    }
}

impl Destination {
    /// Opens or creates a file; `-` is standard output. The file keeps its old content until
    /// something is written.
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
            // If this fails, root stays the owner.
            _ = fchown(&file, Some(user), Some(group));
        }
        Ok(Self { what, name, file: Some(file), made: Made(made) })
    }

    /// The emptied file, for a recording that grows while the program runs. A pipe is refused: if the size limit is
    /// reached, earlier parts are rewritten.
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
                Err(io::Error::other("a recording cannot go to a pipe: name a file with -o"))
            }
            _ => Ok(file),
        });
        seekable.map_err(|source| Failure::Write { what, to: name, source })
    }

    /// The emptied file, or standard output, for content that is written piece by piece.
    pub(crate) fn into_stream(self) -> Result<Box<dyn Write + Send>, Failure> {
        let Self { what, name, file, mut made } = self;
        made.0 = None;
        let Some(file) = file else { return Ok(Box::new(io::stdout())) };
        let emptied = if is_regular(&file) { file.set_len(0) } else { Ok(()) };
        emptied.map_err(|source| Failure::Write { what, to: name, source })?;
        Ok(Box::new(file))
    }

    /// Whether it is standard output.
    pub(crate) fn is_stdout(&self) -> bool {
        self.file.is_none()
    }

    /// Replaces the content by text.
    pub(crate) fn write(self, text: &str) -> Result<(), Failure> {
        self.write_bytes(text.as_bytes())
    }

    /// Replaces the content.
    pub(crate) fn write_bytes(self, content: &[u8]) -> Result<(), Failure> {
        let Self { what, name, file, made: _made } = self;
        let written = match file {
            Some(mut file) => {
                // A device or pipe has no length to set; `write_all` reports a full disk.
                let emptied = if is_regular(&file) { file.set_len(0) } else { Ok(()) };
                emptied.and_then(|()| file.write_all(content))
            }
            None => {
                let mut out = io::stdout().lock();
                out.write_all(content).and_then(|()| out.flush())
            }
        };
        written.map_err(|source| Failure::Write { what, to: name, source })
    }
}

fn is_regular(file: &File) -> bool {
    file.metadata().is_ok_and(|meta| meta.is_file())
}

/// Whether the path is a symbolic link that may be followed. Root follows no link of another user, who could
/// otherwise choose the file that root writes to.
fn may_follow(path: &Path) -> io::Result<bool> {
    let Ok(there) = path.symlink_metadata() else { return Ok(false) };
    let ours = |uid| uid == 0 || sudo_user().is_some_and(|(user, _)| user == uid);
    match there.is_symlink() {
        true if is_root() && !ours(there.uid()) => {
            let uid = there.uid();
            Err(io::Error::other(format!(
                "it is a link of uid {uid}, and root does not follow links of other users"
            )))
        }
        is_link => Ok(is_link),
    }
}

/// The user and group that called `sudo`.
pub(super) fn sudo_user() -> Option<(u32, u32)> {
    let number = |name| std::env::var(name).ok()?.parse().ok();
    if is_root() { Some((number("SUDO_UID")?, number("SUDO_GID")?)) } else { None }
}

fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|us| us.uid() == 0)
}
