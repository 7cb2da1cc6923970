//! The project's own commands: `cargo xtask check`, `tidy`, `docs`, `new-cost`, `live`, `bench`,
//! `case`, `grade`.
//!
//! Standard library only, so that the first `cargo xtask` is quick. Not for anything a user of
//! deadweight needs: that is the `deadweight` binary.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command line tool talks")]

mod case;
mod check;
mod costs;
mod new_cost;
mod repository;
mod tidy;

use repository::Repository;
use std::process::ExitCode;

const USAGE: &str = "\
cargo xtask COMMAND

  check            everything that must hold before a commit: fmt, clippy, tests, tidy, docs
  tidy             the rules that clippy does not know
  docs [--check]   write docs/costs.md from the cost classes' own text, or only compare
  new-cost NAME    write a cost class that compiles and fails its registry test until filled in
  live [NAME]      run real programs and check what deadweight says of them (root)
  bench [ARGS]     measure deadweight beside its peers, write bench/RESULTS.md (root)
  bench cases [NAME]  the cases beside what others use, write their RESULTS.md (long)
  case NAME, cases build and check one of cases/, or all (root); --quick: what holds on a busy machine
  grade CORPUS     score deadweight on a folder of programs whose hidden cost is known
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
        "new-cost" => new_cost::run(&repository, rest),
        "live" => check::live(&repository, rest),
        "bench" if rest.first().is_some_and(|word| word == "cases") => {
            case::bench::run(&repository, &rest[1..])
        }
        "bench" => check::bench(&repository, rest),
        "case" | "cases" => case::run(&repository, rest),
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
