//! Shared libraries that leave a cost out of a program: the other half of a proof.
//!
//! A *proof run* runs a program in pairs, once as it is and once with a cost left out, and compares output
//! and time. A library that is loaded with `LD_PRELOAD` leaves the cost out: it takes the place of functions
//! of the C library. This crate holds the bytes of these libraries. It starts no program and draws no
//! conclusions.
//!
//! The sources are in `src/library`. They are compiled by `build.rs`, each to a library of its own, without
//! std: they use what the program's C library has, glibc or musl. They must be right before they are fast, and
//! where they cannot be, the rule is: the output differs, so that the comparison refuses. What each library
//! cannot keep is written at the top of its `mod.rs`.

#![forbid(unsafe_code)]

// Compiled by `build.rs`. It is named here so that `cargo fmt` formats it.
#[cfg(any())]
mod library;

/// Environment variable with the path of a file.
///
/// Each library but [`Library::Twice`] appends a `.` to it in every process that loads it. [`Library::Twice`] and
/// [`Library::Buffers`] append a `+` when they first have an effect. An empty file means: the library was not loaded (a static
/// program, or one that does not pass its environment on).
pub const LOADED: &str = "DEADWEIGHT_PRELOADED";

/// Environment variable of [`Library::Twice`]: `2:PATH:CALLS`, or `1:PATH:CALLS` for the other side of a pair.
///
/// The path is that of the binary with the calls. These are the addresses of their last bytes in its file, in hexadecimal, at most
/// eight, with commas between.
pub const TWICE: &str = "DEADWEIGHT_TWICE";

/// One of the libraries.
///
/// A glibc before 2.34 has `dlsym` in a library of its own: `libdl.so.2` has to be preloaded, too, with all but the first
/// two and `Yields`. Without it the dynamic linker refuses to start the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Library {
    /// Changes nothing. The other side of a pair loads it, so that the cost of loading cancels out.
    Nothing,
    /// An allocator that does the least: the cost of `malloc` and `free` left out.
    Allocator,
    /// Questions about paths have the answer that they had before: the cost of asking again left out.
    Answers,
    /// Small reads and writes are collected: the cost of many small system calls left out.
    Buffers,
    /// Files are opened without O_SYNC and O_DSYNC: writes that wait until their data is stored left out.
    Durable,
    /// Memory that is unmapped is kept for the next mapping: the cost of mapping and faulting it in again left out.
    Maps,
    /// TCP sends and acknowledges at once: waits for delayed acknowledgements left out.
    Sockets,
    /// Waits that only the clock ends are cut short: sleeps and time-outs left out.
    TimeOuts,
    /// Some calls are made twice: what cannot be left out, added once more.
    Twice,
    /// Who yields sleeps for a moment: loops of yields left out.
    Yields,
}

impl Library {
    /// All libraries.
    pub const ALL: [Library; 10] = [
        Library::Nothing,
        Library::Allocator,
        Library::Answers,
        Library::Buffers,
        Library::Durable,
        Library::Maps,
        Library::Sockets,
        Library::TimeOuts,
        Library::Twice,
        Library::Yields,
    ];

    /// The shared object. It is empty on a target that the libraries are not written for: all but x86-64 Linux.
    #[must_use]
    pub fn bytes(self) -> &'static [u8] {
        match self {
            Library::Nothing => include_bytes!(concat!(env!("OUT_DIR"), "/nothing.so")),
            Library::Allocator => include_bytes!(concat!(env!("OUT_DIR"), "/allocator.so")),
            Library::Answers => include_bytes!(concat!(env!("OUT_DIR"), "/answers.so")),
            Library::Buffers => include_bytes!(concat!(env!("OUT_DIR"), "/buffers.so")),
            Library::Durable => include_bytes!(concat!(env!("OUT_DIR"), "/durable.so")),
            Library::Maps => include_bytes!(concat!(env!("OUT_DIR"), "/maps.so")),
            Library::Sockets => include_bytes!(concat!(env!("OUT_DIR"), "/sockets.so")),
            Library::TimeOuts => include_bytes!(concat!(env!("OUT_DIR"), "/time_outs.so")),
            Library::Twice => include_bytes!(concat!(env!("OUT_DIR"), "/twice.so")),
            Library::Yields => include_bytes!(concat!(env!("OUT_DIR"), "/yields.so")),
        }
    }

    /// The name under which the bytes are written to a folder.
    #[must_use]
    pub fn file_name(self) -> &'static str {
        match self {
            Library::Nothing => "libdeadweight_nothing.so",
            Library::Allocator => "libdeadweight_allocator.so",
            Library::Answers => "libdeadweight_answers.so",
            Library::Buffers => "libdeadweight_buffers.so",
            Library::Durable => "libdeadweight_durable.so",
            Library::Maps => "libdeadweight_maps.so",
            Library::Sockets => "libdeadweight_sockets.so",
            Library::TimeOuts => "libdeadweight_time_outs.so",
            Library::Twice => "libdeadweight_twice.so",
            Library::Yields => "libdeadweight_yields.so",
        }
    }
}
