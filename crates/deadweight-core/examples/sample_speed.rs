//! How many samples a second become findings, warm: the samples of a recording, two million times
//! over. `cargo run --release -p deadweight-core --example sample_speed -- FILE`.
//!
//! Not a test: times depend on the machine.
#![expect(clippy::print_stdout, reason = "a measurement for people")]
#![expect(clippy::disallowed_types, reason = "it measures time; the core itself has no clock")]
#![expect(clippy::disallowed_methods, reason = "the core itself reads no files")]

use deadweight_core::{Weighing, weigh};
use deadweight_trace::ids::{Cpu, StackId, Tid};
use deadweight_trace::units::Ns;
use deadweight_trace::{Event, Kind, Meta, Off, Trace};
use std::time::Instant;

const SAMPLES: u64 = 2_000_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("which trace?")?;
    let (recorded, _) = Trace::from_bytes(&std::fs::read(path)?)?;
    let stacks: Vec<StackId> = recorded
        .events()
        .filter_map(|event| match event.kind {
            Kind::Sample { kernel: false, stack, .. } if stack != StackId(0) => Some(stack),
            _ => None,
        })
        .collect();
    let task = Tid(1);
    let at = |at: u64, kind| Event { at: Ns(at), cpu: Cpu(0), task, kind };
    let sample = |(n, stack): (u64, &StackId)| {
        at(n * 1_000 + 20, Kind::Sample { kernel: false, stack: *stack, kernel_stack: StackId(0) })
    };
    let end = SAMPLES * 1_000 + 100;
    let mut events = vec![at(0, Kind::On), at(1, Kind::Main)];
    events.extend((0..SAMPLES).zip(stacks.iter().cycle()).map(sample));
    events.push(at(end, Kind::Exit));
    events.push(at(end, Kind::Off { why: Off::Dead, stack: StackId(0) }));
    let meta = Meta { root: task, end: Ns(end), cpus: 1, ..recorded.meta.clone() };
    let trace = Trace::new(meta, recorded.symbols.clone(), events);
    for _ in 0..3 {
        let begun = Instant::now();
        let report =
            weigh(&Weighing { traces: std::slice::from_ref(&trace), ..Weighing::default() })?;
        let took = begun.elapsed().as_secs_f64();
        println!(
            "{:.2} M samples/s: {SAMPLES} samples of {} stacks, {} functions of {} KiB, {} findings",
            SAMPLES as f64 / took / 1e6,
            stacks.len(),
            trace.symbols.code.len(),
            trace.symbols.code.iter().map(|c| c.bytes.len()).sum::<usize>() / 1024,
            report.findings.len()
        );
    }
    Ok(())
}
