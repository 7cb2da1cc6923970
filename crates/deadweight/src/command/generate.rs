//! `generate`: man page and completions, from the same definitions as `--help`; the JSON Schema of reports, from their
//! types.

use super::print;
use crate::cli::{Cli, Generate, Generated};
use crate::failure::Failure;
use clap::CommandFactory;
use clap_complete::{Shell, generate as complete};
use deadweight_report::report::json_schema;

pub(crate) fn generate(options: &Generate) -> Result<u8, Failure> {
    let mut definitions = Cli::command();
    let mut text = Vec::new();
    let mut completions = |shell| complete(shell, &mut definitions, "deadweight", &mut text);
    match options.what {
        Generated::Bash => completions(Shell::Bash),
        Generated::Zsh => completions(Shell::Zsh),
        Generated::Fish => completions(Shell::Fish),
        Generated::JsonSchema => text.extend(format!("{:#}\n", json_schema()).into_bytes()),
        Generated::Man => {
            clap_mangen::Man::new(definitions).render(&mut text).map_err(|source| {
                Failure::Write { what: "the manual page", to: "memory".into(), source }
            })?;
        }
    }
    print("what was generated", &String::from_utf8_lossy(&text))?;
    Ok(0)
}
