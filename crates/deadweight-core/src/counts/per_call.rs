//! Figures per call of the function of `--in`: time, bytes, allocations.
//!
//! Only copies of a function that are called can be counted: a copy inlined into a caller is reported and
//! left out. `account::inside` gives the time under the function.

use super::tally::Tally;
use super::{Counted, counted_until};
use crate::account::inside::Function;
use deadweight_report::report::{Calls, Inside};
use deadweight_trace::ids::{ImageId, StackId};
use deadweight_trace::symbols::Symbols;
use deadweight_trace::units::FileAddr;

/// A smaller share is not reported.
const NOTABLE: f64 = 0.005;

/// The copies of a function in a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Copies {
    /// An address within each piece of code of the function itself.
    pub own: Vec<(ImageId, FileAddr)>,
    /// Whether it was seen inlined into another.
    pub inlined: bool,
}

/// Where samples show the function called `name`.
#[must_use]
pub fn copies(symbols: &Symbols, name: &str) -> Copies {
    let function = Function::named(symbols, name);
    let mut copies = Copies::default();
    for location in &symbols.locations {
        let (last, inner) =
            location.frames.split_last().map_or((None, &[][..]), |(l, i)| (Some(l), i));
        if last.is_some_and(|frame| function.is(frame)) {
            copies.own.push((location.image, location.addr));
        }
        copies.inlined |= inner.iter().any(|frame| function.is(frame));
    }
    copies
}

/// How the function appears in a stack.
#[derive(Copy, Clone, Debug, Default)]
struct Shown {
    /// Its outermost frame is inlined into another function.
    inlined: bool,
    /// It appears more than once, each time as code of its own.
    again: bool,
}

fn shown(symbols: &Symbols, function: &Function, stack: StackId) -> Option<Shown> {
    let mut found = None;
    let mut own = 0;
    for id in symbols.stack(stack) {
        let Some(location) = symbols.locations.get(id.index()) else { continue };
        let called = location.frames.last().is_some_and(|frame| function.is(frame));
        if called || location.frames.iter().any(|frame| function.is(frame)) {
            own += u32::from(called);
            found = Some(Shown { inlined: !called, again: own > 1 });
        }
    }
    found
}

/// Adds the figures per call. `whole` is the wall time and the CPU time under the function, in ns.
pub(super) fn add_to(
    inside: &mut Inside,
    whole: [u64; 2],
    tally: &Tally<'_>,
    counted: &Counted<'_>,
) {
    let symbols = tally.symbols();
    let function = Function::named(symbols, &inside.function);
    let calls = tally.calls.all().count;
    if calls == 0 {
        inside.uncounted = "the counting run shows no call".into();
        return;
    }
    let (mut inlined, mut sampled) = (0_u64, 0_u64);
    for shown in tally.samples().filter_map(|stack| shown(symbols, &function, stack)) {
        sampled += 1;
        inlined += u64::from(shown.inlined);
    }
    let inlined = inlined as f64 / sampled.max(1) as f64;
    let again = |stack| shown(symbols, &function, stack).is_some_and(|shown| shown.again);
    let recursive = tally.calls.of(&again).count as f64 / calls as f64;
    let [wall, cpu] = whole.map(|ns| ns as f64 * (1.0 - inlined) / calls as f64);
    let allocated = counted.allocators.then(|| {
        let under = |stack| shown(symbols, &function, stack).is_some_and(|shown| !shown.inlined);
        tally.allocations.of(&under)
    });
    let each = |n: u64| n as f64 / calls as f64;
    inside.calls = Some(Calls {
        count: calls,
        basis: tally.basis(),
        ns_per_call: wall,
        cpu_ns_per_call: cpu,
        allocations_per_call: allocated.map(|sum| each(sum.count)),
        bytes_per_call: allocated.map(|sum| each(sum.bytes)),
        inlined_share: inlined,
        recursive_share: recursive,
        remarks: remarks(tally, inlined, recursive),
    });
}

fn remarks(tally: &Tally<'_>, inlined: f64, recursive: f64) -> Vec<String> {
    let mut remarks = Vec::new();
    remarks.extend(counted_until(tally));
    if inlined >= NOTABLE {
        remarks.push(format!(
            "{:.0} % of its time is in copies inlined into its callers: \
             calls of these cannot be counted and are left out",
            100.0 * inlined
        ));
    }
    if recursive >= NOTABLE {
        remarks.push(format!(
            "{:.0} % of the calls come from itself, at any depth: they count as calls like the \
             others",
            100.0 * recursive
        ));
    }
    remarks
}
