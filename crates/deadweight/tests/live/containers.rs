//! Containers of other users: programs in namespaces and folders of their own, joined from outside and run inside.

use crate::program;
use crate::rungs::{Home, USER};
use crate::truth::leave;
use deadweight_report::report::Report;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// The namespaces of a container without privileges.
const CONTAINER: [&str; 3] = ["unshare", "-Urpfm", "--mount-proc"];

/// A program that runs until the value is dropped, with its parent.
struct Enclosed {
    outer: Child,
    pid: String,
}

impl Enclosed {
    /// `enclosed.c` as the user, alone in a container whose root is a folder that no one else sees.
    fn new(home: &Home, program: &Path) -> Self {
        let name = format!("in-{}", std::process::id());
        let root = home.path().join("root");
        std::fs::create_dir(&root).unwrap();
        std::os::unix::fs::chown(&root, Some(USER), Some(USER)).unwrap();
        let script = format!(
            "mount -t tmpfs none {root} && cd {root} && mkdir app old && cp {program} app/{name} && \
             pivot_root . old && exec /app/{name} 60",
            root = root.display(),
            program = program.display(),
        );
        let mut command = Command::new(CONTAINER[0]);
        command.args(&CONTAINER[1..]).args(["sh", "-c", &script]).uid(USER).gid(USER);
        command.stdin(Stdio::null()).process_group(0);
        let outer = command.spawn().unwrap();
        let until = Instant::now() + Duration::from_secs(20);
        let called = |pid: &String| {
            std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|c| c.trim() == name)
        };
        loop {
            let all = std::fs::read_dir("/proc").unwrap().flatten();
            let mut all = all.filter_map(|process| process.file_name().into_string().ok());
            if let Some(pid) = all.find(called) {
                return Self { outer, pid };
            }
            assert!(Instant::now() < until, "no container could be made: {script}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Enclosed {
    fn drop(&mut self) {
        let _ = Command::new("kill").args(["-KILL", &self.pid]).status();
        let _ = self.outer.kill();
        let _ = self.outer.wait();
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Checks that this names the function that works, whose file is in the container alone.
fn names(out: &Output) {
    let (report, said) = (text(&out.stdout), text(&out.stderr));
    assert!(out.status.success(), "{said}");
    assert!(report.contains("work_a_little"), "{report}{said}");
}

/// Checks for a refusal in one sentence with this in it.
fn refused(out: &Output, why: &str) {
    let said = text(&out.stderr);
    assert_eq!((out.status.code(), said.lines().count()), (Some(2), 1), "{said}");
    assert!(said.contains(why), "{said}");
}

/// The words of deadweight as root.
fn as_root(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_deadweight")).args(arguments).output().unwrap()
}

#[test]
fn a_program_in_a_container_is_joined_with_permission() {
    let (missing, program) = match program::build("enclosed") {
        Ok(program) => (None, program),
        Err(reason) => (Some(reason), Path::new("").into()),
    };
    let Some(_alone) = leave(missing) else { return };
    let home = Home::new("enclosed");
    let program = home.put(&program, 0o755);
    let enclosed = Enclosed::new(&home, &program);
    // Not even its file is left outside.
    std::fs::remove_file(&program).unwrap();
    let arguments = ["--pid", &enclosed.pid, "--for", "700ms", "--export-json", "-"];
    names(&as_root(&arguments));
    names(&home.run(&[], &arguments));
    let third = ["setpriv", "--reuid", "1003", "--regid", "1003", "--clear-groups"];
    refused(&home.run(&third, &arguments), "another user");
}

#[test]
fn an_unreadable_process_is_refused_and_goes_on() {
    let Some(_alone) = leave(None) else { return };
    let home = Home::new("closed");
    let hidden = "import ctypes, time
ctypes.CDLL(None).prctl(4, 0)
time.sleep(6)";
    let mut command = Command::new("/usr/bin/python3");
    command.args(["-c", hidden]).uid(USER).gid(USER).current_dir("/").stdin(Stdio::null());
    let mut child = command.spawn().unwrap();
    std::thread::sleep(Duration::from_millis(500));
    let arguments = ["--pid", &child.id().to_string(), "--for", "300ms"];
    let by_user = home.run(&[], &arguments);
    let by_root = as_root(&arguments);
    let goes_on = child.try_wait().unwrap().is_none();
    child.kill().unwrap();
    child.wait().unwrap();
    refused(&by_user, "sudo");
    assert!(by_root.status.success(), "{}", text(&by_root.stderr));
    assert!(goes_on);
}

#[test]
fn inside_a_container_a_program_is_run_and_reported() {
    let Some(_alone) = leave(None) else { return };
    let home = Home::new("inside");
    let slept = |out: &Output| {
        let report: Report = serde_json::from_slice(&out.stdout)
            .unwrap_or_else(|e| panic!("{e}: {}", text(&out.stderr)));
        let rows = report.ledger.iter().filter(|row| row.account.starts_with("wait-sleep"));
        (rows.map(|row| row.ns).sum::<u64>(), report)
    };
    let arguments = ["--export-json", "-", "--", "sleep", "0.6"];
    // Root of a container without privileges outside, in whose home folder he may not write.
    let user = ["setpriv", "--reuid", "1003", "--regid", "1003", "--clear-groups"];
    let inside = [&user[..], &CONTAINER, &["env", "-u", "XDG_CACHE_HOME", "HOME=/root"]].concat();
    let (ns, report) = slept(&home.run(&inside, &arguments));
    assert!(ns > 500_000_000, "{:?}", report.ledger);
    assert_ne!(report.recording.rung, "root");
    // Root of the machine with process ids of his own: the kernel's records have others.
    let own = ["unshare", "--pid", "--fork", "--mount-proc"];
    let (ns, report) = slept(&home.run(&own, &arguments));
    assert!(ns > 500_000_000, "{:?}", report.ledger);
}
