//! Privileges that deadweight keeps after it has read a program's files, and what reaches a terminal from a
//! program that uses escape sequences in all its names.

use crate::program;
use crate::truth::leave;
use std::io::{Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A folder that is removed when the value is dropped.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = program::scratch_folder().join(format!("{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn status(pid: u32) -> String {
    std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default()
}

fn field(status: &str, name: &str) -> String {
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    line.unwrap_or_default().trim().to_owned()
}

/// What a run as root may still do when it hands its report over: it waits for a pipe that is full.
#[test]
fn the_process_that_analyses_has_no_rights_but_to_read() {
    const NONBLOCK: i32 = 0o4000;
    let Some(_alone) = leave(None) else { return };
    let folder = Folder::new("confined");
    let fifo = folder.0.join("report");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let mut ours = std::fs::File::options();
    let mut ours = ours.read(true).write(true).custom_flags(NONBLOCK).open(&fifo).unwrap();
    while ours.write(&[b'x'; 4096]).is_ok() {}
    let mut command = Command::new(env!("CARGO_BIN_EXE_deadweight"));
    command.args(["-q", "--export-json"]).arg(&fifo).args(["--", "true"]);
    let mut child = command.stdin(Stdio::null()).spawn().unwrap();
    let begun = Instant::now();
    let fields = loop {
        let fields = status(child.id());
        if field(&fields, "NoNewPrivs:") == "1" || begun.elapsed() > Duration::from_secs(60) {
            break fields;
        }
        assert!(child.try_wait().unwrap().is_none(), "it did not wait for its reader");
        std::thread::sleep(Duration::from_millis(5));
    };
    // The capabilities are dropped a moment later.
    std::thread::sleep(Duration::from_millis(500));
    let later = status(child.id());
    let reading = 1 << 2;
    for set in ["CapEff:", "CapPrm:"] {
        let left = u64::from_str_radix(&field(&later, set), 16).unwrap();
        assert_eq!(left & !reading, 0, "{fields}{later}");
    }
    assert_eq!(
        (field(&later, "NoNewPrivs:").as_str(), field(&later, "Threads:").as_str()),
        ("1", "1")
    );
    let mut report = Vec::new();
    let mut bytes = [0; 65_536];
    while child.try_wait().unwrap().is_none() {
        match ours.read(&mut bytes) {
            Ok(len) => report.extend_from_slice(&bytes[..len]),
            Err(_) => std::thread::sleep(Duration::from_millis(5)),
        }
    }
    while let Ok(len @ 1..) = ours.read(&mut bytes) {
        report.extend_from_slice(&bytes[..len]);
    }
    let report = String::from_utf8_lossy(&report);
    assert!(report.trim_end().ends_with('}') && report.contains("\"wall_ns\""), "{report}");
}

#[test]
fn what_is_written_is_for_its_owners_eyes() {
    let Some(_alone) = leave(None) else { return };
    let folder = Folder::new("modes");
    let deadweight = || {
        let mut command = Command::new("sh");
        let ours = env!("CARGO_BIN_EXE_deadweight");
        command.args(["-c", "umask 0; exec \"$0\" \"$@\"", ours]).stdin(Stdio::null());
        command.current_dir(&folder.0);
        command
    };
    for arguments in [
        &["-o", "words", "--export-json", "json", "--", "true"][..],
        &["-r", "3", "-q", "--export-json", "repeated", "--", "true"],
        &["record", "-q", "-o", "trace", "--", "true"],
        &["report", "trace", "-o", "again", "--export-json", "again.json"],
        &["compare", "-r", "3", "--no-why", "--export-json", "compared", "true", "true"],
    ] {
        let out = deadweight().args(arguments).output().unwrap();
        // Three runs are too few for a comparison, which it says by 3.
        let said = String::from_utf8_lossy(&out.stderr);
        assert!(matches!(out.status.code(), Some(0 | 3)), "{arguments:?}: {said}");
    }
    let mut seen = 0;
    for file in std::fs::read_dir(&folder.0).unwrap() {
        let file = file.unwrap();
        let mode = file.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{}", file.path().display());
        assert!(file.metadata().unwrap().len() > 0, "{}", file.path().display());
        seen += 1;
    }
    assert_eq!(seen, 7);
}

/// Escape sequences, a line break, a bell, a change of direction.
const EVIL: &str = "\x1b[31mE\x07\r\x1b]0;t\x07\u{202e}\u{9b}K";

/// A program whose file, functions, source, threads, arguments and files carry [`EVIL`].
fn hostile(folder: &Path) -> Option<PathBuf> {
    let source = folder.join("plain.c");
    let text = format!(
        "#include <fcntl.h>\n#include <stdlib.h>\n#include <sys/prctl.h>\n#include <unistd.h>\n\
         __attribute__((noinline)) void work_a_lot_here(int fd) asm(\"work_QQQQ_here\");\n\
         void work_a_lot_here(int fd) {{ char c; for (int i = 0; i < 60000; i++) if (read(fd, &c, 1) != 1) _exit(1); }}\n\
         int main(int n, char **a) {{ prctl(PR_SET_NAME, \"{}\"); (void)n; int fd = open(a[1], O_RDONLY);\n\
         work_a_lot_here(fd); return 0; }}\n",
        EVIL.escape_default()
            .to_string()
            .replace("\\u{1b}", "\\033")
            .replace("\\u{7}", "\\007")
            .replace("\\u{202e}", "\\342\\200\\256")
            .replace("\\u{9b}", "\\302\\233"),
    );
    std::fs::write(&source, text).unwrap();
    let program = folder.join(format!("prog{EVIL}"));
    let built = Command::new("gcc").args(["-O1", "-g", "-o"]).arg(&program).arg(&source).status();
    if !built.is_ok_and(|status| status.success()) {
        return None;
    }
    // The function's name in the file itself.
    let mut bytes = std::fs::read(&program).unwrap();
    for at in 0..bytes.len() - 4 {
        if &bytes[at..at + 4] == b"QQQQ" {
            bytes[at..at + 4].copy_from_slice(b"\x1b[7m");
        }
    }
    std::fs::write(&program, bytes).unwrap();
    Some(program)
}

/// What must not reach a terminal as it is: control characters other than a line's end, and what changes
/// the direction of writing.
fn raw(text: &str) -> Option<char> {
    let directs = |c: char| matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}');
    text.chars().find(|c| c.is_control() && *c != '\n' || directs(*c))
}

#[test]
fn nothing_of_a_hostile_program_reaches_the_terminal_raw() {
    let Some(_alone) = leave(program::tool("gcc").err()) else { return };
    let folder = Folder::new("hostile");
    let program = hostile(&folder.0).expect("gcc builds it");
    let file = folder.0.join(format!("data{EVIL}"));
    std::fs::write(&file, vec![b'x'; 60_000]).unwrap();
    let deadweight = |arguments: &[&std::ffi::OsStr]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_deadweight"));
        command.args(arguments).current_dir(&folder.0).env(EVIL, EVIL);
        let out = command.stdin(Stdio::null()).output().unwrap();
        let said = [out.stdout, out.stderr].map(|b| String::from_utf8_lossy(&b).into_owned());
        for text in &said {
            assert_eq!(raw(text), None, "{arguments:?}: {text:?}");
        }
        said
    };
    let trace = folder.0.join("t.dwt");
    let word = |text: &'static str| std::ffi::OsStr::new(text);
    // From where it lies, whose path may be too long for a line.
    let program = Path::new(".").join(program.file_name().unwrap());
    let (program, file, evil) = (program.as_os_str(), file.as_os_str(), std::ffi::OsStr::new(EVIL));
    let [_, said] = deadweight(&[word("--"), program, file, evil]);
    assert!(said.contains("wall time"), "{said}");
    deadweight(&[word("record"), word("-o"), trace.as_os_str(), word("--"), program, file, evil]);
    for arguments in [
        &["report", "--top", "20"][..],
        &["report", "--cpu"],
        &["report", "--export-json", "-", "-q"],
        &["dump"],
        &["dump", "--text", "--addresses"],
    ] {
        let mut words: Vec<&std::ffi::OsStr> = arguments.iter().map(|w| word(w)).collect();
        words.insert(1, trace.as_os_str());
        let [said, _] = deadweight(&words);
        assert!(said.contains("prog"), "{arguments:?}: {said}");
        if arguments.contains(&"--export-json") {
            serde_json::from_str::<serde_json::Value>(&said).unwrap();
        }
    }
    deadweight(&[word("compare"), word("-r"), word("3"), program, program]);
    deadweight(&[word("report"), evil]);
    // No shell syntax.
    let nowhere = word("nowhere\u{1b}c\u{202e}\u{9b}K");
    deadweight(&[word("--"), nowhere]);
    deadweight(&[word("record"), word("-o"), nowhere]);
}
