//! Files that results go to: opened before the program runs, written after.
//!
//! A place that cannot be written to is found out before an hour of measuring, not after it.
//! Reports and recordings show command lines and paths: only their owner may read them.

use crate::failure::Failure;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Where something will be written.
#[derive(Debug)]
pub(crate) struct Destination {
    what: &'static str,
    name: String,
    file: Option<File>,
}

impl Destination {
    /// A file, made if it is not there, or standard output for `-`. What the file holds is kept
    /// until there is something to write.
    pub(crate) fn open(what: &'static str, path: &Path) -> Result<Self, Failure> {
        if path == Path::new("-") {
            return Ok(Self { what, name: "standard output".into(), file: None });
        }
        let name = path.display().to_string();
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false).mode(0o600);
        match options.open(path) {
            Ok(file) => Ok(Self { what, name, file: Some(file) }),
            Err(source) => Err(Failure::Write { what, to: name, source }),
        }
    }

    /// The file itself, for what grows while the program runs; emptied if `fresh`.
    pub(crate) fn into_file(self, fresh: bool) -> Result<File, Failure> {
        let Self { what, name, file } = self;
        let opened = match file {
            Some(file) if fresh && is_regular(&file) => file.set_len(0).map(|()| file),
            Some(file) => Ok(file),
            None => io::stdout().as_fd().try_clone_to_owned().map(File::from),
        };
        opened.map_err(|source| Failure::Write { what, to: name, source })
    }

    /// Whether it is standard output.
    pub(crate) fn is_stdout(&self) -> bool {
        self.file.is_none()
    }

    /// Replaces what is there.
    pub(crate) fn write(self, text: &str) -> Result<(), Failure> {
        let Self { what, name, file } = self;
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
