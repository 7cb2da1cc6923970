//! The command `deadweight`: arguments in, exit code out.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(deadweight::command::execute(std::env::args_os()))
}
