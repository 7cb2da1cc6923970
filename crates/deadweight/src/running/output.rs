//! Output streams of repeated runs: the same kind of file as our own, drained and compared.
//!
//! A program buffers, colours and blocks differently on a file, a pipe and a terminal. So later runs get the same kind
//! of stream as the first one; what they write is read, hashed and dropped. Does not touch the output of the first run,
//! which is the user's.

use super::input::{reopened, unnamed};
use deadweight_record::Stream;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{tcgetattr, tcgetwinsize, tcsetattr, tcsetwinsize};
use std::fs::{File, OpenOptions};
use std::hash::{DefaultHasher, Hasher};
use std::io::{self, IsTerminal, Read, Seek, SeekFrom};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// How long a drained stream may stay open after the command's end: a background process may keep it open forever.
const PATIENCE: Duration = Duration::from_millis(200);

/// Bytes of a run's output that are kept: benchmarks print their results in few lines.
const KEPT: usize = 1 << 16;

/// The name of standard output in reports.
pub const STDOUT: &str = "standard output";

/// What a run wrote to one stream.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Digest {
    /// Bytes written.
    pub bytes: u64,
    hash: u64,
}

/// What a run wrote to standard output and standard error, where it could be read.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// To standard output; with standard error if both are one file.
    pub out: Option<Digest>,
    /// To standard error.
    pub err: Option<Digest>,
}

impl Written {
    /// The stream with other output than in the other run; none if the outputs of both are not known.
    #[must_use]
    pub fn differs_from(self, other: Self) -> Option<&'static str> {
        let unlike = |a, b| matches!((a, b), (Some(a), Some(b)) if a != b);
        match (unlike(self.out, other.out), unlike(self.err, other.err)) {
            (true, _) => Some(STDOUT),
            (_, true) => Some("standard error"),
            _ => None,
        }
    }
}

/// Our own standard output and standard error, and their kinds.
#[derive(Debug)]
pub struct Outputs {
    out: OwnStream,
    err: OwnStream,
    /// Both are the same file (`2>&1`), and must be in later runs.
    joined: bool,
}

/// One of our own streams.
#[derive(Debug)]
struct OwnStream {
    file: File,
    kind: Kind,
    /// The position in a regular file before the first run.
    offset: u64,
}

#[derive(Debug, PartialEq, Eq)]
enum Kind {
    /// A regular file, and its directory.
    File(PathBuf),
    Pipe,
    Terminal,
    /// The file that the user named, truncated for each run.
    Named(PathBuf),
    /// Any other device: `/dev/null`, as a rule.
    Device,
}

/// The drained streams of a run.
#[derive(Debug)]
pub struct DrainedStreams {
    out: Drain,
    err: Option<Drain>,
}

#[derive(Debug)]
enum Drain {
    File(File),
    Thread(Receiver<(Digest, Vec<u8>)>),
    None,
}

impl Outputs {
    /// Examines our own streams.
    ///
    /// # Errors
    /// If the kind of one cannot be read.
    pub fn own() -> io::Result<Self> {
        let out = OwnStream::new(io::stdout().as_fd().try_clone_to_owned()?)?;
        let err = OwnStream::new(io::stderr().as_fd().try_clone_to_owned()?)?;
        let (a, b) = (out.file.metadata()?, err.file.metadata()?);
        let joined = a.dev() == b.dev() && a.ino() == b.ino();
        Ok(Self { out, err, joined })
    }

    /// Redirects standard output: `null`, `pipe`, `inherit` or a file.
    ///
    /// # Errors
    /// If the file cannot be written to.
    pub fn redirect(&mut self, to: &Path) -> io::Result<()> {
        self.out.kind = match to.to_str() {
            Some("pipe") => Kind::Pipe,
            Some("inherit") => Kind::Device,
            Some("null") => Kind::Named("/dev/null".into()),
            _ => Kind::Named(to.to_owned()),
        };
        self.joined = false;
        self.out.named().map(drop)
    }

    /// Replaces devices by files, so that the output of all runs is known.
    #[must_use]
    pub fn read_back(mut self) -> Self {
        for ours in [&mut self.out, &mut self.err] {
            if ours.kind == Kind::Device {
                ours.kind = Kind::File(std::env::temp_dir());
            }
        }
        self
    }

