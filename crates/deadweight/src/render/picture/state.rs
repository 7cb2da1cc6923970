//! The states of a lane: what a task did, or what it waited for. Groups causes so that each can have a pattern.

use deadweight_core::timeline::kernel_stacks::WaitsFor;
use deadweight_core::timeline::{Block, Run, Within};
use serde::{Serialize, Serializer};

/// A state of a task.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// Its own code.
    Own,
    /// In a system call, on a CPU.
    Call,
    /// In a page fault, on a CPU.
    Fault,
    /// In other work of the kernel, on a CPU.
    Kernel,
    /// Ready, without a CPU.
    Ready,
    /// Waits for input.
    Input,
    /// Waits for space in its output.
    Output,
    /// Waits for a lock or condition.
    Lock,
    /// Waits for storage.
    Disk,
    /// Asleep.
    Sleep,
    /// Waits for children or threads to end.
    Child,
    /// Waits for something else.
    Other,
    /// Not recorded.
    Unrecorded,
}

impl State {
    /// All, in the order of their numbers.
    pub const ALL: [Self; 13] = [
        Self::Own,
        Self::Call,
        Self::Fault,
        Self::Kernel,
        Self::Ready,
        Self::Input,
        Self::Output,
        Self::Lock,
        Self::Disk,
        Self::Sleep,
        Self::Child,
        Self::Other,
        Self::Unrecorded,
    ];

    /// Its number.
    #[must_use]
    pub fn number(self) -> usize {
        Self::ALL.iter().position(|state| *state == self).unwrap_or(0)
    }

    /// Its name for people.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Own => "own code",
            Self::Call => "system call",
            Self::Fault => "page fault",
            Self::Kernel => "other kernel work",
            Self::Ready => "ready, without a CPU",
            Self::Input => "waits for input",
            Self::Output => "waits for space in its output",
            Self::Lock => "waits for a lock",
            Self::Disk => "waits for the disk",
            Self::Sleep => "asleep",
            Self::Child => "waits for children or threads",
            Self::Other => "waits for something else",
            Self::Unrecorded => "not recorded",
        }
    }

    /// Its name in style sheets.
    #[must_use]
    pub fn class(self) -> &'static str {
        match self {
            Self::Own => "own",
            Self::Call => "call",
            Self::Fault => "fault",
            Self::Kernel => "kernel",
            Self::Ready => "ready",
            Self::Input => "input",
            Self::Output => "output",
            Self::Lock => "lock",
            Self::Disk => "disk",
            Self::Sleep => "sleep",
            Self::Child => "child",
            Self::Other => "other",
            Self::Unrecorded => "unrecorded",
        }
    }

    /// Whether the task has a CPU.
    #[must_use]
    pub fn on_cpu(self) -> bool {
        matches!(self, Self::Own | Self::Call | Self::Fault | Self::Kernel)
    }

    /// Whether the task is blocked.
    #[must_use]
    pub fn blocked(self) -> bool {
        !self.on_cpu() && !matches!(self, Self::Ready | Self::Unrecorded)
    }

    /// The state of a span.
    pub(super) fn of(run: Run, within: Within, blocks: &[Block]) -> Self {
        match (run, within) {
            (Run::Unrecorded, _) => Self::Unrecorded,
            (Run::Runnable, _) => Self::Ready,
            (Run::Blocked(block), _) => blocks
                .get(block as usize)
                .map_or(Self::Other, |block| Self::of_wait(block.waits_for)),
            (Run::OnCpu(_), Within::User) => Self::Own,
            (Run::OnCpu(_), Within::Syscall(_)) => Self::Call,
            (Run::OnCpu(_), Within::Fault(_)) => Self::Fault,
            (Run::OnCpu(_), _) => Self::Kernel,
        }
    }

    fn of_wait(waits_for: WaitsFor) -> Self {
        match waits_for {
            WaitsFor::PipeData | WaitsFor::SocketData | WaitsFor::Poll | WaitsFor::Terminal => {
                Self::Input
            }
            WaitsFor::PipeRoom | WaitsFor::SocketRoom => Self::Output,
            WaitsFor::Futex | WaitsFor::KernelLock | WaitsFor::Turn => Self::Lock,
            WaitsFor::Disk => Self::Disk,
            WaitsFor::Sleep | WaitsFor::Tick => Self::Sleep,
            WaitsFor::Child | WaitsFor::Vfork | WaitsFor::Threads => Self::Child,
            WaitsFor::Signal | WaitsFor::Recording | WaitsFor::Other => Self::Other,
        }
    }
}

impl Serialize for State {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(self.number() as u64)
    }
}
