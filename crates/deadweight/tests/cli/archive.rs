//! `--keep` and `archive`: what is kept, where it comes from, and what happens when it cannot be kept.
//!
//! The databases are tested in `deadweight-archive`.

use crate::server::{PASSWORD, Server, shared};
use crate::support::{Bench, Said, deadweight, live, mode, said};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

const REPORT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/reports/tiny-reads.json");

/// Runs deadweight in the bench's folder with an archive there, and without variables of a CI.
fn run(bench: &Bench, words: &[&str]) -> Said {
    said(&command(bench, words).output().unwrap())
}

fn command(bench: &Bench, words: &[&str]) -> Command {
    let mut command = deadweight();
    command.args(words).current_dir(bench.path("")).env("DEADWEIGHT_ARCHIVE", "kept.db");
    command.env("GIT_CEILING_DIRECTORIES", "/").env("GIT_CONFIG_GLOBAL", "/dev/null");
    for variable in
        ["GITHUB_SHA", "CI_COMMIT_SHA", "GITHUB_REF_NAME", "GITHUB_HEAD_REF", "SUDO_UID"]
    {
        command.env_remove(variable);
    }
    command
}

/// Runs it, and checks that it succeeds.
fn done(bench: &Bench, words: &[&str]) -> String {
    let said = run(bench, words);
    assert_eq!(said.code, 0, "{words:?}: {}{}", said.out, said.err);
    said.out
}

/// The rows of `runs` that are kept, newest first.
fn listed(bench: &Bench) -> Vec<serde_json::Value> {
    serde_json::from_str(&done(bench, &["archive", "list", "--json"])).unwrap()
}

#[test]
fn a_report_is_added_once_and_shown_as_it_was() {
    let bench = Bench::new();
    assert!(done(&bench, &["archive", "add", REPORT, "--commit", "abc"]).contains("added 1 run"));
    assert!(done(&bench, &["archive", "add", REPORT, "--commit", "abc"]).contains("1 was there"));
    assert_eq!(mode(&bench.path("kept.db")), 0o600);
    let runs = listed(&bench);
    let [only] = &runs[..] else { panic!("{runs:?}") };
    assert_eq!((&only["workload"], &only["commit"]), (&"evm".into(), &"abc".into()));
    let id = &only["run"].as_str().unwrap()[..6];
    let shown = done(&bench, &["archive", "show", id]);
    assert!(shown.contains("tiny reads") && shown.contains("commit abc"), "{shown}");
    let json: serde_json::Value =
        serde_json::from_str(&done(&bench, &["archive", "show", id, "--json"])).unwrap();
    let original: serde_json::Value = serde_json::from_slice(&fs::read(REPORT).unwrap()).unwrap();
    assert_eq!(json["ledger"], original["ledger"]);
    let list = done(&bench, &["archive", "list"]);
    assert!(list.contains("2.02 ms") && list.contains("evm"), "{list}");
    assert!(done(&bench, &["archive", "check"]).contains("nothing is wrong"));
}

#[test]
fn an_archive_of_another_user_is_read_and_one_that_is_closed_says_so() {
    live!();
    let bench = Bench::new();
    done(&bench, &["archive", "add", REPORT]);
    // Where the build is may be closed to others.
    fs::copy(env!("CARGO_BIN_EXE_deadweight"), bench.path("copy")).unwrap();
    let open = |name: &str, mode| {
        fs::set_permissions(bench.path(name), fs::Permissions::from_mode(mode)).unwrap();
    };
    open(".", 0o755);
    open("copy", 0o755);
    let list = || {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(bench.path("copy"));
        command.args(["archive", "list", "--archive"]).arg(bench.path("kept.db"));
        said(&command.current_dir("/").env("HOME", "/").output().unwrap())
    };
    open("kept.db", 0o644);
    let read = list();
    assert!(read.code == 0 && read.out.contains("evm"), "{}{}", read.out, read.err);
    open("kept.db", 0o600);
    let closed = list();
    assert!(closed.code == 2 && closed.err.contains("Permission denied"), "{}", closed.err);
}

