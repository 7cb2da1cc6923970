//! Descriptors that a process closes though they are not open: a call for each number up to the limit, in a child that
//! works on. What becomes another program does it before that, see `start_up/closing`.

use super::CLASS;
use crate::account::{AccountId, Detail, Entry};
use crate::facts::Facts;
use crate::facts::call_groups::CallGroup;
use crate::facts::call_site::sites;
use crate::facts::processes::ProcessId;
use crate::inspect::closed_before_exec::{AROUND, CLOSE_ALL, FAIL, MANY};
use crate::inspect::syscalls::entry_cost::at_least;
use crate::inspect::{Draft, Inspection, Sum};
use deadweight_report::report::How;
use deadweight_report::wording::things;
use deadweight_trace::units::Ns;

/// At most this part of the process's own time is the loop around the calls.
const MOST: f64 = 0.9;

/// Whether these calls close what is not open.
pub(super) fn is_of_numbers(group: &CallGroup) -> bool {
    let fail = group.failed as f64 >= FAIL * group.calls as f64;
    group.name == "close" && !group.starting && group.calls >= MANY && fail
}

/// Whether an entry of the account is time in such calls.
pub(super) fn is_at(facts: &Facts<'_>, entry: &Entry) -> bool {
    matches!(entry.detail, Detail::Calls(group) if is_of_numbers(facts.call_groups.get(group)))
}

/// The finding of a process that makes them.
pub(super) fn draft(found: &Inspection<'_, '_>, process: ProcessId) -> Option<Draft> {
    let facts = found.facts;
    let account = AccountId::of_class(CLASS.id);
    let sum = Sum::of(found.wall.of_process(account, process).filter(|e| is_at(facts, e)));
    if sum.ns == Ns::ZERO {
        return None;
    }
    let own: Ns = found.wall.user_time_of(process).map(|e| e.ns).sum();
    let around = Ns(sum.count.saturating_mul(AROUND)).min(own.part(MOST));
    let saving = sum.ns + around;
    Some(Draft {
        class: CLASS.id,
        moves: true,
        process,
        title: "closes descriptors that are not open".into(),
        text: format!(
            "{} called close {}: nearly all of these numbers were not open.",
            facts.name(process),
            things(sum.count, "time")
        ),
        amount: sum.ns,
        saving,
        range: (at_least(found, sum.ns, sum.count), saving),
        how: How::Estimate,
        sites: sites(facts.symbols(), &sum.places, sum.count),
        evidence: Vec::new(),
        remedy: CLOSE_ALL.into(),
    })
}

#[cfg(test)]
mod tests {
    use crate::cost::tests::{found, repeat};

    /// So many calls of close, which return `back`.
    fn closes(calls: u64, back: i64) -> String {
        let close = |at: u64| {
            format!(
                "{at} syscall close {} from tidy (a.c:7) <- main\n{} back {back}\n",
                3 + at / 400,
                at + 200
            )
        };
        let end = calls * 400;
        format!(
            "task 1 a\n0 on\n0 main\n{}{end} exit\n{end} off dead",
            repeat(calls, 0, 400, close)
        )
    }

    #[test]
    fn numbers_that_are_not_open_are_found_and_open_ones_and_a_few_are_refused() {
        let said = found(&closes(1_000, -9));
        assert!(
            said.starts_with("repeated-syscalls")
                && said.contains("@ tidy:7: a called close 1 000 times"),
            "{said}"
        );
        assert_eq!(found(&closes(1_000, 0)), "");
        assert_eq!(found(&closes(100, -9)), "");
    }
}
