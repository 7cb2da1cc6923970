//! Which wakers are inferred, and which are not.

use crate::timeline::kernel_stacks::Interrupt;
use crate::timeline::{Run, Timeline, WokenBy};
use deadweight_trace::Trace;
use deadweight_trace::units::Ns;

fn timeline(text: &str) -> Timeline {
    Timeline::build(&Trace::from_text(&format!("rung user\n{text}")).unwrap())
}

#[test]
fn a_reader_is_woken_by_what_is_written_to_its_pipe() {
    let timeline = timeline(
        "task 1 sh
           0 on
           5 syscall pipe2 0 0
           6 back
          10 fork 2
          20 syscall read 3 100
          30 off blocked
          90 on
          95 back 7
         100 exit
        task 2 cat
          15 on
          40 syscall write 1 1
          42 back 1
          50 syscall write 4 7
          60 back 7
          99 off dead",
    );
    let block = &timeline.blocks[0];
    let writer = timeline.tasks.iter().position(|t| t.tid.0 == 2).unwrap();
    assert!(matches!(block.woken_by, WokenBy::Task(by) if by.index() == writer));
    assert!(block.inferred && block.end == Ns(60));
    // From the wake-up on it was runnable.
    let runs: Vec<_> = timeline.tasks[0].spans.iter().map(|s| (s.start.0, s.run())).collect();
    assert!(runs.contains(&(60, Run::Runnable)), "{runs:?}");
}

#[test]
fn a_joined_thread_ended_the_wait_however_late_the_waiter_runs() {
    let text = |value: u32| {
        format!(
            "task 1 main
               0 on
              10 fork 2 thread
              11 fork 3 thread
              20 syscall futex 64 265 {value}
              30 off blocked
              9000000 on
              9000001 back
              9000002 exit
            task 2 one
              15 on
              1000000 exit
              1000050 off dead
            task 3 two
              15 on
              2000000 exit
              2000050 off dead"
        )
    };
    let joined = timeline(&text(2));
    let block = joined.blocks.iter().find(|block| block.start == Ns(30)).unwrap();
    let by = |task: deadweight_trace::ids::TaskId| joined.task(task).tid.0;
    assert!(matches!(block.woken_by, WokenBy::Task(task) if by(task) == 2), "{block:?}");
    assert_eq!((block.end, block.inferred), (Ns(1_000_050), true));
    // No task has this number: no waker is guessed.
    let other = timeline(&text(7));
    let block = other.blocks.iter().find(|block| block.start == Ns(30)).unwrap();
    assert_eq!((block.woken_by, block.end), (WokenBy::Unseen, Ns(9_000_000)));
}

#[test]
fn a_parent_is_woken_by_its_childs_death_and_a_sleeper_of_a_futex_by_its_word() {
    let timeline = timeline(
        "task 1 main
           0 on
          10 fork 2
          20 syscall wait4 2
          30 off blocked
          90 on
          95 back 2
         200 exit
        task 2 child
          15 on
          16 fork 3 thread
          20 syscall futex 64 128 0
          22 off blocked
          62 on
          64 back
          70 exit
          85 off dead
        task 3 worker
          17 on
          50 syscall futex 32 129 1
          51 back
          55 syscall futex 64 129 1
          60 back 1
          66 exit
          67 off dead",
    );
    let by = |tid: u32| timeline.tasks.iter().position(|t| t.tid.0 == tid).unwrap();
    let ended =
        |waiter: u32| timeline.blocks.iter().find(|b| b.task.index() == by(waiter)).unwrap();
    assert!(matches!(ended(1).woken_by, WokenBy::Task(t) if t.index() == by(2)));
    assert_eq!(ended(1).end, Ns(85));
    assert!(matches!(ended(2).woken_by, WokenBy::Task(t) if t.index() == by(3)));
    assert_eq!(ended(2).end, Ns(60));
}

#[test]
fn a_vfork_parent_is_woken_by_the_child_that_executes_a_program() {
    let woken_by = |exec: u64| {
        let timeline = timeline(&format!(
            "task 1 make\n0 on\n10 syscall vfork\n20 fork 2\n30 off blocked
             90 on\n95 back 2\n200 exit\ntask 2 make\n40 on\n{exec} exec /bin/cc\n150 exit"
        ));
        (timeline.blocks[0].woken_by, timeline.blocks[0].end)
    };
    let child = WokenBy::Task(deadweight_trace::ids::TaskId::at(1));
    assert_eq!(woken_by(80), (child, Ns(80)));
    // It was recorded late.
    assert_eq!(woken_by(93), (child, Ns(90)));
}

/// As `make` waits for a free job slot.
#[test]
fn a_wait_for_input_is_interrupted_by_a_childs_death() {
    let woken_by = |ret: &str| {
        let timeline = timeline(&format!(
            "task 1 make\n0 on\n10 fork 2\n20 syscall pselect6 4 0\n30 off blocked
             90 on\n95 back {ret}\n200 exit\ntask 2 cc\n15 on\n70 exit\n85 off dead"
        ));
        (timeline.blocks[0].woken_by, timeline.blocks[0].end)
    };
    let child = (WokenBy::Task(deadweight_trace::ids::TaskId::at(1)), Ns(85));
    assert_eq!([woken_by("-514"), woken_by("-4")], [child, child]);
    assert_eq!(woken_by("1"), (WokenBy::Unseen, Ns(90)));
}

#[test]
fn no_waker_is_inferred_where_nothing_fits_and_the_clock_where_it_ran_out() {
    let timeline = timeline(
        "task 1 main
           0 on
          20 syscall read 0 100
          30 off blocked
          90 on
          95 back 7
         100 syscall poll 0 1 10
         101 off blocked
         200 on
         201 back 0
         300 exit",
    );
    assert_eq!(timeline.blocks[0].woken_by, WokenBy::Unseen);
    assert_eq!(timeline.blocks[1].woken_by, WokenBy::Interrupt(Interrupt::Timer));
}

#[test]
fn a_wait_recorded_by_stops_may_have_lasted_longer() {
    let by = |rung: &str| {
        let timeline = Timeline::build(
            &Trace::from_text(&format!(
                "rung {rung}\ntask 1 sh\n0 on\n5 syscall pipe2 0 0\n6 back\n10 fork 2\n20 syscall read 3 100
                 30 off blocked\n60 on\n61 off preempted\n90 on\n95 back 7\n100 exit
                 task 2 cat\n15 on\n70 syscall write 4 7\n80 back 7\n99 off dead"
            ))
            .unwrap(),
        );
        (timeline.blocks[0].woken_by, timeline.blocks[0].end)
    };
    assert_eq!(by("stops"), (WokenBy::Task(deadweight_trace::ids::TaskId::at(1)), Ns(60)));
    assert_eq!(by("user"), (WokenBy::Unseen, Ns(60)));
}
