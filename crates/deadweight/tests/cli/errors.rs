//! Errors: one clear sentence and the right exit code each.

use crate::support::{Bench, deadweight, live, mode, run, said};
use std::ffi::OsStr;
use std::process::Stdio;

/// Runs `command` and checks exit code and words.
fn refused(command: &[&OsStr], code: i32, words: &[&str]) {
    let said = run(&[&[OsStr::new("--")], command].concat());
    assert_eq!(said.code, code, "{command:?}: {}", said.err);
    assert_eq!(said.out, "");
    for word in words {
        assert!(said.err.contains(word), "{command:?}: no {word:?} in {}", said.err);
    }
    assert_eq!(said.err.lines().count(), 1, "{command:?}: one sentence: {}", said.err);
}

#[test]
fn programs_that_cannot_be_executed() {
    live!();
    let bench = Bench::new();
    let plain = bench.file("plain", "echo hello\n");
    let bad = bench.script("bad", "#!/no/such/interpreter\n");
    refused(&["/no/such/program".as_ref()], 127, &["/no/such/program", "no such file"]);
    refused(&["no-such-program-at-all".as_ref()], 127, &["no-such-program-at-all", "PATH"]);
    refused(&["/tmp".as_ref()], 126, &["/tmp", "directory"]);
    refused(&[plain.as_os_str()], 126, &["plain", "not executable"]);
    refused(&[bad.as_os_str()], 127, &["/no/such/interpreter"]);
    refused(&["".as_ref()], 2, &["empty"]);
}

#[test]
fn a_script_without_an_interpreter_line_runs_as_in_a_shell() {
    live!();
    let bench = Bench::new();
    let script = bench.script("script", "echo hello; exit 3\n");
    let said = run(&["--".as_ref(), script.as_os_str()]);
    assert_eq!((said.code, said.out.as_str()), (3, "hello\n"), "{}", said.err);
    assert!(said.err.contains("exit code 3"), "{}", said.err);
}

#[test]
fn programs_that_die_are_reported_with_the_shell_s_exit_code() {
    live!();
    for (signal, number) in [("SEGV", 11), ("KILL", 9), ("TERM", 15), ("INT", 2)] {
        let said = run(&["--", "sh", "-c", &format!("kill -{signal} $$")]);
        assert_eq!(said.code, 128 + number, "{}", said.err);
        assert!(said.err.contains(&format!("signal {number}")), "{}", said.err);
        assert!(said.err.contains("wall time"), "the report covers what was seen: {}", said.err);
    }
}

#[test]
fn a_stopped_and_continued_program_goes_on() {
    live!();
    let script = "(sleep 0.2; kill -CONT $$) & kill -STOP $$; wait; echo done";
    let said = run(&["--", "sh", "-c", script]);
    assert_eq!((said.code, said.out.as_str()), (0, "done\n"), "{}", said.err);
}

#[test]
fn files_that_are_no_recordings() {
    let bench = Bench::new();
    let empty = bench.file("empty", "");
    let foreign = bench.file("foreign", [0xff, 0xfe, 0, 1, 2, 3].repeat(100));
    let text = bench.file("text", "hello\n");
    let damaged = bench.file("damaged", "task 1 app\nhello\n");
    for verb in ["report", "dump"] {
        for (file, word) in [
            (empty.as_os_str(), "empty"),
            (foreign.as_os_str(), "recording"),
            (text.as_os_str(), "neither a recording"),
            (damaged.as_os_str(), "line 2"),
            ("/no/such/file".as_ref(), "No such file"),
            ("/tmp".as_ref(), "directory"),
        ] {
            let said = run(&[verb.as_ref(), file]);
            assert_eq!(said.code, 2, "{verb} {file:?}");
            assert!(said.err.contains(word), "{verb} {file:?}: {}", said.err);
            assert_eq!(said.err.lines().count(), 1, "{}", said.err);
        }
    }
}

