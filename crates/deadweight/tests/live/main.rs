//! Live tests: real programs run under deadweight, and its reports are compared with known facts. `cargo xtask live [NAME]` runs them alone.
//!
//! They need root and perf events. If something is missing, a test is skipped with a message that gives the
//! reason; on a CI machine (`CI` set, root) a skip is a failure. Not for numbers that depend on the
//! machine's speed: every bound is a share of the program's own wall time.

mod attaching;
mod code;
mod common_tools;
mod containers;
mod counts;
mod crystal;
mod debuginfod;
mod each_rung;
#[path = "../shared/group.rs"]
mod group;
mod hot_loops;
mod images;
mod languages;
mod library_work;
mod privileges;
mod program;
mod proofs;
mod ptrace;
mod quota;
mod readings;
mod recorder_failures;
mod rungs;
mod strings;
mod targets;

mod threads;
mod truth;
mod user_time;
