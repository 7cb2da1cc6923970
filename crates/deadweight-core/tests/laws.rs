//! The laws of the timeline and the path over random recordings, also contradictory ones.
//!
//! Lives are tiled by their spans, the wall time by the path's pieces; both readings and the
//! report's rows add up to it. `PROPTEST_CASES` sets how many recordings are tried (each run the
//! same ones); a hundred thousand take minutes in release.
#![expect(clippy::expect_used, reason = "a test says what it expects")]

#[path = "../../deadweight-trace/tests/random/mod.rs"]
mod random;

use deadweight_core::path::causes::{Cause, difference};
use deadweight_core::path::overlap::overlaps;
use deadweight_core::path::projection::simple;
use deadweight_core::path::teams::teams;
use deadweight_core::path::whatif::WhatIf;
use deadweight_core::path::{Path, Subject};
use deadweight_core::timeline::{Run, Timeline};
use deadweight_core::{Weighing, weigh};
use deadweight_trace::ids::{Cpu, LocationId, NameId, StackId, TaskId, Tid};
use deadweight_trace::symbols::{Image, Location, SourceFrame, Symbols};
use deadweight_trace::units::{LiveAddr, Ns};
use deadweight_trace::{Event, Kind, Meta, Off, Trace};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// Kernel stacks that decide about waits and wake-ups.
const STACKS: [&str; 10] = [
    "",
    "schedule anon_pipe_read vfs_read",
    "schedule futex_wait_queue futex_wait",
    "schedule do_nanosleep",
    "schedule io_schedule folio_wait_bit",
    "try_to_wake_up futex_wake do_futex",
    "try_to_wake_up hrtimer_wakeup sysvec_apic_timer_interrupt",
    "try_to_wake_up blk_done_softirq __irq_exit_rcu common_interrupt",
    "try_to_wake_up do_notify_parent do_exit",
    "complete_signal __send_signal_locked __x64_sys_kill",
];

fn symbols() -> Symbols {
    let mut symbols = Symbols::default();
    let path = symbols.intern("[kernel]");
    symbols.images.push(Image { path, ..Image::default() });
    for stack in &STACKS[1..] {
        let mut locations = Vec::new();
        for function in stack.split_whitespace() {
            let function = symbols.intern(function);
            locations.push(LocationId::at(symbols.locations.len()));
            let frames = vec![SourceFrame { function, ..SourceFrame::default() }];
            symbols.locations.push(Location { frames, ..Location::default() });
        }
        symbols.stacks.push(locations);
    }
    symbols
}

/// Tids small enough to repeat, and two that no kernel gives.
fn tid() -> impl Strategy<Value = Tid> {
    prop_oneof![12 => (0_u32..6).prop_map(Tid), 1 => Just(Tid(u32::MAX)), 1 => Just(Tid(1 << 23))]
}

fn stack() -> impl Strategy<Value = StackId> {
    // One more than there are: a truncated table.
    (0..=10_u32).prop_map(StackId)
}

/// Events in the mixture that recordings have, so that lives get complicated.
fn kind() -> impl Strategy<Value = Kind> {
    let why = prop_oneof![
        4 => Just(Off::Blocked),
        2 => Just(Off::Preempted),
        1 => Just(Off::Yielded),
        1 => Just(Off::Stopped),
        1 => Just(Off::Dead),
    ];
    // read, write, exec, clone, exit, exit_group, futex, nanosleep, pipe, restart, unknown.
    let nr = prop::sample::select(vec![0_u16, 1, 59, 56, 60, 231, 202, 35, 22, 219, 9999]);
    let fault = |kernel| Kind::Fault { addr: LiveAddr(4096), by: LocationId(0), kernel };
    let sample = |(kernel, kernel_stack)| Kind::Sample { kernel, stack: StackId(0), kernel_stack };
    prop_oneof![
        8 => Just(Kind::On),
        8 => (why, stack()).prop_map(|(why, stack)| Kind::Off { why, stack }),
        8 => (tid(), any::<bool>(), stack(), any::<bool>()).prop_map(
            |(waker, irq, stack, inferred)| Kind::Wake { waker, irq, stack, inferred }
        ),
        4 => (tid(), tid()).prop_map(|(child, process)| Kind::Fork { child, process }),
        1 => tid().prop_map(|former| Kind::Exec { former, path: NameId(1) }),
        1 => Just(Kind::Comm(NameId(2))),
        2 => Just(Kind::Exit),
        4 => (nr, 0_u64..5).prop_map(|(nr, a)| Kind::Syscall { nr, args: [a, 1, 0, 0] }),
        4 => (-2_i64..6).prop_map(|ret| Kind::Back { ret }),
        2 => (0_u16..3, -2_i64..6, 0_u32..300, 0_u64..90_000, 0_u64..200_000).prop_map(
            |(nr, ret, count, inside, over)| Kind::Calls {
                nr,
                args: [3, 1, 0, 0],
                ret,
                count,
                inside: Ns(inside),
                over: Ns(over),
            }
        ),
        1 => any::<bool>().prop_map(fault),
        1 => any::<bool>().prop_map(|major| Kind::FaultEnd { major }),
        1 => prop_oneof![Just(Kind::Timer), Just(Kind::TimerEnd), Just(Kind::Main)],
        1 => (any::<bool>(), stack()).prop_map(sample),
        1 => stack().prop_map(Kind::Site),
        1 => any::<bool>().prop_map(|zero| Kind::Page { addr: LiveAddr(0x7f00), zero }),
        1 => (-1_i32..5).prop_map(|fd| Kind::Fd { fd, what: NameId(1) }),
        1 => (0_u64..100).prop_map(|count| Kind::Lost { count }),
    ]
}

