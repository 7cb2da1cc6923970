//! `rows`: recordings and reports as tables. What formats hold is tested in `deadweight-tables`; here is where inputs
//! come from, where outputs go, and what happens with damaged ones.

use crate::exports::{golden, report};
use crate::support::{Bench, Said, deadweight, run, said};
use serde_json::Value;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::Write;
use std::path::Path;
use std::process::Stdio;

fn rows(words: &[&OsStr]) -> Said {
    run(&[&["rows".as_ref()], words].concat())
}

/// The objects of a table.
fn of<'l>(lines: &'l [Value], table: &str) -> Vec<&'l Value> {
    lines.iter().filter(|line| line["table"] == table).collect()
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// A folder of two recordings, a damaged one, and a file that is neither.
fn folder(bench: &Bench) -> std::path::PathBuf {
    let folder = bench.path("inputs");
    std::fs::create_dir_all(folder.join("below")).unwrap();
    let whole = std::fs::read(golden("ls-recursive")).unwrap();
    std::fs::write(folder.join("a.dwt"), &whole).unwrap();
    std::fs::write(folder.join("below/b.dwt"), &whole[..20]).unwrap();
    std::fs::copy(golden("poll-loop"), folder.join("below/c.dwt")).unwrap();
    std::fs::write(folder.join("readme.txt"), "hello").unwrap();
    folder
}

#[test]
fn rows_say_what_reports_say() {
    for name in ["ls-recursive", "contended-mutex", "go-http"] {
        let said = rows(&[golden(name).as_ref()]);
        assert_eq!((said.code, said.err.as_str()), (0, ""), "{name}");
        let (lines, report) = (lines(&said.out), report(name));
        let run = &of(&lines, "runs")[0];
        assert_eq!(run["wall_ns"], report["wall_ns"]);
        let wall: Vec<_> =
            of(&lines, "rows").into_iter().filter(|row| row["ledger"] == "wall").collect();
        let ledger = report["ledger"].as_array().unwrap();
        assert_eq!(wall.len(), ledger.len());
        for (row, expected) in wall.iter().zip(ledger) {
            for key in ["account", "ns", "share", "low_ns", "high_ns"] {
                assert_eq!(row[key], expected[key], "{name} {key}");
            }
            assert_eq!(row["run"], run["run"]);
        }
        assert_eq!(of(&lines, "findings").len(), report["findings"].as_array().unwrap().len());
    }
}

#[test]
fn a_damaged_input_is_a_row_and_harms_no_other() {
    let bench = Bench::new();
    let folder = folder(&bench);
    let said = rows(&[folder.as_ref(), "--workload".as_ref(), "w".as_ref()]);
    assert_eq!(said.code, 1);
    assert!(said.err.starts_with("deadweight: 1 of 3 inputs could not be read"), "{}", said.err);
    assert_eq!(said.err.lines().count(), 1, "{}", said.err);
    let lines = lines(&said.out);
    let runs: Vec<_> = of(&lines, "runs")
        .iter()
        .map(|run| (run["error"] == "", run["workload"].as_str().unwrap().to_owned()))
        .collect();
    assert_eq!(runs, [(true, "w".into()), (false, "w".into()), (true, "w".into())]);
    let error = of(&lines, "runs")[1]["error"].as_str().unwrap().to_owned();
    assert!(error.starts_with("cannot be read as a recording: "), "{error}");

    let said = rows(&[folder.as_ref(), "--strict".as_ref()]);
    assert_eq!((said.code, said.err.lines().count()), (2, 1), "{}", said.err);
    assert_eq!(of(&self::lines(&said.out), "runs").len(), 2);
}

