//! The rule for `src` folders: few enough entries to take in at one look.
//!
//! Counts files and folders, of crates only. Does not judge what is in them.

use super::{Complaint, complain};
use std::collections::{BTreeMap, BTreeSet};

const ENTRIES: usize = 16;

/// The `src` folder that the file belongs to: the one beside the nearest Cargo.toml.
pub(super) fn source<'a>(file: &'a str, files: &[String]) -> Option<&'a str> {
    let is_crate = |folder: &str| files.binary_search(&format!("{folder}Cargo.toml")).is_ok();
    let ends = file.match_indices("src/").map(|(at, _)| at);
    let mut folders = ends.filter(|at| file[..*at].is_empty() || file[..*at].ends_with('/'));
    folders.find(|at| is_crate(&file[..*at])).map(|at| &file[..at + 3])
}

/// Judges all folders; `files` is in order.
pub(super) fn judge(files: &[String]) -> Vec<Complaint> {
    let mut entries: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for file in files {
        let Some(folder) = source(file, files) else { continue };
        let rest = &file[folder.len() + 1..];
        entries.entry(folder).or_default().insert(rest.split('/').next().unwrap_or(rest));
    }
    let too_many = entries.into_iter().filter(|(_, names)| names.len() > ENTRIES);
    too_many
        .map(|(folder, names)| {
            let says = format!(
                "{} entries, more than {ENTRIES}: group files into folders by subject",
                names.len()
            );
            complain(folder, 1, says)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::judge;

    /// A crate `a` with `n` files and a folder of 30 files in its `src`.
    fn files(n: usize) -> Vec<String> {
        let mut files = vec!["a/Cargo.toml".to_owned()];
        files.extend((0..n).map(|i| format!("a/src/f{i}.rs")));
        files.extend((0..30).map(|i| format!("a/src/wing/f{i}.rs")));
        files.sort();
        files
    }

    #[test]
    fn a_folder_is_one_entry() {
        assert!(judge(&files(15)).is_empty());
        let found = judge(&files(16));
        assert_eq!((found.len(), found[0].file.as_str()), (1, "a/src"));
        assert!(found[0].text.starts_with("17 entries"));
    }

    #[test]
    fn a_folder_of_that_name_outside_a_crate_is_not_counted() {
        let files: Vec<String> = (0..30).map(|i| format!("a/src/f{i}.c")).collect();
        assert!(judge(&files).is_empty());
    }
}
