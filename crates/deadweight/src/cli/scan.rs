//! The command line of `scan`. Does not read anything; see `command/scan`.

use super::Style;
use clap::Args;
use std::path::PathBuf;

const KINDS: &str = "\
What is searched, by kind; `deadweight explain KIND` says more:
  struct-copies       a value of constant size, 128 bytes or more, is copied as a whole
  buffer-copies       the same of more than 64 KiB
  zeroing             1 KiB or more of constant size is set to zero
  bounds-checks       in a loop an index is compared with a length, and the other way out is a panic
  atomics             in a loop an atomic operation (`lock` prefix, or `xchg` with memory)
  missed-inlining     in a loop a call of a function that is about as small as the call
  allocation          in a loop Go allocates a value on the heap
  division            in a loop integers are divided by a variable, which takes many cycles
  scalar-floats       a loop computes floats one by one where a register of AVX2 holds 8, or 4 doubles
  unoptimised-build   a function keeps its variables in memory: nothing else is said of it

Examples:
  deadweight scan ./prog                  the best few candidates of each kind
  deadweight scan --all ./prog            all of them
  deadweight scan old/prog new/prog       what came and what went, by function, kind and loops
  deadweight -r 10 -- ./prog              what it costs: the findings have the same names

Reading it:
  A candidate is no finding. 'loops' is how many loops of the function are around the place: code in
  two loops runs often, but only a run shows how often, and whether the processor waits for it.
  Places without debug information (-g) have a function and no line; without symbols, an address.
  Code that is reached through a table of jumps in several places at once, as in interpreters, is
  not recognised as a loop. Only x86-64 binaries can be scanned.

Exit status:
  0; 2 if a binary cannot be read. How many candidates there are does not change it.";

/// Show what may cost time in a binary's machine code, without running it.
///
/// Nothing is executed, no permission is needed, and programs that are not installed completely can be scanned too. Code of
/// standard libraries and runtimes is left out, and what was inlined of it belongs to the line that calls it.
#[derive(Debug, Args)]
#[command(after_help = KINDS)]
pub struct Scan {
    /// The program or library.
    #[arg(value_name = "BINARY")]
    pub binary: PathBuf,
    /// Another version of it: what came and what went is shown instead.
    #[arg(value_name = "BINARY2")]
    pub other: Option<PathBuf>,
    /// Show all candidates, not the best few of each kind.
    #[arg(long)]
    pub all: bool,
    /// Also show code of standard libraries and runtimes.
    #[arg(long)]
    pub libraries: bool,
    /// Ask Go's compiler why it did not inline the small functions. This builds their packages again (with `-gcflags=-m=2`,
    /// only into Go's build cache), if you own the source and it is under this directory.
    #[arg(long, conflicts_with = "other")]
    pub explain_inlining: bool,
    /// Print JSON with all candidates, for scripts. docs/scan.md describes the fields.
    #[arg(long)]
    pub json: bool,
    /// Print SARIF 2.1.0 with all candidates as notes, for code scanning.
    #[arg(long, conflicts_with_all = ["json", "other"])]
    pub sarif: bool,
    /// How to print.
    #[command(flatten)]
    pub style: Style,
}
