//! How fast ten million events are analysed, stage by stage, and how much memory that takes:
//! a program that reads byte by byte, one of a thousand threads, one of a hundred thousand forks.
//! Run with `cargo run --release -p deadweight-core --example analysis_speed`; behind `--`, the file of a recording to
//! analyse instead.
//!
//! Not a test: times depend on the machine.
#![expect(clippy::print_stdout, reason = "a measurement for people")]
#![expect(clippy::disallowed_types, reason = "it measures time; the core itself has no clock")]
#![expect(clippy::disallowed_methods, reason = "it reads its own memory use")]

use deadweight_core::path::causes::difference;
use deadweight_core::path::overlap::overlaps;
use deadweight_core::path::projection::simple;
use deadweight_core::path::whatif::WhatIf;
use deadweight_core::path::{Path, Subject};
use deadweight_core::timeline::Timeline;
use deadweight_core::{Weighing, weigh};
use deadweight_trace::ids::{Cpu, StackId, Tid};
use deadweight_trace::symbols::Symbols;
use deadweight_trace::units::Ns;
use deadweight_trace::{Event, Events, Kind, Meta, Off, Trace};
use std::time::Instant;

fn main() {
    let argument = std::env::args().nth(1).unwrap_or_else(|| "10000000".to_owned());
    let Ok(wanted) = argument.parse() else {
        return analyse_file(&argument);
    };
    analyse("reads", &reads(wanted));
    analyse("threads", &threads(1000, 200));
    analyse("forks", &forks(100_000));
}

/// The same of a recording.
fn analyse_file(path: &str) {
    let begun = Instant::now();
    let bytes = std::fs::read(path).unwrap_or_default();
    match Trace::from_bytes(&bytes) {
        Ok((trace, _)) => {
            drop(bytes);
            say("read", trace.len(), begun);
            analyse(path, &trace);
        }
        Err(error) => println!("{path}: {error}"),
    }
}

fn analyse(what: &str, trace: &Trace) {
    println!("{what}: {} events, {} MB before", trace.len(), memory());
    let begun = Instant::now();
    let timeline = Timeline::build(trace);
    let mut stage = say("timeline", trace.len(), begun);
    let Ok(subject) = Subject::choose(trace, &timeline, None) else { return };
    let path = Path::walk(&timeline, &subject);
    stage = say("path", trace.len(), stage);
    let causes = path.causes(&timeline);
    stage = say("causes", trace.len(), stage);
    let second = simple(&timeline, &subject);
    stage = say("simple", trace.len(), stage);
    let waits = overlaps(&timeline, &path).len();
    stage = say("overlaps", trace.len(), stage);
    let graph = WhatIf::new(&timeline, &subject, 2);
    stage = say("graph", trace.len(), stage);
    let saved = graph.saving(&|_, _, length| Ns(length.0 / 2));
    say("what-if", trace.len(), stage);
    println!(
        "  {} pieces, {waits} waits, readings differ by {:.2}, replay off by {:.3}, half saves {}",
        path.pieces.len(),
        difference(&causes, &second),
        graph.error(),
        saved.low
    );
    drop((path, timeline));
    let begun = Instant::now();
    let report = weigh(&Weighing { traces: std::slice::from_ref(trace), ..Weighing::default() });
    say("weigh", trace.len(), begun);
    println!("  {} rows, {} MB at most", report.map_or(0, |r| r.ledger.len()), memory());
}

fn say(what: &str, count: usize, start: Instant) -> Instant {
    let took = start.elapsed().as_secs_f64();
    println!("  {what:>10} {:.3} s, {:.1} million events/s", took, count as f64 / took / 1e6);
    Instant::now()
}

/// The largest resident set so far, in MB.
fn memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    line.and_then(|l| l.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0) / 1024
}

struct Recording {
    events: Events,
    at: u64,
}

impl Recording {
    fn new() -> Self {
        Self { events: Events::default(), at: 0 }
    }

    fn push(&mut self, step: u64, cpu: u16, task: u32, kind: Kind) {
        self.at += step;
        self.events.push(Event { at: Ns(self.at), cpu: Cpu(cpu), task: Tid(task), kind });
    }

