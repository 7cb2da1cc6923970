//! `history --bisect`: which commits a change may be at, as git knows them.

use super::super::archive::git;
use crate::cli::History as Options;
use crate::failure::Failure;
use crate::render::archive::{COMMIT, short};
use crate::render::history::bisection::{self, Bisection, ends};
use crate::render::page::printable;
use deadweight_archive::{Archive, Filter};
use deadweight_report::change_points::events::Kind;
use deadweight_report::history::{Change, History};
use std::path::Path;

/// What builds a program, by a file at the top of its repository.
const BUILDS: [(&str, &str); 5] = [
    ("Cargo.toml", "cargo build --release"),
    ("go.mod", "go build ./..."),
    ("build.zig", "zig build -Doptimize=ReleaseFast"),
    ("Makefile", "make"),
    ("CMakeLists.txt", "cmake --build build"),
];

/// The commands.
pub(super) fn lines(
    history: &History,
    archive: &mut Archive,
    options: &Options,
) -> Result<String, Failure> {
    let change = chosen(history, options.at.as_deref())?;
    let workload = &history.workload;
    let (good, bad) = ends(history, change).ok_or_else(|| {
        Failure::Unknown(format!(
            "the change in `{workload}` cannot be bisected: the runs before or after it were kept without a commit; keep \
             runs in the repository, or with --commit"
        ))
    })?;
    let filter = Filter { workload: Some(workload.clone()), last: Some(1), ..Filter::default() };
    let run = archive.list(&filter)?.into_iter().next();
    if let Some(run) = run.iter().find(|run| OF_BENCHMARKS.contains(&run.kind.as_str())) {
        return Err(Failure::Unknown(format!(
            "the change in `{workload}` cannot be bisected by deadweight: it is a benchmark in a file of results ({}), which \
             has no command; keep runs of its command: deadweight --keep -- COMMAND",
            run.kind
        )));
    }
    let command = run.map(|run| run.command).unwrap_or_default();
    let words = shell_words::split(&command).unwrap_or_else(|_| vec![command]);
    let commits = between(good, bad)?;
    // Of another repository nothing is to be concluded.
    let top = commits.and_then(|_| git(&["rev-parse", "--show-toplevel"])).unwrap_or_default();
    let top = top.trim_end();
    let by_file = BUILDS.iter().find(|(file, _)| Path::new(top).join(file).is_file());
    let build = options.build.as_deref().or(by_file.map(|(_, build)| *build)).unwrap_or("make");
    let found = Bisection {
        good,
        bad,
        commits,
        command: words.iter().map(|word| printable(word)).collect(),
        build,
        top,
    };
    Ok(bisection::render(history, change, &found))
}

/// Kinds of files whose results have the name of a benchmark, and no command.
const OF_BENCHMARKS: [&str; 3] = ["go", "google-benchmark", "criterion"];

/// The change to bisect.
fn chosen<'h>(history: &'h History, at: Option<&str>) -> Result<&'h Change, Failure> {
    let workload = &history.workload;
    let show = format!("deadweight history '{workload}' shows what is known");
    let Some(at) = at else {
        let slower = history.events.iter().rev().find(|change| change.event.kind == Kind::Slower);
        return slower.ok_or_else(|| {
            let todo = match history.events.last() {
                Some(last) => format!(
                    "--at {} takes the last change of another kind",
                    short(&last.commit, COMMIT)
                ),
                None => show.clone(),
            };
            let why = "no slowdown was found, so there is nothing to bisect";
            Failure::Unknown(format!("`{workload}`: {why}; {todo}"))
        });
    };
    let named = |change: &&Change| !at.is_empty() && change.commit.starts_with(at);
    history.events.iter().rev().find(named).ok_or_else(|| {
        Failure::Unknown(format!("`{workload}`: no change was found at the commit {at}; {show}"))
    })
}

/// How many commits may be it.
fn between(good: &str, bad: &str) -> Result<Option<u64>, Failure> {
    let known = |commit: &str| {
        git(&["cat-file", "-e", "--end-of-options", &format!("{commit}^{{commit}}")]).is_some()
    };
    if !known(good) || !known(bad) {
        // Another repository, or a clone without its past.
        return Ok(None);
    }
    let is_before = |a, b| git(&["merge-base", "--is-ancestor", a, b]).is_some();
    if is_before(bad, good) {
        return Err(Failure::Unknown(format!(
            "the change cannot be bisected: by the times of the commits {good} is before {bad}, and for git it is after it; \
             keep runs of the commits between them"
        )));
    }
    if !is_before(good, bad) {
        return Err(Failure::Unknown(format!(
            "the change cannot be bisected: {good} is no ancestor of {bad}, so the two runs are of different branches; \
             keep runs of one branch"
        )));
    }
    let count = git(&["rev-list", "--count", &format!("{good}..{bad}")]);
    Ok(count.and_then(|text| text.trim().parse().ok()))
}
