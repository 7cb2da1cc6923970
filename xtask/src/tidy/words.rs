//! The rule for words: terms of the field, and none of the project's former private words.
//!
//! The words are in `words.table`. A word is compared with the parts of a name (`ring_buffer`,
//! `RingBuffer` and `ring-buffer` are one word). Checks neither spelling nor style.

use super::tokens::is_word;
use super::{Complaint, complain};

/// One word per line: where it counts, the word, and what to say instead.
const TABLE: &str = include_str!("words.table");

/// Where a word is not accepted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scope {
    /// In any name and any text.
    Everywhere,
    /// In the names of files, folders and modules: it is plain English elsewhere.
    Modules,
}

struct Word {
    scope: Scope,
    /// Its parts in lower case. A phrase is several names, each with one part.
    parts: Vec<String>,
    /// Whether the parts are words of a sentence and not of one name.
    phrase: bool,
    instead: &'static str,
}

fn table() -> impl Iterator<Item = Word> {
    let rows = TABLE.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    rows.filter_map(|row| {
        let mut cells = row.split('|').map(str::trim);
        let scope = if cells.next()? == "modules" { Scope::Modules } else { Scope::Everywhere };
        let word = cells.next()?;
        let parts = word.split([' ', '_']).map(str::to_owned).collect();
        Some(Word { scope, parts, phrase: word.contains(' '), instead: cells.next()? })
    })
}

/// Judges a file's name and text. Only Rust and Markdown are read.
pub(super) fn judge(file: &str, text: &str) -> Vec<Complaint> {
    let rust = file.ends_with(".rs");
    // Results quote what programs printed when they were measured.
    if !rust && !file.ends_with(".md") || file.ends_with("RESULTS.md") {
        return Vec::new();
    }
    // Most files hold few of the words.
    let lower = [file, text].concat().to_lowercase();
    let may_occur = |word: &Word| word.parts.iter().all(|part| lower.contains(part.as_str()));
    let table: Vec<Word> = table().filter(may_occur).collect();
    if table.is_empty() {
        return Vec::new();
    }
    let mut complaints = Vec::new();
    let name = file.rsplit('/').next().unwrap_or(file);
    let module = file.split_once("/src/").map_or(name, |(_, module)| module);
    for name in module.split('/').filter(|_| rust) {
        complaints.extend(find(&table, &[parts(name.trim_end_matches(".rs"))], true, file, 1));
    }
    let lines: Vec<Vec<Vec<String>>> = text.lines().map(names).collect();
    for (index, line) in lines.iter().enumerate() {
        // A sentence goes on in the next line.
        let next = lines.get(index + 1).into_iter().flatten().take(8).cloned();
        let all: Vec<Vec<String>> = line.iter().cloned().chain(next).collect();
        for start in 0..line.len() {
            complaints.extend(find(&table, &all[start..], false, file, index + 1));
        }
        if let Some(name) = text.lines().nth(index).filter(|_| rust).and_then(written_module) {
            complaints.extend(find(&table, &[parts(name)], true, file, index + 1));
        }
    }
    complaints.dedup();
    complaints
}

/// The name of the module that the line opens.
fn written_module(line: &str) -> Option<&str> {
    let (before, name) = line.strip_suffix(" {")?.rsplit_once("mod ")?;
    (before.is_empty() || before.ends_with(' ')).then_some(name)
}

/// The names of a line as their parts.
fn names(line: &str) -> Vec<Vec<String>> {
    line.split(|c| !is_word(c) && c != '-').map(parts).filter(|parts| !parts.is_empty()).collect()
}

/// The parts of a name, in lower case: of `ring_buffer`, `RingBuffer` or `ring-buffer`.
fn parts(name: &str) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    let mut before = '_';
    for c in name.chars() {
        if before.is_lowercase() && c.is_uppercase() || !before.is_alphanumeric() {
            parts.push(String::new());
        }
        if c.is_alphanumeric()
            && let Some(part) = parts.last_mut()
        {
            part.extend(c.to_lowercase());
        }
        before = c;
    }
    parts.retain(|part| !part.is_empty());
    parts
}

/// The words of the table that stand in the first of `names`, or the phrases that begin there.
fn find(
    table: &[Word],
    names: &[Vec<String>],
    module: bool,
    file: &str,
    line: usize,
) -> Vec<Complaint> {
    let Some(first) = names.first() else { return Vec::new() };
    let found = table.iter().filter(|word| {
        let in_scope = module || word.scope == Scope::Everywhere;
        let here = if word.phrase {
            let words = word.parts.iter().zip(names);
            names.len() >= word.parts.len() && words.into_iter().all(|(a, b)| *b == [a.clone()])
        } else {
            first.windows(word.parts.len()).any(|window| window == word.parts)
        };
        in_scope && here
    });
    found
        .map(|word| {
            let old = word.parts.join(if word.phrase { " " } else { "_" });
            complain(file, line, format!("`{old}` is a private word: {}", word.instead))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{judge, table};

    fn found(file: &str, text: &str) -> Vec<String> {
        let complaints = judge(file, text).into_iter();
        complaints.map(|c| format!("{} {}", c.line, c.text.split('`').nth(1).unwrap())).collect()
    }

    #[test]
    fn a_word_is_found_in_names_of_any_case_and_in_prose() {
        let text = concat!("struct St", "andIn;\nlet du", "ty_at = 1;\n// A du", "ty.\n");
        assert_eq!(
            found("src/a.rs", text),
            [concat!("1 stand", "_in"), concat!("2 du", "ty"), concat!("3 du", "ty")]
        );
        assert_eq!(found("src/a.md", concat!("No du", "ty here.\n")), [concat!("1 du", "ty")]);
    }

    #[test]
    fn a_part_of_a_longer_word_is_another_word() {
        assert!(found("src/a.rs", "// fraised heavyduty: to stand in line\n").is_empty());
    }

    #[test]
    fn a_phrase_is_found_across_the_end_of_a_line() {
        let text = concat!("/// And what\n/// bec", "ame of it.\n");
        assert_eq!(found("src/a.rs", text), [concat!("1 what bec", "ame of")]);
    }

    #[test]
    fn plain_english_counts_in_the_names_of_modules_only() {
        let room = concat!("1 ro", "om");
        assert_eq!(found(concat!("x/src/ro", "om.rs"), "// Make room.\n"), [room]);
        assert_eq!(found(concat!("x/src/ro", "om/mod.rs"), ""), [room]);
        assert_eq!(found("src/a.rs", concat!("pub mod ro", "om {\n")), [room]);
        assert!(found("src/a.rs", "let room = 1; // room\n").is_empty());
    }

    #[test]
    fn every_row_of_the_table_says_what_to_use() {
        assert!(table().count() > 30);
        assert!(table().all(|word| !word.instead.is_empty() && !word.parts.is_empty()));
    }

    #[test]
    fn other_files_are_not_read() {
        let text = concat!("du", "ty\n");
        assert!(found("a.txt", text).is_empty());
        assert!(found("bench/RESULTS.md", text).is_empty());
        assert!(found(concat!("cases/pe", "ers/x/src/main.rs"), "").is_empty());
    }
}
