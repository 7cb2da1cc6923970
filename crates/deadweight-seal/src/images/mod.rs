//! The images that processes map: the file behind each, opened while it still exists.
//!
//! - In: mappings.
//! - Out: image ids, load bias, bytes and call frames of an image; names of JIT code (`perf_map`).
//! - Must not know: names and lines; see `resolve`.
//!
//! A file is opened when it is first mapped and kept open: a program that is deleted or replaced
//! while it runs (`go run`, a test binary) is still read at the end.

mod own_maps;
mod perf_map;

use self::own_maps::own_vdso;
use self::perf_map::{ListedNames, PerfMap};
use crate::cfi::{self, CallFrames};
use crate::elf::Layout;
use crate::elf::content::{Content, regular_file};
use deadweight_trace::ids::{ImageId, NameId, Tid};
use deadweight_trace::symbols::{Image, Symbols};
use std::collections::HashMap;
use std::fs::{self, File, Metadata};
use std::io::Cursor;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

pub(crate) use own_maps::{Mapped, OWN_MAPS, mapped};
pub use perf_map::named_by_perf_map;

/// How many files are kept open; further ones are opened again when they are read.
const MOST_OPEN: usize = 200;

/// Images that are distinguished; further ones are unknown.
const MOST_IMAGES: usize = 100_000;

/// Writable ranges that are distinguished in one image; beyond, the whole image counts as writable.
const MOST_REWRITTEN: usize = 1_000;
/// The end of a warning about a file without names.
const NO_NAMES: &str = "its code has no names";

/// A mapping as the recorder saw it.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Mapping<'a> {
    /// The process.
    pub(crate) process: Tid,
    /// First address.
    pub(crate) start: u64,
    /// Bytes.
    pub(crate) len: u64,
    /// Offset in the file.
    pub(crate) offset: u64,
    /// Inode, 0 where unknown.
    pub(crate) inode: u64,
    /// As the kernel prints it.
    pub(crate) path: &'a str,
}

/// Distinguishes files that a path named at different times.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
struct Identity {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
}

impl Identity {
    fn of(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
        }
    }
}

/// Where an image's bytes are.
#[derive(Debug)]
enum Source {
    /// Nowhere: only the name is known.
    None,
    /// The running kernel.
    Kernel,
    /// A file; open unless too many are.
    File { path: PathBuf, open: Option<File>, identity: Identity },
    /// Code that the kernel puts into every process.
    Memory(Vec<u8>),
    /// JIT code of a process, and the perf map that may name it.
    Jit(Option<PerfMap>),
}

/// One image.
#[derive(Debug)]
struct Binary {
    source: Source,
    layout: Option<Layout>,
    frames: Option<Option<CallFrames>>,
    /// Addresses that a process made writable: the code there may differ from the file's.
    rewritten: Vec<Range<u64>>,
}

/// All images, numbered as in [`Symbols::images`].
#[derive(Debug, Default)]
pub(crate) struct Images {
    binaries: Vec<Binary>,
    by_identity: HashMap<(String, Option<Identity>), ImageId>,
    open: usize,
    /// The size of the largest file, in bytes.
    pub(crate) largest: u64,
    kernel: Option<ImageId>,
    /// JIT code of each process.
    jit: HashMap<Tid, ImageId>,
    /// Files that were opened before they were deleted.
    kept: Vec<(PathBuf, File)>,
    /// Start of the recording, in seconds since 1970.
    began: i64,
    /// What could not be read, once per image.
    pub(crate) warnings: Vec<String>,
}

/// The image of code that is in no known file.
const UNKNOWN: ImageId = ImageId(0);

impl Images {
    /// Has only the unknown image. `began` is the start of the recording in seconds since 1970.
    pub(crate) fn new(symbols: &mut Symbols, began: i64) -> Self {
        let mut images = Self { began, ..Self::default() };
        images.add(symbols, "[unknown]", Source::None, None);
        images
    }

    /// A program was executed from this path; it was this file then.
    pub(crate) fn keep(&mut self, path: PathBuf, file: File) {
        self.kept.push((path, file));
    }

    /// The kernel's image.
    pub(crate) fn kernel(&mut self, symbols: &mut Symbols) -> ImageId {
        if let Some(id) = self.kernel {
            return id;
        }
        let id = self.add(symbols, "[kernel]", Source::Kernel, None);
        self.kernel = Some(id);
        id
    }

