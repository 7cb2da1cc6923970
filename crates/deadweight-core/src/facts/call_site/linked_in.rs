//! The C library and C++'s runtime where they are linked into the program: their functions have names there and no lines.
//!
//! By its name alone `hack_digit` could be the program's own. It is not below `printf`, which calls none of the
//! program's functions.

use deadweight_code::symbol_role::is_linked_in;
use deadweight_trace::ids::LocationId;
use deadweight_trace::symbols::Symbols;

/// How many of these addresses, innermost first, are in such library code: all up to the outermost function that is known
/// by its name, as long as none has a line.
pub(crate) fn depth(symbols: &Symbols, stack: impl Iterator<Item = LocationId>) -> usize {
    let function = |id: LocationId| match &symbols.locations.get(id.index())?.frames[..] {
        [frame] if symbols.name(frame.file).is_empty() => Some(symbols.name(frame.function)),
        _ => None,
    };
    let without_lines = stack.map_while(function).enumerate();
    let known = without_lines.filter(|(_, function)| is_linked_in(function));
    known.last().map_or(0, |(index, _)| index + 1)
}
