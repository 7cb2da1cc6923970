//! `compare A B`: is B faster than A, by how much, and which row explains it.
//!
//! Sides are commands, which are run alternately, or existing reports and recordings; `benchmarks` reads
//! files of benchmark programs. Does no statistics; see `deadweight_report::compare`.

mod benchmarks;
mod sides;

use super::archive::{Keeper, KeptTrace};
use super::destination::Destination;
use super::gate::read_conditions;
use super::page;
use super::pictures::{PictureOutputs, pictured};
use super::recording;
use super::weighing::{self, Asked, weighed, weighed_traces};
use crate::cli::{Compare, Sort};
use crate::debuginfod::Debuginfod;
use crate::failure::{Failure, interrupted_exit_code};
use crate::recorder::Recorder;
use crate::render;
use crate::render::comparison::{self, Shown};
use crate::render::exports::markup::{self, Markup};
use crate::render::exports::{self, Timed};
use crate::render::html::comparison::Compared;
use crate::render::picture::Picture;
use crate::running::hooks::Hooks;
use crate::running::interleave::{
    InterleaveOptions, SideRuns, TraceWhen, can_interleave, interleave,
};
use crate::running::output::STDOUT;
use crate::running::series::{RunChanges, RunOptions};
use deadweight_core::weigh::timed as report_of_times;
use deadweight_record::RecordingSeries;
use deadweight_report::compare::{Comparison, Verdict, compare as weigh_up};
use deadweight_report::gate::{Condition, GateError, Reports};
use deadweight_report::report::Report;
use sides::Side;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// A report, and what drawings need of its run.
type Made = (Report, Option<Picture>);

/// Exit code when B is slower.
const SLOWER: u8 = 1;
/// Exit code when there are too few runs to tell.
const CANNOT_TELL: u8 = 3;

/// One side with its name.
struct Named {
    name: String,
    report: Report,
    /// What drawings need of its run, where they are wanted and it was traced.
    picture: Option<Picture>,
    /// Whether its runs alternated with those of the other sides.
    can_interleave: bool,
    /// How its output differs from the first side's.
    unlike: Option<String>,
    /// Of a command that was run: its recording, if that is to be kept.
    trace: Option<KeptTrace>,
    /// Whether the user interrupted its runs.
    interrupted: bool,
}

impl Named {
    fn compared(&self) -> Compared<'_> {
        Compared { name: &self.name, report: &self.report, picture: self.picture.as_ref() }
    }
}

pub(crate) fn compare(options: &Compare) -> Result<u8, Failure> {
    let options = &sides::usual(options);
    let wanted = sides::sides(options)?;
    if let Some(sides) = benchmarks::sides(options)? {
        refuse_run_options(options)?;
        refuse_keeping(options)?;
        return benchmarks::compare(options, &sides);
    }
    if let Some(option) = benchmarks::own_option(options) {
        return Err(Failure::Unknown(format!(
            "{option} is only for result files of benchmark programs, and no side is such a file"
        )));
    }
    if let [only] = &wanted[..] {
        return alone(options, only);
    }
    let conditions = read_conditions(&options.fail_if)?;
    must_name_sides(&conditions, &wanted)?;
    let rowed = conditions.iter().find(|(_, condition)| condition.needs_ledger());
    if let Some((text, _)) = rowed.filter(|_| options.no_why) {
        return Err(Failure::Unknown(format!(
            "`{text}` needs traced runs, and --no-why makes none"
        )));
    }
    let json = options.export_json.as_deref();
    let json = json.map(|path| Destination::open("the comparison", path)).transpose()?;
    let exports = Exports::open(options)?;
    let pictures = PictureOutputs::open_for_comparison(&options.pictures)?;
    let mut keeper = Keeper::open(&options.keep, options.quiet)?;
    let mut sides = weigh_all(options, &wanted, exports, keeper.as_ref())?;
    let kept = keep(keeper.as_mut(), &mut sides);
    let Some((a, others)) = sides.split_first() else {
        return Err(Failure::Unknown("give at least two sides to compare".into()));
    };
    let comparisons: Vec<Comparison> = others.iter().map(|b| against(a, b)).collect();
    if let Some(to) = json {
        let text = serde_json::to_string_pretty(&comparisons).map_err(|error| Failure::Write {
            what: "the comparison",
            to: "JSON".into(),
            source: error.into(),
        })?;
        to.write(&render::json::escaped(&text))?;
    }
    let compared: Vec<Compared<'_>> = sides.iter().map(Named::compared).collect();
    pictures.write_comparison(&compared, &comparisons)?;
    if !options.quiet {
        let page = page::page(&std::io::stdout(), &options.style);
        match crate::command::print(
            "the comparison",
            &comparison::render(&comparisons, page, shown(options)),
        ) {
            Err(failure) if failure.is_broken_pipe() => {}
            printed => printed?,
        }
    }
    kept?;
    if sides.iter().any(|side| side.interrupted) {
        return Ok(interrupted_exit_code());
    }
    judged(&conditions, &sides, &comparisons)
}

