//! The words of a line: bare words, quoted words, numbers; and names written so that they read back.
//!
//! Not for what the words mean; see `read` and `stack`.

use super::TextError;
use std::fmt::{self, Write};

/// Keywords: a name that equals one of them is quoted.
const RESERVED: &[&str] = &[
    ":", "<", "<-", "?", "as", "build-id", "by", "child-of", "former", "from", "in", "inferred",
    "irq", "kernel", "language", "major", "none", "of", "outside", "path", "producer", "thread",
    "woken-by",
];

/// A cursor over one line of text.
#[derive(Clone)]
pub(super) struct Words<'a> {
    rest: &'a str,
    line: usize,
}

impl<'a> Words<'a> {
    /// The words of `text`, which is line number `line`, from 1.
    pub(super) fn new(text: &'a str, line: usize) -> Self {
        let mut words = Self { rest: text, line };
        words.skip();
        words
    }

    /// An error at this place.
    pub(super) fn expected(&self, what: impl Into<String>) -> TextError {
        let found: String = self.rest.chars().take(40).collect();
        TextError {
            line: self.line,
            expected: what.into(),
            found: found.escape_debug().to_string(),
        }
    }

    /// Skips blanks, and a comment up to the end of the line.
    fn skip(&mut self) {
        self.rest = self.rest.trim_start();
        if self.rest.starts_with('#') {
            self.rest = "";
        }
    }

    /// Whether nothing is left.
    pub(super) fn at_end(&self) -> bool {
        self.rest.is_empty()
    }

    /// Fails unless nothing is left.
    pub(super) fn finish(&self) -> Result<(), TextError> {
        if self.at_end() { Ok(()) } else { Err(self.expected("the end of the line")) }
    }

    /// Skips the rest.
    pub(super) fn drop_rest(&mut self) {
        self.rest = "";
    }

    /// Everything up to the next blank; empty at the end.
    pub(super) fn peek(&self) -> &'a str {
        self.rest.split(char::is_whitespace).next().unwrap_or("")
    }

    /// Whether the next characters are `start`.
    pub(super) fn starts_with(&self, start: char) -> bool {
        self.rest.starts_with(start)
    }

    /// Takes `c` if it is the next character, without skipping blanks after it.
    pub(super) fn take_char(&mut self, c: char) -> bool {
        match self.rest.strip_prefix(c) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    /// Takes the next characters while they are `good`, without skipping blanks after them.
    pub(super) fn take_while(&mut self, good: impl Fn(char) -> bool) -> &'a str {
        let end = self.rest.find(|c| !good(c)).unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at(end);
        self.rest = rest;
        taken
    }

    /// Takes the next `len` bytes, or fewer if the line ends before.
    pub(super) fn take_bytes(&mut self, len: usize) {
        self.rest = self.rest.get(len..).unwrap_or("");
    }

    /// Ends a word that was taken by characters: a blank or the end must follow.
    pub(super) fn end_word(&mut self) -> Result<(), TextError> {
        if !self.rest.is_empty() && !self.rest.starts_with(char::is_whitespace) {
            return Err(self.expected("a blank"));
        }
        self.skip();
        Ok(())
    }

    /// Takes the next word, whatever it is.
    pub(super) fn word(&mut self) -> &'a str {
        let word = self.peek();
        self.rest = &self.rest[word.len()..];
        self.skip();
        word
    }

    /// Takes the next word if it is `keyword`.
    pub(super) fn keyword(&mut self, keyword: &str) -> bool {
        let found = self.peek() == keyword;
        if found {
            self.word();
        }
        found
    }

    /// Takes a name: a bare word that is not reserved, or a quoted one.
    pub(super) fn name(&mut self, what: &str) -> Result<String, TextError> {
        let name = if self.starts_with('"') {
            self.quoted()?
        } else {
            let word = self.peek();
            if word.is_empty() || RESERVED.contains(&word) {
                return Err(self.expected(what));
            }
            self.take_while(|c| !c.is_whitespace()).to_owned()
        };
        self.end_word()?;
        Ok(name)
    }

    /// Takes a quoted name, without skipping blanks after it.
    pub(super) fn quoted(&mut self) -> Result<String, TextError> {
        let mut name = String::new();
        let mut chars = self.rest.char_indices().skip(1);
        while let Some((at, c)) = chars.next() {
            match c {
                '"' => {
                    self.rest = &self.rest[at + 1..];
                    return Ok(name);
                }
                '\\' => match chars.next().map(|(_, c)| c) {
                    Some('n') => name.push('\n'),
                    Some('t') => name.push('\t'),
                    Some('r') => name.push('\r'),
                    Some(c @ ('"' | '\\')) => name.push(c),
                    Some('u') => {
                        let digits = (&mut chars)
                            .map(|(_, c)| c)
                            .skip_while(|c| *c == '{')
                            .take_while(|c| *c != '}')
                            .take(8)
                            .collect::<String>();
                        let code = u32::from_str_radix(&digits, 16).ok();
                        let c = code.and_then(char::from_u32);
                        name.push(c.ok_or_else(|| self.expected("a character after \\u"))?);
                    }
                    _ => return Err(self.expected("one of n t r u \" \\ after a backslash")),
                },
                c => name.push(c),
            }
        }
        Err(self.expected("a closing quote"))
    }

    /// Takes a number: decimal, hexadecimal with `0x`, or negative; `_` is ignored in it.
    pub(super) fn number(&mut self, what: &str) -> Result<u64, TextError> {
        let value = number(self.peek()).ok_or_else(|| self.expected(what))?;
        self.word();
        Ok(value)
    }

    /// Takes a number that fits `T`.
    pub(super) fn small<T: TryFrom<u64>>(&mut self, what: &str) -> Result<T, TextError> {
        let value = number(self.peek()).and_then(|n| T::try_from(n).ok());
        let value = value.ok_or_else(|| self.expected(what))?;
        self.word();
        Ok(value)
    }

    /// Takes a signed number.
    pub(super) fn signed(&mut self, what: &str) -> Result<i64, TextError> {
        Ok(self.number(what)?.cast_signed())
    }

    /// Takes a time. Groups of three digits may follow after blanks: `12 000`.
    pub(super) fn time(&mut self) -> Result<u64, TextError> {
        let mut digits = String::new();
        loop {
            let word = self.peek();
            let plain = word.starts_with(|c: char| c.is_ascii_digit()) && number(word).is_some();
            if !plain || !(digits.is_empty() || word.len() == 3) {
                break;
            }
            digits.push_str(word);
            self.word();
        }
        number(&digits).ok_or_else(|| self.expected("a time in nanoseconds"))
    }
}

