//! What the programs in the kernel told: a copy of a task's entry. Safe with any bytes.

use crate::bpf::layout::entry;

/// A copy of an entry of the table of tasks.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Told<'a>(pub(crate) &'a [u8]);

/// Calls that are alike.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Alike {
    pub(crate) nr: u16,
    /// The first four, as far as they tell calls apart.
    pub(crate) args: [u64; 6],
    pub(crate) ret: i64,
    pub(crate) count: u32,
    /// Time in all of them, in ns: those that were not timed take as long as those that were.
    pub(crate) inside: u64,
}

impl<'a> Told<'a> {
    fn word(self, offset: usize) -> Option<u64> {
        self.0.get(offset..)?.first_chunk().map(|b| u64::from_ne_bytes(*b))
    }

    fn half(self, offset: usize) -> Option<u32> {
        self.0.get(offset..)?.first_chunk().map(|b| u32::from_ne_bytes(*b))
    }

    /// Whose calls they are: the kernel may have forgotten the task of the record.
    pub(crate) fn task(self) -> Option<u32> {
        self.half(entry::TASK)
    }

    /// Calls that had no room.
    pub(crate) fn missed(self) -> u64 {
        self.word(entry::MISSED).unwrap_or(0)
    }

    /// The call that is under way, if that is what is told.
    pub(crate) fn open_call(self) -> Option<(u16, [u64; 6])> {
        if self.half(entry::TOLD)? != entry::OPEN_CALL {
            return None;
        }
        Some((u16::try_from(self.word(entry::NR)?).ok()?, self.args(entry::ARGS)?))
    }

    /// How long it took to make the calls that were counted, in ns.
    pub(crate) fn over(self) -> Option<u64> {
        Some(self.word(entry::UNTIL)?.saturating_sub(self.word(entry::SINCE)?))
    }

    /// The calls that were counted.
    pub(crate) fn counted(self) -> impl Iterator<Item = Alike> + use<'a> {
        let counts = self.half(entry::TOLD) == Some(entry::COUNTED);
        let kinds = if counts { entry::KINDS } else { 0 };
        (0..kinds).filter_map(move |kind| self.alike(entry::FIRST_KIND + kind * entry::KIND_SIZE))
    }

    fn alike(self, first: usize) -> Option<Alike> {
        let count = self.word(first + entry::KIND_COUNT)?;
        let count = u32::try_from(count).ok().filter(|count| *count > 0)?;
        let word = |offset| self.word(first + offset);
        let (timed, inside) = (word(entry::KIND_TIMED)?, word(entry::KIND_INSIDE)?);
        let short = u64::from(count).saturating_sub(word(entry::KIND_LONG)?);
        let inside = u128::from(inside) * u128::from(short) / u128::from(timed.max(1));
        let inside = u64::try_from(inside).unwrap_or(u64::MAX);
        Some(Alike {
            nr: u16::try_from(self.word(first)?).ok()?,
            args: self.args(first + entry::KIND_ARGS)?,
            ret: self.word(first + entry::KIND_RESULT)?.cast_signed(),
            count,
            inside: inside.saturating_add(word(entry::KIND_INSIDE_LONG)?),
        })
    }

    fn args(self, first: usize) -> Option<[u64; 6]> {
        let [a, b, c, d] = [0, 8, 16, 24].map(|offset| self.word(first + offset));
        Some([a?, b?, c?, d?, 0, 0])
    }
}
