//! Compiles the BPF programs with clang, or checks that what is in the repository was compiled from its sources.
//!
//! The check compares sums and needs no compiler. Does not know what the programs do.

use crate::repository::Repository;
use std::fs;

const FOLDER: &str = "crates/deadweight-record/bpf";
const SOURCE: &str = "recorder.bpf.c";
const OBJECT: &str = "recorder.x86.bpf.o";
/// One sum over sources and object.
const SUM: &str = "recorder.x86.sum";

/// `bpf` compiles; `bpf --check` fails if sources or object changed since.
pub(crate) fn run(repository: &Repository, arguments: &[String]) -> Result<(), String> {
    if arguments.first().is_some_and(|argument| argument == "--check") {
        let expected = repository.read(&format!("{FOLDER}/{SUM}")).unwrap_or_default();
        if expected.trim() == sum(repository)? {
            return Ok(());
        }
        return Err(format!("{FOLDER}/{OBJECT} is stale: run `cargo xtask bpf` and commit it"));
    }
    let [source, object] = [SOURCE, OBJECT].map(|file| format!("{FOLDER}/{file}"));
    let options = ["-target", "bpf", "-mcpu=v3", "-O2", "-g0", "-Wall", "-Wextra", "-Werror"];
    let rest = ["-Wno-unused-parameter", "-D__TARGET_ARCH_x86", "-c", &source, "-o", &object];
    let hint =
        |error| format!("{error}\nbpf: it needs clang and llvm (Debian: apt install clang llvm)");
    repository.run("clang", &[options.as_slice(), &rest].concat()).map_err(hint)?;
    repository.run("llvm-strip", &["-g", &object]).map_err(hint)?;
    let path = repository.path(&format!("{FOLDER}/{SUM}"));
    fs::write(&path, sum(repository)? + "\n").map_err(|e| format!("{}: {e}", path.display()))
}

/// FNV-1a over names and contents, in the order of the names.
fn sum(repository: &Repository) -> Result<String, String> {
    let folder = repository.path(FOLDER);
    let listed = fs::read_dir(&folder).map_err(|e| format!("{FOLDER}: {e}"))?;
    let names = listed.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut names: Vec<_> = names.filter(|name| name != SUM).collect();
    names.sort();
    let mut sum = 0xcbf2_9ce4_8422_2325_u64;
    for name in names {
        let content = fs::read(folder.join(&name)).map_err(|e| format!("{name}: {e}"))?;
        for byte in name.bytes().chain(content) {
            sum = (sum ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
    }
    Ok(format!("{sum:016x}"))
}
