//! How often the command runs and with what on its standard streams.
//!
//! The first run is the user's: it has their input, and its output is passed on untouched. Later
//! runs get the same input again, and their output is drained through the same kind of file and
//! compared. `proof` runs a patched copy beside the program. Starting and tracing one run is
//! `deadweight-record`'s business.

pub mod around;
pub mod evidence;
pub mod input;
pub mod interleave;
pub mod output;
pub mod parameters;
pub mod patched;
pub mod program;
pub mod progress;
pub mod proof;
pub mod repeat;
