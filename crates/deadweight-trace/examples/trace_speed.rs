//! How fast events are encoded, written, read and walked, and how much room they take, on a
//! stream as a program makes it that reads byte by byte. Run with
//! `cargo run --release -p deadweight-trace --example trace_speed`.
//!
//! Not a test: times depend on the machine.
#![expect(clippy::print_stdout, reason = "a measurement for people")]
#![expect(clippy::disallowed_types, reason = "it measures time; the core itself has no clock")]

use deadweight_trace::ids::{Cpu, StackId, Tid};
use deadweight_trace::symbols::{Image, Location, Symbols};
use deadweight_trace::units::{FileAddr, Ns};
use deadweight_trace::{Event, Events, Kind, Meta, Off, Trace};
use std::time::Instant;

/// Some seconds of byte-by-byte reading.
const EVENTS: usize = 10_000_000;

fn main() {
    let symbols = symbols();
    let start = Instant::now();
    let mut events = Events::default();
    let mut at = 0;
    let mut read = 0;
    while events.len() < EVENTS {
        read += 1;
        at = reads(&mut events, at, read);
    }
    say("encode", events.len(), start);
    let (count, size) = (events.len(), events.size());
    println!("{:>12} {:.2} bytes an event", "in memory", size as f64 / count as f64);

    let meta = Meta { complete: true, cpus: 2, end: Ns(at), ..Meta::default() };
    let trace = Trace::from_encoded(meta, symbols, events);
    let start = Instant::now();
    let bytes = trace.to_bytes();
    say("write", count, start);
    println!("{:>12} {:.2} bytes an event", "in a file", bytes.len() as f64 / count as f64);
    let start = Instant::now();
    let (again, warnings) = Trace::from_bytes(&bytes).expect("own bytes");
    say("read", count, start);
    assert!(warnings.is_empty());
    let start = Instant::now();
    let sum = again.events().fold(0, |sum: u64, e| sum ^ e.at.0 ^ u64::from(e.task.0));
    say("walk", count, start);
    assert!(sum > 0);
}

fn say(what: &str, count: usize, start: Instant) {
    let took = start.elapsed().as_secs_f64();
    println!("{what:>12} {:.3} s, {:.1} million events/s", took, count as f64 / took / 1e6);
}

/// Some hundred stacks to choose from.
fn symbols() -> Symbols {
    let mut symbols = Symbols::default();
    let path = symbols.intern("[kernel]");
    symbols.images.push(Image { path, ..Image::default() });
    for addr in 1..500 {
        let addr = FileAddr(0xffff_ffff_8100_0000 + addr * 64);
        let location = symbols.intern_location(Location { addr, ..Location::default() });
        symbols.intern_stack(vec![location; 12]);
    }
    symbols
}

/// A read of one byte by one of two tasks on two CPUs; now and then a sample, a tick, a switch.
fn reads(events: &mut Events, mut at: u64, read: u64) -> u64 {
    let (task, cpu) = if read % 7 < 4 { (Tid(4711), Cpu(0)) } else { (Tid(4712), Cpu(1)) };
    let stack = StackId(u32::try_from(read % 400).expect("small"));
    let mut push = |step: u64, kind| {
        at += step;
        events.push(Event { at: Ns(at), cpu, task, kind });
    };
    push(180 + read % 97, Kind::Syscall { nr: 0, args: [read % 2, 1, 0, 0] });
    push(215 + read % 31, Kind::Back { ret: 1 });
    if read.is_multiple_of(500) {
        push(300, Kind::Sample { kernel: true, stack, kernel_stack: stack });
    }
    if read.is_multiple_of(1000) {
        push(10, Kind::Off { why: Off::Blocked, stack });
        push(40_000, Kind::Wake { waker: Tid(99), irq: false, stack, inferred: false });
        push(2_000, Kind::On);
    }
    at
}