#[test]
fn a_damaged_file_does_not_keep_out_the_others() {
    let bench = Bench::new();
    let text = fs::read_to_string(REPORT).unwrap();
    bench.file("cut.json", &text[..text.len() / 2]);
    bench.file("other.json", text.replace("\"evm\"", "\"evm2\""));
    let added = run(&bench, &["archive", "add", REPORT, "cut.json", "nowhere.json", "other.json"]);
    assert_eq!(added.code, 2, "{}", added.err);
    assert!(added.out.contains("added 2 runs"), "{}{}", added.out, added.err);
    assert!(added.err.contains("cut.json") && added.err.contains("nowhere.json"), "{}", added.err);
    assert_eq!(listed(&bench).len(), 2);
}

#[test]
fn archives_move_by_export_and_lose_old_runs_by_pruning() {
    let bench = Bench::new();
    for commit in ["a1", "b2", "c3"] {
        done(&bench, &["archive", "add", REPORT, "--commit", commit]);
    }
    done(&bench, &["archive", "export", "-o", "all.ndjson"]);
    assert_eq!(mode(&bench.path("all.ndjson")), 0o600);
    let address = shared().address(&{
        let name = format!("cli_{}", std::process::id());
        shared().create(&name);
        name
    });
    let there = ["--archive", &address];
    let added = done(&bench, &["archive", "add", "all.ndjson", there[0], there[1]]);
    assert!(added.contains("added 3 runs") && !added.contains(PASSWORD), "{added}");
    let back = done(&bench, &["archive", "export", there[0], there[1]]);
    let sorted = |text: &str| {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert_eq!(sorted(&back), sorted(&fs::read_to_string(bench.path("all.ndjson")).unwrap()));
    let mut piped = command(&bench, &["archive", "add", "-", "--archive", "piped.db"]);
    piped.stdin(fs::File::open(bench.path("all.ndjson")).unwrap());
    assert!(said(&piped.output().unwrap()).out.contains("added 3 runs"));
    let dry = done(&bench, &["archive", "prune", "--keep-last", "1", "--dry-run"]);
    assert!(dry.contains("2 runs would be removed"), "{dry}");
    assert!(done(&bench, &["archive", "prune", "--keep-last", "1"]).contains("removed 2 runs"));
    assert_eq!(listed(&bench).len(), 1);
    assert!(run(&bench, &["archive", "prune"]).err.contains("--older-than"));
    // A line that is damaged is named, and those before it are added.
    let text = fs::read_to_string(bench.path("all.ndjson")).unwrap();
    bench.file("cut.ndjson", &text[..text.len() - 100]);
    let cut = run(&bench, &["archive", "add", "cut.ndjson"]);
    assert!(cut.code == 2 && cut.err.contains("line 3"), "{}", cut.err);
    assert!(listed(&bench).len() >= 2);
}

#[test]
fn each_benchmark_of_a_file_is_a_run() {
    let bench = Bench::new();
    bench.file("go.txt", "pkg: p\nBenchmarkX-2 10 100 ns/op 8 B/op\nBenchmarkX-2 10 110 ns/op 8 B/op\nBenchmarkY 1 5 ns/op\n");
    let google = r#"{"context": {}, "benchmarks": [{"name": "BM", "run_type": "iteration", "iterations": 1,
        "real_time": 7, "cpu_time": 6, "time_unit": "us"}]}"#;
    bench.file("google.json", google);
    bench.file(
        "hyperfine.json",
        r#"{"results": [{"command": "ls -l", "mean": 0, "times": [0.5, 0.7, 0.6]}]}"#,
    );
    fs::create_dir_all(bench.path("fib/new")).unwrap();
    bench.file(
        "fib/new/sample.json",
        r#"{"sampling_mode": "Flat", "iters": [1.0, 2.0], "times": [30.0, 60.0]}"#,
    );
    let added = done(&bench, &["archive", "add", "go.txt", "google.json", "hyperfine.json", "fib"]);
    assert!(added.contains("added 5 runs"), "{added}");
    let runs = listed(&bench);
    let of = |workload: &str| {
        let found = runs.iter().find(|run| run["workload"] == workload);
        let run = found.unwrap_or_else(|| panic!("{workload}: {runs:?}"));
        (run["kind"].as_str().unwrap().to_owned(), run["clean_ns"].as_u64().unwrap())
    };
    assert_eq!(of("p.X-2"), ("go".into(), 105));
    assert_eq!(of("BM"), ("google-benchmark".into(), 7000));
    assert_eq!(of("ls -l"), ("hyperfine".into(), 600_000_000));
    assert_eq!(of("fib"), ("criterion".into(), 30));
    done(&bench, &["archive", "add", "go.txt", "--workload", "w", "--quiet"]);
    let id = listed(&bench).iter().find(|run| run["workload"] == "w/p.X-2").unwrap()["run"].clone();
    let shown = done(&bench, &["archive", "show", id.as_str().unwrap()]);
    assert!(shown.contains("w/p.X-2") && shown.contains("105.0n  (100.0n to 110.0n)"), "{shown}");
    let bad = run(&bench, &["archive", "add", "missing.json"]);
    assert!(bad.code == 2 && bad.err.contains("missing.json"), "{}", bad.err);
}

