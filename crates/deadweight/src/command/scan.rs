//! `scan B`: what the machine code of a binary shows, without running it. Rules are in `deadweight-code`, files are
//! read by `deadweight-seal`.

use super::page::page;
use crate::cli::Scan;
use crate::failure::Failure;
use crate::inlining::{self, GoFunction};
use crate::render::scan as render;
use crate::scan::Candidates;
use crate::scan::difference::between;
use deadweight_export::sarif;
use deadweight_report::report::Site;
use deadweight_seal::Binary;
use std::fs::File;
use std::io;
use std::path::Path;

pub(crate) fn scan(options: &Scan) -> Result<u8, Failure> {
    let found = if options.explain_inlining { explained(options)? } else { read(options)? };
    let text = match found.as_slice() {
        [first, second] if options.json => {
            render::json::difference(first, second, &between(first, second))
        }
        [first, second] => {
            let page = page(&io::stdout(), &options.style);
            render::difference(first, second, &between(first, second), options.all, page)
        }
        [one, ..] if options.json => render::json::candidates(one),
        [one, ..] if options.sarif => code_scanning(one)?,
        [one, ..] => render::candidates(one, options.all, page(&io::stdout(), &options.style)),
        [] => String::new(),
    };
    super::print("the candidates", &text)?;
    Ok(0)
}

/// Reads the binaries. They may be of others: once they are open, this thread can do nothing but read them.
fn read(options: &Scan) -> Result<Vec<Candidates>, Failure> {
    let paths = [Some(&options.binary), options.other.as_ref()];
    let opened: Result<Vec<_>, Failure> =
        paths.into_iter().flatten().map(|path| open(path)).collect();
    let opened = opened?;
    deadweight_record::confine();
    let of = |(path, binary): (&Path, Binary)| {
        let scan = binary.scan().map_err(|why| unread(path, &why))?;
        Ok(Candidates::of(&path.display().to_string(), &scan, options.libraries))
    };
    opened.into_iter().map(of).collect()
}

/// The same, with why Go's compiler did not inline small functions. Only a thread of its own reads the binaries, because
/// the compiler cannot be run from there.
fn explained(options: &Scan) -> Result<Vec<Candidates>, Failure> {
    const STACK: usize = 8 << 20;
    let mut found = std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK);
        let thread = thread.spawn_scoped(scope, || read(options));
        let thread =
            thread.map_err(|error| Failure::Unknown(format!("cannot start a thread: {error}")))?;
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })?;
    found.iter_mut().for_each(explain);
    Ok(found)
}

/// Adds why Go's compiler did not inline small functions.
fn explain(found: &mut Candidates) {
    let path = std::fs::canonicalize(&found.path).unwrap_or_default();
    let image = path.to_string_lossy();
    let of_go = found.info.language == "Go";
    let callees = found.places().filter(|(kind, _)| of_go && kind.is_about_callee());
    let functions = callees.map(|(_, place)| GoFunction {
        name: &place.callee,
        file: &place.callee_file,
        image: &image,
    });
    let (reasons, warnings) = inlining::reasons(functions);
    if reasons.is_empty() && warnings.is_empty() {
        found.notes.push("has no small function of Go whose source is under this directory".into());
    }
    found.explain(&reasons);
    found.notes.extend(warnings.into_iter().map(|why| format!("was asked about inlining: {why}")));
}

fn open(path: &Path) -> Result<(&Path, Binary), Failure> {
    File::open(path).map_err(|source| Failure::Read { path: path.to_owned(), source })?;
    Binary::open(path).map(|binary| (path, binary)).map_err(|why| unread(path, &why))
}

fn unread(path: &Path, why: &str) -> Failure {
    Failure::Unknown(format!("{} {why}", path.display()))
}

/// The candidates as SARIF.
fn code_scanning(found: &Candidates) -> Result<String, Failure> {
    let note =
        |(kind, place): (&'static crate::scan::kind::Kind, &crate::scan::Place)| sarif::Note {
            rule: kind.name.into(),
            title: kind.title.into(),
            text: render::sentence(kind, place),
            site: Site {
                function: place.function.clone(),
                file: place.file.clone(),
                line: place.line,
                image: found.path.clone(),
                ..Site::default()
            },
        };
    let notes: Vec<sarif::Note> = found.places().map(note).collect();
    sarif::notes("deadweight scan", &notes).map_err(|error| Failure::Write {
        what: "the candidates",
        to: "SARIF".into(),
        source: error.into(),
    })
}
