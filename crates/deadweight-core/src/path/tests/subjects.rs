//! Choice of the process whose wall time is divided: the command's, or a named one.

use super::{read, read_of};
use crate::path::Subject;
use expect_test::expect;

/// Two servers of one name, the first mostly idle, and what the second waits for outside.
const PIPELINE: &str = "task 1 sh
         0 on
        10 fork 2
        20 fork 3
        30 off blocked wait4
       950 on woken-by 3
       960 syscall exit_group
       961 exit
       970 off dead
    task 2 sh
        11 on
        15 exec /usr/bin/feed
        15 comm feed
        30 off blocked nanosleep
       700 on woken-by interrupt
       710 syscall write 1 100
       720 back
       730 syscall exit_group
       731 exit
       740 off dead
    task 3 sh
        31 on
        35 exec /usr/bin/feed
        35 comm feed
        40 off blocked read 0 100 : anon_pipe_read
       715 on woken-by 2 : anon_pipe_write < ksys_write
       940 syscall exit_group
       941 exit
       951 off dead";

#[test]
fn a_named_process_waits_for_its_producer_by_name() {
    // The producer is outside: the wait is bounded and named, its own waits are not entered.
    expect![[r#"
        35..40 feed: starting
        40..715 feed: waits for PipeData, by feed
        715..940 feed: user
        940..941 feed: exit_group
        941..951 feed: exiting
    "#]]
    .assert_eq(&read_of(PIPELINE, Some("feed:2")).pieces());
}

#[test]
fn of_several_with_one_name_the_busiest_is_taken_and_all_are_listed() {
    let read = read_of(PIPELINE, Some("feed"));
    let subject = &read.path.subject;
    let listed: Vec<_> = subject
        .candidates
        .iter()
        .map(|c| (c.process.0, c.start.0, c.end.0, c.cpu.0, c.taken))
        .collect();
    assert_eq!(listed, [(2, 15, 740, 55, false), (3, 35, 951, 241, true)]);
    assert_eq!(subject.process.0, 3);
}

#[test]
fn a_name_that_nothing_ran_under_is_refused_with_what_ran() {
    let read = read(PIPELINE);
    for wanted in ["fed", "feed:3", "feed:0"] {
        let refused = Subject::choose(&read.trace, &read.timeline, Some(wanted)).unwrap_err();
        assert_eq!(refused.present, "sh, feed");
    }
    // A subshell inherits its name: it is not another shell.
    let shell = Subject::choose(&read.trace, &read.timeline, Some("sh")).unwrap();
    assert_eq!(shell.candidates.len(), 1);
}
