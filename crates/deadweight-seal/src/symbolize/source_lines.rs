//! The text of source lines that were hit, where the sources are still there.
//!
//! A report shows them beside a call site. Not needed to resolve addresses.

use deadweight_trace::ids::{ImageId, NameId};
use deadweight_trace::symbols::{JIT_IMAGE, Symbols};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

/// Larger files are not read: they are generated.
const LARGEST: u64 = 4 << 20;

/// How many files are read at most.
const MOST_FILES: usize = 2_000;

/// Longer lines are cut.
const LONGEST: usize = 200;

/// Puts the text of every line that a frame names into `symbols`.
pub(crate) fn keep(symbols: &mut Symbols) {
    let mut wanted: BTreeMap<NameId, BTreeSet<u32>> = BTreeMap::new();
    // A perf map may name any file as the source of JIT code: none is opened for that.
    let is_jit = |image: ImageId| {
        symbols.images.get(image.index()).is_some_and(|image| symbols.name(image.path) == JIT_IMAGE)
    };
    let locations = symbols.locations.iter().filter(|location| !is_jit(location.image));
    for frame in locations.flat_map(|location| &location.frames) {
        if frame.file != NameId(0) && frame.line > 0 {
            wanted.entry(frame.file).or_default().insert(frame.line);
        }
    }
    for (file, lines) in wanted.into_iter().take(MOST_FILES) {
        let path = symbols.name(file);
        // A relative path is relative to the compiler's directory, which is not known.
        let readable = path.starts_with('/')
            && fs::metadata(path).is_ok_and(|found| found.is_file() && found.len() <= LARGEST);
        let Some(text) = readable.then(|| fs::read(path).ok()).flatten() else { continue };
        let text = String::from_utf8_lossy(&text);
        let mut rest = text.lines().enumerate();
        for line in lines {
            let Ok(before) = usize::try_from(line - 1) else { continue };
            let Some((_, found)) = rest.find(|(number, _)| *number == before) else { break };
            let short: String = found.trim().chars().take(LONGEST).collect();
            if !short.is_empty() {
                let short = symbols.intern(&short);
                symbols.source.insert((file, line), short);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use deadweight_trace::symbols::{Location, SourceFrame};

    #[test]
    fn lines_that_exist_are_kept() {
        let mut symbols = Symbols::default();
        let file =
            symbols.intern(concat!(env!("CARGO_MANIFEST_DIR"), "/src/symbolize/source_lines.rs"));
        let gone = symbols.intern("/nowhere/gone.c");
        let frame = |file, line| SourceFrame { function: NameId(0), file, line };
        let frames = vec![frame(file, 4), frame(file, 1), frame(file, 1_000_000), frame(gone, 1)];
        symbols.locations.push(Location { frames, ..Location::default() });
        keep(&mut symbols);
        let kept: Vec<_> =
            symbols.source.iter().map(|((_, line), text)| (*line, symbols.name(*text))).collect();
        assert_eq!(
            kept,
            [
                (
                    1,
                    "//! The text of source lines that were hit, where the sources are still there."
                ),
                (4, ""),
            ][..1]
        );
    }
}
