//! `history --bisect`: its commands find a planted commit in a real repository.

use crate::history::report;
use crate::support::{Bench, deadweight, live, said};
use deadweight_archive::{Archive, Kept};
use deadweight_report::tables::Origin;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The commit that makes the program slower, and one that does not build, from 1 to [`LAST`]. It is the middle of those
/// that were not measured, so it is tried first; no neighbour of the slow one, or either could be it.
const SLOW: u32 = 7;
const BROKEN: u32 = 5;
const LAST: u32 = 8;

fn git(repository: &Path, words: &[&str]) -> String {
    let mut git = Command::new("git");
    // All commits are of one second, as after a rebase.
    git.env("GIT_COMMITTER_DATE", "1790000000 +0000");
    git.args(["-c", "user.name=n", "-c", "user.email=e", "-c", "init.defaultBranch=main"]);
    let output = git.args(words).current_dir(repository).output().unwrap();
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// A repository of a small program; returns its commits.
fn repository(folder: &Path) -> Vec<String> {
    std::fs::create_dir(folder).unwrap();
    git(folder, &["init", "-q"]);
    std::fs::write(folder.join("Makefile"), "prog: prog.c\n\tcc -O1 -o prog prog.c\n").unwrap();
    std::fs::write(folder.join(".gitignore"), "prog\n").unwrap();
    let commit = |number: u32| {
        let work = if number >= SLOW { 40_000_000 } else { 20_000_000 };
        let broken = if number == BROKEN { "oops\n" } else { "" };
        let source = format!(
            "/* version {number} */\n{broken}int main(void) {{\n  unsigned sum = 0;\n  for (int i = 0; i < {work}; i++) \
             __asm__ volatile(\"\" : \"+r\"(sum));\n  return sum;\n}}\n"
        );
        std::fs::write(folder.join("prog.c"), source).unwrap();
        git(folder, &["add", "-A"]);
        git(folder, &["commit", "-q", "-m", &format!("version {number}")]);
        git(folder, &["rev-parse", "HEAD"])
    };
    (1..=LAST).map(commit).collect()
}

/// An archive in which the program takes 2 ms at these commits, and 4 ms from the fourth on. The last was measured first.
fn archive(path: &Path, folder: &Path, commits: &[String]) {
    let mut archive = Archive::open(&format!("sqlite:{}", path.display())).unwrap();
    for (at, commit) in commits.iter().enumerate() {
        let ns = if at < 3 { 2_000_000 } else { 4_000_000 } + at as u64 * 7919 % 11 * 1000;
        let report = report(&["./prog"], &[("net-work", ns)]);
        let time = git(folder, &["log", "-1", "--format=%ct", commit]).parse().unwrap();
        let origin = Origin {
            workload: "prog".into(),
            commit: commit.clone(),
            commit_time: time,
            time: time + 100 - i64::try_from(at).unwrap(),
            ..Origin::default()
        };
        let text = serde_json::to_string(&report).unwrap();
        archive.add(&Kept::new(&report, &text, &origin)).unwrap();
    }
}

#[test]
fn a_bisection_finds_the_planted_commit() {
    live!();
    let bench = Bench::new();
    let folder: PathBuf = bench.path("repo");
    let commits = repository(&folder);
    let path = bench.path("a.db");
    // The commits 4 to 7 are not measured: one of them made it slow and one does not build. The last is followed by two
    // that change nothing.
    for text in ["one", "two"] {
        git(&folder, &["commit", "-q", "--allow-empty", "-m", text]);
    }
    let newest = ["HEAD~2", "HEAD~1", "HEAD"].map(|name| git(&folder, &["rev-parse", name]));
    archive(&path, &folder, &[&commits[..3], &newest[..]].concat());
    let mut bisect = deadweight();
    bisect.args(["history", "prog", "--bisect", "--archive"]).arg(&path).current_dir(&folder);
    let lines = said(&bisect.output().unwrap());
    assert_eq!(lines.code, 0, "{}", lines.err);
    assert!(lines.out.contains("one of 5 commits, found in about 3 steps"), "{}", lines.out);
    let binary = Path::new(env!("CARGO_BIN_EXE_deadweight")).parent().unwrap();
    let path = format!("{}:/usr/local/bin:/usr/bin:/bin", binary.display());
    let mut shell = Command::new("sh");
    shell.args(["-e", "-c", &lines.out]).current_dir(&folder).env("PATH", path);
    let found = said(&shell.output().unwrap());
    let expected = format!("{} is the first bad commit", commits[SLOW as usize - 1]);
    assert!(
        found.out.contains(&expected),
        "{expected}\n{}\n{}\n{}",
        lines.out,
        found.out,
        found.err
    );
    assert!(found.err.contains("oops"), "the commit that does not build was tried: {}", found.out);
}
