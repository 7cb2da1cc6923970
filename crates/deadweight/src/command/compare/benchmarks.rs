//! `compare` of result files of benchmark programs: read, laid out, printed.
//!
//! Does not compare commands or deadweight's reports, which have ledgers; see the parent module.

use super::{CANNOT_TELL, SLOWER, lossy};
use crate::cli::Compare;
use crate::command::destination::Destination;
use crate::command::gate::read_conditions;
use crate::command::{page, print, say};
use crate::failure::Failure;
use crate::render::{self, benchmarks, ips};
use deadweight_report::benchmarks::conditions::{Evaluation, evaluate};
use deadweight_report::benchmarks::keys::Key;
use deadweight_report::benchmarks::table::{Layout, Verdict, lay_out};
use deadweight_report::benchmarks::{Results, Unusable, encoding, go, json};
use std::ffi::OsString;
use std::fs;
use std::io::Read;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::Path;

/// Larger files, in bytes, are not read as results: ten million measurements fit into it.
const LARGEST: u64 = 64 << 20;
/// Levels of criterion's directories that are searched.
const DEEPEST: u32 = 8;

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
    let read: Vec<Option<Results>> = options.sides.iter().map(results).collect::<Result<_, _>>()?;
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

/// The results in a side, if it is a file or directory of a benchmark program.
fn results(side: &OsString) -> Result<Option<Results>, Failure> {
    let path = Path::new(side);
    let kind = path.extension().and_then(|e| e.to_str()).unwrap_or_default();
    let meta = match fs::metadata(path) {
        Ok(meta) => meta,
        // No program has such a name.
        Err(source) if kind == "txt" && !lossy(side).contains(' ') => {
            return Err(Failure::Read { path: path.to_owned(), source });
        }
        Err(_) => return Ok(None),
    };
    let said = |Unusable(why)| Failure::Unknown(format!("{} {why}", path.display()));
    if path.starts_with("/dev/fd") && meta.file_type().is_fifo() {
        return piped(path).map(Some);
    }
    let readable = ["json", "txt", "dwt"].contains(&kind);
    if meta.file_type().is_fifo() || readable && !meta.is_dir() && !meta.is_file() {
        let why = "is a pipe or a device: save it as a file first";
        return Err(Failure::Unknown(format!("{} {why}", path.display())));
    }
    if kind != "dwt"
        && meta.is_file()
        && meta.len() > LARGEST
        && meta.permissions().mode() & 0o111 == 0
    {
        return Err(Failure::Unknown(format!(
            "{} is {} MB large: results of benchmarks and reports are read up to {} MB",
            path.display(),
            meta.len() >> 20,
            LARGEST >> 20
        )));
    }
    match kind {
        _ if meta.is_dir() => directory(path).map(Some),
        "dwt" => Ok(None),
        "json" => json::read(&text(path)?, &criterion_name(path)).map_err(said),
        _ if !meta.is_file() || meta.permissions().mode() & 0o111 != 0 => Ok(None),
        _ => {
            let bytes =
                fs::read(path).map_err(|source| Failure::Read { path: path.to_owned(), source })?;
            let text = encoding::text(&bytes);
            let benchmarks = text.lines().any(|line| line.starts_with("Benchmark"));
            if !benchmarks && kind != "txt" {
                return Ok(None);
            }
            go::read(&text).map(Some).map_err(said)
        }
    }
}

/// Reads the pipe of a shell's `<(...)`, which can be read only once.
fn piped(path: &Path) -> Result<Results, Failure> {
    let failure = |source| Failure::Read { path: path.to_owned(), source };
    let mut bytes = Vec::new();
    let file = fs::File::open(path).map_err(failure)?;
    file.take(LARGEST).read_to_end(&mut bytes).map_err(failure)?;
    let text = encoding::text(&bytes);
    let read = match text.trim_start().starts_with('{') {
        true => json::read(&text, "").map(Option::unwrap_or_default),
        false => go::read(&text),
    };
    read.map_err(|Unusable(why)| Failure::Unknown(format!("{} {why}", path.display())))
}

fn text(path: &Path) -> Result<String, Failure> {
    let bytes = fs::read(path).map_err(|source| Failure::Read { path: path.to_owned(), source })?;
    Ok(encoding::text(&bytes))
}

/// All samples of criterion under a directory. If a benchmark has several (`base`, `new`, ...), only
/// the newest one is read, unless the directory is one of these itself.
fn directory(path: &Path) -> Result<Results, Failure> {
    let mut results = Results::default();
    search(path, DEEPEST, true, &mut results)?;
    if results.measured.is_empty() {
        return Err(Failure::Unknown(format!(
            "{} is a directory without results of criterion (sample.json)",
            path.display()
        )));
    }
    Ok(results)
}

fn search(dir: &Path, deep: u32, top: bool, results: &mut Results) -> Result<(), Failure> {
    let failure = |source| Failure::Read { path: dir.to_owned(), source };
    let sample = dir.join("sample.json");
    if sample.is_file() {
        let newest = dir.file_name().is_some_and(|name| name == "new");
        let newer = dir.with_file_name("new").join("sample.json").is_file();
        if top || newest || !newer {
            let read = json::read(&text(&sample)?, &criterion_name(&sample));
            let said = |Unusable(why)| Failure::Unknown(format!("{} {why}", sample.display()));
            results.measured.extend(read.map_err(said)?.unwrap_or_default().measured);
        }
    }
    let mut dirs: Vec<_> = fs::read_dir(dir)
        .map_err(failure)?
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| path.is_dir() && !path.is_symlink())
        .collect();
    dirs.sort();
    if deep > 0 {
        dirs.iter().try_for_each(|dir| search(dir, deep - 1, false, results))?;
    }
    Ok(())
}

/// criterion's name of the benchmark with this sample: from the file beside it, or the directory
/// above.
fn criterion_name(sample: &Path) -> String {
    let recorded = || -> Option<String> {
        let beside = fs::read_to_string(sample.with_file_name("benchmark.json")).ok()?;
        let value: serde_json::Value = serde_json::from_str(&beside).ok()?;
        Some(value.get("full_id")?.as_str()?.to_owned())
    };
    let above = || Some(sample.parent()?.parent()?.file_name()?.to_string_lossy().into_owned());
    recorded().or_else(above).unwrap_or_default()
}
