//! Fields of tracepoints as the kernel writes them behind a sample. Their places have not changed since Linux 2.6.32.
//!
//! Not for tracepoints in general: the format descriptions in the file are not read.

use crate::facts::What;
use deadweight_trace::ids::Tid;

/// Which tracepoints are read.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Tracepoint {
    /// `sched:sched_switch`.
    Switch,
    /// `sched:sched_waking`, or `sched:sched_wakeup` where that is all there is.
    Wake,
    /// `raw_syscalls:sys_enter`.
    Enter,
    /// `raw_syscalls:sys_exit`.
    Leave,
}

impl Tracepoint {
    /// The tracepoint with this name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        match name {
            "sched:sched_switch" => Some(Self::Switch),
            "sched:sched_waking" => Some(Self::Wake),
            "raw_syscalls:sys_enter" => Some(Self::Enter),
            "raw_syscalls:sys_exit" => Some(Self::Leave),
            _ => None,
        }
    }

    /// What these bytes say; none if they are too short.
    pub(crate) fn read(self, bytes: &[u8], chain: Vec<u64>) -> Option<What> {
        match self {
            Self::Switch => {
                let state = u64::from_le_bytes(bytes.get(32..40)?.try_into().ok()?);
                let next = Tid(number(bytes, 56)?);
                Some(What::Switch { state, next, chain })
            }
            Self::Wake => Some(What::Wake { wakee: Tid(number(bytes, 24)?), chain }),
            Self::Enter => {
                let mut args = [0; 6];
                for (at, arg) in args.iter_mut().enumerate() {
                    *arg = long(bytes, 16 + 8 * at)?;
                }
                Some(What::Enter { nr: u16::try_from(long(bytes, 8)?).unwrap_or(u16::MAX), args })
            }
            Self::Leave => Some(What::Leave { ret: long(bytes, 16)?.cast_signed() }),
        }
    }
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn long(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}
