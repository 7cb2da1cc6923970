//! Builds programs, and runs them with a library.

use deadweight_preload::{LOADED, Library};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

/// The folder that tests write to.
pub(crate) fn folder() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR"))
}

/// A new folder for one test.
pub(crate) fn new_folder(name: &str) -> PathBuf {
    let folder = folder().join(name);
    if folder.exists() {
        std::fs::remove_dir_all(&folder).unwrap();
    }
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// The file of a library.
pub(crate) fn file(library: Library) -> PathBuf {
    static WRITTEN: OnceLock<()> = OnceLock::new();
    let path = |library: Library| folder().join(library.file_name());
    WRITTEN.get_or_init(|| {
        for library in Library::ALL {
            // Renamed into place: a process of another test run may have it mapped.
            let new = folder().join(format!("{}.new", library.file_name()));
            std::fs::write(&new, library.bytes()).unwrap();
            std::fs::rename(&new, path(library)).unwrap();
        }
    });
    path(library)
}

/// Compiles `tests/preload/programs/SOURCE`. Each test names its own result.
pub(crate) fn build(source: &str, result: &str, options: &[&str]) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/preload/programs").join(source);
    let result = folder().join(result);
    let mut compiler = match source.extension().unwrap().to_str().unwrap() {
        "c" => Command::new("gcc"),
        "cpp" => Command::new("g++"),
        _ => Command::new(std::env::var("RUSTC").unwrap_or_else(|_| "rustc".into())),
    };
    let output = compiler.args(options).arg(&source).arg("-o").arg(&result).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    result
}

/// Where the streams of a program lead.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Streams {
    Files,
    Pipes,
    /// Standard error is the same pipe as standard output.
    OnePipe,
}

/// Runs a command in `folder`. Its input is `input`.
pub(crate) fn run(
    library: Library,
    command: &[&str],
    folder: &Path,
    input: &[u8],
    streams: Streams,
) -> Output {
    let mut whole = vec!["timeout", "30"];
    let text = command.join(" ");
    if matches!(streams, Streams::OnePipe) {
        whole.extend(["sh", "-c", "exec \"$@\" 2>&1", "sh"]);
    }
    whole.extend(command);
    let mut process = Command::new(whole[0]);
    process.args(&whole[1..]).current_dir(folder);
    process.env("LD_PRELOAD", file(library)).env("LC_ALL", "C").env_remove(LOADED);
    let given = folder.join("input");
    std::fs::write(&given, input).unwrap();
    let given = File::open(&given).unwrap();
    if matches!(streams, Streams::Files) {
        let (out, error) = (folder.join("output"), folder.join("error"));
        process.stdin(given);
        process.stdout(File::create(&out).unwrap()).stderr(File::create(&error).unwrap());
        let status = process.status().unwrap();
        return Output {
            status,
            stdout: std::fs::read(out).unwrap(),
            stderr: std::fs::read(error).unwrap(),
        };
    }
    let mut cat = Command::new("cat").stdin(given).stdout(Stdio::piped()).spawn().unwrap();
    process.stdin(cat.stdout.take().unwrap());
    let output = process.output().unwrap_or_else(|error| panic!("{text}: {error}"));
    // It has the other end of cat's pipe: cat would wait for a reader.
    drop(process);
    cat.wait().unwrap();
    output
}

/// Runs a command with `Nothing` and with `library`: the output must be the same. The output.
pub(crate) fn same(
    library: Library,
    command: &[&str],
    folder: &Path,
    input: &[u8],
    streams: Streams,
) -> Output {
    let plain = run(Library::Nothing, command, folder, input, streams);
    let other = run(library, command, folder, input, streams);
    let text = |output: &Output| {
        let bytes = [&output.stdout[..], b"\n--- standard error\n", &output.stderr].concat();
        format!("{}\n{}", output.status, String::from_utf8_lossy(&bytes))
    };
    if plain != other {
        let (plain, other) = (text(&plain), text(&other));
        let line = plain.lines().zip(other.lines()).position(|(a, b)| a != b).unwrap_or(0);
        let part = |text: &str| text.lines().skip(line).take(5).collect::<Vec<_>>().join("\n");
        let (plain, other) = (part(&plain), part(&other));
        panic!("{command:?} {streams:?}, line {line}:\n{plain}\n--- with {library:?}:\n{other}");
    }
    other
}

/// Lines of numbers, as input.
pub(crate) fn numbers(count: u32) -> Vec<u8> {
    (0..count).flat_map(|n| format!("{}\n", n.wrapping_mul(2_654_435_761)).into_bytes()).collect()
}
