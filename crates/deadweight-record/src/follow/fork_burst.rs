//! Fork bursts (many births at once): which system calls are worth their cost. Each event of an ordinary user is
//! copied at each fork, so a fork and an exit cost some 5 ms with all events.
//!
//! `record::fork_burst` closes the events.

use super::Follow;
use super::stats::ReducedCalls;
use deadweight_trace::syscall::{self, Arch};
use std::collections::{BTreeMap, BTreeSet};

/// Calls are judged by the records between this many births, after as many births before: the start of a program says
/// little about its threads.
const BORN: u32 = 128;
/// If those births took longer than this, in ns, they cost only a small part of it.
const QUICK: u64 = 12_800_000_000;
/// A call stays recorded if it is made once in this many births, ...
const SELDOM: u32 = 16;
/// ... or if one part in this many of the time was spent in it.
const SHORT: u64 = 100;

/// Calls that are needed to understand others: programs, exits, wakers, what is waited for.
const NEEDED: [&str; 7] =
    ["read", "write", "futex", "execve", "wait4", "exit_group", "clock_nanosleep"];
/// Likewise, if they are made at all between the births: pipes, descriptors that are closed and replaced, memory. The
/// cost of an exit grows with the square of the number of events.
const NEEDED_IF_MADE: [&str; 7] = ["close", "dup2", "dup3", "waitid", "mmap", "pipe2", "poll"];

/// The state of the decision.
#[derive(Debug, Default)]
pub(super) struct ForkBurst {
    /// Births since `since`.
    born: u32,
    since: u64,
    /// An earlier round of births was counted already.
    begun: bool,
    /// By call number: how many, and the time in them, in ns.
    calls: BTreeMap<u16, (u32, u64)>,
    /// Whether the decision is still to be made: on the user rung, once.
    undecided: bool,
    /// The calls that are no longer recorded, after the decision.
    retired: Vec<u16>,
}

impl ForkBurst {
    /// Without events at single calls there is nothing to decide.
    pub(super) fn new(undecided: bool) -> Self {
        Self { undecided, ..Self::default() }
    }

    pub(super) fn entered(&mut self, nr: u16) {
        if self.undecided {
            self.calls.entry(nr).or_default().0 += 1;
        }
    }

    pub(super) fn left(&mut self, nr: u16, took: u64) {
        if self.undecided {
            self.calls.entry(nr).or_default().1 += took;
        }
    }

    /// Another task was born; returns whether it is time to decide.
    fn born(&mut self, at: u64) -> bool {
        self.born += 1;
        if self.born < BORN {
            return false;
        }
        let due = self.begun && at.saturating_sub(self.since) <= QUICK;
        if !due {
            (self.begun, self.born, self.since) = (true, 0, at);
            self.calls.clear();
        }
        due
    }

    fn is_worth_it(&self, nr: u16, at: u64) -> bool {
        let (count, inside) = self.calls.get(&nr).copied().unwrap_or_default();
        let name = syscall::name(Arch::HOST, nr).unwrap_or_default();
        (count > 0 && NEEDED_IF_MADE.contains(&name))
            || count >= BORN / SELDOM
            || inside >= at.saturating_sub(self.since) / SHORT
    }
}

impl Follow<'_> {
    /// A task was born. After too many births, this decides which calls are no longer recorded.
    pub(super) fn task_born(&mut self, at: u64) {
        self.stats.born += 1;
        if !self.fork_burst.undecided || !self.fork_burst.born(at) {
            return;
        }
        let under_way = self.under_way();
        let needed = NEEDED.iter().filter_map(|name| syscall::number(Arch::HOST, name));
        let needed: BTreeSet<u16> =
            needed.chain(self.decimation.calls()).chain(under_way).collect();
        let stays = |nr: &u16| needed.contains(nr) || self.fork_burst.is_worth_it(*nr, at);
        let (stay, rare): (Vec<u16>, Vec<u16>) =
            self.start.single_calls.iter().partition(|nr| stays(nr));
        if !rare.is_empty() {
            let names = stay.iter().filter_map(|nr| syscall::name(Arch::HOST, *nr)).collect();
            let (born, switches) = (self.stats.born, self.stats.switches);
            let of = self.start.single_calls.len();
            self.stats.fork_burst = Some(ReducedCalls { born, switches, calls: names, of });
        }
        self.fork_burst = ForkBurst { retired: rare, ..ForkBurst::default() };
    }

    /// The recorded calls that tasks are in.
    pub(crate) fn under_way(&self) -> BTreeSet<u16> {
        let inside = self.tasks.values().filter(|task| task.followed && task.entered.is_some());
        inside.filter_map(|task| task.called).map(|(nr, _)| nr).collect()
    }

    /// The calls that are not worth their cost during a fork burst, once decided.
    pub(crate) fn retired_calls(&self) -> Option<&[u16]> {
        Some(&*self.fork_burst.retired).filter(|retired| !retired.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_judged_in_the_second_half_of_a_fork_burst() {
        let mut fork_burst = ForkBurst::new(true);
        let mut due = Vec::new();
        for birth in 0..u64::from(2 * BORN) {
            if birth < 100 {
                fork_burst.entered(7);
            }
            if birth > 200 && birth <= 200 + u64::from(BORN / SELDOM) {
                fork_burst.entered(8);
            }
            if birth == 250 {
                fork_burst.entered(9);
                fork_burst.left(9, 2_000_000);
                fork_burst.entered(10);
                fork_burst.left(10, 1000);
            }
            if fork_burst.born(birth * 1_000_000) {
                due.push(birth);
            }
        }
        assert_eq!(due, [u64::from(2 * BORN) - 1]);
        let worth = [7, 8, 9, 10, 11].map(|nr| fork_burst.is_worth_it(nr, 255_000_000));
        assert_eq!(worth, [false, true, true, false, false]);
    }

    #[test]
    fn slow_births_are_no_fork_burst() {
        let mut fork_burst = ForkBurst::default();
        assert!((0..10_000).all(|birth| !fork_burst.born(birth * 2 * QUICK / u64::from(BORN))));
    }
}
