//! Programs are run untouched, and every way in which they can fail to start has its own error.
//!
//! Needs no privilege. Recording is tested in `live.rs`.
#![expect(clippy::unwrap_used, reason = "a failed set-up is a failed test")]

use deadweight_record::{Error, Interrupts, Request, Stream, Substitute, run_clean};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Signal dispositions are global to the process: a test that compares them must run alone.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn request(argv: &[&str]) -> Request {
    Request { argv: argv.iter().map(OsString::from).collect(), ..Request::default() }
}

/// A file with these contents and permissions that lives as long as the test.
struct Script(PathBuf);

impl Script {
    fn new(name: &str, text: &str, mode: u32) -> Self {
        let path = std::env::temp_dir().join(format!("deadweight-{}-{name}", std::process::id()));
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        Self(path)
    }

    fn run(&self) -> Result<i32, Error> {
        run_clean(&request(&[self.0.to_str().unwrap()])).map(|run| run.exit.code)
    }
}

impl Drop for Script {
    fn drop(&mut self) {
        _ = fs::remove_file(&self.0);
    }
}

#[test]
fn exit_codes_and_signals_are_the_programs_own() {
    let _alone = alone();
    let run = run_clean(&request(&["sh", "-c", "exit 7"])).unwrap();
    assert_eq!((run.exit.code, run.exit.signal), (7, None));
    let run = run_clean(&request(&["sh", "-c", "kill -SEGV $$"])).unwrap();
    assert_eq!((run.exit.code, run.exit.signal), (0, Some(11)));
    assert!(run.wall.0 > 0 && run.max_rss > 0);
}

#[test]
fn a_failed_start_gives_the_reason() {
    let _alone = alone();
    let said = |result: Result<i32, Error>| {
        let error = result.unwrap_err();
        (error.to_string(), error.exit_code())
    };
    let run = |name: &str| run_clean(&request(&[name])).map(|run| run.exit.code);
    assert_eq!(
        said(run("no-such-program-anywhere")),
        ("cannot run no-such-program-anywhere: no such program in PATH".into(), 127)
    );
    assert_eq!(said(run("/no/such/file")), ("cannot run /no/such/file: no such file".into(), 127));
    assert_eq!(said(run("/usr")), ("cannot run /usr: it is a directory".into(), 126));
    assert_eq!(said(run("")), ("not a command that can be run: it is empty".into(), 125));
    let plain = Script::new("plain", "echo", 0o644);
    assert!(said(plain.run()).0.ends_with("it is not executable (chmod +x helps)"));
    let orphan = Script::new("orphan", "#!/no/such/interpreter -x\n", 0o755);
    assert!(said(orphan.run()).0.ends_with("its interpreter /no/such/interpreter does not exist"));
    let nowhere = Request { dir: Some("/no/such/dir".into()), ..request(&["true"]) };
    assert!(matches!(run_clean(&nowhere), Err(Error::Directory { .. })));
}

#[test]
fn a_script_without_an_interpreter_line_runs_in_the_shell() {
    let _alone = alone();
    assert_eq!(Script::new("bare", "exit 5\n", 0o755).run().unwrap(), 5);
}

#[test]
fn the_program_inherits_nothing_of_the_recorder() {
    let _alone = alone();
    let mut out = tempfile();
    // Open descriptors, ignored and blocked signals, and the group, as another child of the same
    // parent sees them. Signals above 31 are cut off: posix_spawn itself ignores glibc's own.
    let script = "ls /proc/self/fd | tr '\\n' ' '; ps -o pgid= -p $$; \
                  grep -E 'Sig(Blk|Ign)' /proc/self/status | sed -E 's/.{9}(.*)(.{8})$/\\2/'";
    let direct = std::process::Command::new("sh").args(["-c", script]).output().unwrap();
    let request = Request {
        stdin: Stream::File(File::open("/dev/null").unwrap()),
        stdout: Stream::File(out.try_clone().unwrap()),
        ..request(&["sh", "-c", script])
    };
    run_clean(&request).unwrap();
    let mut seen = String::new();
    out.rewind().unwrap();
    out.read_to_string(&mut seen).unwrap();
    assert_eq!(seen, String::from_utf8(direct.stdout).unwrap());
}

