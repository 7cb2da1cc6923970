//! Lines of styled text. All text for a terminal goes through [`Line`].
//!
//! Strings of a report come from foreign files: names, paths, source lines. [`Line`] escapes their
//! control characters, so that no caller has to. Knows nothing of reports.

use anstyle::{AnsiColor, Style};
use std::fmt::Write as _;
use unicode_width::UnicodeWidthChar;

/// What the output can show.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// Columns, at least 40.
    pub width: usize,
    /// Whether colours may be used.
    pub colour: bool,
    /// Whether the reader's locale is UTF-8; else everything is ASCII.
    pub unicode: bool,
}

/// The meaning of a piece of text, which decides its style.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum Ink {
    /// Running text.
    #[default]
    Plain,
    /// The most important text.
    Strong,
    /// Less important text.
    Faint,
    /// Time that could be saved.
    Cost,
    /// A reason to doubt.
    Doubt,
    /// A place in the program.
    Place,
    /// A command to type.
    Command,
}

impl Ink {
    fn style(self) -> Style {
        let colour = |c: AnsiColor| Style::new().fg_color(Some(c.into()));
        match self {
            Self::Plain => Style::new(),
            Self::Strong => Style::new().bold(),
            Self::Faint => Style::new().dimmed(),
            Self::Cost => colour(AnsiColor::Red).bold(),
            Self::Doubt => colour(AnsiColor::Yellow),
            Self::Place => colour(AnsiColor::Cyan),
            Self::Command => colour(AnsiColor::Green),
        }
    }
}

/// A line that is being built.
#[derive(Clone, Debug, Default)]
pub struct Line {
    pieces: Vec<(Ink, String)>,
    columns: usize,
}

impl Line {
    /// An empty line that starts `columns` to the right.
    #[must_use]
    pub fn indented(columns: usize) -> Self {
        let mut line = Self::default();
        line.pad_to(columns);
        line
    }

    /// Columns taken so far.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Adds text, with control characters escaped.
    pub fn push(&mut self, ink: Ink, text: &str) -> &mut Self {
        let text = printable(text);
        self.columns += columns(&text);
        match self.pieces.last_mut() {
            Some((last, before)) if *last == ink => before.push_str(&text),
            _ => self.pieces.push((ink, text)),
        }
        self
    }

    /// Adds blanks up to column `column`; none if the line is that long already.
    pub fn pad_to(&mut self, column: usize) -> &mut Self {
        let blanks = column.saturating_sub(self.columns);
        self.push(Ink::Plain, &" ".repeat(blanks))
    }

    /// Adds text so that it ends at column `column`, or directly if it does not fit.
    pub fn right(&mut self, column: usize, ink: Ink, text: &str) -> &mut Self {
        self.pad_to(column.saturating_sub(columns(text)));
        self.push(ink, text)
    }
}

/// A page being written, line by line.
#[derive(Clone, Debug)]
pub struct Sheet {
    page: Page,
    text: String,
}

impl Sheet {
    /// An empty sheet.
    #[must_use]
    pub fn new(page: Page) -> Self {
        Self { page, text: String::new() }
    }

    /// Columns that a line may take.
    #[must_use]
    pub fn width(&self) -> usize {
        self.page.width
    }

    /// Adds a line; blanks at its end are dropped.
    pub fn line(&mut self, line: &Line) {
        let mut pieces: Vec<(Ink, &str)> =
            line.pieces.iter().map(|(ink, text)| (*ink, text.as_str())).collect();
        while let Some((_, last)) = pieces.last_mut() {
            *last = last.trim_end();
            if !last.is_empty() {
                break;
            }
            pieces.pop();
        }
        for (ink, text) in pieces {
            let text = if self.page.unicode { text.to_owned() } else { ascii(text) };
            let style = ink.style();
            if self.page.colour && style != Style::new() && !text.trim().is_empty() {
                let _ = write!(self.text, "{style}{text}{style:#}");
            } else {
                self.text.push_str(&text);
            }
        }
        self.text.push('\n');
    }

    /// Adds an empty line, unless the last one was empty or there is none yet.
    pub fn gap(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with("\n\n") {
            self.text.push('\n');
        }
    }

