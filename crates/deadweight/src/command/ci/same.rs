//! Whether two commands run the same program with the same input: then a difference can only be chance.
//!
//! By content, not by name: files at two paths are the same if their bytes are, or their build-ids, or what is loaded of
//! them but for its place in memory. Not scripts, and not binaries with libraries beside them: what they take from their
//! folder may differ.

mod moved;

use object::{Object, ObjectSection};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Files that are larger are taken to differ: reading them would take longer than measuring.
const MOST: u64 = 1 << 30;

/// Whether the words of both are the same, or name files with the same content. False where it is not certain, and where
/// the program cannot be run: then trying it says why.
pub(super) fn is_same_program(base: &[OsString], head: &[OsString]) -> bool {
    if !can_run(base) {
        return false;
    }
    let (base, head) = (words(base), words(head));
    // Of a line for a shell, its first program; after `exec`, where that is said.
    if !can_run(base.strip_prefix(&[OsString::from("exec")][..]).unwrap_or(&base)) {
        return false;
    }
    base.len() == head.len() && base.iter().zip(&head).all(|(a, b)| is_same(a, b))
}

/// The words of a command; of a line for a shell, those of the line.
fn words(argv: &[OsString]) -> Vec<OsString> {
    let [shell, option, line] = argv else { return argv.to_vec() };
    if shell != "/bin/sh" || option != "-c" {
        return argv.to_vec();
    }
    // Redirections stand by themselves or directly before a file.
    let line = line.to_string_lossy().replace('<', " < ").replace('>', " > ");
    match shell_words::split(&line) {
        Ok(words) => words.into_iter().map(OsString::from).collect(),
        Err(_) => argv.to_vec(),
    }
}

/// Whether the program is a file that can be run.
fn can_run(argv: &[OsString]) -> bool {
    use std::os::unix::fs::PermissionsExt;
    let program = argv.first().and_then(file);
    let mode = program.and_then(|path| path.metadata().ok()).map(|meta| meta.permissions().mode());
    mode.is_some_and(|mode| mode & 0o111 != 0)
}

fn is_same(a: &OsString, b: &OsString) -> bool {
    if a == b {
        return true;
    }
    let (Some(a), Some(b)) = (file(a), file(b)) else { return false };
    let read = |path: &Path| {
        let small = path.metadata().is_ok_and(|meta| meta.len() <= MOST);
        small.then(|| std::fs::read(path).ok()).flatten()
    };
    let (Some(a), Some(b)) = (read(&a), read(&b)) else { return false };
    if takes_files_beside(&a) || takes_files_beside(&b) {
        return false;
    }
    a == b || build_id(&a).is_some_and(|id| build_id(&b) == Some(id)) || moved::is_same(&a, &b)
}

/// The file that a word names, directly or in `PATH`.
fn file(word: &OsString) -> Option<PathBuf> {
    let path = Path::new(word);
    if path.is_file() {
        return Some(path.to_owned());
    }
    let bare = path.components().count() == 1;
    let folders = std::env::var_os("PATH").filter(|_| bare)?;
    std::env::split_paths(&folders).map(|folder| folder.join(word)).find(|path| path.is_file())
}

/// Whether the program may be another one in another folder: a script, which may start what is beside it, or a binary with
/// libraries at `$ORIGIN`.
fn takes_files_beside(content: &[u8]) -> bool {
    const ORIGIN: &[&[u8]] = &[b"$ORIGIN", b"${ORIGIN}"];
    let file = object::File::parse(content).ok();
    let names = file.as_ref().and_then(|file| file.section_by_name(".dynstr")?.data().ok());
    let holds =
        |word: &[u8]| names.is_some_and(|names| names.windows(word.len()).any(|at| at == word));
    content.starts_with(b"#!") || ORIGIN.iter().any(|word| holds(word))
}

fn build_id(content: &[u8]) -> Option<Vec<u8>> {
    let file = object::File::parse(content).ok()?;
    file.build_id().ok()?.map(<[u8]>::to_vec)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn files_are_compared_by_content_and_other_words_by_text() {
        let dir = std::env::temp_dir().join(format!("deadweight-same-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let write = |name: &str, text: &str| {
            let path = dir.join(name);
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
            path.into_os_string()
        };
        let (a, b, c) = (write("a", "x"), write("b", "x"), write("c", "y"));
        let same = |one: &[&OsString], other: &[&OsString]| {
            let owned =
                |words: &[&OsString]| words.iter().map(|w| (*w).clone()).collect::<Vec<_>>();
            is_same_program(&owned(one), &owned(other))
        };
        let (n, m) = (OsString::from("5"), OsString::from("6"));
        assert!(same(&[&a, &n], &[&b, &n]) && !same(&[&a, &n], &[&b, &m]) && !same(&[&a], &[&c]));
        let (d, e) = (write("d", "#!/bin/sh\n./beside"), write("e", "#!/bin/sh\n./beside"));
        assert!(!same(&[&d], &[&e]) && same(&[&d], &[&d]), "each starts what is beside it");
        let line = |program: &OsString, input: &OsString| {
            let text = format!("exec {} <{}", program.to_string_lossy(), input.to_string_lossy());
            vec![OsString::from("/bin/sh"), "-c".into(), text.into()]
        };
        assert!(is_same_program(&line(&a, &c), &line(&b, &c)));
        assert!(!is_same_program(&line(&a, &b), &line(&a, &c)), "another input");
        let missing = line(&"./nope".into(), &c);
        assert!(!is_same_program(&missing, &missing), "it cannot be run");
        std::fs::set_permissions(&a, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert!(!same(&[&a], &[&a]) && !same(&[&OsString::from("./nope")], &[&"./nope".into()]));
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
