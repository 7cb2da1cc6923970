//! Calls that are made twice: what cannot be left out is added once more, and takes the least that it takes once.
//!
//! Of a program's own calls of the C library. Not for which functions can be called twice: the library knows them.

use super::calls::SMALL;
use super::patches::place;
use crate::account::AccountId;
use crate::facts::call_site::{CallSite, Weights, amount, heaviest, is_system_image};
use crate::facts::processes::ProcessId;
use crate::inspect::Inspection;
use crate::inspect::shares::Share;
use deadweight_report::report::{Change, Removal};
use deadweight_report::wording::things;
use deadweight_trace::ids::{ImageId, LocationId};
use deadweight_trace::symbols::Symbols;
use std::collections::BTreeMap;

/// Calls that are named at most.
const CALLS: usize = 8;

/// Functions of the C library that do the same again and leave the same behind.
const AGAIN: &[&str] = &[
    "atof",
    "atoi",
    "atol",
    "atoll",
    "bcmp",
    "memchr",
    "memcmp",
    "memcpy",
    "memmem",
    "memmove",
    "mempcpy",
    "memrchr",
    "rawmemchr",
    "strcasecmp",
    "strcasestr",
    "strchr",
    "strchrnul",
    "strcmp",
    "strcspn",
    "strlen",
    "strncasecmp",
    "strncmp",
    "strnlen",
    "strpbrk",
    "strrchr",
    "strspn",
    "strstr",
    "strtod",
    "strtof",
    "strtol",
    "strtoll",
    "strtoul",
    "strtoull",
];
/// They begin with a scan, which alone can be done twice.
const SCANS: &[&str] = &["sscanf", "strcat", "strncat"];

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
        if let Some(call) = call_of_c_library(symbols, site, class) {
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
    let path = symbols.images.get(image(&first).index()).map(|image| symbols.name(image.path));
    let addresses = calls.iter().map(|(call, _)| symbols.locations[call.index()].addr).collect();
    vec![Removal {
        what: format!("{what} at {}{others}", place(symbols, heaviest(&heaviest_places))),
        share: part,
        change: Ok(Change::Twice(path.unwrap_or_default().to_owned(), addresses)),
    }]
}

/// Where a program calls a function of the C library that can be done twice, and in which the sample is.
fn call_of_c_library(symbols: &Symbols, site: &CallSite, class: &str) -> Option<LocationId> {
    let name = |image: ImageId| symbols.images.get(image.index()).map(|i| symbols.name(i.path));
    let image = |at: &LocationId| symbols.locations.get(at.index()).map(|l| l.image);
    let in_c_library =
        |at: &&LocationId| image(at).and_then(name).is_some_and(|n| n.ends_with("/libc.so.6"));
    let stack = symbols.stack(site.stack()?);
    let inside = stack.iter().take_while(in_c_library).count();
    let call = stack.get(inside).filter(|_| inside > 0)?;
    let own = image(call).and_then(name).is_some_and(|name| !is_system_image(name));
    let entry = symbols.locations[stack[inside - 1].index()].frames.last()?;
    let entry = plain(symbols.name(entry.function));
    let again = AGAIN.contains(&entry) || SCANS.contains(&entry) && class != "text-conversion";
    (own && again).then_some(*call)
}

/// A function's name without what glibc adds: `__memmove_avx_unaligned_erms`, `__isoc99_sscanf`, `__memcpy_chk`.
fn plain(name: &str) -> &str {
    let name = name.trim_start_matches('_');
    let name =
        name.strip_prefix("isoc99_").or_else(|| name.strip_prefix("isoc23_")).unwrap_or(name);
    name.split('_').next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn names_of_versions_are_those_of_their_function() {
        let names = ["__memmove_avx_unaligned_erms", "__isoc99_sscanf", "__memcpy_chk", "strlen"];
        assert_eq!(names.map(plain), ["memmove", "sscanf", "memcpy", "strlen"]);
    }
}
