//! Reads JSON into a tree of values, so that xtask needs no dependencies.
//!
//! For reports that deadweight wrote itself: it takes correct JSON, and refuses most of the rest. Does not know what a
//! report holds; see `verdict`.

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Json {
    /// `null`, `true` and `false`: reports are not asked for them.
    Word(String),
    /// With its digits: a number of 64 bits has no exact form as a float.
    Number(String),
    Text(String),
    List(Vec<Json>),
    /// In the order of the file.
    Object(Vec<(String, Json)>),
}

impl Json {
    /// Reads a whole text.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut reader = Reader { rest: text };
        let value = reader.value()?;
        match reader.next() {
            None => Ok(value),
            Some(_) => Err(reader.refused("the end")),
        }
    }

    /// The value at a path such as `runs.traced.lost`.
    pub(crate) fn at(&self, path: &str) -> Option<&Self> {
        path.split('.').try_fold(self, |value, key| match value {
            Self::Object(entries) => entries.iter().find(|(name, _)| name == key).map(|(_, v)| v),
            _ => None,
        })
    }

    /// The number at a path; 0 if there is none.
    pub(crate) fn number(&self, path: &str) -> f64 {
        match self.at(path) {
            Some(Self::Number(digits)) => digits.parse().unwrap_or(f64::NAN),
            _ => 0.0,
        }
    }

    /// The text at a path; empty if there is none.
    pub(crate) fn text(&self, path: &str) -> &str {
        match self.at(path) {
            Some(Self::Text(text)) => text,
            _ => "",
        }
    }

    /// The list at a path; empty if there is none.
    pub(crate) fn list(&self, path: &str) -> &[Self] {
        match self.at(path) {
            Some(Self::List(list)) => list,
            _ => &[],
        }
    }

    /// Calls `see` with each number and each text, and its path without list positions.
    pub(crate) fn each(&self, path: &str, see: &mut impl FnMut(&str, &Self)) {
        match self {
            Self::List(list) => list.iter().for_each(|value| value.each(path, see)),
            Self::Object(entries) => {
                for (key, value) in entries {
                    let dot = if path.is_empty() { "" } else { "." };
                    value.each(&format!("{path}{dot}{key}"), see);
                }
            }
            leaf => see(path, leaf),
        }
    }
}

struct Reader<'t> {
    rest: &'t str,
}

impl<'t> Reader<'t> {
    fn next(&mut self) -> Option<char> {
        self.rest = self.rest.trim_start();
        self.rest.chars().next()
    }

    fn takes(&mut self, sign: char) -> bool {
        let there = self.next() == Some(sign);
        self.rest = if there { &self.rest[sign.len_utf8()..] } else { self.rest };
        there
    }

    fn refused(&self, wanted: &str) -> String {
        let near: String = self.rest.chars().take(20).collect();
        format!("no JSON: {wanted} is wanted before `{near}`")
    }

    fn value(&mut self) -> Result<Json, String> {
        match self.next() {
            Some('{') => self.object(),
            Some('[') => self.list(),
            Some('"') => Ok(Json::Text(self.text()?)),
            Some(c) if c == '-' || c.is_ascii_digit() => Ok(Json::Number(self.word().to_owned())),
            Some(c) if c.is_alphabetic() => Ok(Json::Word(self.word().to_owned())),
            _ => Err(self.refused("a value")),
        }
    }

    fn word(&mut self) -> &'t str {
        let part = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
        let end = self.rest.find(|c| !part(c)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        word
    }

    fn list(&mut self) -> Result<Json, String> {
        let mut list = Vec::new();
        self.takes('[');
        while !self.takes(']') {
            list.push(self.value()?);
            if !self.takes(',') && self.next() != Some(']') {
                return Err(self.refused("`,` or `]`"));
            }
        }
        Ok(Json::List(list))
    }

    fn object(&mut self) -> Result<Json, String> {
        let mut entries = Vec::new();
        self.takes('{');
        while !self.takes('}') {
            let key = self.text()?;
            if !self.takes(':') {
                return Err(self.refused("`:`"));
            }
            entries.push((key, self.value()?));
            if !self.takes(',') && self.next() != Some('}') {
                return Err(self.refused("`,` or `}`"));
            }
        }
        Ok(Json::Object(entries))
    }

    fn text(&mut self) -> Result<String, String> {
        if !self.takes('"') {
            return Err(self.refused("a text"));
        }
        let mut text = String::new();
        let mut chars = self.rest.chars();
        while let Some(c) = chars.next() {
            match c {
                '"' => {
                    self.rest = chars.as_str();
                    return Ok(text);
                }
                '\\' => match chars.next() {
                    Some('n') => text.push('\n'),
                    Some('t') => text.push('\t'),
                    Some('u') => {
                        let digits: String = chars.by_ref().take(4).collect();
                        let code = u32::from_str_radix(&digits, 16).ok();
                        text.push(code.and_then(char::from_u32).unwrap_or('\u{fffd}'));
                    }
                    Some(other) => text.push(other),
                    None => break,
                },
                c => text.push(c),
            }
        }
        Err("no JSON: a text has no end".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_read_and_asked_by_path() {
        let text = r#" {"a": {"b": 18446744073709551615, "c": "x\"\u00d7\n"}, "d": [{"e": -1.5e3}, null], "f": []} "#;
        let json = Json::parse(text).unwrap();
        assert_eq!(json.at("a.b"), Some(&Json::Number("18446744073709551615".to_owned())));
        assert_eq!(json.text("a.c"), "x\"×\n");
        assert!((json.list("d")[0].number("e") + 1500.0).abs() < 1e-9);
        assert_eq!((json.list("f").len(), json.text("a.b"), json.at("a.z")), (0, "", None));
        let mut seen = Vec::new();
        json.each("", &mut |path, _| seen.push(path.to_owned()));
        assert_eq!(seen, ["a.b", "a.c", "d.e", "d"]);
    }

    #[test]
    fn what_is_no_json_is_refused() {
        for text in ["", "{", "{\"a\" 1}", "[1 2]", "{\"a\": 1} x", "\"a", "{a: 1}"] {
            assert!(Json::parse(text).is_err(), "{text}");
        }
    }
}
