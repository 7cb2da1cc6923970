//! Where the archive is, and under `sudo` whose: the user who called it is to find his runs again.

use super::super::destination::sudo_user;
use crate::cli::ArchivePlace;
use crate::failure::Failure;
use deadweight_archive::{Address, Archive};
use std::env::var_os;
use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, chown, fchown};
use std::path::{Path, PathBuf};

/// Opens the archive to add to it; it is made if there is none.
pub(super) fn open(place: &ArchivePlace) -> Result<Archive, Failure> {
    let address = address(place)?;
    if let (Address::Sqlite(path), Some(user)) = (&address, sudo_user()) {
        // If it cannot be made, opening says why.
        _ = make_for(path, user);
    }
    Ok(Archive::at(address, false)?)
}

/// Opens an archive that must exist.
pub(crate) fn open_existing(place: &ArchivePlace) -> Result<Archive, Failure> {
    Ok(Archive::at(address(place)?, true)?)
}

fn address(place: &ArchivePlace) -> Result<Address, Failure> {
    let named = place.url.clone().or_else(|| std::env::var("DEADWEIGHT_ARCHIVE").ok());
    if let Some(text) = named.filter(|text| !text.is_empty()) {
        return Ok(Address::parse(&text)?);
    }
    let given = |name| var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let home = match sudo_user() {
        Some((user, _)) => home_of(user),
        None => given("HOME"),
    };
    let unknown = || {
        let todo = "name an archive with --archive or in DEADWEIGHT_ARCHIVE";
        Failure::Unknown(format!("there is no home folder to keep the archive in: {todo}"))
    };
    Address::usual(given("XDG_DATA_HOME"), home).ok_or_else(unknown)
}

/// The home folder of a user.
fn home_of(user: u32) -> Option<PathBuf> {
    let users = fs::read_to_string("/etc/passwd").ok()?;
    users.lines().find_map(|line| {
        let fields: Vec<&str> = line.split(':').collect();
        let is_them = fields.get(2)?.parse() == Ok(user);
        is_them.then(|| fields.get(5).map(PathBuf::from))?
    })
}

/// Makes the file and the folders to it, all of which belong to this user. SQLite gives the files beside it the same
/// owner.
fn make_for(path: &Path, (user, group): (u32, u32)) -> io::Result<()> {
    let missing: Vec<&Path> = path
        .ancestors()
        .skip(1)
        .take_while(|folder| !folder.as_os_str().is_empty() && !folder.exists())
        .collect();
    for folder in missing.into_iter().rev() {
        fs::DirBuilder::new().mode(0o700).create(folder)?;
        chown(folder, Some(user), Some(group))?;
    }
    let mut new = fs::OpenOptions::new();
    let file =
        new.write(true).create_new(true).mode(0o600).custom_flags(libc::O_NOFOLLOW).open(path)?;
    fchown(&file, Some(user), Some(group))
}
