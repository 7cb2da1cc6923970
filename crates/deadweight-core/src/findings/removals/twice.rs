//! Calls that are made twice: what cannot be left out is added once more, and takes the least that it takes once.
//!
//! Of a program's own calls of copies and scans of the C library. Not for which of them are made twice: the library knows, and the
//! runs show it.

use super::calls::SMALL;
use super::patches::place;
use crate::account::AccountId;
use crate::facts::call_site::{CallSite, Weights, amount, heaviest, image_path, is_system_image};
use crate::facts::processes::ProcessId;
use crate::inspect::Inspection;
use crate::inspect::shares::Share;
use deadweight_code::symbol_role::{self, SymbolRole};
use deadweight_report::report::{Change, Removal};
use deadweight_report::wording::things;
use deadweight_trace::ids::LocationId;
use deadweight_trace::symbols::{Symbols, is_c_library};
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
    let (mut calls, mut all) = (BTreeMap::<LocationId, Weights>::new(), 0);
    for (site, weight) in &share.places {
        all += weight.amount;
        if let Some(call) = call_of_c_library(symbols, site) {
            calls.entry(call).or_default().insert(*site, *weight);
        }
    }
    let mut calls: Vec<(LocationId, Weights)> = calls.into_iter().collect();
    calls.sort_by_key(|(_, places)| std::cmp::Reverse(amount(places)));
    let image = |call: &LocationId| symbols.locations[call.index()].image;
    let Some((first, heaviest_places)) = calls.first().cloned() else { return Vec::new() };
    calls.retain(|(call, _)| image(call) == image(&first));
    calls.truncate(CALLS);
    let part =
        calls.iter().map(|(_, places)| amount(places)).sum::<u64>() as f64 / all.max(1) as f64;
    if part < SMALL {
        return Vec::new();
    }
    let others = match calls.len() - 1 {
        0 => String::new(),
        count => format!(" and {}", things(count as u64, "other place")),
    };
    let path = image_path(symbols, &symbols.locations[first.index()]).to_owned();
    let addresses = calls.iter().map(|(call, _)| symbols.locations[call.index()].addr).collect();
    vec![Removal {
        what: format!("{what} at {}{others}", place(symbols, heaviest(&heaviest_places))),
        share: part,
        change: Ok(Change::Twice(path, addresses)),
    }]
}

/// Where a program calls a copy or a scan of the C library, in which the sample is.
fn call_of_c_library(symbols: &Symbols, site: &CallSite) -> Option<LocationId> {
    let location = |at: &LocationId| symbols.locations.get(at.index());
    let path = |at: &LocationId| location(at).map(|at| image_path(symbols, at));
    let inside_c = |at: &&LocationId| path(at).is_some_and(is_c_library);
    let stack = symbols.stack(site.stack()?);
    let inside = stack.iter().take_while(inside_c).count();
    let entry = location(stack.get(inside.checked_sub(1)?)?)?.frames.last()?;
    let role = symbol_role::of_name(symbols.name(entry.function));
    let call = stack.get(inside)?;
    let again = matches!(role, Some(SymbolRole::Copy | SymbolRole::Scan));
    (again && !is_system_image(path(call)?)).then_some(*call)
}
