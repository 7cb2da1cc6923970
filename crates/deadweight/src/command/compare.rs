//! `compare A B`: is B faster than A, by how much, and which row explains it.
//!
//! Sides are commands, run here by turns, or reports and recordings made before; files of benchmark
//! programs are handed to `benchmarks`. Not for judging: that is `deadweight_core::compare`.

use super::destination::Destination;
use super::gate::read_conditions;
use super::run::weighed;
use super::{benchmarks, page, recording};
use crate::cli::Compare;
use crate::failure::Failure;
use crate::recorder::Recorder;
use crate::render::comparison;
use crate::running::interleave::{Contender, interleave};
use crate::running::output::STDOUT;
use crate::running::program;
use crate::running::repeat::Wish;
use deadweight_core::compare::{Comparison, Verdict, compare as weigh_up};
use deadweight_core::gate::{Condition, GateError, Reports};
use deadweight_core::report::{Report, SCHEMA};
use deadweight_core::weigh::{Weighing, weigh};
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Exit code when B is slower.
pub(super) const SLOWER: u8 = 1;
/// Exit code when too little is known.
pub(super) const CANNOT_TELL: u8 = 3;

/// One side with its name.
struct Named {
    name: String,
    report: Report,
    /// Whether its runs were made by turns with the others.
    by_turns: bool,
    /// What tempers the comparison.
    warnings: Vec<String>,
}

pub(crate) fn compare(wish: &Compare) -> Result<u8, Failure> {
    if let Some(name) = wish.names.get(wish.sides.len()) {
        return Err(Failure::Unknown(format!(
            "there are more names than sides to compare: nothing is left for `{name}`"
        )));
    }
    if let Some(sides) = benchmarks::sides(wish)? {
        return benchmarks::compare(wish, &sides);
    }
    if let Some(option) = benchmarks::own_option(wish) {
        return Err(Failure::Unknown(format!(
            "{option} is for results of benchmark programs, and none of the sides is a file of them"
        )));
    }
    if wish.sides.len() < 2 {
        return Err(Failure::Unknown("give at least two sides to compare".into()));
    }
    let conditions = read_conditions(&wish.fail_if)?;
    must_name_sides(&conditions, wish)?;
    let json = wish.export_json.as_deref();
    let json = json.map(|path| Destination::open("the comparison", path)).transpose()?;
    let sides = sides(wish)?;
    let Some((a, others)) = sides.split_first() else {
        return Err(Failure::Unknown("give at least two sides to compare".into()));
    };
    let comparisons: Vec<Comparison> = others.iter().map(|b| against(a, b)).collect();
    if let Some(json) = json {
        let text = serde_json::to_string_pretty(&comparisons).map_err(|error| Failure::Write {
            what: "the comparison",
            to: "JSON".into(),
            source: error.into(),
        })?;
        json.write(&(text + "\n"))?;
    }
    if !wish.quiet {
        let page = page::page(&std::io::stdout(), &wish.style);
        match super::print("the comparison", &comparison::render(&comparisons, page)) {
            Err(failure) if failure.is_broken_pipe() => {}
            printed => printed?,
        }
    }
    if conditions.is_empty() {
        return Ok(exit_code(&comparisons));
    }
    let letters = letters(&sides);
    let named = letters.iter().zip(&sides).map(|(letter, side)| (letter.as_str(), &side.report));
    let given = wish.names.iter().zip(&sides).map(|(name, side)| (name.as_str(), &side.report));
    let failing = failing(&conditions, &given.chain(named).collect())?;
    failing.iter().for_each(|line| super::say(line));
    // Too few runs tell nothing, and a gate must not pass because of that.
    let unsure = comparisons.iter().any(|c| c.verdict == Verdict::CannotTell);
    Ok(match (failing.is_empty(), unsure) {
        (false, _) => SLOWER,
        (true, true) => CANNOT_TELL,
        (true, false) => 0,
    })
}

fn letters<T>(sides: &[T]) -> Vec<String> {
    ('A'..='Z').map(String::from).take(sides.len()).collect()
}

