//! `history`: how a workload changed from commit to commit.
//!
//! Reads the archive; what changed is found by `deadweight_report::history`, and laid out by `render::history`.

mod bisect;
mod order;

use super::archive::{now, open_existing};
use super::destination::Destination;
use super::page;
use crate::cli::{History as Options, Since};
use crate::failure::Failure;
use crate::render::history::{self as render, Shown};
use crate::render::html::history as html;
use crate::render::json;
use deadweight_archive::{Archive, Point, Series};
use deadweight_report::account::AccountId;
use deadweight_report::history::{History, Run, Summary, history as of_runs};
use deadweight_report::wording::{nearest, things};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::mem::ManuallyDrop;

/// Commits in a table for people.
const LISTED: usize = 30;
/// Commits in a page: with 2000 it is a few hundred KB.
const PAGED: usize = 2000;

pub(crate) fn history(options: &Options) -> Result<u8, Failure> {
    let mut archive = open_existing(&options.place)?;
    let Some(workload) = &options.workload else { return list(&mut archive, options).map(|()| 0) };
    let mut series = archive.series(workload)?;
    if series.points.is_empty() {
        return Err(unknown(&mut archive, workload)?);
    }
    if series.ended_otherwise > 0 {
        let runs = things(series.ended_otherwise as u64, "run");
        super::say(&format!(
            "deadweight: {runs} left out: they ended otherwise than most, with another exit code or by a signal"
        ));
    }
    if let Some(branch) = &options.branch {
        series = of_branch(series, workload, branch)?;
    }
    // The process ends after this: to free the runs one by one would take a tenth of its time.
    let series = ManuallyDrop::new(series);
    let history = of_machine(&series, workload, options.machine)?;
    if options.bisect {
        let text = bisect::lines(&history, &mut archive, options)?;
        return super::print("the commands", &text).map(|()| 0);
    }
    let row = options.row.as_deref().map(|word| account(&history, word)).transpose()?;
    let chosen = options.since.is_some() || options.last.is_some();
    let history = selected(history, options)?;
    if options.json {
        return print_json(&history).map(|()| 0);
    }
    if let Some(path) = &options.html {
        let destination = Destination::open("the page", path)?;
        let first = history.points.len().saturating_sub(PAGED);
        return destination.write(&html::render(&history.since(first))).map(|()| 0);
    }
    let history = ManuallyDrop::new(history);
    let shown = Shown { row: row.as_deref(), last: if chosen { 0 } else { LISTED } };
    let page = page::page(&io::stdout(), &options.style);
    super::print("the history", &render::render(&history, shown, page)).map(|()| 0)
}

/// All workloads.
fn list(archive: &mut Archive, options: &Options) -> Result<(), Failure> {
    let mut found = Vec::new();
    for workload in archive.workloads()? {
        let series = archive.series(&workload.name)?;
        let history = of_runs(&workload.name, &runs(&series), 1);
        // A workload of which every run failed has no history.
        found.extend(history.map(|history| history.summary()));
    }
    if options.json {
        return print_json(&found);
    }
    if found.is_empty() {
        return Err(Failure::Unknown(format!(
            "there is no history: no run is kept in {}; keep some with: deadweight --keep -r 10 -- COMMAND",
            archive.address()
        )));
    }
    let page = page::page(&io::stdout(), &options.style);
    found.sort_by(|a: &Summary, b| b.moment.cmp(&a.moment).then(a.workload.cmp(&b.workload)));
    super::print("the list", &render::list(&found, page))
}

/// The runs of a branch.
fn of_branch(mut series: Series, workload: &str, branch: &str) -> Result<Series, Failure> {
    if series.points.iter().any(|point| point.branch == branch) {
        series.points.retain(|point| point.branch == branch);
        return Ok(series);
    }
    let names: BTreeSet<&str> = series.points.iter().map(|point| point.branch.as_str()).collect();
    let names: Vec<&str> = names.into_iter().filter(|name| !name.is_empty()).collect();
    let todo = match nearest(branch, names.iter().copied()) {
        Some(near) => format!("did you mean --branch '{near}'?"),
        None if names.is_empty() => "its runs were kept outside of branches".to_owned(),
        None => format!("there are runs of: {}", names.join(", ")),
    };
    let what = format!("no run of `{workload}` was measured on the branch `{branch}`");
    Err(Failure::Unknown(format!("{what}; {todo}")))
}

