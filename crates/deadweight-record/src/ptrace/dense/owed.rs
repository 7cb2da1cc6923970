//! Which of the watched calls are told next: as many of each kind as the kernel counted, in turns.

use super::Watched;

/// Kinds that the kernel counts: calls that read and calls that write.
pub(in crate::ptrace) const COUNTED: usize = 2;
/// And all others.
const KINDS: usize = COUNTED + 1;

/// The calls of one stretch, while they are told. What does not fit into it is told in the next.
#[derive(Debug)]
pub(in crate::ptrace) struct Owed<'d> {
    watched: &'d [Watched],
    /// Places of each kind among those watched.
    kinds: [Vec<usize>; KINDS],
    /// How many of each kind are to be told, and how many are.
    due: [u64; KINDS],
    told: [u64; KINDS],
    /// Where the kernel's count of each kind stands against what was told.
    ledger: Option<&'d mut [i64; COUNTED]>,
}

impl<'d> Owed<'d> {
    /// The kernel counted that many more than were told, which may be fewer than none. Others come as often as among
    /// those watched.
    pub(super) fn counted(watched: &'d [Watched], ledger: &'d mut [i64; COUNTED]) -> Self {
        let kinds = by_kind(watched);
        for kind in 0..COUNTED {
            // None of this kind was watched: they are told as the other.
            if kinds[kind].is_empty() {
                ledger[COUNTED - 1 - kind] += std::mem::take(&mut ledger[kind]);
            }
        }
        let due = |kind: usize| match kinds[kind].len() {
            0 => 0,
            _ => u64::try_from(ledger[kind]).unwrap_or(0),
        };
        let [reads, writes] = [due(0), due(1)];
        let moving = kinds[..COUNTED].iter().map(Vec::len).sum::<usize>().max(1) as u64;
        let others = (reads + writes) * kinds[COUNTED].len() as u64 / moving;
        Self {
            watched,
            kinds,
            due: [reads, writes, others],
            told: [0; KINDS],
            ledger: Some(ledger),
        }
    }

    /// Nobody counted them: so many, as they were watched.
    pub(super) fn alike(watched: &'d [Watched], count: u64) -> Self {
        let kinds = by_kind(watched);
        let all = watched.len().max(1) as u64;
        let due = [0, 1, 2].map(|kind: usize| (count * kinds[kind].len() as u64).div_ceil(all));
        Self { watched, kinds, due, told: [0; KINDS], ledger: None }
    }

    pub(super) fn count(&self) -> u64 {
        self.due.iter().sum()
    }

    /// The next: of the kind of which the smallest part was told. If `nr` is given, one of that number, if any was watched.
    pub(in crate::ptrace) fn next(&mut self, nr: Option<u16>) -> Option<Watched> {
        let known = |nr: u16| self.watched.iter().find(|call| call.nr == nr).copied();
        let call = match nr.and_then(known) {
            Some(call) => call,
            None => self.in_turn()?,
        };
        let kind = call.kind();
        self.told[kind] += 1;
        if let Some(owed) = self.ledger.as_mut().and_then(|ledger| ledger.get_mut(kind)) {
            *owed -= 1;
        }
        Some(call)
    }

    fn in_turn(&self) -> Option<Watched> {
        let left = (0..KINDS).filter(|kind| self.due[*kind] > 0);
        // told / due, as fractions with a common denominator.
        let part = |kind: usize, other: usize| {
            u128::from(2 * self.told[kind] + 1) * u128::from(self.due[other])
        };
        let kind = left.min_by(|a, b| part(*a, *b).cmp(&part(*b, *a)))?;
        let places = &self.kinds[kind];
        let turn = usize::try_from(self.told[kind]).unwrap_or(0) % places.len();
        self.watched.get(places[turn]).copied()
    }
}

fn by_kind(watched: &[Watched]) -> [Vec<usize>; KINDS] {
    let mut kinds: [Vec<usize>; KINDS] = Default::default();
    for (place, call) in watched.iter().enumerate() {
        kinds[call.kind()].push(place);
    }
    kinds
}

#[cfg(test)]
#[cfg(target_arch = "x86_64")]
mod tests {
    use super::*;

    const READ: u16 = 0;
    const WRITE: u16 = 1;
    const GETPID: u16 = 39;

    fn watched(numbers: &[u16]) -> Vec<Watched> {
        numbers.iter().map(|nr| Watched { nr: *nr, args: [0; 6], ret: 1 }).collect()
    }

    fn told(owed: &mut Owed<'_>) -> Vec<u16> {
        (0..owed.count()).filter_map(|_| owed.next(None)).map(|call| call.nr).collect()
    }

    #[test]
    fn reads_and_writes_come_as_often_as_the_kernel_counted_them_and_others_with_them() {
        let calls = watched(&[READ, READ, WRITE, GETPID, GETPID, GETPID]);
        let mut ledger = [4, 2];
        let mut owed = Owed::counted(&calls, &mut ledger);
        let mut told = told(&mut owed);
        assert_ne!(told[..6], [READ, READ, READ, READ, WRITE, WRITE], "not in turns");
        told.sort_unstable();
        let expected = [[READ; 4].as_slice(), &[WRITE; 2], &[GETPID; 6]].concat();
        assert_eq!((told, ledger), (expected, [0, 0]));
    }

    #[test]
    fn the_call_that_it_stands_in_is_counted_later() {
        let calls = watched(&[WRITE, READ]);
        let mut ledger = [0, 1];
        let mut owed = Owed::counted(&calls, &mut ledger);
        assert_eq!(owed.next(Some(READ)).map(|call| call.nr), Some(READ));
        assert_eq!(ledger, [-1, 1]);
    }

    #[test]
    fn a_kind_that_was_not_watched_is_told_as_the_other() {
        let calls = watched(&[READ]);
        let mut ledger = [1, 3];
        assert_eq!(told(&mut Owed::counted(&calls, &mut ledger)), [READ; 4]);
        assert_eq!(Owed::counted(&[], &mut [1, 3]).count(), 0);
    }

    #[test]
    fn what_nobody_counts_is_told_as_it_was_watched() {
        let calls = watched(&[READ, GETPID]);
        assert_eq!(told(&mut Owed::alike(&calls, 4)), [READ, GETPID, READ, GETPID]);
    }
}
