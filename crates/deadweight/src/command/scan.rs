//! `scan B`: what the machine code of a binary shows, without running it. Rules are in `deadweight-code`, files are
//! read by `deadweight-seal`.

use super::page::page;
use crate::cli::Scan;
use crate::failure::Failure;
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
    let paths = [Some(&options.binary), options.other.as_ref()];
    let opened: Result<Vec<_>, Failure> =
        paths.into_iter().flatten().map(|path| open(path)).collect();
    let opened = opened?;
    // Binaries may be of others: from here on they are only read.
    deadweight_record::confine();
    let mut found = Vec::new();
    for (path, binary) in opened {
        let scan = binary.scan().map_err(|why| unread(path, &why))?;
        found.push(Candidates::of(&path.display().to_string(), &scan, options.libraries));
    }
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
