//! Prints the timeline and the path of a recording, to investigate surprising reports: both readings, and
//! the warnings.
//!
//! `cargo run --release --example readings FILE [NAME]`. Not the report: that is `deadweight report`.
#![expect(clippy::print_stdout, reason = "an example that prints")]
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the core itself does none"
)]

use deadweight_core::path::causes::{Cause, Doing, Ended, Held, difference};
use deadweight_core::path::projection::simple;
use deadweight_core::path::whatif::WhatIf;
use deadweight_core::path::{Path, Subject};
use deadweight_core::timeline::Timeline;
use deadweight_trace::units::Ns;
use deadweight_trace::{Trace, syscall};
use std::collections::BTreeMap;

fn words(trace: &Trace, cause: &Cause) -> String {
    let name = |id| trace.symbols.name(id).to_owned();
    match *cause {
        Cause::Work(who, Doing::Syscall(nr)) => {
            format!("{} in {}", name(who), syscall::name(trace.meta.arch, nr).unwrap_or("?"))
        }
        Cause::Work(who, doing) => format!("{} {doing:?}", name(who)),
        Cause::NoCpu(Held::Outside(who)) => format!("no cpu, held by {}", name(who)),
        Cause::NoCpu(held) => format!("no cpu, {held:?}"),
        Cause::Wait(who, waits, Ended::Outside(by)) => {
            format!("{} waits for {waits:?}, for {}", name(who), name(by))
        }
        Cause::Wait(who, waits, ended) => format!("{} waits for {waits:?}, {ended:?}", name(who)),
        other => format!("{other:?}"),
    }
}

fn print(trace: &Trace, title: &str, causes: &BTreeMap<Cause, Ns>) {
    let wall: Ns = causes.values().copied().sum();
    let mut rows: Vec<_> = causes.iter().collect();
    rows.sort_by_key(|(_, ns)| std::cmp::Reverse(**ns));
    println!("{title}:");
    for (cause, ns) in rows.into_iter().take(12) {
        let share = 100.0 * ns.share_of(wall);
        println!("  {share:5.1} % {:12} ns  {}", ns.0, words(trace, cause));
    }
}

/// The longest waits on the path, with who waited, who ended it, and where.
fn print_waits(trace: &Trace, timeline: &Timeline, path: &Path) {
    let mut waits: Vec<_> = path.waits(timeline).collect();
    waits.sort_by_key(|(from, to, ..)| std::cmp::Reverse(*to - *from));
    println!("longest waits:");
    for (from, to, task, block) in waits.into_iter().take(12) {
        let block = timeline.blocks[block as usize];
        let stack: Vec<&str> = trace.symbols.functions(block.site).take(4).collect();
        println!(
            "  {:>12} to {:>12} ns  tid {} {:?} {:?} {}",
            from.0,
            to.0,
            timeline.task(task).tid.0,
            block.waits_for,
            block.woken_by,
            stack.join(" < ")
        );
    }
    println!("longest joins:");
    let mut joins = path.joins(timeline);
    joins.sort_by_key(|join| std::cmp::Reverse(join.end - join.start));
    for join in joins.into_iter().take(12) {
        let block = timeline.blocks[join.block as usize];
        let stack: Vec<&str> = trace.symbols.functions(block.site).take(4).collect();
        println!(
            "  {:>12} to {:>12} ns  tid {} {:?}, ended by tid {} {}",
            join.start.0,
            join.end.0,
            timeline.task(block.task).tid.0,
            block.waits_for,
            timeline.task(join.waker).tid.0,
            stack.join(" < ")
        );
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let bytes = std::fs::read(args.next().ok_or("which recording?")?)?;
    let of = args.next();
    let (trace, warnings) = Trace::from_bytes(&bytes)?;
    let begun = std::time::Instant::now();
    let timeline = Timeline::build(&trace);
    let built = begun.elapsed();
    let subject = Subject::choose(&trace, &timeline, of.as_deref())?;
    let path = Path::walk(&timeline, &subject);
    let (own, outside) = timeline.tasks.iter().partition::<Vec<_>, _>(|t| t.own);
    println!(
        "{} events, {} own tasks, {} outsiders, {} spans, {} calls, {} blocks, {} pieces, {} joins",
        trace.len(),
        own.len(),
        outside.len(),
        own.iter().map(|t| t.spans.len()).sum::<usize>(),
        timeline.calls.len(),
        timeline.blocks.len(),
        path.pieces.len(),
        path.joins(&timeline).len()
    );
    println!("timeline in {built:?}, all in {:?}", begun.elapsed());
    for warning in warnings.iter().chain(&trace.meta.warnings).chain(&timeline.warnings) {
        println!("! {warning}");
    }
    let cpu: Ns = own.iter().map(|t| t.on_cpu_between(subject.start, Ns::MAX)).sum();
    println!("wall {}, on cpu {cpu}, rusage {:?}", subject.wall(), trace.meta.rusage);
    let causes = path.causes(&timeline);
    print(&trace, "path", &causes);
    print_waits(&trace, &timeline, &path);
    let simple = simple(&timeline, &subject);
    print(&trace, "simple", &simple);
    let graph = WhatIf::new(&timeline, &subject, trace.meta.cpus);
    println!("difference {:.2}, replay off by {:.3}", difference(&causes, &simple), graph.error());
    Ok(())
}
