//! `compare` of result files of benchmark programs: laid out, printed.
//!
//! Does not compare commands or deadweight's reports, which have ledgers; see the parent module.

use super::{CANNOT_TELL, SLOWER, lossy};
use crate::cli::Compare;
use crate::command::destination::Destination;
use crate::command::gate::read_conditions;
use crate::command::result_files::results;
use crate::command::{page, print, say};
use crate::failure::Failure;
use crate::render::{self, benchmarks, ips};
use deadweight_report::benchmarks::conditions::{Evaluation, evaluate};
use deadweight_report::benchmarks::keys::Key;
use deadweight_report::benchmarks::table::{Layout, Verdict, lay_out};
use deadweight_report::benchmarks::{Results, Unusable};
use std::path::Path;

/// A given option that only makes sense for files of benchmark programs.
pub(super) fn own_option(options: &Compare) -> Option<&'static str> {
    let given = [
        (options.ips, "--ips"),
        (!options.row.is_empty(), "--row"),
        (options.col.is_some(), "--col"),
        (!options.ignore.is_empty(), "--ignore"),
    ];
    given.into_iter().find(|(given, _)| *given).map(|(_, option)| option)
}

/// The sides with their names, if they are files of benchmark programs; `None` if no side is.
pub(super) fn sides(options: &Compare) -> Result<Option<Vec<(String, Results)>>, Failure> {
    let read: Vec<Option<Results>> =
        options.sides.iter().map(|side| results(Path::new(side))).collect::<Result<_, _>>()?;
    let of_kind = |is: bool| {
        let side = options.sides.iter().zip(&read).find(|(_, read)| read.is_some() == is);
        side.map(|(side, _)| lossy(side))
    };
    match (of_kind(true), of_kind(false)) {
        (None, _) => return Ok(None),
        (Some(file), Some(other)) => {
            return Err(Failure::Unknown(format!(
                "{file} holds results of a benchmark program, but `{other}` does not: they cannot be \
                 compared"
            )));
        }
        (Some(_), None) => {}
    }
    let named = read.into_iter().flatten().enumerate().map(|(at, results)| {
        let given = options.names.get(at).cloned();
        let side = &options.sides[at];
        let before = options.sides[..at].iter().filter(|other| *other == side).count();
        let again = options.sides.iter().filter(|other| *other == side).count() > 1;
        let plain = if again { format!("{}#{before}", lossy(side)) } else { lossy(side) };
        (given.unwrap_or(plain), results)
    });
    Ok(Some(named.collect()))
}

pub(super) fn compare(options: &Compare, sides: &[(String, Results)]) -> Result<u8, Failure> {
    if options.pictures.any() {
        return Err(Failure::Unknown(
            "results of benchmark programs have no page and no drawings: --html and --export-svg are for commands, \
             reports and recordings"
                .into(),
        ));
    }
    let conditions = read_conditions(&options.fail_if)?;
    let path = options.export_json.as_deref();
    let json = path.map(|path| Destination::open("the comparison", path)).transpose()?;
    let usual = Layout::default();
    let layout = Layout {
        row: if options.row.is_empty() { usual.row } else { options.row.clone() },
        col: options.col.clone().unwrap_or(usual.col),
        ignore: options.ignore.clone(),
    };
    let tables = lay_out(sides, &layout).map_err(|Unusable(why)| Failure::Unknown(why))?;
    let answers: Vec<(&str, Evaluation)> = conditions
        .iter()
        .map(|(text, condition)| Ok((*text, evaluate(condition, &tables)?)))
        .collect::<Result<_, Failure>>()?;
    if let Some(to) = json {
        let text = serde_json::to_string_pretty(&tables).map_err(|error| Failure::Write {
            what: "the comparison",
            to: "JSON".into(),
            source: error.into(),
        })?;
        to.write(&render::json::escaped(&text))?;
    }
    if !options.quiet {
        let page = page::page(&std::io::stdout(), &options.style);
        let render = if options.ips { ips::render } else { benchmarks::render };
        match print("the comparison", &render(&tables, page)) {
            Err(failure) if failure.is_broken_pipe() => {}
            printed => printed?,
        }
    }
    if !answers.is_empty() {
        return Ok(answered(&answers));
    }
    let any = |verdict| tables.changes().any(|(_, change)| change.verdict == verdict);
    let alone = sides.len() == 1 && layout.col == Key::File;
    let nothing = tables.changes().next().is_none() && !alone;
    Ok(match (any(Verdict::Worse), any(Verdict::CannotTell) || nothing) {
        (true, _) => SLOWER,
        (false, true) => CANNOT_TELL,
        (false, false) => 0,
    })
}

/// The exit code of the conditions; prints why it is not 0.
fn answered(answers: &[(&str, Evaluation)]) -> u8 {
    for (text, asked) in answers {
        for row in &asked.holds {
            say(&format!("deadweight: failed: {text} ({row})"));
        }
        for row in &asked.unsure {
            say(&format!("deadweight: cannot tell whether {text}: too few measurements ({row})"));
        }
    }
    let any =
        |which: fn(&Evaluation) -> &Vec<String>| answers.iter().any(|(_, a)| !which(a).is_empty());
    match (any(|asked| &asked.holds), any(|asked| &asked.unsure)) {
        (true, _) => SLOWER,
        (false, true) => CANNOT_TELL,
        (false, false) => 0,
    }
}
