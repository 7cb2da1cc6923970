//! Debug information that distributions keep in a file of its own.
//!
//! Only a file with the binary's build-id is taken. Nothing is fetched from a network.

use super::content::Content;
use super::elf::Layout;
use object::{Object, ReadRef};
use std::fs::{self, File, Metadata};
use std::path::{Path, PathBuf};

/// Where distributions put them.
const ROOT: &str = "/usr/lib/debug";

/// The separate debug file of `binary`, which was mapped from `path`.
pub(super) fn find<'d, 'f, R: ReadRef<'d>>(binary: R, path: &Path) -> Option<Content<'f>> {
    let wanted = Layout::read(binary).ok()?.build_id;
    if wanted.len() < 4 {
        return None;
    }
    candidates(binary, path, &wanted).into_iter().find_map(|candidate| {
        let metadata = fs::metadata(&candidate).ok().filter(Metadata::is_file)?;
        let content = Content::new(File::open(&candidate).ok()?, metadata.len());
        let found = Layout::read(&content).is_ok_and(|layout| layout.build_id == wanted);
        found.then_some(content)
    })
}

fn candidates<'d, R: ReadRef<'d>>(binary: R, path: &Path, build_id: &str) -> Vec<PathBuf> {
    let (first, rest) = build_id.split_at(2);
    let mut candidates = vec![PathBuf::from(format!("{ROOT}/.build-id/{first}/{rest}.debug"))];
    let link = object::File::parse(binary)
        .ok()
        .and_then(|file| file.gnu_debuglink().ok().flatten())
        .and_then(|(name, _)| std::str::from_utf8(name).ok())
        // A bare file name: it must not lead elsewhere.
        .filter(|name| !name.is_empty() && !name.contains('/'));
    if let (Some(name), Some(folder)) = (link, path.parent()) {
        candidates.push(folder.join(name));
        candidates.push(folder.join(".debug").join(name));
        candidates
            .push(Path::new(ROOT).join(folder.strip_prefix("/").unwrap_or(folder)).join(name));
    }
    candidates
}
