//! Truths about programs that every machine has: what anyone would try first.
//!
//! The bounds are wide where the machine decides (caches, disks) and tight where the program does.

use crate::program;
use crate::truth::Truth;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A fresh folder of this name.
fn folder(name: &str) -> PathBuf {
    let folder = program::scratch_folder().join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("the target folder can be written");
    folder
}

fn run(folder: &Path, program: &str, arguments: &[&str]) {
    let done = Command::new(program)
        .args(arguments)
        .current_dir(folder)
        .output()
        .unwrap_or_else(|e| panic!("{program}: {e}"));
    assert!(done.status.success(), "{program}: {}", String::from_utf8_lossy(&done.stderr));
}

const KERNEL: &[&str] = &[
    "system-calls",
    "page-faults",
    "first-touch",
    "kernel-other",
    "start-up",
    "tiny-writes",
    "tiny-reads",
    "repeated-syscalls",
];

#[test]
fn ls_of_a_large_folder_is_system_calls_and_its_own_work() {
    Truth::of("ls -R /usr/share")
        .rows(&["system-calls", "repeated-syscalls", "tiny-reads", "tiny-writes"], 0.1..=0.9)
        .rows(&["wait-lock", "wait-input", "wait-child", "wait-sleep"], 0.0..=0.01)
        .check();
}

#[test]
fn git_log_is_gits_own_work() {
    if program::tool("git").is_ok() {
        let repository = folder("repository");
        run(&repository, "git", &["init", "--quiet"]);
        for commit in 0..60 {
            let text = format!("line {commit}\n").repeat(200 + commit);
            std::fs::write(repository.join(format!("file-{}", commit % 7)), text)
                .expect("the folder can be written");
            run(&repository, "git", &["add", "."]);
            let who = ["-c", "user.name=A", "-c", "user.email=a@example.org"];
            let what = ["commit", "--quiet", "-m", "a change"];
            run(&repository, "git", &[&who[..], &what[..]].concat());
        }
    }
    Truth::of("git --no-pager log --stat")
        .within(&program::scratch_folder().join("repository"))
        .needs(&["git"])
        .rows(&["wait-sleep", "wait-lock", "wait-input"], 0.0..=0.02)
        .check();
}

#[test]
fn sqlite_with_a_transaction_per_row_waits_for_the_disk() {
    let folder = folder("rows");
    let create = "create table t(id integer primary key, name text);\n";
    let mut script = format!("drop table if exists t;\n{create}");
    for row in 0..300 {
        script.push_str(&format!("insert into t values({row}, 'a row of a table');\n"));
    }
    std::fs::write(folder.join("rows.sql"), script).expect("the folder can be written");
    Truth::of("sqlite3 rows.db")
        .within(&folder)
        .reading(&folder.join("rows.sql"))
        .needs(&["sqlite3"])
        .rows(&["wait-disk", "system-calls"], 0.6..=1.0)
        .first_finding(&["wait-disk"])
        .check();
}

#[test]
fn tar_waits_for_gzip_which_computes() {
    let folder = folder("archive");
    Truth::of("tar czf share.tgz -C /usr/share doc")
        .within(&folder)
        .needs(&["tar", "gzip"])
        .rows(&["net-work"], 0.5..=1.0)
        .never(&["wait-child", "wait-output", "wait-input"])
        .check();
}

#[test]
fn python_waits_for_its_child_and_sleeps() {
    Truth::of("python3 @children")
        .needs(&["python3"])
        .rows(&["wait-sleep"], 0.6..=1.0)
        .first_finding(&["wait-sleep"])
        .check();
}

#[test]
fn gcc_is_the_work_of_its_compiler() {
    let folder = folder("compiled");
    Truth::of("gcc -O2 -c -o pool.o")
        .needs(&["gcc"])
        .within(&folder)
        .argument(&program::source("pool.c"))
        .rows(&["net-work", "page-faults", "first-touch", "start-up", "system-calls"], 0.8..=1.0)
        .never(&["wait-child"])
        .check();
}

#[test]
fn a_sleep_in_a_pipe_is_a_sleep() {
    Truth::shell("sleep .3 | cat").rows(&["wait-sleep"], 0.9..=1.0).check();
}

#[test]
fn a_static_program_is_start_up_and_kernel() {
    Truth::of("@static_hello").rows(KERNEL, 0.5..=1.0).check();
}

#[test]
fn a_program_that_only_works_gets_no_finding() {
    Truth::of("@word_count 100000").rows(&["net-work"], 0.8..=1.0).silent().check();
}
