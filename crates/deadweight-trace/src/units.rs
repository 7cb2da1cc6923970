//! Quantities with their unit in the type: nanoseconds, bytes, addresses.
//!
//! Not for formatting them for people; see `wording` in `deadweight-report`.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub, SubAssign};

/// A time or a duration in nanoseconds of `CLOCK_MONOTONIC`.
///
/// Times in a trace count from the trace's own zero ([`crate::Meta::zero`]).
/// Subtraction saturates at zero: a negative duration is never meaningful in a ledger.
#[derive(
    Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Ns(pub u64);

impl Ns {
    /// No time at all, and the start of a trace.
    pub const ZERO: Self = Self(0);
    /// Later than any event.
    pub const MAX: Self = Self(u64::MAX);

    /// This duration in seconds, for display and statistics only: rounding is harmless there.
    #[must_use]
    pub fn seconds(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// `self / whole` as a share, 0 where `whole` is zero. Usually in 0..=1, not clamped.
    #[must_use]
    pub fn share_of(self, whole: Self) -> f64 {
        if whole.0 == 0 { 0.0 } else { self.0 as f64 / whole.0 as f64 }
    }

    /// `share` of this duration, rounded; a share outside 0..=1 counts as the nearer end.
    #[must_use]
    pub fn part(self, share: f64) -> Self {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
        let part = (share.clamp(0.0, 1.0) * self.0 as f64).round() as u64;
        Self(part.min(self.0))
    }

    /// `self * part / whole` in integers, rounded down; a `whole` of zero counts as one.
    #[must_use]
    pub fn scaled(self, part: u64, whole: u64) -> Self {
        let exact = u128::from(self.0) * u128::from(part) / u128::from(whole.max(1));
        Self(u64::try_from(exact).unwrap_or(u64::MAX))
    }
}

impl Add for Ns {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Sub for Ns {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl AddAssign for Ns {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl SubAssign for Ns {
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}

impl Sum for Ns {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self::ZERO, Add::add)
    }
}

impl fmt::Display for Ns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ns", self.0)
    }
}

/// An amount of memory in bytes.
#[derive(
    Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Bytes(pub u64);

/// An address as an ELF file states it (a virtual address of the file, not an offset in it).
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct FileAddr(pub u64);

/// An address in a running process.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct LiveAddr(pub u64);
