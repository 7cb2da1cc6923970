//! The end of sealing: every address that was hit gets its frames.
//!
//! - In: the trace's tables with bare addresses, and the images.
//! - Out: frames, facts about images, types of values (`values`), source text (`source_lines`) in
//!   the tables.
//! - Must not know: how ELF files are read; see `resolve`.
//!
//! One image after the other, so that only one is in memory at a time.

mod kernel_symbols;
mod libc_variants;
mod python_collector;
mod source_lines;
mod values;

use self::kernel_symbols::{KernelNames, LIST};
use self::libc_variants::Variants;
use crate::elf::debug_files::SeparateDebug;
use crate::frame::Frame;
use crate::host::Host;
use crate::images::Images;
use crate::memory_budget::can_read_lines;
use crate::resolve::{Detail, Resolved, resolve};
use deadweight_trace::ids::{ImageId, LocationId};
use deadweight_trace::symbols::{JIT_IMAGE, SourceFrame, Symbols, is_c_library};
use std::collections::BTreeMap;

pub(crate) use values::name_values;

const TOO_LITTLE_MEMORY: &str = "too little memory was left to read its lines: its functions are known, inlined functions and lines are not";

/// The locations of each image.
fn by_image(symbols: &Symbols) -> BTreeMap<ImageId, Vec<LocationId>> {
    let mut of_image: BTreeMap<ImageId, Vec<LocationId>> = BTreeMap::new();
    for (at, location) in symbols.locations.iter().enumerate().skip(1) {
        of_image.entry(location.image).or_default().push(LocationId::at(at));
    }
    of_image
}

/// Names the kernel's locations. Comes first: the list of kernel symbols is cached in a file, and later no file may
/// be written.
pub(crate) fn name_kernel_functions(symbols: &mut Symbols, images: &mut Images) {
    for (image, locations) in by_image(symbols) {
        if images.is_kernel(image) {
            name_kernel_locations(symbols, images, &locations);
        }
    }
}

/// Gives every other location its frames, and sets the facts about every image that was hit.
pub(crate) fn symbolize(symbols: &mut Symbols, images: &mut Images, host: &Host) {
    let mut variants = None;
    for (image, locations) in by_image(symbols) {
        if images.is_kernel(image) {
            continue;
        }
        let addresses: Vec<u64> =
            locations.iter().map(|at| symbols.locations[at.index()].addr.0).collect();
        if name_jit_code(symbols, images, image, &locations) {
            continue;
        }
        let Some(mut resolved) = read(symbols, images, image, &addresses, host) else { continue };
        if resolved.info.language == "Python" {
            resolved.entry_points.extend(python_collector::find(images, image));
        }
        let variants = variants.get_or_insert_with(Variants::of_this_process);
        name_by_bounds(symbols, images, image, &addresses, variants, &mut resolved);
        for (at, frames) in locations.iter().zip(&resolved.frames) {
            let frames = frames.iter().map(|frame| interned(symbols, frame)).collect();
            symbols.locations[at.index()].frames = frames;
        }
        set_info(symbols, image, &resolved);
    }
    for location in symbols.locations.iter_mut().skip(1) {
        if location.frames.is_empty() {
            location.frames.push(SourceFrame::default());
        }
    }
    source_lines::keep(symbols);
}

/// Names JIT code from its process's perf map. Returns whether the map names any of it.
fn name_jit_code(
    symbols: &mut Symbols,
    images: &mut Images,
    image: ImageId,
    locations: &[LocationId],
) -> bool {
    let mut sorted = locations.to_vec();
    sorted.sort_unstable_by_key(|at| symbols.locations[at.index()].addr);
    let addresses: Vec<u64> =
        sorted.iter().map(|at| symbols.locations[at.index()].addr.0).collect();
    let Some((map, names)) = images.listed(image, &addresses) else { return false };
    if let Some(warning) = names.warning {
        images.warn(&map, &warning);
    }
    if names.frames.iter().all(Option::is_none) {
        return false;
    }
    for (at, frame) in sorted.iter().zip(&names.frames) {
        let frames = frame.iter().map(|frame| interned(symbols, frame)).collect();
        symbols.locations[at.index()].frames = frames;
    }
    let path = symbols.intern(JIT_IMAGE);
    let image = &mut symbols.images[image.index()];
    (image.path, image.has_symbols) = (path, true);
    true
}

