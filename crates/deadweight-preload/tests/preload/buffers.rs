//! Small reads and writes: each way of input and output in `programs/calls.c`, with files and with pipes.

use crate::harness::{Streams, build, new_folder, numbers, run, same};
use deadweight_preload::Library;
use std::path::{Path, PathBuf};

const KINDS: [Streams; 3] = [Streams::Files, Streams::Pipes, Streams::OnePipe];

fn calls(name: &str) -> (PathBuf, PathBuf) {
    let options = ["-O1", "-w", "-pthread"];
    (
        build("calls.c", &format!("calls_{name}"), &options),
        new_folder(&format!("calls_{name}_runs")),
    )
}

/// Both sides of a pair do the same.
fn way(name: &str) {
    let (program, folder) = calls(name);
    for streams in KINDS {
        let command = [program.to_str().unwrap(), name];
        same(Library::Buffers, &command, &folder, &numbers(2000), streams);
    }
}

macro_rules! ways {
    ($($name:ident)*) => { $(
        #[test]
        fn $name() {
            way(stringify!($name));
        }
    )* };
}

ways!(
    bytes copy records seeks twice maps versions mixes joins forks redirects rest_for_another unbuffered
    flushes leaves dies aborts conversation threads fails
);

/// System calls that read and write, of a way.
fn counts(
    library: Library,
    program: &Path,
    way: &str,
    folder: &Path,
    streams: Streams,
) -> [u64; 2] {
    let command = [program.to_str().unwrap(), way, "count"];
    let output = run(library, &command, folder, &numbers(2000), streams);
    let text = String::from_utf8(output.stderr).unwrap();
    let count = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim().parse().unwrap()
    };
    [count("syscr:"), count("syscw:")]
}

#[test]
fn there_are_far_fewer_calls() {
    let (program, folder) = calls("count");
    for streams in [Streams::Files, Streams::Pipes] {
        for way in ["bytes", "copy", "unbuffered", "flushes"] {
            let [_, plain] = counts(Library::Nothing, &program, way, &folder, streams);
            let [_, fewer] = counts(Library::Buffers, &program, way, &folder, streams);
            assert!(plain >= 10_000 && fewer < 100, "{way} {streams:?}: {plain} {fewer}");
        }
        let [plain, _] = counts(Library::Nothing, &program, "copy", &folder, streams);
        let [fewer, _] = counts(Library::Buffers, &program, "copy", &folder, streams);
        assert!(plain >= 10_000 && fewer < 200, "{streams:?}: {plain} {fewer}");
    }
}

#[test]
fn a_program_in_rust_and_one_in_cpp_are_the_same() {
    let cpp = build("endl.cpp", "endl_buffers", &["-O1"]);
    let rust = build("lines.rs", "lines_buffers", &["--edition=2024"]);
    let folder = new_folder("buffers_languages");
    for program in [cpp, rust] {
        for streams in KINDS {
            let command = [program.to_str().unwrap(), "file"];
            same(Library::Buffers, &command, &folder, &numbers(1000), streams);
        }
    }
}
