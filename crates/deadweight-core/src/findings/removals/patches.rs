//! What can be removed from the program's own binary: calls and block instructions that zero memory, one place at a time;
//! the checks of one loop; the lock prefixes of counters that only one thread changes.
//!
//! Copies are not tried: their result is used (see `twice`). `deadweight_code::removal` makes the bytes.

use crate::account::AccountId;
use crate::cost::checked_loops;
use crate::facts::call_site::{
    CallSite, Weights, amount, heaviest, is_own, is_system_image, own_frame,
};
use crate::facts::processes::ProcessId;
use crate::inspect::Inspection;
use crate::inspect::shares::Share;
use crate::timeline::Timeline;
use deadweight_code::Role;
use deadweight_code::machine_code::FunctionId;
use deadweight_code::removal::{Obstacle, without_checks, without_fill, without_locks};
use deadweight_code::symbol_role::SymbolRole;
use deadweight_report::report::{Change, Removal};
use deadweight_report::wording::things;
use deadweight_trace::ids::{ImageId, LocationId};
use deadweight_trace::patch::Patch;
use deadweight_trace::symbols::Symbols;
use std::collections::{BTreeMap, BTreeSet};

/// How many places of a finding are worth a trial.
const PLACES: usize = 3;
/// A place with a smaller share of its finding is not worth a trial.
const SMALL: f64 = 0.1;
/// A thread with a smaller share of its process' CPU time does no work beside the main one.
const BESIDE: f64 = 0.01;

/// A part of a finding that patches may remove.
#[derive(Debug)]
struct Part {
    what: String,
    /// Path of the binary.
    image: String,
    share: f64,
    /// The patches; or why there are none.
    patches: Result<Vec<Patch>, String>,
}

impl From<Part> for Removal {
    fn from(part: Part) -> Self {
        let change = part.patches.map(|patches| Change::Patches(part.image, patches));
        Self { what: part.what, share: part.share, change }
    }
}

/// The places where memory is zeroed, largest share first.
pub(super) fn zeroing(found: &Inspection<'_, '_>, process: ProcessId) -> Vec<Removal> {
    let share = Share::of(found.wall, AccountId::of_class("zeroing"), process);
    let parts = share.map_or_else(Vec::new, |share| fills(found, process, &share));
    parts.into_iter().map(Removal::from).collect()
}

/// The lock prefixes of a process.
pub(super) fn atomics(found: &Inspection<'_, '_>, process: ProcessId) -> Vec<Removal> {
    let share = Share::of(found.wall, AccountId::of_class("atomics"), process);
    let part = share.and_then(|share| locks(found, process, &share));
    part.map(Removal::from).into_iter().collect()
}

/// The checks of loops, largest share first.
pub(super) fn bounds_checks(found: &Inspection<'_, '_>, process: ProcessId) -> Vec<Removal> {
    checks(found, process).into_iter().map(Removal::from).collect()
}

/// The binary of a location, if it is a file of the program's own.
fn own_image(symbols: &Symbols, image: ImageId) -> Option<&str> {
    let path = symbols.images.get(image.index()).map(|image| symbols.name(image.path))?;
    (path.starts_with('/') && !is_system_image(path)).then_some(path)
}

/// `main.cpp:11`, or the function where no line is known.
pub(super) fn place(symbols: &Symbols, site: CallSite) -> String {
    let Some((_, frame)) = own_frame(symbols, site) else { return "a place without a name".into() };
    let file = symbols.name(frame.file).rsplit('/').next().unwrap_or_default();
    if file.is_empty() || frame.line == 0 {
        return symbols.name(frame.function).to_owned();
    }
    format!("{file}:{}", frame.line)
}

