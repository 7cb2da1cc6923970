//! Call stacks and images in the text form: `sum (a.c:14) <- main (a.c:30) @app+0x1139`.
//!
//! A stack is written leaf first, user frames joined by `<-`, kernel frames by `<`. Not for unwinding.

use super::TextError;
use super::word::{Enclosed, Name, Quoted, Words, number};
use crate::ids::{ImageId, LocationId, StackId};
use crate::symbols::{Image, Location, SourceFrame, Symbols};
use crate::units::FileAddr;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write};

/// The path of the kernel as an image.
pub(super) const KERNEL: &str = "[kernel]";

/// The mode that a stack was taken in: it decides the separator of frames and the default image.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(super) enum Mode {
    /// The program's own frames.
    User,
    /// The kernel's.
    Kernel,
}

impl Mode {
    fn joint(self) -> &'static str {
        match self {
            Self::User => "<-",
            Self::Kernel => "<",
        }
    }
}

/// The images of a text with their short names.
#[derive(Default)]
pub(super) struct Images {
    handles: Vec<String>,
    /// The name of the user image that no line declares.
    pub(super) program: String,
}

impl Images {
    /// Gives the next image of the table the name `handle`.
    pub(super) fn declare(&mut self, symbols: &mut Symbols, handle: String, image: Image) {
        self.handles.push(handle);
        symbols.images.push(image);
    }

    /// Whether an image is called `handle`.
    pub(super) fn has(&self, handle: &str) -> bool {
        self.handles.iter().any(|h| h == handle)
    }

    /// The image called `handle`; a new one with that path if there is none.
    pub(super) fn find(&mut self, symbols: &mut Symbols, handle: &str) -> ImageId {
        if let Some(at) = self.handles.iter().position(|h| h == handle) {
            return ImageId::at(at);
        }
        let image = undeclared(symbols, handle);
        self.declare(symbols, handle.to_owned(), image);
        ImageId::at(self.handles.len() - 1)
    }

    /// The image of frames that name none; a new one if no line declares it.
    fn default_image(&mut self, symbols: &mut Symbols, mode: Mode) -> ImageId {
        if let Some(image) = default_image(symbols, mode) {
            return image;
        }
        let path = match mode {
            Mode::Kernel => KERNEL.to_owned(),
            Mode::User if self.program.is_empty() => "program".to_owned(),
            Mode::User => self.program.clone(),
        };
        self.find(symbols, &path)
    }
}

/// An image of which only the name is known.
pub(super) fn undeclared(symbols: &mut Symbols, path: &str) -> Image {
    Image { path: symbols.intern(path), has_symbols: true, has_lines: true, ..Image::default() }
}

/// The default image of frames in this mode: the kernel, or the first image that is a file (names in brackets such as
/// `[vdso]` are not files).
fn default_image(symbols: &Symbols, mode: Mode) -> Option<ImageId> {
    let is_default = |path: &str| match mode {
        Mode::Kernel => path == KERNEL,
        Mode::User => path.contains('/') || !(path.starts_with('[') && path.ends_with(']')),
    };
    symbols.images.iter().position(|i| is_default(symbols.name(i.path))).map(ImageId::at)
}

/// Reads a stack; an empty text is the empty stack.
pub(super) fn read_stack(
    words: &mut Words<'_>,
    symbols: &mut Symbols,
    images: &mut Images,
    mode: Mode,
) -> Result<StackId, TextError> {
    let mut stack = Vec::new();
    while !stack_ends(words) {
        stack.push(read_location(words, symbols, images, mode)?);
        if !words.keyword(mode.joint()) {
            if words.peek() == "@" {
                words.drop_rest();
            }
            return Ok(symbols.intern_stack(stack));
        }
    }
    if stack.is_empty() { Ok(StackId(0)) } else { Err(words.expected("a function")) }
}

fn stack_ends(words: &Words<'_>) -> bool {
    matches!(words.peek(), "" | ":" | "from" | "@")
}

