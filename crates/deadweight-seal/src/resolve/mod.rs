//! Code addresses of one binary into frames: everything that is read of a file, in one call.
//!
//! - In: the bytes of a binary and of its debug files, and addresses.
//! - Out: frames, language and compiler (`producer`, from `DW_AT_producer`), warnings.
//! - Must not know: traces, or how files are opened.
//!
//! It opens no file but parts of split debug information, so that tests can pass any bytes. What cannot be read is left empty, with a
//! warning.

mod fetched;
mod producer;

use crate::dwarf::lines;
use crate::dwarf::split::Split;
use crate::elf::Files;
use crate::frame::Frame;
use crate::names::crystal::is_crystal;
use crate::names::demangle::demangle;
use crate::names::pclntab::Table;
use crate::names::rust;
use crate::names::symbol_table;
use object::{Object, ReadRef};

pub use fetched::{is_build, missing_supplement, resolve_fetched};
pub use producer::BinaryInfo;

/// Facts about a binary, and frames of the requested addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resolved {
    /// Facts about the binary.
    pub info: BinaryInfo,
    /// For each address its frames, innermost first; at least one, empty where unknown.
    pub frames: Vec<Vec<Frame>>,
    /// Entry points of the program, for functions that no table names.
    pub entry_points: Vec<(u64, &'static str)>,
    /// Problems of the file, in words that follow its name.
    pub warnings: Vec<String>,
}

/// How much to resolve of an address.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Detail {
    /// The function of the machine code.
    Functions,
    /// Also lines and inlined functions.
    Lines,
}

/// Resolves `addresses`, in any order, in `files`.
pub fn resolve<'d, R: ReadRef<'d>>(
    files: Files<'_, R>,
    addresses: &[u64],
    detail: Detail,
) -> Resolved {
    let mut sorted = addresses.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    let mut resolved = in_order(files, &sorted, detail);
    let frames = addresses.iter().map(|address| {
        let found = sorted.binary_search(address).ok().and_then(|at| resolved.frames.get(at));
        found.filter(|frames| !frames.is_empty()).cloned().unwrap_or_else(|| vec![Frame::default()])
    });
    resolved.frames = frames.collect();
    resolved
}

fn in_order<'d, R: ReadRef<'d>>(
    files: Files<'_, R>,
    addresses: &[u64],
    detail: Detail,
) -> Resolved {
    let mut resolved = Resolved::default();
    let file = match object::File::parse(files.binary) {
        Ok(file) => file,
        Err(error) => {
            resolved
                .warnings
                .push(format!("is a broken ELF file ({error}); its code has no names"));
            return resolved;
        }
    };
    let parsed = |bytes: Option<R>| bytes.and_then(|bytes| object::File::parse(bytes).ok());
    let (separate, shared) = (parsed(files.debug), parsed(files.shared));
    let debug_file = separate.as_ref().unwrap_or(&file);
    let sections = (detail == Detail::Lines)
        .then(|| lines::Sections::read(debug_file, shared.as_ref()))
        .flatten();
    let context = sections.as_ref().and_then(|sections| match sections.context() {
        Ok(context) => Some(context),
        Err(error) => {
            resolved
                .warnings
                .push(format!("has broken debug information ({error}); no line of it is known"));
            None
        }
    });
    let described = file.section_by_name(".debug_info").is_some();
    if described && sections.is_none() && detail == Detail::Lines {
        resolved
            .warnings
            .push("has debug information that cannot be read; no line of it is known".to_owned());
    }
    let go = Table::read(&file).filter(|_| context.is_none());
    let mut split = Split::new(sections.as_ref().map(lines::Sections::endian));
    let has_parts = context.as_ref().is_some_and(|c| split.find(c, addresses, files.path));
    let with_parts = sections.as_ref().filter(|_| has_parts).and_then(|s| s.context().ok());
    let context = with_parts.or(context);
    resolved.frames = addresses
        .iter()
        .map(|address| match (&context, &go) {
            (Some(context), _) => lines::find(context, *address, &split),
            (None, Some(go)) => go.find(*address).into_iter().collect(),
            (None, None) => Vec::new(),
        })
        .collect();
    resolved.warnings.extend(split.warning());
    name_machine_functions(&file, separate.as_ref(), addresses, &mut resolved.frames);
    make_readable(&mut resolved.frames);
    resolved.entry_points = symbol_table::entry_points(&file);
    resolved.info = producer::read(debug_file, context.as_ref().map(|c| (c, &split)), addresses);
    if resolved.info.language.is_empty() && separate.is_some() {
        resolved.info = producer::read(&file, None, addresses);
    }
    judge_lines(&mut resolved, context.is_some());
    resolved.info.has_symbols = context.is_some()
        || go.is_some()
        || [Some(&file), separate.as_ref()].into_iter().flatten().any(|f| f.symbols().count() > 0);
    resolved
}