fn interned(symbols: &mut Symbols, frame: &Frame) -> SourceFrame {
    SourceFrame {
        function: symbols.intern(&frame.function),
        file: symbols.intern(&frame.file),
        line: frame.line,
    }
}

/// Reads an image's file; none for code that is in no file.
fn read(
    symbols: &Symbols,
    images: &mut Images,
    image: ImageId,
    addresses: &[u64],
    host: &Host,
) -> Option<Resolved> {
    let path = symbols.images.get(image.index()).map_or("", |image| symbols.name(image.path));
    let detail = if is_c_library(path) { Detail::Functions } else { Detail::Lines };
    let resolved = match images.content(image) {
        Ok(content) => {
            let separate = SeparateDebug::of(&content, images.file_of(image).map(|(path, _)| path));
            let files = separate.files(&content);
            let has_memory = detail == Detail::Functions || can_read_lines(host, &files);
            let detail = if has_memory { detail } else { Detail::Functions };
            let mut resolved = resolve(files, addresses, detail);
            resolved.warnings.extend((!has_memory).then(|| TOO_LITTLE_MEMORY.to_owned()));
            Ok(resolved)
        }
        Err(why) => Err(why),
    };
    let warnings = match &resolved {
        Ok(resolved) => resolved.warnings.clone(),
        Err(why) if why.is_empty() => Vec::new(),
        Err(why) => vec![format!("{why}; its code has no names")],
    };
    for warning in warnings {
        images.warn(path, &warning);
    }
    resolved.ok()
}

/// Names functions without a symbol by their start, so that their samples stay together: `libgc.so.1+0x1234`. Variants
/// of a C library function get its public name.
fn name_by_bounds(
    symbols: &Symbols,
    images: &mut Images,
    image: ImageId,
    addresses: &[u64],
    variants: &Variants,
    resolved: &mut Resolved,
) {
    let Resolved { frames, entry_points, .. } = resolved;
    let path = symbols.images.get(image.index()).map_or("", |image| symbols.name(image.path));
    let short = path.rsplit('/').next().unwrap_or(path);
    for (address, frames) in addresses.iter().zip(frames) {
        let Some(last) = frames.last_mut() else { continue };
        if !last.function.is_empty() && !last.function.starts_with("__") {
            continue;
        }
        let bounds = images.call_frames(image).and_then(|known| known.bounds(*address));
        let Some((start, _)) = bounds else { continue };
        let file = images.file_of(image).map(|(_, file)| file);
        let entry_point =
            || entry_points.iter().find(|(at, _)| *at == start).map(|(_, name)| *name);
        let variant = file.and_then(|file| variants.name(file, start)).or_else(entry_point);
        match variant {
            Some(variant) => variant.clone_into(&mut last.function),
            None if last.function.is_empty() => last.function = format!("{short}+{start:#x}"),
            None => {}
        }
    }
}

fn set_info(symbols: &mut Symbols, image: ImageId, resolved: &Resolved) {
    let info = &resolved.info;
    let (language, producer) = (symbols.intern(&info.language), symbols.intern(&info.producer));
    let Some(image) = symbols.images.get_mut(image.index()) else { return };
    (image.language, image.producer, image.optimised) = (language, producer, info.optimised);
    (image.has_symbols, image.has_lines) = (info.has_symbols, info.has_lines);
}

fn name_kernel_locations(symbols: &mut Symbols, images: &mut Images, locations: &[LocationId]) {
    let names = KernelNames::load().unwrap_or_default();
    if names.is_empty() {
        images
            .warnings
            .push(format!("{LIST} hides kernel addresses: what the kernel waited for is unknown"));
    }
    for at in locations {
        let name = names.find(symbols.locations[at.index()].addr.0).unwrap_or_default();
        let function = symbols.intern(&name);
        symbols.locations[at.index()].frames =
            vec![SourceFrame { function, ..SourceFrame::default() }];
    }
    if let Some(image) = locations.first().map(|at| symbols.locations[at.index()].image.index()) {
        symbols.images[image].has_symbols = !names.is_empty();
    }
}
