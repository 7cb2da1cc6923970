//! What belongs to libraries: names of functions, and folders of sources. Not for images: a system's library is known by
//! its path.

use deadweight_code::symbol_role::is_linked_in;

/// Whether a file is that of a module that Go fetched, with or without `-trimpath`: `x.org/y@v1.2.3/z.go`.
pub(super) fn is_go_module(file: &str) -> bool {
    let version = |(_, rest): (&str, &str)| rest.starts_with(|digit: char| digit.is_ascii_digit());
    file.ends_with(".go")
        && (file.contains("/pkg/mod/") || file.split_once("@v").is_some_and(version))
}

/// Whether compilers record the sources of standard libraries and runtimes in this file's folder.
pub(super) fn is_library_file(file: &str) -> bool {
    // Most files are asked for often, and each part begins with a slash.
    const PARTS: &[&str] = &[
        "/rustc/",
        "/rust/deps/",
        "/library/std/src/",
        "/library/core/src/",
        "/library/alloc/src/",
        "/usr/include/",
        "/include/c++/",
        "/go/src/runtime/",
        "/local/go/src/",
        "/lib/go/src/",
        "/libgo/",
        "/lib/std/",
        "/zig/std/",
        "/lib/compiler_rt/",
        "/lib/ubsan_rt.zig",
        "/crystal/src/",
        "/lib/crystal/",
        "/.cargo/registry/",
        "/sysdeps/",
        "/nptl/",
        "/glibc",
        "/csu/",
    ];
    // Folders of the C library, behind `.` or `..`.
    const OF_C: &[&str] = &["/sysdeps", "/nptl", "/libio", "/malloc", "/stdio-common"];
    file.match_indices('/').any(|(at, _)| {
        let (rest, next) = (&file[at..], file.as_bytes().get(at + 1));
        let begins = |part: &&str| part.as_bytes().get(1) == next && rest.starts_with(*part);
        PARTS.iter().any(begins) || file[..at].ends_with('.') && OF_C.iter().any(begins)
    })
}

/// Functions of standard libraries and runtimes by name, for code without lines.
pub(super) fn is_library_function(function: &str, file: &str) -> bool {
    // A stub that leads to another image (PLT) is the linker's: its caller is wanted. With a file of the
    // program's own, a function called `read` is the program's.
    function.ends_with("@plt")
        || LIBRARY_PREFIXES.iter().any(|p| function.starts_with(p))
        || file.is_empty()
            && (LIBRARY_NAMES.contains(&function.trim_start_matches('_')) || is_linked_in(function))
}

/// Prefixes of names in the standard libraries and runtimes of C, C++, Rust, Go, Zig, Crystal.
#[rustfmt::skip]
const LIBRARY_PREFIXES: &[&str] = &[
    "std::", "core::", "alloc::", "hashbrown::", "<hashbrown::", "<std::", "<core::", "<alloc::", "<&mut core::", "__gnu_cxx::",
    "runtime.", "runtime/", "syscall.", "internal/", "os.", "io.", "bufio.", "fmt.", "sync.",
    "sync/", "time.", "strconv.", "strings.", "bytes.", "path/", "net.", "net/", "reflect.",
    "sort.", "_IO_", "__libc_", "__GI_", "__rust_", "_rt0_", "gogo", "posix.", "GC_",
    "gcWriteBarrier", "memeqbody", "cmpbody", "aeshashbody", "indexbytebody", "countbody",
    "Builtin:", "BytecodeHandler:", "compiler_rt.", "ubsan_rt.", "Crystal::", "IO::", "Fiber", "__lll_", "__pthread_", "__futex",
];

/// Names of the C library, without leading underscores.
#[rustfmt::skip]
const LIBRARY_NAMES: &[&str] = &[
    "read", "write", "open", "openat", "close", "malloc", "free", "calloc", "realloc", "mmap",
    "munmap", "memset", "memcpy", "memmove", "syscall", "nanosleep", "clock_nanosleep", "poll",
    "fread", "fwrite", "fgets", "fputs", "fgetc", "getc", "putc", "getline", "printf",
    "fprintf", "vfprintf", "fflush", "usleep", "sleep", "fsync", "fdatasync", "wait4",
    "waitpid", "sched_yield", "start_thread", "pthread_mutex_lock", "pthread_mutex_unlock",
    "pthread_cond_wait", "callSyscall", "popen", "pclose", "system", "posix_spawn", "posix_spawnp",
];
