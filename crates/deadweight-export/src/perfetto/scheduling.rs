//! Which task had each CPU, as the kernel's own events: Perfetto makes scheduling slices and thread states of them.

use super::proto::{FtraceEvent, FtraceEventBundle, SchedSwitch, SchedWaking, TracePacket};
use super::{Out, pid};
use crate::names::thread;
use deadweight_core::OneRun;
use deadweight_core::timeline::kernel_stacks::WaitsFor;
use deadweight_core::timeline::{Block, Run, WokenBy};
use deadweight_trace::ids::{Cpu, TaskId};
use deadweight_trace::units::Ns;

/// Events of one packet.
const BATCH: usize = 4096;
/// The priority of an ordinary task: others are not recorded.
const PRIORITY: i32 = 120;
/// States of the kernel's `sched_switch`.
const RUNNABLE: i64 = 0;
const SLEEPING: i64 = 1;
const UNINTERRUPTIBLE: i64 = 2;
const DEAD: i64 = 16;

pub(super) fn write(run: &OneRun<'_, '_>, out: &mut Out) {
    let mut wakes = wakes(run);
    for (cpu, held) in (0_u16..).zip(&run.timeline().held) {
        let mut events: Vec<(Ns, FtraceEvent)> = Vec::new();
        for pair in held.windows(2) {
            let (before, next) = (pair[0].task, pair[1].task);
            events.push((pair[1].start, switch(run, pair[1].start, before, next)));
        }
        if let Some(first) = held.first().filter(|first| first.task.is_some()) {
            events.insert(0, (first.start, switch(run, first.start, None, first.task)));
        }
        events.append(wakes.get_mut(usize::from(cpu)).unwrap_or(&mut Vec::new()));
        events.sort_by_key(|(at, _)| *at);
        for batch in events.chunks(BATCH) {
            let event = batch.iter().map(|(_, event)| event.clone()).collect();
            let bundle = FtraceEventBundle { cpu: Some(u32::from(cpu)), event };
            out.packet(TracePacket { ftrace_events: Some(bundle), ..TracePacket::default() });
        }
    }
}

/// Wake-ups by the CPU that they happened on.
fn wakes(run: &OneRun<'_, '_>) -> Vec<Vec<(Ns, FtraceEvent)>> {
    let mut wakes = vec![Vec::new(); run.timeline().held.len()];
    for block in &run.timeline().blocks {
        let waker = match block.woken_by {
            WokenBy::Task(by) => Some(by),
            WokenBy::Interrupt(_) => None,
            WokenBy::Nobody | WokenBy::Unseen => continue,
        };
        let on = waker.and_then(|waker| cpu_at(run, waker, block.end)).unwrap_or(Cpu(0));
        if let Some(wakes) = wakes.get_mut(usize::from(on.0)) {
            wakes.push((block.end, waking(run, block, waker)));
        }
    }
    wakes
}

/// The CPU that a task had.
fn cpu_at(run: &OneRun<'_, '_>, task: TaskId, at: Ns) -> Option<Cpu> {
    let of = run.timeline().task(task);
    match of.spans.get(of.span_at(at)?)?.run() {
        Run::OnCpu(cpu) => Some(cpu),
        _ => None,
    }
}

/// The kernel's id and name of a task; none is the idle task.
fn named(run: &OneRun<'_, '_>, task: Option<TaskId>) -> (i32, String) {
    task.map_or((0, "swapper".to_owned()), |task| {
        (pid(run.timeline().task(task).tid.0), thread(run, task))
    })
}

fn switch(
    run: &OneRun<'_, '_>,
    at: Ns,
    before: Option<TaskId>,
    next: Option<TaskId>,
) -> FtraceEvent {
    let (prev_pid, prev_comm) = named(run, before);
    let (next_pid, next_comm) = named(run, next);
    let state = before.map_or(RUNNABLE, |task| state(run, task, at));
    let switch = SchedSwitch {
        prev_comm: Some(prev_comm),
        prev_pid: Some(prev_pid),
        prev_prio: Some(PRIORITY),
        prev_state: Some(state),
        next_comm: Some(next_comm),
        next_pid: Some(next_pid),
        next_prio: Some(PRIORITY),
    };
    FtraceEvent {
        timestamp: Some(at.0),
        pid: u32::try_from(prev_pid).ok(),
        sched_switch: Some(switch),
        sched_waking: None,
    }
}

/// The state that a task left its CPU in. Of tasks of other programs it is not recorded: they count as asleep.
fn state(run: &OneRun<'_, '_>, task: TaskId, at: Ns) -> i64 {
    let of = run.timeline().task(task);
    let Some(span) = of.span_at(at).and_then(|index| of.spans.get(index)) else {
        return if of.died && at >= of.end { DEAD } else { SLEEPING };
    };
    match span.run() {
        Run::Blocked(block) => match run.timeline().blocks[block as usize].waits_for {
            WaitsFor::Disk | WaitsFor::KernelLock => UNINTERRUPTIBLE,
            _ => SLEEPING,
        },
        Run::OnCpu(_) | Run::Runnable | Run::Unrecorded => RUNNABLE,
    }
}

fn waking(run: &OneRun<'_, '_>, block: &Block, waker: Option<TaskId>) -> FtraceEvent {
    let (wakee, comm) = named(run, Some(block.task));
    let waking = SchedWaking {
        comm: Some(comm),
        pid: Some(wakee),
        prio: Some(PRIORITY),
        success: Some(1),
        target_cpu: Some(0),
    };
    FtraceEvent {
        timestamp: Some(block.end.0),
        pid: u32::try_from(named(run, waker).0).ok(),
        sched_switch: None,
        sched_waking: Some(waking),
    }
}
