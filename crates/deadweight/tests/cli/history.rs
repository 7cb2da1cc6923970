//! `history`: planted histories through the archive to what a reader sees.

use crate::support::{Bench, Said, deadweight, run, said};
use deadweight_archive::{Archive, Kept};
use deadweight_report::report::{CleanRuns, Interval, MachineInfo, Report, Row, Runs};
use deadweight_report::tables::Origin;
use std::path::PathBuf;

/// A run to keep.
pub(crate) struct Planted {
    pub(crate) commit: usize,
    pub(crate) rows: Vec<(&'static str, u64)>,
    pub(crate) cpu: &'static str,
    pub(crate) method: u32,
    pub(crate) dirty: bool,
    pub(crate) branch: &'static str,
}

/// Values around `ns` with a deviation of 1 %, from a generator with a seed.
pub(crate) fn noisy(seed: &mut u64, ns: f64) -> u64 {
    let mut sum = 0.0;
    for _ in 0..12 {
        *seed =
            seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        sum += (*seed >> 11) as f64 / (1_u64 << 53) as f64 - 0.5;
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "some ms in ns")]
    let ns = (ns * (1.0 + 0.01 * sum)) as u64;
    ns
}

/// One run each of so many commits; from the commit `at` on, `allocation` takes 5 % of the total more.
pub(crate) fn slower(seed: u64, commits: usize, at: usize) -> Vec<Planted> {
    let mut seed = seed;
    let run = |commit| {
        let more = if commit < at { 0.0 } else { 50_000.0 };
        let mut row = |account, ns| (account, noisy(&mut seed, ns));
        let rows = vec![
            row("net-work", 700_000.0),
            row("allocation", 200_000.0 + more),
            row("system-calls", 100_000.0),
        ];
        Planted { commit, rows, cpu: "AMD EPYC", method: 1, dirty: false, branch: "" }
    };
    (0..commits).map(run).collect()
}

pub(crate) fn name(commit: usize) -> String {
    let mixed = u32::try_from(commit + 1).unwrap().wrapping_mul(0x9e37_79b1);
    format!("{mixed:08x}{commit:032x}")
}

/// An archive with these runs of the workload `sort big.txt`.
pub(crate) fn archive(bench: &Bench, planted: &[Planted]) -> PathBuf {
    let path = bench.path("a.db");
    let mut archive = Archive::open(&format!("sqlite:{}", path.display())).unwrap();
    let kept: Vec<Kept> = planted.iter().enumerate().map(|(at, run)| kept(at, run)).collect();
    archive.add_all(&kept).unwrap();
    path
}

fn kept(at: usize, planted: &Planted) -> Kept {
    let machine = MachineInfo {
        arch: "x86_64".into(),
        cpu: planted.cpu.into(),
        cpus: 2,
        ..MachineInfo::default()
    };
    let report =
        Report { method: planted.method, machine, ..report(&["sort", "big.txt"], &planted.rows) };
    let commit_time = 1_790_000_000 + i64::try_from(planted.commit).unwrap() * 43_200;
    let origin = Origin {
        workload: "sort big.txt".into(),
        commit: name(planted.commit),
        commit_time,
        dirty: planted.dirty,
        branch: planted.branch.into(),
        time: commit_time + 600 + i64::try_from(at).unwrap(),
        kind: "deadweight".into(),
        ..Origin::default()
    };
    Kept::new(&report, &serde_json::to_string(&report).unwrap(), &origin)
}

/// A report of ten runs without tracing and of these rows.
pub(crate) fn report(command: &[&str], rows: &[(&str, u64)]) -> Report {
    let ns: u64 = rows.iter().map(|(_, ns)| ns).sum();
    let row =
        |(account, ns): &(&str, u64)| Row { account: (*account).into(), ns: *ns, ..Row::default() };
    let clean = CleanRuns {
        count: 10,
        wall_ns: Interval { median: ns, low: ns - ns / 200, high: ns + ns / 200 },
        each_ns: (0..10).map(|i| ns - 5 + i).collect(),
        ..CleanRuns::default()
    };
    Report {
        command: command.iter().map(|word| (*word).to_owned()).collect(),
        ledger: rows.iter().map(row).collect(),
        wall_ns: ns,
        net_ns: ns,
        runs: Runs { clean, ..Runs::default() },
        ..Report::default()
    }
}

