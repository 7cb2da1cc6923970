//! JSON for programs: `--export-json`.
//!
//! Its fields are those of the types in `deadweight_report`; nothing is added or left out here. JSON may be
//! printed on a terminal and holds foreign names: characters that control a terminal are escaped, as JSON
//! allows for any character.

use super::page::is_printable;
use deadweight_report::report::Report;
use std::fmt::Write as _;

/// The report as indented JSON with a line feed at its end.
///
/// # Errors
/// Never for a report that was made by analysis; see [`serde_json::to_string_pretty`].
pub fn render(report: &Report) -> Result<String, serde_json::Error> {
    serde_json::to_string_pretty(report).map(|plain| escaped(&plain))
}

/// The same JSON with control characters escaped and a line feed at its end.
#[must_use]
pub fn escaped(plain: &str) -> String {
    let mut text = String::with_capacity(plain.len() + 1);
    for c in plain.chars() {
        if c == '\n' || is_printable(c) {
            text.push(c);
        } else {
            // Only inside of strings; all of them are of one UTF-16 unit.
            let _ = write!(text, "\\u{:04x}", u32::from(c));
        }
    }
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_escaped_and_read_as_it_was() {
        let name = "a\u{9b}K\u{202e}b\u{7f}\u{1b}[31mö×😀";
        let text = escaped(&serde_json::to_string(name).unwrap());
        assert_eq!(text, "\"a\\u009bK\\u202eb\\u007f\\u001b[31mö×😀\"\n");
        assert_eq!(serde_json::from_str::<String>(&text).unwrap(), name);
    }
}
