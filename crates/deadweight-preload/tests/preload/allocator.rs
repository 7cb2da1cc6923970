//! The allocator: a program that uses it in every way, and gives threads and forks their share.

use crate::harness::{Streams, build, new_folder, numbers, same};
use deadweight_preload::Library;

#[test]
fn memory_is_right() {
    let program = build("heap.c", "heap", &["-O1", "-w", "-pthread"]);
    let folder = new_folder("heap_runs");
    for _ in 0..3 {
        let command = [program.to_str().unwrap()];
        let output = same(Library::Allocator, &command, &folder, b"", Streams::Pipes);
        assert_eq!(String::from_utf8_lossy(&output.stdout), "all is right\n");
    }
}

#[test]
fn a_program_in_rust_and_one_in_cpp_are_the_same() {
    let cpp = build("endl.cpp", "endl_allocator", &["-O1"]);
    let rust = build("lines.rs", "lines_allocator", &["--edition=2024"]);
    let folder = new_folder("allocator_languages");
    for program in [cpp, rust] {
        let command = [program.to_str().unwrap(), "file"];
        same(Library::Allocator, &command, &folder, &numbers(1000), Streams::Pipes);
    }
}
