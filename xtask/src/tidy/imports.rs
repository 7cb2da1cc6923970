//! What a Rust file uses of its own crate: the paths of its `use` trees and of its code.
//!
//! Test parts are left out: what stands under `#[cfg(test)]`, and the modules declared there.
//! A name that a parent re-exports counts as the parent's. Does not judge; see `circles`.

use super::tokens::{Token, tokens};

/// A path that begins with `crate`, `self` or `super`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Import {
    pub(super) line: usize,
    /// The modules that are written out in the file and stand around the path.
    pub(super) inside: Vec<String>,
    /// The parts between the `::`.
    pub(super) path: Vec<String>,
}

/// What a file says of its crate's modules.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Imports {
    pub(super) imports: Vec<Import>,
    /// Modules in files of their own that exist in tests only.
    pub(super) test_modules: Vec<String>,
}

/// Reads a file's text.
pub(super) fn read(text: &str) -> Imports {
    let tokens = tokens(text);
    let mut reader = Reader { tokens: &tokens, at: 0, depth: 0, inside: Vec::new() };
    let mut found = Imports::default();
    while reader.peek(0).is_some() {
        reader.step(&mut found);
    }
    found
}

struct Reader<'a> {
    tokens: &'a [(usize, Token<'a>)],
    at: usize,
    /// Open brackets of all kinds.
    depth: usize,
    /// The written-out modules around, each with the depth of its brace.
    inside: Vec<(usize, String)>,
}

