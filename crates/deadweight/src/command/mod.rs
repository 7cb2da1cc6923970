//! The verbs: one file each.
//!
//! - In: a parsed command line (`cli`).
//! - Out: text or files, and an exit code.
//! - Must not know: how options are parsed (`cli`), runs recorded (`recorder`, `running`) or text laid out (`render`).

mod archive;
mod ci;
mod compare;
mod destination;
mod doctor;
mod dump;
mod explain;
mod export;
mod gate;
mod generate;
mod history;
mod import;
mod page;
mod pictures;
mod record;
mod recording;
mod report;
mod result_files;
mod rows;
mod run;
mod scan;
mod suggestion;
mod view;
mod weighing;

use crate::cli::{Cli, Verb};
use crate::debuginfod;
use crate::failure::Failure;
use crate::running::proof::guard;
use clap::{CommandFactory, FromArgMatches};
use std::ffi::OsString;
use std::io::Write;

/// Exit code for a program that was not found, as in shells.
const NOT_FOUND: u8 = 127;

/// Does what the command line says and returns the exit code.
#[must_use]
pub fn execute(words: impl IntoIterator<Item = OsString>) -> u8 {
    let words: Vec<OsString> = words.into_iter().collect();
    if debuginfod::is_meant(&words) {
        return debuginfod::ask(destination::sudo_user());
    }
    if guard::is_meant(&words) {
        return guard::guard(&words);
    }
    let parsed = Cli::command()
        .try_get_matches_from(&words)
        .and_then(|matches| Cli::from_arg_matches(&matches));
    let cli = match parsed {
        Ok(cli) => cli,
        Err(error) => return refused(&error),
    };
    let failure_file = match cli.run.failure_to.as_deref().map(std::fs::File::create).transpose() {
        Ok(file) => file,
        Err(error) => {
            say(&format!("deadweight: cannot write the file of --failure-to: {error}"));
            return crate::failure::OURS;
        }
    };
    let done = match &cli.verb {
        None => {
            suggestion::is_verb_meant(&words, &cli.run.command).and_then(|()| run::run(&cli.run))
        }
        Some(Verb::Run(options)) => run::run(options),
        Some(Verb::Record(options)) => record::record(options),
        Some(Verb::Report(options)) => report::report(options),
        Some(Verb::Compare(options)) => compare::compare(options),
        Some(Verb::Archive(options)) => archive::archive(options),
        Some(Verb::History(options)) => history::history(options),
        Some(Verb::Ci(options)) => ci::ci(options),
        Some(Verb::Gate(options)) => gate::gate(options),
        Some(Verb::Export(options)) => export::export(options),
        Some(Verb::Rows(options)) => rows::rows(options),
        Some(Verb::Import(options)) => import::import(options),
        Some(Verb::Dump(options)) => dump::dump(options),
        Some(Verb::Explain(options)) => explain::explain(options),
        Some(Verb::Scan(options)) => scan::scan(options),
        Some(Verb::Doctor(options)) => doctor::doctor(options),
        Some(Verb::Generate(options)) => generate::generate(options),
    };
    done.unwrap_or_else(|failure| {
        if failure.is_broken_pipe() {
            return 0;
        }
        if let Some(mut file) = failure_file {
            // The caller finds an exit code and an empty file: nothing more can be done.
            _ = writeln!(file, "deadweight: {failure}");
            return failure.exit_code();
        }
        say(&format!("deadweight: {failure}"));
        // Only the first word can be a mistyped verb.
        let first = cli.run.command.first().filter(|first| words.get(1) == Some(*first));
        if failure.exit_code() == NOT_FOUND
            && let Some(said) = first.and_then(|word| suggestion::of_verb(word.to_str()?))
        {
            say(&said);
        }
        failure.exit_code()
    })
}

/// Prints clap's text: help and version are no errors; wrong arguments get a hint.
fn refused(error: &clap::Error) -> u8 {
    let text = error.render();
    let colour = page::colours(&std::io::stderr(), crate::cli::Color::Auto);
    if error.use_stderr() {
        let text = if colour { text.ansi().to_string() } else { text.to_string() };
        complain(&text.replacen("error:", "deadweight:", 1));
        if error.kind() == clap::error::ErrorKind::UnknownArgument {
            say("Put options of the command after its name, or after `--`: deadweight -- ls -l");
        }
        return crate::failure::OURS;
    }
    let colour = page::colours(&std::io::stdout(), crate::cli::Color::Auto);
    let text = if colour { text.ansi().to_string() } else { text.to_string() };
    // A reader that closed the pipe has what it wants.
    let _ = std::io::stdout().write_all(text.as_bytes());
    0
}

/// Prints lines on standard error. They may quote foreign text, so control characters are escaped.
fn say(text: &str) {
    complain(&text.lines().map(crate::render::page::printable).collect::<Vec<_>>().join("\n"));
}

/// Both outcomes as one; if both failed, the second is printed.
fn both(first: Result<(), Failure>, second: Result<(), Failure>) -> Result<(), Failure> {
    if let (Err(_), Err(failure)) = (&first, &second) {
        say(&format!("deadweight: {failure}"));
    }
    first.and(second)
}

/// Prints text on standard error. Nothing more can be done if that is closed.
fn complain(text: &str) {
    let _ = std::io::stderr().write_all(format!("{}\n", text.trim_end()).as_bytes());
}

/// Prints the result of a verb on standard output.
fn print(what: &'static str, text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(|source| Failure::Write {
        what,
        to: "standard output".into(),
        source,
    })
}
