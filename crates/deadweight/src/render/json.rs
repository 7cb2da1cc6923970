//! What is written for programs: `--export-json` and its like.
//!
//! Its form is the types of `deadweight_report::report` and their neighbours; nothing is added or left out
//! here. It may end up on a terminal, and names in it were chosen by others: what would change how a
//! terminal shows the rest is escaped, as JSON allows for any character.

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

/// The same JSON, fit for a terminal, with a line feed at its end.
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
