//! `--keep`: the report of a run goes into the archive.
//!
//! The archive is opened, and git is asked, before the program runs: what is wrong is reported before an hour of
//! measuring. If the run cannot be kept after all, it is written to a file that `archive add` takes.

use super::super::destination::Destination;
use super::{origin, place};
use crate::cli::{Keep, Run, View};
use crate::failure::Failure;
use crate::render::json;
use deadweight_archive::{Archive, Kept};
use deadweight_report::report::Report;
use deadweight_report::tables::Origin;
use deadweight_trace::Trace;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Keeps runs.
#[derive(Debug)]
pub(crate) struct Keeper {
    archive: Archive,
    origin: Origin,
    /// The workload that the user named, or empty.
    named: String,
    with_trace: bool,
    quiet: bool,
}

/// The bytes of a recording, if they are to be kept.
#[derive(Debug, Default)]
pub(crate) struct KeptTrace(Option<Vec<u8>>);

impl Keeper {
    /// Opens the archive, if runs are to be kept.
    pub(crate) fn open(options: &Keep, quiet: bool) -> Result<Option<Self>, Failure> {
        let Some(named) = options.keep.clone() else { return Ok(None) };
        let archive = place::open(&options.place)?;
        let origin = origin::here(options.commit.as_deref());
        Ok(Some(Self { archive, origin, named, with_trace: options.keep_trace, quiet }))
    }

    /// The last of these recordings, if one is to be kept. Weighing them comes after.
    pub(crate) fn trace(&self, traces: &[Trace]) -> KeptTrace {
        KeptTrace(traces.last().filter(|_| self.with_trace).map(Trace::to_bytes))
    }

    /// Keeps the report of a run.
    pub(crate) fn keep(
        &mut self,
        report: &Report,
        options: &Run,
        trace: KeptTrace,
    ) -> Result<(), Failure> {
        let words = &options.command;
        let named = Some(&self.named).filter(|name| !name.is_empty());
        let workload = named.cloned().unwrap_or_else(|| {
            let command =
                if words.is_empty() { report.subject.name.clone() } else { workload(words) };
            of_part(command, &options.view)
        });
        self.add(report, workload, trace)
    }

    /// Keeps the report of a side of `compare`.
    pub(crate) fn keep_side(
        &mut self,
        report: &Report,
        side: &str,
        trace: KeptTrace,
    ) -> Result<(), Failure> {
        let side = line(side);
        let workload = if self.named.is_empty() { side } else { format!("{}/{side}", self.named) };
        self.add(report, workload, trace)
    }

    fn add(&mut self, report: &Report, workload: String, trace: KeptTrace) -> Result<(), Failure> {
        let text = json::render(report).map_err(|error| Failure::Write {
            what: "the report",
            to: "JSON".into(),
            source: error.into(),
        })?;
        // Hours may have passed since the archive was opened.
        let origin = Origin { workload, time: origin::now(), ..self.origin.clone() };
        let kept = Kept { trace: trace.0, ..Kept::new(report, &text, &origin) };
        match self.archive.add(&kept) {
            Ok(added) => {
                if !self.quiet {
                    let id = &added.id[..8];
                    super::super::say(&format!(
                        "kept as {id} in {}: deadweight archive show {id}",
                        self.archive.address()
                    ));
                }
                Ok(())
            }
            Err(why) => Err(saved(&kept, why.to_string())),
        }
    }
}

/// Writes a run that could not be kept to a file in the current directory.
fn saved(kept: &Kept, why: String) -> Failure {
    let path = PathBuf::from(format!("deadweight-unkept-{}.json", &kept.tables.run.run[..8]));
    let line = kept.to_line().map_err(|error| Failure::Unknown(error.to_string()));
    let written =
        line.and_then(|line| Destination::open("the run", &path)?.write(&format!("{line}\n")));
    match written {
        Ok(()) => Failure::Unkept { why, path },
        Err(failure) => Failure::Unknown(format!("the run is not kept: {why}; {failure}")),
    }
}

/// The workload of a command: its words, without the folder of the program.
pub(super) fn workload(words: &[OsString]) -> String {
    let text = |word: &OsString| word.to_string_lossy().into_owned();
    let Some((program, rest)) = words.split_first() else { return String::new() };
    // A single word may be a line for the shell, which begins with a program too.
    let program = text(program);
    let (first, after) = match program.split_once(char::is_whitespace) {
        Some((first, after)) if rest.is_empty() => (first, Some(after.to_owned())),
        _ => (program.as_str(), None),
    };
    let plain = !first.contains(['=', '$', '(', '|', '<', '>', ';', '&', '\'', '"']);
    let base = Path::new(first).file_name().filter(|_| plain);
    let first = base.map_or(first.into(), |name| name.to_string_lossy());
    let words = std::iter::once(first.into_owned()).chain(after).chain(rest.iter().map(text));
    line(&words.collect::<Vec<_>>().join(" "))
}

/// A text in one line.
fn line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Another part of the time is another workload.
fn of_part(mut workload: String, view: &View) -> String {
    if let Some(of) = &view.of {
        workload.push_str(&format!(" --of {of}"));
    }
    if let Some(function) = &view.inside {
        workload.push_str(&format!(" --in {function}"));
    }
    workload
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workload_is_the_command_without_the_programs_folder() {
        let named =
            |words: &[&str]| workload(&words.iter().map(OsString::from).collect::<Vec<_>>());
        assert_eq!(named(&["./target/release/prog", "-x", "a b"]), "prog -x a b");
        assert_eq!(named(&["./prog < input | sort"]), "prog < input | sort");
        assert_eq!(named(&["LANG=C /bin/sort  f"]), "LANG=C /bin/sort f");
        assert_eq!(named(&["a\n  b"]), "a b");
        assert_eq!(named(&["..", "x"]), ".. x");
        assert_eq!(named(&[]), "");
    }
}
