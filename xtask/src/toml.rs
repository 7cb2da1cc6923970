//! A small subset of TOML: what the files of `cases` and `wild` need.
//!
//! Reads keys with a string, a list of strings, or `true` and `false`, and tables of such keys. Strings are in quotes
//! of either kind, without escapes, or in three single ones. Anything else is refused with its line. Does not know
//! what a key means; see `case` and `wild`.

/// A key with its value.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// The table that it is in; empty before the first one.
    pub(crate) table: String,
    pub(crate) key: String,
    pub(crate) value: Value,
    line: usize,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Value {
    /// A string is a list of one.
    Strings(Vec<String>),
    Flag(bool),
}

impl Entry {
    /// The list of strings.
    pub(crate) fn strings(self) -> Result<Vec<String>, String> {
        let refused = self.refused("a string in quotes is wanted");
        match self.value {
            Value::Strings(values) => Ok(values),
            Value::Flag(_) => Err(refused),
        }
    }

    /// The only string.
    pub(crate) fn string(self) -> Result<String, String> {
        let refused = self.refused("one string is wanted");
        let mut values = self.strings()?;
        if values.len() == 1 { Ok(values.remove(0)) } else { Err(refused) }
    }

    /// Whether it is `true`.
    pub(crate) fn flag(self) -> Result<bool, String> {
        match self.value {
            Value::Flag(value) => Ok(value),
            Value::Strings(_) => Err(self.refused("`true` or `false` is wanted")),
        }
    }

    /// Why it cannot be used, with its line.
    pub(crate) fn refused(&self, why: &str) -> String {
        format!("line {}: `{}`: {why}", self.line, self.key)
    }
}

/// The entries of a text, in order.
pub(crate) fn parse(text: &str) -> Result<Vec<Entry>, String> {
    let mut entries = Vec::new();
    let mut table = String::new();
    let mut lines = text.lines().zip(1..);
    while let Some((line, number)) = lines.next() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(name) = line.strip_prefix('[').and_then(|l| l.strip_suffix(']')) {
            table = name.to_owned();
            continue;
        }
        let refused = |why: &str| format!("line {number}: {why}");
        let (key, value) = line.split_once('=').ok_or_else(|| refused("no `=`"))?;
        let mut value = value.trim().to_owned();
        while value.starts_with('[') && !value.ends_with(']') {
            let (more, _) = lines.next().ok_or_else(|| refused("the list has no end"))?;
            let more = more.trim();
            if !more.starts_with('#') {
                value.push_str(more);
            }
        }
        let value = match value.as_str() {
            "true" => Value::Flag(true),
            "false" => Value::Flag(false),
            _ => Value::Strings(strings(&value).map_err(|why| refused(&why))?),
        };
        entries.push(Entry {
            table: table.clone(),
            key: key.trim().to_owned(),
            value,
            line: number,
        });
    }
    Ok(entries)
}

/// The strings of a value.
fn strings(value: &str) -> Result<Vec<String>, String> {
    let mut found = Vec::new();
    let list = value.strip_prefix('[').and_then(|value| value.strip_suffix(']'));
    let mut rest = list.unwrap_or(value).trim();
    while !rest.is_empty() {
        let quote = ["'''", "'", "\""].into_iter().find(|quote| rest.starts_with(quote));
        let quote = quote.ok_or_else(|| format!("a string in quotes is wanted, not `{rest}`"))?;
        rest = &rest[quote.len()..];
        let end = rest.find(quote).ok_or("a quotation has no end")?;
        found.push(rest[..end].to_owned());
        rest = rest[end + quote.len()..].trim_start().trim_start_matches(',').trim_start();
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_lists_flags_and_tables_are_read() {
        let text = "a = \"x]\"\nb = [\n  'it \"is\"',\n  # why\n  '''don't \"go\"''',\n]\nc = true\n[t]\nd = ''\n";
        let entries = parse(text).unwrap();
        let list =
            |values: &[&str]| Value::Strings(values.iter().map(|v| (*v).to_owned()).collect());
        let got: Vec<(&str, &str, &Value)> =
            entries.iter().map(|e| (e.table.as_str(), e.key.as_str(), &e.value)).collect();
        let expected = [
            ("", "a", &list(&["x]"])),
            ("", "b", &list(&["it \"is\"", "don't \"go\""])),
            ("", "c", &Value::Flag(true)),
            ("t", "d", &list(&[""])),
        ];
        assert_eq!(got, expected);
    }

    #[test]
    fn what_it_does_not_know_is_refused_with_its_line() {
        for (text, line) in [("\na = go", 2), ("a = [\"a\"", 1), ("?", 1), ("a = 'b", 1)] {
            let why = parse(text).unwrap_err();
            assert!(why.starts_with(&format!("line {line}:")), "{why}");
        }
    }

    #[test]
    fn a_value_of_another_kind_is_refused_with_its_key() {
        let of = |text: &str| parse(text).unwrap().remove(0);
        assert_eq!(
            of("a = true").string().unwrap_err(),
            "line 1: `a`: a string in quotes is wanted"
        );
        assert_eq!(of("a = ['b', 'c']").string().unwrap_err(), "line 1: `a`: one string is wanted");
        assert_eq!(of("a = 'b'").flag().unwrap_err(), "line 1: `a`: `true` or `false` is wanted");
    }
}
