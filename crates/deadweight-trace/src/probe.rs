//! The names of the probes that count calls and allocations, as events of a trace carry them.

/// What a hit of a counted place means.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum ProbeKind {
    /// The function of `--in` was called.
    Call,
    /// Memory was asked for: the first argument of the hit is how many bytes.
    Allocation,
}

impl ProbeKind {
    /// The name of the probe that says so. The second argument of its hits is the same for all that
    /// come from one caller at one depth of a stack.
    #[must_use]
    pub fn hit_name(self) -> &'static str {
        match self {
            Self::Call => "count.call",
            Self::Allocation => "count.allocation",
        }
    }

    /// The name of the probe that tells the stack of some of those hits, once more.
    #[must_use]
    pub fn stack_name(self) -> &'static str {
        match self {
            Self::Call => "count.call.stack",
            Self::Allocation => "count.allocation.stack",
        }
    }
}

/// The name of the probe that says that counting stopped: there were hits enough.
pub const STOPPED: &str = "count.stopped";
