//! The libraries as files: what they export, when they take effect, and how their sources are written.

use crate::harness::{build, file, folder};
use deadweight_preload::{LOADED, Library};
use std::path::Path;
use std::process::Command;

/// Bytes that a run of `program` leaves in the file that `LOADED` names.
fn loaded(library: Library, program: &Path, name: &str) -> u64 {
    let mark = folder().join(name);
    std::fs::write(&mark, "").unwrap();
    let mut command = Command::new(program);
    let status = command.env("LD_PRELOAD", file(library)).env(LOADED, &mark).status().unwrap();
    assert!(status.success());
    std::fs::metadata(&mark).unwrap().len()
}

#[test]
fn a_library_reports_that_it_was_loaded() {
    // One says when it takes effect.
    for library in Library::ALL.into_iter().filter(|library| *library != Library::Twice) {
        assert_eq!(
            loaded(library, Path::new("true"), library.file_name().trim_end_matches(".so")),
            1
        );
    }
}

/// What a shell that runs this leaves in the file that `LOADED` names; its output is a pipe.
fn collected(script: &str, name: &str) -> String {
    let mark = folder().join(name);
    std::fs::write(&mark, "").unwrap();
    let mut command = Command::new("sh");
    command.args(["-c", script]).env("LD_PRELOAD", file(Library::Buffers)).env(LOADED, &mark);
    assert!(command.output().unwrap().status.success());
    std::fs::read_to_string(&mark).unwrap()
}

#[test]
fn collected_writes_are_an_effect_and_single_ones_are_none() {
    assert_eq!(collected("echo a; echo b", "two-writes"), ".+");
    assert_eq!(collected("echo a", "one-write"), ".");
    // What a child gets to see cannot wait.
    assert_eq!(collected("echo a; (exit 0); echo b; (exit 0)", "between"), ".");
}

#[test]
fn a_static_program_leaves_no_byte() {
    let program = build("nothing.c", "static_nothing", &["-static"]);
    for library in Library::ALL {
        assert_eq!(loaded(library, &program, &format!("{library:?}.static")), 0);
    }
}

/// The dynamic symbols of a library that others can use.
fn exported(library: Library) -> Vec<String> {
    let output =
        Command::new("nm").args(["-D", "--defined-only"]).arg(file(library)).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| line.split_whitespace().next_back().unwrap().to_owned()).collect()
}

#[test]
fn a_library_exports_what_it_takes_the_place_of() {
    assert_eq!(exported(Library::Nothing), [""; 0]);
    let allocator = [
        "aligned_alloc",
        "calloc",
        "free",
        "malloc",
        "malloc_usable_size",
        "memalign",
        "posix_memalign",
        "pvalloc",
        "realloc",
        "reallocarray",
        "valloc",
    ];
    assert_eq!(exported(Library::Allocator), allocator);
    let buffers = exported(Library::Buffers);
    for name in ["read", "write", "lseek", "close", "fork", "vfork", "fflush", "setvbuf", "_exit"] {
        assert!(buffers.iter().any(|exported| exported == name), "{name}");
    }
    let answers = exported(Library::Answers);
    for name in ["stat", "statx", "access", "open", "fopen", "rename", "waitpid"] {
        assert!(answers.iter().any(|exported| exported == name), "{name}");
    }
    let durable = ["__open64_2", "__open_2", "__openat64_2", "__openat_2"];
    assert_eq!(exported(Library::Durable)[..4], durable);
    let maps = [
        "madvise",
        "mlock",
        "mlock2",
        "mmap",
        "mmap64",
        "mprotect",
        "mremap",
        "munmap",
        "pkey_mprotect",
    ];
    assert_eq!(exported(Library::Maps), maps);
    let twice = exported(Library::Twice);
    for name in ["memcpy", "memmove", "strlen", "strcat", "__isoc99_sscanf"] {
        assert!(twice.iter().any(|exported| exported == name), "{name}");
    }
    assert_eq!(exported(Library::Yields), ["pthread_yield", "sched_yield", "thrd_yield"]);
    let time_outs = exported(Library::TimeOuts);
    for name in
        ["poll", "select", "epoll_wait", "pthread_cond_timedwait", "clock_gettime", "syscall"]
    {
        assert!(time_outs.iter().any(|exported| exported == name), "{name}");
    }
    let other = |name: &&String| name.contains("deadweight") || name.contains("rust");
    assert_eq!(buffers.iter().find(other), None);
}

#[test]
fn a_library_needs_no_other_library() {
    for library in Library::ALL {
        let output = Command::new("readelf").arg("-d").arg(file(library)).output().unwrap();
        assert!(!String::from_utf8_lossy(&output.stdout).contains("NEEDED"), "{library:?}");
    }
}
