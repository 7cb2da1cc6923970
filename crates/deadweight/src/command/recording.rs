//! Reads recordings from files, in their binary or their text form.

use crate::failure::Failure;
use deadweight_trace::Trace;
use deadweight_trace::binary::ReadError;
use std::io::Read;
use std::path::Path;

/// Reads a recording, sealed or as text.
pub(crate) fn read(path: &Path) -> Result<Trace, Failure> {
    of(&bytes(path)?, path)
}

/// The bytes of the file; `-` is standard input.
pub(crate) fn bytes(path: &Path) -> Result<Vec<u8>, Failure> {
    if path == Path::new("-") {
        let mut bytes = Vec::new();
        let read = std::io::stdin().lock().read_to_end(&mut bytes);
        return read
            .map(|_| bytes)
            .map_err(|source| Failure::Read { path: "standard input".into(), source });
    }
    std::fs::read(path).map_err(|source| Failure::Read { path: path.to_owned(), source })
}

/// The recording that the file at `path` held.
pub(crate) fn of(bytes: &[u8], path: &Path) -> Result<Trace, Failure> {
    let not = |why: String| Failure::Recording { path: path.to_owned(), why };
    match Trace::from_bytes(bytes) {
        // Missing or damaged parts are in the trace's own warnings.
        Ok((trace, _)) => Ok(trace),
        Err(ReadError::NotATrace) => {
            let neither =
                "it is neither a recording of `deadweight record` nor the text form of one";
            let text = std::str::from_utf8(bytes).map_err(|_| not(neither.into()))?;
            // In any other text, the first line that cannot be read says nothing.
            let has_tasks = text.lines().any(|line| line.starts_with("task "));
            Trace::from_text(text)
                .map_err(|error| not(if has_tasks { error.to_string() } else { neither.into() }))
        }
        Err(error) => Err(not(error.to_string())),
    }
}