fn history(archive: &std::path::Path, words: &[&str]) -> Said {
    let mut command = deadweight();
    command.arg("history").args(words).arg("--archive").arg(archive);
    said(&command.env("COLUMNS", "100").output().unwrap())
}

fn shown(archive: &std::path::Path, words: &[&str]) -> String {
    let said = history(archive, words);
    assert_eq!((said.code, said.err.as_str()), (0, ""), "{words:?}");
    said.out
}

#[test]
fn a_planted_change_of_a_row_is_found_at_its_commit() {
    for seed in [11, 12, 13] {
        let bench = Bench::new();
        let archive = archive(&bench, &slower(seed, 40, 22));
        let text = shown(&archive, &["sort big.txt"]);
        let at = &name(22)[..10];
        let event = text.split("\nat ").nth(1).unwrap_or_else(|| panic!("{seed}: {text}"));
        let event = event.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(event.starts_with(at) && event.contains("slower, mostly allocation (+"), "{text}");
        assert!(!text.contains("\nat ") || text.matches("\nat ").count() == 1, "{text}");
        let json: serde_json::Value =
            serde_json::from_str(&shown(&archive, &["sort big.txt", "--json"])).unwrap();
        assert_eq!(json["points"].as_array().unwrap().len(), 40);
        assert_eq!(json["events"][0]["commit"], name(22));
        assert_eq!(json["events"][0]["kind"], "slower");
        assert_eq!(json["events"][0]["reason"]["row"], "allocation");
        let list = shown(&archive, &[]);
        assert!(list.contains("sort big.txt  40 runs") && list.contains("1 change"), "{list}");
        let json: serde_json::Value = serde_json::from_str(&shown(&archive, &["--json"])).unwrap();
        assert_eq!((&json[0]["events"], &json[0]["commits"]), (&1.into(), &40.into()));
    }
}

#[test]
fn machines_methods_and_changed_sources_are_kept_apart() {
    let bench = Bench::new();
    let mut planted = slower(5, 30, 99);
    // Another machine alternates with it, twice as fast.
    let other = slower(6, 30, 12).into_iter().map(|run| Planted {
        rows: run.rows.into_iter().map(|(account, ns)| (account, ns / 2)).collect(),
        cpu: "Xeon",
        ..run
    });
    let mut all: Vec<Planted> = other.collect();
    all.append(&mut planted);
    let twice = |run: &Planted| run.rows.iter().map(|(account, ns)| (*account, ns * 2)).collect();
    all.push(Planted { dirty: true, rows: twice(&all[59]), ..slower(5, 30, 99).remove(29) });
    let archive = archive(&bench, &all);
    let text = shown(&archive, &["sort big.txt"]);
    assert!(
        text.contains("AMD EPYC") && text.contains("machine 1 of 2; the others: --machine 2"),
        "{text}"
    );
    assert!(
        text.contains("no change found") && text.contains("not counted: with changes"),
        "{text}"
    );
    let text = shown(&archive, &["sort big.txt", "--machine", "2"]);
    assert!(text.contains("Xeon") && text.contains(&format!("at {}", &name(12)[..10])), "{text}");
    // A method that divides the time otherwise.
    let bench = Bench::new();
    let mut all = slower(5, 30, 15);
    all[15..].iter_mut().for_each(|run| run.method = 2);
    let archive = self::archive(&bench, &all);
    let text = shown(&archive, &["sort big.txt"]);
    assert!(
        text.contains("new series: another method (2)") && text.contains("no change found"),
        "{text}"
    );
}

