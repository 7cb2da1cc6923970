//! Names of processes, threads, rows and frames, the same in every format.
//!
//! Names come from foreign programs: control characters are taken out here. A format does its own quoting.

use deadweight_core::{OneRun, PathSlice, StackTime};
use deadweight_report::account::AccountId;
use deadweight_trace::ids::TaskId;
use deadweight_trace::symbols::{Location, SourceFrame, Symbols};
use std::borrow::Cow;

/// A frame as other tools know it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Frame<'s> {
    /// Function, or binary and address where it has no name; in brackets what happened in the kernel.
    pub(crate) function: Cow<'s, str>,
    /// Source file, or empty.
    pub(crate) file: Cow<'s, str>,
    /// Line, or 0.
    pub(crate) line: u32,
    /// Binary, or empty.
    pub(crate) image: Cow<'s, str>,
}

/// Whether a character may reach a file that is shown on a terminal.
fn is_plain(c: char) -> bool {
    // Marks that reorder text would make a name look like another one.
    let reorders =
        matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    !c.is_control() && !reorders
}

/// The text without control characters.
pub(crate) fn plain(text: &str) -> Cow<'_, str> {
    if text.chars().all(is_plain) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.chars().map(|c| if is_plain(c) { c } else { '\u{fffd}' }).collect())
}

/// A frame of a stack.
pub(crate) fn frame<'s>(
    symbols: &'s Symbols,
    (location, frame): (&Location, &SourceFrame),
) -> Frame<'s> {
    let image = symbols.images.get(location.image.index()).map_or("", |i| symbols.name(i.path));
    let function = match symbols.name(frame.function) {
        "" => {
            let file = image.rsplit('/').next().unwrap_or(image);
            Cow::Owned(format!("{}+{:#x}", plain(file), location.addr.0))
        }
        name => plain(name),
    };
    let file = plain(symbols.name(frame.file));
    Frame { function, file, line: frame.line, image: plain(image) }
}

/// The frames of some time, root first; the event is the leaf.
pub(crate) fn frames<'s>(symbols: &'s Symbols, time: &StackTime) -> Vec<Frame<'s>> {
    let mut frames: Vec<_> = time.frames(symbols).map(|at| frame(symbols, at)).collect();
    frames.reverse();
    if !time.event.is_empty() {
        let function = Cow::Owned(format!("[{}]", plain(&time.event)));
        frames.push(Frame { function, ..Frame::default() });
    }
    frames
}

/// The name of a task's process.
pub(crate) fn process(run: &OneRun<'_, '_>, task: TaskId) -> String {
    plain(&run.process_name(task)).into_owned()
}

/// The last name of a task.
pub(crate) fn thread(run: &OneRun<'_, '_>, task: TaskId) -> String {
    let of = run.timeline().task(task);
    match run.symbols().name(of.name_at(of.end)) {
        "" => format!("thread {}", of.tid.0),
        name => plain(name).into_owned(),
    }
}

/// The names that come before a stack: its row, its process, and its thread if that has a name of its own.
pub(crate) fn roots(run: &OneRun<'_, '_>, time: &StackTime) -> Vec<String> {
    let (process, thread) = (process(run, time.task), thread(run, time.task));
    let mut roots = vec![time.account.name().to_owned(), process];
    // The kernel keeps 15 bytes of a name.
    if !roots[1].starts_with(&thread) {
        roots.push(thread);
    }
    roots
}

/// The row of a part of the path, by its span. Samples divide the own time of a program only in sums.
pub(crate) fn row_of_slice(slice: &PathSlice) -> &'static str {
    slice.account.map_or("ready, without a CPU", AccountId::name)
}
