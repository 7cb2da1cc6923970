//! A copy of a binary with other bytes at some places, in a private folder; the other side has an unchanged copy.
//!
//! The binary itself is only read. Does not choose the patches (`deadweight_code::removal`).

use super::{About, Control, Folder, Sides};
use crate::running::series::{RunChanges, RunOptions};
use deadweight_record::Substitute;
use deadweight_report::report::Means;
use deadweight_trace::patch::Patch;
use object::{Object, ObjectSegment};
use std::fs::{self, DirBuilder, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

pub(super) const ABOUT: About = About {
    means: Means::PatchedCopy,
    classes: &["atomics", "bounds-checks", "zeroing"],
    how: "a copy of the binary, in which these instructions do nothing, is mounted over it for these runs; the other side has an \
          unchanged copy",
    besides: "files and messages that a copy writes may be wrong; they are not compared",
    noticed: "output and exit status; for zeroing also with fresh memory that is not zero; a program that reads its own file \
              is found by a copy that is one byte longer",
};

/// The sides: an unchanged copy, and a patched one.
pub(super) fn sides(
    binary: &Path,
    patches: &[Patch],
    options: &RunOptions,
    folder: &Folder,
) -> Result<Sides, String> {
    let Copies { original, patched } = copies(folder, binary, patches)?;
    let longer = folder.path().join("longer").join(binary.file_name().unwrap_or_default());
    let side = |copy| {
        let substitute = Some(Substitute { binary: binary.to_owned(), copy });
        let changes = RunChanges { substitute, ..options.changes.clone() };
        RunOptions { changes, ..options.clone() }
    };
    let run = side(longer.clone());
    let control = Some(Control { run, original: original.clone(), longer });
    Ok(Sides { control, ..Sides::new(side(original), side(patched)) })
}

/// Set-user-id, set-group-id and sticky bits of a file's mode.
const SPECIAL: u32 = 0o7000;
/// The extended attribute that holds file capabilities.
const CAPABILITIES: &str = "security.capability";

/// Two copies of a binary.
#[derive(Clone, Debug)]
struct Copies {
    /// Unchanged.
    original: PathBuf,
    /// With the patches.
    patched: PathBuf,
}

/// Makes both copies of `binary` and applies `patches` to one. Removes earlier copies.
///
/// # Errors
/// The reason why it cannot be copied or patched, in words.
fn copies(folder: &Folder, binary: &Path, patches: &[Patch]) -> Result<Copies, String> {
    for part in ["original", "patched", "longer"] {
        // A folder that cannot be removed makes the next copy fail.
        let _ = fs::remove_dir_all(folder.path().join(part));
    }
    let cannot = |what: &str| {
        let what = format!("{what} {}", binary.display());
        move |error: io::Error| format!("cannot {what}: {error}")
    };
    let meta = fs::metadata(binary).map_err(cannot("read"))?;
    if is_privileged(binary, &meta) {
        return Err(format!(
            "{} has its own privileges (set-user-id or capabilities), which a copy would lack",
            binary.display()
        ));
    }
    let mut bytes = fs::read(binary).map_err(cannot("read"))?;
    let write = |part: &str, bytes: &[u8]| {
        write_copy(&folder.path().join(part), binary, bytes, &meta).map_err(cannot("copy"))
    };
    let original = write("original", &bytes)?;
    apply(&mut bytes, patches)
        .map_err(|why| format!("{} cannot be patched: {why}", binary.display()))?;
    Ok(Copies { original, patched: write("patched", &bytes)? })
}

/// Writes `bytes` into `folder` under the binary's name, with its permissions.
fn write_copy(folder: &Path, binary: &Path, bytes: &[u8], meta: &Metadata) -> io::Result<PathBuf> {
    DirBuilder::new().mode(0o700).create(folder)?;
    let path = folder.join(binary.file_name().unwrap_or_default());
    fs::write(&path, bytes)?;
    fs::set_permissions(&path, Permissions::from_mode(meta.permissions().mode() & 0o777))?;
    Ok(path)
}

/// Whether a program gets more privileges than the user who runs it.
fn is_privileged(binary: &Path, meta: &Metadata) -> bool {
    let nothing: &mut [u8] = &mut [];
    let capable = rustix::fs::getxattr(binary, CAPABILITIES, nothing).is_ok_and(|size| size > 0);
    meta.permissions().mode() & SPECIAL != 0 || capable
}

/// Applies patches to an ELF file, at the offsets that its program headers give for their addresses.
///
/// # Errors
/// If it is not an ELF file, or holds other bytes there than the recorded ones.
pub(super) fn apply(file: &mut [u8], patches: &[Patch]) -> Result<(), String> {
    let mut offsets = Vec::with_capacity(patches.len());
    {
        let elf = object::File::parse(&*file).map_err(|error| error.to_string())?;
        for patch in patches {
            let offset = elf.segments().find_map(|segment| {
                let into = patch.addr.0.checked_sub(segment.address())?;
                let (start, size) = segment.file_range();
                let end = into.checked_add(patch.was.len() as u64)?;
                (end <= size).then(|| usize::try_from(start + into).ok())?
            });
            offsets.push(offset.ok_or("it is shorter than the recorded one")?);
        }
    }
    for (at, patch) in offsets.into_iter().zip(patches) {
        let there = file.get_mut(at..at.saturating_add(patch.becomes.len()));
        match there {
            Some(there) if *there == patch.was[..] => there.copy_from_slice(&patch.becomes),
            _ => return Err("it is another file than the recorded one".into()),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use deadweight_trace::units::FileAddr;

    /// The smallest ELF file with code: 16 bytes at address 0x401000, which lie at offset 0x78.
    fn elf() -> Vec<u8> {
        let mut file = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
        let word = |file: &mut Vec<u8>, size: usize, value: u64| {
            file.extend_from_slice(&value.to_le_bytes()[..size]);
        };
        for (size, value) in
            [(2, 2), (2, 62), (4, 1), (8, 0x401_000), (8, 64), (8, 0), (4, 0), (2, 64), (2, 56)]
        {
            word(&mut file, size, value);
        }
        for (size, value) in [(2, 1), (2, 64), (2, 0), (2, 0)] {
            word(&mut file, size, value);
        }
        for (size, value) in [(4, 1), (4, 5), (8, 0x78), (8, 0x401_000), (8, 0x401_000)] {
            word(&mut file, size, value);
        }
        for value in [16, 16, 0x1000] {
            word(&mut file, 8, value);
        }
        assert_eq!(file.len(), 0x78);
        file.extend(0..16);
        file
    }

    fn patch(addr: u64, was: &[u8], becomes: &[u8]) -> Patch {
        Patch { addr: FileAddr(addr), was: was.to_vec(), becomes: becomes.to_vec() }
    }

    #[test]
    fn bytes_are_patched_where_program_headers_say() {
        let mut file = elf();
        apply(&mut file, &[patch(0x401_002, &[2, 3], &[0x66, 0x90])]).unwrap();
        assert_eq!(file[0x78..0x7e], [0, 1, 0x66, 0x90, 4, 5]);
    }

    #[test]
    fn another_file_than_the_recorded_one_is_left_alone() {
        let refusal = |file: &mut [u8], patch| apply(file, &[patch]).unwrap_err();
        let mut file = elf();
        assert!(refusal(&mut file, patch(0x401_002, &[9], &[0])).contains("another"));
        assert!(refusal(&mut file, patch(0x401_00f, &[15, 16], &[0, 0])).contains("shorter"));
        assert!(refusal(&mut file, patch(0x40, &[15], &[0])).contains("shorter"));
        assert_eq!(file, elf());
        assert!(apply(&mut [1, 2, 3], &[]).is_err());
    }

    #[test]
    fn copies_have_the_binarys_name_and_are_removed_with_the_folder() {
        let folder = Folder::new().unwrap();
        let at = folder.path().to_owned();
        let binary = at.join("program");
        fs::write(&binary, elf()).unwrap();
        fs::set_permissions(&binary, Permissions::from_mode(0o755)).unwrap();
        let made = copies(&folder, &binary, &[patch(0x401_000, &[0], &[0x90])]).unwrap();
        assert_eq!(fs::read(&binary).unwrap(), elf());
        assert_eq!(fs::read(&made.original).unwrap(), elf());
        assert_eq!(fs::read(&made.patched).unwrap()[0x78], 0x90);
        assert_eq!(made.patched.file_name(), binary.file_name());
        assert_eq!(fs::metadata(&at).unwrap().permissions().mode() & 0o777, 0o700);
        fs::set_permissions(&binary, Permissions::from_mode(0o4755)).unwrap();
        assert!(copies(&folder, &binary, &[]).unwrap_err().contains("its own privileges"));
        drop(folder);
        assert!(!at.exists());
    }
}
