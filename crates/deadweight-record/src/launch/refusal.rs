//! Explains why a program could not be started.

use super::{AT_DIRECTORY, AT_FILTER, AT_PLACEMENT, AT_SUBSTITUTE, ChildMessage};
use crate::error::Error;
use std::ffi::{CString, OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The request, to name it in an error.
pub(super) struct RequestedProgram {
    pub(super) name: OsString,
    pub(super) dir: PathBuf,
    pub(super) candidates: Vec<CString>,
}

impl RequestedProgram {
    /// The reason why the child never became the program.
    pub(super) fn refused(&self, ChildMessage { number: errno, at }: ChildMessage) -> Error {
        let source = io::Error::from_raw_os_error(errno);
        let Self { name, dir, candidates } = self;
        if at == AT_SUBSTITUTE {
            let what = "cannot put a copy in the binary's place".into();
            return Error::System { what, source };
        }
        if at == AT_FILTER {
            let what = "cannot make system calls of the program succeed without happening".into();
            return Error::System { what, source };
        }
        if at == AT_PLACEMENT {
            let what = "cannot run the program at another place".into();
            return Error::System { what, source };
        }
        if at == AT_DIRECTORY {
            return Error::Directory { path: dir.clone(), source };
        }
        let Some(file) = usize::try_from(at).ok().and_then(|at| candidates.get(at)) else {
            let why = if candidates.len() > 1 { "no such program in PATH" } else { "no such file" };
            return Error::Exec { path: name.into(), errno, why: why.into() };
        };
        let path = PathBuf::from(OsStr::from_bytes(file.to_bytes()));
        let why = refusal(&dir.join(&path), &source);
        Error::Exec { path, errno, why }
    }
}

/// The reason why the kernel refused to execute this file, with what helps.
fn refusal(path: &Path, source: &io::Error) -> String {
    let plain = |text: &str| text.to_owned();
    match (source.raw_os_error(), path.metadata()) {
        (_, Ok(meta)) if meta.is_dir() => plain("it is a directory"),
        (Some(libc::EACCES), Ok(meta)) if meta.permissions().mode() & 0o111 == 0 => {
            plain("it is not executable (chmod +x helps)")
        }
        (Some(libc::ENOENT), Ok(_)) => match interpreter(path) {
            Some(named) => format!("its interpreter {named} does not exist"),
            None => plain("the loader that it names does not exist"),
        },
        _ => source.to_string(),
    }
}

/// The interpreter that a script's first line names.
fn interpreter(path: &Path) -> Option<String> {
    let mut head = [0; 256];
    let read = File::open(path).ok()?.read(&mut head).ok()?;
    let line = head[..read].strip_prefix(b"#!")?.split(|b| *b == b'\n').next()?;
    String::from_utf8_lossy(line).split_whitespace().next().map(str::to_owned)
}
