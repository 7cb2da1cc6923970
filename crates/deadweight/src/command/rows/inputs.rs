//! The inputs that a command line names: files, what is in directories, standard input. Does not judge their content.

use super::super::recording;
use crate::failure::Failure;
use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// An input.
#[derive(Debug)]
pub(super) struct Input {
    /// Where it is; `-` is standard input.
    pub(super) path: PathBuf,
    /// When it was last changed, in seconds since 1970; 0 if unknown.
    pub(super) time: i64,
}

impl Input {
    /// Its name, for people.
    pub(super) fn name(&self) -> String {
        self.path.display().to_string()
    }

    /// Its content.
    pub(super) fn bytes(&self) -> Result<Vec<u8>, Failure> {
        recording::bytes(&self.path)
    }
}

/// All inputs, those of a directory in order of their names. One that is named twice is one.
pub(super) fn all(named: &[PathBuf]) -> Result<Vec<Input>, Failure> {
    let mut inputs = Vec::new();
    for path in named {
        if path == Path::new("-") {
            inputs.push(Input { path: path.clone(), time: 0 });
            continue;
        }
        let before = inputs.len();
        add(path, true, &mut inputs)?;
        if inputs.len() == before {
            let why = "a recording is *.dwt, a report *.json";
            return Err(Failure::Unknown(format!(
                "there is nothing to read in {}: {why}; name other files one by one",
                path.display()
            )));
        }
    }
    let mut seen = HashSet::new();
    // Standard input and what is gone by now have no other name.
    inputs.retain(|input| fs::canonicalize(&input.path).map_or(true, |path| seen.insert(path)));
    Ok(inputs)
}

fn add(path: &Path, is_named: bool, inputs: &mut Vec<Input>) -> Result<(), Failure> {
    let fail = |source| Failure::Read { path: path.to_owned(), source };
    // A link that is named is followed; one in a directory could lead around in circles.
    let meta = if is_named { fs::metadata(path) } else { fs::symlink_metadata(path) };
    let meta = meta.map_err(fail)?;
    if meta.is_dir() {
        let entries: Result<Vec<_>, _> = fs::read_dir(path).map_err(fail)?.collect();
        let mut paths: Vec<_> = entries.map_err(fail)?.iter().map(fs::DirEntry::path).collect();
        paths.sort();
        return paths.iter().try_for_each(|path| add(path, false, inputs));
    }
    let is_one = path.extension().is_some_and(|e| e == "dwt" || e == "json");
    if is_named || (is_one && meta.is_file()) {
        let changed = meta.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let time = changed.map_or(0, |age| i64::try_from(age.as_secs()).unwrap_or(0));
        inputs.push(Input { path: path.to_owned(), time });
    }
    Ok(())
}
