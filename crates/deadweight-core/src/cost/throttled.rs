//! Throttled by a quota.
//!
//! # What it is
//! The cgroup of the program (a container) may use so much CPU time per period, mostly 100 ms. When that
//! is used up, all its threads stand still until the next period, though CPUs are idle. More threads
//! use it up sooner.
//!
//! # How deadweight knows
//! A thread was ready to run for more than a millisecond while its CPU was idle, and the kernel counted
//! throttled time of the cgroup in this run (`cpu.stat`). Both ends of each such time are exact. How much of
//! it a larger quota saves is certain for one thread; several threads may wait for each other too.
//!
//! # What it is mistaken for
//! Waiting for a CPU that another program has: *wait-cpu*, or the hazard *noisy*. A hypervisor that takes
//! the CPU away: the hazard *noisy* says so.
//!
//! # What to do
//! Raise the quota (`cpu.max`, `docker run --cpus`, Kubernetes' limits), or start no more threads than
//! it allows: a quota of two CPUs fits two busy threads (GOMAXPROCS, RAYON_NUM_THREADS, OMP_NUM_THREADS).
//!
//! # Seen in
//! A container with 0.3 CPUs.
//! In `tests/programs`: `word_count.cpp` under a quota.

use super::wait_cpu::is_held_back;
use super::{AccountId, Claim, Class, Inspection};
use crate::account::Slice;
use crate::facts::Facts;
use crate::facts::processes::ProcessId;
use crate::inspect::{Draft, Sum};
use deadweight_report::report::How;
use deadweight_report::wording::{percent, time};

pub(super) const CLASS: Class = Class {
    id: "throttled",
    source: include_str!("throttled.rs"),
    claim: Claim::Slices(claim),
    inspect,
};

/// Below this share of the wall time a quota is no limit.
const LARGE: f64 = 0.05;

fn claim(facts: &Facts<'_>, slice: &Slice) -> bool {
    is_held_back(slice) && slice.end - slice.start <= facts.trace.meta.throttled
}

fn inspect(found: &Inspection<'_, '_>) -> Vec<Draft> {
    found.drafts(CLASS.id, draft)
}

fn draft(found: &Inspection<'_, '_>, account: AccountId, process: ProcessId) -> Option<Draft> {
    let facts = found.facts;
    let net = found.wall.net();
    let sum = Sum::of(found.wall.of_process(account, process));
    if sum.ns.share_of(net) < LARGE {
        return None;
    }
    let quota = facts.trace.meta.machine.cpu_quota;
    let allowed = match quota > 0.0 {
        true => format!(" Its cgroup may use {quota:.2} CPUs."),
        false => String::new(),
    };
    let tasks = facts.processes.get(process).tasks.len();
    let mut evidence = vec![format!(
        "the kernel counted {} of throttled time of the cgroup, summed over CPUs",
        time(facts.trace.meta.throttled)
    )];
    if tasks > 1 {
        evidence.push(format!("the process had {tasks} threads"));
    }
    Some(Draft {
        class: CLASS.id,
        moves: true,
        process,
        title: "a CPU quota keeps the program from running".into(),
        text: format!(
            "{} was ready to run for {} of its {} ({}), but had used up its quota of CPU time.{allowed}",
            facts.name(process),
            time(sum.ns),
            time(net),
            percent(sum.ns, net),
        ),
        amount: sum.ns,
        saving: sum.ns,
        range: (sum.alone, sum.ns),
        how: How::Exact,
        sites: Vec::new(),
        evidence,
        remedy: "Raise the quota (cpu.max, --cpus, the container's limit), or use no more threads than it \
                 allows: one per whole CPU of the quota."
            .into(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::{found, rows, weighed};
    use expect_test::expect;

    fn stopped(throttled: &str, on: &str) -> String {
        format!(
            "cpus 2\n{throttled}task 1 app\n0 cpu0 on\n1000000 off preempted\n80000000 cpu0 on
             100000000 syscall exit_group\n100000000 exit\n100000010 off dead\n{on}"
        )
    }

    #[test]
    fn a_quota_that_stops_a_program_is_found() {
        let text = stopped("throttled 79000000\n", "");
        expect![[r#"
            throttled 79 % (79..79) @ nowhere: app was ready to run for 79.0 ms of its 100 ms (79 %), but had used up its quota of CPU time.
        "#]].assert_eq(&found(&text));
        expect![[r#"
            throttled 79000000 denied by a quota
            net-work 21000000
        "#]]
        .assert_eq(&rows(&text, 2));
        assert!(weighed(&text).hazards.iter().any(|h| h.id == "throttled"));
    }

    #[test]
    fn an_idle_cpu_without_throttled_time_and_a_cpu_of_another_program_are_refused() {
        assert!(!found(&stopped("", "")).contains("throttled"));
        let little = stopped("throttled 1000000\n", "");
        assert!(
            !found(&little).contains("throttled"),
            "the kernel counted less than this one wait"
        );
        let other = "task 9 other outside\n1000000 cpu0 on\n80000000 off preempted";
        assert!(!found(&stopped("throttled 79000000\n", other)).contains("throttled"));
    }
}
