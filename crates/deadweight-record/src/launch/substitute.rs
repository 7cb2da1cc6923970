//! Another file in place of a binary, for one program and its descendants only.
//!
//! The program gets its own mount namespace, in which a copy is mounted over the binary. Everything
//! executed or loaded from the binary's path is then the copy, whatever name was used, and
//! `/proc/self/exe` shows the binary's path. The binary itself is not changed. Where the kernel does
//! not allow the mount, the copy is executed under the program's name.

use crate::error::Error;
use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::ptr;

/// A binary, and the file that replaces it.
#[derive(Clone, Debug)]
pub struct Substitute {
    /// The binary, by its canonical path.
    pub binary: PathBuf,
    /// The file that replaces it.
    pub copy: PathBuf,
}

/// The substitute, prepared for a child.
pub(crate) struct Prepared {
    binary: CString,
    copy: CString,
    /// Which of the files that the command can name are the binary.
    direct: Vec<bool>,
}

impl Substitute {
    /// Prepares it. `candidates`: the files that the command can name; relative ones from `dir`.
    pub(crate) fn prepare(
        &self,
        candidates: &[CString],
        dir: Option<&Path>,
    ) -> Result<Prepared, Error> {
        let c_string = |path: &Path| {
            let path = CString::new(path.as_os_str().as_bytes());
            path.map_err(|_| Error::Command("a path contains a zero byte"))
        };
        let file = |path: &Path| path.metadata().ok().map(|m| (m.dev(), m.ino()));
        let binary = file(&self.binary);
        let is_binary = |candidate: &CString| {
            let path = Path::new(std::ffi::OsStr::from_bytes(candidate.to_bytes()));
            let path = dir.map_or_else(|| path.to_path_buf(), |dir| dir.join(path));
            binary.is_some() && file(&path) == binary
        };
        Ok(Prepared {
            binary: c_string(&self.binary)?,
            copy: c_string(&self.copy)?,
            direct: candidates.iter().map(is_binary).collect(),
        })
    }
}

impl Prepared {
    /// Puts the copy in place, in the child. `candidates` are those of the preparation. Returns the error number if
    /// no way works. Async-signal-safe.
    ///
    /// # Safety
    /// Call it only in the child.
    pub(crate) unsafe fn put(&self, candidates: &mut [*const libc::c_char]) -> Result<(), i32> {
        let none = ptr::null::<libc::c_char>();
        // SAFETY: plain system calls on strings that outlive them.
        unsafe {
            // A copy that crashes needs no core dump.
            let mut core = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
            if libc::getrlimit(libc::RLIMIT_CORE, &mut core) == 0 {
                core.rlim_cur = 0;
                libc::setrlimit(libc::RLIMIT_CORE, &core);
            }
            let flags = libc::MS_REC | libc::MS_SLAVE;
            let mounted = libc::unshare(libc::CLONE_NEWNS) == 0
                && libc::mount(none, c"/".as_ptr(), none, flags, ptr::null()) == 0
                && libc::mount(
                    self.copy.as_ptr(),
                    self.binary.as_ptr(),
                    none,
                    libc::MS_BIND,
                    ptr::null(),
                ) == 0;
            if mounted {
                return Ok(());
            }
        }
        let why = io::Error::last_os_error().raw_os_error().unwrap_or(libc::EPERM);
        let mut found = false;
        for (candidate, direct) in candidates.iter_mut().zip(&self.direct) {
            if *direct {
                *candidate = self.copy.as_ptr();
                found = true;
            }
        }
        if found { Ok(()) } else { Err(why) }
    }
}