    /// Adds a paragraph after `first`, broken between words; further lines start at `indent`.
    pub fn paragraph(&mut self, mut first: Line, indent: usize, ink: Ink, text: &str) {
        let width = self.page.width;
        let mut fresh = true;
        for word in unbroken(text) {
            let takes = columns(&word);
            if !fresh && first.columns() + 1 + takes > width {
                self.line(&first);
                first = Line::indented(indent);
                fresh = true;
            }
            if !fresh {
                first.push(ink, " ");
            }
            first.push(ink, &word);
            fresh = false;
        }
        if first.pieces.iter().any(|(_, text)| !text.trim().is_empty()) {
            self.line(&first);
        }
    }

    /// All of it.
    #[must_use]
    pub fn into_text(self) -> String {
        let mut text = self.text;
        text.truncate(text.trim_end().len());
        if !text.is_empty() {
            text.push('\n');
        }
        text
    }
}

/// The words of a text; a number stays with its thousands and with its unit.
fn unbroken(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let number_before = words.last().is_some_and(|w| w.ends_with(|c: char| c.is_ascii_digit()));
        let sign_before = words.last().is_some_and(|w| w.ends_with(['±', '×']));
        let thousands = word.len() >= 3
            && word.bytes().take(3).all(|b| b.is_ascii_digit())
            && !word.as_bytes().get(3).is_some_and(u8::is_ascii_digit);
        let bare = word.trim_end_matches([',', '.', ';', ':', ')']);
        let unit = ["%", "×", "ns", "µs", "ms", "s", "MB", "KiB", "MiB"].contains(&bare);
        match words.last_mut() {
            Some(last) if sign_before || number_before && (thousands || unit) => {
                last.push(' ');
                last.push_str(word);
            }
            _ => words.push(word.to_owned()),
        }
    }
    words
}

/// Columns that `text` takes on a terminal after escaping.
pub(crate) fn columns(text: &str) -> usize {
    printable(text).chars().map(|c| c.width().unwrap_or(0)).sum()
}

/// `text` cut to `width` columns, with a mark where something is missing.
pub(crate) fn fitted(text: &str, width: usize) -> String {
    let text = printable(text);
    if columns(&text) <= width {
        return text;
    }
    let (mut kept, mut taken) = (String::new(), 1);
    for c in text.chars() {
        taken += c.width().unwrap_or(0);
        if taken > width {
            break;
        }
        kept.push(c);
    }
    kept.truncate(kept.trim_end().len());
    kept.push('…');
    kept
}

/// A path relative to directory `here`, if it is inside.
pub(crate) fn from_here<'p>(path: &'p str, here: &str) -> &'p str {
    let inside = path.strip_prefix(here).and_then(|rest| rest.strip_prefix('/'));
    inside.filter(|_| !here.is_empty()).unwrap_or(path)
}

/// The end of a path cut to `width` columns: the file name is more important than the root.
pub(crate) fn fitted_path(path: &str, width: usize) -> String {
    let path = printable(path);
    let mut rest = path.as_str();
    while columns(rest) + 2 > width {
        match rest.trim_start_matches('/').split_once('/') {
            Some((_, shorter)) => rest = shorter,
            None => break,
        }
    }
    if rest.len() == path.len() || columns(&path) <= width {
        return fitted(&path, width);
    }
    fitted(&format!("…/{rest}"), width)
}

/// Whether a terminal only shows this character: no control character, no change of the writing
/// direction, not invisible.
pub(crate) fn is_printable(c: char) -> bool {
    let unseen = matches!(c,
        '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{feff}');
    !unseen && !c.is_control()
}

/// The text with escapes for control characters and for characters that change the writing
/// direction. A tab becomes a blank.
pub(crate) fn printable(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\t' => clean.push(' '),
            c if is_printable(c) => clean.push(c),
            c if c.is_control() => clean.extend(c.escape_default()),
            c => clean.extend(c.escape_unicode()),
        }
    }
    clean
}

