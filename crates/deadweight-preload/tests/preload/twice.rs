//! Calls that are made twice: the same results, and the time of one more.

use crate::harness::{build, file};
use deadweight_preload::{LOADED, Library, TWICE};
use std::path::Path;
use std::process::Command;

/// The addresses of the last bytes of the calls of these functions in a program, in hexadecimal.
fn calls(program: &Path, functions: &[&str]) -> String {
    let output = Command::new("objdump").args(["-d", "--no-show-raw-insn"]).arg(program).output();
    let text = String::from_utf8(output.unwrap().stdout).unwrap();
    let is_meant = |line: &&str| {
        line.contains("call ") && functions.iter().any(|f| line.contains(&format!("<{f}@plt>")))
    };
    let lines: Vec<&str> = text.lines().collect();
    let last_bytes = lines.windows(2).filter(|pair| is_meant(&pair[0])).map(|pair| {
        let next = pair[1].trim().split(':').next().unwrap();
        format!("{:x}", u64::from_str_radix(next, 16).unwrap() - 1)
    });
    last_bytes.take(8).collect::<Vec<_>>().join(",")
}

/// Runs a program whose calls of these functions are made so many times. Returns what it wrote, its CPU time in user mode in
/// seconds, and how often it was said that a call was made twice.
fn run(program: &Path, arguments: &[&str], count: u8, functions: &[&str]) -> (String, f64, usize) {
    let calls = calls(program, functions);
    assert!(!calls.is_empty(), "{functions:?}");
    let said = program.with_extension("said");
    std::fs::write(&said, "").unwrap();
    let output = Command::new("sh")
        .args(["-c", "\"$0\" \"$@\" || exit 1; times"])
        .arg(program)
        .args(arguments)
        .env("LD_PRELOAD", file(Library::Twice))
        .env(LOADED, &said)
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
        std::fs::read(&said).unwrap().len(),
    )
}

#[test]
fn what_is_done_twice_has_the_same_results() {
    let program = build("twice.c", "twice", &["-O1", "-fno-builtin", "-w"]);
    let plain = Command::new(&program).output().unwrap();
    let plain = String::from_utf8(plain.stdout).unwrap();
    assert_eq!(plain.lines().count(), 7, "{plain}");
    // One has other names in other versions of the C library.
    let all: [&[&str]; 6] = [
        &["memcpy"],
        &["memmove"],
        &["strlen"],
        &["strcat"],
        &["strncat"],
        &["sscanf", "__isoc99_sscanf", "__isoc23_sscanf"],
    ];
    for functions in all {
        for count in 1..=2 {
            let (wrote, _, said) = run(&program, &[], count, functions);
            assert_eq!((&wrote, said), (&plain, usize::from(count) - 1), "{functions:?} {count}");
        }
    }
}

#[test]
fn a_copy_that_is_made_twice_takes_twice_the_time() {
    let program = build("twice.c", "twice_longer", &["-O1", "-fno-builtin", "-w"]);
    let (once, short, _) = run(&program, &["200"], 1, &["memcpy"]);
    let (twice, long, _) = run(&program, &["200"], 2, &["memcpy"]);
    assert_eq!(once, twice);
    assert!(long > 1.4 * short, "{long} {short}");
}
