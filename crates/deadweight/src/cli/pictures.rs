//! The options for pages and drawings. What they show is in `render`.

use clap::{Args, ValueEnum};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Pages and drawings.
#[derive(Clone, Debug, Args)]
pub struct Pictures {
    /// Write the report as a page to FILE: one HTML file with its drawings, which loads nothing else; `-` is standard
    /// output.
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Open the page in the browser (with `xdg-open`).
    #[arg(long, requires = "html")]
    pub open: bool,
    /// Write a drawing as SVG to FILE: the `ledger` as a bar, `cpu` use over time, the `timeline`, or a `flame` graph.
    #[arg(long, num_args = 2, value_names = ["DRAWING", "FILE"])]
    pub export_svg: Vec<OsString>,
}

/// A drawing of a run.
#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
pub enum Drawing {
    /// The ledger as one bar.
    Ledger,
    /// CPU use over time, by row.
    Cpu,
    /// Each task's life, with the path through it.
    Timeline,
    /// The flame graph of the wall time.
    Flame,
}

impl Pictures {
    /// The drawings with their files, in the order given.
    ///
    /// # Errors
    /// A sentence, if one is not the name of a drawing.
    pub fn drawings(&self) -> Result<Vec<(Drawing, &Path)>, String> {
        self.export_svg
            .chunks_exact(2)
            .map(|pair| Ok((named(&pair[0])?, Path::new(&pair[1]))))
            .collect()
    }

    /// Whether more of a run is needed than its report.
    #[must_use]
    pub fn any(&self) -> bool {
        self.html.is_some() || !self.export_svg.is_empty()
    }
}

fn named(word: &OsString) -> Result<Drawing, String> {
    let word = word.to_string_lossy();
    Drawing::from_str(&word, false)
        .map_err(|_| format!("there is no drawing `{word}`: give ledger, cpu, timeline or flame"))
}
