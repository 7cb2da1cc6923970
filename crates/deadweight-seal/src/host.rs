//! What the sealer needs of the process that it runs in, as functions that the caller passes in.
//!
//! This crate has no `unsafe` code and asks the system for nothing but files; the recorder has these functions.

/// Functions of the process that seals.
#[derive(Copy, Clone, Debug)]
pub struct Host {
    /// Drops for good all privileges except reading files, and writing to files that are already open.
    pub drop_privileges: fn(),
    /// How many more bytes of memory this process may use; `u64::MAX` where nothing limits it.
    pub memory_left: fn() -> u64,
    /// Returns free memory from the allocator to the system.
    pub return_memory: fn(),
}

impl Default for Host {
    /// Keeps all privileges and knows no limit of memory.
    fn default() -> Self {
        Self { drop_privileges: || {}, memory_left: || u64::MAX, return_memory: || {} }
    }
}