    /// Streams for one more run.
    ///
    /// # Errors
    /// If a stream of this kind cannot be created.
    pub fn drained(&self) -> io::Result<(Stream, Stream, DrainedStreams)> {
        let (out, out_drain) = self.out.drained()?;
        if self.joined {
            let err = match &out {
                Stream::Inherit => Stream::Inherit,
                Stream::File(file) => Stream::File(file.try_clone()?),
            };
            return Ok((out, err, DrainedStreams { out: out_drain, err: None }));
        }
        let (err, err_drain) = self.err.drained()?;
        Ok((out, err, DrainedStreams { out: out_drain, err: Some(err_drain) }))
    }

    /// What the first run wrote, if to files that can be read back.
    #[must_use]
    pub fn written_first(&self) -> Written {
        let err = if self.joined { None } else { self.err.written() };
        Written { out: self.out.written(), err }
    }
}

impl OwnStream {
    fn new(fd: OwnedFd) -> io::Result<Self> {
        let mut file = File::from(fd);
        let meta = file.metadata()?;
        let kind = if meta.is_file() {
            Kind::File(directory(&file))
        } else if meta.file_type().is_fifo() || meta.file_type().is_socket() {
            Kind::Pipe
        } else if file.is_terminal() {
            Kind::Terminal
        } else {
            Kind::Device
        };
        let offset = match kind {
            // Writes with O_APPEND go to the end, whatever the position is.
            Kind::File(_) if appends(&file) => meta.len(),
            Kind::File(_) => file.stream_position()?,
            _ => 0,
        };
        Ok(Self { file, kind, offset })
    }

    fn drained(&self) -> io::Result<(Stream, Drain)> {
        match &self.kind {
            Kind::File(dir) => {
                let file = unnamed(dir)?;
                let read = reopened(&file)?;
                Ok((Stream::File(file), Drain::File(read)))
            }
            Kind::Pipe => {
                let (reader, writer) = io::pipe()?;
                let write = File::from(OwnedFd::from(writer));
                Ok((Stream::File(write), drained_by_thread(reader)))
            }
            Kind::Terminal => {
                let (read, write) = self.terminal()?;
                Ok((Stream::File(write), drained_by_thread(read)))
            }
            Kind::Named(_) => match self.named()? {
                Some(file) => {
                    let read = reopened(&file)?;
                    Ok((Stream::File(file), Drain::File(read)))
                }
                None => Ok((Stream::Inherit, Drain::None)),
            },
            Kind::Device => Ok((Stream::Inherit, Drain::None)),
        }
    }

    /// The file that the user named, truncated.
    fn named(&self) -> io::Result<Option<File>> {
        let Kind::Named(path) = &self.kind else { return Ok(None) };
        File::create(path).map(Some).map_err(|source| {
            io::Error::new(source.kind(), format!("{}: {source}", path.display()))
        })
    }

    /// A pseudo terminal with the same settings as our terminal: our end, and the program's.
    fn terminal(&self) -> io::Result<(File, File)> {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let ours = openpt(flags)?;
        grantpt(&ours)?;
        unlockpt(&ours)?;
        let name = ptsname(&ours, Vec::new())?;
        let path = std::ffi::OsStr::from_bytes(name.as_bytes());
        let theirs =
            OpenOptions::new().read(true).write(true).custom_flags(libc::O_NOCTTY).open(path)?;
        tcsetwinsize(&theirs, tcgetwinsize(&self.file)?)?;
        tcsetattr(&theirs, rustix::termios::OptionalActions::Now, &tcgetattr(&self.file)?)?;
        Ok((File::from(ours), theirs))
    }

    /// What was written to our file since the first run began.
    fn written(&self) -> Option<Digest> {
        if !matches!(self.kind, Kind::File(_)) {
            return None;
        }
        let mut file = reopened(&self.file).ok()?;
        file.seek(SeekFrom::Start(self.offset)).ok()?;
        Some(digest(file).0)
    }
}

impl DrainedStreams {
    /// What the run wrote, and the beginning of its standard output. To be called after it has ended and its streams
    /// were dropped.
    #[must_use]
    pub fn finish(self) -> (Written, String) {
        let (out, text) = self.out.finish().unzip();
        let err = self.err.and_then(Drain::finish).map(|(digest, _)| digest);
        (Written { out, err }, String::from_utf8_lossy(&text.unwrap_or_default()).into_owned())
    }
}

