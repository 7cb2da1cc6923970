//! The rules of this repository that clippy does not know.
//!
//! - In: paths and texts of files.
//! - Out: complaints. No file is changed.
//! - Must not know: the style that `cargo fmt` decides.
//!
//! Each rule has a file and tests of its own.

mod circles;
mod entries;
mod imports;
mod machine;
mod manifest;
mod markdown;
mod source;
mod tokens;

mod words;

use crate::repository::Repository;
use std::collections::BTreeMap;
use std::fmt;

/// A rule that a line of a file breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Complaint {
    /// Path from the root of the repository.
    pub(crate) file: String,
    /// Line from 1.
    pub(crate) line: usize,
    /// What is wrong, and what to do if that is not obvious.
    pub(crate) text: String,
}

impl fmt::Display for Complaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.text)
    }
}

/// A complaint about `line` of `file`.
fn complain(file: &str, line: usize, text: impl Into<String>) -> Complaint {
    Complaint { file: file.to_owned(), line, text: text.into() }
}

/// The largest size of a recording. Larger files are results of a build.
const FILE_BYTES: u64 = 256 << 10;

fn size(repository: &Repository, file: &str) -> Option<Complaint> {
    let bytes = std::fs::metadata(repository.path(file)).ok()?.len();
    let large = || format!("{bytes} bytes: a file has at most {FILE_BYTES}");
    (bytes > FILE_BYTES).then(|| complain(file, 1, large()))
}

/// Judges every file of the repository and prints what is wrong.
pub(crate) fn run(repository: &Repository) -> Result<(), String> {
    let files = repository.files()?;
    let mut complaints = entries::judge(&files);
    let mut sources: BTreeMap<&str, Vec<(&str, String)>> = BTreeMap::new();
    for file in &files {
        complaints.extend(source::name(file));
        complaints.extend(size(repository, file));
        // Traces and other binary files have no lines.
        let Ok(text) = repository.read(file) else { continue };
        complaints.extend(machine::judge(file, &text));
        complaints.extend(words::judge(file, &text));
        if file.ends_with(".rs") {
            complaints.extend(source::judge(file, &text));
        } else if file.ends_with(".md") {
            complaints.extend(markdown::judge(file, &text));
            complaints.extend(markdown::dead_links(file, &text, |target| {
                // A folder is a valid target; it has no headings.
                repository
                    .path(target)
                    .exists()
                    .then(|| repository.read(target).unwrap_or_default())
            }));
        } else if file.ends_with("Cargo.toml") {
            complaints.extend(manifest::judge(file, &text));
        }
        if let Some(source) = entries::source(file, &files).filter(|_| file.ends_with(".rs")) {
            sources.entry(source).or_default().push((file, text));
        }
    }
    for (source, files) in sources {
        let files: Vec<(&str, &str)> = files.iter().map(|(f, text)| (*f, text.as_str())).collect();
        complaints.extend(circles::judge(source, &files));
    }
    if complaints.is_empty() {
        return Ok(());
    }
    for complaint in &complaints {
        eprintln!("{complaint}");
    }
    Err(format!("tidy: {} complaints", complaints.len()))
}
