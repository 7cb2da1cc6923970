//! An open archive. What it does is in `add`, `read`, `series`, `prune`, `check` and `exchange`.

use crate::address::Address;
use crate::database::{Database, Postgres, Sqlite};
use crate::error::ArchiveError;
use crate::schema;
use std::fmt;

/// An open archive.
pub struct Archive {
    pub(crate) address: Address,
    pub(crate) database: Box<dyn Database>,
}

impl Archive {
    /// Opens an archive to add to it. If there is none, it is made; one of an older version becomes one of this.
    ///
    /// # Errors
    /// If it cannot be opened or made or written, or if a newer deadweight made it.
    pub fn open(address: &str) -> Result<Self, ArchiveError> {
        Self::at(Address::parse(address)?, false)
    }

    /// Opens an archive that must exist. It may be one that cannot be written.
    ///
    /// # Errors
    /// If there is none, or as [`Archive::open`].
    pub fn open_existing(address: &str) -> Result<Self, ArchiveError> {
        Self::at(Address::parse(address)?, true)
    }

    /// The same with an address that is already read; `existing` refuses to make one.
    ///
    /// # Errors
    /// As [`Archive::open`].
    pub fn at(address: Address, existing: bool) -> Result<Self, ArchiveError> {
        let mut database: Box<dyn Database> = match &address {
            Address::Sqlite(path) => Box::new(Sqlite::open(path, existing)?),
            Address::Postgres(text) => Box::new(Postgres::open(&address, text)?),
        };
        schema::prepare(database.as_mut(), &address.to_string(), existing)?;
        Ok(Self { address, database })
    }

    /// Where it is.
    #[must_use]
    pub fn address(&self) -> &Address {
        &self.address
    }
}

impl fmt::Debug for Archive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Archive({})", self.address)
    }
}
