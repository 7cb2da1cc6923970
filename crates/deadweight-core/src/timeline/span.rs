//! One interval of a task, in 16 bytes: ten million events have some ten million of them.
//!
//! Two words say what a task did. An index is itself in its word; everything else has the highest bit. Not for how spans
//! follow each other; see `build`.

use deadweight_trace::ids::{CallId, Cpu};
use deadweight_trace::units::Ns;

/// Indices of calls, faults and waits are below this.
pub(crate) const INDICES: usize = 1 << 30;

/// In a word: it is no index of a call or a wait.
const OTHER: u32 = 1 << 31;
/// In the word of what a task was in the middle of: the index of a fault. In that of its state: a CPU.
const SECOND: u32 = 1 << 30;

/// An interval of one task in one state. It ends where the next one starts.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// When it starts.
    pub start: Ns,
    run: u32,
    within: u32,
}

/// Whether a task ran, could have run, or waited.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Run {
    /// On this CPU.
    OnCpu(Cpu),
    /// Runnable, but no CPU: since its birth, a wake-up, a preemption or a yield.
    Runnable,
    /// Waiting: an index into [`super::Timeline::blocks`].
    Blocked(u32),
    /// Records were lost here: not known.
    Unrecorded,
}

/// What a task was in the middle of.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Within {
    /// Its own code.
    User,
    /// A system call.
    Syscall(CallId),
    /// A page fault (index into [`super::Timeline::faults`]), see [`super::Fault::call`].
    Fault(u32),
    /// The timer interrupt.
    Interrupt,
    /// Between being released towards exec and the first instruction of the program, or, for a
    /// child, between its birth and its first record.
    Starting,
    /// From its exit to its last switch: memory being taken down.
    Exiting,
}

impl Span {
    /// From `start` on, a task is in this state.
    #[must_use]
    pub fn new(start: Ns, run: Run, within: Within) -> Self {
        let within = match within {
            Within::Syscall(call) => index(call.index()),
            Within::Fault(fault) => OTHER | SECOND | fault,
            Within::User => OTHER,
            Within::Interrupt => OTHER | 1,
            Within::Starting => OTHER | 2,
            Within::Exiting => OTHER | 3,
        };
        Self { start, run: word(run), within }
    }

    /// Whether the task ran, could have run, or waited.
    #[must_use]
    #[inline]
    pub fn run(&self) -> Run {
        #[expect(clippy::cast_possible_truncation, reason = "a CPU's number in the lower half")]
        match self.run {
            block if block & OTHER == 0 => Run::Blocked(block),
            cpu if cpu & SECOND != 0 => Run::OnCpu(Cpu(cpu as u16)),
            OTHER => Run::Runnable,
            _ => Run::Unrecorded,
        }
    }

    /// What it was in the middle of: independent of its state.
    #[must_use]
    #[inline]
    pub fn within(&self) -> Within {
        match self.within {
            call if call & OTHER == 0 => Within::Syscall(CallId::at(call as usize)),
            fault if fault & SECOND != 0 => Within::Fault(fault & !(OTHER | SECOND)),
            OTHER => Within::User,
            other => match other & !OTHER {
                1 => Within::Interrupt,
                2 => Within::Starting,
                _ => Within::Exiting,
            },
        }
    }

    /// Whether a task did the same in both.
    #[inline]
    pub(super) fn is_like(&self, other: &Self) -> bool {
        (self.run, self.within) == (other.run, other.within)
    }

    /// Corrects the state.
    pub(super) fn set_run(&mut self, run: Run) {
        self.run = word(run);
    }
}

/// The limit is far below what a word holds.
fn index(index: usize) -> u32 {
    u32::try_from(index.min(INDICES)).unwrap_or(0)
}

fn word(run: Run) -> u32 {
    match run {
        Run::Blocked(block) => block,
        Run::OnCpu(cpu) => OTHER | SECOND | u32::from(cpu.0),
        Run::Runnable => OTHER,
        Run::Unrecorded => OTHER | 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_small_and_read_back() {
        let last = u32::try_from(INDICES - 1).unwrap();
        assert_eq!(size_of::<Span>(), 16);
        let runs = [
            Run::OnCpu(Cpu(0)),
            Run::OnCpu(Cpu(u16::MAX)),
            Run::Runnable,
            Run::Blocked(0),
            Run::Blocked(last),
            Run::Unrecorded,
        ];
        let withins = [
            Within::User,
            Within::Syscall(CallId::at(0)),
            Within::Syscall(CallId::at(INDICES - 1)),
            Within::Fault(0),
            Within::Fault(last),
            Within::Interrupt,
            Within::Starting,
            Within::Exiting,
        ];
        for (run, within) in runs.iter().flat_map(|run| withins.iter().map(move |w| (*run, *w))) {
            let span = Span::new(Ns(7), run, within);
            assert_eq!((span.start, span.run(), span.within()), (Ns(7), run, within));
        }
    }
}