#[test]
fn a_branch_has_a_history_of_its_own() {
    let bench = Bench::new();
    let mut all = slower(5, 30, 99);
    all.iter_mut().for_each(|run| run.branch = "main");
    // Slower work on a branch, merged never.
    let twice = |run: &Planted| run.rows.iter().map(|(account, ns)| (*account, ns * 2)).collect();
    all[20..25].iter_mut().for_each(|run| (run.rows, run.branch) = (twice(run), "try-it"));
    let archive = archive(&bench, &all);
    let text = shown(&archive, &["sort big.txt"]);
    assert!(text.contains("2 branches; one alone: --branch 'main'"), "{text}");
    assert!(text.contains("\nat "), "{text}");
    let text = shown(&archive, &["sort big.txt", "--branch", "main"]);
    assert!(text.contains("25 commits in 25 runs") && text.contains("no change found"), "{text}");
    assert!(!text.contains("branches"), "{text}");
    let text = shown(&archive, &["sort big.txt", "--branch", "try-it"]);
    assert!(text.contains("5 commits in 5 runs") && text.contains("too few commits"), "{text}");
    let said = history(&archive, &["sort big.txt", "--branch", "mains"]);
    let expected = "no run of `sort big.txt` was measured on the branch `mains`; did you mean --branch 'main'?";
    assert!(said.code == 2 && said.err.contains(expected), "{}", said.err);
    let said = history(&archive, &["sort big.txt", "--branch", "elsewhere"]);
    assert!(said.err.contains("there are runs of: main, try-it"), "{}", said.err);
}

#[test]
fn commits_are_selected_and_a_row_is_shown_alone() {
    let bench = Bench::new();
    let archive = archive(&bench, &slower(11, 40, 22));
    let text = shown(&archive, &["sort big.txt", "--last", "3"]);
    assert!(text.contains(": 3 commits in 3 runs") && !text.contains("too few"), "{text}");
    // Half a day between commits, the first of which is of 2026-09-21.
    let text = shown(&archive, &["sort big.txt", "--since", "2026-10-01"]);
    assert!(text.contains("21 commits in 21 runs, 2026-10-01 to 2026-10-11"), "{text}");
    let text = shown(&archive, &["sort big.txt", "--row", "allocation"]);
    assert!(text.contains("allocation share") && text.contains("← +"), "{text}");
    assert!(
        shown(&archive, &["sort big.txt", "--row", "system calls"]).contains("no change found")
    );
}

#[test]
fn mistakes_are_one_sentence_with_what_to_do() {
    let bench = Bench::new();
    let path = archive(&bench, &slower(1, 4, 99));
    let missing = bench.path("missing.db");
    let refused = |archive: &std::path::Path, words: &[&str], expected: &[&str]| {
        let said = history(archive, words);
        assert_eq!(
            (said.code, said.out.as_str(), said.err.lines().count()),
            (2, "", 1),
            "{}",
            said.err
        );
        for part in expected {
            assert!(said.err.contains(part), "{part:?} in {}", said.err);
        }
    };
    refused(&missing, &[], &["there is no archive", "--keep"]);
    assert!(!missing.exists());
    refused(&path, &["sort bog.txt"], &["no history", "did you mean", "'sort big.txt'"]);
    refused(&path, &["sort"], &["did you mean", "'sort big.txt'"]);
    refused(&path, &["elephant"], &["deadweight history lists"]);
    refused(&path, &["sort big.txt", "--row", "alocation"], &["did you mean --row 'allocation'"]);
    refused(&path, &["sort big.txt", "--row", "gc"], &["never took time", "net work, allocation"]);
    refused(&path, &["sort big.txt", "--machine", "2"], &["1 machine has measured"]);
    refused(&path, &["sort big.txt", "--since", "2030-01-01"], &["the last one is of 2026-09-23"]);
    refused(&path, &["sort big.txt", "--bisect"], &["nothing to bisect"]);
    refused(&path, &["sort big.txt", "--bisect", "--at", "abc"], &["no change was found at"]);
    let text = shown(&path, &["sort big.txt"]);
    assert!(text.contains("too few commits to find changes: 4 where 6"), "{text}");
    let empty = bench.path("empty.db");
    Archive::open(&format!("sqlite:{}", empty.display())).unwrap();
    refused(&empty, &[], &["no run is kept", "--keep"]);
    refused(&empty, &["x"], &["nothing is kept"]);
    let said = run(&["history", "w", "--since", "soon"]);
    assert!(said.code == 2 && said.err.contains("2026-10-03"), "{}", said.err);
}

