//! The rule for Cargo.toml: each dependency has its reason beside it.
//!
//! A crate of this workspace needs no reason, nor do the lines under `[workspace.dependencies]`: the reason
//! is given where the crate is used. Does not check versions and licences.

use super::{Complaint, complain};

/// Judges a manifest's text.
pub(crate) fn judge(file: &str, text: &str) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    let mut in_dependencies = false;
    let mut reason_above = false;
    for (index, line) in text.lines().enumerate() {
        let code = line.trim();
        if let Some(section) = code.strip_prefix('[') {
            in_dependencies = section.contains("dependencies]") && !section.contains("workspace");
        } else if in_dependencies && code.contains('=') && !code.starts_with('#') {
            let dependency = code.split([' ', '=', '.']).next().unwrap_or("");
            if !dependency.starts_with("deadweight") && !reason_above && !has_reason(code) {
                let says = format!("say in a comment beside `{dependency}` what it is needed for");
                complaints.push(complain(file, index + 1, says));
            }
        }
        reason_above = code.starts_with('#');
    }
    complaints
}

/// Whether the line ends in a comment of a few words.
fn has_reason(line: &str) -> bool {
    let mut quoted = false;
    for (at, c) in line.char_indices() {
        match c {
            '"' => quoted = !quoted,
            '#' if !quoted => return line[at + 1..].trim().len() > 5,
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::judge;

    #[test]
    fn a_reason_stands_beside_or_above() {
        let good = "[dependencies]\ndeadweight-core = { workspace = true }\n\
                    serde = \"1\" # the report's JSON form\n# system calls\nlibc = \"0.2\"\n";
        assert!(judge("Cargo.toml", good).is_empty());
    }

    #[test]
    fn a_missing_reason_is_found_in_every_kind_of_dependency() {
        let bad =
            "[dependencies]\nserde = \"1\"\n[dev-dependencies]\ntempfile = { version = \"3#\" }\n";
        let lines: Vec<usize> = judge("Cargo.toml", bad).into_iter().map(|c| c.line).collect();
        assert_eq!(lines, [2, 4]);
    }

    #[test]
    fn other_sections_need_none() {
        let other = "[workspace.dependencies]\nserde = \"1\"\n[profile.dev]\ndebug = 1\n";
        assert!(judge("Cargo.toml", other).is_empty());
    }
}