#[test]
fn a_damaged_recording_is_read_as_far_as_it_goes_or_refused_in_words() {
    live!();
    let bench = Bench::new();
    let file = bench.path("t.dwt");
    let recorded =
        run(&["record".as_ref(), "-o".as_ref(), file.as_os_str(), "--".as_ref(), "ls".as_ref()]);
    assert_eq!(recorded.code, 0, "{}", recorded.err);
    assert_eq!(mode(&file), 0o600);
    let whole = std::fs::read(&file).unwrap();
    assert_eq!(run(&["report".as_ref(), file.as_os_str()]).code, 0);
    for part in [1, 2, 3, 9] {
        let cut = bench.file("cut.dwt", &whole[..whole.len() * part / 10]);
        let said = run(&["report".as_ref(), cut.as_os_str()]);
        assert!(said.code == 0 || said.code == 2, "{said:?}");
        let words = format!("{}{}", said.out, said.err);
        let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
        let printed = ["broke off", "breaks off"].iter().any(|printed| words.contains(printed));
        assert!(printed || said.code == 2, "{words}");
    }
    let mut bad = whole.clone();
    let middle = bad.len() / 2;
    for byte in bad.iter_mut().skip(middle).take(64) {
        *byte = !*byte;
    }
    let bad = bench.file("bad.dwt", bad);
    let said = run(&["report".as_ref(), bad.as_os_str()]);
    assert!(said.code == 0 || said.code == 2, "{said:?}");
    assert!(!said.err.contains("panicked"), "{}", said.err);
}

#[test]
fn places_that_cannot_be_written_are_found_out_before_the_program_runs() {
    let bench = Bench::new();
    let mark = bench.path("ran");
    for option in ["-o", "--export-json"] {
        let said = said(
            &deadweight()
                .args([option, "/no/such/directory/report", "--", "touch"])
                .arg(&mark)
                .output()
                .unwrap(),
        );
        assert_eq!(said.code, 2, "{}", said.err);
        assert!(said.err.contains("/no/such/directory/report"), "{}", said.err);
    }
    let said = said(
        &deadweight()
            .args(["record", "-o", "/no/such/directory/t.dwt", "--", "touch"])
            .arg(&mark)
            .output()
            .unwrap(),
    );
    assert_eq!(said.code, 2, "{}", said.err);
    assert!(!mark.exists(), "the program ran");
}

#[test]
fn a_full_disk_is_said() {
    live!();
    for option in ["-o", "--export-json"] {
        let report = run(&[option, "/dev/full", "--", "sh", "-c", "exit 5"]);
        assert_eq!(report.code, 5, "the program's own");
        // What was measured is not lost.
        let printed =
            ["No space left", "wall time"].iter().all(|printed| report.err.contains(printed));
        assert!(printed, "{option}: {}", report.err);
    }
    let trace = run(&["record", "-o", "/dev/full", "--", "sh", "-c", "exit 5"]);
    assert_eq!(trace.code, 5, "{trace:?}");
    assert!(trace.err.contains("No space left"), "{}", trace.err);
    assert!(trace.err.contains("nothing of it can be read"), "{}", trace.err);
    let read = run(&["report".as_ref(), golden().as_os_str(), "-o".as_ref(), "/dev/full".as_ref()]);
    assert_eq!(read.code, 2, "there is no program: {read:?}");
}

#[test]
fn reports_go_to_their_file_and_are_private() {
    live!();
    let bench = Bench::new();
    let (words, json) = (bench.file("words", "x".repeat(100_000)), bench.path("json"));
    let options = ["-o".as_ref(), words.as_os_str(), "--export-json".as_ref(), json.as_os_str()];
    let said = run(&[&options[..], &["--".as_ref(), "echo".as_ref(), "hi".as_ref()]].concat());
    assert_eq!((said.code, said.out.as_str(), said.err.as_str()), (0, "hi\n", ""));
    let words = std::fs::read_to_string(words).unwrap();
    assert!(words.contains("wall time") && !words.contains("xxx"));
    assert_eq!(mode(&json), 0o600);
    let report: serde_json::Value = serde_json::from_slice(&std::fs::read(json).unwrap()).unwrap();
    let rows = report["ledger"].as_array().unwrap();
    let sum: u64 = rows.iter().map(|row| row["ns"].as_u64().unwrap()).sum();
    assert_eq!(Some(sum), report["wall_ns"].as_u64());
}

