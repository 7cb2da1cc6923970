//! Pages and drawings of a report: their files, and the browser. Draws nothing; see `render`.

use super::destination::{Destination, sudo_user};
use crate::cli::Pictures;
use crate::failure::Failure;
use crate::render::html::{self, Beside};
use deadweight_core::cost;
use deadweight_report::report::Report;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The opened files.
#[derive(Debug)]
pub(super) struct PictureOutputs {
    html: Option<Destination>,
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
        Ok(Self { html: html.map(|path| Destination::open("the page", path)).transpose()?, open })
    }

    /// Writes the page and the drawings of a report.
    pub(super) fn write(self, report: &Report) -> Result<(), Failure> {
        let explain = |id: &str| cost::explain(id);
        let beside = Beside { explain: &explain };
        if let Some(to) = self.html {
            to.write(&html::render(report, beside))?;
        }
        self.open.map_or(Ok(()), |page| show(&page))
    }
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