/// The largest parts, with shares. Several places that a compiler made from one line are one part.
fn largest(parts: Vec<(u64, Part)>) -> Vec<Part> {
    let all: u64 = parts.iter().map(|(weight, _)| weight).sum();
    let mut lines: Vec<Part> = Vec::new();
    for (weight, mut part) in parts {
        part.share = weight as f64 / all.max(1) as f64;
        let same = |line: &&mut Part| line.what == part.what && line.image == part.image;
        match lines.iter_mut().find(same) {
            None => lines.push(part),
            Some(line) => match (&mut line.patches, part.patches) {
                (Ok(patches), Ok(more)) => {
                    patches.extend(more);
                    patches.sort_by_key(|patch| patch.addr);
                    patches.dedup();
                    line.share += part.share;
                }
                (Err(_), Err(_)) => line.share += part.share,
                (Err(_), Ok(more)) => (line.patches, line.share) = (Ok(more), part.share),
                (Ok(_), Err(_)) => {}
            },
        }
    }
    lines.sort_by(|a, b| b.share.total_cmp(&a.share));
    lines.truncate(PLACES);
    lines.retain(|line| line.share >= SMALL);
    lines
}

/// Each place where memory is zeroed.
fn fills(found: &Inspection<'_, '_>, process: ProcessId, share: &Share) -> Vec<Part> {
    let (facts, symbols) = (found.facts, found.facts.symbols());
    let mut places: BTreeMap<LocationId, Weights> = BTreeMap::new();
    for (site, weight) in &share.places {
        let Some(stack) = site.stack() else { continue };
        let sample = facts.sample(stack);
        let at = match sample.symbol_role() {
            Some(SymbolRole::Fill) => symbols.stack(stack).get(1).copied(),
            _ => Some(sample.waited.at),
        };
        places.entry(at.unwrap_or_default()).or_default().insert(*site, *weight);
    }
    let go = facts.processes.get(process).language == "Go";
    let removal = |(at, places): (LocationId, Weights)| {
        let line = place(symbols, heaviest(&places));
        let location = symbols.locations.get(at.index());
        let image = location.and_then(|l| own_image(symbols, l.image));
        let owner = location.and_then(|l| l.frames.last().map(|frame| (l, frame)));
        let patches = match (image, owner) {
            (None, _) => Err("a library zeroes the memory".to_owned()),
            (_, Some((l, frame))) if go && !is_own(symbols, l, frame) => {
                Err("Go's runtime zeroes the memory that it hands out, for all its callers".into())
            }
            _ => patches_at(found, at, &|code, names, addr| without_fill(code, names, addr)),
        };
        let image = image.unwrap_or_default().to_owned();
        let what = format!("the zeroing of memory at {line}");
        (amount(&places), Part { what, image, share: 0.0, patches })
    };
    largest(places.into_iter().map(removal).collect())
}

type Remove<'r> = dyn Fn(
        &deadweight_code::Code<'_>,
        &deadweight_code::Names<'_>,
        deadweight_trace::units::FileAddr,
    ) -> Result<Vec<Patch>, Obstacle>
    + 'r;

/// The patches that `remove` gives for the code at a location.
fn patches_at(
    found: &Inspection<'_, '_>,
    at: LocationId,
    remove: &Remove<'_>,
) -> Result<Vec<Patch>, String> {
    let machine = &found.facts.machine;
    let addr = found.facts.symbols().locations.get(at.index()).map(|l| l.addr);
    match (machine.function_at(at), addr) {
        (Some(function), Some(addr)) => machine
            .reading(function, |code, names| remove(code, names, addr))
            .map_err(|obstacle| obstacle.to_string()),
        _ => Err("its machine code was not kept".to_owned()),
    }
}

/// The loops whose indexes are checked.
fn checks(found: &Inspection<'_, '_>, process: ProcessId) -> Vec<Part> {
    let (facts, symbols) = (found.facts, found.facts.symbols());
    let mut parts = Vec::new();
    for hot in checked_loops(found, process) {
        let line = place(symbols, heaviest(&hot.places));
        let image = facts.machine.code(hot.function).image;
        let Some(path) = own_image(symbols, image) else { continue };
        let patches = facts
            .machine
            .reading(hot.function, |code, names| without_checks(code, names, &hot.around))
            .map_err(|obstacle| obstacle.to_string());
        let what = format!("the checks of the loop at {line}");
        parts.push((hot.samples, Part { what, image: path.to_owned(), share: 0.0, patches }));
    }
    largest(parts)
}

