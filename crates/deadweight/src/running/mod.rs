//! How often the command runs and with what on its standard streams.
//!
//! - In: a command and how to run it.
//! - Out: traces, clean runs, hazards.
//! - Must not know: how one run is started or traced (`deadweight-record`), or what a trace means.
//!
//! The first run has the user's own input and output. Later runs get the same input again; their output is drained
//! through the same kind of file and compared. `repeat` runs one command, `interleave` several, `proof` one
//! beside itself without a cost.

pub mod counting_run;
pub mod hooks;
pub mod input;
pub mod interleave;
pub mod output;
pub mod parameters;
pub mod program;
pub mod progress;
pub mod proof;
pub mod repeat;
pub mod series;