    /// The image of a mapping, and live minus file address.
    pub(crate) fn map(&mut self, symbols: &mut Symbols, mapping: &Mapping<'_>) -> (ImageId, u64) {
        let id = match mapping.path {
            // JIT code is identified by its live address.
            "" | "//anon" => return (self.jit(symbols, mapping.process), 0),
            "[vdso]" => self.vdso(symbols),
            path if path.starts_with('/') && !path.starts_with("//") => self.file(symbols, mapping),
            path => self.named(symbols, path),
        };
        let bias = match &self.binaries[id.index()].layout {
            Some(layout) => layout.bias(mapping.start, mapping.offset),
            // Without segments the address is the offset in the file.
            None => mapping.start.wrapping_sub(mapping.offset),
        };
        (id, bias)
    }

    /// The unwind sections of an image, read on first use; none if it has none.
    pub(crate) fn call_frames(&mut self, id: ImageId) -> Option<&mut CallFrames> {
        let binary = self.binaries.get_mut(id.index())?;
        if binary.frames.is_none() {
            let content = content(&binary.source).ok();
            let (frames, is_damaged) =
                content.map_or((None, false), |content| cfi::call_frames(&content));
            binary.frames = Some(frames);
            if is_damaged && let Source::File { path, .. } = &binary.source {
                self.warnings.push(format!(
                    "{}: has damaged unwind tables; callers may be missing in its stacks",
                    path.display()
                ));
            }
        }
        binary.frames.as_mut()?.as_mut()
    }

    /// Whether an image is the kernel.
    pub(crate) fn is_kernel(&self, id: ImageId) -> bool {
        self.kernel == Some(id)
    }