/// The exit code by the conditions, of which those that fail are printed; without any, by the verdicts.
fn judged(
    conditions: &[(&str, Condition)],
    sides: &[Named],
    comparisons: &[Comparison],
) -> Result<u8, Failure> {
    if conditions.is_empty() {
        return Ok(exit_code(comparisons));
    }
    let letters = letters(sides);
    let named = letters.iter().zip(sides).map(|(letter, side)| (letter.as_str(), &side.report));
    let given = sides.iter().map(|side| (side.name.as_str(), &side.report));
    let failing = failing(conditions, &given.chain(named).collect())?;
    failing.iter().for_each(|line| crate::command::say(line));
    // A gate must not pass because there are too few runs.
    let unsure = comparisons.iter().any(|c| c.verdict == Verdict::CannotTell);
    Ok(match (failing.is_empty(), unsure) {
        (false, _) => SLOWER,
        (true, true) => CANNOT_TELL,
        (true, false) => 0,
    })
}

/// Times a single command.
fn alone(options: &Compare, only: &Side) -> Result<u8, Failure> {
    let two = |why: &str| Failure::Unknown(format!("give at least two sides to compare: {why}"));
    if made_before(&only.words, options)?.is_some() {
        return Err(two("to print a single report, use `deadweight report`"));
    }
    let asked = options.export_json.is_some() || options.pictures.any();
    if asked || !options.fail_if.is_empty() || options.of.is_some() {
        return Err(two(
            "for a single command with --export-json, --html or --of, use `deadweight -r auto -- COMMAND`",
        ));
    }
    let exports = Exports::open(options)?;
    let shown = shown(options);
    let options = Compare { no_why: true, ..options.clone() };
    let mut keeper = Keeper::open(&options.keep, options.quiet)?;
    let mut named = weigh_all(&options, std::slice::from_ref(only), exports, keeper.as_ref())?;
    let kept = keep(keeper.as_mut(), &mut named);
    let page = page::page(&std::io::stdout(), &options.style);
    let interrupted = named.iter().any(|side| side.interrupted);
    let code = if interrupted { interrupted_exit_code() } else { 0 };
    let Some(side) = named.first().filter(|_| !options.quiet) else { return kept.map(|()| code) };
    match crate::command::print(
        "the time",
        &comparison::alone(&side.name, &side.report, page, shown.unit),
    ) {
        Err(failure) if !failure.is_broken_pipe() => Err(failure),
        _ => kept.map(|()| code),
    }
}

/// Keeps the reports of the commands that were run.
fn keep(keeper: Option<&mut Keeper>, sides: &mut [Named]) -> Result<(), Failure> {
    let Some(keeper) = keeper else { return Ok(()) };
    let mut outcome = Ok(());
    for side in sides {
        let Some(trace) = side.trace.take() else { continue };
        outcome = crate::command::both(outcome, keeper.keep_side(&side.report, &side.name, trace));
    }
    outcome
}

