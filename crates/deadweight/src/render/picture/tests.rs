//! Pictures of text traces: nothing is lost, arrows point to the waker, and the size is bounded.

use super::*;
use crate::render::drawing::{flame, timeline, usage};
use crate::render::html::{self, Beside};
use deadweight_core::{Weighing, weigh};
use std::fmt::Write as _;

const SLEEP_INTO_CAT: &str = "task 1 sh
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
           991 off dead";

fn pictured(text: &str) -> Picture {
    of_trace(&Trace::from_text(text).unwrap(), None).unwrap()
}

#[test]
fn cells_tile_each_life() {
    let picture = pictured(SLEEP_INTO_CAT);
    let lives: Vec<(u32, u64)> = picture
        .lanes
        .iter()
        .map(|lane| {
            let ends = lane.cells.windows(2).all(|two| two[0].0 + two[0].1 == two[1].0);
            assert!(ends, "{lane:?}");
            (lane.tid, lane.cells.iter().map(|cell| cell.1).sum())
        })
        .collect();
    assert_eq!(lives, [(1, 1000), (2, 910), (3, 971)]);
}

#[test]
fn the_sums_of_the_drawings_are_those_of_the_report() {
    let trace = [Trace::from_text(SLEEP_INTO_CAT).unwrap()];
    let report = weigh(&Weighing { traces: &trace, ..Weighing::default() }).unwrap();
    let picture = pictured(SLEEP_INTO_CAT);
    let used: u64 = picture.usage.rows.iter().flat_map(|(_, times)| times).sum();
    assert_eq!((picture.wall_ns, used), (report.wall_ns, report.cpu_ns));
    for (stacks, total) in [(&picture.on_path, report.wall_ns), (&picture.on_cpu, report.cpu_ns)] {
        let sum: u64 = stacks.nodes.iter().flat_map(|node| &node.2).map(|(_, ns)| ns).sum();
        assert_eq!((stacks.total, sum), (total, total));
    }
    for row in &report.ledger {
        let own = picture.on_path.nodes.iter().flat_map(|node| &node.2);
        let sum: u64 = own
            .filter(|(key, _)| picture.on_path.keys[*key].0 == row.account)
            .map(|(_, ns)| ns)
            .sum();
        assert_eq!(sum, row.ns, "{}", row.account);
    }
    let steps: u64 = picture.path.iter().map(|step| step.1 - step.0).sum();
    assert_eq!(steps, report.wall_ns);
}

#[test]
fn arrows_point_to_the_task_that_ended_the_wait() {
    let picture = pictured(SLEEP_INTO_CAT);
    let waits: Vec<_> = picture.waits.iter().map(|w| (w.tid, w.waker, w.end)).collect();
    assert_eq!(waits, [(1, Some(3), 990), (2, None, 900), (3, Some(2), 915)]);
    let drawn = timeline::drawing(&picture).body.into_string();
    assert!(drawn.contains("data-waiter=\"1\" data-waker=\"3\""), "{drawn}");
}

/// A busy run with long names: as hostile to the size of a page as a recording can be.
fn large() -> String {
    let long = "std::map<template,\"quoted\"&".repeat(160);
    let mut text = String::from("sample-period 1000\ntask 1 main\n0 on\n");
    for task in 2..48 {
        writeln!(text, "{} fork {task}", task * 2).unwrap();
    }
    text.push_str("300 off blocked wait4\n9000000 on woken-by 2\n9000010 exit\n9000020 off dead\n");
    for task in 2..48_u64 {
        writeln!(text, "task {task} worker{task}").unwrap();
        for round in 0..30 {
            let at = 1000 + round * 240_000 + task * 10;
            let number = round * 46 + task;
            writeln!(text, "{at} on\n{} sample f{number}{long} <- g{round}", at + 5).unwrap();
            writeln!(text, "{} off blocked futex", at + 2000).unwrap();
        }
        writeln!(text, "8900000 on woken-by interrupt\n8900100 exit\n8900200 off dead").unwrap();
    }
    text
}

#[test]
fn a_page_of_a_large_recording_stays_small() {
    let trace = [Trace::from_text(&large()).unwrap()];
    let report = weigh(&Weighing { traces: &trace, ..Weighing::default() }).unwrap();
    let picture = of_trace(&trace[0], None).unwrap();
    assert!(picture.left_out > 0 && picture.on_cpu.left_out > 0);
    let used: u64 = picture.usage.rows.iter().flat_map(|(_, times)| times).sum();
    assert_eq!(used, report.cpu_ns);
    let explain = |id: &str| deadweight_core::cost::explain(id);
    let page = html::render(&report, Beside { explain: &explain, picture: Some(&picture) });
    assert!(page.len() < 2_000_000, "{} bytes", page.len());
    let scales = usage::Scales::of(&picture);
    for drawing in [
        timeline::drawing(&picture),
        usage::drawing(&picture, "usage-drawing", scales),
        flame::drawing(&picture.on_path, "wall time"),
    ] {
        let alone = drawing.alone();
        assert!(alone.starts_with("<svg xmlns") && alone.len() < 700_000, "{}", alone.len());
    }
}
