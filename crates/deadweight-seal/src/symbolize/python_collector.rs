//! The collector of a stripped CPython: most distributions' `python3` exports its interface only, and the collector is
//! behind it.
//!
//! `PyGC_Collect` is exported, and calls the collector, sometimes through a small function: the collector is by far the
//! largest function there that is not exported (4 to 6 KiB in CPython 3.8 to 3.13, other callees below 0.5 KiB).

use crate::code::{bytes_at, references};
use crate::images::Images;
use deadweight_trace::ids::ImageId;
use object::{Object, ObjectSymbol};
use std::collections::BTreeSet;

/// The exported function that collects.
const EXPORTED: &str = "PyGC_Collect";
/// What the function behind it is called in CPython's source.
const COLLECTOR: &str = "gc_collect_main";
/// A smaller function is no collector.
const LEAST: u64 = 1024;
/// How many calls may lie between the two.
const CALLS: u32 = 2;

/// Address and name of the collector in an image of CPython.
pub(super) fn find(images: &mut Images, image: ImageId) -> Option<(u64, &'static str)> {
    let mut functions = vec![exported(images, image)?];
    for _ in 0..CALLS {
        let called = not_exported(images, image, &functions)?;
        let frames = images.call_frames(image)?;
        let bounds = |start: &u64| frames.bounds(*start).filter(|(first, _)| first == start);
        functions = called.iter().filter_map(bounds).collect();
        let large = functions.iter().filter(|(start, end)| end - start >= LEAST);
        if let Some((start, _)) = large.max_by_key(|(start, end)| end - start) {
            return Some((*start, COLLECTOR));
        }
    }
    None
}

/// First address and end of the exported function.
fn exported(images: &Images, image: ImageId) -> Option<(u64, u64)> {
    let content = images.content(image).ok()?;
    let file = object::File::parse(&content).ok()?;
    let symbol = file.dynamic_symbols().find(|symbol| symbol.name() == Ok(EXPORTED))?;
    (symbol.is_definition() && symbol.size() > 0)
        .then(|| (symbol.address(), symbol.address().saturating_add(symbol.size())))
}

/// What these functions call or jump to, without exported functions.
fn not_exported(
    images: &Images,
    image: ImageId,
    functions: &[(u64, u64)],
) -> Option<BTreeSet<u64>> {
    let content = images.content(image).ok()?;
    let file = object::File::parse(&content).ok()?;
    let code = |(start, end): &(u64, u64)| {
        bytes_at(&file, *start, end - start).map(|bytes| references(*start, bytes, "C"))
    };
    let mut called: BTreeSet<u64> =
        functions.iter().filter_map(code).flat_map(|r| r.all().collect::<Vec<_>>()).collect();
    for symbol in file.dynamic_symbols().filter(object::ObjectSymbol::is_definition) {
        called.remove(&symbol.address());
    }
    Some(called)
}
