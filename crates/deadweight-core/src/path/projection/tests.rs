//! The second reading compared with the first.

use super::simple;
use crate::path::causes::{Cause, Doing, Held, difference};
use crate::path::overlap::overlaps;
use crate::path::tests::{Read, read};
use deadweight_trace::units::Ns;
use std::collections::BTreeMap;

fn both(read: &Read) -> (BTreeMap<Cause, Ns>, BTreeMap<Cause, Ns>) {
    let path = read.path.causes(&read.timeline);
    let simple = simple(&read.timeline, &read.path.subject);
    let wall = read.path.subject.wall();
    assert_eq!(path.values().copied().sum::<Ns>(), wall);
    assert_eq!(simple.values().copied().sum::<Ns>(), wall);
    (path, simple)
}

fn work(totals: &BTreeMap<Cause, Ns>) -> u64 {
    let user = |(cause, ns): (&Cause, &Ns)| match cause {
        Cause::Work(_, Doing::User) => ns.0,
        _ => 0,
    };
    totals.iter().map(user).sum()
}

fn waits(totals: &BTreeMap<Cause, Ns>) -> u64 {
    let wait = |(cause, ns): (&Cause, &Ns)| match cause {
        Cause::Wait(..) => ns.0,
        _ => 0,
    };
    totals.iter().map(wait).sum()
}

#[test]
fn four_workers_on_two_cpus_are_all_work_where_the_path_sees_waits_for_cpus() {
    let mut text = String::from("cpus 2\ntask 1 par\n 0 on\n");
    for worker in 2..=5 {
        text += &format!(" {worker} fork {worker} thread\n");
    }
    text += " 10 off blocked futex 80 0 5 0 : futex_wait\n";
    text += " 830 on woken-by 5 : mm_release < do_exit\n 860 exit\n 861 off dead\n";
    // Two at a time, alternating every 100.
    for worker in 2..=5_u64 {
        text += &format!("task {worker} par\n");
        for turn in 0..4 {
            let start = 20 + turn * 200 + (worker - 2) / 2 * 100;
            let cpu = worker % 2;
            text += &format!(" {start} cpu{cpu} on\n");
            if turn < 3 {
                text += &format!(" {} off preempted\n", start + 99);
            } else {
                text += &format!(" {0} exit\n {1} off dead\n", start + 99, start + 120);
            }
        }
    }
    let read = read(&text);
    let (path, simple) = both(&read);
    let own: u64 = path
        .iter()
        .filter(|(cause, _)| matches!(cause, Cause::NoCpu(Held::Own)))
        .map(|(_, ns)| ns.0)
        .sum();
    assert!(own > 300, "{path:?}");
    assert!(work(&simple) > 750, "{simple:?}");
    assert!(difference(&path, &simple) >= super::TWO_READINGS);
}

#[test]
fn a_spinner_beside_a_sleeper_is_two_readings_and_a_saving_range() {
    let read = read(
        "cpus 2
        task 1 spw
             0 on
            10 fork 2 thread
            20 off blocked clock_nanosleep : do_nanosleep
           800 on woken-by interrupt : hrtimer_wakeup < sysvec_apic_timer_interrupt
           810 off blocked futex 80 0 2 0 : futex_wait
           820 on woken-by 2 : mm_release < do_exit
           831 exit
           840 off dead
        task 2 spinner
            15 on
           812 exit
           825 off dead",
    );
    let (path, simple) = both(&read);
    assert!(waits(&path) > 750 && work(&simple) > 750);
    assert!(difference(&path, &simple) > super::TWO_READINGS);
    let overlaps = overlaps(&read.timeline, &read.path);
    let [wait] = overlaps[..] else { panic!("one wait: {overlaps:?}") };
    assert_eq!((wait.start, wait.end, wait.busy), (Ns(20), Ns(800), Ns(780)));
    assert_eq!(wait.by.map(|t| read.name(t)), Some("spinner".to_owned()));
}

#[test]
fn goroutine_hand_overs_through_idle_threads_are_two_readings() {
    // Two threads hand work to each other, each by the poller's time-out.
    let read = read(
        "cpus 2
        task 1 go
             0 on
             5 fork 2 thread
            20 off blocked nanosleep : do_nanosleep
           300 on woken-by interrupt : hrtimer_wakeup < sysvec_apic_timer_interrupt
           600 off blocked nanosleep : do_nanosleep
           900 on woken-by interrupt : hrtimer_wakeup < sysvec_apic_timer_interrupt
           950 exit
           960 off dead
        task 2 go
            10 on
           290 off blocked futex 64 0 0 0 : futex_wait
           600 on woken-by 1 : futex_wake < do_futex
           890 off blocked futex 64 0 0 0 : futex_wait",
    );
    let (path, simple) = both(&read);
    assert!(difference(&path, &simple) > super::TWO_READINGS);
    assert!(work(&simple) > 900);
}

#[test]
fn one_task_reads_the_same_both_ways() {
    let read = read(
        "task 1 a
             0 on
            10 syscall read 0 1
            20 off blocked : anon_pipe_read
            60 on woken-by interrupt
            65 back
            70 off preempted
            71 [9] cpu0 on
            80 [9] off blocked
            90 on
           100 exit
           110 off dead
        task 9 outsider outside",
    );
    let (path, simple) = both(&read);
    assert_eq!(path, simple);
    let held = |who: &dyn Fn(&Held) -> bool| -> u64 {
        path.iter()
            .filter(|(cause, _)| matches!(cause, Cause::NoCpu(held) if who(held)))
            .map(|(_, ns)| ns.0)
            .sum()
    };
    assert_eq!(held(&|h| matches!(h, Held::Outside(_))), 9);
    assert_eq!(held(&|h| matches!(h, Held::Nobody)), 11);
}
