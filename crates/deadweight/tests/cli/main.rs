//! The command from outside: the real binary with real programs, files, signals and terminals.
//!
//! Tests that record need privileges; without them each prints that it was skipped, and why.
//! Not for what the numbers are: see the golden and live tests.

#![expect(clippy::unwrap_used, reason = "a test stops where the machine does not obey")]
#![expect(clippy::print_stderr, reason = "a skipped test says so")]

mod archive;
mod arguments;
mod attaching;
mod benchmarks;
mod benchstat;
mod bisecting;
mod browser;
mod ci;
mod comparing;
mod doctor;
mod endurance;
mod errors;
mod exports;
#[path = "../shared/group.rs"]
mod group;
mod harm;
mod history;
mod hyperfine;
mod importing;
mod inlining;
mod memory;
mod pages;
mod repeating;
mod rows;
mod scanning;
#[path = "../../../deadweight-archive/tests/suite/server.rs"]
mod server;
mod support;
mod transparency;
