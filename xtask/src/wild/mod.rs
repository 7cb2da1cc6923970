//! Real programs that nobody here wrote, and what deadweight must and must not say about each.
//!
//! A program is a file `wild/NAME.toml`. Its packages must be installed. deadweight records it once, or twice if it
//! misses something: a busy minute may hide a cost. A wrong accusation is never excused. For programs in a slow and a
//! fast form see `case`.

mod file;
mod json;
mod shell;
mod table;
mod verdict;

use crate::repository::Repository;
use file::{Program, Recorded, Served};
use serde_json::Value;
use shell::Scratch;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use table::Line;
use verdict::{Complaint, Kind};

/// The time that a server may take to be ready.
const PATIENCE: Duration = Duration::from_secs(60);

/// What the command line asks for.
#[derive(Debug, Default, PartialEq, Eq)]
struct Options {
    names: Vec<String>,
    /// Every program, not only the quick dozen.
    all: bool,
    /// A program whose packages are missing is skipped.
    missing_ok: bool,
    /// The binary; none: it is built.
    bin: Option<PathBuf>,
}

impl Options {
    fn parse(words: &[String]) -> Result<Self, String> {
        let mut options = Self::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match word.as_str() {
                "--all" => options.all = true,
                "--missing-ok" => options.missing_ok = true,
                "--bin" => {
                    let path = words.next().ok_or("wild: --bin needs a path")?;
                    options.bin = Some(PathBuf::from(path));
                }
                word if word.starts_with('-') => return Err(format!("wild: no option `{word}`")),
                name => options.names.push(name.to_owned()),
            }
        }
        Ok(options)
    }
}

/// Records the quick dozen, all programs, or those with these names, and prints a table.
pub(crate) fn run(repository: &Repository, words: &[String]) -> Result<(), String> {
    let options = Options::parse(words)?;
    let programs = chosen(programs(repository)?, &options)?;
    if output("id", &["-u"])?.trim() != "0" {
        return Err("wild: needs root, because recordings by other users lack kernel stacks".into());
    }
    let absent = absent(&programs)?;
    if !absent.is_empty() {
        let line = format!("missing packages: `apt-get install {}`", absent.join(" "));
        if !options.missing_ok {
            return Err(format!("wild: {line}; or skip their programs: --missing-ok"));
        }
        eprintln!("wild: {line}");
    }
    let deadweight = binary(repository, &options)?;
    let reports = repository.target().join("wild");
    std::fs::create_dir_all(&reports).map_err(|e| format!("{}: {e}", reports.display()))?;
    let mut failed = Vec::new();
    println!("{}", table::HEAD);
    for (name, program) in &programs {
        if program.packages.iter().any(|package| absent.contains(package)) {
            println!("{}", Line::skipped(name));
            continue;
        }
        let report = reports.join(format!("{name}.json"));
        let (line, complaints) = judged(name, program, &deadweight, &report);
        println!("{line}");
        complaints.iter().for_each(|complaint| println!("    {complaint}"));
        if line.failed() {
            println!("    {}\n    report: {}", program.why, report.display());
            failed.push(name.as_str());
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(format!("wild: failed: {}", failed.join(", "))) }
}

/// All programs by name, in order.
fn programs(repository: &Repository) -> Result<Vec<(String, Program)>, String> {
    let entries = std::fs::read_dir(repository.path("wild")).map_err(|e| format!("wild: {e}"))?;
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|end| end == "toml"));
    paths.sort();
    let name = |path: &Path| path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    paths.iter().map(|path| Ok((name(path), Program::read(path)?))).collect()
}

fn chosen(
    all: Vec<(String, Program)>,
    options: &Options,
) -> Result<Vec<(String, Program)>, String> {
    if let Some(unknown) = options.names.iter().find(|n| !all.iter().any(|(name, _)| name == *n)) {
        return Err(format!("wild: no program `{unknown}`"));
    }
    let wanted = |name: &String, program: &Program| match options.names.is_empty() {
        true => options.all || program.quick,
        false => options.names.contains(name),
    };
    Ok(all.into_iter().filter(|(name, program)| wanted(name, program)).collect())
}

