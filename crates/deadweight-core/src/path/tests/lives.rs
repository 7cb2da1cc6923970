//! Pitfalls of births, execs and deaths met in real recordings, each with its rule.

use super::{check, check_life, read, read_of};
use deadweight_trace::units::Ns;
use expect_test::expect;

#[test]
fn a_thread_that_calls_exec_takes_over_the_leaders_tid() {
    let text = "task 1 old
             0 on
            10 fork 2 thread
            20 off blocked futex 64 0 2 0 : futex_wait
            40 on woken-by 2 : signal_wake_up_state < zap_other_threads < begin_new_exec
            41 exit
            45 off dead
        task 2 runner
            11 on
            30 syscall execve 0 0 0
            42 off blocked : begin_new_exec
            43 on woken-by 1 : __wake_up < do_exit
        task 1 old
            50 exec /bin/new former 2
            50 comm new
            60 back 0
           100 syscall exit_group
           101 exit
           110 off dead";
    check(
        text,
        &expect![[r#"
            0..10 old: starting
            10..11 new: no cpu
            11..30 new: user
            30..42 new: execve
            42..43 old: exiting
            43..50 new: execve
            50..60 new: starting
            60..100 new: user
            100..101 new: exit_group
            101..110 new: exiting
        "#]],
    );
    let read = read(text);
    let lives: Vec<_> = read.timeline.tasks.iter().map(|t| (t.tid.0, t.end.0)).collect();
    assert_eq!(lives, [(1, 45), (1, 110)]);
}

#[test]
fn a_zombie_leader_is_closed_by_exec() {
    let text = "task 1 old
             0 on
            10 fork 2 thread
            20 syscall exit
            21 exit
        task 2 runner
            11 on
            30 syscall execve 0 0 0
        task 1 old
            50 exec /bin/new former 2
            60 back 0
           100 syscall exit_group
           101 exit
           110 off dead";
    let read = read(text);
    assert!(read.timeline.tasks[0].died);
    assert_eq!(read.timeline.tasks[0].end, Ns(50));
    check(
        text,
        &expect![[r#"
        0..10 old: starting
        10..11 runner: no cpu
        11..30 runner: user
        30..50 runner: execve
        50..60 runner: starting
        60..100 runner: user
        100..101 runner: exit_group
        101..110 runner: exiting
    "#]],
    );
}

#[test]
fn a_tid_used_again_is_another_life() {
    check_life(
        "task 1 sh
             0 on
            10 fork 2
            20 off blocked wait4
            40 on woken-by 2 : do_notify_parent < do_exit
            50 fork 2
            60 off blocked wait4
            80 on woken-by 2 : do_notify_parent < do_exit
        task 2
            11 on
            38 exit
            41 off dead
            51 on
            78 exit
            81 off dead",
        2,
        &expect![[r#"
            10 no cpu
            11 user
            38 exiting
            41 dead
            50 no cpu
            51 user
            78 exiting
            81 dead
        "#]],
    );
}

#[test]
fn threads_killed_by_exit_group_lead_to_the_killer() {
    // The worker dies last, but it was the exit of main that ended the run.
    check(
        "cpus 2
        task 1 main
             0 on
            10 fork 2 thread
           400 syscall exit_group
           401 exit
           420 off dead
        task 2 worker
            15 on
           405 exit
           440 off dead",
        &expect![[r#"
            0..400 main: user
            400..405 worker: user
            405..440 worker: exiting
        "#]],
    );
    check(
        "cpus 2
        task 1 main
             0 on
            10 fork 2 thread
           400 syscall exit_group
           404 exit
           420 off dead
        task 2 worker
            15 on
            20 off blocked futex 64 0 2 0 : futex_wait
           406 on woken-by 1 : signal_wake_up_state < zap_other_threads < do_group_exit
           407 exit
           440 off dead",
        &expect![[r#"
            0..400 main: user
            400..404 main: exit_group
            404..406 main: exiting
            406..407 worker: user
            407..440 worker: exiting
        "#]],
    );
}

#[test]
fn a_child_killed_by_its_parent_leads_there_and_back() {
    check(
        "cpus 2
        task 1 main
             0 on
            10 fork 2
           100 syscall kill 2 9
           105 back 0
           106 off blocked wait4
           130 on woken-by 2 : do_notify_parent < do_exit
           140 syscall exit_group
           141 exit
           150 off dead
        task 2 child
            15 on
            20 off blocked pause
           103 on woken-by 1 : complete_signal < __send_signal_locked < __x64_sys_kill
           110 exit
           140 off dead",
        &expect![[r#"
            0..100 main: user
            100..105 main: kill
            105..106 main: user
            106..110 child: user
            110..130 child: exiting
            130..140 main: user
            140..141 main: exit_group
            141..150 main: exiting
        "#]],
    );
}

#[test]
fn main_may_exit_before_its_threads() {
    check(
        "cpus 2
        task 1 main
             0 on
            10 fork 2 thread
            20 syscall exit
            21 exit
            25 off dead
        task 2 worker
            15 on
           405 syscall exit
           406 exit
           440 off dead",
        &expect![[r#"
            0..10 main: user
            10..15 worker: no cpu
            15..405 worker: user
            405..406 worker: exit
            406..440 worker: exiting
        "#]],
    );
}

#[test]
fn vfork_waits_until_the_childs_exec() {
    check(
        "cpus 2
        task 1 make
             0 on
            10 syscall vfork
            11 fork 2
            15 off blocked : wait_for_completion_state < kernel_clone
            41 on woken-by 2 : complete < mm_release < begin_new_exec
            42 back 2
            50 off blocked wait4
           200 on woken-by 2 : do_notify_parent < do_exit
           210 syscall exit_group
           211 exit
           220 off dead
        task 2
            16 on
            20 syscall execve 0 0 0
            45 exec /bin/cc
            60 back 0
           190 syscall exit_group
           191 exit
           205 off dead",
        &expect![[r#"
            0..10 make: user
            10..15 make: vfork
            15..16 make: no cpu
            16..20 make: user
            20..41 make: execve
            41..42 make: vfork
            42..50 make: user
            50..60 make: starting
            60..190 make: user
            190..191 make: exit_group
            191..200 make: exiting
            200..210 make: user
            210..211 make: exit_group
            211..220 make: exiting
        "#]],
    );
}

#[test]
fn a_daemon_that_outlives_the_root_does_not_count() {
    check(
        "end 105
        cpus 2
        task 1 start
             0 on
            10 fork 2
           100 syscall exit_group
           101 exit
           120 off dead
        task 2 daemon
            15 on
            20 off blocked epoll_wait
           500 on woken-by interrupt",
        &expect![[r#"
            0..100 start: user
            100..101 start: exit_group
            101..105 start: exiting
        "#]],
    );
}

#[test]
fn a_child_seen_before_its_birth_is_adopted() {
    check_life(
        "cpus 2
        task 1 a
             0 on
            12 fork 2 in 2
        task 2 child
            10 on
            20 syscall getpid
            25 back 2
            30 off dead",
        2,
        &expect![[r#"
            10 no cpu
            12 user
            20 getpid
            25 user
            30 exiting
            30 dead
        "#]],
    );
}

#[test]
fn a_waker_outside_the_subject_is_named_and_not_entered() {
    let read = read_of(
        "cpus 2
        task 1 sh
             0 on
             1 fork 2
             2 fork 3
             5 off blocked wait4
           310 on woken-by 3 : do_notify_parent < do_exit
           320 exit
           330 off dead
        task 2 prod
             3 on
           100 off blocked read 0 : n_tty_read
           200 on woken-by interrupt
           250 exit
           260 off dead
        task 3 cons
             6 on
             7 exec /bin/cons
            10 back 0
            20 off blocked read 0 : anon_pipe_read
           240 on woken-by 2 : anon_pipe_write < ksys_write
           300 syscall exit_group
           301 exit
           311 off dead",
        Some("cons"),
    );
    expect![[r#"
        7..10 cons: starting
        10..20 cons: user
        20..240 cons: waits for PipeData, by prod
        240..300 cons: user
        300..301 cons: exit_group
        301..311 cons: exiting
    "#]]
    .assert_eq(&read.pieces());
}

#[test]
fn a_thread_that_fades_after_main_exited_did_not_decide_the_end() {
    // The joined thread's last switch comes after main's, but main exited later than it.
    check(
        "cpus 2
        task 1 spw
             0 on
            10 fork 2 thread
            20 off blocked clock_nanosleep : do_nanosleep
           800 on woken-by interrupt : hrtimer_wakeup < sysvec_apic_timer_interrupt
           820 syscall exit_group
           821 exit
           840 off dead
        task 2 spinner
            15 on
           812 syscall exit
           813 exit
           815 off preempted
           850 on
           860 off dead",
        &expect![[r#"
            0..20 spw: user
            20..800 spw: waits for Sleep, by interrupt timer
            800..820 spw: user
            820..821 spw: exit_group
            821..840 spw: exiting
            840..850 spinner: no cpu
            850..860 spinner: exiting
        "#]],
    );
}

#[test]
fn the_recorders_delay_at_the_end_is_not_the_commands_time() {
    let read = read("end 5000\ntask 1 a\n 0 on\n 100 exit\n 120 off dead");
    assert_eq!(read.path.subject.wall(), Ns(120));
}
