//! Shared by the tests: running deadweight, temporary directories, and skipping.

use crate::group::Group;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// deadweight with an environment that does not depend on the user.
pub(crate) fn deadweight() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_deadweight"));
    command.env_remove("NO_COLOR").env_remove("COLUMNS").env("LC_ALL", "C.UTF-8");
    command.stdin(Stdio::null());
    command
}

/// The result of a run.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// Runs deadweight with these arguments.
pub(crate) fn run<S: AsRef<OsStr>>(arguments: &[S]) -> Said {
    said(&deadweight().args(arguments).output().unwrap())
}

/// The text of an output.
pub(crate) fn said(output: &Output) -> Said {
    Said {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Whether this machine lets us record. If not, says so on behalf of `test`.
#[must_use]
pub(crate) fn can_record(test: &str) -> bool {
    static REASON: OnceLock<Option<String>> = OnceLock::new();
    let reason = REASON.get_or_init(|| {
        let doctor = run(&["doctor"]);
        (doctor.code != 0).then(|| format!("{}{}", doctor.out, doctor.err))
    });
    if let Some(reason) = reason {
        eprintln!("SKIPPED {test}: this machine does not let us record:\n{reason}");
    }
    reason.is_none()
}

/// Skips the calling test, with a message, if nothing can be recorded.
macro_rules! live {
    () => {
        if !$crate::support::can_record(concat!(module_path!(), ":", line!())) {
            return;
        }
    };
}
pub(crate) use live;

/// A directory that is removed after the test.
pub(crate) struct Bench(PathBuf);

impl Bench {
    pub(crate) fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("deadweight-cli-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// A copy of deadweight that everyone may execute, wherever the build folder lies.
    ///
    /// Another process writes it: a file that we had open for writing could not be executed while a
    /// child that another test starts still holds the descriptor.
    pub(crate) fn copy(&self) -> PathBuf {
        let copy = self.path("deadweight");
        let mut install = Command::new("install");
        install.args(["-m", "755", env!("CARGO_BIN_EXE_deadweight")]).arg(&copy);
        assert!(install.status().unwrap().success(), "install");
        copy
    }

    /// A file with this content.
    pub(crate) fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, content).unwrap();
        path
    }

    /// A file with this content that can be executed.
    pub(crate) fn script(&self, name: &str, content: &str) -> PathBuf {
        let path = self.file(name, content);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Words that run the rest as an ordinary user.
pub(crate) const USER: [&str; 6] =
    ["setpriv", "--reuid", "1001", "--regid", "1001", "--clear-groups"];

/// Runs the rest under a filter that refuses these system calls, as containers do.
pub(crate) const FILTER: &str = "import ctypes, os, struct, sys
refused, libc = sys.argv[1].split(','), ctypes.CDLL(None)
code = [(0x20, 0, 0, 0)]
for number in refused:
    code += [(0x15, 0, 1, int(number)), (6, 0, 0, 0x50001)]
code = b''.join(struct.pack('HBBI', *c) for c in code + [(6, 0, 0, 0x7fff0000)])
length, code = len(code) // 8, ctypes.create_string_buffer(code)
prog = ctypes.create_string_buffer(struct.pack('HxxxxxxQ', length, ctypes.addressof(code)))
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, prog) == 0
os.execv(sys.argv[2], sys.argv[2:])";

/// The folder with packages of npm and PyPI, which `./setup.sh tests` gets.
pub(crate) fn consumers() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/consumers")
}

/// Permission bits of a file.
pub(crate) fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

/// A cgroup with a limit, as [`Group::new`]; `None`, with a message, if none can be made.
pub(crate) fn limited(
    controller: &str,
    first: &[(&str, &str)],
    second: &[(&str, &str)],
) -> Option<Group> {
    let group = Group::new(controller, first, second);
    group.inspect_err(|reason| eprintln!("SKIPPED: {reason}")).ok()
}

/// Words of a shell that run the rest inside.
pub(crate) fn within(group: &Group) -> String {
    format!("echo $$ > {} && exec \"$0\" \"$@\"", group.processes().display())
}
