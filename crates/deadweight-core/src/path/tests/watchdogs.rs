//! Wake-ups by a language's watchdog: the wait was for the thread with the work, not for the watchdog's
//! sleep.

use super::check;
use expect_test::expect;

/// Go: `sysmon` (3) sees that thread 1 has been in a call for long, and wakes thread 2, which continues the
/// goroutine when the call has returned. `watchdog` is what thread 3 has on its stack.
fn goroutine_that_moves(watchdog: &str) -> String {
    format!(
        "cpus 2
         task 1 mailer
             0 cpu0 on
            10 fork 2 thread
            20 fork 3 thread
           100 syscall write 1 40
           400 back 40
           410 off blocked futex 9 128 0 0 : futex_do_wait
           905 cpu0 on woken-by 2 : signal_wake_up_state < zap_other_threads
           906 exit
           910 off dead
         task 2 mailer
            15 cpu1 on
            30 off blocked futex 5 128 0 0 : futex_do_wait from runtime.stopm <- runtime.mcall
           380 cpu1 on woken-by 3
           900 syscall exit_group
           906 exit
           920 off dead
         task 3 mailer
            25 cpu1 on
            31 off blocked nanosleep : do_nanosleep from {watchdog} <- runtime.mstart
           370 cpu1 on woken-by interrupt : hrtimer_wakeup < asm_sysvec_apic_timer_interrupt
           379 off blocked nanosleep : do_nanosleep from {watchdog} <- runtime.mstart"
    )
}

#[test]
fn a_wait_that_gos_watchdog_ended_was_for_the_thread_with_the_work() {
    check(
        &goroutine_that_moves("runtime.usleep <- runtime.sysmon"),
        &expect![[r#"
        0..10 mailer: user
        10..15 mailer: no cpu
        15..25 mailer: user
        25..30 mailer: no cpu
        30..100 mailer: user
        100..380 mailer: write
        380..900 mailer: user
        900..906 mailer: exit_group
        906..920 mailer: exiting
    "#]],
    );
}

#[test]
fn a_waker_that_woke_by_itself_explains_the_wait() {
    check(
        &goroutine_that_moves("time.Sleep <- main.ticker"),
        &expect![[r#"
        0..10 mailer: user
        10..15 mailer: no cpu
        15..25 mailer: user
        25..30 mailer: no cpu
        30..31 mailer: user
        31..370 mailer: waits for Sleep, by interrupt timer
        370..379 mailer: user
        379..380 mailer: waits for Sleep, by nobody
        380..900 mailer: user
        900..906 mailer: exit_group
        906..920 mailer: exiting
    "#]],
    );
}

#[test]
fn a_watchdog_explains_time_in_which_no_thread_worked() {
    let idle = goroutine_that_moves("runtime.usleep <- runtime.sysmon")
        .replace("100 syscall write 1 40", "35 off blocked futex 8 128 0 0 : futex_do_wait")
        .replace("400 back 40", "400 cpu0 on woken-by 2 : try_to_wake_up");
    check(
        &idle,
        &expect![[r#"
        0..10 mailer: user
        10..15 mailer: no cpu
        15..25 mailer: user
        25..30 mailer: no cpu
        30..31 mailer: user
        31..370 mailer: waits for Sleep, by interrupt timer
        370..379 mailer: user
        379..380 mailer: waits for Sleep, by nobody
        380..900 mailer: user
        900..906 mailer: exit_group
        906..920 mailer: exiting
    "#]],
    );
}

/// Go: thread 2 waits in a poll until its time-out and takes over; thread 1 computed in the meantime and
/// continues for `longer` ns. Thread 3 is the watchdog.
fn time_out_in_a_poll(longer: u64) -> String {
    format!(
        "cpus 2
         task 1 server
             0 cpu0 on
            10 fork 2 thread
            20 fork 3 thread
        {} off blocked futex 9 128 0 0 : futex_do_wait
       3000000 cpu0 on woken-by 2 : signal_wake_up_state < zap_other_threads
       3000001 exit
       3000002 off dead
         task 2 server
            15 cpu1 on
            30 off blocked epoll_wait 4 : do_epoll_wait
       1000000 cpu1 on woken-by interrupt : hrtimer_wakeup < asm_sysvec_apic_timer_interrupt
       2900000 syscall exit_group
       2900001 exit
       3000003 off dead
         task 3 server
            25 cpu1 on
            27 off blocked nanosleep : do_nanosleep from runtime.usleep <- runtime.sysmon",
        1_000_000 + longer
    )
}

#[test]
fn an_idle_threads_time_out_was_for_the_thread_whose_work_it_took_over() {
    check(
        &time_out_in_a_poll(20_000),
        &expect![[r#"
        0..10 server: user
        10..15 server: no cpu
        15..25 server: user
        25..30 server: no cpu
        30..1000000 server: user
        1000000..2900000 server: user
        2900000..2900001 server: exit_group
        2900001..3000000 server: exiting
        3000000..3000001 server: user
        3000001..3000002 server: exiting
        3000002..3000003 server: exiting
    "#]],
    );
}

#[test]
fn a_time_out_beside_work_that_goes_on_is_a_wait_for_the_clock() {
    check(
        &time_out_in_a_poll(900_000),
        &expect![[r#"
        0..10 server: user
        10..15 server: no cpu
        15..25 server: user
        25..30 server: no cpu
        30..1000000 server: waits for Poll, by interrupt timer
        1000000..2900000 server: user
        2900000..2900001 server: exit_group
        2900001..3000000 server: exiting
        3000000..3000001 server: user
        3000001..3000002 server: exiting
        3000002..3000003 server: exiting
    "#]],
    );
}