impl Drain {
    fn finish(self) -> Option<(Digest, Vec<u8>)> {
        match self {
            Self::File(file) => Some(digest(file)),
            Self::Thread(digest) => digest.recv_timeout(PATIENCE).ok(),
            Self::None => None,
        }
    }
}

fn drained_by_thread(from: impl Read + Send + 'static) -> Drain {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        // If it took too long, the receiver is gone and the digest is not needed.
        let _ = sender.send(digest(from));
    });
    Drain::Thread(receiver)
}

/// Reads to the end, or to the first error: a terminal whose other end is closed gives an error. Keeps the beginning.
fn digest(mut from: impl Read) -> (Digest, Vec<u8>) {
    let mut kept = Vec::new();
    let mut hasher = DefaultHasher::new();
    let mut buffer = vec![0; 1 << 16];
    let mut bytes = 0;
    loop {
        match from.read(&mut buffer) {
            Ok(0) => break,
            Ok(n) => {
                let part = buffer.get(..n).unwrap_or_default();
                hasher.write(part);
                kept.extend(part.iter().take(KEPT.saturating_sub(kept.len())));
                bytes += n as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    (Digest { bytes, hash: hasher.finish() }, kept)
}

/// The directory of a file, so that its substitute is on the same file system.
fn directory(file: &File) -> PathBuf {
    use std::os::fd::AsRawFd;
    std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()))
        .ok()
        .and_then(|path| Some(path.parent()?.to_path_buf()))
        .filter(|dir| dir.is_dir())
        .unwrap_or_else(std::env::temp_dir)
}

fn appends(file: &File) -> bool {
    rustix::fs::fcntl_getfl(file).is_ok_and(|flags| flags.contains(rustix::fs::OFlags::APPEND))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ours(file: File) -> OwnStream {
        OwnStream::new(file.into()).unwrap()
    }

    fn drained(ours: &OwnStream, text: &[u8]) -> Option<Digest> {
        use io::Write;
        let (stream, drain) = ours.drained().unwrap();
        let Stream::File(mut file) = stream else { panic!("nothing to write to") };
        file.write_all(text).unwrap();
        drop(file);
        drain.finish().map(|(digest, kept)| {
            assert!(text.starts_with(&kept), "the beginning");
            digest
        })
    }

    #[test]
    fn a_pipe_is_drained_through_a_pipe_and_compared() {
        let (_reader, writer) = io::pipe().unwrap();
        let ours = ours(File::from(OwnedFd::from(writer)));
        assert_eq!(ours.kind, Kind::Pipe);
        let long = vec![b'x'; 1 << 20];
        let first = drained(&ours, &long).unwrap();
        assert_eq!(first.bytes, 1 << 20);
        assert_eq!(drained(&ours, &long), Some(first));
        assert_ne!(drained(&ours, b"other"), Some(first));
    }

    #[test]
    fn a_file_is_replaced_by_a_file_and_read_back_from_its_position() {
        use io::Write;
        let mut file = unnamed(&std::env::temp_dir()).unwrap();
        file.write_all(b"before").unwrap();
        let ours = ours(file.try_clone().unwrap());
        assert!(matches!(ours.kind, Kind::File(_)));
        file.write_all(b"text").unwrap();
        assert_eq!(ours.written(), drained(&ours, b"text"));
    }

    #[test]
    fn a_terminal_is_replaced_by_a_terminal() {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let master = openpt(flags).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let path = std::ffi::OsStr::from_bytes(name.as_bytes());
        let file = OpenOptions::new().read(true).write(true).open(path).unwrap();
        let ours = ours(file);
        assert_eq!(ours.kind, Kind::Terminal);
        let (stream, _drain) = ours.drained().unwrap();
        assert!(matches!(stream, Stream::File(f) if f.is_terminal()));
    }

    #[test]
    fn a_device_can_be_replaced_to_know_what_is_written() {
        let null = || ours(OpenOptions::new().write(true).open("/dev/null").unwrap());
        let outputs = Outputs { out: null(), err: null(), joined: false }.read_back();
        let written = drained(&outputs.out, b"text");
        assert_eq!(written.map(|digest| digest.bytes), Some(4));
        assert!(null().drained().is_ok_and(|(_, drain)| drain.finish().is_none()));
    }

    #[test]
    fn a_stream_that_stays_open_is_abandoned() {
        let (reader, _writer) = io::pipe().unwrap();
        assert_eq!(drained_by_thread(reader).finish(), None);
    }
}
