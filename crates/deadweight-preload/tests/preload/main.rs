//! Programs with a library and without it: the same output, and fewer system calls.
//!
//! Needs gcc and g++, and no root. What the libraries are for, the gain in time, is not judged here: it depends
//! on the machine.

#![expect(clippy::unwrap_used, reason = "a failed set-up is a failed test")]
#![cfg(all(target_arch = "x86_64", target_os = "linux"))]

mod allocator;
mod buffers;
mod harness;
mod library;
mod programs;
mod twice;
mod waits;