fn shown(options: &Compare) -> Shown {
    Shown {
        unit: options.hyperfine.time_unit,
        fastest_first: options.hyperfine.sort == Sort::MeanTime,
    }
}

fn letters<T>(sides: &[T]) -> Vec<String> {
    ('A'..='Z').map(String::from).take(sides.len()).collect()
}

/// Checks, before anything is measured, that conditions name existing sides.
fn must_name_sides(conditions: &[(&str, Condition)], wanted: &[Side]) -> Result<(), Failure> {
    let letters = letters(wanted);
    let known: Vec<&String> = letters.iter().chain(wanted.iter().map(|side| &side.name)).collect();
    for (text, condition) in conditions {
        if let Some(unit) = condition.benchmark_unit() {
            return Err(GateError::NoMetric(unit.to_owned()).into());
        }
        for name in condition.reports() {
            if !known.iter().any(|known| *known == name) {
                let known: Vec<&str> = known.iter().map(|name| name.as_str()).collect();
                return Err(Failure::Unknown(format!(
                    "no side is called `{name}` in `{text}`: there are {}",
                    known.join(", ")
                )));
            }
        }
    }
    Ok(())
}

/// A sentence for each condition that holds.
fn failing(
    conditions: &[(&str, Condition)],
    reports: &Reports<'_>,
) -> Result<Vec<String>, GateError> {
    let mut lines = Vec::new();
    for (text, condition) in conditions {
        let outcome = condition.evaluate(reports)?;
        if outcome.holds {
            lines.push(format!("deadweight: failed: {text} ({})", outcome.seen));
        }
    }
    Ok(lines)
}

fn against(a: &Named, b: &Named) -> Comparison {
    let paired = a.can_interleave && b.can_interleave;
    let mut found = weigh_up((&a.name, &a.report), (&b.name, &b.report), paired);
    found.unlike.splice(0..0, [a, b].into_iter().filter_map(|side| side.unlike.clone()));
    found
}

/// The exit code of the worst verdict.
fn exit_code(comparisons: &[Comparison]) -> u8 {
    let any = |verdict| comparisons.iter().any(|c| c.verdict == verdict);
    match (any(Verdict::Slower), any(Verdict::CannotTell)) {
        (true, _) => SLOWER,
        (_, true) => CANNOT_TELL,
        _ => 0,
    }
}

/// Refuses options for commands if no side is a command.
fn refuse_run_options(options: &Compare) -> Result<(), Failure> {
    let Some(option) = options.hyperfine.given() else { return Ok(()) };
    Err(Failure::Unknown(format!("{option} is only for commands, and no side is a command")))
}

/// Refuses to keep what was not measured now.
fn refuse_keeping(options: &Compare) -> Result<(), Failure> {
    if options.keep.keep.is_none() {
        return Ok(());
    }
    Err(Failure::Unknown(
        "--keep is only for commands, and no side is a command; files are kept with: deadweight archive add FILE"
            .into(),
    ))
}

