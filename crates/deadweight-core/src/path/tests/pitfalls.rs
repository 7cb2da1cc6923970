//! Pitfalls of waits and wake-ups met in real recordings, each with its rule.

use super::{check, check_life, read};
use crate::timeline::WokenBy;
use deadweight_trace::units::Ns;
use expect_test::expect;

#[test]
fn interrupt_context_is_read_off_the_call_chain_not_off_the_flag() {
    // Loopback: the sender itself receives the packet, in its own soft interrupt.
    check_life(
        "task 1 client
             0 on
             5 fork 2
            10 off blocked recvfrom 3 : sk_wait_data < tcp_recvmsg
            50 on woken-by 2 irq : sock_def_readable < tcp_rcv_established < handle_softirqs < \
             do_softirq < __local_bh_enable_ip < tcp_sendmsg < __x64_sys_sendto
            60 off blocked recvfrom 3 : sk_wait_data < tcp_recvmsg
            90 on woken-by 2 : sock_def_readable < tcp_rcv_established < net_rx_action < \
             handle_softirqs < __irq_exit_rcu < common_interrupt
        task 2 server
             6 on",
        1,
        &expect![[r#"
            0 user
            10 waits for SocketData, by server
            50 user
            60 waits for SocketData, by interrupt network
            90 user
            90 end
        "#]],
    );
}

#[test]
fn a_reaped_waker_is_the_cpus_current_task() {
    check(
        "task 1 sh
             0 on
             5 fork 2
            10 off blocked wait4
            91 cpu1 woken-by 4294967295 : do_notify_parent < release_task < do_exit
            92 cpu0 on
           100 exit
           110 off dead
        task 2 child
             6 cpu1 on
            80 syscall exit_group
            81 exit
            95 off dead",
        &expect![[r#"
            0..10 sh: user
            10..80 child: user
            80..81 child: exit_group
            81..91 child: exiting
            91..92 sh: no cpu
            92..100 sh: user
            100..110 sh: exiting
        "#]],
    );
}

#[test]
fn a_wake_up_that_races_the_switch_out_still_counts() {
    let text = "cpus 2
        task 1 a
             0 on
             5 fork 2 thread
        100000 woken-by 2 : futex_wake < do_futex
        150000 off blocked futex 64 0 0 0 : futex_wait
        160000 on
        170000 off blocked futex 64 0 0 0 : futex_wait
        300000 on
        task 2 b
             6 on";
    check_life(
        text,
        1,
        &expect![[r#"
        0 user
        150000 no cpu
        160000 user
        170000 waits for Futex, by unseen
        300000 user
        300000 end
    "#]],
    );
    let read = read(text);
    let raced = read.timeline.blocks[0];
    assert_eq!((raced.start, raced.end), (Ns(150_000), Ns(150_000)));
    assert!(matches!(raced.woken_by, WokenBy::Task(_)));
}

#[test]
fn a_wake_up_long_before_the_switch_out_is_not_meant_for_it() {
    check_life(
        "cpus 2
        task 1 a
             0 on
             5 fork 2 thread
        100000 woken-by 2 : futex_wake < do_futex
        400000 off blocked futex 64 0 0 0 : futex_wait
        500000 on
        task 2 b
             6 on",
        1,
        &expect![[r#"
            0 user
            400000 waits for Futex, by unseen
            500000 user
            500000 end
        "#]],
    );
}

#[test]
fn waking_a_running_or_a_runnable_task_changes_nothing() {
    check_life(
        "cpus 2
        task 1 a
             0 on
             5 fork 2 thread
            20 woken-by 2
            30 off preempted
            40 woken-by 2
            50 on
            60 off blocked futex 64 0 0 0 : futex_wait
            70 woken-by 2
            80 woken-by interrupt
            90 on
        task 2 b
             6 on",
        1,
        &expect![[r#"
            0 user
            30 no cpu
            50 user
            60 waits for Futex, by b
            70 no cpu
            90 user
            90 end
        "#]],
    );
}

#[test]
fn a_spurious_wake_up_ends_only_the_wait_before_it() {
    let text = "cpus 2
        task 1 a
             0 on
             5 fork 2 thread
            10 off blocked futex 64 0 0 0 : futex_wait
            20 on woken-by interrupt
            25 off blocked futex 64 0 0 0 : futex_wait
            80 on woken-by 2 : futex_wake < do_futex
            90 off dead
        task 2 b
             6 on";
    check(
        text,
        &expect![[r#"
        0..10 a: user
        10..20 a: waits for Futex, by interrupt other
        20..25 a: user
        25..80 b: user
        80..90 a: user
    "#]],
    );
}

#[test]
fn waits_of_two_for_each_other_are_not_explained() {
    // Impossible by itself, but clocks of two CPUs may differ so.
    check(
        "cpus 2
        task 1 a
             0 on
             5 fork 2 thread
            10 off blocked futex 64 0 0 0 : futex_wait
            90 on woken-by 2 : futex_wake < do_futex
           100 exit
           110 off dead
        task 2 b
             6 on
            20 off blocked futex 64 0 0 0 : futex_wait
            95 on woken-by 1 : futex_wake < do_futex",
        &expect![[r#"
            0..10 a: user
            10..20 b: user
            20..90 b: unexplained
            90..100 a: user
            100..110 a: exiting
        "#]],
    );
}