fn trace() -> impl Strategy<Value = Trace> {
    let event = (0_u64..300_000, 0_u16..3, tid(), kind());
    let bounds = (0_u64..500_000, 0_u64..3_000_000, any::<bool>());
    (prop::collection::vec(event, 0..60), bounds).prop_map(|(events, (start, end, blind))| {
        let mut at = 0;
        let later = |(later, cpu, task, kind)| {
            at += later;
            Event { at: Ns(at), cpu: Cpu(cpu), task, kind }
        };
        let events: Vec<Event> = events.into_iter().map(later).collect();
        let meta = Meta {
            root: Tid(1),
            start: Ns(start),
            end: Ns(end),
            cpus: 2,
            blind_cpus: if blind { vec![Cpu(1)] } else { Vec::new() },
            complete: true,
            ..Meta::default()
        };
        Trace::new(meta, symbols(), events)
    })
}

fn total(causes: &BTreeMap<Cause, Ns>) -> Ns {
    causes.values().copied().sum()
}

fn spans_tile(timeline: &Timeline) {
    for task in timeline.tasks.iter().filter(|t| t.own) {
        assert_eq!(task.spans.first().map(|s| s.start), Some(task.birth));
        for pair in task.spans.windows(2) {
            assert!(pair[0].start < pair[1].start, "{:?}", task.spans);
        }
        assert!(task.spans.last().is_some_and(|s| s.start <= task.end));
        for span in &task.spans {
            if let Run::Blocked(block) = span.run() {
                assert!(timeline.blocks[block as usize].start <= span.start);
            }
        }
    }
    for block in &timeline.blocks {
        assert!(block.start <= block.end);
    }
    for call in &timeline.calls {
        assert!(call.start <= call.end);
    }
    for held in &timeline.held {
        assert!(held.windows(2).all(|pair| pair[0].start < pair[1].start));
    }
}

fn readings_add_up(trace: &Trace, timeline: &Timeline, subject: &Subject) {
    let path = Path::walk(timeline, subject);
    let wall = subject.wall();
    assert_eq!(path.pieces.iter().map(|p| p.end - p.start).sum::<Ns>(), wall);
    let (causes, simple) = (path.causes(timeline), simple(timeline, subject));
    assert_eq!(total(&causes), wall, "{causes:?}");
    assert_eq!(total(&simple), wall, "{simple:?}");
    assert!((0.0..=1.0).contains(&difference(&causes, &simple)));
    for wait in overlaps(timeline, &path) {
        assert!(wait.busy <= wait.end - wait.start);
    }
    for team in teams(timeline, &trace.symbols, subject) {
        assert!(team.members.len() > 1 && team.members.contains(&team.straggler));
    }
    let graph = WhatIf::new(timeline, subject, trace.meta.cpus);
    assert_eq!(graph.saving(&|_, _, _| Ns::ZERO).low, Ns::ZERO);
    let all = graph.saving(&|_: TaskId, _, length| length);
    assert!(all.low <= all.high && all.high <= wall);
}

fn laws_hold(trace: &Trace) {
    let timeline = Timeline::build(trace);
    spans_tile(&timeline);
    let subject = Subject::choose(trace, &timeline, None).expect("the command");
    readings_add_up(trace, &timeline, &subject);
}

proptest! {
    #![proptest_config(random::seeded())]

    #[test]
    fn lives_and_the_wall_time_are_tiled(trace in trace()) {
        laws_hold(&trace);
    }

    #[test]
    fn lives_and_the_wall_time_are_tiled_with_odd_numbers(trace in random::trace()) {
        laws_hold(&trace);
    }

    #[test]
    fn the_reports_rows_add_up(trace in trace()) {
        let traces = [trace];
        if let Ok(report) = weigh(&Weighing { traces: &traces, ..Weighing::default() }) {
            let rows: u64 = report.ledger.iter().map(|row| row.ns).sum();
            assert_eq!(rows, report.wall_ns);
        }
    }
}