/// A run that failed early is no fast one.
#[test]
fn runs_that_ended_otherwise_than_most_are_left_out() {
    let bench = Bench::new();
    let path = bench.path("failed.db");
    let mut archive = Archive::open(&format!("sqlite:{}", path.display())).unwrap();
    let planted = slower(5, 20, 40);
    let mut runs: Vec<Kept> = planted.iter().enumerate().map(|(at, run)| kept(at, run)).collect();
    for (at, run) in runs.iter_mut().enumerate() {
        // All of them end with 3, but for four that a signal ended.
        run.tables.run.exit_code = if (12..16).contains(&at) { 130 } else { 3 };
    }
    archive.add_all(&runs).unwrap();
    let said = history(&path, &["sort big.txt"]);
    assert!(said.code == 0 && said.err.contains("4 runs left out"), "{}{}", said.out, said.err);
    assert!(
        said.out.contains(&name(11)[..10]) && !said.out.contains(&name(12)[..10]),
        "{}",
        said.out
    );
}

#[test]
fn a_benchmark_of_nanoseconds_has_decimals_and_its_changes_are_found() {
    let bench = Bench::new();
    let path = bench.path("b.db");
    for commit in 1..=8 {
        let ns = if commit < 5 { 1.40 } else { 1.52 };
        let each = [0.0, 0.01, 0.02].map(|more| format!("BenchmarkX 9 {:.2} ns/op\n", ns + more));
        let file = bench.file("x.txt", each.concat());
        let mut add = deadweight();
        add.args(["archive", "add", "-q", "--commit", &format!("{commit:040x}"), "--archive"]);
        assert_eq!(said(&add.arg(&path).arg(&file).output().unwrap()).code, 0);
    }
    let text = shown(&path, &["X"]);
    assert!(text.contains("1.41 ns") && text.contains("← 8.5 % slower"), "{text}");
    assert!(shown(&path, &[]).contains("1.53 ns"), "{text}");
    let mut list = deadweight();
    let listed = said(&list.args(["archive", "list", "--archive"]).arg(&path).output().unwrap());
    let id = listed.out.split(' ').next().unwrap();
    let mut show = deadweight();
    let one = said(&show.args(["archive", "show", id, "--archive"]).arg(&path).output().unwrap());
    assert!(one.out.contains("sec/op  1.530n  (1.520n to 1.540n)"), "{}", one.out);
}

#[test]
fn a_benchmark_of_a_file_has_no_command_to_bisect_with() {
    let bench = Bench::new();
    let path = bench.path("go.db");
    let mut archive = Archive::open(&format!("sqlite:{}", path.display())).unwrap();
    let mut runs: Vec<Kept> =
        slower(11, 40, 22).iter().enumerate().map(|(at, run)| kept(at, run)).collect();
    runs.iter_mut().for_each(|run| run.tables.run.kind = "go".into());
    archive.add_all(&runs).unwrap();
    let said = history(&path, &["sort big.txt", "--bisect"]);
    assert!(
        said.code == 2 && said.err.contains("results (go), which has no command"),
        "{}",
        said.err
    );
}

#[test]
fn names_of_foreign_archives_do_not_reach_the_shell() {
    let bench = Bench::new();
    let path = archive(&bench, &slower(11, 40, 22));
    // Nothing is known of these commits here, so they may be of another repository.
    let mut command = deadweight();
    command.args(["history", "sort big.txt", "--bisect", "--build", "make -j4 && true"]);
    command.arg("--archive").arg(&path).current_dir(bench.path(""));
    let said = said(&command.output().unwrap());
    assert_eq!((said.code, said.err.as_str()), (0, ""));
    assert!(said.out.contains("run this in the program's repository"), "{}", said.out);
    assert!(said.out.contains("{ make -j4 && true; } || exit 125"), "{}", said.out);
    assert!(
        said.out.contains(&format!("git bisect start {} {}", name(22), name(21))),
        "{}",
        said.out
    );
}
