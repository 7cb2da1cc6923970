//! Where an archive is: a file of SQLite, or a database of PostgreSQL.
//!
//! Opens nothing.

use crate::error::{ArchiveError, ErrorKind};
use std::fmt;
use std::path::PathBuf;

/// Where an archive is.
#[derive(Clone, PartialEq, Eq)]
pub enum Address {
    /// A file of SQLite.
    Sqlite(PathBuf),
    /// The address of a PostgreSQL database, with its password.
    Postgres(String),
}

impl Address {
    /// Reads `sqlite:PATH`, a path that ends in `.db` or `.sqlite`, or `postgres://USER:PASSWORD@HOST/DATABASE`.
    ///
    /// # Errors
    /// If it is none of these.
    pub fn parse(text: &str) -> Result<Self, ArchiveError> {
        if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            return Ok(Self::Postgres(text.to_owned()));
        }
        let path = text.strip_prefix("sqlite:").or_else(|| {
            let is_file = [".db", ".sqlite"].iter().any(|end| text.ends_with(end));
            Some(text).filter(|_| is_file && !text.contains("://"))
        });
        match path {
            // `sqlite:///var/x.db` is how others write an absolute path.
            Some(path) if !path.is_empty() => {
                Ok(Self::Sqlite(path.strip_prefix("//").unwrap_or(path).into()))
            }
            _ => Err(ArchiveError::new(
                ErrorKind::Address,
                format!("`{}` is no archive", without_password(text)),
                "it is neither a file of SQLite nor a database of PostgreSQL",
                "write sqlite:PATH, a path that ends in .db, or postgres://USER:PASSWORD@HOST/DATABASE",
            )),
        }
    }

    /// The usual file in a user's data folder: `$XDG_DATA_HOME` if it is given, else `.local/share` in their home.
    #[must_use]
    pub fn usual(data: Option<PathBuf>, home: Option<PathBuf>) -> Option<Self> {
        // The specification has relative paths ignored.
        let data = data.filter(|path| path.is_absolute());
        let data = data.or_else(|| Some(home?.join(".local/share")))?;
        Some(Self::Sqlite(data.join("deadweight/archive.db")))
    }

    /// The password in it, percent-encoded as it stands there.
    pub(crate) fn password(&self) -> Option<&str> {
        match self {
            Self::Sqlite(_) => None,
            Self::Postgres(text) => password(text),
        }
    }
}

/// Shows it without its password.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(path) => write!(f, "{}", path.display()),
            Self::Postgres(text) => f.write_str(&without_password(text)),
        }
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Address({self})")
    }
}

/// The part between `://` and the host.
fn credentials(text: &str) -> Option<&str> {
    let rest = &text[text.find("://")? + 3..];
    let authority = &rest[..rest.find(['/', '?']).unwrap_or(rest.len())];
    // A password with `@` or `/` in it must be percent-encoded; if it is not, hide rather too much.
    match authority.rfind('@') {
        Some(end) => Some(&rest[..end]),
        None => rest.rfind('@').map(|end| &rest[..end]),
    }
}

fn password(text: &str) -> Option<&str> {
    let of_user = credentials(text).and_then(|part| part.split_once(':')).map(|(_, word)| word);
    let option = || text.split(['?', '&']).find_map(|part| part.strip_prefix("password="));
    of_user.or_else(option).filter(|word| !word.is_empty())
}

fn without_password(text: &str) -> String {
    let mut shown = text.to_owned();
    // Once as a user's, once as an option.
    for _ in 0..2 {
        if let Some(word) = password(&shown).filter(|word| *word != "...").map(str::to_owned) {
            shown = shown
                .replace(&format!(":{word}@"), ":...@")
                .replace(&format!("password={word}"), "password=...");
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_form_decides_between_file_and_database() {
        let file = |text: &str| Address::Sqlite(text.into());
        assert_eq!(Address::parse("sqlite:a").unwrap(), file("a"));
        assert_eq!(Address::parse("sqlite:///a/b").unwrap(), file("/a/b"));
        assert_eq!(Address::parse("a/b.db").unwrap(), file("a/b.db"));
        assert!(matches!(Address::parse("postgres://h/d").unwrap(), Address::Postgres(_)));
        for not in ["", "sqlite:", "a", "mysql://u:secret@h/d.db"] {
            let said = Address::parse(not).unwrap_err().to_string();
            assert!(said.contains("sqlite:PATH") && !said.contains("secret"), "{said}");
        }
    }

    #[test]
    fn a_password_is_never_shown() {
        for (given, shown) in [
            ("postgres://u:secret@h/d", "postgres://u:...@h/d"),
            ("postgres://u:se/cr@et@h/d", "postgres://u:...@h/d"),
            ("postgres://h/d?user=u&password=secret", "postgres://h/d?user=u&password=..."),
            ("postgres://u@h/d", "postgres://u@h/d"),
            ("postgres://u:u@u/u", "postgres://u:...@u/u"),
        ] {
            assert_eq!(Address::parse(given).unwrap().to_string(), shown);
        }
    }

    #[test]
    fn the_usual_file_is_in_the_data_folder() {
        let file = |text: &str| Some(Address::Sqlite(text.into()));
        let usual = |data: Option<&str>| Address::usual(data.map(PathBuf::from), Some("/u".into()));
        assert_eq!(usual(None), file("/u/.local/share/deadweight/archive.db"));
        assert_eq!(usual(Some("/d")), file("/d/deadweight/archive.db"));
        assert_eq!(usual(Some("d")), usual(None));
        assert_eq!(Address::usual(None, None), None);
    }
}
