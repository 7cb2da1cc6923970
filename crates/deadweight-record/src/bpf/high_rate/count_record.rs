//! Decodes a count record: a copy of a task's entry. Safe with any bytes.
//!
//! Does not emit events; see `follow`.

use crate::bpf::layout::task_entry;

/// A copy of an entry of the task map.
#[derive(Copy, Clone, Debug)]
pub(crate) struct CountRecord<'a>(pub(crate) &'a [u8]);

/// Calls that are alike, counted together.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct CallCount {
    pub(crate) nr: u16,
    /// The first four, masked.
    pub(crate) args: [u64; 6],
    pub(crate) ret: i64,
    pub(crate) count: u32,
    /// Sum of their times, in ns. The time of calls that were not timed is extrapolated.
    pub(crate) inside: u64,
}

impl<'a> CountRecord<'a> {
    fn u64_at(self, offset: usize) -> Option<u64> {
        self.0.get(offset..)?.first_chunk().map(|b| u64::from_ne_bytes(*b))
    }

    fn u32_at(self, offset: usize) -> Option<u32> {
        self.0.get(offset..)?.first_chunk().map(|b| u32::from_ne_bytes(*b))
    }

    /// The task of these calls. The record's own task may have ended.
    pub(crate) fn task(self) -> Option<u32> {
        self.u32_at(task_entry::TASK)
    }

    /// Calls that fit into no kind.
    pub(crate) fn missed(self) -> u64 {
        self.u64_at(task_entry::MISSED).unwrap_or(0)
    }

    /// The open call, if the record has one.
    pub(crate) fn open_call(self) -> Option<(u16, [u64; 6])> {
        if self.u32_at(task_entry::RECORD_KIND)? != task_entry::OPEN_CALL {
            return None;
        }
        Some((u16::try_from(self.u64_at(task_entry::NR)?).ok()?, self.args(task_entry::ARGS)?))
    }

    /// Length of the counted period, in ns.
    pub(crate) fn duration(self) -> Option<u64> {
        Some(self.u64_at(task_entry::UNTIL)?.saturating_sub(self.u64_at(task_entry::SINCE)?))
    }

    /// The counted calls.
    pub(crate) fn counts(self) -> impl Iterator<Item = CallCount> + use<'a> {
        let has_counts = self.u32_at(task_entry::RECORD_KIND) == Some(task_entry::COUNTED);
        let kinds = if has_counts { task_entry::KINDS } else { 0 };
        (0..kinds).filter_map(move |kind| {
            self.count_at(task_entry::FIRST_KIND + kind * task_entry::KIND_SIZE)
        })
    }

    fn count_at(self, first: usize) -> Option<CallCount> {
        let count = self.u64_at(first + task_entry::KIND_COUNT)?;
        let count = u32::try_from(count).ok().filter(|count| *count > 0)?;
        let field = |offset| self.u64_at(first + offset);
        let (timed, inside) = (field(task_entry::KIND_TIMED)?, field(task_entry::KIND_INSIDE)?);
        let short = u64::from(count).saturating_sub(field(task_entry::KIND_LONG)?);
        let inside = u128::from(inside) * u128::from(short) / u128::from(timed.max(1));
        let inside = u64::try_from(inside).unwrap_or(u64::MAX);
        Some(CallCount {
            nr: u16::try_from(self.u64_at(first)?).ok()?,
            args: self.args(first + task_entry::KIND_ARGS)?,
            ret: self.u64_at(first + task_entry::KIND_RESULT)?.cast_signed(),
            count,
            inside: inside.saturating_add(field(task_entry::KIND_INSIDE_LONG)?),
        })
    }

    fn args(self, first: usize) -> Option<[u64; 6]> {
        let [a, b, c, d] = [0, 8, 16, 24].map(|offset| self.u64_at(first + offset));
        Some([a?, b?, c?, d?, 0, 0])
    }
}
