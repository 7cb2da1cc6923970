//! Calls that are made twice: what cannot be left out is added once more, and takes the least that it takes once.
//!
//! Of a program's own calls of the C library. Not for which functions can be called twice: the library knows them.

use super::calls::SMALL;
use super::patches::place;
use crate::account::AccountId;
use crate::facts::call_site::{CallSite, Weights, heaviest, is_system_image};
use crate::facts::processes::ProcessId;
use crate::inspect::Inspection;
use crate::inspect::shares::Share;
use deadweight_report::report::{Change, Removal};
use deadweight_trace::ids::{ImageId, LocationId};
use deadweight_trace::symbols::Symbols;
use std::collections::BTreeMap;

/// Calls that are named at most.
const CALLS: usize = 8;

/// The calls of a class's places; `what` they do.
pub(super) fn twice(
    found: &Inspection<'_, '_>,
    class: &'static str,
    process: ProcessId,
    what: &str,
) -> Vec<Removal> {
    let symbols = found.facts.symbols();
    let share = Share::of(found.cpu, AccountId::of_class(class), process);
    let Some(share) = share else { return Vec::new() };
    let mut calls: BTreeMap<LocationId, u64> = BTreeMap::new();
    let (mut places, mut all) = (Weights::default(), 0);
    for (site, weight) in &share.places {
        all += weight.amount;
        if let Some(call) = call_of_c_library(symbols, site, class) {
            *calls.entry(call).or_default() += weight.amount;
            places.insert(*site, *weight);
        }
    }
    let mut calls: Vec<(LocationId, u64)> = calls.into_iter().collect();
    calls.sort_by_key(|(_, amount)| std::cmp::Reverse(*amount));
    let image = |call: &LocationId| symbols.locations[call.index()].image;
    let Some(binary) = calls.first().map(|(call, _)| image(call)) else { return Vec::new() };
    calls.retain(|(call, _)| image(call) == binary);
    calls.truncate(CALLS);
    let part = calls.iter().map(|(_, amount)| amount).sum::<u64>() as f64 / all.max(1) as f64;
    if part < SMALL {
        return Vec::new();
    }
    let path = symbols.images.get(binary.index()).map(|image| symbols.name(image.path).to_owned());
    let calls = calls.iter().map(|(call, _)| symbols.locations[call.index()].addr).collect();
    vec![Removal {
        what: format!("{what} at {}", place(symbols, heaviest(&places))),
        share: part,
        change: Ok(Change::Twice(path.unwrap_or_default(), calls)),
    }]
}

/// Where a program calls the C library in whose function the sample is. Of a conversion by `sscanf` only the scan can be done
/// twice.
fn call_of_c_library(symbols: &Symbols, site: &CallSite, class: &str) -> Option<LocationId> {
    let name = |image: ImageId| symbols.images.get(image.index()).map(|i| symbols.name(i.path));
    let image = |at: &LocationId| symbols.locations.get(at.index()).map(|l| l.image);
    let in_c_library =
        |at: &&LocationId| image(at).and_then(name).is_some_and(|n| n.ends_with("/libc.so.6"));
    let stack = symbols.stack(site.stack()?);
    let inside = stack.iter().take_while(in_c_library).count();
    let call = stack.get(inside).filter(|_| inside > 0)?;
    let entry = symbols.locations[stack[inside - 1].index()].frames.last()?;
    if class == "text-conversion" && symbols.name(entry.function).contains("scanf") {
        return None;
    }
    let own = image(call).and_then(name).is_some_and(|name| !is_system_image(name));
    own.then_some(*call)
}
