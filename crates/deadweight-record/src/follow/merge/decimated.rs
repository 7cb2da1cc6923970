//! How many calls a 1-in-N record stands for, and since when.
//!
//! The kernel counts on each CPU. So of the calls since its last such record there, those without a record of their
//! own are not reported yet. Pure; `follow::decimated` decides what these calls were like.

use crate::perf::schema::Role;
use deadweight_trace::hash::ByFast;
use std::collections::HashMap;

/// The decimated calls.
#[derive(Debug, Default)]
pub(crate) struct DecimatedCalls {
    /// One tid may belong to several tasks, one after the other.
    of: HashMap<(u32, u16), Vec<Of>, ByFast>,
}

/// One task's call.
#[derive(Debug)]
struct Of {
    /// Before this it was not decimated.
    from: u64,
    /// All calls up to here are reported.
    since: u64,
    /// The entry of the call under way is recorded.
    entered: bool,
    /// By CPU: calls since the last 1-in-N record that have records of their own.
    single: HashMap<u32, u64, ByFast>,
}

/// Calls without a record of their own.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct UnrecordedCalls {
    /// They came after this ...
    pub(crate) since: u64,
    /// ... until this.
    pub(crate) until: u64,
    pub(crate) count: u32,
}

/// What a record of a call stands for.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum DecimatedRecord {
    /// The call itself.
    Itself,
    /// Nothing: its other half was not recorded.
    Nothing,
    /// Other calls.
    StandsFor(UnrecordedCalls),
}

impl DecimatedCalls {
    pub(crate) fn is_empty(&self) -> bool {
        self.of.is_empty()
    }

    /// From `from` on, 1 in N of this task's call is recorded.
    pub(crate) fn begin(&mut self, task: u32, nr: u16, from: u64) {
        let of = Of { from, since: from, entered: false, single: HashMap::default() };
        self.of.entry((task, nr)).or_default().push(of);
    }

    /// Takes a record of a call, in order of time. One with the role `LeaveNth` stands for `nth` calls.
    pub(crate) fn take(
        &mut self,
        role: Role,
        (task, nr, cpu): (u32, u16, u32),
        at: u64,
        nth: u32,
    ) -> DecimatedRecord {
        let of = self.of.get_mut(&(task, nr)).and_then(|all| {
            let latest = all.iter().rposition(|of| at >= of.from)?;
            all.get_mut(latest)
        });
        let Some(of) = of else { return DecimatedRecord::Itself };
        match role {
            Role::Enter => of.entered = true,
            Role::Leave if !std::mem::take(&mut of.entered) => {
                // The call that was under way at the beginning has its entry before it.
                let first = of.single.is_empty() && of.since == of.from;
                return if first { DecimatedRecord::Itself } else { DecimatedRecord::Nothing };
            }
            Role::Leave => {
                *of.single.entry(cpu).or_default() += 1;
                of.since = at;
            }
            Role::LeaveNth => {
                let single = of.single.insert(cpu, 0).unwrap_or(0);
                let since = std::mem::replace(&mut of.since, at);
                let count = u64::from(nth).saturating_sub(single);
                let count = u32::try_from(count).unwrap_or(0);
                return DecimatedRecord::StandsFor(UnrecordedCalls { since, until: at, count });
            }
            _ => {}
        }
        DecimatedRecord::Itself
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const READ: (u32, u16, u32) = (7, 0, 1);

    fn taken(nth: &mut DecimatedCalls, role: Role, at: u64) -> DecimatedRecord {
        nth.take(role, READ, at, 61)
    }

    #[test]
    fn calls_with_own_records_are_not_counted_again() {
        let mut nth = DecimatedCalls::default();
        assert!(nth.is_empty());
        nth.begin(7, 0, 100);
        // It was in this call at the beginning.
        assert_eq!(taken(&mut nth, Role::Leave, 101), DecimatedRecord::Itself);
        assert_eq!(taken(&mut nth, Role::Enter, 110), DecimatedRecord::Itself);
        assert_eq!(taken(&mut nth, Role::Leave, 120), DecimatedRecord::Itself);
        let first = UnrecordedCalls { since: 120, until: 500, count: 60 };
        assert_eq!(taken(&mut nth, Role::LeaveNth, 500), DecimatedRecord::StandsFor(first));
        let next = UnrecordedCalls { since: 500, until: 900, count: 61 };
        assert_eq!(taken(&mut nth, Role::LeaveNth, 900), DecimatedRecord::StandsFor(next));
        for call in 0..61 {
            assert_eq!(taken(&mut nth, Role::Enter, 1000 + 2 * call), DecimatedRecord::Itself);
            assert_eq!(taken(&mut nth, Role::Leave, 1001 + 2 * call), DecimatedRecord::Itself);
        }
        let none = UnrecordedCalls { since: 1121, until: 1121, count: 0 };
        assert_eq!(taken(&mut nth, Role::LeaveNth, 1121), DecimatedRecord::StandsFor(none));
    }

    #[test]
    fn a_return_without_recorded_entry_is_ignored() {
        let mut nth = DecimatedCalls::default();
        nth.begin(7, 0, 100);
        assert!(matches!(taken(&mut nth, Role::LeaveNth, 500), DecimatedRecord::StandsFor(_)));
        assert_eq!(taken(&mut nth, Role::Leave, 600), DecimatedRecord::Nothing);
        let next = UnrecordedCalls { since: 500, until: 900, count: 61 };
        assert_eq!(taken(&mut nth, Role::LeaveNth, 900), DecimatedRecord::StandsFor(next));
        assert_eq!(nth.take(Role::Leave, (8, 0, 1), 950, 61), DecimatedRecord::Itself);
    }

    #[test]
    fn a_reused_tid_has_calls_of_its_own() {
        let mut nth = DecimatedCalls::default();
        nth.begin(7, 0, 100);
        assert_eq!(taken(&mut nth, Role::Enter, 110), DecimatedRecord::Itself);
        assert_eq!(taken(&mut nth, Role::Leave, 120), DecimatedRecord::Itself);
        nth.begin(7, 0, 400);
        // Records come in order of time; later ones are not known yet.
        let old = UnrecordedCalls { since: 120, until: 300, count: 60 };
        assert_eq!(taken(&mut nth, Role::LeaveNth, 300), DecimatedRecord::StandsFor(old));
        let new = UnrecordedCalls { since: 400, until: 900, count: 61 };
        assert_eq!(taken(&mut nth, Role::LeaveNth, 900), DecimatedRecord::StandsFor(new));
    }

    #[test]
    fn each_cpu_counts_for_itself() {
        let mut nth = DecimatedCalls::default();
        nth.begin(7, 0, 100);
        taken(&mut nth, Role::Enter, 110);
        taken(&mut nth, Role::Leave, 120);
        let other = nth.take(Role::LeaveNth, (7, 0, 0), 300, 61);
        assert_eq!(
            other,
            DecimatedRecord::StandsFor(UnrecordedCalls { since: 120, until: 300, count: 61 })
        );
        let first = UnrecordedCalls { since: 300, until: 500, count: 60 };
        assert_eq!(taken(&mut nth, Role::LeaveNth, 500), DecimatedRecord::StandsFor(first));
    }
}