impl<'a> Reader<'a> {
    fn peek(&self, ahead: usize) -> Option<Token<'a>> {
        self.tokens.get(self.at + ahead).map(|(_, token)| *token)
    }

    fn line(&self) -> usize {
        self.tokens.get(self.at).map_or(0, |(line, _)| *line)
    }

    /// Reads one token, or one path, tree or test part.
    fn step(&mut self, found: &mut Imports) {
        match (self.peek(0), self.peek(1)) {
            (Some(Token::Sign('#')), Some(Token::Sign('['))) => {
                if self.attribute() {
                    found.test_modules.extend(self.skip_item());
                }
            }
            (Some(Token::Sign('#')), Some(Token::Sign('!')))
                if self.peek(3) == Some(Token::Word("cfg")) =>
            {
                self.at += 1;
                if self.attribute() {
                    self.at = self.tokens.len();
                }
            }
            (Some(Token::Word("use")), next) if next != Some(Token::Sign('<')) => {
                self.at += 1;
                self.tree(&mut Vec::new(), found);
            }
            (Some(Token::Word("mod")), Some(Token::Word(name)))
                if self.peek(2) == Some(Token::Sign('{')) =>
            {
                self.at += 3;
                self.inside.push((self.depth, name.to_owned()));
                self.depth += 1;
            }
            (Some(Token::Path), Some(Token::Word(_))) => self.at += 2,
            (Some(Token::Word("crate" | "self" | "super")), Some(Token::Path)) => {
                let line = self.line();
                let mut path = Vec::new();
                while let Some(Token::Word(part)) = self.peek(0) {
                    path.push(part.to_owned());
                    self.at += 1;
                    if self.peek(0) != Some(Token::Path) {
                        break;
                    }
                    self.at += 1;
                }
                self.add(line, path, found);
            }
            (Some(token), _) => {
                self.at += 1;
                self.bracket(token);
            }
            (None, _) => {}
        }
    }

    fn bracket(&mut self, token: Token<'a>) {
        match token {
            Token::Sign('(' | '[' | '{') => self.depth += 1,
            Token::Sign(')' | ']' | '}') => {
                self.depth = self.depth.saturating_sub(1);
                self.inside.retain(|(depth, _)| *depth < self.depth);
            }
            Token::Word(_) | Token::Path | Token::Sign(_) => {}
        }
    }

    /// Reads an attribute; whether it keeps what follows for tests.
    fn attribute(&mut self) -> bool {
        let start = self.at;
        let mut open = 0_usize;
        while let Some(token) = self.peek(0) {
            self.at += 1;
            match token {
                Token::Sign('[') => open += 1,
                Token::Sign(']') => {
                    open -= 1;
                    if open == 0 {
                        break;
                    }
                }
                Token::Word(_) | Token::Path | Token::Sign(_) => {}
            }
        }
        let words = &self.tokens[start..self.at];
        let has = |word| words.iter().any(|(_, token)| *token == Token::Word(word));
        words.get(2).is_some_and(|(_, token)| *token == Token::Word("cfg"))
            && has("test")
            && !has("not")
            && !has("any")
    }

    /// Skips an item, field, arm or statement. Gives its name if it is a module in its own file.
    fn skip_item(&mut self) -> Option<String> {
        while self.peek(0) == Some(Token::Sign('#')) {
            self.attribute();
        }
        let start = self.at;
        let first = |words: &[&str], from: &[(usize, Token<'_>)]| {
            from.iter().take(6).any(|(_, t)| matches!(t, Token::Word(w) if words.contains(w)))
        };
        let head = &self.tokens[start..];
        let body = first(&["fn", "mod", "struct", "enum", "impl", "trait"], head);
        let to_semicolon = !body && first(&["use", "let", "const", "static", "type"], head);
        let mut open = 0_usize;
        while let Some(token) = self.peek(0) {
            match token {
                Token::Sign('(' | '[' | '{') => open += 1,
                Token::Sign(')' | ']' | '}') if open == 0 => return None,
                Token::Sign(')' | ']') => open -= 1,
                Token::Sign('}') => {
                    open -= 1;
                    if open == 0 && !to_semicolon {
                        self.at += 1;
                        return None;
                    }
                }
                Token::Sign(';') if open == 0 => break,
                Token::Sign(',') if open == 0 && !body && !to_semicolon => break,
                Token::Word(_) | Token::Path | Token::Sign(_) => {}
            }
            self.at += 1;
        }
        let mut words = self.tokens[start..self.at].iter().map(|(_, token)| token);
        words.find(|token| **token == Token::Word("mod"))?;
        let Some(Token::Word(name)) = words.next() else { return None };
        Some((*name).to_owned())
    }

    /// Reads the rest of a `use` tree below `prefix`, to its end or its `,`.
    fn tree(&mut self, prefix: &mut Vec<String>, found: &mut Imports) {
        let length = prefix.len();
        let line = self.line();
        while let Some(token) = self.peek(0) {
            match token {
                Token::Word("as") => self.at += 2,
                Token::Word(part) => {
                    prefix.push(part.to_owned());
                    self.at += 1;
                }
                Token::Sign('{') => {
                    self.at += 1;
                    while !matches!(self.peek(0), None | Some(Token::Sign('}'))) {
                        self.tree(prefix, found);
                        if self.peek(0) == Some(Token::Sign(',')) {
                            self.at += 1;
                        }
                    }
                    self.at += 1;
                    prefix.truncate(length);
                    return;
                }
                Token::Sign(',' | '}' | ';') => break,
                Token::Path | Token::Sign(_) => self.at += 1,
            }
        }
        let mut path = prefix.clone();
        // `{self, …}` stands for the path before the brace.
        if path.len() > 1 && path.last().is_some_and(|part| part == "self") {
            path.pop();
        }
        self.add(line, path, found);
        prefix.truncate(length);
    }

    fn add(&self, line: usize, path: Vec<String>, found: &mut Imports) {
        let own = ["crate", "self", "super"];
        if path.first().is_some_and(|first| own.contains(&first.as_str())) {
            let inside = self.inside.iter().map(|(_, name)| name.clone()).collect();
            found.imports.push(Import { line, inside, path });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::read;

    fn paths(text: &str) -> Vec<String> {
        let found = read(text).imports;
        found.iter().map(|i| format!("{} {}", i.line, i.path.join("::"))).collect()
    }

    #[test]
    fn trees_with_braces_become_paths() {
        let text =
            "use std::fmt;\nuse crate::{a::{self, B as C}, d::*};\npub(crate) use super::e::F;\n";
        assert_eq!(paths(text), ["2 crate::a", "2 crate::a::B", "2 crate::d", "3 super::e::F"]);
    }

    #[test]
    fn paths_in_code_are_found() {
        let text = "fn f(a: &crate::b::C<super::d::E>) {\n    self.g();\n    self::h::i()\n}\n";
        assert_eq!(paths(text), ["1 crate::b::C", "1 super::d::E", "3 self::h::i"]);
    }

    #[test]
    fn comments_strings_and_other_crates_are_left_out() {
        let text = "// use crate::a;\n/// [`crate::b`]\nconst C: &str = \"crate::d\";\nuse e::f;\n";
        assert!(paths(text).is_empty());
    }

    #[test]
    fn test_parts_are_left_out_and_what_follows_them_is_not() {
        let text = "#[cfg(test)]\nuse crate::{a, b};\n#[cfg(test)]\nmod tests {\n    use crate::c;\n}\n\
                    #[cfg(all(test, unix))]\nfn d() { crate::e() }\n\
                    struct S {\n    #[cfg(test)]\n    f: crate::g::H,\n    i: crate::j::K,\n}\n\
                    #[cfg(not(test))]\nuse crate::l;\n";
        assert_eq!(paths(text), ["12 crate::j::K", "15 crate::l"]);
        assert!(read(text).test_modules.is_empty());
    }

    #[test]
    fn test_modules_in_their_own_files_are_named() {
        let text =
            "#[cfg(test)]\n#[path = \"x.rs\"]\npub(crate) mod a;\nmod b;\n#[cfg(test)]\nmod c;\n";
        assert_eq!(read(text).test_modules, ["a", "c"]);
    }

    #[test]
    fn a_file_for_tests_alone_imports_nothing() {
        assert!(paths("#![cfg(test)]\nuse crate::a;\n").is_empty());
        assert_eq!(paths("#![forbid(unsafe_code)]\nuse crate::a;\n"), ["2 crate::a"]);
    }

    #[test]
    fn modules_in_the_file_are_named_around_a_path() {
        let found = read("mod a {\n    use super::b;\n    fn f() {}\n}\nuse self::c;\n").imports;
        let inside: Vec<&[String]> = found.iter().map(|i| i.inside.as_slice()).collect();
        assert_eq!(inside, [&["a".to_owned()][..], &[]]);
    }
}