#[test]
fn the_content_decides_what_a_file_is() {
    let bench = Bench::new();
    let recording = std::fs::read(golden("ls-recursive")).unwrap();
    let odd = bench.file("odd.txt", &recording);
    let json = serde_json::to_string(&report("ls-recursive")).unwrap();
    let misnamed = bench.file("report.dwt", format!("\n {json}"));
    let said = rows(&[odd.as_ref(), misnamed.as_ref(), "--table".as_ref(), "runs".as_ref()]);
    let lines = lines(&said.out);
    assert_eq!((said.code, lines.len()), (0, 2), "{}", said.err);
    assert_eq!(lines[0]["wall_ns"], lines[1]["wall_ns"]);
    assert_ne!(lines[0]["run"], lines[1]["run"]);
    let text = run(&["report".as_ref(), golden("ls-recursive").as_os_str()]).out;
    assert_eq!(run(&["report".as_ref(), misnamed.as_os_str()]).out, text);
    let said = run(&["report".as_ref(), misnamed.as_os_str(), "--in".as_ref(), "main".as_ref()]);
    assert!(said.code == 2 && said.err.contains("need the recording"), "{}", said.err);
}

#[test]
fn standard_input_is_an_input() {
    let content = std::fs::read(golden("ls-recursive")).unwrap();
    let mut child = deadweight()
        .args(["rows", "-", "--table", "rows"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(&content).unwrap();
    let from_stdin = said(&child.wait_with_output().unwrap());
    let path = golden("ls-recursive");
    let from_file = rows(&[path.as_ref(), "--table".as_ref(), "rows".as_ref()]);
    assert_eq!((from_stdin.code, from_stdin.out), (0, from_file.out));
}

#[test]
fn a_directory_gets_a_file_for_each_table() {
    let bench = Bench::new();
    let input = folder(&bench);
    for (format, begins) in [("parquet", "PAR1"), ("arrow", "ARROW1")] {
        let to = bench.path(format).join("made");
        let words: [&OsStr; 5] =
            [input.as_ref(), "--format".as_ref(), format.as_ref(), "-o".as_ref(), to.as_ref()];
        assert_eq!((rows(&words).code, rows(&words).out.as_str()), (1, ""));
        let files: BTreeMap<String, Vec<u8>> = std::fs::read_dir(&to)
            .unwrap()
            .map(|entry| entry.unwrap())
            .map(|entry| (entry.file_name().into_string().unwrap(), entry.path()))
            .map(|(name, path)| (name, std::fs::read(path).unwrap()))
            .collect();
        let names: Vec<_> = files.keys().map(|name| name.split('.').next().unwrap()).collect();
        assert_eq!(names, ["builds", "counts", "findings", "rows", "runs"]);
        assert!(files.values().all(|content| content.starts_with(begins.as_bytes())));
    }
}

#[test]
fn outputs_that_cannot_be_written_get_one_sentence() {
    let bench = Bench::new();
    let (input, file) = (golden("ls-recursive"), bench.file("file", "x"));
    for (format, to, word) in [
        ("ndjson", Path::new("/dev/full"), "No space left"),
        ("ndjson", Path::new("/no/such/folder/f"), "No such file"),
        ("parquet", file.as_path(), "exists"),
        ("parquet", Path::new("-"), "--table"),
    ] {
        let words: [&OsStr; 5] =
            [input.as_ref(), "--format".as_ref(), format.as_ref(), "-o".as_ref(), to.as_ref()];
        let said = rows(&words);
        assert_eq!((said.code, said.err.lines().count()), (2, 1), "{format} {to:?} {}", said.err);
        assert!(said.err.contains(word), "{format} {to:?}: {}", said.err);
    }
    let said = rows(&["/no/such/input".as_ref()]);
    assert!(said.code == 2 && said.err.contains("No such file"), "{}", said.err);
    let empty = bench.path("empty");
    std::fs::create_dir(&empty).unwrap();
    let said = rows(&[empty.as_ref()]);
    assert!(said.code == 2 && said.err.contains("nothing to read"), "{}", said.err);
}

#[test]
fn a_failure_goes_to_its_file() {
    let bench = Bench::new();
    let to = bench.path("failure");
    let words: [&OsStr; 4] =
        ["--failure-to".as_ref(), to.as_ref(), "--".as_ref(), "/no/such/program".as_ref()];
    let said = run(&words);
    assert_eq!((said.code, said.out.as_str(), said.err.as_str()), (127, "", ""));
    assert!(std::fs::read_to_string(&to).unwrap().contains("/no/such/program"));
}
