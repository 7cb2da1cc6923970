//! `archive add`: files into the archive.
//!
//! A file's content decides what it is. Recordings are read by a thread that can do nothing else.

use super::super::report::{confined, reading};
use super::super::result_files::results;
use super::super::weighing::{Asked, weighed_traces};
use super::super::{recording, say};
use super::{keep, measured, origin, place};
use crate::cli::ArchiveAdd;
use crate::failure::Failure;
use crate::render::json;
use deadweight_archive::{Archive, Kept};
use deadweight_report::benchmarks::encoding;
use deadweight_report::report::Report;
use deadweight_report::tables::Origin;
use deadweight_report::wording::things;
use std::ffi::OsString;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

/// Runs of an export that are added at once.
const AT_ONCE: usize = 200;
/// How much of a file shows what it is.
const BEGINNING: u64 = 64;

/// What was added.
#[derive(Default)]
struct Tally {
    new: usize,
    known: usize,
}

pub(super) fn add(options: &ArchiveAdd) -> Result<(), Failure> {
    let mut archive = place::open(&options.place)?;
    let here = origin::here(options.commit.as_deref());
    let mut tally = Tally::default();
    let mut outcome = Ok(());
    for path in &options.files {
        let Err(failure) = add_file(path, &here, options, &mut archive, &mut tally) else {
            continue;
        };
        let of_archive = matches!(failure, Failure::Archive(_));
        // The other files are whole: the first failure is the outcome, later ones are said here.
        match outcome {
            Ok(()) => outcome = Err(failure),
            Err(_) => say(&format!("deadweight: {failure}")),
        }
        if of_archive {
            break;
        }
    }
    if !options.quiet {
        let known = match tally.known {
            0 => String::new(),
            1 => "; 1 was there already".to_owned(),
            known => format!("; {known} were there already"),
        };
        let new = things(tally.new as u64, "run");
        let text = format!("added {new} to {}{known}\n", archive.address());
        super::super::print("the outcome", &text)?;
    }
    outcome
}

/// Adds the runs of a file; of `-` those of the export on standard input.
fn add_file(
    path: &Path,
    here: &Origin,
    options: &ArchiveAdd,
    archive: &mut Archive,
    tally: &mut Tally,
) -> Result<(), Failure> {
    if path == Path::new("-") {
        let input = BufReader::new(std::io::stdin());
        return add_export(input, Path::new("standard input"), archive, tally);
    }
    if is_export(path)? {
        if options.workload.is_some() || options.commit.is_some() {
            say(&format!(
                "deadweight: {} is an export: its runs keep their own workloads and commits",
                path.display()
            ));
        }
        let failed = |source| Failure::Read { path: path.to_owned(), source };
        return add_export(BufReader::new(File::open(path).map_err(failed)?), path, archive, tally);
    }
    let kept = read(path, &of_file(path, here, options), options)?;
    store(archive, &kept, tally)
}

fn store(archive: &mut Archive, kept: &[Kept], tally: &mut Tally) -> Result<(), Failure> {
    for added in archive.add_all(kept)? {
        tally.new += usize::from(added.new);
        tally.known += usize::from(!added.new);
    }
    Ok(())
}

/// The origin of a file: measured when it was last written.
fn of_file(path: &Path, here: &Origin, options: &ArchiveAdd) -> Origin {
    let written = path.metadata().and_then(|meta| meta.modified()).map(origin::seconds);
    let time = written.unwrap_or(here.time);
    let mut origin = Origin { time, source: path.display().to_string(), ..here.clone() };
    if options.commit.is_none() && origin.commit_time > time {
        say(&format!(
            "deadweight: {} is older than the commit that is checked out, so it is kept without a commit; name one \
             with --commit",
            path.display()
        ));
        origin = Origin { time, kind: origin.kind, source: origin.source, ..Origin::default() };
    }
    origin
}

/// The runs in a file.
fn read(path: &Path, origin: &Origin, options: &ArchiveAdd) -> Result<Vec<Kept>, Failure> {
    if let Some(found) = results(path)? {
        let named = options.workload.as_deref();
        let (runs, left_out) = measured::runs(&found, origin, named, options.commit.is_some());
        let remarks = found.remarks.iter().chain(&left_out);
        remarks.for_each(|remark| say(&format!("deadweight: {}: {remark}", path.display())));
        return Ok(runs);
    }
    let bytes = recording::bytes(path)?;
    let (report, text, trace) = confined(&reading(path, bytes.len()), false, || {
        if begins(&bytes, "{") {
            let text = encoding::text(&bytes);
            let not =
                |why: String| Failure::Unknown(format!("{} is no report: {why}", path.display()));
            return Ok((Report::from_json(&text).map_err(not)?, text, None));
        }
        let trace = recording::of(&bytes, path)?;
        let report = weighed_traces(std::slice::from_ref(&trace), &[], Asked::default())?;
        let text = json::render(&report).map_err(|error| Failure::Unknown(error.to_string()))?;
        Ok((report, text, options.keep_trace.then(|| bytes.clone())))
    })?;
    if report.runs.traced.lost > 0 {
        let lost = things(report.runs.traced.lost, "record");
        say(&format!(
            "deadweight: {}: {lost} of it were lost, so its rows are not whole; it is kept all the same",
            path.display()
        ));
    }
    let words: Vec<OsString> = report.command.iter().map(OsString::from).collect();
    let workload = options.workload.clone().unwrap_or_else(|| match keep::workload(&words) {
        none if none.is_empty() => report.subject.name.clone(),
        workload => workload,
    });
    let origin = Origin { workload, ..origin.clone() };
    Ok(vec![Kept { trace, ..Kept::new(&report, &text, &origin) }])
}

/// Whether the text begins so, in any encoding.
fn begins(bytes: &[u8], with: &str) -> bool {
    let beginning = &bytes[..bytes.len().min(usize::try_from(BEGINNING).unwrap_or(0))];
    encoding::text(beginning).trim_start().starts_with(with)
}

/// Whether a file is an export.
fn is_export(path: &Path) -> Result<bool, Failure> {
    let failed = |source| Failure::Read { path: path.to_owned(), source };
    // A pipe could be read only once; a directory is criterion's.
    let meta = path.metadata().map_err(failed)?;
    if !meta.is_file() {
        return Ok(false);
    }
    let mut beginning = Vec::new();
    let file = File::open(path).map_err(failed)?;
    file.take(BEGINNING).read_to_end(&mut beginning).map_err(failed)?;
    Ok(Kept::is_line(&String::from_utf8_lossy(&beginning)))
}

/// Adds an export, some runs at a time: if a line is damaged, those before it are kept.
fn add_export(
    input: impl BufRead,
    path: &Path,
    archive: &mut Archive,
    tally: &mut Tally,
) -> Result<(), Failure> {
    let failed = |source| Failure::Read { path: path.to_owned(), source };
    let mut waiting = Vec::new();
    let mut damaged = Ok(());
    for (line, number) in input.lines().zip(1_u64..) {
        let line = line.map_err(failed)?;
        match Kept::from_line(&line) {
            Ok(kept) => waiting.push(kept),
            Err(error) => {
                let text = format!("line {number} of {}: {error}", path.display());
                damaged = Err(Failure::Unknown(text));
                break;
            }
        }
        if waiting.len() == AT_ONCE {
            store(archive, &waiting, tally)?;
            waiting.clear();
        }
    }
    store(archive, &waiting, tally)?;
    damaged
}
