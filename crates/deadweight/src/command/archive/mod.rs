//! `archive`: the verbs of the archive, and `--keep` of the others.
//!
//! Connects `deadweight-archive` with files and the terminal; the tables and both databases are there. Layout of text is
//! in `render::archive`.

mod add;
mod keep;
mod measured;
mod origin;
mod place;

use super::destination::Destination;
use super::page;
use crate::cli::{Archive, ArchiveExport, ArchiveList, ArchivePrune, ArchiveShow, ArchiveVerb};
use crate::failure::Failure;
use crate::render::{archive as render, comparison, json, terminal};
use deadweight_archive::{Filter, Policy};
use deadweight_report::report::Report;
use deadweight_report::tables::OURS;
use deadweight_report::wording::things;
pub(crate) use keep::{Keeper, KeptTrace};
pub(crate) use origin::{git, now};
pub(crate) use place::open_existing;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Exit code if something is wrong with the archive.
const DAMAGED: u8 = 1;
/// Runs that are listed for people.
const LISTED: u32 = 50;

pub(crate) fn archive(options: &Archive) -> Result<u8, Failure> {
    match &options.verb {
        ArchiveVerb::Add(options) => add::add(options).map(|()| 0),
        ArchiveVerb::List(options) => list(options).map(|()| 0),
        ArchiveVerb::Show(options) => show(options).map(|()| 0),
        ArchiveVerb::Export(options) => export(options).map(|()| 0),
        ArchiveVerb::Prune(options) => prune(options).map(|()| 0),
        ArchiveVerb::Check(options) => {
            let mut archive = place::open_existing(&options.place)?;
            let checked = archive.check()?;
            super::print(
                "the outcome",
                &render::checked(&archive.address().to_string(), &checked),
            )?;
            Ok(if checked.problems.is_empty() { 0 } else { DAMAGED })
        }
    }
}

fn list(options: &ArchiveList) -> Result<(), Failure> {
    let mut archive = place::open_existing(&options.place)?;
    let last = options.last.or((!options.json).then_some(LISTED));
    let filter =
        Filter { workload: options.workload.clone(), commit: options.commit.clone(), last };
    let runs = archive.list(&filter)?;
    if options.json {
        let text = serde_json::to_string_pretty(&runs).map_err(io::Error::from);
        let text = text.map_err(|source| unwritten("the list", "JSON", source))?;
        return super::print("the list", &json::escaped(&text));
    }
    let page = page::page(&io::stdout(), &options.style);
    let cut = options.last.is_none() && runs.len() as u64 == u64::from(LISTED);
    super::print("the list", &render::list(&runs, cut, page))
}

fn show(options: &ArchiveShow) -> Result<(), Failure> {
    let mut archive = place::open_existing(&options.place)?;
    let kept = archive.get(&options.id)?;
    if let Some(path) = &options.trace {
        let Some(trace) = archive.trace(&kept.tables.run.run)? else {
            return Err(Failure::Unknown(format!(
                "the recording of {} was not kept: --keep-trace keeps it",
                render::short(&kept.tables.run.run, render::ID)
            )));
        };
        return Destination::open("the recording", path)?.write_bytes(&trace);
    }
    let text = String::from_utf8_lossy(&kept.report_json);
    let unreadable = |why: String| {
        Failure::Unknown(format!("the report of {} cannot be read: {why}", kept.tables.run.run))
    };
    let report: Report =
        serde_json::from_str(&text).map_err(|error| unreadable(error.to_string()))?;
    if options.json {
        // With what a later version wrote; then indented as by `--export-json`.
        let value: serde_json::Value =
            serde_json::from_str(&text).map_err(|error| unreadable(error.to_string()))?;
        let known = json::render(&report).map_err(|error| unreadable(error.to_string()))?;
        let same =
            serde_json::from_str::<serde_json::Value>(&known).is_ok_and(|known| known == value);
        let text = if same { known } else { json::escaped(&format!("{value:#}")) };
        return super::print("the report", &text);
    }
    let page = page::page(&io::stdout(), &options.style);
    let head = render::origin(&kept.tables.run, page);
    let ours = ["", OURS].contains(&kept.tables.run.kind.as_str());
    let body = if !ours {
        render::figures(&kept.tables.counts, page)
    } else if report.ledger.is_empty() {
        comparison::alone(&kept.tables.run.workload, &report, page, None)
    } else {
        let here = std::env::current_dir().unwrap_or_default();
        let shown = terminal::Shown {
            verbose: options.verbose,
            cpu: options.cpu,
            top: options.top.map_or(0, usize::from),
            here: here.to_string_lossy().into_owned(),
        };
        terminal::render(&report, &shown, page)
    };
    super::print("the report", &format!("{head}{body}"))
}

fn export(options: &ArchiveExport) -> Result<(), Failure> {
    let mut archive = place::open_existing(&options.place)?;
    let to = options.output.display().to_string();
    let mut out: Box<dyn Write> = if options.output == Path::new("-") {
        Box::new(io::stdout().lock())
    } else {
        Box::new(Destination::open("the export", &options.output)?.into_file()?)
    };
    let mut out = BufWriter::new(&mut out);
    let failed = |source| unwritten("the export", &to, source);
    let mut written = 0;
    let damaged = archive.export(options.traces, |line: &str| {
        written += 1;
        writeln!(out, "{line}").map_err(failed)
    })?;
    out.flush().map_err(failed)?;
    let mut texts: Vec<String> = damaged.iter().map(ToString::to_string).collect();
    texts.dedup();
    texts.iter().for_each(|text| super::say(&format!("deadweight: {text}")));
    match damaged.len() as u64 {
        0 => Ok(()),
        parts => Err(Failure::Unknown(format!(
            "{} of the archive could not be read; {} could, and the export has them",
            things(parts, "damaged part"),
            things(written, "run")
        ))),
    }
}

fn prune(options: &ArchivePrune) -> Result<(), Failure> {
    let mut archive = place::open_existing(&options.place)?;
    let policy = Policy {
        before: options.older_than.map(|age| origin::now() - age.0),
        keep_last: options.keep_last,
        workload: options.workload.clone(),
        dry_run: options.dry_run,
    };
    let pruned = archive.prune(&policy)?;
    let number = pruned.runs.len();
    let runs = if number == 1 { "run" } else { "runs" };
    let text = match options.dry_run {
        true => {
            let ids: String = pruned.runs.iter().map(|id| format!("{id}\n")).collect();
            format!("{ids}{number} {runs} would be removed\n")
        }
        false => format!("removed {number} {runs}\n"),
    };
    super::print("the outcome", &text)
}

fn unwritten(what: &'static str, to: &str, source: io::Error) -> Failure {
    Failure::Write { what, to: to.to_owned(), source }
}