/// Reads the reports and recordings, and runs the commands.
fn weigh_all(
    options: &Compare,
    wanted: &[Side],
    exports: Exports,
    keeper: Option<&Keeper>,
) -> Result<Vec<Named>, Failure> {
    let mut made: Vec<Option<Made>> =
        wanted.iter().map(|side| made_before(&side.words, options)).collect::<Result<_, _>>()?;
    let fresh: Vec<usize> = (0..made.len()).filter(|i| made[*i].is_none()).collect();
    if fresh.is_empty() {
        refuse_run_options(options)?;
        refuse_keeping(options)?;
    }
    let mut contenders = run(options, wanted, &fresh)?;
    exports.write(&timed(wanted, &fresh, &contenders))?;
    let differing = differing(wanted, &fresh, &contenders);
    let mut sides = Vec::new();
    let all_hooks: Vec<&Hooks> = fresh.iter().map(|at| &wanted[*at].hooks).collect();
    let turns = fresh.len() > 1 && can_interleave(&all_hooks);
    for (index, side) in wanted.iter().enumerate() {
        let can_interleave = fresh.contains(&index) && turns;
        let (mut trace, mut interrupted) = (None, false);
        let (report, picture) = match made[index].take() {
            Some(made) => made,
            None => {
                let ran = contenders.remove(0);
                interrupted = ran.interrupted;
                trace = keeper.map(|keeper| keeper.trace(&ran.ran.traces));
                report(&side.words, ran, options)?
            }
        };
        let differs = differing.iter().find(|(of, _)| *of == index);
        let unlike = differs.map(|(_, text)| text.clone());
        let name = side.name.clone();
        sides.push(Named { name, report, picture, can_interleave, unlike, trace, interrupted });
    }
    Ok(sides)
}

/// The report of a command that was run; it has no ledger if the command was not traced.
fn report(words: &OsString, side_runs: SideRuns, options: &Compare) -> Result<Made, Failure> {
    let mut ran = side_runs.ran;
    Debuginfod::new(options.debuginfod.no_debuginfod, options.quiet).complete(&mut ran.traces);
    if !ran.traces.is_empty() {
        let of = options.of.as_ref();
        let picture = pictured(&options.pictures, &ran.traces, of)?;
        return Ok((weighed(ran, Asked::of(of))?, picture));
    }
    let mut report = report_of_times(vec![lossy(words)], &ran.clean);
    report.hazards.extend(ran.hazards);
    Ok((report, None))
}

/// The times of the sides that were run, for other programs.
fn timed(wanted: &[Side], fresh: &[usize], ran: &[SideRuns]) -> Vec<Timed> {
    let one = |(at, side_runs): (&usize, &SideRuns)| {
        let side = &wanted[*at];
        Timed {
            command: lossy(&side.words),
            name: side.name.clone(),
            parameters: side.chosen.clone(),
            runs: side_runs.ran.clean.clone(),
        }
    };
    fresh.iter().zip(ran).map(one).collect()
}

fn lossy(side: &OsString) -> String {
    side.to_string_lossy().into_owned()
}

/// The report of a side that is a report or recording and not a command.
fn made_before(side: &OsString, options: &Compare) -> Result<Option<Made>, Failure> {
    let path = Path::new(side);
    let kind = path.extension().and_then(|e| e.to_str()).unwrap_or_default();
    if !["json", "dwt"].contains(&kind) {
        return Ok(None);
    }
    if !path.is_file() {
        // A command that ends in a file name has other words before it.
        if side.as_bytes().contains(&b' ') {
            return Ok(None);
        }
        let source = rustix::io::Errno::NOENT.into();
        return Err(Failure::Read { path: path.to_owned(), source });
    }
    let of = options.of.as_ref();
    let bytes = recording::bytes(path)?;
    if let Some(report) = weighing::made_before(&bytes, path) {
        return Ok(Some((report?, None)));
    }
    let mut trace = [recording::of(&bytes, path)?];
    Debuginfod::new(options.debuginfod.no_debuginfod, options.quiet).complete(&mut trace);
    Ok(Some((
        weighed_traces(&trace, &[], Asked::of(of))?,
        pictured(&options.pictures, &trace, of)?,
    )))
}