    /// The bytes of an image, or why they cannot be read: empty for code that is in no file.
    pub(crate) fn content(&self, id: ImageId) -> Result<Content<'_>, String> {
        self.binaries.get(id.index()).map_or(Err(String::new()), |binary| content(&binary.source))
    }

    /// Adds a warning about the file at `path`, once; `what` follows the path. Of several reasons why its code has no names
    /// the first one remains.
    pub(crate) fn warn(&mut self, path: &str, what: &str) {
        let warning = format!("{path}: {what}");
        let of_file =
            |other: &String| other.strip_prefix(path).is_some_and(|other| other.starts_with(": "));
        let nameless = |text: &str| text.ends_with(NO_NAMES);
        let before = |other: &String| nameless(other) && of_file(other);
        let again = nameless(what) && self.warnings.iter().any(before);
        if !again && !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }

    /// A process made these addresses of an image writable.
    pub(crate) fn rewrite(&mut self, id: ImageId, range: Range<u64>) {
        let Some(binary) = self.binaries.get_mut(id.index()) else { return };
        if binary.rewritten.len() < MOST_REWRITTEN && !binary.rewritten.contains(&range) {
            binary.rewritten.push(range);
        }
    }

    /// Whether a process may have changed what is at these addresses of an image.
    pub(crate) fn is_rewritten(&self, id: ImageId, range: Range<u64>) -> bool {
        let rewritten = self.binaries.get(id.index()).map_or(&[][..], |b| &b.rewritten);
        rewritten.len() >= MOST_REWRITTEN
            || rewritten.iter().any(|r| r.start < range.end && range.start < r.end)
    }

    /// Whether an image is a 32-bit file.
    pub(crate) fn is_32_bit(&self, id: ImageId) -> bool {
        let layout = self.binaries.get(id.index()).and_then(|binary| binary.layout.as_ref());
        layout.is_some_and(|layout| layout.is_32_bit)
    }

    /// Path of the file behind an image, with its device and inode.
    pub(crate) fn file_of(&self, id: ImageId) -> Option<(&Path, (u64, u64))> {
        match &self.binaries.get(id.index())?.source {
            Source::File { path, identity, .. } => Some((path, (identity.device, identity.inode))),
            _ => None,
        }
    }

    fn add(
        &mut self,
        symbols: &mut Symbols,
        path: &str,
        source: Source,
        layout: Option<Layout>,
    ) -> ImageId {
        let id = ImageId::at(symbols.images.len());
        let path = symbols.intern(path);
        symbols.images.push(Image { path, build_id: NameId(0), ..Image::default() });
        self.binaries.push(Binary { source, layout, frames: None, rewritten: Vec::new() });
        id
    }

    /// An image that is a name only.
    pub(crate) fn named(&mut self, symbols: &mut Symbols, name: &str) -> ImageId {
        let key = (name.to_owned(), None);
        match self.by_identity.get(&key) {
            Some(id) => *id,
            None if self.binaries.len() >= MOST_IMAGES => UNKNOWN,
            None => {
                let id = self.add(symbols, name, Source::None, None);
                self.by_identity.insert(key, id);
                id
            }
        }
    }

    /// The image of a process's JIT code.
    fn jit(&mut self, symbols: &mut Symbols, process: Tid) -> ImageId {
        if let Some(id) = self.jit.get(&process) {
            return *id;
        }
        if self.binaries.len() >= MOST_IMAGES {
            return UNKNOWN;
        }
        let source = Source::Jit(PerfMap::of(process.0, self.began));
        let id = self.add(symbols, "[anonymous]", source, None);
        self.jit.insert(process, id);
        id
    }

    /// The process starts, or executes another program: it has no JIT code yet.
    pub(crate) fn forget(&mut self, process: Tid) {
        self.jit.remove(&process);
    }

    /// What the perf map of a JIT image says about these addresses, in ascending order, and the map's path.
    pub(crate) fn listed(&self, id: ImageId, addresses: &[u64]) -> Option<(String, ListedNames)> {
        match &self.binaries.get(id.index())?.source {
            Source::Jit(Some(map)) => Some((map.path(), map.names(addresses)?)),
            _ => None,
        }
    }

    fn vdso(&mut self, symbols: &mut Symbols) -> ImageId {
        let key = ("[vdso]".to_owned(), None);
        if let Some(id) = self.by_identity.get(&key) {
            return *id;
        }
        let source = own_vdso().map_or(Source::None, Source::Memory);
        let layout = content(&source).ok().and_then(|content| Layout::read(&content).ok());
        let id = self.add(symbols, "[vdso]", source, layout);
        self.by_identity.insert(key, id);
        id
    }

    fn file(&mut self, symbols: &mut Symbols, mapping: &Mapping<'_>) -> ImageId {
        let name = mapping.path.strip_suffix(" (deleted)").unwrap_or(mapping.path);
        let found = self.locate(mapping, name);
        let identity = found.as_ref().map(|(_, metadata)| Identity::of(metadata));
        let key = (name.to_owned(), identity);
        if let Some(id) = self.by_identity.get(&key) {
            return *id;
        }
        if self.binaries.len() >= MOST_IMAGES {
            return UNKNOWN;
        }
        let id = match found {
            Some((path, metadata)) => self.open(symbols, name, path, &metadata),
            None => {
                self.warn(
                    name,
                    "the file that was mapped is gone or replaced; its code has no names",
                );
                self.add(symbols, name, Source::None, None)
            }
        };
        self.by_identity.insert(key, id);
        id
    }

    /// Where the mapped file can be opened: by its path, by the process's view of it, or through the kernel's link
    /// for the mapping if it was deleted.
    fn locate(&self, mapping: &Mapping<'_>, name: &str) -> Option<(PathBuf, Metadata)> {
        let process = mapping.process.0;
        let end = mapping.start.wrapping_add(mapping.len);
        let inside = format!("/proc/{process}/root{name}");
        let kept = format!("/proc/{process}/map_files/{:x}-{end:x}", mapping.start);
        let candidates = || [name, &inside, &kept].into_iter().filter_map(located);
        let same = |metadata: &Metadata| mapping.inode == 0 || metadata.ino() == mapping.inode;
        // Layered file systems (overlayfs) give the mapped file and its path different inodes: a file that has not
        // changed since before the recording is taken for the mapped one.
        let older = |metadata: &Metadata| metadata.ctime() < self.began;
        candidates()
            .find(|(_, metadata)| same(metadata))
            .or_else(|| candidates().find(|(_, metadata)| older(metadata)))
            .or_else(|| {
                let kept = self.kept.iter().find(|(path, _)| path.as_os_str() == name)?;
                located(&format!("/proc/self/fd/{}", kept.1.as_raw_fd()))
            })
    }

    fn open(
        &mut self,
        symbols: &mut Symbols,
        name: &str,
        path: PathBuf,
        metadata: &Metadata,
    ) -> ImageId {
        let identity = Identity::of(metadata);
        self.largest = self.largest.max(metadata.len());
        let open = File::open(&path).ok();
        let mut source = Source::File { path, open, identity };
        let layout = content(&source).and_then(|content| Layout::read(&content));
        if let Source::File { open, .. } = &mut source {
            if self.open < MOST_OPEN {
                self.open += usize::from(open.is_some());
            } else {
                *open = None;
            }
        }
        let id = self.add(symbols, name, source, layout.as_ref().ok().cloned());
        match layout {
            Err(why) => self.warn(name, &format!("{why}; its code has no names")),
            Ok(layout) => symbols.images[id.index()].build_id = symbols.intern(&layout.build_id),
        }
        id
    }
}