/// The value of a number as written; negative ones in two's complement.
pub(super) fn number(word: &str) -> Option<u64> {
    let (negative, word) = word.strip_prefix('-').map_or((false, word), |w| (true, w));
    let (radix, digits) = word.strip_prefix("0x").map_or((10, word), |w| (16, w));
    if !digits.starts_with(|c: char| c.is_digit(radix)) {
        return None;
    }
    let digits: String = digits.chars().filter(|c| *c != '_').collect();
    let value = u64::from_str_radix(&digits, radix).ok()?;
    Some(if negative { value.wrapping_neg() } else { value })
}

/// Whether `name` can be written without quotes.
fn is_bare(name: &str) -> bool {
    !name.is_empty()
        && !RESERVED.contains(&name)
        && !name.starts_with(['(', '#', '@'])
        && name.chars().all(|c| !c.is_whitespace() && !needs_escape(c))
}

/// Whether `c` must be escaped in a quoted name and on a terminal: control characters, and marks that change the
/// direction of writing.
fn needs_escape(c: char) -> bool {
    c.is_control()
        || matches!(c, '"' | '\\' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A name as it is written: bare if that reads back, else quoted with escapes.
pub(super) struct Name<'a>(pub(super) &'a str);

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if is_bare(self.0) { f.write_str(self.0) } else { Quoted(self.0).fmt(f) }
    }
}

/// A name in quotes.
pub(super) struct Quoted<'a>(pub(super) &'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        for c in self.0.chars() {
            match c {
                '"' | '\\' => write!(f, "\\{c}")?,
                '\n' => f.write_str("\\n")?,
                '\t' => f.write_str("\\t")?,
                '\r' => f.write_str("\\r")?,
                c if needs_escape(c) => write!(f, "\\u{{{:x}}}", u32::from(c))?,
                c => f.write_char(c)?,
            }
        }
        f.write_char('"')
    }
}

/// A name inside brackets that `closing` ends: bare only if it contains no bracket.
pub(super) struct Enclosed<'a>(pub(super) &'a str, pub(super) &'a [char]);

impl fmt::Display for Enclosed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.contains(self.1) { Quoted(self.0).fmt(f) } else { Name(self.0).fmt(f) }
    }
}

/// A register's value: small ones in decimal, errors negative, addresses in hexadecimal.
pub(super) struct Value(pub(super) u64);

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            small if small < 1 << 32 => write!(f, "{small}"),
            negative if negative > u64::MAX - 0x1000 => write!(f, "{}", negative.cast_signed()),
            wide => write!(f, "{wide:#x}"),
        }
    }
}
