//! Recordings whose end is missing.

use super::check_life;
use expect_test::expect;

#[test]
fn a_wait_when_a_recording_is_cut_off_may_have_ended_since() {
    check_life(
        "cpus 2
        end 9000
        task 1 sh
             0 cpu0 on
            10 fork 2
            20 off blocked wait4 2 : do_wait
          1000 lost 5
          1000 cpu1 lost 5
        task 2 ls
            15 cpu1 on
           400 exit
           410 off dead",
        1,
        &expect![[r#"
            0 user
            20 waits for Child, by unseen
            410 unrecorded
            9000 end
        "#]],
    );
}

#[test]
fn births_and_deaths_that_arrive_nevertheless_do_not_end_a_hole() {
    let text = |lost: &str| {
        format!(
            "cpus 1
            end 9000
            task 1 a
                 0 on
                10 syscall write 4 1
                20 back 1
                30 syscall write 4 1
              5000 fork 2
              8000 exit
              9000 {lost}"
        )
    };
    // The second was not on a CPU, as far as is known: it may have been since.
    let lost = text("lost 5");
    for text in [&lost, &lost.replace("30 syscall write 4 1", "30 off preempted")] {
        check_life(
            text,
            1,
            &expect![[r#"
                0 user
                10 write
                20 user
                30 unrecorded
                9000 end
            "#]],
        );
    }
    // Without losses it was one long call.
    check_life(
        &text("off dead"),
        1,
        &expect![[r#"
            0 user
            10 write
            20 user
            30 write
            8000 exiting
            9000 dead
        "#]],
    );
}

#[test]
fn a_task_without_a_cpu_may_have_had_the_one_that_lost_its_records_first() {
    let text = |other: &str| {
        format!(
            "cpus 2
            end 9000
            task 1 sh
                 0 cpu0 on
                10 fork 2
                20 off preempted
              9000 lost 5
              9000 cpu1 lost 5
            task 2 ls
                25 cpu0 on
                30 syscall getpid
                31 back
                40 {other}
            task 9 other
                 0 cpu1 on
               500 cpu1 on
              7000 cpu1 on"
        )
    };
    check_life(
        &text("syscall getpid"),
        1,
        &expect![[r#"
            0 user
            20 no cpu
            40 unrecorded
            9000 end
        "#]],
    );
    // Left idle.
    check_life(
        &text("off blocked wait4 : do_wait"),
        1,
        &expect![[r#"
            0 user
            20 no cpu
            7000 unrecorded
            9000 end
        "#]],
    );
}