fn located(path: &str) -> Option<(PathBuf, Metadata)> {
    let path = PathBuf::from(path);
    let metadata = regular_file(&path)?;
    Some((path, metadata))
}

fn content(source: &Source) -> Result<Content<'_>, String> {
    match source {
        Source::None | Source::Kernel | Source::Jit(_) => Err(String::new()),
        Source::Memory(bytes) => {
            Ok(Content::new(Cursor::new(bytes.as_slice()), bytes.len() as u64))
        }
        Source::File { path, open, identity } => {
            let unreadable = |error: std::io::Error| format!("cannot be read ({error})");
            let now = match open {
                Some(file) => file.metadata(),
                None => fs::metadata(path),
            };
            if Identity::of(&now.map_err(unreadable)?) != *identity {
                return Err("changed while it was mapped".to_owned());
            }
            Ok(match open {
                Some(file) => Content::new(file, identity.size),
                None => Content::new(File::open(path).map_err(unreadable)?, identity.size),
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, SystemTime};

    /// A copy of our own binary that tests may damage, and its mapping.
    fn copy(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("deadweight-{name}-{}", std::process::id()));
        fs::copy("/proc/self/exe", &path).expect("a temporary file");
        path
    }

    fn mapping(path: &Path, inode: u64) -> Mapping<'_> {
        let path = path.to_str().expect("a plain name");
        // A process that does not exist: only the path is left.
        Mapping { process: Tid(u32::MAX), start: 0x1000, len: 0x1000, offset: 0, inode, path }
    }

    #[test]
    fn a_file_rewritten_after_it_was_mapped_is_not_read() {
        let (path, mut symbols) = (copy("rewritten"), Symbols::default());
        let mut images = Images::new(&mut symbols, 0);
        let (id, _) = images.map(&mut symbols, &mapping(&path, 0));
        assert!(images.content(id).is_ok());
        let file = File::options().write(true).open(&path).expect("our own file");
        file.set_modified(SystemTime::now() + Duration::from_secs(5)).expect("our own file");
        assert_eq!(images.content(id).err().as_deref(), Some("changed while it was mapped"));
        let (again, _) = images.map(&mut symbols, &mapping(&path, 0));
        assert_ne!(id, again, "another content is another image");
        fs::remove_file(path).expect("our own file");
    }

    #[test]
    fn a_deleted_file_is_still_read_and_a_replaced_one_is_not_taken_for_it() {
        let (path, mut symbols) = (copy("replaced"), Symbols::default());
        let mut images = Images::new(&mut symbols, 0);
        let inode = fs::metadata(&path).expect("our own file").ino();
        let (id, _) = images.map(&mut symbols, &mapping(&path, inode));
        fs::remove_file(&path).expect("our own file");
        assert!(images.content(id).is_ok());
        let other = copy("replaced");
        let (wrong, _) = images.map(&mut symbols, &mapping(&path, inode + 1_000_000));
        assert!(images.content(wrong).is_err());
        assert_eq!(images.warnings.len(), 1, "{:?}", images.warnings);
        fs::remove_file(other).expect("our own file");
    }

    #[test]
    fn a_deleted_file_is_read_from_the_kept_descriptor() {
        let path = copy("kept");
        let inode = fs::metadata(&path).unwrap().ino();
        let mut symbols = Symbols::default();
        let mut images = Images::new(&mut symbols, 0);
        images.keep(path.clone(), File::open(&path).unwrap());
        fs::remove_file(&path).unwrap();
        let (id, _) = images.map(&mut symbols, &mapping(&path, inode));
        assert!(images.content(id).is_ok());
        assert_eq!(images.warnings, Vec::<String>::new());
    }

    #[test]
    fn mappings_without_a_file_have_only_a_name() {
        let mut symbols = Symbols::default();
        let mut images = Images::new(&mut symbols, 0);
        for (path, name) in [("//anon", "[anonymous]"), ("[heap]", "[heap]"), ("", "[anonymous]")] {
            let (id, _) = images.map(&mut symbols, &mapping(Path::new(path), 0));
            assert_eq!(symbols.name(symbols.images[id.index()].path), name);
            assert!(images.call_frames(id).is_none());
        }
        let (vdso, _) = images.map(&mut symbols, &mapping(Path::new("[vdso]"), 0));
        assert!(images.call_frames(vdso).is_some());
        assert!(images.warnings.is_empty());
    }
}
