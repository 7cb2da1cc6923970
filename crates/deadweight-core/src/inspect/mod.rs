//! The input and output of cost classes' inspections, and measurements that several classes share.
//!
//! - In: the facts of a run, and its time, charged.
//! - Out: a [`Draft`] of a finding.
//! - Must not know: the classes. What each of them looks for is in its own file in `cost`.

pub(crate) mod allocating;
pub(crate) mod births;
pub(crate) mod closed_before_exec;
pub(crate) mod growth;
pub(crate) mod hot_code;
pub(crate) mod page_faults;
pub(crate) mod questions;
pub(crate) mod same_files;
pub(crate) mod shares;
pub(crate) mod slow_loops;
pub(crate) mod started;
pub(crate) mod starting_time;
pub(crate) mod syscalls;
pub(crate) mod waited_for;

use crate::account::{AccountId, Attribution, Detail, Entry};
use crate::facts::Facts;
use crate::facts::call_groups::CallGroupId;
use crate::facts::call_site::{CallSite, Weights, add};
use crate::facts::processes::ProcessId;
use crate::timeline::Sample;
use deadweight_report::report::{How, Site};
use deadweight_report::wording::{count, percent};
use deadweight_trace::ids::TaskId;
use deadweight_trace::units::Ns;
use std::collections::{BTreeMap, BTreeSet};

/// The input of an inspection.
#[derive(Copy, Clone)]
pub(crate) struct Inspection<'a, 't> {
    /// The facts.
    pub(crate) facts: &'a Facts<'t>,
    /// The wall time, charged.
    pub(crate) wall: &'a Attribution,
    /// All CPU time, charged.
    pub(crate) cpu: &'a Attribution,
}

impl Inspection<'_, '_> {
    /// The drafts of a class for each process with time in its account on the path.
    pub(crate) fn drafts(
        &self,
        class: &str,
        draft: impl Fn(&Self, AccountId, ProcessId) -> Option<Draft>,
    ) -> Vec<Draft> {
        let account = AccountId::of_class(class);
        let processes = processes_in(self.wall.in_account(account)).into_iter();
        processes.filter_map(|process| draft(self, account, process)).collect()
    }

    /// The drafts of a class without an account, for each process with time on the path.
    pub(crate) fn drafts_of_all(
        &self,
        draft: impl Fn(&Self, ProcessId) -> Option<Draft>,
    ) -> Vec<Draft> {
        let processes = processes_in(self.wall.entries.iter()).into_iter();
        processes.filter_map(|process| draft(self, process)).collect()
    }
}

/// A draft of a finding: times are of the traced run.
#[derive(Clone, Debug)]
pub(crate) struct Draft {
    /// The class's id.
    pub(crate) class: &'static str,
    /// The process.
    pub(crate) process: ProcessId,
    /// One line.
    pub(crate) title: String,
    /// A sentence or two.
    pub(crate) text: String,
    /// Its part of the wall time.
    pub(crate) amount: Ns,
    /// The most likely saving.
    pub(crate) saving: Ns,
    /// Least and most that could be saved.
    pub(crate) range: (Ns, Ns),
    /// The kind of evidence.
    pub(crate) how: How,
    /// The call sites.
    pub(crate) sites: Vec<Site>,
    /// The evidence, a sentence each.
    pub(crate) evidence: Vec<String>,
    /// The advice.
    pub(crate) remedy: String,
    /// Whether removing it may only move the wait elsewhere: then the what-if limits the saving.
    pub(crate) moves: bool,
}

/// The part of each task's own time that belongs to an account, by samples.
pub(crate) fn parts_of_tasks(
    facts: &Facts<'_>,
    account: AccountId,
    process: ProcessId,
) -> BTreeMap<TaskId, f64> {
    if !account.is_sampled() {
        return BTreeMap::new();
    }
    let part = |task: &TaskId| {
        let own = || facts.timeline.task(*task).samples.iter().filter(|s| !s.kernel);
        let claimed = |s: &&Sample| facts.account_of_sample(CallSite::Stack(s.stack)) == account;
        own().filter(claimed).count() as f64 / own().count().max(1) as f64
    };
    facts.processes.get(process).tasks.iter().map(|task| (*task, part(task))).collect()
}

/// Entries of the wall time with one account, summed by process.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sum {
    /// Time.
    pub(crate) ns: Ns,
    /// Without the part of waits during which another own task was on a CPU.
    pub(crate) alone: Ns,
    /// How many began.
    pub(crate) count: u64,
    /// Where.
    pub(crate) places: Weights,
}

