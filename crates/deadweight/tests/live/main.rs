//! Live truths: real programs are run under deadweight, and what it says of them is compared with
//! what is known beforehand. `cargo xtask live [NAME]` runs them alone.
//!
//! They need root and perf events. Where something is missing a truth is skipped aloud, with the
//! reason; on a CI machine (`CI` set, root) a skip is a failure. Not for numbers that depend on the
//! machine's speed: every bound is a share of the program's own wall time.

mod code;
mod counts;
mod crystal;
mod each_rung;
mod enclosed;
#[path = "../shared/group.rs"]
mod group;
mod guarded;
mod images;
mod joining;
mod languages;
mod mishaps;
mod program;
mod proofs;
mod quota;
mod readings;
mod rungs;
mod stops;
mod targets;
mod tools;
mod truth;
mod user_time;
