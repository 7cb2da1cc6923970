//! Pages: their files, and what is refused.

use crate::support::{Bench, mode, run};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

pub(crate) fn golden(name: &str) -> PathBuf {
    let core = Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("deadweight-core");
    core.join("tests/golden").join(format!("{name}.dwt"))
}

/// One sentence, exit code 2, and nothing else than `left` in the folder.
fn refused(arguments: &[&OsStr], words: &str, folder: &Path, left: &[&str]) {
    let said = run(arguments);
    assert_eq!(said.code, 2, "{}", said.err);
    assert!(said.err.contains(words), "{words:?} in {}", said.err);
    assert_eq!(said.err.lines().count(), 1, "one sentence: {}", said.err);
    let names = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name());
    let mut names: Vec<String> = names.map(|name| name.to_string_lossy().into_owned()).collect();
    names.sort();
    assert_eq!(names, left);
}

#[test]
fn a_page_is_written_beside_the_report() {
    let bench = Bench::new();
    let page = bench.path("page.html");
    let trace = golden("sqlite-rows");
    let html: &OsStr = "--html".as_ref();
    let said = run(&["report".as_ref(), trace.as_os_str(), html, page.as_os_str()]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.out.contains("wall time"), "{}", said.out);
    let text = std::fs::read_to_string(&page).unwrap();
    assert!(text.starts_with("<!DOCTYPE html>") && text.ends_with("</html>"), "{text}");
    assert_eq!(mode(&page), 0o600, "it shows command lines");
    let said = run(&["report".as_ref(), trace.as_os_str(), "-q".as_ref(), html, "-".as_ref()]);
    assert_eq!(said.out, text, "the same trace gives the same page");
}

#[test]
fn a_page_that_cannot_be_written_leaves_no_file() {
    let bench = Bench::new();
    let folder = bench.path("out");
    std::fs::create_dir(&folder).unwrap();
    let (page, trace) = (folder.join("page.html"), golden("static-hello"));
    let (report, html): (&OsStr, &OsStr) = ("report".as_ref(), "--html".as_ref());
    let bad = bench.file("bad.dwt", "no recording");
    let with = |trace: &Path, to: &Path, words: &str| {
        refused(&[report, trace.as_os_str(), html, to.as_os_str()], words, &folder, &[]);
    };
    with(&trace, &folder, "directory");
    with(&trace, &folder.join("missing/page.html"), "No such file");
    with(&folder.join("missing.dwt"), &page, "No such file");
    with(&bad, &page, "neither a recording");
    with(&trace, Path::new("/dev/full"), "No space");
    let open = ["--open".as_ref(), html, "-".as_ref()];
    refused(&[&[report, trace.as_os_str()], &open[..]].concat(), "--html FILE", &folder, &[]);
}
