//! The files, opened by other programs: each shows the totals of the ledger.

use super::{export, wall};
use crate::support::Bench;
use std::process::Command;

/// Runs a program; its standard output if it is there. Otherwise the test is skipped, with a message.
fn opened(test: &str, command: &mut Command) -> Option<String> {
    let program = command.get_program().to_string_lossy().into_owned();
    match command.output() {
        Ok(output) => {
            let err = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{program}: {err}");
            Some(String::from_utf8_lossy(&output.stdout).into_owned())
        }
        Err(_) => {
            eprintln!("SKIPPED {test}: `{program}` is missing; ./setup.sh tests installs it");
            None
        }
    }
}

#[test]
fn inferno_draws_folded_stacks_with_the_wall_time() {
    let bench = Bench::new();
    for name in ["ls-recursive", "contended-mutex"] {
        let folded = export(&bench, "folded", name);
        let mut inferno = Command::new("inferno-flamegraph");
        inferno.args(["--countname", "ns"]).arg(&folded);
        let Some(svg) = opened("inferno", &mut inferno) else { return };
        let all = svg.split("<title>all (").nth(1).and_then(|rest| rest.split(" ns").next());
        let all = all.map(|ns| ns.replace(',', ""));
        assert_eq!(all, Some(wall(name).to_string()), "{name}");
    }
}