/// Asked before anything is measured: a condition on a side that there is none of is a mistake.
fn must_name_sides(conditions: &[(&str, Condition)], wish: &Compare) -> Result<(), Failure> {
    let letters = letters(&wish.sides);
    let known: Vec<&String> = letters.iter().chain(&wish.names).collect();
    for (text, condition) in conditions {
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

/// The conditions that hold, in words.
fn failing(
    conditions: &[(&str, Condition)],
    reports: &Reports<'_>,
) -> Result<Vec<String>, GateError> {
    let mut lines = Vec::new();
    for (text, condition) in conditions {
        let outcome = condition.ask(reports)?;
        if outcome.holds {
            lines.push(format!("deadweight: failed, for {text} ({})", outcome.seen));
        }
    }
    Ok(lines)
}

fn against(a: &Named, b: &Named) -> Comparison {
    let paired = a.by_turns && b.by_turns;
    let mut found = weigh_up((&a.name, &a.report), (&b.name, &b.report), paired);
    found.warnings.splice(0..0, [a, b].into_iter().flat_map(|side| side.warnings.clone()));
    found
}

/// The worst that can be said of any of them.
fn exit_code(comparisons: &[Comparison]) -> u8 {
    let any = |verdict| comparisons.iter().any(|c| c.verdict == verdict);
    match (any(Verdict::Slower), any(Verdict::CannotTell)) {
        (true, _) => SLOWER,
        (_, true) => CANNOT_TELL,
        _ => 0,
    }
}

/// Reads what was made before, and runs the rest.
fn sides(wish: &Compare) -> Result<Vec<Named>, Failure> {
    let names: Vec<String> = wish
        .sides
        .iter()
        .enumerate()
        .map(|(i, side)| wish.names.get(i).cloned().unwrap_or_else(|| lossy(side)))
        .collect();
    let mut made: Vec<Option<Report>> =
        wish.sides.iter().map(|side| made_before(side, wish)).collect::<Result<_, _>>()?;
    let fresh: Vec<usize> = (0..made.len()).filter(|i| made[*i].is_none()).collect();
    let mut contenders = run(wish, &fresh)?;
    let differing = differing(&names, &fresh, &contenders);
    let mut sides = Vec::new();
    for (index, name) in names.into_iter().enumerate() {
        let by_turns = fresh.contains(&index) && fresh.len() > 1;
        let report = match made[index].take() {
            Some(report) => report,
            None => weighed(contenders.remove(0).ran, wish.of.as_ref(), None)?,
        };
        let differs = differing.iter().find(|(of, _)| *of == index);
        let warnings = differs.map(|(_, text)| text.clone()).into_iter().collect();
        sides.push(Named { name, report, by_turns, warnings });
    }
    Ok(sides)
}

pub(super) fn lossy(side: &OsString) -> String {
    side.to_string_lossy().into_owned()
}

/// A report or recording, if the side is one rather than a command.
fn made_before(side: &OsString, wish: &Compare) -> Result<Option<Report>, Failure> {
    let path = Path::new(side);
    let kind = path.extension().and_then(|e| e.to_str()).unwrap_or_default();
    if !["json", "dwt"].contains(&kind) {
        return Ok(None);
    }
    if !path.is_file() {
        // A command that ends in the name of a file has other words before it.
        if side.as_bytes().contains(&b' ') {
            return Ok(None);
        }
        let source = std::io::ErrorKind::NotFound.into();
        return Err(Failure::Read { path: path.to_owned(), source });
    }
    let of = wish.of.as_ref().map(ToString::to_string);
    report_of(path, of.as_deref()).map(Some)
}

/// The report in a file, or of the recording in it.
pub(super) fn report_of(path: &Path, of: Option<&str>) -> Result<Report, Failure> {
    if path.extension().is_some_and(|e| e == "dwt") {
        let trace = recording::read(path)?;
        let traces = std::slice::from_ref(&trace);
        return Ok(weigh(&Weighing { traces, clean: &[], of, inside: None })?);
    }
    let text = std::fs::read_to_string(path)
        .map_err(|source| Failure::Read { path: path.to_owned(), source })?;
    let not = |why: String| Failure::Unknown(format!("{} is no report: {why}", path.display()));
    let report: Report = serde_json::from_str(&text).map_err(|error| not(error.to_string()))?;
    if report.schema != SCHEMA {
        return Err(not(format!("its schema is {}, not {SCHEMA}", report.schema)));
    }
    let sum: u128 = report.ledger.iter().map(|row| u128::from(row.ns)).sum();
    if sum != u128::from(report.wall_ns) || sum == 0 {
        return Err(not(format!(
            "its rows add up to {sum} ns, its wall time is {}",
            report.wall_ns
        )));
    }
    Ok(report)
}

/// Runs the sides that are commands.
fn run(wish: &Compare, fresh: &[usize]) -> Result<Vec<Contender>, Failure> {
    if fresh.is_empty() {
        return Ok(Vec::new());
    }
    let recorder = Recorder::ready()?;
    let wishes: Vec<Wish> = fresh
        .iter()
        .map(|i| Wish {
            argv: program::argv(std::slice::from_ref(&wish.sides[*i])),
            runs: wish.runs,
            warmup: wish.warmup,
            ignore_failure: wish.ignore_failure,
            quiet: wish.quiet,
        })
        .collect();
    interleave(&wishes, wish.prepare.as_ref(), &mut |request| recorder.record(request))
}

/// Sides that wrote something else than the first: perhaps they don't do the same work.
fn differing(names: &[String], fresh: &[usize], ran: &[Contender]) -> Vec<(usize, String)> {
    let Some(first) = ran.first().and_then(|c| c.wrote) else { return Vec::new() };
    let unlike = |c: &Contender| c.wrote.is_some_and(|w| w.differs_from(first) == Some(STDOUT));
    fresh
        .iter()
        .zip(ran)
        .filter(|(_, contender)| unlike(contender))
        .map(|(index, _)| {
            let (a, b) = (&names[fresh[0]], &names[*index]);
            (*index, format!("`{a}` and `{b}` write different output: are they the same work?"))
        })
        .collect()
}