fn git(bench: &Bench, words: &[&str]) -> String {
    let mut git = Command::new("git");
    git.args(["-c", "user.name=n", "-c", "user.email=e@e", "-c", "init.defaultBranch=trunk"]);
    let done = git.args(words).current_dir(bench.path("")).output().unwrap();
    assert!(done.status.success(), "{words:?}");
    String::from_utf8(done.stdout).unwrap().trim().to_owned()
}

#[test]
fn a_run_has_the_commit_that_is_checked_out() {
    live!();
    let bench = Bench::new();
    // No repository: what the CI says.
    let mut first = command(&bench, &["--keep=none", "-q", "--", "true"]);
    first.env("GITHUB_SHA", "fe12").env("GITHUB_REF_NAME", "topic");
    assert!(first.status().unwrap().success());
    git(&bench, &["init", "-q"]);
    bench.file("a", "1");
    git(&bench, &["add", "a"]);
    git(&bench, &["commit", "-q", "-m", "m"]);
    let commit = git(&bench, &["rev-parse", "HEAD"]);
    done(&bench, &["--keep=clean", "-q", "--", "true"]);
    bench.file("a", "2");
    let said = run(&bench, &["--keep", "--", "/bin/true", "x"]);
    assert!(said.err.contains("kept as") && said.err.contains("archive show"), "{}", said.err);
    done(&bench, &["--keep=named", "-q", "--commit", &commit[..7], "--", "true"]);
    let other = run(&bench, &["--keep=other", "-q", "--commit", "v1.2", "--", "true"]);
    assert!(other.code == 0 && other.err.contains("knows no commit `v1.2`"), "{}", other.err);
    let runs = listed(&bench);
    let of = |workload: &str| {
        let run = runs.iter().find(|run| run["workload"] == workload).unwrap();
        let text = |key: &str| run[key].as_str().unwrap().to_owned();
        (text("commit"), text("branch"), run["dirty"].as_bool().unwrap())
    };
    assert_eq!(of("none"), ("fe12".into(), "topic".into(), false));
    assert_eq!(of("clean"), (commit.clone(), "trunk".into(), false));
    assert_eq!(of("true x"), (commit.clone(), "trunk".into(), true));
    assert_eq!(of("named"), (commit, String::new(), false));
    assert_eq!(of("other"), ("v1.2".into(), String::new(), false));
    // A file that was there before the commit is not of that commit.
    let mut touch = Command::new("touch");
    assert!(
        touch.args(["-d", "2001-01-01"]).arg(bench.path("old.dwt")).status().unwrap().success()
    );
    fs::copy(REPORT, bench.path("old.json")).unwrap();
    Command::new("touch").args(["-d", "2001-01-01"]).arg(bench.path("old.json")).status().unwrap();
    let old = run(&bench, &["archive", "add", "old.json"]);
    assert!(old.code == 0 && old.err.contains("older than the commit"), "{}", old.err);
}

