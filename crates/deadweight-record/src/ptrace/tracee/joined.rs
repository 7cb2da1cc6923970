//! A task that ran before it was traced: how it stands, and what it does until it stops for the first time.

use super::{Doing, Tracee};
use crate::ptrace::note::{Note, What};
use crate::ptrace::schedstat::Counts;
use deadweight_trace::Off;

impl Tracee {
    /// How it stands when it is joined: on a CPU, or since some time in a call that waits.
    pub(in crate::ptrace) fn join(&mut self, call: Option<Doing>, notes: &mut Vec<Note>) {
        self.begin(self.cursor, notes);
        if let Some(Doing::Call { nr, args }) = call {
            self.note(self.cursor, What::Call { nr, args }, notes);
            self.note(self.cursor, What::Off(Off::Blocked), notes);
            self.doing = Doing::Call { nr, args };
            (self.on, self.parked) = (false, true);
        } else {
            // It is past its exec.
            self.note(self.cursor, What::Back(0), notes);
        }
    }

    /// It is not told of until it is on a CPU again.
    pub(in crate::ptrace) fn put_off(&mut self, notes: &mut Vec<Note>) {
        self.on = false;
        self.note(self.cursor, What::Off(Off::Preempted), notes);
    }

    /// It does not stop yet, and was seen to wait again after it ran: how long is counted, and what it
    /// did is not known.
    pub(in crate::ptrace) fn waits_again(&mut self, call: Doing, at: u64, notes: &mut Vec<Note>) {
        let counts = self.counts();
        let ran = counts.since(self.seen).ran;
        let Doing::Call { nr, args } = call else { return };
        self.seen = counts;
        if !self.on {
            self.begin(at.saturating_sub(ran).max(self.cursor), notes);
        }
        if let Doing::Call { .. } = self.doing {
            self.note(self.cursor, What::Back(1), notes);
        }
        self.doing = call;
        let until = (self.cursor + ran).min(at);
        self.note(until, What::Call { nr, args }, notes);
        self.note(until, What::Off(Off::Blocked), notes);
        (self.on, self.parked, self.from) = (false, true, until);
    }

    /// How often it has waited.
    pub(in crate::ptrace) fn waits(&self) -> Option<u64> {
        self.scheduled.waits()
    }

    /// What the scheduler counts of it now.
    pub(in crate::ptrace) fn counts(&self) -> Counts {
        self.scheduled.read().unwrap_or_default()
    }
}
