//! Waits and questions: what takes time without the libraries and none with them, and what must stay as it is.

use crate::harness::{build, file, new_folder};
use deadweight_preload::Library;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Runs a command with a library; what it wrote, and how long it took.
fn run(library: Library, command: &[&str]) -> (String, Duration) {
    let start = Instant::now();
    let output = Command::new("timeout")
        .arg("30")
        .args(command)
        .env("LD_PRELOAD", file(library))
        .stderr(Stdio::inherit())
        .output()
        .unwrap();
    assert!(output.status.success(), "{command:?} {library:?}");
    (String::from_utf8(output.stdout).unwrap(), start.elapsed())
}

#[test]
fn every_wait_with_a_time_out_ends_soon_and_the_clock_agrees() {
    let program = build("time_outs.c", "time_outs", &["-O1", "-pthread"]);
    let program = program.to_str().unwrap();
    let (plain, took) = run(Library::Nothing, &[program]);
    assert!(took > Duration::from_secs(2), "{took:?}");
    let (other, took) = run(Library::TimeOuts, &[program]);
    assert_eq!(plain, other);
    assert!(took < Duration::from_secs(1), "{took:?}");
    assert!(plain.lines().count() > 12 && plain.lines().all(|line| line.ends_with("over in time")));
}

#[test]
fn a_wait_ends_with_its_event_as_before() {
    let program = build("events.c", "events", &["-O1", "-pthread"]);
    let program = program.to_str().unwrap();
    let (plain, _) = run(Library::Nothing, &[program]);
    let (other, _) = run(Library::TimeOuts, &[program]);
    assert_eq!(plain, other);
    assert!(plain.lines().all(|line| line.ends_with("came")), "{plain}");
}

#[test]
fn files_are_opened_without_the_flags_and_else_as_before() {
    let program = build("durable.c", "durable", &["-O1"]);
    let folder = new_folder("durable_files");
    let file = folder.join("rows");
    let command = [program.to_str().unwrap(), file.to_str().unwrap()];
    assert_eq!(run(Library::Nothing, &command).0, "waits waits 640\n");
    assert_eq!(run(Library::Durable, &command).0, "returns returns 640\n");
    let exists = |path: &Path| std::fs::read(path).unwrap() == b"row";
    assert!(exists(&file));
}

#[test]
fn questions_are_answered_as_before_until_something_changes() {
    let program = build("questions.c", "questions", &["-O1"]);
    let folder = new_folder("questions_files");
    let command = [program.to_str().unwrap(), folder.to_str().unwrap()];
    let plain = run(Library::Nothing, &command).0;
    assert_eq!(plain.lines().count(), 10);
    std::fs::remove_dir_all(&folder).unwrap();
    std::fs::create_dir(&folder).unwrap();
    assert_eq!(run(Library::Answers, &command).0, plain);
}

#[test]
fn fresh_memory_is_zero_and_costs_less_the_second_time() {
    let program = build("maps.c", "maps", &["-O1"]);
    let program = program.to_str().unwrap();
    let plain = run(Library::Nothing, &[program]).0;
    assert_eq!(plain.lines().count(), 10, "{plain}");
    assert_eq!(run(Library::Maps, &[program]).0, plain);
    let often = [program, "20000"];
    let (plain, slow) = run(Library::Nothing, &often);
    let (other, fast) = run(Library::Maps, &often);
    assert_eq!(plain, other);
    assert!(fast * 2 < slow, "{fast:?} {slow:?}");
}

#[test]
fn the_same_question_is_asked_once() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/programs");
    let program = build(folder.join("recheck.cpp").to_str().unwrap(), "recheck", &["-O2"]);
    let command = [program.to_str().unwrap(), "/etc/passwd", "1000000"];
    let (plain, slow) = run(Library::Nothing, &command);
    let (other, fast) = run(Library::Answers, &command);
    assert_eq!(plain, other);
    assert!(fast * 2 < slow, "{fast:?} {slow:?}");
}

#[test]
fn messages_in_parts_do_not_stall() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/programs");
    let program =
        build(folder.join("sent_in_parts.c").to_str().unwrap(), "sent_in_parts", &["-O1"]);
    let program = program.to_str().unwrap();
    let (plain, slow) = run(Library::Nothing, &[program]);
    let (other, fast) = run(Library::Sockets, &[program]);
    assert_eq!(plain, other);
    assert!(fast * 3 < slow, "{fast:?} {slow:?}");
}
