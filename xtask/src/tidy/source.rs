//! Rules for Rust files: a `//!` head, a bounded length, no `allow`, meaningful names.
//!
//! Reads lines, not syntax, which is quick and enough for these rules. The length of functions is counted
//! here although clippy does it too, so that a crate's clippy.toml cannot loosen it.

use super::{Complaint, complain};

const FILE_LINES: usize = 500;
const FUNCTION_LINES: usize = 70;

/// Words in file names that say nothing about the content.
const EMPTY_NAMES: [&str; 9] =
    ["util", "utils", "helper", "helpers", "manager", "handler", "handlers", "info", "misc"];

/// Marks of unfinished work, in halves, so that this file does not hold them.
const UNFINISHED: [&str; 5] = [
    concat!("to", "do!"),
    concat!("unimple", "mented!"),
    concat!("FIX", "ME"),
    concat!("TO", "DO"),
    concat!("X", "XX"),
];

/// Judges a file's name.
pub(crate) fn name(file: &str) -> Option<Complaint> {
    let stem = file.rsplit('/').next().unwrap_or(file).split('.').next().unwrap_or("");
    let empty = stem.split(['_', '-']).find(|word| EMPTY_NAMES.contains(word))?;
    let says = format!("`{empty}` in a file's name says nothing: name it after what it is about");
    Some(complain(file, 1, says))
}

/// Judges a Rust file's text.
pub(crate) fn judge(file: &str, text: &str) -> Vec<Complaint> {
    let lines: Vec<&str> = text.lines().collect();
    let mut complaints = Vec::new();
    if !lines.first().is_some_and(|l| l.starts_with("//!")) {
        complaints.push(complain(file, 1, "begin with `//!`: what it is for and what it is not"));
    }
    if lines.len() > FILE_LINES {
        let says = format!(
            "{} lines, more than {FILE_LINES}: split where the subject splits",
            lines.len()
        );
        complaints.push(complain(file, FILE_LINES + 1, says));
    }
    for (index, line) in lines.iter().enumerate() {
        if silences(line) {
            let says = "`#[expect(…, reason = \"…\")]` instead: it speaks up when it is not needed";
            complaints.push(complain(file, index + 1, says));
        }
        if let Some(mark) = UNFINISHED.iter().find(|mark| has_word(line, mark)) {
            complaints.push(complain(file, index + 1, format!("unfinished: `{mark}`")));
        }
    }
    complaints.extend(long_functions(file, &lines));
    complaints
}

/// Whether the line holds an attribute that switches a lint off for good.
fn silences(line: &str) -> bool {
    let code = line.trim_start();
    (code.starts_with("#[") || code.starts_with("#![")) && has_word(code, concat!("all", "ow("))
}

/// Whether `word` stands in `line` without a letter before or after it.
fn has_word(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + word.len()..].chars().next();
        let closed = !word.ends_with(char::is_alphanumeric);
        !before.is_some_and(|c| c.is_alphanumeric() || c == '_')
            && (closed || !after.is_some_and(|c| c.is_alphanumeric() || c == '_'))
    })
}

/// Functions with too many lines. `rustfmt` puts a function's last brace at its own indentation,
/// so that no brackets need counting.
fn long_functions(file: &str, lines: &[&str]) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    let mut index = 0;
    while index < lines.len() {
        let line = lines[index];
        let indent = line.len() - line.trim_start().len();
        if is_function(line) && !line.ends_with('}') && !line.ends_with(';') {
            let last = lines[index..].iter().position(|l| closes(l, indent));
            let count = last.map_or(0, |n| n.saturating_sub(1));
            if count > FUNCTION_LINES {
                let says = format!("{count} lines in a function, more than {FUNCTION_LINES}");
                complaints.push(complain(file, index + 1, says));
            }
        }
        index += 1;
    }
    complaints
}

fn closes(line: &str, indent: usize) -> bool {
    let body = line.trim_start();
    line.len() - body.len() == indent && (body == "}" || body == ";" || body.ends_with(");"))
}

/// Whether the line begins a function.
fn is_function(line: &str) -> bool {
    let mut words = line.trim_start().split(' ');
    loop {
        match words.next() {
            Some("fn") => return true,
            Some("pub" | "pub(crate)" | "pub(super)" | "const" | "unsafe" | "extern" | "async") => {
            }
            Some(word) if word.starts_with("pub(in") || word.starts_with('"') => {}
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{judge, name};

    fn texts(text: &str) -> Vec<String> {
        judge("src/a.rs", text).into_iter().map(|c| format!("{}: {}", c.line, c.text)).collect()
    }

    #[test]
    fn a_file_in_order_gets_no_complaint() {
        assert!(texts("//! A head.\n\nfn main() {\n    work();\n}\n").is_empty());
    }

    #[test]
    fn a_head_is_asked_for() {
        assert!(texts("fn main() {}\n")[0].contains("begin with `//!`"));
    }

    #[test]
    fn the_length_of_a_file_is_bounded() {
        let long = format!("//! Head.\n{}", "\n".repeat(500));
        assert!(texts(&long)[0].starts_with("501: 501 lines"));
        let just = format!("//! Head.\n{}", "\n".repeat(499));
        assert!(texts(&just).is_empty());
    }

    #[test]
    fn the_length_of_a_function_is_bounded() {
        let of = |n: usize| {
            format!(
                "//! Head.\nimpl A {{\n    pub fn f() {{\n{}    }}\n}}\n",
                "        x();\n".repeat(n)
            )
        };
        assert!(texts(&of(70)).is_empty());
        assert_eq!(texts(&of(71)), ["3: 71 lines in a function, more than 70"]);
    }

    #[test]
    fn a_lint_switched_off_for_good_is_found_and_an_expectation_is_not() {
        let allow = concat!("//! Head.\n#[all", "ow(dead_code)]\nfn f() {}\n");
        assert!(texts(allow)[0].starts_with("2: `#[expect("));
        let conditional = concat!("//! Head.\n#![cfg_attr(test, all", "ow(dead_code))]\n");
        assert_eq!(texts(conditional).len(), 1);
        assert!(texts("//! Head.\n#[expect(dead_code, reason = \"r\")]\nfn f() {}\n").is_empty());
    }

    #[test]
    fn unfinished_work_is_found() {
        let unfinished = concat!("//! Head.\nfn f() {\n    to", "do!()\n}\n// FIX", "ME: later\n");
        assert_eq!(texts(unfinished).len(), 2);
        assert!(texts("//! Head.\n// the MASTODONs\n").is_empty());
    }

    #[test]
    fn empty_names_are_found() {
        for bad in ["src/utils.rs", "src/string_helpers.rs", "a/event-handler.py", "src/info.rs"] {
            assert!(name(bad).is_some(), "{bad}");
        }
        for good in ["src/timeline.rs", "src/informed.rs", "utils/README.md"] {
            assert!(name(good).is_none(), "{good}");
        }
    }
}