/// The history on a machine.
fn of_machine(series: &Series, workload: &str, machine: usize) -> Result<History, Failure> {
    let runs = runs(series);
    of_runs(workload, &runs, machine).ok_or_else(|| {
        let count = of_runs(workload, &runs, 1).map_or(0, |history| history.machines.len());
        let machines = if count == 1 { "machine has" } else { "machines have" };
        Failure::Unknown(format!(
            "there is no machine {machine}: {count} {machines} measured `{workload}`; number 1 is the one that measured last"
        ))
    })
}

/// The runs of a series as what `deadweight_report` reads.
fn runs(series: &Series) -> Vec<Run<'_>> {
    let places = order::places(series);
    series.points.iter().map(|point| run(point, &places)).collect()
}

fn run<'p>(point: &'p Point, places: &BTreeMap<String, u32>) -> Run<'p> {
    Run {
        commit: &point.commit,
        commit_time: point.commit_time,
        place: places.get(&point.commit).copied().unwrap_or(0),
        branch: &point.branch,
        dirty: point.dirty,
        time: point.time,
        machine: &point.machine,
        method: point.method,
        ns: point.ns,
        clean_runs: point.clean_runs,
        interval: point.interval,
        clean_each: &point.clean_each,
        rows: point.rows().collect(),
    }
}

/// The commits that the options select. Changes were found with all of them.
fn selected(history: History, options: &Options) -> Result<History, Failure> {
    let moment = match options.since {
        None => i64::MIN,
        Some(Since::Moment(moment)) => moment,
        Some(Since::Ago(seconds)) => now() - seconds,
    };
    let count = history.points.len();
    let last = options.last.map_or(count, |last| usize::try_from(last).unwrap_or(count));
    let since = history.points.iter().position(|point| point.moment >= moment);
    let Some(since) = since else {
        let newest = history.points.last().map(|point| render::day(point.moment));
        return Err(Failure::Unknown(format!(
            "no commit of `{}` is that new: the last one is of {}; give an earlier date with --since",
            history.workload,
            newest.unwrap_or_default()
        )));
    };
    Ok(history.since(since.max(count.saturating_sub(last))))
}

/// The account that a word means.
fn account(history: &History, word: &str) -> Result<String, Failure> {
    if let Some(account) = history.account(word) {
        return Ok(account.to_owned());
    }
    let names = history.rows.iter().flat_map(|row| [row.account.as_str(), row.name.as_str()]);
    let todo = match (nearest(word, names), history.rows.is_empty()) {
        (Some(near), _) => format!("did you mean --row '{near}'?"),
        (None, true) => "its runs have no ledger, only times".to_owned(),
        (None, false) => {
            let names: Vec<&str> = history.rows.iter().map(|row| row.name.as_str()).collect();
            format!("it has: {}", names.join(", "))
        }
    };
    let exists = AccountId::all().any(|account| account.id() == word || account.name() == word);
    let what = if exists { "it never took time in" } else { "no row has this name in" };
    Err(Failure::Unknown(format!(
        "there is no history of the row `{word}`: {what} `{}`; {todo}",
        history.workload
    )))
}

/// Why a workload has no history.
fn unknown(archive: &mut Archive, workload: &str) -> Result<Failure, Failure> {
    let known = archive.workloads()?;
    let names = || known.iter().map(|workload| workload.name.as_str());
    let why = match (names().any(|name| name == workload), known.is_empty()) {
        (true, _) => "all of its runs failed; deadweight archive list shows them".to_owned(),
        (false, true) => format!(
            "nothing is kept in {}; keep runs with: deadweight --keep -r 10 -- COMMAND",
            archive.address()
        ),
        (false, false) => {
            let inside = names().find(|name| name.contains(workload));
            match nearest(workload, names()).or(inside) {
                Some(near) => {
                    format!("no run of it is kept; did you mean: deadweight history '{near}'?")
                }
                None => "no run of it is kept; deadweight history lists what is".to_owned(),
            }
        }
    };
    Ok(Failure::Unknown(format!("there is no history of `{workload}`: {why}")))
}

fn print_json(value: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value).map_err(|error| Failure::Write {
        what: "the history",
        to: "JSON".into(),
        source: error.into(),
    })?;
    super::print("the history", &json::escaped(&text))
}
