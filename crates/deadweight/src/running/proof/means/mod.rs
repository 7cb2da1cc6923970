//! Means: how a run leaves a cost out, without the source and without another build.
//!
//! - In: a change, as the findings ask for it.
//! - Out: the two sides of a pair: the command as it is, and without the cost. Both have what the means itself costs.
//! - Must not know: findings, or how pairs are judged.
//!
//! One file for each means.

mod environment;
pub(super) mod folder;
mod library;
mod patched_copy;
mod placement;
mod skipped_calls;
mod twice;

pub use folder::Folder;

use crate::running::series::RunOptions;
use deadweight_report::report::{Change, Means, Preloaded};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::PathBuf;

/// What a means does, in words.
#[derive(Copy, Clone, Debug)]
pub struct About {
    /// The means.
    pub means: Means,
    /// The classes of costs that it leaves out.
    pub classes: &'static [&'static str],
    /// How it is done.
    pub how: &'static str,
    /// What it may change besides.
    pub besides: &'static str,
    /// How that is noticed.
    pub noticed: &'static str,
}

/// All means.
pub const ALL: [About; 7] = [
    patched_copy::ABOUT,
    skipped_calls::ABOUT,
    environment::ABOUT,
    library::ABOUT,
    twice::ABOUT,
    placement::ONE_CPU,
    placement::NO_QUOTA,
];

/// The two sides of a pair.
#[derive(Clone, Debug)]
pub struct Sides {
    /// The command as it is.
    pub with: RunOptions,
    /// Without the cost.
    pub without: RunOptions,
    /// Shows that the means takes effect, where that is not certain.
    pub effect: Option<Effect>,
    /// The command as it is, with a trace of the means that does not matter: if it does otherwise, it noticed the means.
    pub control: Option<Control>,
}

/// The command with an unchanged copy of its binary that is one byte longer: nothing executes or loads that byte.
#[derive(Clone, Debug)]
pub struct Control {
    /// The command.
    pub run: RunOptions,
    /// An unchanged copy.
    original: PathBuf,
    /// Where the longer one will be.
    longer: PathBuf,
}

impl Control {
    /// Makes the copy: few need it.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn prepare(&self) -> io::Result<()> {
        fs::create_dir_all(self.longer.parent().unwrap_or(&self.longer))?;
        fs::copy(&self.original, &self.longer)?;
        File::options().append(true).open(&self.longer)?.write_all(&[0])
    }
}

/// A file that the side without the cost writes to when the means takes effect.
#[derive(Clone, Debug)]
pub struct Effect {
    /// The file.
    pub file: PathBuf,
    /// Why it may not: nothing is written.
    pub otherwise: &'static str,
    /// Of a means that writes a `+` when it has changed something: why it may not.
    pub idle: Option<&'static str>,
}

impl Effect {
    /// Whether it took effect in the last run.
    ///
    /// # Errors
    /// Why it did not.
    pub fn check(&self) -> Result<(), String> {
        let written = fs::read(&self.file).unwrap_or_default();
        // For the next trial.
        let _ = fs::remove_file(&self.file);
        match (written.is_empty(), self.idle) {
            (true, _) => Err(self.otherwise.to_owned()),
            (false, Some(idle)) if !written.contains(&b'+') => Err(idle.to_owned()),
            _ => Ok(()),
        }
    }
}

impl Sides {
    /// Two sides of a means that always takes effect, and that no program looks for.
    fn new(with: RunOptions, without: RunOptions) -> Self {
        Self { with, without, effect: None, control: None }
    }
}

/// The sides for a change.
///
/// # Errors
/// Why it cannot be made, as a sentence without its end.
pub fn sides(change: &Change, options: &RunOptions, folder: &Folder) -> Result<Sides, String> {
    match change {
        Change::Patches(binary, patches) => {
            patched_copy::sides(binary.as_ref(), patches, options, folder)
        }
        Change::SkippedCalls(calls) => Ok(skipped_calls::sides(calls, options)),
        Change::Environment(variables) => Ok(environment::sides(variables, options)),
        Change::Library(library) => library::sides(*library, options, folder),
        Change::OneCpu => Ok(placement::one_cpu(options)),
        Change::NoQuota => placement::no_quota(options),
        Change::Twice(binary, calls) => twice::sides(binary, calls, options, folder),
    }
}

/// All means in Markdown, as `explain` prints costs.
#[must_use]
pub fn described() -> String {
    let mut text =
        "What can be left out of a run, or done twice, to measure what it costs.\n".to_owned();
    for about in ALL {
        let title = match about.means {
            Means::PatchedCopy => "A patched copy",
            Means::SkippedCalls => "Skipped system calls",
            Means::Environment => "Variables of the environment",
            Means::Library => "A library loaded first",
            Means::OneCpu => "One CPU",
            Means::NoQuota => "No quota",
            Means::Twice => "Calls made twice",
        };
        let About { classes, how, besides, noticed, .. } = about;
        text += &format!(
            "\n# {title}: {}\n- How: {how}.\n- What it may change besides: {besides}.\n- How that is noticed: {noticed}.\n",
            classes.join(", ")
        );
    }
    text + "\nOther costs cannot be left out: the report says why, and how much they are at most.\n"
}

/// What the user should know before runs with this change begin.
#[must_use]
pub fn warning(change: &Change) -> Option<&'static str> {
    match change {
        Change::SkippedCalls(calls) if calls.iter().any(|call| call.name == "fsync") => {
            Some(skipped_calls::DURABILITY)
        }
        Change::Library(Preloaded::Durable) => Some(skipped_calls::DURABILITY),
        _ => None,
    }
}
