//! Rule for the text of any file: no paths and settings of the machine that it was written on.
//!
//! A path of one developer's disk, or the address of a package mirror, breaks on every other machine.
//! Does not check words; see `words`.

use super::{Complaint, complain};

/// Beginnings of paths that exist on one machine only, in halves, so that this file does not hold them.
const MACHINE_PATHS: [&str; 4] =
    [concat!("/ro", "ot/"), concat!("/wo", "rk/"), concat!("/ho", "me/"), concat!("/Us", "ers/")];

/// Settings that point a package manager at a mirror.
const MIRRORS: [&str; 7] = [
    concat!("GOPR", "OXY="),
    concat!("index", "-url"),
    concat!("INDEX", "_URL"),
    concat!("replace", "-with"),
    concat!("[sou", "rce."),
    concat!("npm_config_", "registry"),
    concat!("sparse", "+http"),
];

const CRATES: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// Judges a file's text.
pub(crate) fn judge(file: &str, text: &str) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    for (index, line) in text.lines().enumerate() {
        for path in MACHINE_PATHS {
            if line.match_indices(path).any(|(at, _)| begins_a_path(line, at)) {
                let says = format!("`{path}…` is a path of one machine");
                complaints.push(complain(file, index + 1, says));
            }
        }
        if let Some(mirror) = MIRRORS.iter().find(|m| line.contains(**m)) {
            let says = format!("`{mirror}` points at one machine's package mirror");
            complaints.push(complain(file, index + 1, says));
        }
        if line.contains(concat!("regis", "try+"))
            && !line.contains(CRATES)
            && !file.ends_with(".rs")
        {
            complaints.push(complain(file, index + 1, "a registry other than crates.io"));
        }
    }
    complaints
}

/// Whether the path at `at` is absolute, and not the tail of a longer one.
fn begins_a_path(line: &str, at: usize) -> bool {
    !line[..at].chars().next_back().is_some_and(|c| c.is_alphanumeric() || "._-~}$".contains(c))
}

#[cfg(test)]
mod tests {
    use super::judge;

    #[test]
    fn a_path_of_one_machine_is_found() {
        let text = concat!("see /ho", "me/ann/notes\nand (/wo", "rk/x)\n");
        let lines: Vec<usize> = judge("a.md", text).into_iter().map(|c| c.line).collect();
        assert_eq!(lines, [1, 2]);
    }

    #[test]
    fn a_relative_path_or_a_url_is_not() {
        let text = concat!("docs/wo", "rk/x and https://example.org/ho", "me/\n");
        assert!(judge("a.md", text).is_empty());
    }

    #[test]
    fn a_mirror_is_found_and_crates_io_is_not() {
        assert_eq!(judge("run", concat!("export GOPR", "OXY=http://x\n")).len(), 1);
        assert_eq!(judge("Cargo.lock", "source = \"registry+https://mirror/x\"\n").len(), 1);
        let usual = "source = \"registry+https://github.com/rust-lang/crates.io-index\"\n";
        assert!(judge("Cargo.lock", usual).is_empty());
    }
}
