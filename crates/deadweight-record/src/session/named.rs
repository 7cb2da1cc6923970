//! Programs that a command names: its own, or those in a shell's line or script, which start later than probes are
//! placed.
//!
//! Reads words only. Variables and loops are not followed: a program that is not found has no probes.

use crate::launch::find;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Programs whose arguments are a line or a script.
const SHELLS: [&str; 6] = ["sh", "bash", "dash", "ash", "ksh", "zsh"];
/// Longer scripts are read up to here.
const SCRIPT: u64 = 64 << 10;
/// So many programs are enough, and so many words are looked up.
const PROGRAMS: usize = 4;
const WORDS: usize = 200;
/// Scripts that start scripts.
const DEPTH: usize = 3;

/// The programs of a command that runs in `dir`, each once, in order.
pub(super) fn programs(argv: &[OsString], dir: Option<&Path>) -> Vec<PathBuf> {
    let here = dir.map(Path::to_owned).or_else(|| std::env::current_dir().ok());
    let mut named = Named { found: Vec::new(), left: WORDS };
    if let Some(program) = find(argv, dir) {
        named.program(&program, argv.get(1..).unwrap_or_default(), &[here.unwrap_or_default()], 0);
    }
    named.found
}

struct Named {
    found: Vec<PathBuf>,
    /// Words that may still be looked up.
    left: usize,
}

impl Named {
    /// A program or a script, and what follows it.
    fn program(&mut self, path: &Path, arguments: &[OsString], folders: &[PathBuf], depth: usize) {
        if begins(path, b"#!") {
            return self.script(path, folders, depth);
        }
        let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
        if !SHELLS.contains(&name) {
            if self.found.len() < PROGRAMS && !self.found.iter().any(|known| known == path) {
                self.found.push(path.to_owned());
            }
            return;
        }
        let is_option = |word: &&OsString| word.as_bytes().starts_with(b"-");
        let is_line =
            arguments.iter().take_while(is_option).any(|word| word.as_bytes().ends_with(b"c"));
        let Some(first) = arguments.iter().find(|word| !is_option(word)) else { return };
        if is_line {
            self.text(&first.to_string_lossy(), folders, depth);
        } else if let Some(script) =
            folders.iter().map(|folder| folder.join(first)).find(|p| p.is_file())
        {
            self.script(&script, folders, depth);
        }
    }

    fn script(&mut self, path: &Path, folders: &[PathBuf], depth: usize) {
        let mut text = Vec::new();
        let read = File::open(path).and_then(|file| file.take(SCRIPT).read_to_end(&mut text));
        let text = String::from_utf8_lossy(&text);
        if read.is_err() || depth == DEPTH || !is_of_a_shell(&text) {
            return;
        }
        // Many a script goes to its own folder first.
        let own = path.parent().map(Path::to_owned);
        let folders: Vec<PathBuf> = folders.iter().cloned().chain(own).collect();
        self.text(&text, &folders, depth + 1);
    }

    /// The lines of a shell.
    fn text(&mut self, text: &str, folders: &[PathBuf], depth: usize) {
        for command in text
            .lines()
            .filter(|line| !line.starts_with('#'))
            .flat_map(|line| line.split([';', '|', '&', '(']))
        {
            let words = command.split(|c: char| c.is_whitespace() || "\"'`)<>=".contains(c));
            let mut words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
            if words.first() == Some(&"exec") {
                words.remove(0);
            }
            for (at, word) in words.iter().enumerate() {
                if self.left == 0 {
                    return;
                }
                self.left -= 1;
                let rest: Vec<OsString> = words[at + 1..].iter().map(OsString::from).collect();
                if let Some(path) = file(word, at == 0, folders) {
                    self.program(&path, &rest, folders, depth);
                }
            }
        }
    }
}

/// The program or script that a word means: the first of a command also by a search in the folders of `PATH`.
fn file(word: &str, is_first: bool, folders: &[PathBuf]) -> Option<PathBuf> {
    let executable = |path: &PathBuf| {
        let mode = path.metadata().ok().filter(std::fs::Metadata::is_file)?.permissions().mode();
        (mode & 0o111 != 0 && begins(path, b"\x7fELF") || begins(path, b"#!")).then(|| path.clone())
    };
    if word.contains('/') || word.ends_with(".sh") {
        // `$(dirname "$0")/program` leaves an absolute path here.
        let below = word.trim_start_matches('/');
        let paths = folders.iter().flat_map(|folder| [folder.join(word), folder.join(below)]);
        return paths.into_iter().find_map(|path| executable(&path));
    }
    is_first
        .then(|| find(&[OsString::from(word)], None))
        .flatten()
        .and_then(|path| executable(&path))
}

/// Whether a script's first line names a shell, or no interpreter.
fn is_of_a_shell(script: &str) -> bool {
    let Some(line) = script.strip_prefix("#!").and_then(|rest| rest.lines().next()) else {
        return true;
    };
    line.split(['/', ' ']).any(|word| SHELLS.contains(&word))
}

fn begins(path: &Path, with: &[u8]) -> bool {
    let mut beginning = vec![0; with.len()];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut beginning));
    read.is_ok() && beginning == with
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_in_lines_and_scripts_are_found() {
        let dir = std::env::temp_dir().join(format!("deadweight-named-{}", std::process::id()));
        std::fs::create_dir_all(dir.join("bin")).unwrap();
        let write = |name: &str, content: &str| {
            let path = dir.join(name);
            std::fs::write(&path, content).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        };
        write("bin/app", "\x7fELF");
        write("bin/other", "\x7fELF");
        write(
            "run.sh",
            "#!/bin/sh\n# bin/other\ncd \"$(dirname \"$0\")\" && exec bin/app -n 5 > out\n",
        );
        write("outer", "#!/bin/sh\n\"$(dirname \"$0\")/run.sh\" | cat\n");
        let names = |words: &[&str]| -> Vec<String> {
            let argv: Vec<OsString> = words.iter().map(OsString::from).collect();
            let found = programs(&argv, Some(&dir)).into_iter();
            let name = |path: PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
            found.map(name).filter(|name| ["app", "other"].contains(&name.as_str())).collect()
        };
        assert_eq!(names(&["bin/app", "bin/other"]), ["app"], "an argument is no program");
        assert_eq!(names(&["/bin/sh", "-c", "exec bin/other 'x' && bin/app"]), ["other", "app"]);
        assert_eq!(names(&["sh", "run.sh"]), ["app"]);
        assert_eq!(names(&["./outer"]), ["app"]);
        assert_eq!(names(&["sh", "-c", "sh run.sh; nowhere/app"]), ["app"]);
        write("tool.py", "#!/usr/bin/env python3\nbin/app\n");
        assert!(names(&["./tool.py"]).is_empty(), "of another interpreter");
        assert!(names(&["sh"]).is_empty() && names(&["missing"]).is_empty());
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
