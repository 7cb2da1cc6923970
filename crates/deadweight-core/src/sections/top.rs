//! The functions with most of the program's own time on the path, by samples.
//!
//! The cost classes judge them.

use crate::account::Attribution;
use crate::facts::Facts;
use crate::facts::call_site::Weights;
use deadweight_report::report::TopFunction;
use deadweight_report::stats::apportion::apportion;
use deadweight_trace::units::Ns;
use std::collections::BTreeMap;

/// Functions that are shown.
const SHOWN: usize = 10;

/// Samples by line and file.
type Lines<'s> = BTreeMap<(u32, &'s str), u64>;

/// The functions with most of it, by the innermost frame of each sample.
pub(crate) fn functions(facts: &Facts<'_>, wall: &Attribution) -> Vec<TopFunction> {
    let user: Ns = wall.user_time().map(|e| e.ns).sum();
    let mut samples = Weights::new();
    for entry in wall.user_time() {
        crate::facts::call_site::add(&mut samples, &entry.samples);
    }
    let symbols = facts.symbols();
    let mut functions: BTreeMap<(&str, &str), (u64, Lines<'_>)> = BTreeMap::new();
    for (site, weight) in samples.iter().filter(|(site, _)| site.is_known()) {
        let Some((location, frame)) = site.frames(symbols).next() else { continue };
        let image = symbols.images.get(location.image.index()).map(|i| symbols.name(i.path));
        let key = (symbols.name(frame.function), image.unwrap_or(""));
        let place = functions.entry(key).or_default();
        place.0 += weight.amount;
        *place.1.entry((frame.line, symbols.name(frame.file))).or_default() += weight.amount;
    }
    let weights: Vec<u64> = functions.values().map(|(amount, _)| *amount).collect();
    let parts = apportion(user.0, &weights);
    let mut found: Vec<TopFunction> = functions
        .into_iter()
        .zip(parts)
        .map(|(((function, image), (_, lines)), ns)| {
            let hottest = lines.iter().max_by_key(|(_, amount)| **amount).map(|(line, _)| *line);
            let (line, file) = hottest.unwrap_or((0, ""));
            TopFunction {
                function: function.to_owned(),
                file: file.to_owned(),
                line,
                image: image.to_owned(),
                ns,
                share: Ns(ns).share_of(wall.total),
            }
        })
        .collect();
    found.sort_by_key(|f| std::cmp::Reverse(f.ns));
    found.truncate(SHOWN);
    found
}
