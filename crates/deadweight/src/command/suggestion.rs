//! What was probably meant by a word that is not known. Does not act on a guess.

use crate::cli::Cli;
use crate::failure::Failure;
use clap::CommandFactory;
use deadweight_report::wording::nearest;
use std::ffi::OsString;

/// Refuses a verb after options: in `deadweight -r 5 compare …` the word `compare` would be a program to run,
/// and the wrong program could do harm. `words` is the whole command line and ends with `command`.
pub(super) fn is_verb_meant(words: &[OsString], command: &[OsString]) -> Result<(), Failure> {
    let Some(verb) = command.first().and_then(|word| word.to_str()).filter(|w| is_verb(w)) else {
        return Ok(());
    };
    let at = words.len() - command.len();
    if at <= 1 || words[at - 1] == "--" {
        return Ok(());
    }
    Err(Failure::Unknown(format!(
        "`{verb}` is a verb, and verbs come before their options: deadweight {verb} [OPTIONS]; \
         for a program of that name, put `--` before it: deadweight [OPTIONS] -- {verb}"
    )))
}

/// What to try if there is no program called `word`.
pub(super) fn of_verb(word: &str) -> Option<String> {
    match word {
        "help" => return Some("for help: deadweight --help".into()),
        _ if word.contains('/') => return None,
        "version" => return Some("for the version: deadweight --version".into()),
        _ => {}
    }
    let definitions = Cli::command();
    let verb = nearest(word, definitions.get_subcommands().map(clap::Command::get_name))?;
    Some(format!("did you mean: deadweight {verb}"))
}

fn is_verb(word: &str) -> bool {
    Cli::command().get_subcommands().any(|verb| verb.get_name() == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistyped_verbs_are_recognised_and_programs_are_not() {
        assert_eq!(of_verb("reprot").as_deref(), Some("did you mean: deadweight report"));
        assert_eq!(of_verb("comapre").as_deref(), Some("did you mean: deadweight compare"));
        assert!(of_verb("help").is_some_and(|said| said.contains("--help")));
        for program in ["ls", "rg", "du", "gzip", "cargo", "./report"] {
            let said = of_verb(program);
            assert!(said.is_none(), "{program}: {said:?}");
        }
    }

    #[test]
    fn a_verb_behind_options_is_asked_about_once() {
        let words = |line: &str| line.split(' ').map(OsString::from).collect::<Vec<_>>();
        let meant = |line: &str, command: &str| is_verb_meant(&words(line), &words(command));
        assert!(meant("deadweight -q report f", "report f").is_err());
        assert!(meant("deadweight -q -- report f", "report f").is_ok());
        assert!(meant("deadweight -- report f", "report f").is_ok());
        assert!(meant("deadweight -q ls report", "ls report").is_ok());
    }
}
