//! The programs of `tests/programs`, compiled on first use with the machine's own compilers.
//!
//! A missing compiler is a reason to skip, a program that does not compile is a failure. Not for
//! running them: that is `truth`.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder that the sources are in.
fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/programs")
}

/// The source file `name`.
pub(crate) fn source(name: &str) -> PathBuf {
    sources().join(name)
}

/// A folder for built programs and their output.
pub(crate) fn scratch_folder() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("live");
    std::fs::create_dir_all(&folder).expect("the target folder can be written");
    folder
}

/// How a source file becomes a program; the executable's path follows `-o` at the end.
fn compiler(source: &str) -> Option<&'static [&'static str]> {
    Some(match source {
        "static_hello.c" | "enclosed.c" => &["gcc", "-O2", "-g", "-static"],
        "short_rows.c" => &["gcc", "-O2", "-g", "-fopenmp"],
        assembler if assembler.ends_with(".s") => &["gcc", "-m32", "-nostdlib", "-static"],
        c if c.ends_with(".c") => &["gcc", "-O2", "-g", "-pthread"],
        cpp if cpp.ends_with(".cpp") => &["g++", "-O2", "-g"],
        rust if rust.ends_with(".rs") => &["rustc", "-O", "-g", "--edition", "2021"],
        go if go.ends_with(".go") => &["go", "build"],
        cr if cr.ends_with(".cr") => &["crystal", "build", "--release"],
        "debug_build.zig" => &["python3", "-m", "ziglang", "build-exe"],
        // For any processor, as the others: for its own, Zig may do a loop's checks all at once
        // before it, and which costs a program has would depend on the machine.
        zig if zig.ends_with(".zig") => {
            &["python3", "-m", "ziglang", "build-exe", "-O", "ReleaseSafe", "-mcpu=baseline"]
        }
        _ => return None,
    })
}

/// The same as a person builds it while looking for a mistake: without an optimiser.
fn debug_compiler(source: &str) -> Option<&'static [&'static str]> {
    let (_, extension) = source.rsplit_once('.')?;
    Some(match extension {
        "c" => &["gcc", "-O0", "-g", "-pthread"],
        "cpp" => &["g++", "-O0", "-g"],
        "rs" => &["rustc", "-g", "--edition", "2021"],
        "go" => &["go", "build", "-gcflags=-N -l"],
        "cr" => &["crystal", "build"],
        _ => return None,
    })
}

/// The path of the program `name`, built if it is older than its source; the source itself for a
/// script. `NAME.debug` is the program without an optimiser. `Err` is the reason for a skip.
///
/// # Panics
/// If there is no such program, or it does not compile.
pub(crate) fn build(name: &str) -> Result<PathBuf, String> {
    let (stem, plain) = name.strip_suffix(".debug").map_or((name, true), |stem| (stem, false));
    let source = std::fs::read_dir(sources())
        .expect("tests/programs is part of the repository")
        .flatten()
        .map(|entry| entry.path())
        .find(|path| path.file_stem().is_some_and(|found| found == stem))
        .unwrap_or_else(|| panic!("there is no tests/programs/{name}.*"));
    let file = source.file_name().and_then(|f| f.to_str()).unwrap_or_default();
    let command = if plain { compiler(file) } else { debug_compiler(file) };
    let Some(command) = command else { return Ok(source) };
    let program = scratch_folder().join(name);
    let age = |path: &Path| path.metadata().and_then(|m| m.modified()).ok();
    if age(&program) > age(&source) {
        return Ok(program);
    }
    let mut compile = Command::new(command[0]);
    compile.args(&command[1..]).current_dir(scratch_folder());
    match command[0] {
        "python3" => compile.arg(format!("-femit-bin={}", program.display())),
        _ => compile.arg("-o").arg(&program),
    };
    // Go takes no options behind the source.
    let built =
        compile.arg(&source).output().map_err(|e| format!("{} is not here ({e})", command[0]))?;
    let complaint = String::from_utf8_lossy(&built.stderr);
    if complaint.contains("No module named") {
        return Err(format!("a compiler is not here ({})", complaint.trim()));
    }
    assert!(built.status.success(), "{file} does not compile:\n{complaint}");
    Ok(program)
}

/// Whether `tool` can be run here; `Err` is the reason for a skip.
pub(crate) fn tool(tool: &str) -> Result<(), String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).any(|folder| folder.join(tool).is_file());
    if found { Ok(()) } else { Err(format!("{tool} is not installed")) }
}

/// A file of `count` bytes.
pub(crate) fn bytes(count: usize) -> PathBuf {
    let file = scratch_folder().join(format!("{count}.bytes"));
    std::fs::write(&file, vec![b'x'; count]).expect("the target folder can be written");
    file
}
