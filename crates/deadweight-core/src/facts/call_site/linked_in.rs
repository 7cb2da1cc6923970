//! The C library and C++'s runtime where they are linked into the program: their functions have names there and no lines.
//!
//! By its name alone `hack_digit` could be the program's own. It is not below `printf`, which calls none of the
//! program's functions.

use deadweight_code::symbol_role::is_linked_in;
use deadweight_trace::ids::LocationId;
use deadweight_trace::symbols::{Location, Symbols};
use std::cell::OnceCell;

/// How much of a stack is such library code, once that is asked.
#[derive(Default)]
pub(crate) struct LinkedIn {
    depth: OnceCell<usize>,
}

impl LinkedIn {
    /// Whether the address at this index of `stack`, innermost first, is in such library code.
    pub(crate) fn holds(
        &self,
        symbols: &Symbols,
        location: &Location,
        index: usize,
        stack: impl Iterator<Item = LocationId>,
    ) -> bool {
        let depth = || self.depth.get_or_init(|| depth(symbols, stack));
        function(symbols, location).is_some() && index < *depth()
    }
}

/// How many of these addresses, innermost first, are in such library code: all up to the outermost function that is known
/// by its name, as long as none has a line.
fn depth(symbols: &Symbols, stack: impl Iterator<Item = LocationId>) -> usize {
    let location = |id: LocationId| symbols.locations.get(id.index());
    let without_lines = stack.map_while(|id| function(symbols, location(id)?)).enumerate();
    let known = without_lines.filter(|(_, function)| is_linked_in(function));
    known.last().map_or(0, |(index, _)| index + 1)
}

/// The function at an address, if it has no line.
fn function<'s>(symbols: &'s Symbols, location: &Location) -> Option<&'s str> {
    match &location.frames[..] {
        [frame] if symbols.name(frame.file).is_empty() => Some(symbols.name(frame.function)),
        _ => None,
    }
}
