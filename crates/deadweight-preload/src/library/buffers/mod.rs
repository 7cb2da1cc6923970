//! The library `Buffers`: small reads and writes are collected. The cost of many small system calls left out.
//!
//! - In: the program's calls of `read`, `write`, `lseek`, `close`, `fflush`, `setvbuf` and of functions that
//!   another process, or another descriptor, could see their effect by.
//! - Out: the same bytes in the same files and pipes, with fewer system calls.
//! - Must not know: the program.
//!
//! | module | what it does |
//! |---|---|
//! | `kernel_calls` | the system calls that move the bytes |
//! | `real` | the functions of the C library behind those that have their place taken |
//! | `table` | what each descriptor is, and its buffer; the lock |
//! | `classify` | which descriptors are collected |
//! | `owing` | streams whose `fflush` waits |
//! | `effect` | says that something was collected |
//! | `settle` | everything in its place: pending writes out, offsets right |
//! | `io` | `read`, `write`, `lseek`, `close`, `fork` |
//! | `stdio` | `fflush` that waits, streams without a buffer that get one |
//! | `gates` | functions that run as they are, after everything is in its place |
//!
//! What it does not keep:
//!
//! - A signal that kills, or a system call that goes past the C library, loses or overtakes what is pending.
//! - Two processes that read from one pipe as standard input at the same time may see the same bytes.
//! - A line of several writers of one pipe or log can be torn at another place.
//! - An error of a write is seen at the next write, or at `close`.
//! - A stream of stdio and plain calls on its descriptor are kept in order for the standard streams only.
//! - Data in a stream after a `fflush` that waited are written at a `fork`, where they would have been doubled.
//! - An address that is not the program's ends it, where the call would have failed with EFAULT.
//! - A file that another process changes is seen up to 64 KiB late by reads. Memory that processes share
//!   is not watched.
//!
//! Each shows in the output, if it matters to the program at all.

mod classify;
mod effect;
mod gates;
mod io;
mod kernel_calls;
mod owing;
mod real;
mod settle;
mod stdio;
mod table;

/// Called by the constructor, while there is one thread.
pub(crate) unsafe fn start(path: Option<*const core::ffi::c_char>) {
    effect::start(path);
    table::start();
    real::start();
}

#[used]
#[unsafe(link_section = ".fini_array")]
static DESTRUCTOR: unsafe extern "C" fn() = end;

/// stdio writes its buffers after this.
unsafe extern "C" fn end() {
    settle::all();
    table::OVER.store(true, core::sync::atomic::Ordering::Relaxed);
}
