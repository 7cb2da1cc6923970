//! Programs with a known truth (`docs/method.md`), shortened to the pattern that matters.

use super::check;
use expect_test::expect;

#[test]
fn sleep_into_cat_is_sleep() {
    check(
        "task 1 sh
             0 on
            10 fork 2
            20 fork 3
            30 off blocked wait4
           990 on woken-by 3
           995 exit
          1000 off dead
        task 2 sleep
            12 on
            20 off blocked clock_nanosleep
           900 on woken-by interrupt
           910 syscall exit_group
           911 exit
           920 off dead
        task 3 cat
            31 on
            40 off blocked read 0 : anon_pipe_read
           915 on woken-by 2 : try_to_wake_up < pipe_release < do_exit
           930 syscall exit_group
           931 exit
           991 off dead",
        &expect![[r#"
            0..30 sh: user
            30..31 cat: no cpu
            31..40 cat: user
            40..900 sleep: waits for Sleep, by interrupt timer
            900..910 sleep: user
            910..911 sleep: exit_group
            911..915 sleep: exiting
            915..930 cat: user
            930..931 cat: exit_group
            931..990 cat: exiting
            990..995 sh: user
            995..1000 sh: exiting
        "#]],
    );
}

#[test]
fn a_slow_consumer_holds_its_producer_up() {
    check(
        "task 1 sh
             0 on
            10 fork 2
            20 fork 3
            30 off blocked wait4
           950 on woken-by 3
           960 exit
           970 off dead
        task 2 sort
            11 on
            90 off blocked write 1 65536 : anon_pipe_write
           500 on woken-by 3 : try_to_wake_up < anon_pipe_read < ksys_read
           510 off blocked write 1 65536 : anon_pipe_write
           900 on woken-by 3 : try_to_wake_up < anon_pipe_read < ksys_read
           905 syscall exit_group
           906 exit
           910 off dead
        task 3 slow
            31 on
            40 off blocked read 0 65536 : anon_pipe_read
            80 on woken-by 2 : try_to_wake_up < anon_pipe_write < ksys_write
           940 syscall exit_group
           941 exit
           951 off dead",
        &expect![[r#"
            0..30 sh: user
            30..31 slow: no cpu
            31..40 slow: user
            40..80 sort: user
            80..940 slow: user
            940..941 slow: exit_group
            941..950 slow: exiting
            950..960 sh: user
            960..970 sh: exiting
        "#]],
    );
}

#[test]
fn a_consumer_waits_for_its_slow_producer() {
    check(
        "task 1 sh
             0 on
            10 fork 2
            20 fork 3
            30 off blocked wait4
           950 on woken-by 3
           960 exit
           970 off dead
        task 2 slow
            11 on
           400 syscall write 1 100
           410 back
           900 syscall write 1 100
           910 back
           912 syscall exit_group
           913 exit
           920 off dead
        task 3 sort
            31 on
            40 off blocked read 0 65536 : anon_pipe_read
           405 on woken-by 2 : try_to_wake_up < anon_pipe_write < ksys_write
           420 off blocked read 0 65536 : anon_pipe_read
           905 on woken-by 2 : try_to_wake_up < anon_pipe_write < ksys_write
           945 syscall exit_group
           946 exit
           951 off dead",
        &expect![[r#"
            0..30 sh: user
            30..31 sort: no cpu
            31..40 sort: user
            40..400 slow: user
            400..405 slow: write
            405..420 sort: user
            420..900 slow: user
            900..905 slow: write
            905..945 sort: user
            945..946 sort: exit_group
            946..950 sort: exiting
            950..960 sh: user
            960..970 sh: exiting
        "#]],
    );
}

#[test]
fn a_wait_for_a_lock_is_its_holders_work() {
    // Lock waits are not a row: the running holder's spans are. The edges show the lock.
    check(
        "cpus 2
        task 1 main
             0 on
            10 fork 2 thread
           100 off blocked futex 64 0 2 0 : futex_wait
           300 on woken-by 2 : futex_wake < do_futex
           400 syscall futex 64 1 1 0
           405 back
           410 off blocked futex 80 0 9 0 : futex_wait
           600 on woken-by 2 : mm_release < do_exit
           620 syscall exit_group
           621 exit
           630 off dead
        task 2 other
            15 on
           295 syscall futex 64 1 1 0
           302 back
           310 off blocked futex 64 0 2 0 : futex_wait
           402 on woken-by 1 : futex_wake < do_futex
           590 syscall exit
           591 exit
           605 off dead",
        &expect![[r#"
            0..100 main: user
            100..295 other: user
            295..300 other: futex
            300..400 main: user
            400..405 main: futex
            405..410 main: user
            410..590 other: user
            590..591 other: exit
            591..600 other: exiting
            600..620 main: user
            620..621 main: exit_group
            621..630 main: exiting
        "#]],
    );
}

#[test]
fn a_ticker_stopped_by_a_flag_does_not_capture_the_run() {
    check(
        "cpus 2
        task 1 tick
             0 on
            10 fork 2 thread
           900 off blocked futex 80 0 2 0 : futex_wait
           950 on woken-by 2 : mm_release < do_exit
           960 syscall exit_group
           961 exit
           970 off dead
        task 2 ticker
            15 on
            20 off blocked clock_nanosleep : do_nanosleep
           320 on woken-by interrupt : hrtimer_wakeup < sysvec_apic_timer_interrupt
           325 off blocked clock_nanosleep : do_nanosleep
           640 on woken-by interrupt : hrtimer_wakeup < sysvec_apic_timer_interrupt
           645 off blocked clock_nanosleep : do_nanosleep
           940 on woken-by interrupt : hrtimer_wakeup < sysvec_apic_timer_interrupt
           945 syscall exit
           946 exit
           955 off dead",
        &expect![[r#"
            0..900 tick: user
            900..940 ticker: waits for Sleep, by interrupt timer
            940..945 ticker: user
            945..946 ticker: exit
            946..950 ticker: exiting
            950..960 tick: user
            960..961 tick: exit_group
            961..970 tick: exiting
        "#]],
    );
}

#[test]
fn main_asleep_while_a_thread_spins_is_sleep() {
    check(
        "cpus 2
        task 1 spw
             0 on
            10 fork 2 thread
            20 off blocked clock_nanosleep : do_nanosleep
           400 on woken-by interrupt : hrtimer_wakeup < sysvec_apic_timer_interrupt
           410 off blocked clock_nanosleep : do_nanosleep
           800 on woken-by interrupt : hrtimer_wakeup < sysvec_apic_timer_interrupt
           810 off blocked futex 80 0 2 0 : futex_wait
           820 on woken-by 2 : mm_release < do_exit
           830 syscall exit_group
           831 exit
           840 off dead
        task 2 spinner
            15 on
           812 syscall exit
           813 exit
           825 off dead",
        &expect![[r#"
            0..20 spw: user
            20..400 spw: waits for Sleep, by interrupt timer
            400..410 spw: user
            410..800 spw: waits for Sleep, by interrupt timer
            800..810 spw: user
            810..812 spinner: user
            812..813 spinner: exit
            813..820 spinner: exiting
            820..830 spw: user
            830..831 spw: exit_group
            831..840 spw: exiting
        "#]],
    );
}

#[test]
fn unlike_workers_side_by_side_follow_the_last_one() {
    check(
        "cpus 2
        task 1 het
             0 on
            10 fork 2 thread
            15 fork 3 thread
            20 off blocked futex 80 0 2 0 : futex_wait
           800 on woken-by 2 : mm_release < do_exit
           810 syscall exit_group
           811 exit
           820 off dead
        task 2 alpha
            12 on
           795 syscall exit
           796 exit
           805 off dead
        task 3 beta
            21 on
           640 syscall exit
           641 exit
           650 off dead",
        &expect![[r#"
            0..20 het: user
            20..795 alpha: user
            795..796 alpha: exit
            796..800 alpha: exiting
            800..810 het: user
            810..811 het: exit_group
            811..820 het: exiting
        "#]],
    );
}
