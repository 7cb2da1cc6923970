//! Statistics that assume nothing about how times are distributed.
//!
//! Summaries carry their own doubts ([`median::Summary::confidence`], [`spread::Doubt`]) instead of
//! failing. Not for comparing two programs: that is the business of `compare`.

pub mod apportion;
pub mod median;
pub mod normal;
pub mod proportion;
pub mod rank_tests;
pub mod ratio;
pub mod spread;
