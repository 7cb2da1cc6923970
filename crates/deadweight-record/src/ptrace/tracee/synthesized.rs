//! Events that had no stop of their own: samples, page faults, and calls made while the task ran
//! without stops at system calls (a free run, see `high_rate`). They are synthesized at the next
//! stop, and spread over the task's time on a CPU.
//!
//! Does not account CPU time; see the parent.

use super::Tracee;
use crate::ptrace::event::{EventKind, TaskEvent, UserSnapshot};
use crate::ptrace::first_touch::FirstTouch;
use crate::ptrace::high_rate::SampleHit;

/// Page faults are counted after this much user time, in ns, ...
const FAULT_WINDOW: u64 = 250_000;

/// ... or after this many spans on a CPU.
const MAX_SPANS: usize = 64;

/// A task whose page faults are closer together, in ns, is busy with them: an interruption that is meant for its own
/// code often comes in the next fault.
const BUSY_INTERVAL: u64 = 100_000;

impl Tracee {
    /// The sample taken at a stop. It belongs to the time before.
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

    /// Whether it enters the kernel so often that samples skid into it.
    pub(in crate::ptrace) fn is_busy(&self) -> bool {
        self.high_rate.free_until().is_some() || self.fault_interval < BUSY_INTERVAL
    }

    /// Emits the calls of a free run. The task is stopped in user code, or in the call `in_call`.
    pub(in crate::ptrace) fn emit_calls(
        &mut self,
        in_call: Option<u16>,
        mut call_site: Option<UserSnapshot>,
        events: &mut Vec<TaskEvent>,
    ) {
        let length = self.on_cpu_spans.iter().map(|(start, end)| end - start).sum();
        let counted = self.sched.io_calls();
        let hit = SampleHit { in_call: in_call.is_some(), local: self.local_interrupt };
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
            let Some(call) = estimate.calls.next(in_call.filter(|_| last)) else { break };
            emit(end - estimate.in_call, EventKind::Call { nr: call.nr, args: call.args });
            if let Some(user) = call_site.take_if(|_| last && in_call == Some(call.nr)) {
                emit(end - estimate.in_call, EventKind::CallSite(user));
            }
            emit(*end, EventKind::CallReturn(call.ret));
        }
    }

    /// Emits the page faults since they were last counted. One takes about `cost` ns. Their number
    /// is known, but not their times and call sites. The task is stopped after running user code.
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
        let spans = std::mem::take(&mut self.fault_spans);
        let Some(all) = self.sched.minor_faults() else { return };
        let new = all.saturating_sub(std::mem::replace(&mut self.minor_faults, all));
        let length: u64 = spans.iter().map(|(start, end)| end - start).sum();
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
        for (start, end) in &spans {
            let mut at = start + (each - took) / 2;
            while at + took + 1 < *end {
                let addr = addresses.next().unwrap_or(0);
                let fault = EventKind::Fault { addr, ip: 0 };
                events.push(TaskEvent { at, process, task, kind: fault });
                let fault_end = EventKind::FaultEnd { major: false };
                events.push(TaskEvent { at: at + took, process, task, kind: fault_end });
                last = Some(at);
                at += each;
            }
        }
        // Where faults take much of the time, the sample was taken at them.
        if let (Some(at), Some(user)) = (last.filter(|_| took * 4 >= each), user) {
            let last_end = events.pop();
            events.push(TaskEvent { at, process, task, kind: EventKind::CallSite(user.clone()) });
            events.extend(last_end);
        }
    }
}