/// Runs the sides that are commands.
fn run(options: &Compare, wanted: &[Side], fresh: &[usize]) -> Result<Vec<SideRuns>, Failure> {
    if fresh.is_empty() {
        return Ok(Vec::new());
    }
    let commands: Vec<(RunOptions, Hooks)> = fresh
        .iter()
        .map(|i| {
            let options = RunOptions {
                argv: wanted[*i].argv(options)?,
                runs: options.runs,
                warmup: options.warmup,
                ignore: options.ignore_failure.clone().unwrap_or_default(),
                quiet: options.quiet,
                changes: RunChanges::default(),
            };
            Ok((options, wanted[*i].hooks.clone()))
        })
        .collect::<Result<_, Failure>>()?;
    let how = InterleaveOptions {
        input: options.hyperfine.input.clone(),
        outputs: fresh.iter().map(|at| wanted[*at].output.clone()).collect(),
        fewest: options.hyperfine.min_runs,
        most: options.hyperfine.max_runs,
        trace_when: trace_when(options, fresh.len() < wanted.len()),
        keeps_interrupted: true,
        ..InterleaveOptions::default()
    };
    // A user without permission to record can still compare times.
    let recorder = if options.no_why { None } else { Some(Recorder::ready()?) };
    let mut row = RecordingSeries::default();
    let ran = interleave(&commands, &how, &mut |request| match &recorder {
        Some(recorder) => recorder.record_in_series(&mut row, request),
        None => Err(Failure::Unknown("--no-why makes no traced runs".into())),
    });
    // The exit code is that of `compare`, not the shell's code for a missing command.
    ran.map_err(Failure::of_comparison)
}

/// Which sides are traced: those that differ, unless all ledgers are needed.
fn trace_when(options: &Compare, beside_reports: bool) -> TraceWhen {
    let read = options.export_json.is_some()
        || !options.fail_if.is_empty()
        || options.pictures.any()
        || options.keep.keep.is_some();
    match (options.no_why, read || beside_reports || options.of.is_some()) {
        (true, _) => TraceWhen::Never,
        (false, true) => TraceWhen::Always,
        (false, false) => TraceWhen::IfDifferent,
    }
}

/// Formats the times for a file.
type Form = fn(&[Timed], Shown) -> String;

/// Files for the times, opened before anything runs.
struct Exports(Vec<(Destination, Form)>, Shown);

impl Exports {
    fn open(options: &Compare) -> Result<Self, Failure> {
        let hyperfine = &options.hyperfine;
        let wanted: [(_, Form); 5] = [
            (&hyperfine.export_csv, |times, _| exports::csv(times)),
            (&hyperfine.export_markdown, |times, shown| {
                markup::table(times, Markup::Markdown, shown)
            }),
            (&hyperfine.export_asciidoc, |times, shown| {
                markup::table(times, Markup::AsciiDoc, shown)
            }),
            (&hyperfine.export_orgmode, |times, shown| markup::table(times, Markup::Org, shown)),
            (&hyperfine.export_hyperfine, |times, _| exports::hyperfine(times)),
        ];
        let given = wanted.into_iter().filter_map(|(path, form)| Some((path.as_ref()?, form)));
        let open = |(path, form): (&PathBuf, _)| Ok((Destination::open("the times", path)?, form));
        given.map(open).collect::<Result<_, _>>().map(|files| Self(files, shown(options)))
    }

    fn write(self, times: &[Timed]) -> Result<(), Failure> {
        self.0.into_iter().try_for_each(|(to, form)| to.write(&form(times, self.1)))
    }
}

/// Sides with another output than the first side: perhaps they do other work.
fn differing(wanted: &[Side], fresh: &[usize], ran: &[SideRuns]) -> Vec<(usize, String)> {
    let Some(first) = ran.first().and_then(|c| c.wrote) else { return Vec::new() };
    let unlike = |c: &SideRuns| c.wrote.is_some_and(|w| w.differs_from(first) == Some(STDOUT));
    fresh
        .iter()
        .zip(ran)
        .filter(|(_, side_runs)| unlike(side_runs))
        .map(|(index, _)| {
            let (a, b) = (&wanted[fresh[0]].name, &wanted[*index].name);
            (*index, format!("`{a}` and `{b}` write different output: do they do the same work?"))
        })
        .collect()
}