#[test]
fn streams_and_directory_are_those_asked_for() {
    let _alone = alone();
    let mut out = tempfile();
    let mut input = tempfile();
    input.write_all(b"hello").unwrap();
    input.rewind().unwrap();
    let request = Request {
        stdin: Stream::File(input),
        stdout: Stream::File(out.try_clone().unwrap()),
        dir: Some("/".into()),
        ..request(&["sh", "-c", "pwd; cat"])
    };
    run_clean(&request).unwrap();
    let mut seen = String::new();
    out.rewind().unwrap();
    out.read_to_string(&mut seen).unwrap();
    assert_eq!(seen, "/\nhello");
}

/// An open file without a name.
fn tempfile() -> File {
    let path = std::env::temp_dir().join(format!(
        "deadweight-{}-{:?}",
        std::process::id(),
        std::thread::current().id()
    ));
    let made = File::options().read(true).write(true).create_new(true).open(&path);
    fs::remove_file(&path).unwrap();
    made.unwrap()
}

/// A copy of a program that lives as long as the test.
fn copy_of(program: &str, name: &str) -> Script {
    let script = Script::new(name, "", 0o755);
    fs::copy(program, &script.0).unwrap();
    script
}

#[test]
fn a_copy_takes_the_place_of_a_binary_for_one_program_alone() {
    let _alone = alone();
    let (binary, copy) = (copy_of("/bin/true", "binary"), copy_of("/bin/false", "copy"));
    let path = binary.0.to_str().unwrap();
    let standing = || Some(Substitute { binary: binary.0.clone(), copy: copy.0.clone() });
    let direct = Request { substitute: standing(), ..request(&[path]) };
    assert_eq!(run_clean(&direct).unwrap().exit.code, 1);
    assert_eq!(run_clean(&request(&[path])).unwrap().exit.code, 0, "as it was");
    // Behind a shell only a mount reaches it, which needs privileges.
    let line = format!("{path} || exit 9");
    let indirect = Request { substitute: standing(), ..request(&["sh", "-c", &line]) };
    match run_clean(&indirect) {
        Ok(run) => assert_eq!(run.exit.code, 9),
        Err(error) => assert!(error.to_string().contains("copy in the binary's place"), "{error}"),
    }
    assert_eq!(fs::read(&binary.0).unwrap(), fs::read("/bin/true").unwrap());
}

#[test]
fn a_program_that_takes_too_long_is_ended() {
    let _alone = alone();
    let limit = Some(std::time::Duration::from_millis(100));
    let run = run_clean(&Request { limit, ..request(&["sleep", "60"]) }).unwrap();
    assert_eq!(run.exit.signal, Some(9));
    assert!((100_000_000..30_000_000_000).contains(&run.wall.0));
    let run = run_clean(&Request { limit, ..request(&["true"]) }).unwrap();
    assert_eq!((run.exit.code, run.exit.signal), (0, None));
}

#[test]
fn interrupts_are_noted_and_programs_get_them_as_usual() {
    let _alone = alone();
    let interrupts = Interrupts::note();
    assert_eq!(interrupts.seen(), None);
    // As from a terminal: both processes get it.
    let run = run_clean(&request(&["sh", "-c", "kill -INT $PPID; kill -INT $$"])).unwrap();
    // Another thread of the tests may get the signal, and on a busy machine only after the run's end.
    let seen = (0..1000).find_map(|_| {
        std::thread::sleep(std::time::Duration::from_millis(1));
        interrupts.seen()
    });
    assert_eq!((run.exit.signal, seen), (Some(2), Some(2)));
    drop(interrupts);
    assert_eq!(Interrupts::note().seen(), None);
}