#[test]
fn a_reader_that_went_away_is_no_error() {
    live!();
    let mut child = deadweight()
        .args(["-q", "--export-json", "-", "--", "true"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let said = said(&child.wait_with_output().unwrap());
    assert_eq!((said.code, said.err.as_str()), (0, ""));
}

#[test]
fn a_process_that_did_not_run_is_answered_with_those_that_did() {
    live!();
    let said = run(&["--of", "nobody", "--", "sh", "-c", "sleep 0.01; true"]);
    assert_eq!(said.code, 2, "{}", said.err);
    assert!(said.err.contains("nobody") && said.err.contains("sleep"), "{}", said.err);
}

#[test]
fn an_ordinary_user_records_and_sees_what_was_not_recorded() {
    live!();
    let bench = Bench::new();
    let binary = bench.copy();
    for options in [&[][..], &["-r", "3"]] {
        let mark = bench.path("ran");
        let mut command = std::process::Command::new(&binary);
        command.args(options).args(["--", "touch"]).arg(&mark).stdin(Stdio::null());
        let ordinary = std::os::unix::process::CommandExt::uid(&mut command, 65_534);
        let said = said(&ordinary.current_dir("/").output().unwrap());
        if said.code == 2 {
            // If users may not open perf events, one sentence says so.
            assert_eq!(said.err.lines().count(), 1, "{}", said.err);
            assert!(!mark.exists(), "the program ran");
            continue;
        }
        assert!(said.err.contains("wall time") && said.err.contains("seen: not"), "{}", said.err);
    }
}

#[test]
fn what_is_no_recording_leaves_no_file_and_takes_none_away() {
    let bench = Bench::new();
    let bad = bench.file("bad.dwt", "nonsense\n");
    let (words, json) = (bench.path("words"), bench.path("json"));
    let ask = || {
        let arguments = [OsStr::new("report"), bad.as_os_str(), "-o".as_ref(), words.as_os_str()];
        let said = run(&[&arguments[..], &["--export-json".as_ref(), json.as_os_str()]].concat());
        assert_eq!((said.code, said.err.lines().count()), (2, 1), "{said:?}");
    };
    ask();
    assert!(!words.exists() && !json.exists());
    std::fs::write(&words, "before").unwrap();
    ask();
    assert_eq!(std::fs::read_to_string(&words).unwrap(), "before");
    assert!(!json.exists());
}

#[test]
fn a_mistyped_command_leaves_no_recording() {
    live!();
    let bench = Bench::new();
    let file = bench.path("t.dwt");
    let arguments = [OsStr::new("record"), "-o".as_ref(), file.as_os_str()];
    let said = run(&[&arguments[..], &["--".as_ref(), "/no/such/program".as_ref()]].concat());
    assert_eq!(said.code, 127, "{said:?}");
    assert!(!file.exists());
}

/// An existing recording.
fn golden() -> std::path::PathBuf {
    let core = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../deadweight-core");
    core.join("tests/golden/static-hello.dwt")
}

#[test]
fn root_writes_to_no_link_of_others_and_for_a_user_of_sudo_what_he_can_read() {
    use std::os::unix::fs::{MetadataExt, lchown, symlink};
    const USER: u32 = 65_534;
    if std::fs::metadata("/proc/self").unwrap().uid() != 0 {
        eprintln!("SKIPPED what root writes: not root");
        return;
    }
    let bench = Bench::new();
    let (target, link) = (bench.file("target", "before"), bench.path("link"));
    symlink(&target, &link).unwrap();
    lchown(&link, Some(USER), Some(USER)).unwrap();
    let report = |to: &std::path::Path, user: Option<u32>| {
        let mut command = deadweight();
        command.arg("report").arg(golden()).arg("-o").arg(to);
        command.env_remove("SUDO_UID").env_remove("SUDO_GID");
        for name in user.map_or(&[][..], |_| &["SUDO_UID", "SUDO_GID"]) {
            command.env(name, USER.to_string());
        }
        said(&command.output().unwrap())
    };
    let refused = report(&link, None);
    assert_eq!((refused.code, refused.err.lines().count()), (2, 1), "{refused:?}");
    assert!(refused.err.contains("link of uid 65534"), "{}", refused.err);
    assert_eq!(std::fs::read_to_string(&target).unwrap(), "before");
    // A link of his own is followed under `sudo`, and so is root's.
    assert_eq!(report(&link, Some(USER)).code, 0);
    assert!(std::fs::read_to_string(&target).unwrap().contains("wall time"));
    let made = bench.path("made");
    assert_eq!(report(&made, Some(USER)).code, 0);
    assert_eq!((std::fs::metadata(&made).unwrap().uid(), mode(&made)), (USER, 0o600));
    let own = bench.path("own");
    assert_eq!(report(&own, None).code, 0);
    assert_eq!(std::fs::metadata(&own).unwrap().uid(), 0);
}
