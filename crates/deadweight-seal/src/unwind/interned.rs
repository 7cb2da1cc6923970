//! Code addresses and call stacks, each stored once.
//!
//! Does not name them: names are resolved at the end, for the addresses that were hit.

use deadweight_trace::hash::{ByFast, fold};
use deadweight_trace::ids::{ImageId, LocationId, StackId};
use deadweight_trace::symbols::{Location, Symbols};
use deadweight_trace::units::FileAddr;
use std::collections::HashMap;

/// Finds the id of a location or a stack, and adds what is new to the tables.
#[derive(Debug)]
pub(crate) struct Interned {
    locations: HashMap<(u32, u64), LocationId, ByFast>,
    stacks: HashMap<u64, StackId, ByFast>,
}

impl Default for Interned {
    /// Starts with what [`Symbols::default`] holds: location 0, which is none.
    fn default() -> Self {
        let mut locations = HashMap::default();
        locations.insert((0, 0), LocationId(0));
        Self { locations, stacks: HashMap::default() }
    }
}

impl Interned {
    /// The id of an address in an image.
    pub(crate) fn location(
        &mut self,
        symbols: &mut Symbols,
        image: ImageId,
        addr: u64,
    ) -> LocationId {
        *self.locations.entry((image.0, addr)).or_insert_with(|| {
            let id = LocationId::at(symbols.locations.len());
            // Frames are filled in when sealing ends; then the table already in a trace file is replaced.
            let frames = Vec::new();
            symbols.locations.push(Location { image, addr: FileAddr(addr), frames });
            id
        })
    }

    /// The id of a stack. Stacks whose hashes collide take the next free hash.
    pub(crate) fn stack(&mut self, symbols: &mut Symbols, stack: &[LocationId]) -> StackId {
        if stack.is_empty() {
            return StackId(0);
        }
        let mut hash = stack.iter().fold(0, |hash, location| fold(hash, u64::from(location.0)));
        loop {
            match self.stacks.get(&hash) {
                Some(id) if symbols.stack(*id) == stack => return *id,
                Some(_) => hash = hash.wrapping_add(1),
                None => {
                    let id = StackId::at(symbols.stacks.len());
                    symbols.stacks.push(stack.to_vec());
                    self.stacks.insert(hash, id);
                    return id;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_stored_once() {
        let (mut interned, mut symbols) = (Interned::default(), Symbols::default());
        let a = interned.location(&mut symbols, ImageId(0), 16);
        let b = interned.location(&mut symbols, ImageId(1), 16);
        assert_ne!(a, b);
        assert_eq!(a, interned.location(&mut symbols, ImageId(0), 16));
        let ab = interned.stack(&mut symbols, &[a, b]);
        assert_ne!(ab, interned.stack(&mut symbols, &[b, a]));
        assert_eq!(ab, interned.stack(&mut symbols, &[a, b]));
        assert_eq!(interned.stack(&mut symbols, &[]), StackId(0));
        assert_eq!(symbols.stacks.len(), 3);
    }
}
