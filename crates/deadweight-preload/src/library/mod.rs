//! The root of each library. `--cfg library="…"` says which one it is.
//!
//! - In: the program's calls of functions of the C library.
//! - Out: the same results, with a cost left out.
//! - Must not know: the command, and any crate but `core`.

#![no_std]
#![expect(unsafe_op_in_unsafe_fn, reason = "nearly every line here is about a pointer")]

#[cfg(library = "allocator")]
mod allocator;
#[cfg(library = "answers")]
mod answers;
#[cfg(library = "buffers")]
mod buffers;
mod c;
#[cfg(library = "durable")]
mod durable;
mod kernel;
mod loaded;
#[cfg(library = "maps")]
mod maps;
#[cfg(not(any(library = "nothing", library = "allocator", library = "yields")))]
mod real;
#[cfg(library = "sockets")]
mod sockets;
#[cfg(any(library = "allocator", library = "answers", library = "buffers", library = "maps"))]
mod spin;
#[cfg(library = "time_outs")]
mod time_outs;
#[cfg(library = "twice")]
mod twice;
#[cfg(library = "yields")]
mod yields;

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    // SAFETY: `abort` takes nothing and does not return.
    unsafe { c::abort() }
}

// `core` was compiled to unwind, and names this. Nothing unwinds here, so that nothing calls it. Hidden: a
// program that has std has one of its own.
core::arch::global_asm!(
    ".pushsection .text",
    ".hidden rust_eh_personality",
    ".globl rust_eh_personality",
    "rust_eh_personality:",
    "ud2",
    ".popsection",
);
