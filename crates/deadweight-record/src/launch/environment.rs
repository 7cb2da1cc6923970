//! The environment of the program: the recorder's own, with changes.

use super::c_string;
use crate::error::Error;
use std::ffi::{CString, OsString};

/// All variables as `NAME=value`, if there are changes; none for the recorder's own environment as it is.
///
/// # Errors
/// If a change contains a zero byte.
pub(super) fn changed(changes: &[(OsString, OsString)]) -> Result<Option<Vec<CString>>, Error> {
    if changes.is_empty() {
        return Ok(None);
    }
    let kept =
        std::env::vars_os().filter(|(name, _)| changes.iter().all(|(other, _)| other != name));
    let all = kept.chain(changes.iter().cloned()).map(|(mut name, value)| {
        name.push("=");
        name.push(value);
        c_string(&name)
    });
    all.collect::<Result<_, _>>().map(Some)
}