#[test]
fn a_recording_is_kept_on_request() {
    live!();
    let bench = Bench::new();
    done(&bench, &["--keep=w", "--keep-trace", "-q", "--", "true"]);
    let id = listed(&bench)[0]["run"].as_str().unwrap().to_owned();
    done(&bench, &["archive", "show", &id, "--trace", "back.dwt"]);
    assert!(done(&bench, &["report", "back.dwt"]).contains("wall time"));
    done(&bench, &["archive", "add", "back.dwt", "--workload", "again"]);
    let again =
        listed(&bench).iter().find(|run| run["workload"] == "again").unwrap()["run"].clone();
    let none = run(&bench, &["archive", "show", again.as_str().unwrap(), "--trace", "x.dwt"]);
    assert!(none.code == 2 && none.err.contains("--keep-trace"), "{}", none.err);
    assert!(!bench.path("x.dwt").exists());
}

#[test]
fn compare_keeps_each_side_with_its_ledger() {
    live!();
    let bench = Bench::new();
    let said =
        run(&bench, &["compare", "--keep=pair", "-n", "a", "-n", "b", "-r", "3", "true", "true "]);
    assert!([0, 1, 3].contains(&said.code), "{}", said.err);
    let runs = listed(&bench);
    let mut workloads: Vec<&str> =
        runs.iter().map(|run| run["workload"].as_str().unwrap()).collect();
    workloads.sort_unstable();
    assert_eq!(workloads, ["pair/a", "pair/b"]);
    assert!(runs.iter().all(|run| run["traced_runs"].as_u64() > Some(0) && run["clean_runs"] == 3));
    bench.file("a.txt", "BenchmarkX 1 1 ns/op\n");
    let files = run(&bench, &["compare", "--keep", "a.txt", "a.txt"]);
    assert!(files.code == 2 && files.err.contains("archive add"), "{}", files.err);
}

#[test]
fn what_is_wrong_is_said_before_the_program_runs() {
    let bench = Bench::new();
    let wrong = shared().address("postgres").replace(PASSWORD, "wrong-word");
    let none = shared().address("postgres").replace("127.0.0.1", "127.0.0.9");
    for (address, word) in [
        ("mysql://u:secret@h/d", "sqlite:PATH"),
        (&*wrong, "PGPASSWORD"),
        (&*none, "server runs"),
        ("/proc/none/a.db", "--archive"),
        (REPORT, "sqlite:PATH"),
    ] {
        let words = ["--keep", "--archive", address, "--", "touch", "ran"];
        let said = run(&bench, &words);
        assert_eq!(said.code, 2, "{address}: {}", said.err);
        assert!(said.err.contains(word) && said.err.trim().lines().count() == 1, "{}", said.err);
        assert!(!said.err.contains("wrong-word") && !said.err.contains("secret"), "{}", said.err);
        assert!(!bench.path("ran").exists());
    }
    for verb in ["list", "check", "export"] {
        let said = run(&bench, &["archive", verb]);
        assert!(said.code == 2 && said.err.contains("there is no archive"), "{verb}: {}", said.err);
    }
    assert!(!bench.path("kept.db").exists());
}

#[test]
fn a_run_that_cannot_be_kept_is_reported_and_saved() {
    live!();
    let bench = Bench::new();
    let folder = bench.path("small");
    fs::create_dir(&folder).unwrap();
    let mount =
        Command::new("mount").args(["-t", "tmpfs", "-o", "size=1m", "none"]).arg(&folder).status();
    if !mount.unwrap().success() {
        eprintln!("SKIPPED: nothing can be mounted here");
        return;
    }
    let fill = "head -c 2000000 /dev/zero > small/fill; exit 3";
    let said = run(&bench, &["--keep", "--archive", "small/a.db", "--", "sh", "-c", fill]);
    let saved = saved(&bench);
    fs::remove_file(folder.join("fill")).unwrap();
    let name = saved.file_name().unwrap().to_str().unwrap();
    let again = run(&bench, &["archive", "add", name, "--archive", "small/a.db"]);
    let listed = run(&bench, &["archive", "list", "--archive", "small/a.db"]);
    assert!(Command::new("umount").arg("-l").arg(&folder).status().unwrap().success());
    // The program's own code, and the report before the reason.
    assert_eq!(said.code, 3, "{}", said.err);
    assert!(said.err.contains("wall time") && said.err.contains("free some space"), "{}", said.err);
    assert!(said.err.contains(&format!("deadweight archive add {name}")), "{}", said.err);
    assert_eq!(mode(&saved), 0o600);
    assert!(again.code == 0 && again.out.contains("added 1 run"), "{}{}", again.out, again.err);
    assert_eq!(listed.out.lines().count(), 1, "{}", listed.out);
}

