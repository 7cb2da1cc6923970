//! Keys of rows and columns: parts of a benchmark's name, facts about its run, or its file. Their names are benchstat's.
//!
//! Not for laying out tables; see `table`.

use super::Measured;
use std::str::FromStr;

/// A property of a measurement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Key {
    /// `.file`: the side that it is from.
    File,
    /// `.fullname`: all parts of the name that no other key uses.
    FullName,
    /// `.name`: the name up to the first `/`.
    Name,
    /// `/key`: the part `/key=value` of the name; `/gomaxprocs` is the number at its end.
    Part(String),
    /// A fact about the run, such as `pkg`.
    Config(String),
}

impl FromStr for Key {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            ".file" => Ok(Self::File),
            ".fullname" => Ok(Self::FullName),
            ".name" => Ok(Self::Name),
            _ => match text.strip_prefix('/') {
                Some("") => Err("give a part of the name, such as /size".into()),
                Some(part) => Ok(Self::Part(part.to_owned())),
                None if text.is_empty() || text.starts_with('.') => {
                    Err("give .file, .fullname, .name, /PART or a key such as pkg".into())
                }
                None => Ok(Self::Config(text.to_owned())),
            },
        }
    }
}

impl Key {
    /// Its value for a measurement; `taken` are the keys that the full name leaves out.
    #[must_use]
    pub fn of(&self, file: &str, one: &Measured, taken: &[&Self]) -> String {
        match self {
            Self::File => file.to_owned(),
            Self::FullName => full_name(&one.name, taken),
            Self::Name => base(&one.name).to_owned(),
            Self::Part(part) if part == "gomaxprocs" => {
                processors(&one.name).1.trim_start_matches('-').to_owned()
            }
            Self::Part(part) => {
                let mut parts = processors(&one.name).0.split('/').skip(1);
                let value = parts.find_map(|p| p.strip_prefix(part.as_str())?.strip_prefix('='));
                value.unwrap_or_default().to_owned()
            }
            Self::Config(key) => {
                let found = one.config.iter().find(|(known, _)| known == key);
                found.map(|(_, value)| value.clone()).unwrap_or_default()
            }
        }
    }
}

fn base(name: &str) -> &str {
    match name.split_once('/') {
        Some((base, _)) => base,
        None => processors(name).0,
    }
}

/// A name without and with the `-8` at its end.
fn processors(name: &str) -> (&str, &str) {
    match name.rfind('-') {
        Some(at) if at + 1 < name.len() && name[at + 1..].bytes().all(|b| b.is_ascii_digit()) => {
            name.split_at(at)
        }
        _ => (name, ""),
    }
}

fn full_name(name: &str, taken: &[&Key]) -> String {
    let is_taken = |part: &str| {
        taken.iter().any(|key| match key {
            Key::Part(key) => part.strip_prefix(key.as_str()).is_some_and(|r| r.starts_with('=')),
            _ => false,
        })
    };
    let (stem, count) = processors(name);
    let mut parts = stem.split('/');
    let mut full = parts.next().unwrap_or_default().to_owned();
    if taken.contains(&&Key::Name) {
        full = "*".into();
    }
    for part in parts.filter(|part| !is_taken(part)) {
        full.push('/');
        full.push_str(part);
    }
    if !taken.contains(&&Key::Part("gomaxprocs".into())) {
        full.push_str(count);
    }
    full
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_name_by_their_keys() {
        let one = Measured { name: "CRC/poly=IEEE/size=1kB/x-8".into(), ..Measured::default() };
        let of = |key: &str, taken: &[&Key]| key.parse::<Key>().unwrap().of("f", &one, taken);
        assert_eq!(of("/size", &[]), "1kB");
        assert_eq!(of("/none", &[]), "");
        assert_eq!(of("/gomaxprocs", &[]), "8");
        assert_eq!(of(".name", &[]), "CRC");
        assert_eq!(of(".file", &[]), "f");
        assert_eq!(of("pkg", &[]), "");
        let poly = Key::Part("poly".into());
        assert_eq!(of(".fullname", &[]), "CRC/poly=IEEE/size=1kB/x-8");
        assert_eq!(of(".fullname", &[&poly, &Key::Name]), "*/size=1kB/x-8");
        assert!("/".parse::<Key>().is_err() && ".unit".parse::<Key>().is_err());
    }
}