/// The lock prefixes of the functions that samples hit: references are counted up in one place and down in
/// another, and their cost belongs together.
fn locks(found: &Inspection<'_, '_>, process: ProcessId, share: &Share) -> Option<Part> {
    let (facts, symbols) = (found.facts, found.facts.symbols());
    let mut images: BTreeMap<ImageId, (u64, BTreeSet<FunctionId>)> = BTreeMap::new();
    let mut all = 0;
    for (site, weight) in &share.places {
        all += weight.amount;
        let Some(waited) = site.stack().map(|stack| facts.sample(stack).waited) else { continue };
        let Some(function) = waited.function.filter(|_| waited.role == Role::Atomic) else {
            continue;
        };
        let image = images.entry(facts.machine.code(function).image).or_default();
        image.0 += weight.amount;
        image.1.insert(function);
    }
    let (image, (samples, functions)) = images.into_iter().max_by_key(|(_, (n, _))| *n)?;
    let line = place(symbols, heaviest(&share.places));
    let read = |function: &FunctionId| facts.machine.reading(*function, without_locks);
    let prefixes: Vec<Patch> = functions.iter().filter_map(|f| read(f).ok()).flatten().collect();
    let path = own_image(symbols, image);
    let patches = if path.is_none() {
        Err("the instructions are in a library".to_owned())
    } else if !is_single_threaded(found, process) {
        Err("several threads run, and between them the operations must be atomic".to_owned())
    } else if prefixes.is_empty() {
        Err(Obstacle::NotReplaceable.to_string())
    } else {
        Ok(prefixes)
    };
    let count = patches.as_ref().map_or(1, Vec::len) as u64;
    Some(Part {
        what: format!("{} at and around {line}", things(count, "lock prefix").replace("xs", "xes")),
        image: path.unwrap_or_default().to_owned(),
        share: samples as f64 / all.max(1) as f64,
        patches,
    })
}

/// Whether one thread of a process has nearly all of its CPU time.
fn is_single_threaded(found: &Inspection<'_, '_>, process: ProcessId) -> bool {
    let timeline: &Timeline = found.facts.timeline;
    let tasks = found.facts.processes.get(process).tasks.iter();
    let mut times: Vec<u64> = tasks.map(|task| timeline.task(*task).on_cpu().0).collect();
    times.sort_unstable();
    let most = times.pop().unwrap_or(0);
    times.iter().sum::<u64>() as f64 <= BESIDE * most as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use deadweight_trace::units::FileAddr;

    fn part(weight: u64, what: &str, patches: Result<u64, &str>) -> (u64, Part) {
        let patch = |at| vec![Patch { addr: FileAddr(at), was: vec![0xf0], becomes: vec![0x3e] }];
        let patches = patches.map(patch).map_err(str::to_owned);
        (weight, Part { what: what.into(), image: "/a".into(), share: 0.0, patches })
    }

    #[test]
    fn several_places_of_one_line_are_one_removal() {
        let parts = vec![
            part(30, "a", Ok(9)),
            part(5, "small", Ok(1)),
            part(25, "a", Ok(3)),
            part(10, "a", Err("library")),
            part(30, "b", Err("library")),
        ];
        let found: Vec<_> = largest(parts)
            .into_iter()
            .map(|r| {
                let at = |patches: Vec<Patch>| patches.iter().map(|p| p.addr.0).collect::<Vec<_>>();
                (r.what, r.share, r.patches.map(at))
            })
            .collect();
        let expected = [
            ("a".to_owned(), 0.55, Ok(vec![3, 9])),
            ("b".to_owned(), 0.3, Err("library".to_owned())),
        ];
        assert_eq!(found, expected);
    }
}
