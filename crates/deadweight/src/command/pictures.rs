//! Pages and drawings of a report: their files, and the browser. Draws nothing; see `render`.

use super::destination::{Destination, sudo_user};
use super::weighing::subject_of;
use crate::cli::{Drawing, Of, Pictures};
use crate::failure::Failure;
use crate::render::drawing::{self, difference, flame, timeline, usage};
use crate::render::html::comparison::{self, Compared};
use crate::render::html::{self, Beside};
use crate::render::picture::{Picture, of_trace};
use deadweight_core::cost;
use deadweight_report::compare::Comparison;
use deadweight_report::report::Report;
use deadweight_trace::Trace;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Why some drawings cannot be made.
const NO_RECORDING: &str =
    "this drawing needs a recording of each run, and there is none: reports alone do not hold it";
const ONE_RUN: &str = "a timeline is of one run: draw it for each side with `deadweight report`";

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

    /// The same for a comparison, of which not everything can be drawn.
    pub(super) fn open_for_comparison(options: &Pictures) -> Result<Self, Failure> {
        let drawings = options.drawings().map_err(Failure::Unknown)?;
        if drawings.iter().any(|(kind, _)| *kind == Drawing::Timeline) {
            return Err(Failure::Unknown(ONE_RUN.into()));
        }
        Self::open(options)
    }

    /// Writes the page and the drawings of a report.
    pub(super) fn write(self, report: &Report, picture: Option<&Picture>) -> Result<(), Failure> {
        let explain = |id: &str| cost::explain(id);
        let page = || html::render(report, Beside { explain: &explain, picture });
        self.write_each(page, |kind| drawn(kind, report, picture))
    }

    /// Writes the page and the drawings of a comparison.
    pub(super) fn write_comparison(
        self,
        sides: &[Compared<'_>],
        comparisons: &[Comparison],
    ) -> Result<(), Failure> {
        let page = || comparison::render(sides, comparisons);
        self.write_each(page, |kind| drawn_together(kind, sides))
    }

    fn write_each(
        self,
        page: impl Fn() -> String,
        drawn: impl Fn(Drawing) -> Result<String, Failure>,
    ) -> Result<(), Failure> {
        if let Some(to) = self.html {
            to.write(&page())?;
        }
        for (kind, to) in self.drawings {
            to.write(&drawn(kind)?)?;
        }
        self.open.map_or(Ok(()), |page| show(&page))
    }
}

/// A drawing as a file.
fn drawn(kind: Drawing, report: &Report, picture: Option<&Picture>) -> Result<String, Failure> {
    let picture = || picture.ok_or_else(|| Failure::Unknown(NO_RECORDING.into()));
    let drawing = match kind {
        Drawing::Ledger => drawing::ledger::drawing(report),
        Drawing::Cpu => usage::drawing(picture()?, "usage-drawing", usage::Scales::of(picture()?)),
        Drawing::Timeline => timeline::drawing(picture()?),
        Drawing::Flame => flame::drawing(&picture()?.on_path, "wall time on the path"),
    };
    Ok(drawing.alone())
}

/// A drawing of several sides as a file.
fn drawn_together(kind: Drawing, sides: &[Compared<'_>]) -> Result<String, Failure> {
    let named = |side: &Compared<'_>, drawing| (side.name.to_owned(), drawing);
    let pictures: Vec<&Picture> = sides.iter().filter_map(|side| side.picture).collect();
    let drawing = match (kind, &pictures[..]) {
        (Drawing::Timeline, _) => return Err(Failure::Unknown(ONE_RUN.into())),
        (Drawing::Ledger, _) => {
            let longest = sides.iter().map(|side| side.report.wall_ns).max().unwrap_or(0);
            let each = sides.iter();
            let each =
                each.map(|side| named(side, drawing::ledger::on_scale(side.report, longest)));
            drawing::stacked(each.collect(), "Where the wall time went")
        }
        (_, pictures) if pictures.len() < sides.len() => {
            return Err(Failure::Unknown(NO_RECORDING.into()));
        }
        (Drawing::Cpu, _) => {
            let scales = pictures.iter().map(|picture| usage::Scales::of(picture));
            let scales = scales.reduce(usage::Scales::both);
            let both = sides.iter().filter_map(|side| {
                Some(named(side, usage::drawing(side.picture?, "usage-drawing", scales?)))
            });
            drawing::stacked(both.collect(), "CPU use over time")
        }
        (Drawing::Flame, [a, b, ..]) => {
            difference::drawing(&a.on_path, &b.on_path, "flame-drawing")
        }
        (Drawing::Flame, _) => return Err(Failure::Unknown(NO_RECORDING.into())),
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
