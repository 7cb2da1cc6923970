//! Separate debug files, which distributions install apart from binaries.
//!
//! A file is taken only if its build-id is the binary's, or if it has the checksum that the binary's link
//! (`.gnu_debuglink`) holds. Nothing is fetched from a network; what was is read by `resolve::fetched`.

use crate::elf::Layout;
use crate::elf::content::Content;
use object::{Object, ReadRef};
use std::fmt::Write;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Where distributions install them.
const ROOT: &str = "/usr/lib/debug";

/// Of larger files no checksum is computed.
const LARGEST: u64 = 1 << 30;

/// A binary and its separate debug files.
#[derive(Copy, Clone, Debug)]
pub struct Files<'p, R> {
    /// The bytes of the binary.
    pub binary: R,
    /// The bytes of its debug file.
    pub debug: Option<R>,
    /// The bytes of the supplementary file, which several debug files share (`dwz -m`).
    pub shared: Option<R>,
    /// Where the binary is, if that is known: from there the parts of split debug information are looked for.
    pub path: Option<&'p Path>,
}

impl<R> Files<'_, R> {
    /// A binary without separate debug files.
    pub fn of(binary: R) -> Self {
        Self { binary, debug: None, shared: None, path: None }
    }
}

/// The separate debug files of a binary.
#[derive(Default)]
pub(crate) struct SeparateDebug<'f> {
    /// The binary's own debug file.
    pub(crate) debug: Option<Content<'f>>,
    /// The supplementary file of that, or of the binary itself (`dwz -m`).
    pub(crate) shared: Option<Content<'f>>,
    /// Where the binary is.
    path: Option<PathBuf>,
}

impl<'f> SeparateDebug<'f> {
    /// The separate files of `binary`, which was mapped from `path`; none if that is not known.
    pub(crate) fn of<'d, R: ReadRef<'d>>(binary: R, path: Option<&Path>) -> Self {
        path.map(|path| Self::below(Path::new(ROOT), binary, path)).unwrap_or_default()
    }

    /// `binary` together with these files.
    pub(crate) fn files<'s>(&'s self, binary: &'s Content<'f>) -> Files<'s, &'s Content<'f>> {
        let (debug, shared) = (self.debug.as_ref(), self.shared.as_ref());
        Files { binary, debug, shared, path: self.path.as_deref() }
    }

    fn below<'d, R: ReadRef<'d>>(root: &Path, binary: R, path: &Path) -> Self {
        let own = find_below(root, binary, path);
        let shared = match &own {
            Some((place, content)) => shared(root, content, place),
            None => shared(root, binary, path),
        };
        Self { debug: own.map(|(_, content)| content), shared, path: Some(path.to_owned()) }
    }
}

/// The separate debug file of `binary`, which was mapped from `path`.
pub(crate) fn find<'d, 'f, R: ReadRef<'d>>(binary: R, path: &Path) -> Option<Content<'f>> {
    find_below(Path::new(ROOT), binary, path).map(|(_, content)| content)
}

fn find_below<'d, 'f, R: ReadRef<'d>>(
    root: &Path,
    binary: R,
    path: &Path,
) -> Option<(PathBuf, Content<'f>)> {
    let wanted = Layout::read(binary).ok()?.build_id;
    let link = object::File::parse(binary).ok().and_then(|f| f.gnu_debuglink().ok().flatten());
    let (name, sum) = link.map_or((None, None), |(name, sum)| (plain(name), Some(sum)));
    if let Some(found) = by_id(root, &wanted) {
        return Some(found);
    }
    let candidates = name.into_iter().flat_map(|name| candidates(root, path, name));
    candidates.filter_map(opened).find(|(place, content)| {
        if wanted.is_empty() {
            sum.is_some() && sum == checksum(place)
        } else {
            has_build_id(content, &wanted)
        }
    })
}

/// The supplementary file of the debug file `described`, which is at `place`, if it is installed.
pub(crate) fn supplement<'d, 'f, R: ReadRef<'d>>(
    described: R,
    place: &Path,
) -> Option<Content<'f>> {
    shared(Path::new(ROOT), described, place)
}

