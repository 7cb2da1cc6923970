//! Numbers as bytes: seven bits at a time, small ones short.
//!
//! Takes untrusted bytes: every method returns none at the end instead of panicking. Not for events.

/// Appends `value` as LEB128: 7 bits a byte, lowest first; the high bit marks that more follow.
pub(crate) fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    out.push(value.to_le_bytes()[0]);
}

/// Appends `value` so that numbers near zero of either sign are short.
pub(crate) fn put_signed(out: &mut Vec<u8>, value: i64) {
    put(out, ((value << 1) ^ (value >> 63)).cast_unsigned());
}

/// Appends a string with its length before it.
pub(crate) fn put_str(out: &mut Vec<u8>, value: &str) {
    put(out, value.len() as u64);
    out.extend_from_slice(value.as_bytes());
}

/// Bytes still to be read.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Bytes<'a>(pub(crate) &'a [u8]);

impl<'a> Bytes<'a> {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    #[inline]
    pub(crate) fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    /// What [`put`] appended. Bits beyond 64 are none's.
    #[inline]
    pub(crate) fn number(&mut self) -> Option<u64> {
        let first = self.byte()?;
        if first < 0x80 {
            return Some(first.into());
        }
        let mut value = u64::from(first & 0x7f);
        for shift in (7..64).step_by(7) {
            let next = self.byte()?;
            let bits = u64::from(next & 0x7f);
            if shift == 63 && bits > 1 {
                return None;
            }
            value |= bits << shift;
            if next < 0x80 {
                return Some(value);
            }
        }
        None
    }

    /// A number that fits `T`.
    #[inline]
    pub(crate) fn small<T: TryFrom<u64>>(&mut self) -> Option<T> {
        T::try_from(self.number()?).ok()
    }

    /// What [`put_signed`] appended.
    #[inline]
    pub(crate) fn signed(&mut self) -> Option<i64> {
        let value = self.number()?;
        Some((value >> 1).cast_signed() ^ -(value & 1).cast_signed())
    }

    /// The next `len` bytes.
    pub(crate) fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    /// What [`put_str`] appended.
    pub(crate) fn str(&mut self) -> Option<&'a str> {
        let len = self.small()?;
        std::str::from_utf8(self.take(len)?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::{Bytes, put, put_signed};

    #[test]
    fn numbers_come_back_and_small_ones_are_short() {
        for value in [0, 1, 127, 128, 300, 1 << 35, u64::MAX - 1, u64::MAX] {
            let mut out = Vec::new();
            put(&mut out, value);
            assert_eq!(Bytes(&out).number(), Some(value));
            assert_eq!(Bytes(&out[..out.len() - 1]).number(), None, "{value} cut short");
        }
        for value in [0, -1, 63, -64, i64::MIN, i64::MAX] {
            let mut out = Vec::new();
            put_signed(&mut out, value);
            assert_eq!(Bytes(&out).signed(), Some(value));
            assert!(out.len() == 1 || !(-64..64).contains(&value));
        }
    }

    #[test]
    fn more_bits_than_a_number_has_are_refused() {
        assert_eq!(Bytes(&[0xff; 9]).number(), None);
        assert_eq!(
            Bytes(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2]).number(),
            None
        );
        assert_eq!(Bytes(&[0x80; 20]).number(), None);
    }
}
