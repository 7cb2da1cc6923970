//! Pages and drawings of a report: their files, and the browser. Draws nothing; see `render`.

use super::destination::{Destination, sudo_user};
use super::weighing::subject_of;
use crate::cli::{Drawing, Of, Pictures};
use crate::failure::Failure;
use crate::render::drawing::{self, flame, timeline, usage};
use crate::render::html::{self, Beside};
use crate::render::picture::{Picture, of_trace};
use deadweight_core::cost;
use deadweight_report::report::Report;
use deadweight_trace::Trace;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The opened files.
#[derive(Debug)]
pub(super) struct PictureOutputs {
    html: Option<Destination>,
    drawings: Vec<(Drawing, Destination)>,
    /// The page to open in the browser.
    open: Option<PathBuf>,
}

impl PictureOutputs {
    /// Opens the files that the options name.
    pub(super) fn open(options: &Pictures) -> Result<Self, Failure> {
        let html = options.html.as_deref();
        let to_open = html.filter(|_| options.open);
        if to_open == Some(Path::new("-")) {
            return Err(Failure::Unknown("--open needs a page in a file: give --html FILE".into()));
        }
        let open = to_open.map(Path::to_owned);
        let drawings = options.drawings().map_err(Failure::Unknown)?.into_iter();
        let drawings = drawings
            .map(|(kind, path)| Ok((kind, Destination::open("the drawing", path)?)))
            .collect::<Result<_, Failure>>()?;
        let html = html.map(|path| Destination::open("the page", path)).transpose()?;
        Ok(Self { html, drawings, open })
    }

    /// Writes the page and the drawings of a report.
    pub(super) fn write(self, report: &Report, picture: Option<&Picture>) -> Result<(), Failure> {
        let explain = |id: &str| cost::explain(id);
        let beside = Beside { explain: &explain, picture };
        if let Some(to) = self.html {
            to.write(&html::render(report, beside))?;
        }
        for (kind, to) in self.drawings {
            to.write(&drawn(kind, report, picture)?)?;
        }
        self.open.map_or(Ok(()), |page| show(&page))
    }
}

/// A drawing as a file.
fn drawn(kind: Drawing, report: &Report, picture: Option<&Picture>) -> Result<String, Failure> {
    let picture = || {
        picture.ok_or_else(|| {
            Failure::Unknown("this drawing needs a recording, and there is none".into())
        })
    };
    let drawing = match kind {
        Drawing::Ledger => drawing::ledger::drawing(report),
        Drawing::Cpu => usage::drawing(picture()?, "usage-drawing", usage::Scales::of(picture()?)),
        Drawing::Timeline => timeline::drawing(picture()?),
        Drawing::Flame => flame::drawing(&picture()?.on_path, "wall time on the path"),
    };
    Ok(drawing.alone())
}

/// What the drawings need of these runs, if any are wanted: that of the run with the median wall time.
pub(super) fn pictured(
    options: &Pictures,
    traces: &[Trace],
    of: Option<&Of>,
) -> Result<Option<Picture>, Failure> {
    if !options.any() {
        return Ok(None);
    }
    let mut runs: Vec<&Trace> = traces.iter().collect();
    runs.sort_by_key(|trace| trace.wall());
    let Some(trace) = runs.get(runs.len() / 2) else { return Ok(None) };
    Ok(Some(of_trace(trace, subject_of(trace, of).as_deref())?))
}

/// Opens the page in the browser: of the user who called `sudo`, if there is one.
fn show(page: &Path) -> Result<(), Failure> {
    let mut command = Command::new("xdg-open");
    command.arg(page).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if let Some((user, group)) = sudo_user() {
        command.uid(user).gid(group);
    }
    let said = |error| {
        let page = page.display();
        Failure::Unknown(format!(
            "cannot open {page} in a browser (xdg-open: {error}): open it yourself"
        ))
    };
    command.spawn().map(|_| ()).map_err(said)
}