/// The build-id of that file, if it is not installed.
pub(crate) fn missing_supplement<'d, R: ReadRef<'d>>(described: R, place: &Path) -> Option<String> {
    let (_, wanted) = link_to_shared(described)?;
    supplement(described, place).is_none().then_some(wanted)
}

/// The supplementary file of `described`, which is at `place`.
fn shared<'d, 'f, R: ReadRef<'d>>(root: &Path, described: R, place: &Path) -> Option<Content<'f>> {
    let (name, wanted) = link_to_shared(described)?;
    if let Some((_, content)) = by_id(root, &wanted) {
        return Some(content);
    }
    let name = Path::new(std::str::from_utf8(name).ok()?);
    // An absolute name replaces the folder.
    let (_, content) = opened(place.parent()?.join(name))?;
    has_build_id(&content, &wanted).then_some(content)
}

/// Name and build-id of the supplementary file that `described` refers to.
fn link_to_shared<'d, R: ReadRef<'d>>(described: R) -> Option<(&'d [u8], String)> {
    let file = object::File::parse(described).ok()?;
    let (name, id) = file.gnu_debugaltlink().ok().flatten()?;
    Some((name, in_hexadecimal(id)))
}

/// A file name without a folder: it must not lead elsewhere.
fn plain(name: &[u8]) -> Option<&str> {
    std::str::from_utf8(name).ok().filter(|name| !name.is_empty() && !name.contains('/'))
}

/// The debug file with this build-id below `root`.
fn by_id<'f>(root: &Path, id: &str) -> Option<(PathBuf, Content<'f>)> {
    let (first, rest) = id.split_at_checked(2).filter(|(_, rest)| rest.len() >= 2)?;
    let found = opened(root.join(format!(".build-id/{first}/{rest}.debug")))?;
    has_build_id(&found.1, id).then_some(found)
}

/// Where the debug file `name` of a binary may be that was mapped from `path`.
fn candidates(root: &Path, path: &Path, name: &str) -> Vec<PathBuf> {
    let Some(folder) = path.parent() else { return Vec::new() };
    let within = root.join(folder.strip_prefix("/").unwrap_or(folder));
    [folder.to_owned(), folder.join(".debug"), within].map(|folder| folder.join(name)).into()
}

fn opened<'f>(place: PathBuf) -> Option<(PathBuf, Content<'f>)> {
    let (content, _) = Content::open(&place)?;
    Some((place, content))
}

/// Whether a file has this build-id.
pub(crate) fn has_build_id(content: &Content<'_>, id: &str) -> bool {
    let Some(layout) = Layout::read(content).ok().filter(|_| id.len() >= 4) else { return false };
    if layout.build_id.is_empty() { in_sections(content, id) } else { layout.build_id == id }
}

/// The same of a file without segments, such as `dwz -m` writes for what several files share.
fn in_sections(content: &Content<'_>, id: &str) -> bool {
    let Ok(file) = object::File::parse(content) else { return false };
    file.build_id().ok().flatten().is_some_and(|found| in_hexadecimal(found) == id)
}

fn in_hexadecimal(bytes: &[u8]) -> String {
    let mut text = String::new();
    bytes.iter().take(64).for_each(|byte| _ = write!(text, "{byte:02x}"));
    text
}

