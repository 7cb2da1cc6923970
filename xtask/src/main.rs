//! The project's own commands: `cargo xtask check`, `tidy`, `docs`, `bpf`, `new-cost`, `live`, `bench`,
//! `case`, `wild`, `grade`.
//!
//! Uses the standard library only, so that the first `cargo xtask` is quick. Holds nothing for users of
//! deadweight; see the `deadweight` binary.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command line tool prints")]

mod bpf;
mod case;
mod check;
mod costs;
mod gate;
mod new_cost;
mod repository;
mod tidy;
mod toml;
mod wild;

use repository::Repository;
use std::process::ExitCode;

const USAGE: &str = "\
cargo xtask COMMAND

  check            run all checks of a commit: fmt, tidy, docs, clippy, tests
  tidy             check the project's own rules: import circles, sizes, words, links, ...
  docs [--check]   write docs/costs.md from the text of the cost classes, or only compare it
  bpf [--check]    compile the BPF programs (clang), or only check that the object belongs to the sources
  new-cost NAME    write a cost class that compiles; its registry test fails until it is filled in
  live [NAME]      run real programs and check deadweight's reports on them (root)
  bench [ARGS]     measure deadweight and other tools, write bench/RESULTS.md (root)
  bench cases [NAME]  measure the cases and their alternatives, write their RESULTS.md (long)
  case NAME, cases build and check one of cases/, or all (root); --quick: only what holds on a busy machine
  wild [NAME]      record real programs that nobody here wrote: the quick dozen, or --all (root)
  gate             judge this version's analysis against the one of bench/base, by deadweight ci (root)
  grade CORPUS     score deadweight on a folder of programs with known hidden costs
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let repository = Repository::here();
    let (command, rest) = match arguments.split_first() {
        Some((command, rest)) => (command.as_str(), rest),
        None => ("help", &[][..]),
    };
    let outcome = match command {
        "check" => check::everything(&repository),
        "tidy" => tidy::run(&repository),
        "docs" => costs::run(&repository, rest),
        "bpf" => bpf::run(&repository, rest),
        "new-cost" => new_cost::run(&repository, rest),
        "live" => check::live(&repository, rest),
        "bench" if rest.first().is_some_and(|word| word == "cases") => {
            case::bench::run(&repository, &rest[1..])
        }
        "bench" => check::bench(&repository, rest),
        "case" | "cases" => case::run(&repository, rest),
        "gate" => gate::run(&repository),
        "wild" => wild::run(&repository, rest),
        "grade" => check::grade(&repository, rest),
        "help" | "--help" | "-h" => {
            print!("{USAGE}");
            Ok(())
        }
        other => Err(format!("no command `{other}`\n\n{USAGE}")),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(complaint) => {
            eprintln!("xtask: {complaint}");
            ExitCode::FAILURE
        }
    }
}