/// Reads a frame with the frames inlined into it, and its address.
pub(super) fn read_location(
    words: &mut Words<'_>,
    symbols: &mut Symbols,
    images: &mut Images,
    mode: Mode,
) -> Result<LocationId, TextError> {
    let mut frames = Vec::new();
    while !words.starts_with('@') {
        frames.push(read_frame(words, symbols)?);
        if !words.keyword("in") {
            break;
        }
    }
    let (image, addr) = if words.starts_with('@') && words.peek() != "@" {
        words.take_char('@');
        read_address(words, symbols, images, mode)?
    } else {
        (images.default_image(symbols, mode), FileAddr(0))
    };
    Ok(symbols.intern_location(Location { image, addr, frames }))
}

fn read_frame(words: &mut Words<'_>, symbols: &mut Symbols) -> Result<SourceFrame, TextError> {
    let function = if words.keyword("?") { String::new() } else { words.name("a function")? };
    let mut frame = SourceFrame { function: symbols.intern(&function), ..SourceFrame::default() };
    if !words.take_char('(') {
        return Ok(frame);
    }
    let mut line = None;
    let file = if words.starts_with('"') {
        let file = words.quoted()?;
        if words.take_char(':') {
            line = Some(words.take_while(|c| c.is_ascii_digit()));
        }
        file
    } else {
        let place = words.take_while(|c| c != ')' && !c.is_whitespace());
        let (file, digits) = match place.rsplit_once(':') {
            Some((file, d)) if d.chars().all(|c| c.is_ascii_digit()) => (file, Some(d)),
            _ => (place, None),
        };
        line = digits;
        file.to_owned()
    };
    if let Some(digits) = line {
        frame.line = digits.parse().map_err(|_| words.expected("a line number"))?;
    }
    frame.file = symbols.intern(&file);
    if !words.take_char(')') {
        return Err(words.expected("a closing parenthesis (a file with blanks needs quotes)"));
    }
    words.end_word()?;
    Ok(frame)
}

/// Reads what follows an `@`.
pub(super) fn read_address(
    words: &mut Words<'_>,
    symbols: &mut Symbols,
    images: &mut Images,
    mode: Mode,
) -> Result<(ImageId, FileAddr), TextError> {
    let image = if words.starts_with('"') {
        let handle = words.quoted()?;
        images.find(symbols, &handle)
    } else if words.peek().starts_with("0x") {
        images.default_image(symbols, mode)
    } else {
        let word = words.peek();
        let handle = word.rfind("+0x").map_or(word, |at| &word[..at]);
        words.take_bytes(handle.len());
        images.find(symbols, handle)
    };
    words.take_char('+');
    let digits = words.take_while(|c| !c.is_whitespace());
    let addr = if digits.is_empty() { Some(0) } else { number(digits) };
    let addr = addr.ok_or_else(|| words.expected("@IMAGE+0xADDRESS"))?;
    words.end_word()?;
    Ok((image, FileAddr(addr)))
}

/// Writes stacks and images of one trace.
pub(super) struct Frames<'a> {
    symbols: &'a Symbols,
    handles: Vec<String>,
    default_images: [Option<ImageId>; 2],
    /// Whether functions with a name are written with their address too.
    addresses: bool,
}

impl<'a> Frames<'a> {
    pub(super) fn new(symbols: &'a Symbols, addresses: bool) -> Self {
        let mut handles: Vec<String> = Vec::with_capacity(symbols.images.len());
        let mut taken = BTreeSet::new();
        // How many tries each base name took so far: a crafted file has thousands of images with one name.
        let mut counts = BTreeMap::new();
        for image in &symbols.images {
            let path = symbols.name(image.path);
            let base = path.rsplit('/').next().unwrap_or(path);
            let mut handle = base.to_owned();
            let count = counts.entry(base).or_insert(1);
            while taken.contains(&handle) {
                *count += 1;
                handle = format!("{base}~{count}");
            }
            taken.insert(handle.clone());
            handles.push(handle);
        }
        let default_images = [Mode::User, Mode::Kernel].map(|mode| default_image(symbols, mode));
        Self { symbols, handles, default_images, addresses }
    }

