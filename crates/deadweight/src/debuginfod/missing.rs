//! Which binaries of a trace have no symbols, and the trace with what was found. Opens nothing.

use super::exchange::{Found, Named, Question, Wanted};
use deadweight_seal::referenced_addresses;
use deadweight_trace::ids::{ImageId, NameId, StackId};
use deadweight_trace::symbols::{FunctionCode, Image, SourceFrame, Symbols, is_c_library};
use deadweight_trace::units::FileAddr;
use deadweight_trace::{Kind, Trace};
use std::collections::{BTreeMap, BTreeSet};

/// Of more binaries in a report, those with fewest samples are not asked for.
const MOST: usize = 24;

/// A binary in a smaller part of the stacks is minor.
const MINOR: f64 = 0.02;

/// What was found, by build-id and address.
pub(super) type ByBuildId = BTreeMap<String, (Found, BTreeMap<u64, Vec<Named>>)>;

/// The binaries that traces lack symbols of and that are in their stacks, those with most samples first.
pub(super) fn of(traces: &[Trace]) -> Vec<Wanted> {
    let lacks = |trace: &Trace| {
        let mut images = (0..).map(ImageId::at).zip(&trace.symbols.images);
        images.any(|(id, image)| wanted(&trace.symbols, id, image).is_some())
    };
    // Most often nothing is missing: then the events need not be read.
    if !traces.iter().any(lacks) {
        return Vec::new();
    }
    let mut found: BTreeMap<String, (u64, Wanted, BTreeSet<u64>)> = BTreeMap::new();
    let mut stacks = 0;
    for trace in traces {
        let (hits, all) = hits(trace);
        stacks += all;
        for (id, image) in (0..).map(ImageId::at).zip(&trace.symbols.images) {
            let Some(wanted) = wanted(&trace.symbols, id, image) else { continue };
            let entry = found.entry(wanted.build_id.clone()).or_insert_with(|| {
                let empty = Wanted { addresses: Vec::new(), ..wanted.clone() };
                (0, empty, BTreeSet::new())
            });
            entry.0 += hits.get(&id).copied().unwrap_or_default();
            entry.2.extend(wanted.addresses);
        }
    }
    let mut all: Vec<_> = found.into_values().collect();
    all.sort_by_key(|(hits, ..)| std::cmp::Reverse(*hits));
    let minor = stacks as f64 * MINOR;
    let complete = |(hits, wanted, addresses): (u64, Wanted, BTreeSet<u64>)| Wanted {
        addresses: addresses.into_iter().collect(),
        is_minor: (hits as f64) < minor,
        ..wanted
    };
    all.into_iter().take(MOST).map(complete).collect()
}

/// What an image lacks; none if it has symbols, cannot be asked for, or no stack shows it.
fn wanted(symbols: &Symbols, id: ImageId, image: &Image) -> Option<Wanted> {
    let build_id = symbols.name(image.build_id);
    let path = symbols.name(image.path);
    if image.has_symbols || build_id.is_empty() {
        return None;
    }
    let name = file_name(path);
    let of_image = symbols.locations.iter().skip(1).filter(|location| location.image == id);
    // Of the C library lines are not wanted, and most of its functions are known because it exports them.
    let lines = !is_c_library(path);
    let is_named = |frames: &[SourceFrame]| {
        frames.last().is_some_and(|last| !is_placeholder(symbols.name(last.function), name))
    };
    let lacking = of_image.filter(|location| lines || !is_named(&location.frames));
    let code = symbols.code.iter().filter(|code| lines && code.image == id);
    let code = code.flat_map(|code| {
        let unnamed = unnamed_callees(symbols, code).into_iter().map(FileAddr);
        unnamed.chain([code.addr])
    });
    // A recording as text may lack the addresses of named functions.
    let addresses: Vec<u64> = lacking
        .map(|location| location.addr)
        .chain(code)
        .map(|address| address.0)
        .filter(|address| *address != 0)
        .collect();
    let (build_id, name) = (build_id.to_owned(), name.to_owned());
    let wanted = Wanted { build_id, name, is_minor: false, lines, addresses };
    (!wanted.addresses.is_empty()).then_some(wanted)
}

/// What a function's code refers to that has no name.
fn unnamed_callees(symbols: &Symbols, code: &FunctionCode) -> Vec<u64> {
    let language = symbols.images.get(code.image.index()).map(|image| symbols.name(image.language));
    let mut all = referenced_addresses(code.addr.0, &code.bytes, language.unwrap_or_default());
    all.retain(|address| !code.targets.iter().any(|(named, _)| named.0 == *address));
    all
}

