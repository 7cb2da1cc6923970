//! Names of the probes that count calls and allocations, as the events of a trace carry them.
//!
//! Not for placing probes or counting hits: the recorder and the analysis do that.

/// What a hit of a counting probe means.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum ProbeKind {
    /// The function of `--in` was called.
    Call,
    /// Memory was requested: the first argument of the hit is the number of bytes.
    Allocation,
    /// An exception or a panic was thrown.
    Throw,
}

impl ProbeKind {
    /// The name of the probe that reports each hit. The second argument is equal for all hits from one caller at
    /// one stack depth.
    #[must_use]
    pub fn hit_name(self) -> &'static str {
        match self {
            Self::Call => "count.call",
            Self::Allocation => "count.allocation",
            Self::Throw => "count.throw",
        }
    }

    /// The name of the probe that reports some of these hits once more, with their call stack.
    #[must_use]
    pub fn stack_name(self) -> &'static str {
        match self {
            Self::Call => "count.call.stack",
            Self::Allocation => "count.allocation.stack",
            Self::Throw => "count.throw.stack",
        }
    }
}

/// The name of the probe that reports that counting stopped, because there were enough hits.
pub const STOPPED: &str = "count.stopped";
