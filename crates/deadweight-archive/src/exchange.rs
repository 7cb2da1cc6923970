//! A kept run as a line of JSON: archives are moved and merged by writing and adding such lines.
//!
//! The report's bytes stay as they are, so that the run keeps its id.

use crate::archive::Archive;
use crate::error::{ArchiveError, ErrorKind};
use crate::kept::Kept;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use deadweight_report::tables::Tables;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::borrow::Cow;

/// The version of the lines' form.
const VERSION: u32 = 1;

/// A line.
#[derive(Serialize, Deserialize)]
struct Line<'l> {
    /// [`VERSION`]. The first field, by which such a file is recognised.
    deadweight_archive: u32,
    tables: Cow<'l, Tables>,
    #[serde(borrow)]
    report: &'l RawValue,
    /// In Base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    trace: Option<String>,
}

impl Kept {
    /// The run as one line, without the line's end.
    ///
    /// # Errors
    /// If its report is not JSON.
    pub fn to_line(&self) -> Result<String, ArchiveError> {
        let text = String::from_utf8_lossy(&self.report_json);
        let line = serde_json::from_str::<&RawValue>(&text).and_then(|report| {
            serde_json::to_string(&Line {
                deadweight_archive: VERSION,
                tables: Cow::Borrowed(&self.tables),
                report,
                trace: self.trace.as_ref().map(|bytes| STANDARD.encode(bytes)),
            })
        });
        line.map_err(|error| {
            ArchiveError::new(
                ErrorKind::Damaged,
                format!("the run {} cannot be exported", self.tables.run.run),
                format!("its report is damaged ({error})"),
                "deadweight archive check names all that is damaged",
            )
        })
    }

    /// Whether a text begins as a line of an export.
    #[must_use]
    pub fn is_line(text: &str) -> bool {
        text.trim_start().starts_with("{\"deadweight_archive\":")
    }

    /// Reads such a line.
    ///
    /// # Errors
    /// If it is none, or of a newer version.
    pub fn from_line(line: &str) -> Result<Self, ArchiveError> {
        let not = |why: String, todo: &str| {
            ArchiveError::new(ErrorKind::Refused, "a line of the export cannot be read", why, todo)
        };
        let again = "export it again; an interrupted export ends in the middle of a line";
        let read: Line<'_> =
            serde_json::from_str(line).map_err(|error| not(error.to_string(), again))?;
        if read.deadweight_archive > VERSION {
            let why = format!("it is of version {}", read.deadweight_archive);
            return Err(not(why, "use the deadweight that wrote it, or a newer one"));
        }
        let trace = read.trace.map(|text| STANDARD.decode(text)).transpose();
        Ok(Self {
            tables: read.tables.into_owned(),
            report_json: read.report.get().as_bytes().to_vec(),
            trace: trace.map_err(|error| not(format!("its trace: {error}"), again))?,
        })
    }
}

impl Archive {
    /// Hands every run to `take`, oldest first; with its trace if `traces` is set. Returns what is damaged: such runs are
    /// left out, and such traces.
    ///
    /// # Errors
    /// If the archive cannot be read, or as `take` fails.
    pub fn export<E: From<ArchiveError>>(
        &mut self,
        traces: bool,
        mut take: impl FnMut(&str) -> Result<(), E>,
    ) -> Result<Vec<ArchiveError>, E> {
        let mut damaged = Vec::new();
        let rows = self.database.rows("SELECT run FROM runs ORDER BY time, run", &[])?;
        for row in rows {
            let line = self.get(row[0].text()).and_then(|mut kept| {
                if traces {
                    kept.trace = whole(self.trace(row[0].text()), &mut damaged)?.flatten();
                }
                kept.to_line()
            });
            if let Some(line) = whole(line, &mut damaged)? {
                take(&line)?;
            }
        }
        Ok(damaged)
    }
}

/// Puts a failure aside that concerns one run only.
fn whole<T>(
    read: Result<T, ArchiveError>,
    damaged: &mut Vec<ArchiveError>,
) -> Result<Option<T>, ArchiveError> {
    match read {
        Err(error) if error.kind == ErrorKind::Damaged => damaged.push(error),
        read => return read.map(Some),
    }
    Ok(None)
}
