//! What happened between two stops and had none of its own: samples, page faults, calls that were run
//! past. Told when the task is stopped, and spread over the time that it was on a CPU.

use super::Tracee;
use crate::ptrace::dense::Found;
use crate::ptrace::fresh::Fresh;
use crate::ptrace::note::{Note, User, What};

/// Page faults are counted after so much time in user code, in ns.
const COUNT_EVERY: u64 = 250_000;

/// With more between two of them, in ns, few interruptions are late enough to find the next.
const FAR_APART: u64 = 100_000;

/// And after so many turns on a CPU.
const STRETCHES: usize = 64;

impl Tracee {
    /// What was found when it stopped: it belongs to the time before.
    pub(in crate::ptrace) fn sampled(&mut self, sample: What, notes: &mut Vec<Note>) {
        self.unsampled = 0;
        let (process, task) = (self.process, self.task);
        if self.cursor > self.began {
            notes.push(Note { at: self.cursor - 1, process, task, what: sample });
        }
    }

    /// Whether it enters the kernel so often that a late interruption finds it there.
    pub(in crate::ptrace) fn is_busy(&self) -> bool {
        self.dense.until().is_some() || self.between_faults < FAR_APART
    }

    /// It was let run without stops, and is stopped in its own code or in this call: tells the calls
    /// that it made, of which the kernel knows how much of the time they took.
    pub(in crate::ptrace) fn tell_calls(
        &mut self,
        inside: Option<u16>,
        mut site: Option<User>,
        notes: &mut Vec<Note>,
    ) {
        let length = self.stretches.iter().map(|(from, to)| to - from).sum();
        let counted = self.scheduled.transfers();
        let found = Found { in_call: inside.is_some(), at_once: self.met };
        let Some(mut made) = self.dense.made(found, counted, self.user_time, length) else {
            return;
        };
        let (process, task) = (self.process, self.task);
        let mut note = |at, what| notes.push(Note { at, process, task, what });
        let ends = made.ends(&self.stretches);
        for (index, end) in ends.iter().enumerate() {
            let last = index + 1 == ends.len();
            // A stack that was taken in a call belongs to the last one.
            let Some(call) = made.calls.next(inside.filter(|_| last)) else { break };
            note(end - made.inside, What::Call { nr: call.nr, args: call.args });
            if let Some(user) = site.take_if(|_| last && inside == Some(call.nr)) {
                note(end - made.inside, What::Site(user));
            }
            note(*end, What::Back(call.ret));
        }
    }

    /// Tells the page faults since they were counted last, one of which takes about `cost` ns: how many
    /// is known, and not when and where. It stands stopped after a time in its own code.
    pub(in crate::ptrace) fn count_faults(
        &mut self,
        cost: u64,
        fresh: Option<&mut Fresh>,
        user: Option<&User>,
        notes: &mut Vec<Note>,
    ) {
        if self.uncounted < COUNT_EVERY && self.uncounted_in.len() < STRETCHES {
            return;
        }
        self.uncounted = 0;
        let stretches = std::mem::take(&mut self.uncounted_in);
        let Some(all) = self.scheduled.faults() else { return };
        let new = all.saturating_sub(std::mem::replace(&mut self.faults, all));
        let length: u64 = stretches.iter().map(|(from, to)| to - from).sum();
        self.between_faults = length / new.max(1);
        if new == 0 || new >= length / 2 {
            return;
        }
        let each = length / new;
        let took = cost.min(each * 9 / 10);
        let mut where_ = fresh.map_or(Vec::new(), |f| f.touched(self.process, new)).into_iter();
        let (process, task) = (self.process, self.task);
        let mut last = None;
        for (from, to) in &stretches {
            let mut at = from + (each - took) / 2;
            while at + took + 1 < *to {
                let addr = where_.next().unwrap_or(0);
                let fault = What::Fault { addr, ip: 0 };
                notes.push(Note { at, process, task, what: fault });
                let end = What::FaultEnd { major: false };
                notes.push(Note { at: at + took, process, task, what: end });
                last = Some(at);
                at += each;
            }
        }
        // Where the faults are much of the time, the sample was taken where they are.
        if let (Some(at), Some(user)) = (last.filter(|_| took * 4 >= each), user) {
            let end = notes.pop();
            notes.push(Note { at, process, task, what: What::Site(user.clone()) });
            notes.extend(end);
        }
    }
}
