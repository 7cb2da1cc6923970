//! Standard input, the same for every run.
//!
//! A file is opened again at its position; a pipe or socket is read once into an unnamed file. A terminal or device is
//! inherited as it is: its input cannot be repeated. Does not start runs.

use deadweight_record::Stream;
use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;
use std::sync::OnceLock;

/// Where runs read from.
#[derive(Debug)]
pub enum Input {
    /// Our own standard input, inherited.
    Inherited,
    /// The file that is our standard input, opened again at this offset.
    Reopened {
        /// Bytes from its start.
        offset: u64,
    },
    /// A file that the user named.
    Named(File),
    /// A copy of what was read from a pipe.
    Spooled {
        /// An unnamed file.
        copy: File,
        /// Bytes read.
        bytes: u64,
    },
}

/// What came through the pipe that is our standard input: it can be read only once, and several series of runs may ask.
static SPOOLED: OnceLock<(File, u64)> = OnceLock::new();

/// The path that opens our standard input again.
const OWN_STDIN: &str = "/proc/self/fd/0";

impl Input {
    /// Prepares standard input to be read more than once. Reads a pipe to its end.
    ///
    /// # Errors
    /// If a pipe cannot be read or copied.
    pub fn repeatable() -> io::Result<Self> {
        let mut ours = File::from(io::stdin().as_fd().try_clone_to_owned()?);
        let kind = ours.metadata()?.file_type();
        if kind.is_file() {
            return Ok(Self::Reopened { offset: ours.stream_position()? });
        }
        if kind.is_fifo() || kind.is_socket() {
            if SPOOLED.get().is_none() {
                let mut copy = unnamed(&std::env::temp_dir())?;
                let bytes = io::copy(&mut ours, &mut copy)?;
                // Nobody else can have set it: standard input is read here only.
                let _ = SPOOLED.set((copy, bytes));
            }
            if let Some((copy, bytes)) = SPOOLED.get() {
                return Ok(Self::Spooled { copy: reopened(copy)?, bytes: *bytes });
            }
        }
        Ok(Self::Inherited)
    }

    /// A file that every run reads from its start; `null` is `/dev/null`.
    ///
    /// # Errors
    /// If it cannot be opened.
    pub fn file(path: &Path) -> io::Result<Self> {
        let path = if path == Path::new("null") { Path::new("/dev/null") } else { path };
        let with_path = |source: io::Error| {
            io::Error::new(source.kind(), format!("{}: {source}", path.display()))
        };
        File::open(path).map(Self::Named).map_err(with_path)
    }

    /// The stream for the next run, at the input's start.
    ///
    /// # Errors
    /// If the file cannot be opened again or rewound.
    pub fn stream(&self) -> io::Result<Stream> {
        match self {
            Self::Inherited => Ok(Stream::Inherit),
            Self::Reopened { offset } => {
                let mut file = File::open(OWN_STDIN)?;
                file.seek(SeekFrom::Start(*offset))?;
                Ok(Stream::File(file))
            }
            Self::Named(file) => Ok(Stream::File(reopened(file)?)),
            Self::Spooled { copy, .. } => {
                // Opened again: it has its own position and is read-only.
                let mut file = reopened(copy)?;
                file.rewind()?;
                Ok(Stream::File(file))
            }
        }
    }

    /// What the report says about the input, if anything.
    #[must_use]
    pub fn note(&self) -> Option<String> {
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

/// An unnamed file, which is removed with its last descriptor; only we can read it.
///
/// # Errors
/// If it can be created neither in `dir` nor, if that file system does not support it, in the temporary folder.
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

/// The same file with its own position.
pub(super) fn reopened(file: &File) -> io::Result<File> {
    use std::os::fd::AsRawFd;
    File::open(format!("/proc/self/fd/{}", file.as_raw_fd()))
}
