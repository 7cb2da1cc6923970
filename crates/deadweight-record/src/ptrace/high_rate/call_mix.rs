//! The mix of estimated calls: as many of each kind as the kernel counted, interleaved.
//!
//! Does not decide how many calls there were in a period; see `high_rate`.

use super::ObservedCall;

/// Kinds that the kernel counts: calls that read, and calls that write.
pub(in crate::ptrace) const COUNTED: usize = 2;
/// These, and all other calls.
const KINDS: usize = COUNTED + 1;

/// The calls of one period, while they are reported. Those that do not fit are reported in the next
/// period.
#[derive(Debug)]
pub(in crate::ptrace) struct CallMix<'d> {
    observed: &'d [ObservedCall],
    /// Indices of each kind among the observed calls.
    indices: [Vec<usize>; KINDS],
    /// How many calls of each kind are to be reported, and how many have been.
    due: [u64; KINDS],
    reported: [u64; KINDS],
    /// Per kind, the kernel's count minus the reported calls.
    balance: Option<&'d mut [i64; COUNTED]>,
}

impl<'d> CallMix<'d> {
    /// The balance is what the kernel counted beyond the reported calls; it may be negative. Other
    /// calls come as often as among the observed ones.
    pub(super) fn from_counts(
        observed: &'d [ObservedCall],
        balance: &'d mut [i64; COUNTED],
    ) -> Self {
        let indices = indices_by_kind(observed);
        for kind in 0..COUNTED {
            // None of this kind was observed: they are reported as the other kind.
            if indices[kind].is_empty() {
                balance[COUNTED - 1 - kind] += std::mem::take(&mut balance[kind]);
            }
        }
        let due = |kind: usize| match indices[kind].len() {
            0 => 0,
            _ => u64::try_from(balance[kind]).unwrap_or(0),
        };
        let [reads, writes] = [due(0), due(1)];
        let io_calls = indices[..COUNTED].iter().map(Vec::len).sum::<usize>().max(1) as u64;
        let others = (reads + writes) * indices[COUNTED].len() as u64 / io_calls;
        Self {
            observed,
            indices,
            due: [reads, writes, others],
            reported: [0; KINDS],
            balance: Some(balance),
        }
    }

    /// Without a count: `total` calls, mixed as the observed ones.
    pub(super) fn like_observed(observed: &'d [ObservedCall], total: u64) -> Self {
        let indices = indices_by_kind(observed);
        let all = observed.len().max(1) as u64;
        let due = [0, 1, 2].map(|kind: usize| (total * indices[kind].len() as u64).div_ceil(all));
        Self { observed, indices, due, reported: [0; KINDS], balance: None }
    }

    pub(super) fn total(&self) -> u64 {
        self.due.iter().sum()
    }

    /// The next call, of the kind of which the smallest part has been reported. With `nr`, a call
    /// of that number, if one was observed.
    pub(in crate::ptrace) fn next(&mut self, nr: Option<u16>) -> Option<ObservedCall> {
        let observed_call = |nr: u16| self.observed.iter().find(|call| call.nr == nr).copied();
        let call = match nr.and_then(observed_call) {
            Some(call) => call,
            None => self.next_in_proportion()?,
        };
        let kind = call.kind();
        self.reported[kind] += 1;
        if let Some(due_balance) = self.balance.as_mut().and_then(|balance| balance.get_mut(kind)) {
            *due_balance -= 1;
        }
        Some(call)
    }

    fn next_in_proportion(&self) -> Option<ObservedCall> {
        let remaining = (0..KINDS).filter(|kind| self.due[*kind] > 0);
        // reported / due, as fractions with a common denominator.
        let fraction = |kind: usize, other: usize| {
            u128::from(2 * self.reported[kind] + 1) * u128::from(self.due[other])
        };
        let kind = remaining.min_by(|a, b| fraction(*a, *b).cmp(&fraction(*b, *a)))?;
        let indices = &self.indices[kind];
        let position = usize::try_from(self.reported[kind]).unwrap_or(0) % indices.len();
        self.observed.get(indices[position]).copied()
    }
}

fn indices_by_kind(observed: &[ObservedCall]) -> [Vec<usize>; KINDS] {
    let mut indices: [Vec<usize>; KINDS] = Default::default();
    for (index, call) in observed.iter().enumerate() {
        indices[call.kind()].push(index);
    }
    indices
}

#[cfg(test)]
#[cfg(target_arch = "x86_64")]
mod tests {
    use super::*;

    const READ: u16 = 0;
    const WRITE: u16 = 1;
    const GETPID: u16 = 39;

    fn observed(numbers: &[u16]) -> Vec<ObservedCall> {
        numbers.iter().map(|nr| ObservedCall { nr: *nr, args: [0; 6], ret: 1 }).collect()
    }

    fn all_calls(mix: &mut CallMix<'_>) -> Vec<u16> {
        (0..mix.total()).filter_map(|_| mix.next(None)).map(|call| call.nr).collect()
    }

    #[test]
    fn reads_and_writes_match_the_kernels_count_and_other_calls_keep_their_proportion() {
        let calls = observed(&[READ, READ, WRITE, GETPID, GETPID, GETPID]);
        let mut balance = [4, 2];
        let mut mix = CallMix::from_counts(&calls, &mut balance);
        let mut reported = all_calls(&mut mix);
        assert_ne!(reported[..6], [READ, READ, READ, READ, WRITE, WRITE], "not interleaved");
        reported.sort_unstable();
        let expected = [[READ; 4].as_slice(), &[WRITE; 2], &[GETPID; 6]].concat();
        assert_eq!((reported, balance), (expected, [0, 0]));
    }

    #[test]
    fn a_call_in_progress_is_reported_before_it_is_counted() {
        let calls = observed(&[WRITE, READ]);
        let mut balance = [0, 1];
        let mut mix = CallMix::from_counts(&calls, &mut balance);
        assert_eq!(mix.next(Some(READ)).map(|call| call.nr), Some(READ));
        assert_eq!(balance, [-1, 1]);
    }

    #[test]
    fn an_unobserved_kind_is_reported_as_the_other() {
        let calls = observed(&[READ]);
        let mut balance = [1, 3];
        assert_eq!(all_calls(&mut CallMix::from_counts(&calls, &mut balance)), [READ; 4]);
        assert_eq!(CallMix::from_counts(&[], &mut [1, 3]).total(), 0);
    }

    #[test]
    fn uncounted_calls_are_mixed_as_observed() {
        let calls = observed(&[READ, GETPID]);
        assert_eq!(all_calls(&mut CallMix::like_observed(&calls, 4)), [READ, GETPID, READ, GETPID]);
    }
}
