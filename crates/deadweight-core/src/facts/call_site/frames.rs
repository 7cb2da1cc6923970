//! The program's own frames of a stack as places: for findings whose place is not the innermost one.

use super::{CallSite, frame_text, image_path, is_own};
use deadweight_report::report::Site;
use deadweight_trace::ids::StackId;
use deadweight_trace::symbols::{Location, SourceFrame, Symbols};

/// A frame with the address that it belongs to.
pub(crate) type Frame<'s> = (&'s Location, &'s SourceFrame);

/// The program's own frames of a stack, innermost first.
pub(crate) fn own_frames(symbols: &Symbols, stack: StackId) -> Vec<Frame<'_>> {
    let frames = CallSite::Stack(stack).frames(symbols);
    frames.filter(|(location, frame)| is_own(symbols, location, frame)).collect()
}

/// Frame number `depth` of these as a place, with the frames behind it as its callers and no share; none if there are
/// fewer.
pub(crate) fn site_at(symbols: &Symbols, frames: &[Frame<'_>], depth: usize) -> Option<Site> {
    let (location, frame) = frames.get(depth)?;
    Some(Site {
        function: symbols.name(frame.function).to_owned(),
        file: symbols.name(frame.file).to_owned(),
        line: frame.line,
        image: image_path(symbols, location).to_owned(),
        share: 0.0,
        count: 0,
        chain: frames[depth + 1..].iter().map(|(_, frame)| frame_text(symbols, frame)).collect(),
        source: String::new(),
    })
}
