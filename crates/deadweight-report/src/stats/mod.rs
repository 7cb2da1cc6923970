//! Distribution-free statistics of times and shares.
//!
//! - In: series of values, weights, shares of samples.
//! - Out: medians with intervals, p values, factors, doubts. Summaries state their own quality
//!   ([`median::Summary::confidence`], [`spread::Doubt`]) instead of failing.
//! - Must not know: programs or reports. `compare` judges two programs.

pub mod apportion;
pub mod median;
pub mod normal;
pub mod proportion;
#[cfg(test)]
pub(crate) mod random;
pub mod rank_tests;
pub mod ratio;
pub mod spread;
pub mod student;