    /// The short name of an image.
    pub(super) fn handle(&self, image: ImageId) -> &str {
        self.handles.get(image.index()).map_or("", String::as_str)
    }

    /// Whether anything is known of a location.
    pub(super) fn is_known(&self, location: LocationId) -> bool {
        self.symbols.locations.get(location.index()).is_some_and(|l| *l != Location::default())
    }

    /// Writes a stack, leaf first.
    pub(super) fn stack(&self, out: &mut dyn Write, stack: StackId, mode: Mode) -> fmt::Result {
        for (depth, location) in self.symbols.stack(stack).iter().enumerate() {
            if depth > 0 {
                write!(out, " {} ", mode.joint())?;
            }
            self.location(out, *location, mode)?;
        }
        Ok(())
    }

    /// Writes one location.
    pub(super) fn location(
        &self,
        out: &mut dyn Write,
        location: LocationId,
        mode: Mode,
    ) -> fmt::Result {
        let unknown = Location::default();
        let location = self.symbols.locations.get(location.index()).unwrap_or(&unknown);
        for (depth, frame) in location.frames.iter().enumerate() {
            if depth > 0 {
                out.write_str(" in ")?;
            }
            self.frame(out, frame)?;
        }
        let is_default = self.default_images[mode as usize] == Some(location.image);
        let blank = if location.frames.is_empty() { "" } else { " " };
        let handle = HandleInAddress(self.handle(location.image));
        let named = location.frames.iter().all(|f| f.function.0 != 0);
        let hidden = !self.addresses && named && !location.frames.is_empty();
        match (is_default, if hidden { 0 } else { location.addr.0 }) {
            (true, 0) if !location.frames.is_empty() => Ok(()),
            (true, addr) => write!(out, "{blank}@{addr:#x}"),
            (false, 0) => write!(out, "{blank}@{handle}"),
            (false, addr) => write!(out, "{blank}@{handle}+{addr:#x}"),
        }
    }

    /// Writes an image and an address.
    pub(super) fn address(
        &self,
        out: &mut dyn Write,
        image: ImageId,
        addr: FileAddr,
        mode: Mode,
    ) -> fmt::Result {
        if self.default_images[mode as usize] == Some(image) {
            return write!(out, " @{:#x}", addr.0);
        }
        write!(out, " @{}+{:#x}", HandleInAddress(self.handle(image)), addr.0)
    }

    fn frame(&self, out: &mut dyn Write, frame: &SourceFrame) -> fmt::Result {
        match self.symbols.name(frame.function) {
            "" => out.write_char('?')?,
            function => write!(out, "{}", Name(function))?,
        }
        let file = self.symbols.name(frame.file);
        if file.is_empty() && frame.line == 0 {
            return Ok(());
        }
        let numbered = |f: &str| {
            f.rsplit_once(':').is_some_and(|(_, d)| d.chars().all(|c| c.is_ascii_digit()))
        };
        match frame.line {
            0 if numbered(file) => write!(out, " ({})", Quoted(file)),
            0 => write!(out, " ({})", Enclosed(file, &['(', ')'])),
            line => write!(out, " ({}:{line})", Enclosed(file, &['(', ')'])),
        }
    }
}

/// An image's short name after `@`: it must not look like an address, nor contain one.
struct HandleInAddress<'a>(&'a str);

impl fmt::Display for HandleInAddress<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.starts_with("0x") || self.0.contains("+0x") {
            Quoted(self.0).fmt(f)
        } else {
            Name(self.0).fmt(f)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Printing a file of 1700 bytes took seconds: each name was compared with all others.
    #[test]
    fn images_of_one_name_have_handles_of_their_own() {
        let mut symbols = Symbols::default();
        let path = symbols.intern("/lib/same");
        symbols.images = vec![Image { path, ..Image::default() }; 5_000];
        let frames = Frames::new(&symbols, false);
        let handles: BTreeSet<_> = frames.handles.iter().collect();
        assert_eq!(handles.len(), 5_000);
        assert_eq!(frames.handle(ImageId::at(0)), "same");
        assert_eq!(frames.handle(ImageId::at(4_999)), "same~5000");
    }
}