fn saved(bench: &Bench) -> PathBuf {
    let files = fs::read_dir(bench.path("")).unwrap().map(|entry| entry.unwrap().path());
    let is_saved = |path: &PathBuf| path.to_string_lossy().contains("deadweight-unkept-");
    files.into_iter().find(is_saved).unwrap()
}

#[test]
fn under_sudo_the_archive_is_the_users() {
    if fs::metadata("/proc/self").unwrap().uid() != 0 {
        eprintln!("SKIPPED: only root can give files away");
        return;
    }
    let bench = Bench::new();
    let mut add = command(&bench, &["archive", "add", REPORT]);
    add.env_remove("DEADWEIGHT_ARCHIVE").env("XDG_DATA_HOME", bench.path("data"));
    add.env("SUDO_UID", "1001").env("SUDO_GID", "1002");
    let added = said(&add.output().unwrap());
    assert_eq!(added.code, 0, "{}", added.err);
    let owner = |path: &Path| {
        let meta = fs::metadata(path).unwrap();
        (meta.uid(), meta.gid())
    };
    for path in ["data", "data/deadweight", "data/deadweight/archive.db"] {
        assert_eq!(owner(&bench.path(path)), (1001, 1002), "{path}");
    }
    assert_eq!(mode(&bench.path("data/deadweight/archive.db")), 0o600);
}

#[test]
fn a_server_that_restarted_meanwhile_is_connected_again() {
    live!();
    let bench = Bench::new();
    let server = Server::start("cli");
    let address = server.address("postgres");
    let program = ["--", "sh", "-c", "touch started; while [ ! -e over ]; do sleep 0.1; done"];
    let words = [&["--keep=w", "--archive", &address], &program[..]].concat();
    let running =
        command(&bench, &words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    while !bench.path("started").exists() {
        std::thread::sleep(Duration::from_millis(20));
    }
    server.restart(Duration::from_millis(200));
    bench.file("over", "");
    let ended = said(&running.wait_with_output().unwrap());
    assert!(ended.code == 0 && ended.err.contains("kept as"), "{}", ended.err);
    assert!(!ended.err.contains(PASSWORD), "{}", ended.err);
    let list = done(&bench, &["archive", "list", "--archive", &address]);
    assert_eq!(list.lines().count(), 1, "{list}");
}

#[test]
fn foreign_archives_may_hold_anything_and_cause_no_panic() {
    let bench = Bench::new();
    done(&bench, &["archive", "add", REPORT]);
    let mut odd = Command::new("sqlite3");
    odd.arg(bench.path("kept.db")).arg(
        "PRAGMA foreign_keys = OFF;
         UPDATE runs SET run = 'é' || char(27), workload = char(27) || '[31m', time = -9223372036854775807,
             clean_ns = 9223372036854775807, commit_time = 1, \"commit\" = 'ééééééééééééé', packed = x'01', shape = 'é';
         UPDATE rows SET run = 'x', ns = -1; UPDATE reports SET json = x'28b52ffd00';",
    );
    assert!(odd.status().unwrap().success());
    for (words, code) in [
        (&["archive", "list"][..], 0),
        (&["archive", "list", "--json"], 0),
        (&["archive", "check"], 1),
        (&["archive", "export"], 2),
        (&["archive", "show", "e"], 2),
        (&["archive", "prune", "--keep-last", "0"], 0),
    ] {
        let said = run(&bench, words);
        assert_eq!(said.code, code, "{words:?}: {}{}", said.out, said.err);
        assert!(!said.out.contains('\u{1b}') && !said.err.contains("panicked"), "{}", said.out);
    }
}
