//! Calls that are made twice: the same results, and the time of one more.

use crate::harness::{build, file};
use deadweight_preload::{Library, TWICE};
use std::path::Path;
use std::process::Command;

/// The addresses of the calls of these functions in a program, in hexadecimal.
fn calls(program: &Path, functions: &[&str]) -> String {
    let output = Command::new("objdump").args(["-d", "--no-show-raw-insn"]).arg(program).output();
    let text = String::from_utf8(output.unwrap().stdout).unwrap();
    let is_meant = |line: &&str| {
        line.contains("call ") && functions.iter().any(|f| line.contains(&format!("<{f}@plt>")))
    };
    let addresses =
        text.lines().filter(is_meant).map(|line| line.trim().split(':').next().unwrap());
    addresses.take(8).collect::<Vec<_>>().join(",")
}

/// Runs a program whose calls of these functions are made so many times. Returns what it wrote, and its CPU time in user mode in
/// seconds.
fn run(program: &Path, arguments: &[&str], count: u8, functions: &[&str]) -> (String, f64) {
    let calls = calls(program, functions);
    assert!(!calls.is_empty(), "{functions:?}");
    let output = Command::new("sh")
        .args(["-c", "\"$0\" \"$@\" || exit 1; times"])
        .arg(program)
        .args(arguments)
        .env("LD_PRELOAD", file(Library::Twice))
        .env(TWICE, format!("{count}:{}:{calls}", program.display()))
        .output()
        .unwrap();
    assert!(output.status.success(), "{functions:?} {output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    // The shell's own times, and those of the program: `0m0.40s 0m0.03s`.
    let (wrote, times) = lines.split_at(lines.len() - 2);
    let user = times[1].split(' ').next().unwrap().trim_end_matches('s').split_once('m').unwrap();
    (
        wrote.join("\n") + "\n",
        user.0.parse::<f64>().unwrap() * 60.0 + user.1.parse::<f64>().unwrap(),
    )
}

#[test]
fn what_is_done_twice_has_the_same_results() {
    let program = build("twice.c", "twice", &["-O1", "-fno-builtin", "-w"]);
    let plain = Command::new(&program).output().unwrap();
    let plain = String::from_utf8(plain.stdout).unwrap();
    assert_eq!(plain.lines().count(), 7, "{plain}");
    let all: [&[&str]; 4] = [
        &["memcpy", "memmove"],
        &["strlen", "memchr", "strcmp", "strstr"],
        &["strcat", "strncat", "__isoc99_sscanf"],
        &["strtod", "strtol"],
    ];
    for functions in all {
        for count in 1..=2 {
            assert_eq!(run(&program, &[], count, functions).0, plain, "{functions:?} {count}");
        }
    }
}

#[test]
fn a_copy_that_is_made_twice_takes_twice_the_time() {
    let program = build("twice.c", "twice_longer", &["-O1", "-fno-builtin", "-w"]);
    let (once, short) = run(&program, &["200"], 1, &["memcpy"]);
    let (twice, long) = run(&program, &["200"], 2, &["memcpy"]);
    assert_eq!(once, twice);
    assert!(long > 1.4 * short, "{long} {short}");
}
