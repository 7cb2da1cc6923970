//! The parts of the command `deadweight`, as a library so that tests and fuzz targets reach them.
//!
//! Not an interface for others: it changes with the command. The pure part is `deadweight-core`. Start at
//! `command/run.rs`: what `deadweight -- PROGRAM` does. *Calls* that are counted are calls of a function here; system calls
//! are called so.

pub mod cli;
pub mod command;
mod debuginfod;
pub mod failure;
mod inlining;
pub mod recorder;
pub mod render;
pub mod running;
pub mod scan;
