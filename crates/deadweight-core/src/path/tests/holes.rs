//! Pitfalls of lost or partial records, each with its rule.

use super::{check_life, read};
use expect_test::expect;

#[test]
fn interrupts_of_a_cpu_without_idle_records_are_inferred() {
    check_life(
        "blind-cpus 1
        task 1 db
             0 on
            10 off blocked fdatasync 3 : io_schedule < folio_wait_bit < ext4_sync_file
            50 on
            60 off blocked clock_nanosleep : do_nanosleep
            90 on
            95 off blocked futex 64 0 0 4097 : futex_wait
           120 on
           125 off blocked futex 64 0 0 0 : futex_wait
           130 on",
        1,
        &expect![[r#"
            0 user
            10 waits for Disk, by interrupt disk, inferred
            50 user
            60 waits for Sleep, by interrupt timer, inferred
            90 user
            95 waits for Futex, by interrupt timer, inferred
            120 user
            125 waits for Futex, by unseen
            130 user
            130 end
        "#]],
    );
}

#[test]
fn lost_records_are_a_hole_until_the_next_known_state() {
    check_life(
        "task 1 a
             0 on
            10 syscall read 0 1
           400 lost 1000
           410 back 1
           420 off blocked read 0 1 : anon_pipe_read
           500 on woken-by interrupt",
        1,
        &expect![[r#"
            0 user
            10 unrecorded
            410 user
            420 waits for PipeData, by interrupt other
            500 user
            500 end
        "#]],
    );
}

/// The child's CPU has no event after the child's death: the loss is reported at the end.
#[test]
fn a_wait_is_hidden_by_a_loss_that_is_reported_after_it() {
    check_life(
        "cpus 2
        task 1 sh
             0 cpu0 on
            10 fork 2
            20 syscall wait4 -1
            30 off blocked wait4
           900 cpu0 on
           910 back 2
        task 2 cb
            12 cpu1 on
           100 cpu1 syscall read 0 1
           950 cpu1 lost 1",
        1,
        &expect![[r#"
            0 user
            20 wait4
            30 waits for Child, by unseen
            100 unrecorded
            900 wait4
            910 user
            950 end
        "#]],
    );
}

/// The ring buffers of samples lose nothing then, and descriptors are read from `/proc`.
#[test]
fn records_of_other_rings_do_not_shorten_a_hole() {
    check_life(
        "task 1 a
             0 on
            10 syscall read 0 1
           390 sample kernel main : ksys_read
           395 fd 3 pipe:[1]
           400 lost 1000
           410 back 1
           500 off blocked read 0 1 : anon_pipe_read
           510 on woken-by interrupt",
        1,
        &expect![[r#"
            0 user
            10 unrecorded
            410 user
            500 waits for PipeData, by interrupt other
            510 user
            510 end
        "#]],
    );
}

/// The losses of its own CPU are reported only with the next event there.
#[test]
fn a_task_that_moved_to_another_cpu_unseen_was_in_a_hole() {
    check_life(
        "cpus 2
        task 1 a
             0 cpu0 on
            10 cpu0 syscall write 1 1
           400 cpu1 lost 1000
           410 cpu1 back 1
           420 cpu1 syscall write 1 1
           425 cpu1 back 1
           500 cpu0 lost 1000
           510 cpu1 exit",
        1,
        &expect![[r#"
            0 user
            10 unrecorded
            410 user
            420 write
            425 user
            510 exiting
            510 end
        "#]],
    );
}

#[test]
fn a_wait_without_a_recorded_end_ends_where_records_were_lost() {
    let wait = |off: &str, lost: u64| {
        format!(
            "task 1 a
                 0 on
                10 off {off}
            task 2 b
                20 on
                30 syscall write 1 1
            {lost} lost 1000
            task 1
               500 on"
        )
    };
    check_life(
        &wait("blocked read 0 1 : anon_pipe_read", 480),
        1,
        &expect![[r#"
        0 user
        10 waits for PipeData, by unseen
        30 unrecorded
        500 user
        500 end
    "#]],
    );
    check_life(
        &wait("preempted", 480),
        1,
        &expect![[r#"
        0 user
        10 no cpu
        30 unrecorded
        500 user
        500 end
    "#]],
    );
    // Too short a hole to explain the rest.
    check_life(
        &wait("blocked read 0 1 : anon_pipe_read", 40),
        1,
        &expect![[r#"
        0 user
        10 waits for PipeData, by unseen
        500 user
        500 end
    "#]],
    );
}

/// A small record fits where others do not, and reports the losses before it.
#[test]
fn a_wait_that_several_holes_may_hide_is_not_known_from_the_first_of_them_on() {
    check_life(
        "task 1 a
             0 on
            10 off preempted
        task 2 b
            20 on
            30 syscall write 1 1
            40 lost 5
            41 back 1
           480 lost 1000
        task 1
           500 on",
        1,
        &expect![[r#"
        0 user
        10 no cpu
        30 unrecorded
        500 user
        500 end
    "#]],
    );
}

#[test]
fn a_wait_that_began_in_a_hole_of_another_cpu_is_not_known() {
    let elsewhere = "cpus 2
        task 1 a
             0 cpu0 on
        task 2 b
             0 cpu1 on
             5 fork 3
        task 1
            10 cpu0 off preempted
        task 2
            20 cpu1 fork 4
           480 cpu1 lost 1000
           490 cpu0 lost 1000
        task 1
           500 cpu0 on";
    check_life(
        elsewhere,
        1,
        &expect![[r#"
        0 user
        10 unrecorded
        500 user
        500 end
    "#]],
    );
}

#[test]
fn a_missing_switch_out_is_repaired_by_what_follows() {
    let text = "cpus 1
        task 1 a
             0 on
             5 fork 2 thread
            10 syscall read 0 1
        task 2 b
            20 cpu0 on
            30 off preempted
        task 1
            31 on
            32 back 1
            35 syscall read 0 1
        task 2
            40 cpu0 on
            50 [1] woken-by 2
            55 off preempted
        task 1
            56 on";
    check_life(
        text,
        1,
        &expect![[r#"
        0 user
        10 read
        20 no cpu
        31 read
        32 user
        35 read
        40 waits for Other, by b, inferred
        50 no cpu
        56 read
        56 end
    "#]],
    );
}

#[test]
fn a_missing_switch_in_is_repaired_from_the_cpus_last_event() {
    check_life(
        "cpus 1
        task 1 a
             0 on
            10 off preempted
        task 9 outsider
            10 cpu0 on
            20 off blocked
        task 1
            50 off blocked nanosleep
            90 on woken-by interrupt",
        1,
        &expect![[r#"
            0 user
            10 no cpu
            50 waits for Sleep, by interrupt timer
            90 user
            90 end
        "#]],
    );
}

#[test]
fn a_page_fault_that_reads_storage_is_major_also_inside_a_call() {
    let text = "task 1 a
             0 on
            10 fault 4096
            15 off blocked : folio_wait_bit_common < filemap_fault < asm_exc_page_fault
            40 on woken-by interrupt
            45 fault-end
            50 syscall read 0 1
            52 fault 8192 kernel
            54 fault-end
            60 back 1";
    check_life(
        text,
        1,
        &expect![[r#"
        0 user
        10 fault(0)
        15 waits for Disk, by interrupt disk
        40 fault(0)
        45 user
        50 read
        52 fault(1)
        54 read
        60 user
        60 end
    "#]],
    );
    let read = read(text);
    let majors: Vec<_> = read.timeline.faults.iter().map(|f| (f.major, f.call.is_some())).collect();
    assert_eq!(majors, [(true, false), (false, true)]);
}

#[test]
fn a_stopped_task_waits_for_a_signal() {
    check_life(
        "task 1 a
             0 on
            10 off stopped : do_signal_stop < get_signal
            90 on woken-by 9 bash : complete_signal < __x64_sys_kill",
        1,
        &expect![[r#"
            0 user
            10 waits for Signal, by 9
            90 user
            90 end
        "#]],
    );
}

#[test]
fn a_call_that_goes_on_after_a_signal_waits_for_the_same() {
    check_life(
        "task 1 a
             0 on
            10 syscall poll 0 1 1000
            12 off blocked
            40 on woken-by 9 bash : complete_signal < __x64_sys_kill
            41 back -516
            42 syscall restart_syscall
            43 off blocked
            90 on woken-by interrupt : process_timeout < __irq_exit_rcu
            91 back 0",
        1,
        &expect![[r#"
            0 user
            10 poll
            12 waits for Poll, by 9
            40 poll
            41 user
            42 restart_syscall
            43 waits for Poll, by interrupt timer
            90 restart_syscall
            91 user
            91 end
        "#]],
    );
}

#[test]
fn a_call_that_never_came_back_ends_with_the_next() {
    let read = read(
        "task 1 a
             0 on
            10 syscall read 0 1
            30 syscall write 1 1
            40 back 1",
    );
    let calls: Vec<_> = read.timeline.calls.iter().map(|c| (c.start.0, c.end.0, c.ret())).collect();
    assert_eq!(calls, [(10, 30, None), (30, 40, Some(1))]);
}
