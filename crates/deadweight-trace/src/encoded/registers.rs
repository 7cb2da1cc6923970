//! Registers at samples, as differences from those that were on the same CPU before: a few bytes for most.

use super::bytes::{Bytes, put_signed};
use crate::event::Kind;

/// General registers have lower numbers than this; others are encoded as they are.
const COUNT: usize = 32;

/// The latest values on a CPU within the block, four by four.
#[derive(Copy, Clone, Debug, Default)]
pub(super) struct Registers([[u64; 4]; COUNT / 4]);

impl Registers {
    /// Encodes four registers, of which this is the first.
    pub(super) fn put(&mut self, out: &mut Vec<u8>, first: u8, values: [u64; 4]) {
        out.push(first);
        let mut unknown = [0; 4];
        let before = self.0.get_mut(usize::from(first / 4)).unwrap_or(&mut unknown);
        for (value, before) in values.iter().zip(before.iter_mut()) {
            put_signed(out, value.wrapping_sub(*before).cast_signed());
            *before = *value;
        }
    }

    /// Decodes the next four.
    pub(super) fn take(&mut self, bytes: &mut Bytes<'_>) -> Option<Kind> {
        let first = bytes.byte()?;
        let mut unknown = [0; 4];
        let values = self.0.get_mut(usize::from(first / 4)).unwrap_or(&mut unknown);
        for value in values.iter_mut() {
            *value = value.wrapping_add(bytes.signed()?.cast_unsigned());
        }
        Some(Kind::Registers { first, values: *values })
    }
}
