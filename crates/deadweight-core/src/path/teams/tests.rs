//! Which tasks are a team, and which are not.

use super::{Start, teams};
use crate::path::tests::read;

fn found(text: &str) -> Vec<(Vec<u32>, u32, u64, Start)> {
    let read = read(text);
    teams(&read.timeline, &read.trace.symbols, &read.path.subject)
        .iter()
        .map(|team| {
            let tid = |t: deadweight_trace::ids::TaskId| read.timeline.task(t).tid.0;
            let members = team.members.iter().map(|t| tid(*t)).collect();
            (members, tid(team.straggler), team.lead.0, team.start)
        })
        .collect()
}

fn workers(second: &str, from: u64) -> String {
    format!(
        "cpus 2
        task 1 main
             0 on
            10 fork 2 thread
        {from} fork 3 thread
           995 syscall exit_group
          1000 exit
        task 2 main
            12 on
            30 sample work <- run <- start_thread <- clone3
           880 syscall exit
           881 exit
           900 off dead
        task 3 main
           {} cpu1 on
           {} sample {second} <- start_thread <- clone3
           960 syscall exit
           961 exit
           970 off dead",
        from + 5,
        from + 20
    )
}

#[test]
fn like_threads_side_by_side_are_a_team_with_a_straggler() {
    let found = found(&workers("other <- run", 20));
    let [(members, straggler, lead, start)] = &found[..] else { panic!("{found:?}") };
    assert_eq!((members.as_slice(), *straggler, *lead), ([2, 3].as_slice(), 3, 70));
    assert!(matches!(start, Start::Function(_)));
}

#[test]
fn threads_of_different_functions_are_none() {
    assert_eq!(found(&workers("work <- listen", 20)), []);
}

#[test]
fn threads_one_after_the_other_are_none() {
    assert_eq!(found(&workers("work <- run", 500)), []);
}