/// Readable names for linker names, and paths for names without.
fn make_readable(frames: &mut [Vec<Frame>]) {
    // Addresses in order are often of one function after the other.
    let mut last = (String::new(), String::new());
    for frame in frames.iter_mut().flatten() {
        // Code without a line may have the file of the code around it.
        let path = (frame.line > 0).then(|| rust::path(&frame.function, &frame.file));
        if let Some(path) = path.flatten() {
            frame.function = path;
            continue;
        }
        if frame.function != last.0 {
            let name = demangle(&frame.function);
            last = (std::mem::take(&mut frame.function), name);
        }
        frame.function.clone_from(&last.1);
    }
}

/// Whether the program's own code has lines, with a warning if debug information has none for it.
fn judge_lines(resolved: &mut Resolved, described: bool) {
    let (own, lined) = own_lines(&resolved.frames);
    resolved.info.has_lines = own > 0 && lined * 2 >= own;
    if described && own > 0 && lined == 0 {
        resolved.warnings.push(
            "has debug information without lines for the code that ran: it is damaged, or covers \
             other code. Only functions are shown"
                .to_owned(),
        );
    }
}

/// How many addresses are in the program's own functions, and how many of these have a line. A program without debug
/// information may be linked to a runtime that has some, and the reverse. Start-up code (`_start`) never has any.
fn own_lines(frames: &[Vec<Frame>]) -> (usize, usize) {
    let own = |frames: &&Vec<Frame>| frames.last().is_none_or(|last| !is_reserved(&last.function));
    let own: Vec<_> = frames.iter().filter(own).collect();
    let lined = own.iter().filter(|frames| frames.iter().any(|frame| frame.line > 0)).count();
    (own.len(), lined)
}

/// Names outermost frames without a name from symbol tables; also frames with a reserved name, which a library may
/// export under its public name (`malloc`), and frames of Crystal, whose debug information lacks the type of a
/// method.
fn name_machine_functions<'d, R: ReadRef<'d>>(
    file: &object::File<'d, R>,
    separate: Option<&object::File<'d, R>>,
    addresses: &[u64],
    frames: &mut [Vec<Frame>],
) {
    for source in [separate, Some(file)].into_iter().flatten() {
        let unnamed = |frames: &[Frame]| {
            frames
                .last()
                .is_none_or(|last| is_reserved(&last.function) || last.file.ends_with(".cr"))
        };
        let missing: Vec<usize> =
            (0..addresses.len()).filter(|at| frames.get(*at).is_some_and(|f| unnamed(f))).collect();
        if missing.is_empty() {
            return;
        }
        let wanted: Vec<u64> = missing.iter().map(|at| addresses[*at]).collect();
        for (at, name) in missing.into_iter().zip(symbol_table::find(source, &wanted)) {
            let Some(name) = name else { continue };
            match frames[at].last_mut() {
                Some(last) => {
                    let known = &mut last.function;
                    let better =
                        || symbol_table::alias_rank(&name) < symbol_table::alias_rank(known);
                    if known.is_empty() || is_crystal(&name) || better() {
                        *known = name;
                    }
                }
                None => frames[at].push(Frame { function: name, ..Frame::default() }),
            }
        }
    }
}

/// Whether a linker name is reserved for compilers and libraries.
fn is_reserved(name: &str) -> bool {
    let mangled = name.starts_with("_Z") || name.starts_with("_R");
    name.is_empty() || (name.starts_with('_') && !mangled)
}
