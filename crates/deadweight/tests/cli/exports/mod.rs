//! `export`: each format opened by the program that it is for.
//!
//! These read golden recordings, so they need no privileges. Where a program is missing, its test says so and is
//! skipped; `./setup.sh tests` gets it.

mod opened;

use crate::support::{Bench, Said, run};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// A golden recording.
pub(crate) fn golden(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deadweight-core/tests/golden");
    folder.join(name).with_extension("dwt")
}

/// Exports a golden recording to a file.
pub(crate) fn export(bench: &Bench, format: &str, name: &str) -> PathBuf {
    let to = bench.path(&format!("{name}.{format}"));
    let said = exported(&[format.as_ref(), golden(name).as_ref(), "-o".as_ref(), to.as_ref()]);
    assert_eq!((said.code, said.out.as_str(), said.err.as_str()), (0, "", ""), "{format} {name}");
    to
}

/// The report of a golden recording.
pub(crate) fn report(name: &str) -> serde_json::Value {
    let trace = golden(name);
    let words = ["-q", "--export-json", "-"].map(OsStr::new);
    let said = run(&[&["report".as_ref(), trace.as_os_str()], &words[..]].concat());
    serde_json::from_str(&said.out).unwrap()
}

/// The wall time that its ledger divides.
pub(crate) fn wall(name: &str) -> u64 {
    report(name)["wall_ns"].as_u64().unwrap()
}

fn exported(words: &[&OsStr]) -> Said {
    run(&[&["export".as_ref()], words].concat())
}

#[test]
fn input_that_is_no_recording_gets_one_sentence_and_leaves_no_file() {
    let bench = Bench::new();
    let (text, to) = (bench.file("text", "hello\n"), bench.path("out"));
    let whole = std::fs::read(golden("ls-recursive")).unwrap();
    let cut = bench.file("cut.dwt", &whole[..40]);
    for format in FORMATS {
        for (file, word) in [
            (text.as_os_str(), "neither a recording"),
            (cut.as_os_str(), "recording"),
            ("/no/such/file".as_ref(), "No such file"),
            ("/tmp".as_ref(), "directory"),
        ] {
            let said = exported(&[format.as_ref(), file, "-o".as_ref(), to.as_ref()]);
            assert_eq!((said.code, said.out.as_str()), (2, ""), "{format} {file:?}");
            assert!(said.err.contains(word), "{format} {file:?}: {}", said.err);
            assert_eq!(said.err.lines().count(), 1, "{}", said.err);
            assert!(!to.exists());
        }
    }
}

#[test]
fn a_file_that_cannot_be_written_gets_one_sentence() {
    let bench = Bench::new();
    let folder = bench.path("folder");
    std::fs::create_dir(&folder).unwrap();
    let trace = golden("ls-recursive");
    for (to, word) in [
        (folder.as_os_str(), "directory"),
        ("/no/such/folder/f".as_ref(), "No such file"),
        ("/dev/full".as_ref(), "No space left"),
    ] {
        let said = exported(&["folded".as_ref(), trace.as_ref(), "-o".as_ref(), to]);
        assert_eq!(said.code, 2);
        assert!(said.err.contains(word) && said.err.lines().count() == 1, "{}", said.err);
    }
    let said = exported(&["flat".as_ref(), trace.as_ref()]);
    assert!(said.code == 2 && said.err.contains("folded"), "{}", said.err);
    let said = exported(&["folded".as_ref(), trace.as_ref(), "--of".as_ref(), "nobody".as_ref()]);
    assert!(said.code == 2 && said.err.contains("nobody"), "{}", said.err);
}

#[test]
fn help_says_what_each_format_keeps_and_loses() {
    let help = run(&["export", "--help"]).out;
    for format in FORMATS {
        let said = help.split_once(&format!("- {format}:")).map(|(_, rest)| rest);
        let said = said.unwrap_or_else(|| panic!("{format} in {help}"));
        let said = said.split("\n          - ").next().unwrap_or("");
        assert!(said.contains("Keeps:") && said.contains("Loses:"), "{format}: {said}");
    }
}

/// The formats that `export` knows.
const FORMATS: [&str; 9] = [
    "folded",
    "speedscope",
    "pprof",
    "firefox",
    "perfetto",
    "sarif",
    "github-action-benchmark",
    "csv",
    "markdown",
];