impl Sum {
    /// The sum of these entries.
    pub(crate) fn of<'e>(entries: impl Iterator<Item = &'e Entry>) -> Self {
        let mut sum = Self::default();
        for entry in entries {
            sum.ns += entry.ns;
            sum.alone += entry.alone;
            sum.count += entry.count;
            add(&mut sum.places, &entry.all_places());
        }
        sum
    }

    /// Whether the command did something else during these waits.
    pub(crate) fn meanwhile(&self) -> String {
        let alone = self.alone.share_of(self.ns);
        if alone > 0.995 {
            "meanwhile no task of the command was on a CPU".into()
        } else if alone < 0.005 {
            "meanwhile other tasks of the command were on a CPU".into()
        } else {
            let part = percent(self.alone, self.ns);
            format!("during {part} of this time no task of the command was on a CPU")
        }
    }
}

/// `ns` spent in `count` events on the path, with the user side of their entry and exit: `each` ns an
/// event, at most half of the program's own time.
pub(crate) fn with_user_side(
    found: &Inspection<'_, '_>,
    process: ProcessId,
    ns: Ns,
    count: u64,
    each: u64,
) -> Ns {
    let own: Ns = found.wall.user_time_of(process).map(|e| e.ns).sum();
    ns + Ns(count.saturating_mul(each)).min(Ns(own.0 / 2))
}

/// If at most one call in this many lies beside the path, all are counted: as `strace -c -f` does.
const BESIDE: u64 = 10;

/// How many calls of each name these entries have on the path, or in all where few are beside it; most first.
pub(crate) fn counted_calls<'e>(
    facts: &Facts<'_>,
    entries: impl Iterator<Item = &'e Entry>,
) -> Vec<(u64, &'static str)> {
    let count = |(on_path, all): (u64, u64)| {
        if all.saturating_sub(on_path) > all / BESIDE { on_path } else { all.max(on_path) }
    };
    by_name(facts, entries, count)
}

/// How many calls of each name the groups of these entries have in all, most first.
pub(crate) fn all_calls<'e>(
    facts: &Facts<'_>,
    entries: impl Iterator<Item = &'e Entry>,
) -> Vec<(u64, &'static str)> {
    by_name(facts, entries, |(_, all)| all)
}

/// The calls of these entries by name, most first; `count` makes one number of those on the path and of all.
fn by_name<'e>(
    facts: &Facts<'_>,
    entries: impl Iterator<Item = &'e Entry>,
    count: impl Fn((u64, u64)) -> u64,
) -> Vec<(u64, &'static str)> {
    let mut names = BTreeMap::<&str, (u64, BTreeSet<CallGroupId>)>::new();
    for entry in entries {
        if let Detail::Calls(group) = entry.detail {
            let (calls, groups) = names.entry(facts.call_groups.get(group).name).or_default();
            *calls += entry.count;
            groups.insert(group);
        }
    }
    let all = |groups: BTreeSet<CallGroupId>| -> u64 {
        groups.iter().map(|group| facts.call_groups.get(*group).calls).sum()
    };
    let counts =
        names.into_iter().map(|(name, (calls, groups))| (count((calls, all(groups))), name));
    let mut counts: Vec<(u64, &str)> = counts.collect();
    counts.sort_by(|a, b| b.cmp(a));
    counts
}

/// The same in words: `read ×12`.
pub(crate) fn calls_by_name<'e>(
    facts: &Facts<'_>,
    entries: impl Iterator<Item = &'e Entry>,
    most: usize,
) -> Vec<(&'static str, String)> {
    in_words(counted_calls(facts, entries), most)
}

/// Such counts in words, with the names.
pub(crate) fn in_words(
    counts: Vec<(u64, &'static str)>,
    most: usize,
) -> Vec<(&'static str, String)> {
    let counts = counts.into_iter().take(most);
    counts.map(|(c, n)| (n, format!("{n} ×{}", count(c)))).collect()
}

/// The processes that an account's entries belong to, in order.
pub(crate) fn processes_in<'a>(entries: impl Iterator<Item = &'a Entry>) -> Vec<ProcessId> {
    let mut found: Vec<ProcessId> = entries.map(|e| e.process).collect();
    found.sort_unstable();
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use crate::cost::tests::{found, repeat};

    /// A thread that asks 1 000 times, and one beside it that does so this often.
    fn asking(beside: u64) -> String {
        let ask =
            |at| format!("{at} syscall getppid from pid (a.c:7) <- main\n{} back 1\n", at + 200);
        format!(
            "cpus 2\ntask 1 a\n0 cpu0 on\n0 main\n10 fork 2 thread\n{}400000 exit\n400000 off dead\n\
             task 2 a\n20 cpu1 on\n{}390000 exit\n390000 off dead",
            repeat(1000, 100, 390, ask),
            repeat(beside, 100, 390, ask)
        )
    }

    #[test]
    fn calls_are_counted_as_strace_counts_them_unless_many_are_beside_the_path() {
        let said = found(&asking(50));
        assert!(said.contains("a asked the kernel 1 050 times: getppid ×1 050"), "{said}");
        let said = found(&asking(900));
        assert!(said.contains("a asked the kernel 1 000 times: getppid ×1 000"), "{said}");
    }
}
