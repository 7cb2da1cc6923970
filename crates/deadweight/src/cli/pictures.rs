//! The options for pages. What they show is in `render`.

use clap::Args;
use std::path::PathBuf;

/// Pages.
#[derive(Clone, Debug, Args)]
pub struct Pictures {
    /// Write the report as a page to FILE: one HTML file, which loads nothing else; `-` is standard output.
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Open the page in the browser (with `xdg-open`).
    #[arg(long, requires = "html")]
    pub open: bool,
}
