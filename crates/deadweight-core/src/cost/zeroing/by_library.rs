//! Memory that a library clears for itself: the tables of a compressor that starts anew. Not: memory that it makes or grows
//! for its caller.

use crate::facts::Facts;
use crate::facts::call_site::{Weights, amount, image_language, image_path, is_system_image};
use crate::facts::user_time::UserSample;
use deadweight_code::symbol_role::SymbolRole;
use deadweight_trace::symbols::{Location, SourceFrame};

/// Packages of Go's standard library that clear memory for their caller, or that do nothing else.
const FOR_CALLERS: [&str; 8] =
    ["runtime.", "bytes.", "strings.", "slices.", "maps.", "bufio.", "io.", "os."];
/// The same of shared libraries: those of C and C++.
const LIBRARIES_FOR_CALLERS: [&str; 5] = ["libc.", "libc-", "libstdc++", "libc++", "ld-"];

/// The part of these samples, 0 to 1, in which a library clears memory for itself.
pub(super) fn part(facts: &Facts<'_>, places: &Weights) -> f64 {
    let own = places
        .iter()
        .filter(|(site, _)| site.stack().is_some_and(|stack| is_for_itself(&facts.sample(stack))));
    let own: u64 = own.map(|(_, weight)| weight.amount).sum();
    own as f64 / amount(places).max(1) as f64
}

/// The sentence about that part.
pub(super) fn evidence(part: f64) -> Option<String> {
    (part >= 0.01).then(|| {
        format!(
            "{:.0} % of this is memory that a library clears for itself: it goes away only if the library is asked for less",
            part * 100.0
        )
    })
}

fn is_for_itself(sample: &UserSample<'_>) -> bool {
    let roles = &sample.symbol_roles;
    let Some(fill) = roles.iter().position(|role| *role == SymbolRole::Fill) else { return false };
    let makes = |role: &SymbolRole| matches!(role, SymbolRole::Allocate | SymbolRole::Grow);
    if sample.own.is_none() || roles.iter().any(makes) {
        return false;
    }
    let mut callers = sample.frames().take(roles.len()).skip(fill + 1);
    callers.any(|(location, frame)| has_memory(sample, location, frame))
}

/// Whether this is a function of a library that has memory of its own.
fn has_memory(sample: &UserSample<'_>, location: &Location, frame: &SourceFrame) -> bool {
    let path = image_path(sample.symbols, location);
    if image_language(sample.symbols, location) == "Go" {
        let name = sample.symbols.name(frame.function);
        return !FOR_CALLERS.iter().any(|package| name.starts_with(package));
    }
    let file = path.rsplit('/').next().unwrap_or_default();
    is_system_image(path) && !LIBRARIES_FOR_CALLERS.iter().any(|start| file.starts_with(start))
}