/// The checksum by which a binary without a build-id identifies its debug file.
fn checksum(place: &Path) -> Option<u32> {
    let mut file = File::open(place).ok()?;
    let mut rest = file.metadata().ok().map(|m| m.len()).filter(|len| *len <= LARGEST)?;
    let mut sum = crc32fast::Hasher::new();
    let mut piece = vec![0; 1 << 16];
    while rest > 0 {
        let read = file.read(&mut piece).ok().filter(|read| *read > 0)?;
        sum.update(&piece[..read]);
        rest = rest.saturating_sub(read as u64);
    }
    Some(sum.finalize())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::process::Command;

    /// A folder with a program split into a stripped binary and its debug file; none if the tools are missing.
    fn split(name: &str, build_id: &str) -> Option<PathBuf> {
        let folder = std::env::temp_dir().join(format!("dw-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a temporary folder");
        fs::write(folder.join("a.c"), "int main(void) { return 0; }\n").expect("our own folder");
        let run = |words: &[&str]| {
            let done = Command::new(words[0]).args(&words[1..]).current_dir(&folder).status();
            done.is_ok_and(|status| status.success())
        };
        let id = format!("-Wl,--build-id={build_id}");
        let made = run(&["gcc", "-g", &id, "-o", "a", "a.c"])
            && run(&["objcopy", "--only-keep-debug", "a", "a.debug"])
            && run(&["objcopy", "--strip-all", "--add-gnu-debuglink=a.debug", "a"]);
        if !made {
            let _ = fs::remove_dir_all(&folder);
        }
        made.then_some(folder)
    }

    fn found(root: &Path, folder: &Path) -> bool {
        let binary = fs::read(folder.join("a")).expect("it was built");
        find_below(root, binary.as_slice(), &folder.join("a")).is_some()
    }

    #[test]
    fn a_debug_file_is_found_by_its_build_id_and_no_other_is_taken() {
        let Some(folder) = split("by-id", "0xabcdef12") else { return };
        let root = folder.join("root");
        assert!(found(&root, &folder), "beside the binary");
        let place = root.join(".build-id/ab");
        fs::create_dir_all(&place).expect("our own folder");
        fs::rename(folder.join("a.debug"), place.join("cdef12.debug")).expect("our own files");
        assert!(found(&root, &folder), "below the root");
        let other = split("other-id", "0xabcdef13").expect("it worked before");
        fs::rename(other.join("a.debug"), place.join("cdef12.debug")).expect("our own files");
        assert!(!found(&root, &folder), "another binary's");
        for folder in [folder, other] {
            fs::remove_dir_all(folder).expect("our own folder");
        }
    }

    #[test]
    fn without_a_build_id_the_checksum_of_the_link_must_match() {
        let Some(folder) = split("by-sum", "none") else { return };
        assert!(found(&folder.join("root"), &folder));
        let mut bytes = fs::read(folder.join("a.debug")).expect("it was split off");
        let last = bytes.len() - 1;
        bytes[last] ^= 1;
        fs::write(folder.join("a.debug"), bytes).expect("our own folder");
        assert!(!found(&folder.join("root"), &folder));
        fs::remove_dir_all(folder).expect("our own folder");
    }

    #[test]
    fn what_several_files_share_is_found_by_its_build_id_and_its_name() {
        let Some(folder) = split("shared", "0xabcdef12") else { return };
        let (own, other) = (folder.join("a.debug"), folder.join("b.debug"));
        fs::copy(&own, &other).expect("our own folder");
        let shared = folder.join("shared.debug");
        let done = Command::new("dwz").arg("-m").args([&shared, &own, &other]).status();
        if !done.is_ok_and(|status| status.success()) || !shared.exists() {
            eprintln!("SKIPPED: no dwz");
            fs::remove_dir_all(folder).expect("our own folder");
            return;
        }
        let binary = fs::read(folder.join("a")).expect("it was built");
        let found = |root: &Path| {
            SeparateDebug::below(root, binary.as_slice(), &folder.join("a")).shared.is_some()
        };
        let root = folder.join("root");
        assert!(found(&root), "beside the debug file");
        let (content, _) = Content::open(&own).expect("dwz wrote it");
        assert_eq!(missing_supplement(&content, &own), None);
        let wanted = link_to_shared(&content).expect("dwz made a link").1;
        let place = root.join(".build-id").join(&wanted[..2]);
        fs::create_dir_all(&place).expect("our own folder");
        let below = place.join(format!("{}.debug", &wanted[2..]));
        fs::rename(&shared, &below).expect("our own files");
        assert!(found(&root), "below the root");
        assert_eq!(missing_supplement(&content, &own), Some(wanted), "not where it is installed");
        fs::copy(&other, &below).expect("our own files");
        assert!(!found(&root), "another file");
        fs::remove_dir_all(folder).expect("our own folder");
    }
}