/// The packages that are not installed.
fn absent(programs: &[(String, Program)]) -> Result<Vec<String>, String> {
    let mut needed: Vec<&String> =
        programs.iter().flat_map(|(_, program)| &program.packages).collect();
    needed.sort();
    needed.dedup();
    let query = ["-W", "-f", "${Package} ${db:Status-Status}\n"];
    let installed = output("dpkg-query", &query)?;
    let is_there = |package: &str| {
        let line = format!("{package} installed");
        installed.lines().any(|there| there == line)
    };
    Ok(needed.into_iter().filter(|package| !is_there(package)).cloned().collect())
}

fn output(program: &str, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(program).args(arguments).output();
    let output = output.map_err(|e| format!("{program}: {e}"))?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The binary, as an absolute path: programs run in their own folders.
fn binary(repository: &Repository, options: &Options) -> Result<PathBuf, String> {
    let path = match &options.bin {
        Some(path) => path.clone(),
        None => {
            repository.run("cargo", &["build", "--release", "-p", "deadweight", "--quiet"])?;
            repository.target().join("release").join("deadweight")
        }
    };
    path.canonicalize().map_err(|e| format!("{}: {e}", path.display()))
}

/// Records and judges one program as often as it asks for, and once more if something was missed. The first recording
/// with a complaint counts.
fn judged(
    name: &str,
    program: &Program,
    deadweight: &Path,
    report: &Path,
) -> (Line, Vec<Complaint>) {
    let (mut again, mut left) = (true, program.recordings);
    loop {
        match measured(name, program, deadweight, report) {
            Err(why) => return (Line::broken(name, &why), Vec::new()),
            Ok((_, complaints)) if again && only_missed(&complaints) => again = false,
            Ok((_, complaints)) if complaints.is_empty() && left > 1 => left -= 1,
            Ok((line, complaints)) => return (line, complaints),
        }
    }
}

/// Whether something was missed, and nothing worse.
fn only_missed(complaints: &[Complaint]) -> bool {
    !complaints.is_empty() && complaints.iter().all(|complaint| complaint.kind == Kind::Missed)
}

fn measured(
    name: &str,
    program: &Program,
    deadweight: &Path,
    report: &Path,
) -> Result<(Line, Vec<Complaint>), String> {
    // A report of an earlier run must not be judged.
    drop(std::fs::remove_file(report));
    let scratch = Scratch::new(name)?;
    program.setup.iter().try_for_each(|line| scratch.run(line))?;
    let (clean, counted) = match &program.recorded {
        Recorded::Command(line) => {
            let clean = scratch.clean(line, &program.reset)?;
            let reset = || program.reset.iter().try_for_each(|line| scratch.run(line));
            reset()?;
            record(&scratch, deadweight, report, &["--", line])?;
            reset()?;
            let calls: Vec<&str> = program.truths.counts.iter().map(|(c, _)| c.as_str()).collect();
            (Some(clean), scratch.strace(line, &calls)?)
        }
        Recorded::Server(served) => {
            serve(&scratch, served, deadweight, report)?;
            (None, Vec::new())
        }
    };
    let text = std::fs::read_to_string(report).map_err(|e| format!("{}: {e}", report.display()))?;
    let json =
        serde_json::from_str::<Value>(&text).map_err(|e| format!("{}: {e}", report.display()))?;
    let unknown = verdict::unknown_classes(&json, &program.truths);
    if !unknown.is_empty() {
        return Err(format!("no class is called {}", unknown.join(", ")));
    }
    let mut complaints = verdict::judge(&json, &program.truths, &counted);
    complaints.extend(conditions(deadweight, report, &program.truths.conditions)?);
    Ok((Line::judged(name, &json, &complaints, clean), complaints))
}

/// Records; the words of a command or of a process come last.
fn record(
    scratch: &Scratch,
    deadweight: &Path,
    report: &Path,
    what: &[&str],
) -> Result<(), String> {
    let mut command = scratch.command(deadweight)?;
    command.args(["-q", "--export-json"]).arg(report).args(what);
    let status = command.status().map_err(|e| format!("deadweight: {e}"))?;
    if status.success() {
        return Ok(());
    }
    Err(format!("deadweight, or what it recorded, ended with {status}: {}", scratch.errors()))
}

fn serve(
    scratch: &Scratch,
    served: &Served,
    deadweight: &Path,
    report: &Path,
) -> Result<(), String> {
    let mut server = scratch.start(&served.start)?;
    let start = Instant::now();
    while let Err(why) = scratch.run(&served.ready) {
        if start.elapsed() > PATIENCE || !server.runs() {
            return Err(format!("the server is not ready: {why}"));
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    let pid = match served.pid.as_str() {
        "" => server.id().to_string(),
        line => scratch.printed(line)?.trim().to_owned(),
    };
    let mut load = scratch.start(&served.load)?;
    std::thread::sleep(Duration::from_millis(500));
    record(scratch, deadweight, report, &["--pid", &pid, "--for", "2s"])?;
    if load.runs() { Ok(()) } else { Err("the load ended before the recording".to_owned()) }
}

/// The conditions that do not hold.
fn conditions(
    deadweight: &Path,
    report: &Path,
    conditions: &[String],
) -> Result<Vec<Complaint>, String> {
    let mut missed = Vec::new();
    for condition in conditions {
        let output = Command::new(deadweight)
            .arg("gate")
            .arg(format!("r={}", report.display()))
            .arg(condition)
            .stdin(Stdio::null())
            .output()
            .map_err(|e| format!("deadweight: {e}"))?;
        if !output.status.success() {
            let text = [output.stdout, output.stderr].concat();
            let text = String::from_utf8_lossy(&text).trim().to_owned();
            missed.push(Complaint { kind: Kind::Missed, text });
        }
    }
    Ok(missed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn names_and_options_are_read_and_others_refused() {
        let expected = Options {
            names: words("grep xz"),
            all: false,
            missing_ok: true,
            bin: Some(PathBuf::from("x")),
        };
        assert_eq!(Options::parse(&words("grep --missing-ok --bin x xz")), Ok(expected));
        assert!(
            Options::parse(&words("--bin")).is_err() && Options::parse(&words("--al")).is_err()
        );
    }

    #[test]
    fn quick_ones_all_or_those_with_a_name_are_chosen() {
        let program = |quick| Program { quick, ..Program::default() };
        let of = |text: &str| {
            let all = vec![("a".to_owned(), program(true)), ("b".to_owned(), program(false))];
            let options = Options::parse(&words(text)).unwrap();
            chosen(all, &options).map(|c| c.into_iter().map(|(n, _)| n).collect::<Vec<_>>())
        };
        assert_eq!(of(""), Ok(words("a")));
        assert_eq!(of("--all"), Ok(words("a b")));
        assert_eq!(of("b"), Ok(words("b")));
        assert!(of("c").is_err());
    }

    #[test]
    fn only_what_was_missed_is_tried_again() {
        let of = |kinds: &[Kind]| {
            let complaint = |kind: &Kind| Complaint { kind: *kind, text: String::new() };
            only_missed(&kinds.iter().map(complaint).collect::<Vec<_>>())
        };
        assert!(of(&[Kind::Missed]));
        assert!(!of(&[]) && !of(&[Kind::Missed, Kind::WrongAccusation]));
    }

    /// Every file of the suite can be read, and a dozen is quick.
    #[test]
    fn every_program_of_the_suite_is_complete() {
        let programs = programs(&Repository::here()).unwrap();
        let quick = programs.iter().filter(|(_, program)| program.quick).count();
        assert_eq!(quick, 12);
    }
}
