//! Calls, page faults and waits as slices of their thread's track; wake-ups as flows between two instants.

use super::proto::{INSTANT, SLICE_BEGIN, TrackEvent};
use super::{Out, end, text, track};
use crate::names::{plain, thread};
use deadweight_core::OneRun;
use deadweight_core::timeline::{Block, Run, Task, Within, WokenBy};
use deadweight_trace::ids::TaskId;
use deadweight_trace::syscall;
use deadweight_trace::units::Ns;
use std::cmp::Reverse;

/// A slice before it is written.
struct Slice {
    start: Ns,
    end: Ns,
    event: TrackEvent,
}

/// The slices of a task, in the order in which tracks want them: each begins after its parent and ends before it.
pub(super) fn write(run: &OneRun<'_, '_>, task: TaskId, out: &mut Out) {
    let mut slices = of_task(run, task);
    slices.sort_by_key(|slice| (slice.start, Reverse(slice.end)));
    let track = track(task);
    let mut open: Vec<Ns> = Vec::new();
    for slice in slices {
        while open.last().is_some_and(|ends| *ends <= slice.start) {
            out.event(open.pop().unwrap_or_default().0, end(track));
        }
        // What a foreign recording lets overlap ends with what it began in.
        open.push(open.last().map_or(slice.end, |parent| slice.end.min(*parent)));
        out.event(slice.start.0, slice.event);
    }
    while let Some(ends) = open.pop() {
        out.event(ends.0, end(track));
    }
}

fn of_task(run: &OneRun<'_, '_>, task: TaskId) -> Vec<Slice> {
    let of = run.timeline().task(task);
    let mut slices = Vec::new();
    let (mut call, mut fault) = (None, None);
    for (index, span) in of.spans.iter().enumerate() {
        let (start, end) = (span.start, of.span_end(index));
        match span.within() {
            Within::Syscall(id) if call != Some(id) => {
                call = Some(id);
                let of = &run.timeline().calls[id.index()];
                let name = syscall::name(run.trace().meta.arch, of.nr).unwrap_or("system call");
                let mut event = slice(task, "call", name);
                event
                    .debug_annotations
                    .extend(of.ret().map(|ret| text("result", &ret.to_string())));
                if of.times() > 1 {
                    let times = text("calls, counted together", &of.times().to_string());
                    event.debug_annotations.push(times);
                }
                slices.push(Slice { start: of.start, end: of.end, event });
            }
            Within::Fault(id) => {
                // The spans of a fault follow each other, with waits between them.
                match slices.iter_mut().rev().find(|_| fault == Some(id)) {
                    Some(Slice { end: ends, event, .. }) if is_fault(event) => *ends = end,
                    _ => {
                        slices.push(Slice { start, end, event: slice(task, "fault", "page fault") })
                    }
                }
                fault = Some(id);
            }
            _ => {}
        }
        if let Run::Blocked(block) = span.run() {
            let block = &run.timeline().blocks[block as usize];
            slices.push(Slice { start: block.start, end: block.end, event: wait(run, block) });
        }
    }
    slices.retain(|slice| slice.start < slice.end);
    slices
}

fn is_fault(event: &TrackEvent) -> bool {
    event.categories.first().is_some_and(|category| category == "fault")
}

fn slice(task: TaskId, category: &str, name: &str) -> TrackEvent {
    TrackEvent {
        track_uuid: Some(track(task)),
        r#type: Some(SLICE_BEGIN),
        name: Some(plain(name).into_owned()),
        categories: vec![category.to_owned()],
        ..TrackEvent::default()
    }
}

fn wait(run: &OneRun<'_, '_>, block: &Block) -> TrackEvent {
    let mut event = slice(block.task, "wait", &format!("waits: {}", run.waits_for(block)));
    let waker = match block.woken_by {
        WokenBy::Task(by) if block.inferred => format!("{} (inferred)", thread(run, by)),
        WokenBy::Task(by) => thread(run, by),
        WokenBy::Interrupt(_) => "an interrupt".to_owned(),
        WokenBy::Nobody => "nothing".to_owned(),
        WokenBy::Unseen => "not seen".to_owned(),
    };
    event.debug_annotations.push(text("woken by", &waker));
    event
}

/// When a task had a CPU again after a wait.
fn again(of: &Task, block: &Block) -> Ns {
    let from = of.span_at(block.end).unwrap_or(of.spans.len());
    let spans = of.spans.iter().skip(from);
    let on = spans.take_while(|span| !matches!(span.run(), Run::Blocked(_)));
    on.into_iter()
        .find(|span| matches!(span.run(), Run::OnCpu(_)))
        .map_or(block.end, |span| span.start.max(block.end))
}

/// An arrow from each waker, when it woke a task, to that task, when it had a CPU again.
pub(super) fn write_flows(run: &OneRun<'_, '_>, out: &mut Out) {
    for (flow, block) in (1..).zip(&run.timeline().blocks) {
        let WokenBy::Task(by) = block.woken_by else { continue };
        let instant = |on, name: String| TrackEvent {
            track_uuid: Some(track(on)),
            r#type: Some(INSTANT),
            name: Some(name),
            categories: vec!["wake".to_owned()],
            ..TrackEvent::default()
        };
        let mut wakes = instant(by, format!("wakes {}", thread(run, block.task)));
        wakes.flow_ids.push(flow);
        out.event(block.end.0, wakes);
        let mut woken = instant(block.task, format!("woken by {}", thread(run, by)));
        woken.terminating_flow_ids.push(flow);
        out.event(again(run.timeline().task(block.task), block).0, woken);
    }
}
