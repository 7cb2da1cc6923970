//! Writes a report for its reader: as text, as JSON, as a page, or several. Does not lay it out; see `render`.

use super::destination::Destination;
use super::page;
use super::pictures::PictureOutputs;
use crate::cli::{Style, View};
use crate::failure::Failure;
use crate::render::page::Page;
use crate::render::picture::Picture;
use crate::render::{json, terminal};
use deadweight_report::report::Report;
use std::io::{IsTerminal, Write};

/// Where the text of a report goes without `-o`.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum DefaultStream {
    /// Standard error, because the program uses standard output.
    Stderr,
    /// Standard output, because no program runs.
    Stdout,
}

/// The opened outputs of a report.
#[derive(Debug)]
pub(crate) struct ReportOutputs<'v> {
    view: &'v View,
    default: DefaultStream,
    text: Option<Destination>,
    json: Option<Destination>,
    pictures: PictureOutputs,
}

impl<'v> ReportOutputs<'v> {
    /// Opens the files that the options name.
    pub(crate) fn open(view: &'v View, default: DefaultStream) -> Result<Self, Failure> {
        let open = |path: &Option<std::path::PathBuf>| {
            path.as_deref().map(|path| Destination::open("the report", path)).transpose()
        };
        let (text, json) = (open(&view.output)?, open(&view.export_json)?);
        Ok(Self { view, default, text, json, pictures: PictureOutputs::open(&view.pictures)? })
    }

    /// Writes the report. A closed pipe is no error. If one output cannot be written, the others still get the
    /// report: measuring may have taken an hour.
    pub(crate) fn write(self, report: &Report, picture: Option<&Picture>) -> Result<(), Failure> {
        let json = self.json.map_or(Ok(()), |to| as_json(report, to));
        let pictures = self.pictures.write(report, picture);
        let here = std::env::current_dir().unwrap_or_default();
        let shown = terminal::Shown {
            verbose: self.view.verbose,
            cpu: self.view.cpu,
            top: self.view.top.map_or(0, usize::from),
            here: here.to_string_lossy().into_owned(),
        };
        let words = |page: Page| terminal::render(report, &shown, page);
        let style = &self.view.style;
        let written = match self.text {
            Some(to) if to.is_stdout() => to.write(&words(page::page(&std::io::stdout(), style))),
            Some(to) => {
                let mut page = page::page(&std::io::stdout(), style);
                page.colour = style.color == crate::cli::Color::Always;
                page.width = style.width.map_or(80, usize::from);
                let written = to.write(&words(page));
                if written.as_ref().is_err_and(|failure| !failure.is_broken_pipe()) {
                    // The error is printed below it.
                    _ = on_stderr(words, style);
                }
                written
            }
            None if self.view.quiet => Ok(()),
            None if self.default == DefaultStream::Stdout => {
                super::print("the report", &words(page::page(&std::io::stdout(), style)))
            }
            None => on_stderr(words, style),
        };
        super::both(super::both(lenient(written), lenient(json)), lenient(pictures))
    }
}

fn lenient(written: Result<(), Failure>) -> Result<(), Failure> {
    written.or_else(|failure| if failure.is_broken_pipe() { Ok(()) } else { Err(failure) })
}

fn as_json(report: &Report, to: Destination) -> Result<(), Failure> {
    let text = json::render(report).map_err(|error| Failure::Write {
        what: "the report",
        to: "JSON".into(),
        source: error.into(),
    })?;
    to.write(&text)
}

fn on_stderr(words: impl Fn(Page) -> String, style: &Style) -> Result<(), Failure> {
    let err = std::io::stderr();
    // On a terminal the program's last output is right above.
    let lead = if err.is_terminal() { "\n" } else { "" };
    let text = format!("{lead}{}", words(page::page(&err, style)));
    let written = err.lock().write_all(text.as_bytes());
    written.map_err(|source| Failure::Write {
        what: "the report",
        to: "standard error".into(),
        source,
    })
}
