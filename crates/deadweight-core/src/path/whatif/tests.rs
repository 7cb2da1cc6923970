//! Savings predicted for programs with a known truth.

use super::{Removal, Saving, WhatIf};
use crate::path::tests::{Read, read};
use crate::timeline::{Run, Timeline};
use deadweight_trace::ids::TaskId;
use deadweight_trace::units::Ns;

fn saving(read: &Read, cpus: u16, removal: Removal<'_>) -> Saving {
    let graph = WhatIf::new(&read.timeline, &read.path.subject, cpus);
    assert!(graph.error() <= 0.1, "the replay is off by {}", graph.error());
    graph.saving(removal)
}

/// All of a task's time on a CPU.
fn work_of(timeline: &Timeline, tid: u32) -> impl Fn(TaskId, usize, Ns) -> Ns + '_ {
    move |task, span, length| {
        let task = timeline.task(task);
        let works = task.tid.0 == tid && matches!(task.spans[span].run(), Run::OnCpu(_));
        if works { length } else { Ns::ZERO }
    }
}

/// All waits that end outside.
fn waits(timeline: &Timeline) -> impl Fn(TaskId, usize, Ns) -> Ns + '_ {
    move |task, span, length| match timeline.task(task).spans[span].run() {
        Run::Blocked(_) => length,
        _ => Ns::ZERO,
    }
}

const UNLIKE: &str = "cpus 2
    task 1 het
         0 on
        10 fork 2 thread
        15 fork 3 thread
        20 off blocked futex 80 0 2 0 : futex_wait
       990 on woken-by 2 : mm_release < do_exit
      1000 exit
      1000 off dead
    task 2 alpha
        12 on
       990 syscall exit
       990 exit
       991 off dead
    task 3 beta
        21 on
       800 syscall exit
       800 exit
       801 off dead";

#[test]
fn the_lead_bounds_the_saving_of_unlike_workers() {
    // Without the join on beta, which was satisfied at once and left no edge, the saving would be all.
    let read = read(UNLIKE);
    let saving = saving(&read, 2, &work_of(&read.timeline, 2));
    assert_eq!(saving.low, saving.high);
    assert!((150..=220).contains(&saving.low.0), "{saving:?}");
}

#[test]
fn a_wait_for_a_cpu_goes_with_the_work_that_held_it() {
    let text = "cpus 1
        task 1 main
             0 on
            10 fork 2 thread
           400 off preempted
           801 on
           850 off blocked futex 80 0 2 0 : futex_wait
           860 woken-by 2 : mm_release < do_exit
           870 on
           900 exit
           900 off dead
        task 2 worker
           400 cpu0 on
           800 off preempted
           851 cpu0 on
           852 syscall exit
           860 exit
           869 off dead";
    let read = read(text);
    // Half the work is the worker's: a wait for a CPU is no saving in itself.
    let saving = saving(&read, 1, &work_of(&read.timeline, 2));
    assert!((390..=430).contains(&saving.low.0), "{saving:?}");
}

#[test]
fn a_producers_time_is_only_saved_down_to_its_consumers() {
    let text = "cpus 2
        task 1 main
             0 on
             5 fork 2 thread
            10 off blocked futex 64 0 0 0 : futex_wait
           500 on woken-by 2 : futex_wake < do_futex
           700 off blocked futex 64 0 0 0 : futex_wait
          1000 on woken-by 2 : futex_wake < do_futex
          1200 exit
          1200 off dead
        task 2 feeder
             6 on
           999 syscall futex 64 1 1 0
          1001 back 1
          1002 syscall exit
          1003 exit
          1004 off dead";
    let read = read(text);
    let saving = saving(&read, 2, &work_of(&read.timeline, 2));
    assert!((770..=800).contains(&saving.low.0), "{saving:?}");
}

#[test]
fn a_task_that_only_polls_gives_a_range() {
    // Main's end reaches the ticker through memory, which leaves no edge. Truth: nearly all.
    let text = "cpus 2
        task 1 tick
             0 on
            10 fork 2 thread
           900 off blocked futex 80 0 2 0 : futex_wait
           945 on woken-by 2 : mm_release < do_exit
           960 exit
           960 off dead
        task 2 ticker
            15 on
            20 off blocked clock_nanosleep : do_nanosleep
           320 on woken-by interrupt : hrtimer_wakeup < sysvec_apic_timer_interrupt
           325 off blocked clock_nanosleep : do_nanosleep
           640 on woken-by interrupt : hrtimer_wakeup < sysvec_apic_timer_interrupt
           645 off blocked clock_nanosleep : do_nanosleep
           940 on woken-by interrupt : hrtimer_wakeup < sysvec_apic_timer_interrupt
           944 syscall exit
           944 exit
           946 off dead";
    let read = read(text);
    let saving = saving(&read, 2, &work_of(&read.timeline, 1));
    assert!(saving.low.0 < 40, "{saving:?}");
    assert!(saving.high.0 > 900, "{saving:?}");
}

#[test]
fn polls_that_time_out_can_go() {
    let text = "task 1 poller
             0 on
            10 off blocked poll : do_sys_poll
           410 on woken-by interrupt : process_timeout < __irq_exit_rcu
           420 off blocked poll : do_sys_poll
           820 on woken-by interrupt : process_timeout < __irq_exit_rcu
          1000 exit
          1000 off dead";
    let read = read(text);
    let saving = saving(&read, 2, &waits(&read.timeline));
    assert_eq!(saving, Saving { low: Ns(800), high: Ns(800) });
}

#[test]
fn part_of_a_span_can_be_removed() {
    let read = read("task 1 a\n 0 on\n 1000 exit\n 1000 off dead");
    let half: Removal<'_> = &|_, _, length| Ns(length.0 / 2);
    assert_eq!(saving(&read, 1, half), Saving { low: Ns(500), high: Ns(500) });
}

#[test]
fn contradictory_waits_do_not_hang_the_replay() {
    let text = "cpus 2
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
            95 on woken-by 1 : futex_wake < do_futex";
    let read = read(text);
    let graph = WhatIf::new(&read.timeline, &read.path.subject, 2);
    assert!(graph.saving(&|_, _, length| length).low <= Ns(110));
}
