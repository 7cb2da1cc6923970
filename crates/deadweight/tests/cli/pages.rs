//! Pages: their files, and what is refused.

use crate::support::{Bench, deadweight, mode, run, said};
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

#[test]
fn the_page_is_opened_after_it_is_written() {
    let bench = Bench::new();
    let (page, seen) = (bench.path("page.html"), bench.path("seen"));
    let script =
        format!("#!/bin/sh\ntail -c 7 \"$1\" > {0}.part; mv {0}.part {0}\n", seen.display());
    bench.script("xdg-open", &script);
    let path = format!("{}:/usr/bin:/bin", bench.path("").display());
    let mut command = deadweight();
    command
        .arg("report")
        .arg(golden("static-hello"))
        .arg("-q")
        .arg("--open")
        .arg("--html")
        .arg(&page);
    let done = said(&command.env("PATH", path).output().unwrap());
    assert_eq!(done.code, 0, "{}", done.err);
    let opened = (0..100).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(50));
        std::fs::read_to_string(&seen).is_ok_and(|text| text == "</html>")
    });
    assert!(opened, "xdg-open did not see the page");
}

#[test]
fn drawings_are_written_alone() {
    let bench = Bench::new();
    let trace = golden("sqlite-rows");
    let export: &OsStr = "--export-svg".as_ref();
    for drawing in ["ledger", "cpu", "timeline", "flame"] {
        let file = bench.path("drawing.svg");
        let words = ["report".as_ref(), trace.as_os_str(), "-q".as_ref(), export, drawing.as_ref()];
        let said = run(&[&words[..], &[file.as_os_str()]].concat());
        assert_eq!(said.code, 0, "{}", said.err);
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(text.starts_with("<svg xmlns=") && text.ends_with("</svg>\n"), "{drawing}");
    }
    let folder = bench.path("out");
    std::fs::create_dir(&folder).unwrap();
    let file = folder.join("x.svg");
    let words = ["report".as_ref(), trace.as_os_str(), export, "map".as_ref(), file.as_os_str()];
    refused(&words, "ledger, cpu, timeline or flame", &folder, &[]);
    let two = ["compare".as_ref(), trace.as_os_str(), trace.as_os_str(), export];
    let timeline = [&two[..], &["timeline".as_ref(), file.as_os_str()]].concat();
    refused(&timeline, "for each side", &folder, &[]);
    let results = bench.file("old.txt", "BenchmarkA 1000 10 ns/op\n");
    let words = ["compare".as_ref(), results.as_os_str(), results.as_os_str()];
    let html = [&words[..], &["--html".as_ref(), file.as_os_str()]].concat();
    refused(&html, "no page", &folder, &[]);
}
