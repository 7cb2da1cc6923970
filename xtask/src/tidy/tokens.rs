//! A Rust file as tokens: words, `::` and single characters, each with its line.
//!
//! Comments and the contents of strings are left out. Does not parse; see `imports`.

/// The smallest part of the code that the rules read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token<'a> {
    /// An identifier, a keyword or a number.
    Word(&'a str),
    /// `::`.
    Path,
    /// Any other character. A string or character literal is one `"`.
    Sign(char),
}

/// The tokens of `text` with their lines, from 1.
pub(super) fn tokens(text: &str) -> Vec<(usize, Token<'_>)> {
    let mut tokens = Vec::new();
    let mut line = 1;
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        let rest = &text[at..];
        let (length, token) = if rest.starts_with("//") {
            (rest.find('\n').unwrap_or(rest.len()), None)
        } else if rest.starts_with("/*") {
            (block_comment(rest), None)
        } else if let Some(length) = literal(rest) {
            (length, Some(Token::Sign('"')))
        } else if is_word(c) {
            let length = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
            (length, Some(Token::Word(&rest[..length])))
        } else if rest.starts_with("::") {
            (2, Some(Token::Path))
        } else {
            (c.len_utf8(), (!c.is_whitespace()).then_some(Token::Sign(c)))
        };
        tokens.extend(token.map(|token| (line, token)));
        line += rest[..length].matches('\n').count();
        at += length;
    }
    tokens
}

/// Whether an identifier can hold `c`.
pub(super) fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The length of the block comment that `text` begins with. Block comments nest.
fn block_comment(text: &str) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while at < text.len() {
        if text[at..].starts_with("/*") {
            depth += 1;
            at += 2;
        } else if text[at..].starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += text[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    at
}

/// The length of the string or character literal that `text` begins with, if it begins with one.
fn literal(text: &str) -> Option<usize> {
    let prefix = text.find(|c: char| !is_word(c))?;
    if !["", "b", "c", "r", "br", "cr"].contains(&&text[..prefix]) {
        return None;
    }
    let body = &text[prefix..];
    let hashes = body.len() - body.trim_start_matches('#').len();
    if text[..prefix].ends_with('r') && body[hashes..].starts_with('"') {
        let end = format!("\"{}", &body[..hashes]);
        let start = prefix + hashes + 1;
        return Some(text[start..].find(&end).map_or(text.len(), |n| start + n + end.len()));
    }
    if body.starts_with('"') {
        return Some(prefix + quoted(body, '"')?);
    }
    // `'a` alone is a lifetime: a character literal has its second quote after one character.
    let mut characters = body.strip_prefix('\'')?.chars();
    let first = characters.next()?;
    (first == '\\' || characters.next() == Some('\'')).then_some(())?;
    Some(prefix + quoted(body, '\'')?)
}

/// The length of the literal between two `quote`s, with escapes.
fn quoted(body: &str, quote: char) -> Option<usize> {
    let mut escaped = false;
    for (at, c) in body.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if c == quote => return Some(at + c.len_utf8()),
            _ => {}
        }
    }
    Some(body.len())
}

#[cfg(test)]
mod tests {
    use super::{Token, tokens};

    fn words(text: &str) -> Vec<&str> {
        let word = |(_, token)| match token {
            Token::Word(word) => Some(word),
            Token::Path | Token::Sign(_) => None,
        };
        tokens(text).into_iter().filter_map(word).collect()
    }

    #[test]
    fn comments_and_strings_hold_no_words() {
        let text = "a /* no /* no */ no */ b // no\nc \"no \\\" no\" d r#\"no \" no\"# e b\"no\" f";
        assert_eq!(words(text), ["a", "b", "c", "d", "e", "f"]);
    }

    #[test]
    fn a_quote_in_a_character_opens_no_string_and_a_lifetime_is_no_character() {
        assert_eq!(
            words("a '\"' b '\\'' c &'d e 'f' g b'\"' h"),
            ["a", "b", "c", "d", "e", "g", "h"]
        );
    }

    #[test]
    fn lines_are_counted_through_strings_and_comments() {
        let lines: Vec<usize> = tokens("a\n/*\n*/\n\"\n\"\nb").into_iter().map(|t| t.0).collect();
        assert_eq!(lines, [1, 4, 6]);
    }
}