/// The first and last parts of a text that is longer than so many characters.
pub(crate) fn shortened(text: &str, most: usize) -> String {
    let count = text.chars().count();
    if count <= most {
        return text.to_owned();
    }
    let (head, tail) = (most * 2 / 3, most / 3 - 1);
    let first: String = text.chars().take(head).collect();
    let last: String = text.chars().skip(count - tail).collect();
    format!("{first}…{last}")
}

/// The text in ASCII: each of our signs becomes a similar one.
fn ascii(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\u{a0}' | '\u{202f}' => plain.push(' '),
            '×' => plain.push('x'),
            'µ' | 'μ' => plain.push('u'),
            '·' | '─' | '−' | '–' | '—' => plain.push('-'),
            '█' | '▉' | '▊' | '▋' | '▌' => plain.push('#'),
            '▍' | '▎' | '▏' => plain.push(' '),
            '±' => plain.push_str("+-"),
            '…' => plain.push('~'),
            '←' => plain.push('<'),
            '→' => plain.push('>'),
            '‘' | '’' => plain.push('\''),
            '“' | '”' => plain.push('"'),
            c if c.is_ascii() => plain.push(c),
            _ => plain.push('?'),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: Page = Page { width: 40, colour: false, unicode: true };

    fn drawn(page: Page, line: &Line) -> String {
        let mut sheet = Sheet::new(page);
        sheet.line(line);
        sheet.into_text()
    }

    #[test]
    fn control_characters_never_pass() {
        let mut line = Line::default();
        line.push(Ink::Strong, "a\u{1b}[31mb\r\nc\td\u{202e}e\u{9b}f");
        let text = drawn(PAGE, &line);
        assert_eq!(text, "a\\u{1b}[31mb\\r\\nc d\\u{202e}e\\u{9b}f\n");
    }

    #[test]
    fn colours_are_closed_and_blanks_stay_bare() {
        let mut line = Line::default();
        line.push(Ink::Cost, "x").push(Ink::Place, "  ").push(Ink::Plain, "y  ");
        let text = drawn(Page { colour: true, ..PAGE }, &line);
        assert_eq!(text, "\u{1b}[1m\u{1b}[31mx\u{1b}[0m  y\n");
    }

    #[test]
    fn wide_characters_take_two_columns_and_cutting_minds_them() {
        assert_eq!(columns("日本"), 4);
        assert_eq!(fitted("日本語", 5), "日本…");
        assert_eq!(fitted("abc", 3), "abc");
        assert_eq!(fitted("abcd", 3), "ab…");
        assert_eq!(fitted_path("/usr/lib/gcc/x86_64/12/cc1", 14), "…/12/cc1");
        assert_eq!(fitted_path("/usr/lib/cc1", 14), "/usr/lib/cc1");
        assert_eq!(fitted_path("averyveryverylongname", 8), "averyve…");
        assert_eq!(from_here("/src/a/b.c", "/src"), "a/b.c");
        assert_eq!(from_here("/srca/b.c", "/src"), "/srca/b.c");
        assert_eq!(from_here("/b.c", ""), "/b.c");
    }

    #[test]
    fn a_plain_page_is_ascii() {
        let mut line = Line::default();
        line.push(Ink::Plain, "4 × 3 µs ██▏ ± 1 … é");
        assert_eq!(drawn(Page { unicode: false, ..PAGE }, &line), "4 x 3 us ##  +- 1 ~ ?\n");
    }

    #[test]
    fn paragraphs_break_between_words_and_hang() {
        let mut sheet = Sheet::new(PAGE);
        let mut first = Line::indented(2);
        first.push(Ink::Strong, "Do: ");
        sheet.paragraph(first, 6, Ink::Plain, "wrap standard input in a buffered reader, please");
        assert_eq!(
            sheet.into_text(),
            "  Do: wrap standard input in a buffered\n      reader, please\n"
        );
    }

    #[test]
    fn numbers_keep_their_thousands_and_units() {
        let words = unbroken("read ×4 003, 1 byte; 12 ms (5 %) of 100 or ± 0.4 % in 2026 1234");
        assert_eq!(
            words,
            [
                "read", "×4 003,", "1", "byte;", "12 ms", "(5 %)", "of", "100", "or", "± 0.4 %",
                "in", "2026", "1234"
            ]
        );
    }
}
