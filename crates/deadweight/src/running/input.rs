//! Standard input, the same for every run.
//!
//! A file is opened again where it stood; a pipe or socket is read once into a file without a
//! name. A terminal or device is handed on as it is: it cannot be repeated.

use deadweight_record::Stream;
use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

/// Where runs read from.
#[derive(Debug)]
pub enum Input {
    /// Our own standard input, whatever it is.
    Ours,
    /// The file that is our standard input, from this offset on.
    Again {
        /// Bytes from its start.
        offset: u64,
    },
    /// A file that the user named.
    Named(File),
    /// A copy of what came through a pipe.
    Spooled {
        /// A file without a name.
        copy: File,
        /// How much came.
        bytes: u64,
    },
}

/// Our standard input as a file of its own.
const OURS: &str = "/proc/self/fd/0";

impl Input {
    /// Readies standard input for being read more than once. Reads a pipe to its end.
    ///
    /// # Errors
    /// If a pipe cannot be read or copied.
    pub fn repeatable() -> io::Result<Self> {
        let mut ours = File::from(io::stdin().as_fd().try_clone_to_owned()?);
        let kind = ours.metadata()?.file_type();
        if kind.is_file() {
            return Ok(Self::Again { offset: ours.stream_position()? });
        }
        if kind.is_fifo() || kind.is_socket() {
            let mut copy = unnamed(&std::env::temp_dir())?;
            let bytes = io::copy(&mut ours, &mut copy)?;
            return Ok(Self::Spooled { copy, bytes });
        }
        Ok(Self::Ours)
    }

    /// A file that every run reads from its start; `null` is none.
    ///
    /// # Errors
    /// If it cannot be opened.
    pub fn file(path: &Path) -> io::Result<Self> {
        let path = if path == Path::new("null") { Path::new("/dev/null") } else { path };
        let told = |source: io::Error| {
            io::Error::new(source.kind(), format!("{}: {source}", path.display()))
        };
        File::open(path).map(Self::Named).map_err(told)
    }

    /// The stream for one more run, at the input's start.
    ///
    /// # Errors
    /// If the file cannot be opened again or rewound.
    pub fn stream(&self) -> io::Result<Stream> {
        match self {
            Self::Ours => Ok(Stream::Inherit),
            Self::Again { offset } => {
                let mut file = File::open(OURS)?;
                file.seek(SeekFrom::Start(*offset))?;
                Ok(Stream::File(file))
            }
            Self::Named(file) => Ok(Stream::File(reopened(file)?)),
            Self::Spooled { copy, .. } => {
                // Opened anew: a position of its own, and it cannot be written to.
                let mut file = reopened(copy)?;
                file.rewind()?;
                Ok(Stream::File(file))
            }
        }
    }

    /// What the reader should know about it, if anything.
    #[must_use]
    pub fn remark(&self) -> Option<String> {
        match self {
            Self::Spooled { .. } => Some(
                "standard input came through a pipe: it was read once, and every run read it from \
                 a file"
                    .into(),
            ),
            _ => None,
        }
    }
}

/// A file that has no name and goes away with its last descriptor; readable by us only.
///
/// # Errors
/// If none can be made in `dir` or, where its file system cannot do that, in memory.
pub(super) fn unnamed(dir: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o600);
    match options.clone().custom_flags(libc::O_TMPFILE).open(dir) {
        Ok(file) => Ok(file),
        Err(_) => {
            // File systems without O_TMPFILE (overlays of old kernels, network).
            let path = std::env::temp_dir().join(format!(".deadweight.{}", std::process::id()));
            let file = options.create_new(true).open(&path)?;
            std::fs::remove_file(&path)?;
            Ok(file)
        }
    }
}

/// The same file with a position of its own.
pub(super) fn reopened(file: &File) -> io::Result<File> {
    use std::os::fd::AsRawFd;
    File::open(format!("/proc/self/fd/{}", file.as_raw_fd()))
}
