//! What a job of GitHub Actions reads: annotations on standard output, the job's summary, outputs of the step.
//!
//! Elsewhere nothing happens: the environment says where we are.

use crate::failure::Failure;
use crate::render::judgement::{annotations, markdown};
use deadweight_report::regressions::{Judgement, State};
use std::env;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;

pub(super) fn tell(judgements: &[&Judgement], config: &str) -> Result<(), Failure> {
    if env::var_os("GITHUB_ACTIONS").is_none_or(|value| value != "true") {
        return Ok(());
    }
    let root = env::var("GITHUB_WORKSPACE").unwrap_or_default();
    crate::command::print("the annotations", &annotations::commands(judgements, &root))?;
    let state = judgements.iter().map(|one| one.state).max().unwrap_or(State::Unchanged);
    let word = serde_json::to_value(state).ok().and_then(|value| value.as_str().map(str::to_owned));
    let output = format!("verdict={}\n", word.unwrap_or_default());
    append("GITHUB_STEP_SUMMARY", "the job's summary", &markdown::comment(judgements, config))?;
    append("GITHUB_OUTPUT", "the step's outputs", &output)
}

/// Adds text to the file that a variable names; nothing without it.
fn append(variable: &str, what: &'static str, text: &str) -> Result<(), Failure> {
    let Some(path) = env::var_os(variable).filter(|path| !path.is_empty()) else { return Ok(()) };
    let path = PathBuf::from(path);
    let file = OpenOptions::new().append(true).create(true).open(&path);
    file.and_then(|mut file| file.write_all(text.as_bytes())).map_err(|source| Failure::Write {
        what,
        to: path.display().to_string(),
        source,
    })
}
