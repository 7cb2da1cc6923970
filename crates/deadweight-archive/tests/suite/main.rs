//! The archive from outside, each test with both databases; PostgreSQL is a real server that the tests start.
//!
//! Not for the command's verbs; see the tests of `deadweight`.

#![expect(clippy::unwrap_used, reason = "a test stops where the machine does not obey")]
#![expect(clippy::print_stderr, reason = "a skipped test says so")]

mod encryption;
mod failures;
mod places;
mod queries;
mod runs;
mod same_for_both;
mod server;
mod versions;
mod writers;