/// How many samples and other events have each image in their stack, and how many have a stack.
fn hits(trace: &Trace) -> (BTreeMap<ImageId, u64>, u64) {
    let mut of_stack: BTreeMap<StackId, u64> = BTreeMap::new();
    for event in trace.events() {
        match event.kind {
            Kind::Sample { stack, .. } | Kind::Site(stack) | Kind::Probe { stack, .. } => {
                *of_stack.entry(stack).or_default() += 1;
            }
            _ => {}
        }
    }
    let all = of_stack.values().sum();
    let mut of_image = BTreeMap::new();
    for (stack, hits) in of_stack {
        let locations = trace.symbols.stacks.get(stack.index()).into_iter().flatten();
        let images = locations.filter_map(|at| trace.symbols.locations.get(at.index()));
        let images: BTreeSet<ImageId> = images.map(|location| location.image).collect();
        images.into_iter().for_each(|image| *of_image.entry(image).or_default() += hits);
    }
    (of_image, all)
}

/// The answer's parts by build-id and address.
pub(super) fn by_build_id(question: &Question, answers: Vec<Option<Found>>) -> ByBuildId {
    let parts = question.images.iter().zip(answers).filter_map(|(wanted, found)| {
        let mut found = found?;
        let frames = std::mem::take(&mut found.frames);
        let frames = wanted.addresses.iter().copied().zip(frames).collect();
        Some((wanted.build_id.clone(), (found, frames)))
    });
    parts.collect()
}

/// Puts names and lines into the tables.
pub(super) fn fill(symbols: &mut Symbols, found: &ByBuildId) {
    for id in (0..symbols.images.len()).map(ImageId::at) {
        let image = &symbols.images[id.index()];
        let build_id = symbols.name(image.build_id);
        let Some((facts, frames)) = found.get(build_id).filter(|_| !image.has_symbols) else {
            continue;
        };
        let name = file_name(symbols.name(image.path)).to_owned();
        fill_locations(symbols, (id, &name), frames);
        fill_code(symbols, (id, &name), frames);
        let (language, producer) =
            (symbols.intern(&facts.language), symbols.intern(&facts.producer));
        let image = &mut symbols.images[id.index()];
        image.has_symbols = facts.has_symbols;
        image.has_lines |= facts.has_lines;
        if language != NameId(0) {
            (image.language, image.producer, image.optimised) =
                (language, producer, facts.optimised);
        }
    }
}

fn fill_locations(
    symbols: &mut Symbols,
    (image, name): (ImageId, &str),
    frames: &BTreeMap<u64, Vec<Named>>,
) {
    for at in 1..symbols.locations.len() {
        let location = &symbols.locations[at];
        let Some(new) = frames.get(&location.addr.0).filter(|_| location.image == image) else {
            continue;
        };
        if new.last().is_none_or(|(function, ..)| function.is_empty()) {
            continue;
        }
        // A function that the binary exports keeps its public name.
        let known = location.frames.last().map(|last| last.function).unwrap_or_default();
        let keeps = !is_placeholder(symbols.name(known), name);
        let mut new: Vec<SourceFrame> = new.iter().map(|frame| interned(symbols, frame)).collect();
        if let Some(last) = new.last_mut().filter(|_| keeps) {
            last.function = known;
        }
        symbols.locations[at].frames = new;
    }
}

/// The names of functions whose machine code the trace has, and of those that they call.
fn fill_code(
    symbols: &mut Symbols,
    (image, name): (ImageId, &str),
    frames: &BTreeMap<u64, Vec<Named>>,
) {
    for at in 0..symbols.code.len() {
        let code = &symbols.code[at];
        if code.image != image {
            continue;
        }
        let function = |address: u64| {
            let last = frames.get(&address).and_then(|frames| frames.last());
            last.map(|(function, ..)| function).filter(|function| !function.is_empty())
        };
        let own = function(code.addr.0).filter(|_| is_placeholder(symbols.name(code.name), name));
        let callees: Vec<(u64, &String)> = unnamed_callees(symbols, code)
            .into_iter()
            .filter_map(|address| Some((address, function(address)?)))
            .collect();
        if let Some(own) = own {
            symbols.code[at].name = symbols.intern(own);
        }
        for (address, callee) in callees {
            let callee = symbols.intern(callee);
            symbols.code[at].targets.push((FileAddr(address), callee));
        }
        symbols.code[at].targets.sort_unstable();
    }
}

fn interned(symbols: &mut Symbols, (function, file, line): &Named) -> SourceFrame {
    SourceFrame { function: symbols.intern(function), file: symbols.intern(file), line: *line }
}

/// Whether a function has no name but its address: `zstd+0xf8140`.
fn is_placeholder(function: &str, file_name: &str) -> bool {
    let address = function.strip_prefix(file_name).and_then(|rest| rest.strip_prefix("+0x"));
    function.is_empty()
        || address.is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests;
