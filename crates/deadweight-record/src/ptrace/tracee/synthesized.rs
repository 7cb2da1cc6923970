//! What happened between two stops and had none of its own: samples, page faults, calls that were run
//! past. Told when the task is stopped, and spread over the time that it was on a CPU.

use super::Tracee;
use crate::ptrace::event::{EventKind, TaskEvent, UserSnapshot};
use crate::ptrace::first_touch::FirstTouch;
use crate::ptrace::high_rate::SampleHit;

/// Page faults are counted after so much time in user code, in ns.
const FAULT_WINDOW: u64 = 250_000;

/// With more between two of them, in ns, few interruptions are late enough to find the next.
const BUSY_INTERVAL: u64 = 100_000;

/// And after so many turns on a CPU.
const MAX_SPANS: usize = 64;

impl Tracee {
    /// What was found when it stopped: it belongs to the time before.
    pub(in crate::ptrace) fn emit_sample(
        &mut self,
        sample: EventKind,
        events: &mut Vec<TaskEvent>,
    ) {
        self.unsampled = 0;
        let (process, task) = (self.process, self.task);
        if self.cursor > self.on_cpu_since {
            events.push(TaskEvent { at: self.cursor - 1, process, task, kind: sample });
        }
    }

    /// Whether it enters the kernel so often that a late interruption finds it there.
    pub(in crate::ptrace) fn is_busy(&self) -> bool {
        self.high_rate.free_until().is_some() || self.fault_interval < BUSY_INTERVAL
    }

    /// It was let run without stops, and is stopped in its own code or in this call: tells the calls
    /// that it made, of which the kernel knows how much of the time they took.
    pub(in crate::ptrace) fn emit_calls(
        &mut self,
        inside: Option<u16>,
        mut site: Option<UserSnapshot>,
        events: &mut Vec<TaskEvent>,
    ) {
        let length = self.on_cpu_spans.iter().map(|(start, end)| end - start).sum();
        let counted = self.sched.io_calls();
        let hit = SampleHit { in_call: inside.is_some(), local: self.local_interrupt };
        let Some(mut estimate) = self.high_rate.estimate(hit, counted, self.user_time, length)
        else {
            return;
        };
        let (process, task) = (self.process, self.task);
        let mut emit = |at, kind| events.push(TaskEvent { at, process, task, kind });
        let ends = estimate.ends(&self.on_cpu_spans);
        for (index, end) in ends.iter().enumerate() {
            let last = index + 1 == ends.len();
            // A stack that was taken in a call belongs to the last one.
            let Some(call) = estimate.calls.next(inside.filter(|_| last)) else { break };
            emit(end - estimate.in_call, EventKind::Call { nr: call.nr, args: call.args });
            if let Some(user) = site.take_if(|_| last && inside == Some(call.nr)) {
                emit(end - estimate.in_call, EventKind::CallSite(user));
            }
            emit(*end, EventKind::CallReturn(call.ret));
        }
    }

    /// Tells the page faults since they were counted last, one of which takes about `cost` ns: how many
    /// is known, and not when and where. It stands stopped after a time in its own code.
    pub(in crate::ptrace) fn emit_faults(
        &mut self,
        cost: u64,
        first_touch: Option<&mut FirstTouch>,
        user: Option<&UserSnapshot>,
        events: &mut Vec<TaskEvent>,
    ) {
        if self.fault_window < FAULT_WINDOW && self.fault_spans.len() < MAX_SPANS {
            return;
        }
        self.fault_window = 0;
        let on_cpu_spans = std::mem::take(&mut self.fault_spans);
        let Some(all) = self.sched.minor_faults() else { return };
        let new = all.saturating_sub(std::mem::replace(&mut self.minor_faults, all));
        let length: u64 = on_cpu_spans.iter().map(|(start, end)| end - start).sum();
        self.fault_interval = length / new.max(1);
        if new == 0 || new >= length / 2 {
            return;
        }
        let each = length / new;
        let took = cost.min(each * 9 / 10);
        let mut addresses =
            first_touch.map_or(Vec::new(), |f| f.newly_touched(self.process, new)).into_iter();
        let (process, task) = (self.process, self.task);
        let mut last = None;
        for (start, to) in &on_cpu_spans {
            let mut at = start + (each - took) / 2;
            while at + took + 1 < *to {
                let addr = addresses.next().unwrap_or(0);
                let fault = EventKind::Fault { addr, ip: 0 };
                events.push(TaskEvent { at, process, task, kind: fault });
                let end = EventKind::FaultEnd { major: false };
                events.push(TaskEvent { at: at + took, process, task, kind: end });
                last = Some(at);
                at += each;
            }
        }
        // Where the faults are much of the time, the sample was taken where they are.
        if let (Some(at), Some(user)) = (last.filter(|_| took * 4 >= each), user) {
            let end = events.pop();
            events.push(TaskEvent { at, process, task, kind: EventKind::CallSite(user.clone()) });
            events.extend(end);
        }
    }
}
