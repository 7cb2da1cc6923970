//! A question about a path that was asked before has the same answer: the kernel is not asked again.
//!
//! - In: the program's calls of `stat`, `statx`, `access` and their kin.
//! - Out: what the kernel answered the first time.
//! - Must not know: why the program asks.
//!
//! Answers are forgotten when the program changes a file by its path or goes to another folder, and when a child has
//! ended. A file that it opened to write has none from then on.
//!
//! What it does not keep: what other programs change meanwhile is not seen, nor what the program changes by a descriptor
//! that it was given. Times of last access are those of the first answer.

mod changes;
mod questions;
mod table;

pub(crate) unsafe fn start() {
    crate::real::start();
    table::start();
}
