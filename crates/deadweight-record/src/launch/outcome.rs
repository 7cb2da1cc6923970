//! The result of a recorded run, in numbers. The sink gets the events themselves.

use super::Ended;
use deadweight_trace::units::Ns;
use deadweight_trace::{Exit, Usage};

/// A recorded run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// How the program ended.
    pub exit: Exit,
    /// The kernel's count of its CPU time.
    pub usage: Usage,
    /// From the release of the barrier to `wait4`'s return.
    pub wall: Ns,
    /// Records read.
    pub records: u64,
    /// Records that the kernel dropped.
    pub lost: u64,
    /// Bytes copied out of the rings.
    pub bytes: u64,
}

impl Outcome {
    pub(crate) fn new(ended: &Ended, records: u64, lost: u64, bytes: u64) -> Self {
        let wall = Ns(ended.end - ended.start);
        Self { exit: ended.exit, usage: ended.usage, wall, records, lost, bytes }
    }
}