    fn wake(&mut self, cpu: u16, task: u32, waker: u32) {
        let kind = Kind::Wake { waker: Tid(waker), irq: false, stack: StackId(0), inferred: false };
        self.push(100, cpu, task, kind);
    }

    fn off(&mut self, cpu: u16, task: u32, why: Off) {
        self.push(100, cpu, task, Kind::Off { why, stack: StackId(0) });
    }

    fn done(self) -> Trace {
        let end = Ns(self.at);
        let meta = Meta { root: Tid(1), end, cpus: 2, complete: true, ..Meta::default() };
        Trace::from_encoded(meta, Symbols::default(), self.events)
    }
}

/// One task that reads a byte at a time, and now and then waits for its producer.
fn reads(events: usize) -> Trace {
    let mut r = Recording::new();
    r.push(0, 0, 1, Kind::On);
    r.push(0, 0, 1, Kind::Fork { child: Tid(2), process: Tid(2) });
    r.push(0, 1, 2, Kind::On);
    let mut read = 0_u64;
    while r.events.len() < events {
        read += 1;
        r.push(180 + read % 97, 0, 1, Kind::Syscall { nr: 0, args: [0, 1, 0, 0] });
        if read.is_multiple_of(1000) {
            r.off(0, 1, Off::Blocked);
            r.push(40_000, 1, 2, Kind::Syscall { nr: 1, args: [1, 4096, 0, 0] });
            r.wake(1, 1, 2);
            r.push(2_000, 0, 1, Kind::On);
            r.push(100, 1, 2, Kind::Back { ret: 4096 });
        }
        r.push(215 + read % 31, 0, 1, Kind::Back { ret: 1 });
        if read.is_multiple_of(500) {
            let (stack, kernel_stack) = (StackId(0), StackId(0));
            r.push(300, 0, 1, Kind::Sample { kernel: true, stack, kernel_stack });
        }
    }
    r.done()
}

/// Many threads that pass a lock around, all alive at once.
fn threads(count: u32, rounds: u32) -> Trace {
    let mut r = Recording::new();
    r.push(0, 0, 1, Kind::On);
    for thread in 2..count + 2 {
        r.push(1000, 0, 1, Kind::Fork { child: Tid(thread), process: Tid(1) });
    }
    r.off(0, 1, Off::Blocked);
    for _ in 0..rounds {
        for thread in 2..count + 2 {
            r.push(100, 0, thread, Kind::On);
            let next = if thread == count + 1 { 2 } else { thread + 1 };
            r.push(5000, 0, thread, Kind::Syscall { nr: 202, args: [64, 1, 1, 0] });
            r.wake(0, next, thread);
            r.push(100, 0, thread, Kind::Back { ret: 1 });
            r.off(0, thread, Off::Blocked);
        }
    }
    r.wake(0, 1, 2);
    r.push(100, 0, 1, Kind::On);
    r.push(100, 0, 1, Kind::Exit);
    r.off(0, 1, Off::Dead);
    r.done()
}

/// A shell that starts one short child after another.
fn forks(count: u32) -> Trace {
    let mut r = Recording::new();
    r.push(0, 0, 1, Kind::On);
    for number in 0..count {
        let child = 2 + number % 30_000;
        r.push(1000, 0, 1, Kind::Fork { child: Tid(child), process: Tid(child) });
        r.push(100, 0, 1, Kind::Syscall { nr: 61, args: [0; 4] });
        r.off(0, 1, Off::Blocked);
        r.push(10, 0, child, Kind::On);
        r.push(9000, 0, child, Kind::Syscall { nr: 231, args: [0; 4] });
        r.push(100, 0, child, Kind::Exit);
        r.wake(0, 1, child);
        r.off(0, child, Off::Dead);
        r.push(10, 0, 1, Kind::On);
        r.push(10, 0, 1, Kind::Back { ret: i64::from(child) });
    }
    r.push(100, 0, 1, Kind::Exit);
    r.off(0, 1, Off::Dead);
    r.done()
}
